//! Users and their registration.

use serde_json::json;

use crate::{
    access::{Actor, Role},
    accounts::{Accounts, SignedIn, admission::Admission},
    audit::Action,
    error::{Error, Problems, Result},
    id::UserId,
    model::{
        audit::NewEntry,
        session::ClientInfo,
        user::{User, UserStatus},
    },
    password,
    secret::Secret,
    store::{Tx, accounts::Purpose},
    text,
    time::Timestamp,
};

/// The signed-in user.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(example = {
    "created_at": "2026-11-21T09:30:00.000Z",
    "display_name": "Alice",
    "email": "",
    "has_password": true,
    "id": "usr_01KAJJS8P00000000000000001",
    "oauth_accounts": [],
    "passkeys": 0,
    "role": "admin",
    "status": "active",
    "username": "alice",
})]
pub struct Me {
    /// The account.
    #[api(flatten)]
    pub user: User,
    /// Whether the user can sign in with a password.
    pub has_password: bool,
    /// Number of passkeys.
    pub passkeys: u32,
    /// Names of linked external providers.
    pub oauth_accounts: Vec<String>,
    /// Until when the session of the request may change the ways to sign in (passkeys and linked accounts) and let
    /// other devices in. Absent with an API key, and in the response to a sign-in.
    #[api(and(created_at: Timestamp = |row: &Self| row.user.created_at, "When the account was created."))]
    pub fresh_until: Option<Timestamp>,
}

/// A request for an account.
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

/// A request for an account without a password.
#[derive(Debug, Clone, Default)]
pub struct NewProfile {
    /// The wanted name. Capitals are taken as small letters: names are unique without regard to case.
    pub username: String,
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

/// Whether a name looks official.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The stored form of a username; `None` if the name is invalid.
pub(super) fn canonical_username(text: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    ((2..=32).contains(&text.len()) && text.bytes().all(allowed)).then(|| text.to_ascii_lowercase())
}

impl NewUser {
    /// Checks every field, as creating the account does.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every invalid field.
    pub fn validate(&self) -> Result<()> {
        let Self { username, password, display_name, email } = self.clone();
        NewProfile { username, display_name, email }
            .validate(Problems::default(), Some(&password))
            .map(|_| ())
    }

    /// Checks every field and makes a user of them; the role is the store's to give.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every invalid field.
    pub(super) fn into_user(self, id: UserId, now: Timestamp) -> Result<(User, Secret)> {
        let Self { username, password, display_name, email } = self;
        let profile = NewProfile { username, display_name, email };
        let user = profile.into_user(Problems::default(), Some(&password), id, now)?;
        Ok((user, password))
    }
}

impl NewProfile {
    /// Checks every field and makes a user of them; the role is the store's to give. `problems` are those of
    /// other fields; a password is checked with them.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every invalid field.
    pub(super) fn into_user(
        self,
        problems: Problems,
        password: Option<&Secret>,
        id: UserId,
        now: Timestamp,
    ) -> Result<User> {
        let username = self.validate(problems, password)?;
        Ok(User {
            id,
            username,
            display_name: self.display_name.unwrap_or(self.username),
            email: self.email.unwrap_or_default(),
            role: Role::Member,
            status: UserStatus::Active,
            created_at: now,
        })
    }

    /// Returns the stored form of the username.
    fn validate(&self, mut problems: Problems, password: Option<&Secret>) -> Result<String> {
        let username = canonical_username(&self.username);
        problems.check(
            username.is_some(),
            "username",
            "must be 2 to 32 letters a-z, digits, underscores or hyphens",
        );
        if let Some(password) = password {
            password::check(&mut problems, password, &self.username);
        }
        if let Some(name) = &self.display_name {
            text::check_name(&mut problems, "display_name", name, 1..=64);
        }
        check_email(&mut problems, self.email.as_deref().unwrap_or_default());
        problems.finish()?;
        Ok(username.unwrap_or_default())
    }
}

/// Reports an invalid e-mail address. The empty text is allowed and means none.
pub(super) fn check_email(problems: &mut Problems, email: &str) {
    problems.check(email.is_empty() || is_email(email), "email", "must be an e-mail address");
}

/// Whether a text has the form of an address. Delivery is not checked.
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
    /// Makes an account and signs it in. While no admin exists, the new user becomes one; with `setup_token_required`
    /// only with the setup token, and there are no other accounts before. `ticket` is the setup token, which also
    /// opens a closed registration, once, or an invitation, which opens one that is `invite`.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every invalid field, `CONFLICT` when the name is taken, `INVALID_TOKEN` for a ticket
    /// that is unknown, used or expired, `FORBIDDEN` when registration is closed or the ticket is missing,
    /// `RATE_LIMITED` when too many passwords wait to be hashed.
    pub async fn register(
        &self,
        new: NewUser,
        ticket: Option<Secret>,
        client: &ClientInfo,
    ) -> Result<SignedIn> {
        let ctx = self.ctx;
        let (user, password) = new.into_user(ctx.ids.next(), ctx.store.now())?;
        let entry = self.check_entry(ticket, user.id, client).await?;
        let password_hash = ctx.passwords.hash(password).await?;
        let session = self.new_session(user.id, client);
        let token = session.token.clone();
        let admit = ctx.store.write(move |tx| {
            Box::pin(async move {
                let user = entry.admit(tx, user, Some(&password_hash)).await?;
                session.open(tx, Some(&password_hash)).await?;
                Ok(user)
            })
        });
        Ok(self.signed_in(Me::new(admit.await?, true), token))
    }

