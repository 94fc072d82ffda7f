//! Login by QR code (`docs/ilink.md#login`). The notes between two steps are one JSON text; they hold the code that
//! lets its holder log in, and are secret.

use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::{
    field::Fields,
    hosts::Hosts,
    reply::{Reply, printable},
    transport::{Endpoint, Transport},
};
use crate::{
    egress::{EgressError, EgressFault},
    network::{Credentials, LoginProgress, LoginPrompt, LoginState, LoginStep, NetworkError},
    secret::Secret,
};

/// The only type of bot that the service makes.
const BOT_TYPE: &str = "3";
/// Most tokens that are sent to the network.
const MAX_KNOWN: usize = 10;
/// Observed lifetime of a code; no answer contains it.
const CODE_LIFE: Duration = Duration::from_secs(120);
/// Digits of a pairing code at most.
const MAX_DIGITS: usize = 16;

/// The notes between two steps.
#[derive(Clone, Serialize, Deserialize)]
struct Notes {
    /// The network's name of this login.
    qrcode: String,
    /// Base URL of the status requests.
    base: String,
    /// The pairing code that was typed in and not checked yet.
    code: Option<String>,
    /// Whether the last code was judged wrong.
    wrong: bool,
}

/// Makes the two calls of a login.
#[derive(Debug, Clone, Copy)]
pub(super) struct Login<'a> {
    pub(super) transport: &'a Transport,
    pub(super) hosts: &'a Hosts,
}

impl Login<'_> {
    pub(super) async fn begin(self, known: &[Secret]) -> Result<LoginPrompt, NetworkError> {
        let base = self.hosts.login();
        let mut url = Endpoint::BeginLogin.url(base);
        url.query_pairs_mut().append_pair("bot_type", BOT_TYPE);
        let tokens: Vec<&str> = known.iter().take(MAX_KNOWN).map(Secret::expose).collect();
        let body = json!({ "local_token_list": tokens });
        let deadline = self.transport.config().timeouts.login_code;
        let reply = self.transport.post(Endpoint::BeginLogin, &url, None, &body, deadline)?.await?;
        let (qrcode, qr_text) = read_code(&reply)?;
        let notes = Notes { qrcode, base: base.to_string(), code: None, wrong: false };
        Ok(LoginPrompt { qr_text, state: notes.into(), lives: CODE_LIFE })
    }

    pub(super) async fn step(
        self,
        state: &LoginState,
        verify_code: Option<&str>,
        wait: Duration,
    ) -> Result<LoginProgress, NetworkError> {
        let mut notes = Notes::read(state)?;
        if let Some(code) = verify_code {
            let Some(code) = pairing_code(code) else {
                notes.wrong = true;
                return Ok(LoginProgress { step: LoginStep::NeedCode { wrong: true }, state: notes.into() });
            };
            notes.code = Some(code);
        }
        let step = match self.ask(&notes, wait).await {
            Ok(reply) if is_gateway_error(reply.status) => LoginStep::Waiting,
            Ok(reply) => read_status(&reply, &mut notes, self.hosts)?,
            Err(error) if is_still_waiting(&error) => LoginStep::Waiting,
            Err(error) => return Err(error.into()),
        };
        Ok(LoginProgress { step, state: notes.into() })
    }

    async fn ask(self, notes: &Notes, wait: Duration) -> Result<Reply, EgressError> {
        let base = self.hosts.check(&notes.base);
        let mut url = Endpoint::LoginStatus.url(base.as_ref().unwrap_or(self.hosts.login()));
        url.query_pairs_mut().append_pair("qrcode", &notes.qrcode);
        if let Some(code) = &notes.code {
            url.query_pairs_mut().append_pair("verify_code", code);
        }
        let deadline = wait.min(self.transport.config().timeouts.login_status);
        self.transport.get(Endpoint::LoginStatus, &url, deadline)?.await
    }
}

impl Notes {
    fn read(state: &LoginState) -> Result<Self, NetworkError> {
        serde_json::from_str(state.0.expose()).map_err(|_| NetworkError::Refused {
            code: 0,
            message: "the login is not one of this network".into(),
        })
    }
}

impl From<Notes> for LoginState {
    fn from(notes: Notes) -> Self {
        Self(Secret::new(json!(notes).to_string()))
    }
}

/// The digits of a pairing code; how many there are is not known.
fn pairing_code(text: &str) -> Option<String> {
    let code = text.trim();
    let valid = (1..=MAX_DIGITS).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_digit());
    valid.then(|| code.to_owned())
}

