//! Passkeys: options and responses are the JSON of WebAuthn Level 3.

use hub_core::{
    Hub,
    accounts::{Accounts, Ceremony, Me, NewPasskey, NewProfile, Passkey},
    id::PasskeyId,
    openapi::Api,
};
use poem::{http::header, web::Data};
use poem_openapi::{
    OpenApi,
    param::{Path, Query},
    payload::Response,
    types::Any,
};
use serde_json::{Map, Value};

use super::{
    Tag,
    sign_in::{SignIn, Visitor, WithCookie},
};
use crate::{
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    wire::{Body, Checked, Cursor, Limit, Page, Secret, Text, Username, page_request},
};

/// Passkeys.
#[derive(Debug, Clone, Copy)]
pub struct PasskeysApi;

/// The account for a new passkey.
#[derive(Debug, Default, Api)]
#[api(input, example = {
    "username": "alice"
})]
pub struct BeginPasskey {
    /// Username of the new account, as in registration. A signed-in user omits it and adds the passkey to their own
    /// account.
    pub username: Option<Username>,
    /// Display name of the new account.
    pub display_name: Option<Checked<1, 64>>,
    /// E-mail address of the new account.
    pub email: Option<Checked<0, 254>>,
    /// The one-time token printed at the first start, as in registration.
    pub setup_token: Option<Secret<256>>,
    /// An invitation by an administrator, as in registration.
    pub invite: Option<Secret<256>>,
    /// Name of the passkey, 1 to 64 characters.
    pub name: Option<Checked<1, 64>>,
}

/// The user who signs in.
#[derive(Debug, Default, Api)]
#[api(input, example = {
    "username": "alice"
})]
pub struct BeginPasskeyLogin {
    /// The username; if absent, the browser offers every passkey that it has for this hub.
    pub username: Option<Text<0, 256>>,
}

/// Result of `navigator.credentials`: `PublicKeyCredential.toJSON()`, and the id of the ceremony.
///
/// `id`, `rawId`, `type` and `response` are required, unless `credential` contains them. `response` requires
/// `clientDataJSON`; at the registration `attestationObject`, at a sign-in `authenticatorData` and `signature`.
#[derive(Debug, Api)]
#[api(input, example = {
    "clientExtensionResults": {},
    "flow_id": "hubf_0000000000000000000000000000000000000000000000",
    "id": "lCWkTtz0Rp2wXqSfMlPm1Q",
    "rawId": "lCWkTtz0Rp2wXqSfMlPm1Q",
    "response": {
        "authenticatorData": "SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAQ",
        "clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0",
        "signature": "MEQCIBHb2W6vPZ0rZx8c",
        "userHandle": "dXNyXzAx"
    },
    "type": "public-key"
})]
pub struct PasskeyAnswer {
    /// Id of the ceremony.
    pub flow_id: Secret<256>,
    /// Id of the credential.
    pub id: Option<Text<0, 2048>>,
    /// Id of the credential in base64url.
    #[api(name = "rawId")]
    pub raw_id: Option<Text<0, 2048>>,
    /// `public-key`.
    #[api(name = "type")]
    pub kind: Option<Text<0, 64>>,
    /// Response of the authenticator.
    pub response: Option<Any<Value>>,
    /// Results of extensions.
    #[api(name = "clientExtensionResults")]
    pub client_extension_results: Option<Any<Value>>,
    /// `platform` or `cross-platform`.
    #[api(name = "authenticatorAttachment")]
    pub authenticator_attachment: Option<Any<Value>>,
    /// The whole credential in one member, as an alternative to its members here.
    pub credential: Option<Any<Value>>,
}

