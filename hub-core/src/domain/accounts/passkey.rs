//! Passkeys (WebAuthn Level 3): registration and sign-in.

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use webauthn_rs::prelude::{
    CreationChallengeResponse, DiscoverableAuthentication, Passkey as Credential, PasskeyRegistration,
    PublicKeyCredential, RegisterPublicKeyCredential, Uuid, Webauthn, WebauthnBuilder, WebauthnError,
};

use crate::{
    access::Actor,
    accounts::{
        Accounts, Browser, NewProfile, SignedIn,
        session::not_signed_in,
        user::{Entry, canonical_username},
    },
    audit::Action,
    error::{Advice, Error, ErrorCode, Problems, Result, Setting},
    id::UserId,
    model::session::ClientInfo,
    secret::{Secret, ShownOnce},
    store::{passkeys::PasskeyRow, sign_in_flows::FlowPurpose},
    text,
};

/// Time limit of a ceremony.
const LIFETIME: Duration = Duration::from_secs(5 * 60);
/// Index of the flags in the data of an authenticator (WebAuthn, section 6.1), and the bit of the backup eligibility.
const FLAGS_AT: usize = 32;
const BACKUP_ELIGIBLE: u8 = 0x08;
/// Maximum number of passkeys of one user.
const MAX_PASSKEYS: u32 = 50;

/// Options for `navigator.credentials`.
#[derive(Debug, Clone, hub_macros::Api)]
#[api(name = "PasskeyCeremony", example = {
    "flow_id": "hubf_…",
    "publicKey": {"allowCredentials": [], "challenge": "5u0pHGwsNCx3VyhVbiCkCmyTXsw5NmqaZhAlDIlHN2M", "rpId": "hub.example", "userVerification": "required"},
})]
pub struct Ceremony {
    /// Id of the ceremony. It is sent back once, within five minutes and from the same browser.
    pub flow_id: ShownOnce,
    /// The options: `PublicKeyCredentialCreationOptionsJSON` or `PublicKeyCredentialRequestOptionsJSON`.
    #[api(with(crate::openapi::Any, crate::openapi::one_any))]
    #[api(name = "publicKey")]
    pub public_key: Value,
}

/// A request for a passkey.
#[derive(Debug, Clone, Default)]
pub struct NewPasskey {
    /// The account to create with it. Absent for a signed-in user, who adds the passkey to their own account.
    pub profile: Option<NewProfile>,
    /// The setup token or an invitation, as in [`Accounts::register`].
    pub ticket: Option<Secret>,
    /// Display name, up to 64 characters.
    pub name: Option<String>,
}

/// State of a registration between its start and its end.
#[derive(Serialize, Deserialize)]
struct PendingRegistration {
    holder: Holder,
    name: String,
    challenge: PasskeyRegistration,
}

#[derive(Serialize, Deserialize)]
enum Holder {
    New { id: String, username: String, display_name: String, email: String, ticket: Option<String> },
    Existing { id: String },
}

/// State of a sign-in between its start and its end.
#[derive(Serialize, Deserialize)]
struct SigningIn {
    /// The user named at the start; absent when the browser selects the user.
    named: Option<Named>,
    challenge: DiscoverableAuthentication,
}

#[derive(Serialize, Deserialize)]
enum Named {
    User(String),
    /// An unknown name; the ceremony looks like any other and fails at its end.
    Nobody,
}