    /// Refuses early what [`Entry::admit`] would refuse anyway.
    pub(super) async fn check_entry(
        self,
        ticket: Option<Secret>,
        user_id: UserId,
        client: &ClientInfo,
    ) -> Result<Entry> {
        let noted = self.ctx.audit_sign_in(Some(user_id), Action::UserRegistered, client);
        Ok(Entry {
            admission: self.admission(ticket).await?,
            setup_token_required: self.ctx.config.setup_token_required,
            noted: noted.target(user_id, ""),
        })
    }

    /// The signed-in user.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user, `UNAUTHORIZED` when the account is gone.
    pub async fn me(&self, actor: &Actor) -> Result<Me> {
        let user = actor.user()?;
        let me = self.find_me(user.user_id).await?.ok_or_else(super::session::not_signed_in)?;
        Ok(Me { fresh_until: self.fresh_until(user).await?, ..me })
    }

    /// A user as they see themselves.
    pub(super) async fn find_me(self, id: UserId) -> Result<Option<Me>> {
        let mut read = self.ctx.store.read().await?;
        let Some((user, password_hash)) = read.accounts().find_user(id).await? else { return Ok(None) };
        let accounts = read.external_accounts().list(id).await?;
        Ok(Some(Me {
            passkeys: read.passkeys().count(id).await?,
            oauth_accounts: accounts.into_iter().map(|account| account.provider).collect(),
            ..Me::new(user, password_hash.is_some())
        }))
    }
}

impl Me {
    pub(super) fn new(user: User, has_password: bool) -> Self {
        Self { user, has_password, passkeys: 0, oauth_accounts: Vec::new(), fresh_until: None }
    }
}

/// The permission to make one account.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    admission: Admission,
    setup_token_required: bool,
    noted: NewEntry,
}

impl Entry {
    /// Makes the account within a transaction.
    ///
    /// # Errors
    /// As [`Accounts::register`].
    pub(super) async fn admit(
        self,
        tx: &mut Tx,
        mut user: User,
        password_hash: Option<&Secret>,
    ) -> Result<User> {
        self.admission.admit(tx, user.created_at).await?;
        user.role = add_user(tx, &user, password_hash, None).await?;
        self.admission.allows(user.role, self.setup_token_required)?;
        if user.role == Role::Member && is_reserved(&user.username) {
            return Err(Error::invalid("username", "is reserved"));
        }
        tx.audit().add(&self.noted.detail(json!({ "role": user.role.as_str() }))).await?;
        Ok(user)
    }
}

/// Adds a user within a transaction and returns the role. With the first admin, setup tokens are revoked.
///
/// # Errors
/// `CONFLICT` when the name is taken.
pub(super) async fn add_user(
    tx: &mut Tx,
    user: &User,
    password_hash: Option<&Secret>,
    role: Option<Role>,
) -> Result<Role> {
    let mut accounts = tx.accounts();
    accounts.lock_admins().await?;
    let role = accounts.insert_user(user, password_hash, role).await?;
    let role = role.ok_or_else(|| Error::conflict(format!("the username {} is taken", user.username)))?;
    if role == Role::Admin {
        accounts.delete_one_time(Purpose::Setup, "").await?;
        // Until now the demo had no owner who can sign in.
        tx.demo().hand_over(user.id).await?;
    }
    Ok(role)
}