#[OpenApi(tag = "Tag::Auth")]
impl PasskeysApi {
    /// Begins the registration of a passkey
    ///
    /// Without a session, it is for a new account, which is created at the end of the ceremony. With a session that
    /// began within the last 15 minutes, the passkey is added to the user's account.
    #[oai(
        path = "/api/auth/passkey/register/begin",
        method = "post",
        operation_id = "beginPasskeyRegistration"
    )]
    async fn begin_registration(
        &self,
        visitor: Visitor<'_>,
        body: Body<BeginPasskey>,
    ) -> WithCookie<Ceremony> {
        let (sign_in, accounts) = (&visitor.sign_in, visitor.sign_in.hub.accounts());
        let browser = accounts.browser(sign_in.flow.as_deref());
        let actor = visitor.actor.as_ref();
        let begun = accounts.begin_passkey_registration(actor, body.0.into(), &browser).await?;
        Ok(Response::new(ok(begun)?).header(header::SET_COOKIE, sign_in.flow_cookie(&browser)))
    }

    /// Finishes the registration of a passkey
    ///
    /// Responds with the user. A new account is created now and signed in by cookie.
    #[oai(
        path = "/api/auth/passkey/register/finish",
        method = "post",
        operation_id = "finishPasskeyRegistration"
    )]
    async fn finish_registration(&self, visitor: Visitor<'_>, body: Body<PasskeyAnswer>) -> WithCookie<Me> {
        let Visitor { sign_in, actor } = visitor;
        let (flow_id, credential) = body.0.into();
        let (flow, client) = (sign_in.flow.as_deref(), &sign_in.client);
        let accounts = sign_in.hub.accounts();
        let (signed_in, me) = accounts
            .finish_passkey_registration(actor.as_ref(), flow_id.expose(), flow, credential, client)
            .await?;
        match signed_in {
            Some(signed_in) => sign_in.respond(signed_in).await,
            None => Ok(Response::new(ok(me)?)),
        }
    }

    /// Begins a sign-in with a passkey
    ///
    /// An unknown username gets the same response as a known one and fails at the end.
    #[oai(path = "/api/auth/passkey/login/begin", method = "post", operation_id = "beginPasskeyLogin")]
    async fn begin_login(
        &self,
        sign_in: SignIn<'_>,
        body: Body<Option<BeginPasskeyLogin>>,
    ) -> WithCookie<Ceremony> {
        let username = body.0.and_then(|begin| begin.username);
        if let Some(username) = &username {
            sign_in.check_account(username).await?;
        }
        let accounts = sign_in.hub.accounts();
        let browser = accounts.browser(sign_in.flow.as_deref());
        let begun = accounts.begin_passkey_login(username.as_deref(), &browser).await?;
        Ok(Response::new(ok(begun)?).header(header::SET_COOKIE, sign_in.flow_cookie(&browser)))
    }

    /// Finishes a sign-in with a passkey
    ///
    /// Responds with the user and sets the session cookie.
    #[oai(path = "/api/auth/passkey/login/finish", method = "post", operation_id = "finishPasskeyLogin")]
    async fn finish_login(&self, sign_in: SignIn<'_>, body: Body<PasskeyAnswer>) -> WithCookie<Me> {
        let (flow_id, credential) = body.0.into();
        let (flow, client) = (sign_in.flow.as_deref(), &sign_in.client);
        let accounts = sign_in.hub.accounts();
        let signed_in = accounts.finish_passkey_login(flow_id.expose(), flow, credential, client).await?;
        sign_in.respond(signed_in).await
    }

    /// Lists the user's passkeys
    ///
    /// With names and times.
    #[oai(path = "/api/auth/passkey/list", method = "get", operation_id = "listPasskeys")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<Passkey>> {
        let page = page_request(&Accounts::passkey_list(&user.0), limit.0, cursor.0.as_ref())?;
        ok(hub.accounts().passkeys(&user.0, &page).await?.into())
    }

    /// Deletes one of the user's passkeys
    ///
    /// Requires a session that began within the last 15 minutes. The last sign-in method cannot be deleted.
    #[oai(path = "/api/auth/passkey/:id", method = "delete", operation_id = "deletePasskey")]
    async fn delete(&self, hub: Data<&Hub>, user: User, id: Path<PasskeyId>) -> ApiResult<Empty> {
        hub.accounts().delete_passkey(&user.0, id.0).await?;
        ok(Empty {})
    }
}

impl From<BeginPasskey> for NewPasskey {
    fn from(begin: BeginPasskey) -> Self {
        let (display_name, email) = (begin.display_name.map(String::from), begin.email.map(String::from));
        let profile =
            begin.username.map(|username| NewProfile { username: username.into(), display_name, email });
        Self {
            profile,
            ticket: begin.setup_token.or(begin.invite).map(|ticket| ticket.0),
            name: begin.name.map(String::from),
        }
    }
}

impl From<PasskeyAnswer> for (hub_core::secret::Secret, Value) {
    fn from(answer: PasskeyAnswer) -> Self {
        if let Some(Any(credential)) = answer.credential {
            return (answer.flow_id.0, credential);
        }
        let text = |text: Option<String>| text.map(Value::String);
        let members = [
            ("id", text(answer.id.map(String::from))),
            ("rawId", text(answer.raw_id.map(String::from))),
            ("type", text(answer.kind.map(String::from))),
            ("response", answer.response.map(|Any(value)| value)),
            ("clientExtensionResults", answer.client_extension_results.map(|Any(value)| value)),
        ];
        let given = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        (answer.flow_id.0, Value::Object(given.collect::<Map<_, _>>()))
    }
}

#[cfg(test)]
#[path = "passkeys_tests.rs"]
mod tests;
