//! Login by QR code (`docs/ilink.md#login`): eight states, held status polls.

use std::collections::{HashMap, VecDeque};

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;

use super::{
    Simulator,
    account::{Account, new_user_id},
    world::{Bell, Env, World, random_hex},
};
use crate::{
    error::{Error, Result},
    network::server::{Call, Reply},
    time::{Instant, Timestamp},
    words::words,
};

/// Path prefix of the page that opens when the text of a QR code is opened as a link, in place of being scanned.
pub(super) const PAGE: &str = "/q/";

/// Action on a QR code other than scanning and confirming it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum QrAction {
    /// Its time is over.
    Expire,
    /// The phone shows a number, and login goes on only with it.
    RequireCode {
        /// The number.
        code: String,
    },
    /// Too many wrong numbers.
    Block,
    /// The account lives elsewhere: polls have to go to another host.
    Redirect {
        /// Host name, with a port if need be; absent to leave it out of the answer.
        #[serde(default)]
        host: Option<String>,
    },
    /// The bot is bound already, and the client is said to hold its token.
    AlreadyBound,
}

words! {
    /// The values of `status`.
    enum Status {
        Wait = "wait",
        Scaned = "scaned",
        NeedVerifyCode = "need_verifycode",
        VerifyCodeBlocked = "verify_code_blocked",
        ScanedButRedirect = "scaned_but_redirect",
        Expired = "expired",
        BindedRedirect = "binded_redirect",
        Confirmed = "confirmed",
    }
}

impl Status {
    /// Whether a poll must not be held for the status.
    const fn is_final(self) -> bool {
        matches!(self, Self::VerifyCodeBlocked | Self::Expired | Self::BindedRedirect | Self::Confirmed)
    }
}

struct QrCode {
    text: String,
    made_at: Timestamp,
    done_at: Option<Timestamp>,
    status: Status,
    /// The pairing code, and how often it may still be wrong.
    verify: Option<(String, u32)>,
    redirect: Option<Redirect>,
    /// The result of the last poll: only a change gets an immediate response.
    reported: Option<Status>,
    local_tokens: Vec<String>,
    wx_id: Option<String>,
    bell: Bell,
}

struct Redirect {
    host: Option<String>,
    reported: bool,
}

impl QrCode {
    /// The status now, for a poll that came in on `host`.
    fn status(&self, env: &Env<'_>, host: &str) -> Status {
        let ends = self.ends_at(env);
        if ends.is_some_and(|ends| ends <= env.now) {
            return Status::Expired;
        }
        let redirected = self.redirect.as_ref().is_some_and(|redirect| match &redirect.host {
            Some(to) => to != host,
            None => !redirect.reported,
        });
        if redirected && self.status == Status::Scaned { Status::ScanedButRedirect } else { self.status }
    }

    /// Returns the time at which the status changes by itself.
    fn ends_at(&self, env: &Env<'_>) -> Option<Timestamp> {
        match self.done_at {
            Some(done) => Some(done + env.config.qr_done_life),
            None if self.status.is_final() => None,
            None => Some(self.made_at + env.config.qr_life),
        }
    }

    fn set(&mut self, status: Status) {
        self.status = status;
        self.bell.ring();
    }

    /// Checks a pairing code that came with a poll.
    fn verify(&mut self, given: &str) {
        let Some((right, tries)) = &mut self.verify else { return };
        if self.status != Status::NeedVerifyCode {
            return;
        }
        if given == right {
            self.verify = None;
            self.set(Status::Scaned);
        } else {
            *tries = tries.saturating_sub(1);
            if *tries == 0 {
                self.set(Status::VerifyCodeBlocked);
            }
        }
        // Right or wrong, the answer comes at once.
        self.reported = None;
    }
}

/// The QR codes by their opaque value, the newest [`SimCaps::qr_codes`](super::SimCaps::qr_codes) of them.
#[derive(Default)]
pub(super) struct QrCodes {
    codes: HashMap<String, QrCode>,
    order: VecDeque<String>,
}

