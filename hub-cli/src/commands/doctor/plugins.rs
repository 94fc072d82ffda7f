//! Whether plugins run here: the sandbox itself, and every version that channels have.

use hub_core::{
    sandbox::{Sandbox, Source},
    store::{StoreConfig, Upkeep},
};

use super::{Outcome, Patient};
use crate::commands::debug::sandbox;

/// What the sandbox has to understand.
const PROBE: &str = "function onRequest(ctx) { ctx.req.headers['x-probe'] = 'yes'; }";

pub async fn look(patient: &Patient<'_>) -> Vec<Outcome> {
    if !patient.wants("sandbox.limits") && !patient.wants("plugins.compile") {
        return Vec::new();
    }
    let sandbox = sandbox();
    let mut outcomes = vec![limits(&sandbox).await];
    if patient.wants("plugins.compile") {
        outcomes.push(compile(patient, &sandbox).await);
    }
    sandbox.close();
    outcomes
}

/// A worker that starts has confined itself: it ends where that fails.
async fn limits(sandbox: &Sandbox) -> Outcome {
    let id = "sandbox.limits";
    match sandbox.check("doctor", &Source::new(PROBE)).await {
        Ok(None) => Outcome::ok(id, "plugins run in a process of their own"),
        Ok(Some(error)) => {
            Outcome::failed(id, format!("the sandbox refuses what it should run: {}", error.message))
        }
        Err(fault) => Outcome::failed(id, format!("no plugin can run here: {fault}"))
            .advise("look at the seccomp profile and the process limits of the container or unit"),
    }
}

async fn compile(patient: &Patient<'_>, sandbox: &Sandbox) -> Outcome {
    let id = "plugins.compile";
    let missing = matches!(&patient.config.store, StoreConfig::Sqlite(path) if !path.exists());
    let remote = matches!(patient.config.store, StoreConfig::Postgres(_)) && patient.args.offline;
    if missing || remote {
        return Outcome::skipped(id, "the database is not there to ask");
    }
    let found = async {
        let mut database = Upkeep::open(&patient.config.store).await?;
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
