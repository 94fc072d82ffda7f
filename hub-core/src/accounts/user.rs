//! Users and how one becomes one.

use crate::{
    access::{Actor, Role},
    accounts::{Accounts, ClientInfo, SignedIn, password},
    config::Registration,
    error::{Error, ErrorCode, Problems, Result},
    id::UserId,
    secret::{Secret, TokenHash, TokenKind, parse_token},
    store::{Tx, accounts::Purpose},
    text,
    time::Timestamp,
};

/// A person with an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The id.
    pub id: UserId,
    /// The name to sign in with: 2 to 32 of `a-z0-9_-`, unique.
    pub username: String,
    /// The name to show.
    pub display_name: String,
    /// E-mail address; empty when none was given. Never checked by mail, never used to sign in.
    pub email: String,
    /// What they may do.
    pub role: Role,
    /// Whether they may do it.
    pub status: UserStatus,
    /// Since when.
    pub created_at: Timestamp,
}

/// Whether a user may sign in (`contract.md` §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserStatus {
    /// Yes.
    Active,
    /// No; their sessions have ended.
    Disabled,
}

impl UserStatus {
    /// The word on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }
}

/// A user as they see themselves (`contract.md` §3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Me {
    /// The account.
    pub user: User,
    /// Whether a password can be used to sign in.
    pub has_password: bool,
    /// Number of passkeys.
    pub passkeys: u32,
    /// Names of the linked external providers.
    pub oauth_accounts: Vec<String>,
}

/// What somebody gives to get an account.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// The wanted name. Capitals are taken as small letters: names are unique without regard to case.
    pub username: String,
    /// The password, 8 to 256 characters.
    pub password: Secret,
    /// The name to show, 1 to 64 characters; the username as typed when left out.
    pub display_name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
}

/// Names that look official; only an admin may have one.
const RESERVED: [&str; 10] = [
    "admin",
    "administrator",
    "hub",
    "message-hub",
    "moderator",
    "official",
    "operator",
    "root",
    "support",
    "system",
];

/// The stored form of a username; `None` when nobody can have that name.
pub(super) fn canonical_username(text: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    ((2..=32).contains(&text.len()) && text.bytes().all(allowed)).then(|| text.to_ascii_lowercase())
}

impl NewUser {
    /// Checks every field and makes a user of them; the role is the store's to give.
    ///
    /// # Errors
    /// `INVALID_PARAMS` naming every broken field.
    pub(super) fn into_user(self, id: UserId, now: Timestamp) -> Result<(User, Secret)> {
        let mut problems = Problems::default();
        let username = canonical_username(&self.username);
        problems.check(
            username.is_some(),
            "username",
            "must be 2 to 32 letters a-z, digits, underscores or hyphens",
        );
        password::check(&mut problems, &self.password, &self.username);
        if let Some(name) = &self.display_name {
            text::check_name(&mut problems, "display_name", name, 1..=64);
        }
        let email = self.email.unwrap_or_default();
        problems.check(email.is_empty() || is_email(&email), "email", "must be an e-mail address");
        problems.finish()?;
        let user = User {
            id,
            username: username.unwrap_or_default(),
            display_name: self.display_name.unwrap_or(self.username),
            email,
            role: Role::Member,
            status: UserStatus::Active,
            created_at: now,
        };
        Ok((user, self.password))
    }
}

/// Whether a text has the shape of an address. Whether mail arrives there is another question.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let visible = |c: char| !c.is_control() && !c.is_whitespace() && !"@<>()[],;:\\\"".contains(c);
    text.len() <= 254
        && (1..=64).contains(&local.len())
        && local.chars().all(visible)
        && domain
            .split('.')
            .all(|label| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-'))
}