impl QrCodes {
    /// The code with this text. The bare value cannot be scanned.
    fn by_text(&mut self, text: &str) -> Result<&mut QrCode> {
        let value = text.rsplit('/').next().unwrap_or_default();
        self.codes.get_mut(value).filter(|code| code.text == text).ok_or_else(|| Error::not_found("QR code"))
    }
}

enum Step {
    Answer(Reply),
    Hold { until: Instant, bell: watch::Receiver<()> },
}

impl Simulator {
    /// The page behind the text of a QR code. The text is a link, and a published client opens it before it draws the
    /// code, in case it is a picture.
    pub(super) fn qr_page(&self, value: &str) -> Reply {
        if self.act(|world, _| world.qr_codes.codes.contains_key(value)) {
            Reply::html(
                StatusCode::OK,
                "<!doctype html><title>QR code</title><p>Scan the code with the app.</p>",
            )
        } else {
            Reply::text(StatusCode::NOT_FOUND, "404 not found")
        }
    }

    pub(super) async fn get_qrcode_status(&self, call: &Call, value: &str, given: Option<&str>) -> Reply {
        let until = self.clock().instant() + self.config().qr_hold;
        if let Some(given) = given {
            self.act(|world, _| {
                if let Some(code) = world.qr_codes.codes.get_mut(value) {
                    code.verify(given);
                }
            });
        }
        loop {
            let (until, mut bell) = match self.act(|world, env| world.step_qr(env, call, value, until)) {
                Step::Answer(reply) => return reply,
                Step::Hold { until, bell } => (until, bell),
            };
            tokio::select! {
                // An error means that the code is gone; the next step sees it.
                _ = bell.changed() => {}
                () = self.clock().sleep_until(until) => {}
            }
        }
    }
}

impl World {
    pub(super) fn get_bot_qrcode(&mut self, env: &Env<'_>, call: &Call, tokens: &[&str]) -> Reply {
        let value = random_hex::<16>(env.random);
        let text = format!("{}{PAGE}{value}", call.base);
        let code = QrCode {
            text: text.clone(),
            made_at: env.now,
            done_at: None,
            status: Status::Wait,
            verify: None,
            redirect: None,
            reported: None,
            local_tokens: tokens.iter().map(|token| (*token).to_owned()).collect(),
            wx_id: None,
            bell: Bell::default(),
        };
        let codes = &mut self.qr_codes;
        if codes.order.len() >= env.config.caps.qr_codes {
            codes.order.pop_front().and_then(|oldest| codes.codes.remove(&oldest));
        }
        codes.order.push_back(value.clone());
        codes.codes.insert(value.clone(), code);
        Reply::json(&json!({"ret": 0, "qrcode": value, "qrcode_img_content": text}))
    }

    fn step_qr(&mut self, env: &Env<'_>, call: &Call, value: &str, until: Instant) -> Step {
        let host = call.base.split("://").nth(1).unwrap_or_default();
        let Some(code) = self.qr_codes.codes.get_mut(value) else {
            return Step::Answer(status_reply(Status::Expired));
        };
        let status = code.status(env, host);
        let changed = code.reported != Some(status) && !(status == Status::Wait && code.reported.is_none());
        if !changed && !status.is_final() && env.instant < until {
            let until = code.ends_at(env).map_or(until, |ends| env.instant_of(ends).min(until));
            return Step::Hold { until, bell: code.bell.listen() };
        }
        code.reported = Some(status);
        Step::Answer(match status {
            Status::Confirmed => self.confirmed_reply(value, call),
            Status::ScanedButRedirect => code.redirect_reply(),
            status => status_reply(status),
        })
    }

