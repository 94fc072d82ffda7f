//! `login`, `logout`, `whoami`.

use std::time::Duration;

use hub_core::{bots::qr::qr_text_art, secret::Secret, time::Clock};
use serde_json::{Value, json};

use super::read_file;
use crate::{
    args::{LoginArgs, LogoutArgs, WhoamiArgs},
    exit::{Exit, Failure},
    printer::Printer,
    profiles::{DEFAULT, Profile, Profiles},
    remote::Remote,
    screen,
};

pub const FIELDS: [&str; 3] = ["profile", "server", "username"];
pub const WHOAMI_FIELDS: [&str; 6] = ["profile", "server", "id", "username", "display_name", "role"];

/// How often the hub is asked whether somebody has confirmed.
const LOOK: Duration = Duration::from_secs(1);

pub async fn run(args: LoginArgs, printer: &Printer) -> Result<(), Failure> {
    let mut profiles = Profiles::load()?;
    let key = if args.with_token {
        Secret::new(read_file("-")?.lines().next().unwrap_or_default().trim())
    } else {
        ask_by_qr(&Remote::anonymous(&args.server)?, printer).await?
    };
    let me = Remote::new(&args.server, key.clone())?.call("GET", "/api/auth/me", &[], &Value::Null).await?;
    let username = screen::clean(me["username"].as_str().unwrap_or_default());
    let name = args.profile.profile.unwrap_or_else(|| DEFAULT.to_owned());
    let document = json!({ "profile": name, "server": args.server, "username": username });
    let told = format!("signed in to {} as {username}", args.server);
    profiles.all.insert(name.clone(), Profile { server: args.server, key, username });
    profiles.current = name;
    profiles.save()?;
    printer.one(document, &told)
}

/// Shows a code and waits until somebody confirms it; the API key.
async fn ask_by_qr(hub: &Remote, printer: &Printer) -> Result<Secret, Failure> {
    let login = hub.call("POST", "/api/auth/qr/generate", &[], &Value::Null).await?;
    let text = |field: &str| login[field].as_str().unwrap_or_default();
    let (qr_id, poll_secret) = (text("qr_id"), text("poll_secret"));
    let link = screen::clean(text("qr_text"));
    // On stderr whatever the format: without it nobody can go on.
    Printer::ready(&format!(
        "{}\nOpen this on a device that is signed in, and type the code there:\n  {link}\n  code: {}",
        qr_text_art(&link)?,
        screen::clean(text("user_code"))
    ));
    let query = [("qr_id", Some(qr_id.to_owned())), ("poll_secret", Some(poll_secret.to_owned()))];
    let clock = Clock::system();
    let mut shown = String::new();
    loop {
        let poll = hub.call("GET", "/api/auth/qr/status", &query, &Value::Null).await?;
        let status = poll["status"].as_str().unwrap_or_default().to_owned();
        if status != shown {
            printer.note(&screen::clean(&status));
        }
        match status.as_str() {
            "confirmed" => {
                let ticket =
                    json!({ "qr_id": qr_id, "poll_secret": poll_secret, "exchange": poll["exchange"] });
                let kind = [("kind", Some("api_key".to_owned()))];
                let given = hub.call("POST", "/api/auth/qr/exchange", &kind, &ticket).await?;
                return Ok(Secret::new(given["api_key"].as_str().unwrap_or_default()));
            }
            "expired" => {
                return Err(
                    Failure::timed_out("nobody confirmed the code in time").with_hint("hub-cli login")
                );
            }
            "cancelled" => {
                return Err(Failure::new(Exit::Denied, "FORBIDDEN", "the code was refused"));
            }
            _ => {}
        }
        shown = status;
        clock.sleep(LOOK).await;
    }
}

pub fn logout(args: &LogoutArgs, printer: &Printer) -> Result<(), Failure> {
    let mut profiles = Profiles::load()?;
    let (name, profile) = profiles.find(args.profile.profile.as_deref())?;
    let document = json!({ "profile": name, "server": profile.server, "username": profile.username });
    let told = format!("{} is forgotten; its key still works until it is ended on {}", name, profile.server);
    let name = name.to_owned();
    profiles.all.remove(&name);
    profiles.save()?;
    printer.one(document, &told)
}

pub async fn whoami(args: WhoamiArgs, printer: &Printer) -> Result<(), Failure> {
    let profiles = Profiles::load()?;
    let (name, profile) = profiles.find(args.profile.profile.as_deref())?;
    let me = Remote::new(&profile.server, profile.key.clone())?
        .call("GET", "/api/auth/me", &[], &Value::Null)
        .await?;
    let document = json!({
        "profile": name,
        "server": profile.server,
        "id": me["id"],
        "username": me["username"],
        "display_name": me["display_name"],
        "role": me["role"],
    });
    let text = |field: &str| screen::clean(me[field].as_str().unwrap_or_default());
    printer.one(document, &format!("{} ({}) on {}", text("username"), text("role"), profile.server))
}