/// Whether an answer is a gateway's, which says nothing about the login.
fn is_gateway_error(status: StatusCode) -> bool {
    matches!(status.as_u16(), 502 | 503 | 504 | 524)
}

/// Whether an error says nothing about the login: a timeout of this side, or a connection that failed or broke.
fn is_still_waiting(error: &EgressError) -> bool {
    !matches!(error.fault, EgressFault::BlockedAddress | EgressFault::TooLarge)
}

/// The code's name and the text to show, from the answer that begins a login.
fn read_code(reply: &Reply) -> Result<(String, Secret), NetworkError> {
    let fields = reply.accept().map_err(without_login)?;
    let (qrcode, text) = (fields.text("qrcode"), fields.text("qrcode_img_content"));
    if qrcode.is_empty() || text.is_empty() {
        return Err(NetworkError::Unreachable("the response has no QR code".into()));
    }
    Ok((qrcode, Secret::new(text)))
}

/// Maps an expired login, which a login in progress cannot have, to a refusal.
fn without_login(error: NetworkError) -> NetworkError {
    match error {
        NetworkError::LoginExpired(message) => NetworkError::Refused { code: -14, message },
        other => other,
    }
}

/// Reads the status, and updates the notes.
fn read_status(reply: &Reply, notes: &mut Notes, hosts: &Hosts) -> Result<LoginStep, NetworkError> {
    let status = reply.fields().map(|fields| fields.text("status")).unwrap_or_default();
    if status.is_empty() || !reply.status.is_success() {
        reply.accept().map_err(without_login)?;
        return Err(NetworkError::Unreachable("the response has no status".into()));
    }
    let fields = reply.fields().unwrap_or_default();
    let (code, was_wrong) = (notes.code.take(), std::mem::take(&mut notes.wrong));
    Ok(match status.as_str() {
        "wait" => {
            (notes.code, notes.wrong) = (code, was_wrong);
            LoginStep::Waiting
        }
        "scaned" => LoginStep::Scanned,
        "need_verifycode" => {
            notes.wrong = was_wrong || code.is_some();
            LoginStep::NeedCode { wrong: notes.wrong }
        }
        "verify_code_blocked" => LoginStep::CodeBlocked,
        "scaned_but_redirect" => redirected(&fields.text("redirect_host"), notes, hosts),
        "expired" => LoginStep::Expired,
        "binded_redirect" => LoginStep::AlreadyBound,
        "confirmed" => confirmed(&fields, hosts),
        unknown => {
            tracing::warn!(status = printable(unknown), "unknown login status of the chat network");
            (notes.code, notes.wrong) = (code, was_wrong);
            LoginStep::Waiting
        }
    })
}

/// Moves the status requests for the same code to the host of the account.
fn redirected(host: &str, notes: &mut Notes, hosts: &Hosts) -> LoginStep {
    if host.is_empty() {
        tracing::warn!("the chat network redirects a login and names no host");
        return LoginStep::Scanned;
    }
    let Some(base) = hosts.redirect(host) else {
        tracing::warn!(host = printable(host), "the chat network redirects a login to a foreign host");
        return LoginStep::Refused("the network redirected the login to a host that is not allowed".into());
    };
    notes.base = base.into();
    LoginStep::Scanned
}

fn confirmed(fields: &Fields<'_>, hosts: &Hosts) -> LoginStep {
    let (token, account_id) = (fields.text("bot_token"), fields.text("ilink_bot_id"));
    if token.is_empty() || account_id.is_empty() {
        return LoginStep::Refused("the network confirmed the login without credentials".into());
    }
    LoginStep::Confirmed(Credentials {
        token: Secret::new(token),
        account_id,
        owner_user_id: fields.text("ilink_user_id"),
        base_url: account_base(&fields.text("baseurl"), hosts),
    })
}

/// The account's base URL, empty for the login host: another process of this hub may know that by another address.
/// One that may not be called gives way to the login host, too: losing the credentials over it could leave the
/// person unable to bind again.
fn account_base(text: &str, hosts: &Hosts) -> String {
    if let Some(url) = hosts.check(text) {
        return if url == *hosts.login() { String::new() } else { url.into() };
    }
    if !text.is_empty() {
        let host = Url::parse(text).ok().and_then(|url| url.host_str().map(printable));
        tracing::warn!(host, "the chat network names a foreign base URL; the login host is used");
    }
    String::new()
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
