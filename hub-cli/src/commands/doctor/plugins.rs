//! Whether plugins run: the sandbox itself, and every installed version.

use hub_core::{
    sandbox::{CallFilter, Confinement, Sandbox, SandboxFault, Source},
    store::{StoreConfig, Upkeep},
};

use super::{Outcome, Subject};
use crate::commands::plugins::run::sandbox;

/// A plugin that the sandbox has to run.
const PROBE: &str = "function onRequest(ctx) { ctx.req.headers['x-probe'] = 'yes'; }";

pub async fn check(subject: &Subject<'_>) -> Vec<Outcome> {
    if !subject.wants("sandbox.limits") && !subject.wants("plugins.compile") {
        return Vec::new();
    }
    let sandbox = sandbox();
    let mut outcomes = vec![limits(&sandbox, subject.config.sandbox.filter).await];
    if subject.wants("plugins.compile") {
        outcomes.push(compile(subject, &sandbox).await);
    }
    sandbox.close();
    outcomes
}

/// A worker that starts has confined itself, except for the filter of system calls: otherwise it exits.
async fn limits(sandbox: &Sandbox, filter: CallFilter) -> Outcome {
    let id = "sandbox.limits";
    match sandbox.check("doctor", &Source::new(PROBE)).await {
        Ok(None) if sandbox.confinement() == Confinement::Unfiltered => unfiltered(id, filter),
        Ok(None) => Outcome::ok(id, "plugins run in a separate process"),
        Ok(Some(error)) => {
            Outcome::failed(id, format!("the sandbox rejects a valid plugin: {}", error.message))
        }
        Err(fault) => Outcome::failed(id, format!("plugins cannot run: {fault}"))
            .advise("check the seccomp profile and the process limits of the container or unit"),
    }
}

/// Reports how the server runs plugins on a system that cannot confine them completely.
fn unfiltered(id: &str, filter: CallFilter) -> Outcome {
    match filter {
        CallFilter::Required => Outcome::failed(id, SandboxFault::Unfiltered.to_string()).advise(
            "run it on Linux, with a seccomp profile of the container or unit that allows the system call seccomp;\n\
             or sandbox_filter = \"optional\"",
        ),
        CallFilter::Optional => Outcome::warning(
            id,
            "plugins run in a separate process without a filter of system calls, which this system cannot install",
        )
        .advise("sandbox_filter = \"required\" runs no plugin then"),
    }
}

async fn compile(subject: &Subject<'_>, sandbox: &Sandbox) -> Outcome {
    let id = "plugins.compile";
    let missing = matches!(&subject.config.store, StoreConfig::Sqlite(path) if !path.exists());
    let remote = matches!(subject.config.store, StoreConfig::Postgres(_)) && subject.args.offline;
    if missing || remote {
        return Outcome::skipped(id, "there is no database");
    }
    let found = async {
        let mut database = Upkeep::open(&subject.config.store).await?;
        let plugins = database.plugins_in_use().await?;
        database.close().await?;
        Ok::<_, hub_core::Error>(plugins)
    };
    let plugins = match found.await {
        Ok(plugins) => plugins,
        Err(error) => return Outcome::skipped(id, format!("plugins cannot be read: {}", error.message())),
    };
    for (name, version, script) in &plugins {
        let wrong = match sandbox.check("doctor", &Source::new(script.as_str())).await {
            Ok(None) => continue,
            Ok(Some(error)) => error.message,
            Err(fault) => fault.to_string(),
        };
        return Outcome::failed(id, format!("{name} {version} does not compile: {wrong}"))
            .advise(format!("hub-cli plugins show {name}"));
    }
    Outcome::ok(id, format!("{} versions in use compile", plugins.len()))
}
