//! Sign-in with an account at an external provider, and linking of such an account.
//!
//! An account is identified by the provider and its subject only, never by e-mail or name. A sign-in is a ceremony of
//! one browser, for one provider, once.

mod answers;
mod exchange;
mod http;
mod openid;

use std::time::Duration;

use oauth2::{PkceCodeChallenge, PkceCodeVerifier};
use serde::{Deserialize, Serialize};
use url::Url;

pub use crate::config::provider::{OAuthEndpoints, Provider, ProviderKind};

use self::exchange::Profile;
use crate::{
    access::Actor,
    accounts::{
        Accounts, Browser, ExternalAccount, Me, NewProfile, SignedIn,
        session::{NewSession, not_signed_in},
        user::{Entry, canonical_username},
    },
    audit::Action,
    error::{Error, ErrorCode, Problems, Result},
    id::UserId,
    model::session::ClientInfo,
    secret::Secret,
    store::{Tx, sign_in_flows::FlowPurpose},
    time::Timestamp,
};

/// Time limit of a sign-in at the provider.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Maximum number of usernames that are tried for a new account.
const NAMES: u32 = 20;

/// Start of a sign-in at a provider.
#[derive(Debug, Clone)]
pub struct ExternalStart {
    /// The provider's page, to which the browser is sent.
    pub url: Url,
}

/// Query parameters with which the provider sends the browser back.
#[derive(Debug, Clone, Default)]
pub struct ExternalReturn {
    /// State that the hub issued.
    pub state: String,
    /// Authorization code, present when the user agreed.
    pub code: Option<Secret>,
    /// Error code of the provider.
    pub error: Option<String>,
    /// Issuer (RFC 9207).
    pub iss: Option<String>,
}

/// Reason that a user returned from a provider and is not signed in.
#[derive(Debug)]
pub enum ReturnError {
    /// The ceremony itself is invalid; there is no page to report it to.
    Ceremony(Error),
    /// The user or the provider declined, or the provider failed. The word is passed to the sign-in page.
    Provider(&'static str),
    /// The hub rejects the sign-in.
    Refused(Error),
}

impl From<Error> for ReturnError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// State of a sign-in between its start and the return of the browser.
#[derive(Serialize, Deserialize)]
struct PendingSignIn {
    provider: String,
    verifier: String,
    nonce: String,
    redirect: String,
    /// User and session that link the account.
    linking: Option<(String, String)>,
}

/// Longest path to which a browser is sent after a sign-in, in bytes. It holds the authorization request of an app
/// with its scopes, state and redirect URL.
pub const MAX_RETURN_PATH: usize = 2048;

/// Whether a text is a path of this hub, to which a browser may be sent after a sign-in: it begins with one slash and
/// contains nothing that a browser reads as another host.
pub fn is_safe_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && c != '\\';
    let base = Url::parse("http://hub.invalid/").expect("it is a URL");
    text.starts_with('/')
        && !text.starts_with("//")
        && text.len() <= MAX_RETURN_PATH
        && text.chars().all(plain)
        && base.join(text).is_ok_and(|url| url.origin() == base.origin())
}