impl Accounts<'_> {
    /// Makes an account and signs it in. While no admin exists, the new user becomes one; with
    /// `setup_token_required` only who shows the setup token does, and nobody else gets an account before.
    /// A setup token also opens a closed registration, once.
    ///
    /// # Errors
    /// `INVALID_PARAMS` naming every broken field, `CONFLICT` when the name is taken, `INVALID_TOKEN` for a
    /// setup token that is unknown, used or expired, `FORBIDDEN` when registration is closed or the setup
    /// token is missing, `RATE_LIMITED` when too many passwords wait to be hashed.
    pub async fn register(
        &self,
        new: NewUser,
        setup_token: Option<Secret>,
        client: &ClientInfo,
    ) -> Result<SignedIn> {
        let ctx = self.ctx;
        let (mut user, password) = new.into_user(ctx.ids.next(), ctx.store.now())?;
        let setup = setup_token.map(|token| setup_hash(&token)).transpose()?;
        if setup.is_none() {
            self.check_registration_open().await?;
        }
        let password_hash = ctx.passwords.hash(password).await?;
        let needs_setup = ctx.config.setup_token_required && setup.is_none();
        let session = self.new_session(user.id, client);
        let token = session.token.clone();
        let user = ctx
            .store
            .write(move |tx| {
                Box::pin(async move {
                    if let Some(hash) = &setup {
                        let used = tx.accounts().use_one_time(Purpose::Setup, hash, user.created_at).await?;
                        used.ok_or_else(bad_setup_token)?;
                    }
                    user.role = add_user(tx, &user, &password_hash, None).await?;
                    match user.role {
                        Role::Admin if needs_setup => return Err(setup_token_missing()),
                        Role::Member if RESERVED.contains(&user.username.as_str()) => {
                            return Err(Error::invalid("username", "is reserved"));
                        }
                        Role::Admin | Role::Member => {}
                    }
                    session.open(tx, Some(&password_hash)).await?;
                    Ok(user)
                })
            })
            .await?;
        Ok(SignedIn { me: Me::new(user, true), token })
    }

    /// Refuses early what the write would refuse anyway, before a hash is spent on it.
    async fn check_registration_open(&self) -> Result<()> {
        if self.ctx.config.registration != Registration::Open {
            return Err(Error::new(ErrorCode::Forbidden, "registration is closed")
                .with_hint("ask an administrator for an account"));
        }
        if self.ctx.config.setup_token_required
            && !self.ctx.store.read().await?.accounts().has_admin().await?
        {
            return Err(setup_token_missing());
        }
        Ok(())
    }

    /// The signed-in user.
    ///
    /// # Errors
    /// `FORBIDDEN` for anybody who is not a user, `UNAUTHORIZED` when the account is gone.
    pub async fn me(&self, actor: &Actor) -> Result<Me> {
        let id = actor.user()?.user_id;
        let found = self.ctx.store.read().await?.accounts().find_user(id).await?;
        let (user, password_hash) = found.ok_or_else(super::session::not_signed_in)?;
        Ok(Me::new(user, password_hash.is_some()))
    }
}

impl Me {
    pub(super) fn new(user: User, has_password: bool) -> Self {
        Self { user, has_password, passkeys: 0, oauth_accounts: Vec::new() }
    }
}

/// Adds a user within a transaction and says which role they got. Once there is an admin, no setup token is
/// worth anything.
///
/// # Errors
/// `CONFLICT` when the name is taken.
pub(super) async fn add_user(
    tx: &mut Tx,
    user: &User,
    password_hash: &Secret,
    role: Option<Role>,
) -> Result<Role> {
    let mut accounts = tx.accounts();
    accounts.lock_admins().await?;
    let role = accounts.insert_user(user, Some(password_hash), role).await?;
    let role = role.ok_or_else(|| Error::conflict(format!("the username {} is taken", user.username)))?;
    if role == Role::Admin {
        accounts.delete_one_time(Purpose::Setup, "").await?;
        // The demo was waiting for somebody who can sign in.
        tx.demo().hand_over(user.id).await?;
    }
    Ok(role)
}

fn setup_hash(token: &Secret) -> Result<TokenHash> {
    parse_token(TokenKind::Setup, token.expose().trim()).ok_or_else(bad_setup_token)
}

fn bad_setup_token() -> Error {
    Error::new(ErrorCode::InvalidToken, "the setup token is wrong, used or expired")
        .with_hint("restart the server for a new one, or run `hub-cli --local users create-admin`")
}

fn setup_token_missing() -> Error {
    Error::new(
        ErrorCode::Forbidden,
        "this hub has no administrator yet: register with the setup token that the server printed at its start",
    )
}
