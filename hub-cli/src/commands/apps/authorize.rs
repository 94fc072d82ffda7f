//! `apps authorize`: OAuth 2.0 with PKCE from a terminal (RFC 8252).

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use hub_core::{id::AppId, random::Random};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::loopback::{Loopback, is_here};
use crate::{
    args::AppsAuthorizeArgs, browser, client::id_of, context::Context, document::lines, exit::Failure,
    printer::Printer,
};

pub async fn run(args: AppsAuthorizeArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let Some(server) = client.server() else {
        return Err(Failure::usage("apps authorize needs a server").with_hint(
            "name it with --server, or sign in to it: hub-cli login. With --local, use hub-cli apps install",
        ));
    };
    let app = client.app(&args.app).await?;
    let id: AppId = id_of(&app)?;
    let bot = match &args.bot {
        Some(bot) => Some(client.bot(bot).await?.to_string()),
        None => None,
    };
    let redirect_uri = redirect_uri(&app, args.redirect_uri.as_deref())?;
    let random = Random::system();
    let (verifier, state) = (word(&random), word(&random));
    let loopback = Loopback::listen(&redirect_uri, &state).await?;
    let scope = Some(args.scope.join(" ")).filter(|scope| !scope.is_empty());
    let question = server.address(
        "/api/auth/oauth/authorize",
        &[
            ("response_type", Some("code".to_owned())),
            ("client_id", Some(id.to_string())),
            ("redirect_uri", Some(redirect_uri)),
            ("scope", scope),
            ("state", Some(state)),
            ("bot_id", bot),
            ("code_challenge", Some(challenge(&verifier))),
            ("code_challenge_method", Some("S256".to_owned())),
        ],
    );
    // On stderr with every format, because the user needs it to continue.
    Printer::ready(&format!("Open this in a browser that is signed in as the bot's owner:\n  {question}"));
    if !args.no_open {
        browser::open(question.as_str());
    }
    let code = loopback.code(Duration::from_secs(args.timeout)).await?;
    let body = json!({ "code": code, "code_verifier": verifier });
    let granted = client.post(&format!("/api/apps/{id}/oauth/exchange"), &body).await?;
    cx.printer.note("the token, and the signing secret of events, are shown only now");
    let text = lines(&granted, ["installation_id", "bot_id", "app_token", "webhook_secret"], 15);
    cx.printer.one(granted, &text)
}

/// The app's registered address on this machine: the chosen one, or the first.
fn redirect_uri(app: &Value, chosen: Option<&str>) -> Result<String, Failure> {
    let registered: Vec<&str> =
        app["redirect_uris"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let missing = |what: String| {
        Failure::usage(what).with_hint("hub-cli apps edit APP --redirect-uri http://127.0.0.1:8976/callback")
    };
    match chosen {
        Some(chosen) if registered.contains(&chosen) => Ok(chosen.to_owned()),
        Some(chosen) => Err(missing(format!("{chosen} is not a redirect URI of the app"))),
        None => {
            let here = registered.into_iter().find(|uri| is_here(uri));
            here.map(str::to_owned)
                .ok_or_else(|| missing("the app has no http redirect URI on this machine".to_owned()))
        }
    }
}

/// 256 random bits as 43 characters of base64url: a verifier (RFC 7636 §4.1), and a state.
fn word(random: &Random) -> String {
    BASE64URL_NOPAD.encode(&random.bytes::<32>())
}

/// The challenge of a verifier (RFC 7636 §4.2).
fn challenge(verifier: &str) -> String {
    BASE64URL_NOPAD.encode(&Sha256::digest(verifier))
}