impl<'h> Accounts<'h> {
    /// The providers of this hub, in the order of the configuration.
    pub fn providers(&self) -> &'h [Provider] {
        &self.ctx.config.providers
    }

    /// Starts a sign-in at a provider, or with `actor` the linking of an account. `redirect` is the target
    /// afterwards; anything but a path of this hub counts as `/`.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown provider, `FORBIDDEN` when the session that links is not fresh,
    /// `UPSTREAM_ERROR` when the provider cannot be reached.
    pub async fn begin_external(
        &self,
        provider: &str,
        actor: Option<&Actor>,
        redirect: Option<&str>,
        browser: &Browser,
    ) -> Result<ExternalStart> {
        let provider = self.provider(provider)?;
        let linking = match actor {
            Some(actor) => {
                let user = self.fresh_user(actor).await?;
                let session = user.session_id.ok_or_else(not_signed_in)?;
                Some((user.user_id.to_string(), session.to_string()))
            }
            None => None,
        };
        let verifier = PkceCodeVerifier::new(self.random_text());
        let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
        let pending = PendingSignIn {
            provider: provider.name.clone(),
            verifier: verifier.secret().clone(),
            nonce: self.random_text(),
            redirect: redirect.filter(|path| is_safe_path(path)).unwrap_or("/").to_owned(),
            linking,
        };
        let state = self.begin_flow(FlowPurpose::External, browser, LIFETIME, &pending).await?;
        let url = self.authorize_url(provider, &state, challenge, &pending.nonce).await?;
        Ok(ExternalStart { url })
    }

    /// Finishes what [`begin_external`](Self::begin_external) started. Returns the user who is signed in now, or
    /// `None` when an account was linked, and the path to send them to.
    ///
    /// # Errors
    /// [`ReturnError`].
    pub async fn finish_external(
        &self,
        provider: &str,
        back: ExternalReturn,
        cookie: Option<&str>,
        actor: Option<&Actor>,
        client: &ClientInfo,
    ) -> Result<(Option<SignedIn>, String), ReturnError> {
        let provider = self.provider(provider)?;
        let pending: PendingSignIn =
            self.end_flow(FlowPurpose::External, &back.state, cookie).await.map_err(ReturnError::Ceremony)?;
        if pending.provider != provider.name {
            return Err(ReturnError::Ceremony(mixed_up()));
        }
        let linking = pending.linking.as_ref().map(|linking| same_session(linking, actor)).transpose();
        let linking = linking.map_err(ReturnError::Ceremony)?;
        if let Some(error) = back.error {
            tracing::info!(provider = %provider.name, %error, "the provider rejected a sign-in");
            return Err(ReturnError::Provider("declined"));
        }
        let code = back.code.ok_or(ReturnError::Provider("declined"))?;
        let verifier = PkceCodeVerifier::new(pending.verifier);
        let found = self.profile(provider, code, verifier, &pending.nonce, back.iss.as_deref()).await;
        let profile = found.map_err(|reason| {
            tracing::warn!(provider = %provider.name, %reason, "a provider's response was rejected");
            ReturnError::Provider("provider_failed")
        })?;
        let signed_in = match linking {
            Some(user) => {
                let actor = actor.ok_or_else(not_signed_in)?;
                self.link(actor, user, profile.account(provider, self.ctx.store.now())).await?;
                None
            }
            None => Some(self.enter(provider, profile, client).await?),
        };
        Ok((signed_in, pending.redirect))
    }

    async fn link(self, actor: &Actor, user: UserId, account: ExternalAccount) -> Result<()> {
        let noted =
            self.ctx.audit(actor, Action::AccountLinked).target(&account.provider, &*account.username);
        let link = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                match tx.external_accounts().find_user(&account.provider, &account.subject).await? {
                    Some(holder) if holder == user => Ok(()),
                    Some(_) => Err(Error::conflict("this account is linked to another user")),
                    None if tx.external_accounts().insert(user, &account).await? => {
                        tx.audit().add(&noted).await
                    }
                    None => {
                        Err(Error::conflict("another account of this provider is linked; unlink it first"))
                    }
                }
            })
        });
        link.await
    }

    /// Signs in the user of the account, or creates one.
    async fn enter(self, provider: &Provider, profile: Profile, client: &ClientInfo) -> Result<SignedIn> {
        let now = self.ctx.store.now();
        let known = {
            let mut read = self.ctx.store.read().await?;
            read.external_accounts().find_user(&provider.name, &profile.subject).await?
        };
        let new_id = self.ctx.ids.next();
        // Checked early; the transaction checks again.
        let entry = if known.is_none() { Some(self.check_entry(None, new_id, client).await?) } else { None };
        let sign_in = ExternalSignIn {
            names: profile.names(NAMES, new_id),
            display_name: profile.display_name(),
            account: profile.account(provider, now),
            entry,
            session: self.new_session(new_id, client).by(&provider.name),
            new_id,
            now,
        };
        let token = sign_in.session.token.clone();
        let entered = self.ctx.store.write(move |tx| Box::pin(sign_in.run(tx)));
        let user_id = entered.await?;
        let me: Me = self.find_me(user_id).await?.ok_or_else(not_signed_in)?;
        Ok(SignedIn { me, token })
    }

    fn provider(self, name: &str) -> Result<&'h Provider> {
        let found = self.providers().iter().find(|provider| provider.name == name);
        found.ok_or_else(|| Error::not_found("provider"))
    }

    /// The provider's redirect URI. It depends on the public URL alone, one per provider.
    fn callback_url(self, provider: &Provider) -> Url {
        self.ctx.config.address(&format!("/api/auth/callback/{}", provider.name))
    }

    /// Returns 256 random bits in 43 characters that need no escaping.
    fn random_text(self) -> String {
        data_encoding::BASE64URL_NOPAD.encode(&self.ctx.random.bytes::<32>())
    }
}

