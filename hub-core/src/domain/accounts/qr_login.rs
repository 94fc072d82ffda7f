//! Signing in by QR code: a device without a session shows a code, a signed-in user opens and confirms it, and the
//! device collects a session.
//!
//! The id in the code is public and worth nothing: only the holder of the poll secret can read the status and collect
//! the outcome, and only a person who sees the device knows the code that confirmation requires.

use std::time::Duration;

use serde_json::json;
use subtle::ConstantTimeEq;

use crate::{
    access::Actor,
    accounts::{Accounts, CreatedApiKey, Me, NewApiKey, SignedIn, session::not_signed_in},
    audit::Action,
    error::{Error, ErrorCode, Result},
    id::UserId,
    model::session::{ClientInfo, QrStatus},
    qr::qr_svg,
    random::Random,
    secret::{Secret, ShownOnce, TokenHash, TokenKind, new_token, parse_token},
    store::{
        Tx,
        qr_logins::{NewQrLogin, QrLoginRow},
    },
    time::Timestamp,
};

/// Validity of a code.
const LIFETIME: Duration = Duration::from_secs(2 * 60);
/// Maximum number of codes that no user has opened; a further one displaces the oldest.
const MAX_LOGINS: u32 = 10_000;
/// Interval at which the store is polled for a change of status.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Letters and digits that are not mistaken for one another, as RFC 8628 §6.1 suggests.
const CODE_LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// A new QR login.
#[derive(Debug, Clone, hub_macros::Api)]
#[api(example = {
    "expires_at": "2026-11-21T09:30:00.000Z",
    "poll_secret": "hubp_…",
    "qr_id": "hubq_…",
    "qr_svg": "<svg …>",
    "qr_text": "https://hub.example/login?qr=hubq_…",
    "user_code": "BCDF-GHJK",
})]
pub struct QrLogin {
    /// Public id, contained in the code.
    pub qr_id: String,
    /// Content of the code: a link to the confirmation page of the hub.
    pub qr_text: String,
    /// The code as an SVG document.
    pub qr_svg: String,
    /// Code to display next to the QR code; the user who confirms has to enter it.
    pub user_code: String,
    /// Secret with which the requesting device reads and collects the outcome.
    pub poll_secret: ShownOnce,
    /// When the code expires: after two minutes.
    pub expires_at: Timestamp,
}

/// Status of a QR login, for the requesting device.
#[derive(Debug, Clone, hub_macros::Api)]
#[api(name = "QrStatus", example = { "status": "waiting" })]
pub struct QrPoll {
    /// The status.
    pub status: QrStatus,
    /// The user who confirmed it.
    pub user_name: Option<String>,
    /// Ticket for the session, once confirmed.
    pub exchange: Option<ShownOnce>,
}

