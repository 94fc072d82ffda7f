//! `profiles list`, `profiles use`, `profiles delete`.

use serde_json::json;

use crate::{
    args::ProfilesCommand,
    exit::Failure,
    printer::{List, Printer},
    profiles::{Profile, Profiles},
};

pub async fn run(command: ProfilesCommand, printer: &Printer) -> Result<(), Failure> {
    let mut profiles = Profiles::load()?;
    let unknown = |name: &str| {
        Failure::not_found(format!("there is no profile {name}")).with_hint("hub-cli profiles list")
    };
    match command {
        ProfilesCommand::List => list(&profiles, printer),
        ProfilesCommand::Use { name } => {
            if !profiles.all.contains_key(&name) {
                return Err(unknown(&name));
            }
            profiles.current.clone_from(&name);
            profiles.save()?;
            printer.one(json!({ "name": name }), &name)
        }
        ProfilesCommand::Delete { name, confirm } => {
            let profile = profiles.all.get(&name).ok_or_else(|| unknown(&name))?;
            let what = format!("this removes {name} and its key for {}", profile.server);
            let confirmed = confirm.is_confirmed(&what, printer).await?;
            if confirmed {
                profiles.all.remove(&name);
                profiles.save()?;
            }
            printer.one(json!({ "name": name, "deleted": confirmed }), &name)
        }
    }
}

fn list(profiles: &Profiles, printer: &Printer) -> Result<(), Failure> {
    let row = |(name, profile): (&String, &Profile)| {
        let mark = if *name == profiles.current { "current" } else { "" };
        vec![name.clone(), profile.server.to_string(), profile.username.clone(), mark.to_owned()]
    };
    let item = |(name, profile): (&String, &Profile)| {
        json!({
            "name": name,
            "server": profile.server,
            "username": profile.username,
            "current": *name == profiles.current,
        })
    };
    printer.list(List {
        columns: &["NAME", "SERVER", "USERNAME", ""],
        rows: profiles.all.iter().map(row).collect(),
        items: profiles.all.iter().map(item).collect(),
        next_cursor: None,
        empty: "not signed in: hub-cli login --server URL",
    })
}