/// Data of a sign-in with an external account, moved into the write transaction.
struct ExternalSignIn {
    account: ExternalAccount,
    names: Vec<String>,
    display_name: Option<String>,
    /// Present if the account was not linked to a user before the transaction.
    entry: Option<Entry>,
    session: NewSession,
    new_id: UserId,
    now: Timestamp,
}

impl ExternalSignIn {
    async fn run(mut self, tx: &mut Tx) -> Result<UserId> {
        let known = tx.external_accounts().find_user(&self.account.provider, &self.account.subject).await?;
        let user_id = match known {
            Some(user_id) => user_id,
            None => self.admit(tx).await?,
        };
        self.session.belongs_to(user_id);
        self.session.open(tx, None).await.map_err(|error| match error.code() {
            ErrorCode::Unauthorized => Error::new(ErrorCode::Forbidden, "this account is disabled"),
            _ => error,
        })?;
        Ok(user_id)
    }

    /// Creates the account under the first free name. A name that is taken belongs to another user.
    async fn admit(&mut self, tx: &mut Tx) -> Result<UserId> {
        // The account was unlinked meanwhile; the next sign-in creates an account.
        let entry =
            self.entry.take().ok_or_else(|| Error::conflict("the account was unlinked; try again"))?;
        let mut free = None;
        for name in &self.names {
            if tx.accounts().find_user_by_name(name).await?.is_none() {
                free = Some(name.clone());
                break;
            }
        }
        let username = free.ok_or_else(|| Error::conflict("no free username was found; try again"))?;
        let display_name = self.display_name.take();
        let profile = NewProfile { username, display_name, email: None };
        let user = profile.into_user(Problems::default(), None, self.new_id, self.now)?;
        let user = entry.admit(tx, user, None).await?;
        if !tx.external_accounts().insert(user.id, &self.account).await? {
            return Err(Error::conflict("the account was linked at the same time; try again"));
        }
        Ok(user.id)
    }
}

impl Profile {
    fn account(&self, provider: &Provider, now: Timestamp) -> ExternalAccount {
        ExternalAccount {
            provider: provider.name.clone(),
            subject: self.subject.clone(),
            username: self.username.clone(),
            avatar_url: self.avatar_url.clone(),
            created_at: now,
        }
    }

    /// Returns usernames for a new account: the one at the provider, reduced to allowed characters, then with
    /// numbers.
    fn names(&self, count: u32, id: UserId) -> Vec<String> {
        let lower = self.username.to_ascii_lowercase();
        let allowed = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || *c == '-';
        let name: String = lower.chars().filter(allowed).take(28).collect();
        let name = canonical_username(&name).filter(|name| !super::user::is_reserved(name));
        let name = name.unwrap_or_else(|| "user".to_owned());
        let id = id.to_string().to_lowercase();
        let last = format!("user-{}", &id[id.len() - 16..]);
        let numbered = (2..count).map(|n| format!("{name}-{n}"));
        std::iter::once(name.clone()).chain(numbered).chain([last]).collect()
    }

    fn display_name(&self) -> Option<String> {
        let cleaned: String = self.name.chars().filter(|c| !c.is_control()).take(64).collect();
        let mut problems = Problems::default();
        crate::text::check_name(&mut problems, "display_name", &cleaned, 1..=64);
        problems.finish().is_ok().then_some(cleaned)
    }
}

/// Checks that the browser returned with the session that started the linking.
fn same_session((user, session): &(String, String), actor: Option<&Actor>) -> Result<UserId> {
    let now = actor.and_then(|actor| actor.user().ok()).ok_or_else(not_signed_in)?;
    let same =
        now.user_id.to_string() == *user && now.session_id.is_some_and(|id| id.to_string() == *session);
    if same { Ok(now.user_id) } else { Err(mixed_up()) }
}

fn mixed_up() -> Error {
    Error::new(ErrorCode::InvalidToken, "this sign-in was started for another purpose")
        .with_hint("begin again")
}