/// The requesting device.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(example = {
    "expires_at": "2026-11-21T09:30:00.000Z",
    "ip": "192.0.2.7",
    "requested_at": "2026-11-21T09:30:00.000Z",
    "user_agent": "hub-cli/0.1.0",
})]
pub struct QrAsker {
    /// Client address; empty if unknown.
    pub ip: String,
    /// User agent; empty if unknown.
    pub user_agent: String,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl Accounts<'_> {
    /// Begins a login by QR code.
    ///
    /// # Errors
    /// `UNAVAILABLE` when it cannot be stored.
    pub async fn begin_qr_login(&self, client: &ClientInfo) -> Result<QrLogin> {
        let random = &self.ctx.random;
        let qr_id = new_token(TokenKind::Qr, random).expose().to_owned();
        let poll_secret = new_token(TokenKind::QrPoll, random);
        let user_code = new_code(random);
        let mut url = self.ctx.config.address("/login");
        url.query_pairs_mut().append_pair("qr", &qr_id);
        let (qr_text, now) = (url.to_string(), self.ctx.store.now());
        let expires_at = now + LIFETIME;
        let (id, code, client) = (qr_id.clone(), user_code.clone(), client.cleaned());
        let poll = TokenHash::of(poll_secret.expose());
        let noted = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let login = NewQrLogin {
                    id: &id,
                    poll: &poll,
                    user_code: &code,
                    client: &client,
                    created_at: now,
                    expires_at,
                };
                tx.qr_logins().trim(now, MAX_LOGINS - 1).await?;
                tx.qr_logins().insert(&login).await
            })
        });
        noted.await?;
        Ok(QrLogin {
            qr_svg: qr_svg(&qr_text)?,
            qr_id,
            qr_text,
            user_code,
            poll_secret: poll_secret.into(),
            expires_at,
        })
    }

    /// Status of a login, for the holder of its poll secret; `expired` once its time is up.
    ///
    /// # Errors
    /// `INVALID_TOKEN` when the secret is not that of the login, or when neither was ever handed out.
    pub async fn poll_qr_login(&self, qr_id: &str, poll_secret: &Secret) -> Result<QrPoll> {
        let poll = parse_token(TokenKind::QrPoll, poll_secret.expose()).ok_or_else(unknown)?;
        // Expired rows are found until retention deletes them.
        let row = self.ctx.store.read().await?.qr_logins().find(qr_id, Timestamp::from_millis(0)).await?;
        let row = row.filter(|row| row.is_polled_with(&poll)).ok_or_else(unknown)?;
        if row.expires_at <= self.ctx.store.now() {
            return Ok(QrPoll { status: QrStatus::Expired, user_name: None, exchange: None });
        }
        let place = place(qr_id);
        let exchange = row.exchange.map(|sealed| self.ctx.sealer.open(&place, &sealed)).transpose()?;
        let user_name = row.user_name.filter(|_| row.status == QrStatus::Confirmed);
        Ok(QrPoll { status: row.status, user_name, exchange: exchange.map(Into::into) })
    }

    /// As [`Accounts::poll_qr_login`], but waits until the status differs from `last`.
    ///
    /// # Errors
    /// As [`Accounts::poll_qr_login`].
    pub async fn next_qr_status(&self, qr_id: &str, poll_secret: &Secret, last: QrStatus) -> Result<QrPoll> {
        loop {
            let poll = self.poll_qr_login(qr_id, poll_secret).await?;
            if poll.status != last {
                return Ok(poll);
            }
            self.ctx.clock.sleep(POLL_INTERVAL).await;
        }
    }

    /// Opens a login as a signed-in user. Returns the requesting device and the time of the request. The device is
    /// notified that the code was opened.
    ///
    /// # Errors
    /// `INVALID_TOKEN` when the login is unknown, expired or over, `FORBIDDEN` unless the caller is a user whose
    /// session was opened within the last 15 minutes.
    pub async fn open_qr_login(&self, actor: &Actor, qr_id: &str) -> Result<QrAsker> {
        let user = self.fresh_user(actor).await?.user_id;
        let (id, now) = (qr_id.to_owned(), self.ctx.store.now());
        let opened = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                tx.qr_logins().scan(&id, user, now).await?;
                open_for(tx, &id, user, now).await
            })
        });
        let row = opened.await?;
        Ok(QrAsker {
            ip: row.ip,
            user_agent: row.user_agent,
            requested_at: row.created_at,
            expires_at: row.expires_at,
        })
    }

    /// Approves or rejects a login as a signed-in user. A wrong code cancels it, so there is no second guess.
    ///
    /// # Errors
    /// `INVALID_TOKEN` when the login is unknown, expired, over, or opened by another user, or when the code is
    /// wrong; `FORBIDDEN` for an API key, and to approve unless the caller's session was opened within the last 15
    /// minutes.
    pub async fn confirm_qr_login(
        &self,
        actor: &Actor,
        qr_id: &str,
        user_code: &str,
        approve: bool,
    ) -> Result<QrStatus> {
        let user = if approve { self.fresh_user(actor).await? } else { *actor.in_person()? };
        let user_id = user.user_id;
        let noted = self.ctx.audit(actor, Action::QrLoginDecided);
        let exchange = new_token(TokenKind::QrExchange, &self.ctx.random);
        let exchange = self.ctx.sealer.seal(&place(qr_id), &exchange);
        let (id, code, now) = (qr_id.to_owned(), plain_code(user_code), self.ctx.store.now());
        let decide = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let row = open_for(tx, &id, user_id, now).await?;
                let right = bool::from(plain_code(&row.user_code).as_bytes().ct_eq(code.as_bytes()));
                if !approve || !right {
                    tx.qr_logins().cancel(&id, now).await?;
                    let outcome = if approve { "wrong_code" } else { "refused" };
                    tx.audit().add(&noted.detail(json!({ "outcome": outcome, "ip": row.ip }))).await?;
                    // An error would roll the cancellation back.
                    return Ok(if approve { None } else { Some(QrStatus::Cancelled) });
                }
                if !tx.qr_logins().confirm(&id, user_id, &exchange, now).await? {
                    return Err(unknown());
                }
                tx.audit().add(&noted.detail(json!({ "outcome": "confirmed", "ip": row.ip }))).await?;
                Ok(Some(QrStatus::Confirmed))
            })
        });
        let Some(status) = decide.await? else {
            tracing::warn!(user = %user_id, "a QR login was ended by a wrong code");
            return Err(Error::new(ErrorCode::InvalidToken, "the code is wrong; this login has ended")
                .with_hint("show a new QR code and begin again"));
        };
        Ok(status)
    }

    /// Collects the session of a confirmed login, once.
    ///
    /// # Errors
    /// `INVALID_TOKEN` when the login is not confirmed, unknown, used or expired, or the secrets belong to another
    /// login.
    pub async fn exchange_qr_login(
        &self,
        qr_id: &str,
        poll_secret: &Secret,
        exchange: &Secret,
        client: &ClientInfo,
    ) -> Result<SignedIn> {
        let user_id = self.take_qr_login(qr_id, poll_secret, exchange).await?;
        let session = self.new_session(user_id, client).by("qr");
        let token = session.token.clone();
        let open = self
            .ctx
            .store
            .write(move |tx| Box::pin(async move { session.open(tx, None).await.map_err(|_| unknown()) }));
        open.await?;
        let me: Me = self.find_me(user_id).await?.ok_or_else(not_signed_in)?;
        Ok(self.signed_in(me, token))
    }

    /// Collects an API key of the user who confirmed the login, once: for programs, which keep no cookies.
    ///
    /// # Errors
    /// As [`exchange_qr_login`](Self::exchange_qr_login), and `CONFLICT` when the user has too many keys.
    pub async fn exchange_qr_login_for_key(
        &self,
        qr_id: &str,
        poll_secret: &Secret,
        exchange: &Secret,
        client: &ClientInfo,
    ) -> Result<CreatedApiKey> {
        let program: String = client.cleaned().user_agent.chars().take(40).collect();
        let name = format!("QR login {program}").trim_end().to_owned();
        let created = self.fresh_api_key(NewApiKey { name, expires_in_days: None })?;
        let user_id = self.take_qr_login(qr_id, poll_secret, exchange).await?;
        let noted = self.ctx.audit_sign_in(Some(user_id), Action::KeyCreated, client);
        let noted = noted.target(created.key.id, &*created.key.name).detail(json!({ "method": "qr" }));
        let create = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                created.open(tx, user_id, &noted).await?;
                Ok(created)
            })
        });
        create.await
    }

    /// Checks both secrets and ends the login. Returns the user who confirmed it.
    pub(super) async fn take_qr_login(
        self,
        qr_id: &str,
        poll_secret: &Secret,
        exchange: &Secret,
    ) -> Result<UserId> {
        let poll = self.poll_qr_login(qr_id, poll_secret).await?;
        let right = poll
            .exchange
            .is_some_and(|known| known.expose().as_bytes().ct_eq(exchange.expose().as_bytes()).into());
        if !right {
            return Err(unknown());
        }
        let (id, now) = (qr_id.to_owned(), self.ctx.store.now());
        let take =
            self.ctx.store.write(move |tx| Box::pin(async move { tx.qr_logins().take(&id, now).await }));
        take.await?.ok_or_else(unknown)
    }
}

