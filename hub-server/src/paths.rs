//! Paths that several layers know.

/// Path of the MCP server.
pub(crate) const MCP: &str = "/mcp";

/// Whether a path is one that installed apps call with their token.
pub(crate) fn is_app_call(path: &str) -> bool {
    path.starts_with("/bot/v1") || path == MCP
}
