//! `login`, `logout`, `whoami`.

use std::time::Duration;

use hub_core::{bots::qr::qr_text_art, secret::Secret};
use hub_server::config::is_this_machine;
use serde_json::{Value, json};
use url::Url;

use super::read_file;
use crate::{
    args::{LoginArgs, LogoutArgs, WhoamiArgs},
    browser,
    client::Client,
    exit::{Exit, Failure},
    poll::every,
    printer::{Format, Printer},
    profiles::{DEFAULT, Profile, Profiles},
    screen,
};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub async fn run(args: LoginArgs, printer: &Printer) -> Result<(), Failure> {
    let mut profiles = Profiles::load()?;
    let own = !args.with_token;
    let key = if own {
        sign_in_by_code(&Client::at(&args.server, None)?, &args, printer).await?
    } else {
        Secret::new(read_file("-")?.lines().next().unwrap_or_default().trim())
    };
    let me = Client::at(&args.server, Some(key.clone()))?.get("/api/auth/me").await?;
    let username = screen::clean(me["username"].as_str().unwrap_or_default());
    let name = args.profile.profile.unwrap_or_else(|| DEFAULT.to_owned());
    let document = json!({ "profile": name, "server": args.server, "username": username });
    let text = format!("signed in to {} as {username}", args.server);
    profiles.all.insert(name.clone(), Profile { server: args.server, key, own, username });
    profiles.current = name;
    profiles.save()?;
    printer.one(document, &text)
}

/// Whether a phone can use the drawing: it fits on the screen with the lines that follow, and the link leads to
/// another machine.
fn draws_qr_code(link: &str, art: &str, rows: usize) -> bool {
    const LINES_BELOW: usize = 4;
    let leads_here = Url::parse(link).is_ok_and(|url| is_this_machine(&url));
    !leads_here && art.lines().count() + LINES_BELOW <= rows
}

/// Shows a code, waits for the confirmation, and returns the API key.
async fn sign_in_by_code(hub: &Client, args: &LoginArgs, printer: &Printer) -> Result<Secret, Failure> {
    let login = hub.post("/api/auth/qr/generate", &Value::Null).await?;
    let text = |field: &str| login[field].as_str().unwrap_or_default();
    let (qr_id, poll_secret) = (text("qr_id"), text("poll_secret"));
    let link = screen::clean(text("qr_text"));
    let code = screen::clean(text("user_code"));
    // On stderr with every format, because the user needs it to continue.
    match printer.format {
        Format::Json(_) => {
            Printer::ready(&json!({ "status": "waiting", "qr_text": link, "user_code": code }).to_string());
        }
        Format::Text => {
            let art = qr_text_art(&link)?;
            let room = if printer.draws() { Printer::terminal_rows() } else { 0 };
            if args.qr || (!args.code && draws_qr_code(&link, &art, room)) {
                Printer::ready(&art);
            }
            Printer::ready(&format!(
                "Open this on a device that is signed in, and enter the code there:\n  {link}\n  code: {code}"
            ));
        }
    }
    if !args.no_open {
        browser::open(&link);
    }
    let query = [("qr_id", Some(qr_id.to_owned())), ("poll_secret", Some(poll_secret.to_owned()))];
    let mut shown = String::new();
    every(POLL_INTERVAL, async || {
        let poll = hub.call("GET", "/api/auth/qr/status", &query, &Value::Null).await?;
        let status = poll["status"].as_str().unwrap_or_default();
        if status != shown {
            printer.note(&screen::clean(status));
            status.clone_into(&mut shown);
        }
        match status {
            "confirmed" => {
                let ticket =
                    json!({ "qr_id": qr_id, "poll_secret": poll_secret, "exchange": poll["exchange"] });
                let kind = [("kind", Some("api_key".to_owned()))];
                let given = hub.call("POST", "/api/auth/qr/exchange", &kind, &ticket).await?;
                Ok(Some(Secret::new(given["api_key"].as_str().unwrap_or_default())))
            }
            "expired" => {
                Err(Failure::timed_out("the code was not confirmed in time").with_hint("hub-cli login"))
            }
            "cancelled" => Err(Failure::new(Exit::Denied, "FORBIDDEN", "the code was rejected")),
            _ => Ok(None),
        }
    })
    .await
}

pub async fn logout(args: LogoutArgs, printer: &Printer) -> Result<(), Failure> {
    let mut profiles = Profiles::load()?;
    let (name, profile) = profiles.find(args.profile.profile.as_deref())?;
    // A given key may be in use elsewhere.
    let ended = if profile.own { revoke_key(profile).await.map(|()| true) } else { Ok(false) };
    let text = match &ended {
        Ok(true) => format!("signed out of {}", profile.server),
        Ok(false) => {
            format!("signed out of {name}; its key stays valid until it is revoked on {}", profile.server)
        }
        Err(failure) => format!(
            "signed out of {name}; its key stays valid until it is revoked on {}, which reported: {}",
            profile.server, failure.message
        ),
    };
    let document = json!({
        "profile": name,
        "server": profile.server,
        "username": profile.username,
        "key_ended": matches!(ended, Ok(true)),
    });
    let name = name.to_owned();
    profiles.all.remove(&name);
    profiles.save()?;
    printer.one(document, &text)
}

/// Revokes a profile's key on its hub; it may have been revoked already.
async fn revoke_key(profile: &Profile) -> Result<(), Failure> {
    let hub = Client::at(&profile.server, Some(profile.key.clone()))?;
    let all = [("limit", Some("200".to_owned()))];
    let listed = match hub.call("GET", "/api/user/api-keys", &all, &Value::Null).await {
        Err(failure) if failure.code == "INVALID_TOKEN" => return Ok(()),
        listed => listed?,
    };
    let own = listed["items"].as_array().into_iter().flatten().find(|key| key["current"] == true);
    let id = own.and_then(|key| key["id"].as_str());
    let id = id.ok_or_else(|| Failure::not_found("the key is not in its list"))?;
    hub.delete(&format!("/api/user/api-keys/{id}")).await.map(drop)
}

pub async fn whoami(args: WhoamiArgs, printer: &Printer) -> Result<(), Failure> {
    let profiles = Profiles::load()?;
    let (name, profile) = profiles.find(args.profile.profile.as_deref())?;
    let me = Client::at(&profile.server, Some(profile.key.clone()))?.get("/api/auth/me").await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_code_is_drawn_only_where_it_fits_and_helps() {
        let link = "https://hub.example/login?qr=qr_01KAJ6Z8QH0000000000000000";
        let art = qr_text_art(link).unwrap();
        let rows = art.lines().count();
        assert!(draws_qr_code(link, &art, rows + 4));
        assert!(!draws_qr_code(link, &art, rows + 3), "its top would scroll away");
        assert!(!draws_qr_code("http://localhost:9800/login?qr=x", &art, 100));
        assert!(!draws_qr_code("http://127.0.0.1:9800/login?qr=x", &art, 100));
    }
}