    /// The credentials. A binding that was replaced meanwhile has none to give.
    fn confirmed_reply(&self, value: &str, call: &Call) -> Reply {
        let wx_id = self.qr_codes.codes.get(value).and_then(|code| code.wx_id.as_ref());
        let Some(account) = wx_id.and_then(|wx_id| self.accounts.get(wx_id)) else {
            return status_reply(Status::Expired);
        };
        Reply::json(&json!({
            "ret": 0,
            "status": "confirmed",
            "bot_token": account.token,
            "ilink_bot_id": account.wx_id,
            "ilink_user_id": account.owner,
            "baseurl": call.base,
        }))
    }

    /// A phone scans the code.
    pub(super) fn scan(&mut self, env: &Env<'_>, text: &str) -> Result<()> {
        let code = self.qr_codes.by_text(text)?;
        match code.status(env, "") {
            Status::Wait => {
                code.set(Status::Scaned);
                Ok(())
            }
            Status::Scaned | Status::ScanedButRedirect => Ok(()),
            status => Err(wrong_state(status)),
        }
    }

    /// Confirms the login as `user_id`, or as a new person when absent.
    pub(super) fn confirm(&mut self, env: &Env<'_>, text: &str, user_id: Option<&str>) -> Result<Account> {
        if user_id.is_some_and(|id| !(1..=128).contains(&id.len())) {
            return Err(Error::invalid("user_id", "must be a text of 1 to 128 bytes"));
        }
        let code = self.qr_codes.by_text(text)?;
        match code.status(env, "") {
            Status::Wait | Status::Scaned | Status::ScanedButRedirect => {}
            status => return Err(wrong_state(status)),
        }
        let local_tokens = code.local_tokens.clone();
        let user_id = user_id.map_or_else(|| new_user_id(env.random), str::to_owned);
        let held = self
            .account_of_owner(&user_id)
            .filter(|account| !account.is_expired(env.now) && local_tokens.contains(&account.token));
        let (account, status) = match held {
            Some(account) => (account.public(), Status::BindedRedirect),
            None => (self.bind(env, user_id)?.public(), Status::Confirmed),
        };
        let code = self.qr_codes.by_text(text)?;
        code.wx_id = Some(account.wx_id.clone());
        code.done_at = Some(env.now);
        code.set(status);
        Ok(account)
    }

    /// Applies an action to a code.
    pub(super) fn move_qr(&mut self, env: &Env<'_>, text: &str, action: QrAction) -> Result<()> {
        let tries = env.config.verify_tries;
        let code = self.qr_codes.by_text(text)?;
        let status = code.status(env, "");
        if status.is_final() {
            return Err(wrong_state(status));
        }
        match action {
            QrAction::Expire => code.set(Status::Expired),
            QrAction::Block => code.set(Status::VerifyCodeBlocked),
            QrAction::AlreadyBound => {
                code.done_at = Some(env.now);
                code.set(Status::BindedRedirect);
            }
            QrAction::RequireCode { code: right } => {
                if right.is_empty() || right.len() > 16 || !right.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(Error::invalid("code", "must be 1 to 16 digits"));
                }
                code.verify = Some((right, tries.max(1)));
                code.set(Status::NeedVerifyCode);
            }
            QrAction::Redirect { host } => {
                code.redirect = Some(Redirect { host, reported: false });
                code.set(Status::Scaned);
            }
        }
        Ok(())
    }
}

impl QrCode {
    fn redirect_reply(&mut self) -> Reply {
        let mut answer = json!({"ret": 0, "status": Status::ScanedButRedirect.as_str()});
        if let Some(redirect) = &mut self.redirect {
            redirect.reported = true;
            if let Some(host) = &redirect.host {
                answer["redirect_host"] = json!(host);
            }
        }
        Reply::json(&answer)
    }
}

fn status_reply(status: Status) -> Reply {
    Reply::json(&json!({"ret": 0, "status": status.as_str()}))
}

fn wrong_state(status: Status) -> Error {
    Error::conflict(format!("the QR code is in state {}", status.as_str()))
}

#[cfg(test)]
mod tests;