impl QrLoginRow {
    fn is_polled_with(&self, poll: &TokenHash) -> bool {
        self.poll_hash.as_str().as_bytes().ct_eq(poll.as_str().as_bytes()).into()
    }
}

/// Returns the login if this user may decide about it.
async fn open_for(tx: &mut Tx, id: &str, user: UserId, now: Timestamp) -> Result<QrLoginRow> {
    let row = tx.qr_logins().find(id, now).await?.ok_or_else(unknown)?;
    let open = match row.status {
        QrStatus::Waiting => true,
        QrStatus::Scanned => row.user_id == Some(user),
        QrStatus::Confirmed | QrStatus::Expired | QrStatus::Cancelled => false,
    };
    if open { Ok(row) } else { Err(unknown()) }
}

/// Generates eight letters in two groups: 34 bits, with a single attempt.
fn new_code(random: &Random) -> String {
    let count = u64::try_from(CODE_LETTERS.len()).expect("20 fits");
    let letter = || char::from(CODE_LETTERS[usize::try_from(random.below(count)).expect("below 20")]);
    let group = || (0..4).map(|_| letter()).collect::<String>();
    format!("{}-{}", group(), group())
}

/// Normalises a code as people type it: ignores case, hyphens and spaces.
fn plain_code(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).take(16).map(|c| c.to_ascii_uppercase()).collect()
}

fn place(qr_id: &str) -> String {
    format!("qr_logins.exchange:{qr_id}")
}

fn unknown() -> Error {
    Error::new(ErrorCode::InvalidToken, "this QR login is unknown, used, expired or over")
        .with_hint("show a new QR code and begin again")
}

#[cfg(test)]
#[path = "qr_login_tests.rs"]
mod tests;