impl Accounts<'_> {
    /// Starts the registration of a passkey: for a new account, which is created when it finishes, or for the
    /// signed-in caller.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every invalid field, `CONFLICT` when the name is taken or the user has too many
    /// passkeys, `FORBIDDEN` when registration is closed or the session is not fresh, `UNAVAILABLE` when the hub's
    /// address allows no passkeys.
    pub async fn begin_passkey_registration(
        &self,
        actor: Option<&Actor>,
        new: NewPasskey,
        browser: &Browser,
    ) -> Result<Ceremony> {
        let webauthn = self.webauthn()?;
        let mut problems = Problems::default();
        if let Some(name) = &new.name {
            text::check_name(&mut problems, "name", name, 1..=64);
        }
        let (holder, known, user) = match (actor, new.profile) {
            (Some(actor), None) => {
                problems.finish()?;
                let id = self.fresh_user(actor).await?.user_id;
                let mut read = self.ctx.store.read().await?;
                let user = read.accounts().find_user(id).await?.ok_or_else(not_signed_in)?.0;
                let known = read.passkeys().credential_ids(id).await?;
                if known.len() >= MAX_PASSKEYS as usize {
                    return Err(too_many());
                }
                (Holder::Existing { id: id.to_string() }, known, user)
            }
            (Some(_), Some(_)) => {
                return Err(Error::invalid("username", "must be left out: you are signed in")
                    .with_hint("sign out to make another account"));
            }
            (None, None) => return Err(Error::invalid("username", "must be given for a new account")),
            (None, Some(profile)) => {
                let user = profile.into_user(problems, None, self.ctx.ids.next(), self.ctx.store.now())?;
                self.check_entry(new.ticket.clone(), user.id, &ClientInfo::default()).await?;
                let mut read = self.ctx.store.read().await?;
                if read.accounts().find_user_by_name(&user.username).await?.is_some() {
                    return Err(Error::conflict(format!("the username {} is taken", user.username)));
                }
                let holder = Holder::New {
                    id: user.id.to_string(),
                    username: user.username.clone(),
                    display_name: user.display_name.clone(),
                    email: user.email.clone(),
                    ticket: new.ticket.map(|ticket| ticket.expose().to_owned()),
                };
                (holder, Vec::new(), user)
            }
        };
        let known = known.iter().filter_map(|id| BASE64URL_NOPAD.decode(id.as_bytes()).ok()).collect();
        let (options, challenge) = webauthn
            .start_passkey_registration(
                Uuid::from_u128(user.id.as_u128()),
                &user.username,
                &user.display_name,
                Some(known),
            )
            .map_err(Error::internal)?;
        let name = new.name.unwrap_or_else(|| "Passkey".to_owned());
        let pending = PendingRegistration { holder, name, challenge };
        let flow_id = self.begin_flow(FlowPurpose::PasskeyRegistration, browser, LIFETIME, &pending).await?;
        Ok(Ceremony { flow_id: flow_id.into(), public_key: creation_options(&options)? })
    }

    /// Finishes the registration of a passkey with the response of the browser. A new account is created and signed
    /// in; a passkey of a signed-in user is added without a new session.
    ///
    /// # Errors
    /// `INVALID_TOKEN` when the ceremony is unknown, used, expired, another browser's, or the answer does not
    /// belong to it; `INVALID_PARAMS` when it cannot be read; `CONFLICT` when the name was taken meanwhile or
    /// the passkey is in use; `UNAUTHORIZED` when the user who began has signed out.
    pub async fn finish_passkey_registration(
        &self,
        actor: Option<&Actor>,
        flow_id: &str,
        cookie: Option<&str>,
        credential: Value,
        client: &ClientInfo,
    ) -> Result<(Option<SignedIn>, crate::accounts::Me)> {
        let webauthn = self.webauthn()?;
        let answer: RegisterPublicKeyCredential = read_credential(credential)?;
        let pending: PendingRegistration =
            self.end_flow(FlowPurpose::PasskeyRegistration, flow_id, cookie).await?;
        let credential = webauthn
            .finish_passkey_registration(&answer, &pending.challenge)
            .map_err(|error| refused(&error))?;
        let now = self.ctx.store.now();
        let row = |user_id| -> Result<PasskeyRow> {
            Ok(PasskeyRow {
                id: self.ctx.ids.next(),
                user_id,
                credential_id: BASE64URL_NOPAD.encode(credential.cred_id()),
                credential: serde_json::to_string(&credential).map_err(Error::internal)?,
                name: pending.name.clone(),
                created_at: now,
            })
        };
        match pending.holder {
            Holder::Existing { id } => {
                let id: UserId = id.parse()?;
                if actor.and_then(|actor| actor.user().ok()).map(|user| user.user_id) != Some(id) {
                    return Err(not_signed_in());
                }
                let row = row(id)?;
                let actor = actor.ok_or_else(not_signed_in)?;
                let noted = self.ctx.audit(actor, Action::PasskeyAdded).target(row.id, &*row.name);
                let add = self.ctx.store.write(move |tx| {
                    Box::pin(async move {
                        tx.accounts().lock_user(id).await?;
                        if tx.passkeys().count(id).await? >= MAX_PASSKEYS {
                            return Err(too_many());
                        }
                        if !tx.passkeys().insert(&row).await? {
                            return Err(in_use());
                        }
                        tx.audit().add(&noted).await
                    })
                });
                add.await?;
                Ok((None, self.find_me(id).await?.ok_or_else(not_signed_in)?))
            }
            Holder::New { id, username, display_name, email, ticket } => {
                let (display_name, email) = (Some(display_name), Some(email));
                let profile = NewProfile { username, display_name, email };
                let user = profile.into_user(Problems::default(), None, id.parse()?, now)?;
                let ticket = ticket.map(Secret::from);
                let entry: Entry = self.check_entry(ticket, user.id, client).await?;
                let (row, session) = (row(user.id)?, self.new_session(user.id, client).by("passkey"));
                let (token, id) = (session.token.clone(), user.id);
                let admit = self.ctx.store.write(move |tx| {
                    Box::pin(async move {
                        entry.admit(tx, user, None).await?;
                        if !tx.passkeys().insert(&row).await? {
                            return Err(in_use());
                        }
                        session.open(tx, None).await
                    })
                });
                admit.await?;
                let me = self.find_me(id).await?.ok_or_else(not_signed_in)?;
                Ok((Some(self.signed_in(me.clone(), token)), me))
            }
        }
    }

    /// Starts a sign-in with a passkey: of the named user, or of any user whose passkey the browser has. An unknown
    /// name, or one whose user has no passkey, gets options of the same shape, the same ones every time.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the hub's address allows no passkeys.
    pub async fn begin_passkey_login(&self, username: Option<&str>, browser: &Browser) -> Result<Ceremony> {
        let webauthn = self.webauthn()?;
        let (options, challenge) = webauthn.start_discoverable_authentication().map_err(Error::internal)?;
        let mut public_key = serde_json::to_value(&options.public_key).map_err(Error::internal)?;
        let mut named = None;
        if let Some(username) = username {
            let (user, ids) = self.credentials_of(username).await?;
            let allowed = ids.iter().map(|id| serde_json::json!({ "type": "public-key", "id": id }));
            public_key["allowCredentials"] = allowed.collect();
            named = Some(user.map_or(Named::Nobody, |id| Named::User(id.to_string())));
        }
        let state = SigningIn { named, challenge };
        let flow_id = self.begin_flow(FlowPurpose::PasskeyLogin, browser, LIFETIME, &state).await?;
        Ok(Ceremony { flow_id: flow_id.into(), public_key })
    }

    /// Returns the credential ids of a name. A name without credentials gets a derived id, the same every time.
    async fn credentials_of(self, username: &str) -> Result<(Option<UserId>, Vec<String>)> {
        let mut read = self.ctx.store.read().await?;
        let name = canonical_username(username);
        let user = match &name {
            Some(name) => read.accounts().find_user_by_name(name).await?.map(|(user, _)| user.id),
            None => None,
        };
        // Run the query in any case, so that both ways take the same time.
        let ids = read.passkeys().credential_ids(user.unwrap_or(UserId::from_u128(0))).await?;
        let text = name.unwrap_or_else(|| username.to_owned());
        let made_up = BASE64URL_NOPAD.encode(&self.ctx.sealer.derive("passkey", &text));
        Ok(if ids.is_empty() { (None, vec![made_up]) } else { (user, ids) })
    }

    /// Finishes a sign-in with the signature of the browser's passkey.
    ///
    /// # Errors
    /// `INVALID_TOKEN` when the ceremony is unknown, used, expired or another browser's, when the passkey is
    /// unknown, another user's or disabled, when its counter went back, or when the answer does not belong to
    /// the ceremony: always the same words. `INVALID_TOKEN` with the reason when a synchronised passkey is signed with
    /// by one that is not. `INVALID_PARAMS` when it cannot be read.
    pub async fn finish_passkey_login(
        &self,
        flow_id: &str,
        cookie: Option<&str>,
        credential: Value,
        client: &ClientInfo,
    ) -> Result<SignedIn> {
        let webauthn = self.webauthn()?;
        let answer: PublicKeyCredential = read_credential(credential)?;
        let state: SigningIn = self.end_flow(FlowPurpose::PasskeyLogin, flow_id, cookie).await?;
        let credential_id = BASE64URL_NOPAD.encode(&answer.raw_id);
        let found = self.ctx.store.read().await?.passkeys().find(&credential_id).await?;
        let (id, user_id, stored) = found.ok_or_else(wrong_passkey)?;
        check_holder(&state, &answer, user_id)?;
        let (mut credential, was_synchronised) = with_eligibility(&stored, &answer)?;
        let result = webauthn
            .finish_discoverable_authentication_v2(&answer, state.challenge, &credential)
            .map_err(|error| {
                if matches!(error, WebauthnError::CredentialPossibleCompromise) {
                    tracing::warn!(passkey = %id, user = %user_id, "the counter of a passkey went back");
                }
                self.note_failed_login(user_id, "passkey", client);
                refused(&error)
            })?;
        // The signature is valid, so the reason is for the owner of the passkey.
        if was_synchronised && !result.backup_eligible() {
            tracing::warn!(passkey = %id, user = %user_id, "passkey refused; it could be synchronised and no longer can");
            self.note_failed_login(user_id, "passkey", client);
            return Err(changed_passkey());
        }
        credential.update_credential(&result);
        let fresh = serde_json::to_string(&credential).map_err(Error::internal)?;
        let (now, session) = (self.ctx.store.now(), self.new_session(user_id, client).by("passkey"));
        let token = session.token.clone();
        let open = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                if !tx.passkeys().note_use(id, &stored, &fresh, now).await? {
                    return Err(wrong_passkey());
                }
                session.open(tx, None).await.map_err(|error| match error.code() {
                    ErrorCode::Unauthorized => wrong_passkey(),
                    _ => error,
                })
            })
        });
        open.await?;
        let me = self.find_me(user_id).await?.ok_or_else(wrong_passkey)?;
        Ok(self.signed_in(me, token))
    }

    /// The relying party of the passkeys. It depends on the public URL alone, never on a request.
    fn webauthn(self) -> Result<Webauthn> {
        let url = &self.ctx.config.public_url;
        let unfit = |reason: &str| {
            let message = format!("passkeys do not work here: the hub's public URL {url} {reason}");
            Error::new(ErrorCode::Unavailable, message)
                .with_hint("set the public URL to an https URL with a host name")
                .with_advice([Advice::Set(Setting::PublicUrl, None)])
        };
        let host = url.domain().ok_or_else(|| unfit("is an IP address; browsers require a host name"))?;
        if url.scheme() != "https" && host != "localhost" {
            return Err(unfit("is plain http; browsers require https"));
        }
        // Browsers report an origin, which has no path.
        let origin = url::Url::parse(&url.origin().ascii_serialization()).map_err(Error::internal)?;
        let builder = WebauthnBuilder::new(host, &origin).map_err(|_| unfit("cannot be used"))?;
        builder.rp_name("Message Hub").build().map_err(|_| unfit("cannot be used"))
    }

    /// Checks that passkeys work at the hub's public URL.
    ///
    /// # Errors
    /// `UNAVAILABLE` with a sentence for the operator.
    pub fn check_passkeys_work(&self) -> Result<()> {
        self.webauthn().map(|_| ())
    }
}

