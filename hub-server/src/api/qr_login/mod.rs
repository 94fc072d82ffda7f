//! Sign-in by QR code: the operations. Their shapes are in `views`, the WebSocket with the status in `status`.

use hub_core::{
    Error, Hub,
    accounts::{QrAsker, QrLogin},
    secret,
};
use poem::{http::header, web::Data};
use poem_openapi::{OpenApi, param::Query, payload::Response};

mod status;
mod views;

pub use status::QrSockets;
use status::{QrStatusAnswer, Watcher};
pub use views::{ConfirmQrLogin, ExchangeQrLogin, OpenQrLogin, QrDecision, QrExchangeKind, QrKey, QrOutcome};

use super::{
    Tag,
    sign_in::{SignIn, WithCookie},
};
use crate::{
    credentials::User,
    envelope::{ApiError, ApiResult, ok},
    wire::{Body, Text},
};

/// Sign-in by QR code.
#[derive(Debug, Clone, Copy)]
pub struct QrLoginApi;

#[OpenApi(tag = "Tag::Auth")]
impl QrLoginApi {
    /// Creates a QR code for sign-in
    ///
    /// A user who is signed in on another device opens and confirms the code; the poll secret then collects a session
    /// of that user.
    #[oai(path = "/api/auth/qr/generate", method = "post", operation_id = "generateQrLogin")]
    async fn generate(&self, sign_in: SignIn<'_>) -> ApiResult<QrLogin> {
        ok(sign_in.hub.accounts().begin_qr_login(&sign_in.client).await?)
    }

    /// Shows the status of a QR login
    ///
    /// As a WebSocket, it sends `{"type":"qr_status","data":{"status":…,"user_name":…}}` at once and after each
    /// change, finally `{"type":"qr_session","data":{"exchange":…}}`, and closes. A plain request gets one response.
    /// 3 sockets per login.
    #[oai(path = "/api/auth/qr/status", method = "get", operation_id = "getQrLoginStatus")]
    async fn status(
        &self,
        watcher: Watcher<'_>,
        /// The public id.
        qr_id: Query<Text<0, 128>>,
        /// The poll secret.
        poll_secret: Query<Text<0, 128>>,
    ) -> Result<QrStatusAnswer, ApiError> {
        let (qr_id, poll_secret) = (qr_id.0.0, secret::Secret::new(poll_secret.0.0));
        let first = watcher.hub.accounts().poll_qr_login(&qr_id, &poll_secret).await?;
        watcher.answer(qr_id, poll_secret, first)
    }

    /// Opens a QR login for confirmation
    ///
    /// Returns the requesting device, and notifies it that the code was opened. Requires a session that began within
    /// the last 15 minutes.
    #[oai(path = "/api/auth/qr/open", method = "post", operation_id = "openQrLogin")]
    async fn open(&self, hub: Data<&Hub>, user: User, body: Body<OpenQrLogin>) -> ApiResult<QrAsker> {
        ok(hub.accounts().open_qr_login(&user.0, &body.0.qr_id).await?)
    }

    /// Confirms or rejects a QR login
    ///
    /// Confirmation signs the requesting device in as the user of this request, and therefore requires the code that
    /// is shown there, and a session that began within the last 15 minutes. A wrong code ends the login.
    #[oai(path = "/api/auth/qr/confirm", method = "post", operation_id = "confirmQrLogin")]
    async fn confirm(
        &self,
        hub: Data<&Hub>,
        user: User,
        body: Body<ConfirmQrLogin>,
    ) -> ApiResult<QrDecision> {
        let ConfirmQrLogin { qr_id, user_code, approve } = body.0;
        let code = match &user_code {
            Some(code) => code,
            None if approve => return Err(Error::invalid("user_code", "must be given to approve").into()),
            None => "",
        };
        let status = hub.accounts().confirm_qr_login(&user.0, &qr_id, code, approve).await?;
        ok(QrDecision { status })
    }

    /// Collects the session of a confirmed QR login
    ///
    /// Works once. Responds with the user and sets the session cookie, or with `kind=api_key` returns an API key of
    /// the user, for programs.
    #[oai(path = "/api/auth/qr/exchange", method = "post", operation_id = "exchangeQrLogin")]
    async fn exchange(
        &self,
        sign_in: SignIn<'_>,
        /// Kind of credential: `session` or `api_key`.
        kind: Query<Option<QrExchangeKind>>,
        body: Body<ExchangeQrLogin>,
    ) -> WithCookie<QrOutcome> {
        let ExchangeQrLogin { qr_id, poll_secret, exchange } = body.0;
        let accounts = sign_in.hub.accounts();
        let (poll_secret, exchange, client) = (&poll_secret.0, &exchange.0, &sign_in.client);
        if kind.0 == Some(QrExchangeKind::ApiKey) {
            let created = accounts.exchange_qr_login_for_key(&qr_id, poll_secret, exchange, client).await?;
            let key = QrKey { api_key: created.secret };
            return Ok(Response::new(ok(QrOutcome::Key(key))?));
        }
        let signed_in = accounts.exchange_qr_login(&qr_id, poll_secret, exchange, client).await?;
        let cookies = sign_in.session_cookies(&signed_in).await?;
        let answer = Response::new(ok(QrOutcome::User(signed_in.me))?);
        Ok(cookies.into_iter().fold(answer, |answer, cookie| answer.header(header::SET_COOKIE, cookie)))
    }
}

#[cfg(test)]
mod tests;
