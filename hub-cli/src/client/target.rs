//! Selection of the hub: by flags, variables and profiles.

use hub_core::secret::Secret;
use url::Url;

use crate::{
    args::{DEFAULT_SERVER, HubArgs},
    client::http_client::check_transport,
    exit::{Exit, Failure},
    profiles::{Profile, Profiles},
};

/// A server and the key for it.
#[derive(Debug)]
pub struct Target {
    pub server: Url,
    pub key: Secret,
    pub name: Option<String>,
}

/// Selects the server; `None` for the files of this machine.
///
/// # Errors
/// A failure if a server is named without a profile for it, a profile is unknown, or the profiles cannot be read.
pub fn choose(args: &HubArgs, local: bool) -> Result<Option<Target>, Failure> {
    if local {
        return Ok(None);
    }
    // Read from the environment alone, because arguments are visible to everyone on the machine.
    let token = std::env::var("HUB_TOKEN").ok().filter(|token| !token.is_empty()).map(Secret::new);
    let files_are_named = args.local.data_dir.is_some() || args.local.database_url.is_some();
    match (&args.server, &args.profile.profile) {
        (Some(server), None) if token.is_some() => {
            Ok(token.map(|key| Target { server: server.clone(), key, name: None }))
        }
        (Some(server), None) => {
            let profiles = Profiles::load()?;
            of_server(&profiles, server).map(Some)
        }
        (server, Some(name)) => of_profile(&Profiles::load()?, name, server.as_ref()).map(Some),
        (None, None) if files_are_named => Ok(None),
        (None, None) => Ok(in_use(&Profiles::load()?)),
    }
}

/// The address of the selected server, for commands with another kind of key.
pub fn address(server: Option<&Url>, profile: Option<&str>) -> Result<Url, Failure> {
    match (server, profile) {
        (Some(server), None) => Ok(server.clone()),
        (server, Some(name)) => Ok(of_profile(&Profiles::load()?, name, server)?.server),
        (None, None) => match in_use(&Profiles::load()?) {
            Some(target) => Ok(target.server),
            None => DEFAULT_SERVER.parse().map_err(|_| Failure::usage("--server: not a URL")),
        },
    }
}

/// Returns the active profile if it is of this server, else the first one of it.
fn of_server(profiles: &Profiles, server: &Url) -> Result<Target, Failure> {
    let in_use = profiles.all.get_key_value(&profiles.current);
    let found = in_use.into_iter().chain(&profiles.all).find(|(_, profile)| profile.server == *server);
    let Some((name, found)) = found else {
        // Where no key may be sent, a login does not help.
        check_transport(server)?;
        let hint = format!("hub-cli login --server {server}, or an administrator's API key in HUB_TOKEN");
        let message = format!("not signed in to {server}");
        return Err(Failure::new(Exit::Denied, "UNAUTHORIZED", message).with_hint(hint));
    };
    Ok(of(name, found))
}

fn of_profile(profiles: &Profiles, name: &str, server: Option<&Url>) -> Result<Target, Failure> {
    let (_, profile) = profiles.find(Some(name))?;
    if server.is_some_and(|server| *server != profile.server) {
        return Err(Failure::usage(format!(
            "profile {name} is of {}, and another --server is named",
            profile.server
        ))
        .with_hint("name one of the two"));
    }
    Ok(of(name, profile))
}

fn in_use(profiles: &Profiles) -> Option<Target> {
    let (name, profile) = profiles.find(None).ok()?;
    Some(of(name, profile))
}

fn of(name: &str, profile: &Profile) -> Target {
    let (server, key) = (profile.server.clone(), profile.key.clone());
    Target { server, key, name: Some(name.to_owned()) }
}