/// The library creates keys that need a username at every sign-in; `residentKey` makes them work without one.
fn creation_options(options: &CreationChallengeResponse) -> Result<Value> {
    let mut options = serde_json::to_value(&options.public_key).map_err(Error::internal)?;
    options["authenticatorSelection"]["residentKey"] = "required".into();
    options["authenticatorSelection"]["requireResidentKey"] = true.into();
    Ok(options)
}

/// Checks that the named user, the user handle in the response and the owner of the passkey are the same.
fn check_holder(state: &SigningIn, answer: &PublicKeyCredential, holder: UserId) -> Result<()> {
    let handle = answer.get_user_unique_id();
    let same = |bytes: &[u8]| bytes == holder.as_u128().to_be_bytes();
    let right = match &state.named {
        None => handle.is_some_and(same),
        Some(Named::User(id)) => *id == holder.to_string() && handle.is_none_or(same),
        Some(Named::Nobody) => false,
    };
    if right { Ok(()) } else { Err(wrong_passkey()) }
}

/// The stored credential with the backup eligibility that the answer reports, which the signature covers, and whether it
/// was eligible before. Password managers that begin to synchronise passkeys set the flag later (iCloud, KeePassXC); the
/// library would refuse them for ever.
fn with_eligibility(stored: &str, answer: &PublicKeyCredential) -> Result<(Credential, bool)> {
    let mut stored: Value = serde_json::from_str(stored).map_err(Error::internal)?;
    let flags = answer.response.authenticator_data.get(FLAGS_AT).copied().unwrap_or_default();
    let now = Value::Bool(flags & BACKUP_ELIGIBLE != 0);
    let before = std::mem::replace(&mut stored["cred"]["backup_eligible"], now);
    Ok((serde_json::from_value(stored).map_err(Error::internal)?, before == true))
}

