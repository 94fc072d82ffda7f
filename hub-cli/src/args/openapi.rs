use clap::{Args, Subcommand, ValueEnum};

use super::{Ends, Fields};

/// Print or check the description of the HTTP API
#[derive(Debug, Subcommand)]
pub enum OpenapiCommand {
    Export(ExportArgs),
}

/// Print the OpenAPI document, or compare a file with it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli openapi export --format yaml\n  hub-cli openapi export --spec 3.1\n  hub-cli openapi export --check openapi.json\n\nSee also: /openapi.json and /docs of a server",
    add = Ends(&[(0, "printed or equal"), (6, "the file is unreadable"), (9, "it differs")]),
    add = Fields::own(&["file", "equal"])
)]
pub struct ExportArgs {
    /// Format [default: json, or that of the checked file's extension]
    #[arg(long)]
    pub format: Option<DocumentFormat>,
    /// OpenAPI version [default: 3.0, or 3.1 for a file whose name ends in v3_1.json]
    #[arg(long, value_name = "VERSION")]
    pub spec: Option<SpecVersion>,
    /// Only check that this file equals the document
    #[arg(long, value_name = "FILE")]
    pub check: Option<String>,
}

/// Versions of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpecVersion {
    /// 3.0.3, for all generators
    #[value(name = "3.0")]
    V3_0,
    /// 3.1, derived from 3.0
    #[value(name = "3.1")]
    V3_1,
}

/// Forms of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DocumentFormat {
    /// JSON
    Json,
    /// YAML
    Yaml,
}