/// Reads the response of a browser and repairs details that the library would reject needlessly.
fn read_credential<T: DeserializeOwned>(mut credential: Value) -> Result<T> {
    if let Some(response) = credential.get_mut("response").and_then(Value::as_object_mut) {
        // A hint only, and its values may be newer than the library.
        response.remove("transports");
        response.entry("userHandle").or_insert(Value::Null);
    }
    serde_json::from_value(credential)
        .map_err(|error| Error::invalid("credential", format!("is not a credential of WebAuthn: {error}")))
}

fn refused(error: &WebauthnError) -> Error {
    if matches!(error, WebauthnError::InvalidRPOrigin) {
        // For the operator of a hub behind a proxy; clients do not see it.
        tracing::info!(
            "a passkey was used on a page whose address is not the hub's public URL: scheme, host or port"
        );
    } else {
        tracing::info!(%error, "passkey refused");
    }
    wrong_passkey()
}

fn wrong_passkey() -> Error {
    Error::new(ErrorCode::InvalidToken, "this passkey is not accepted")
        .with_hint("begin again; if that does not help, sign in another way")
}

fn changed_passkey() -> Error {
    Error::new(ErrorCode::InvalidToken, "this passkey is no longer the synchronised one that was registered")
        .with_hint("sign in another way and create a new passkey")
}

fn in_use() -> Error {
    Error::conflict("this passkey is in use already")
}

fn too_many() -> Error {
    Error::conflict(format!("you have {MAX_PASSKEYS} passkeys, which is the limit; delete one first"))
}

#[cfg(test)]
#[path = "passkey_tests.rs"]
mod tests;
