//! The shapes of sign-in by QR code.

use hub_core::{
    accounts::{Me, QrStatus},
    openapi::Api,
    secret::ShownOnce,
};
use poem_openapi::{Enum, Union};

use crate::wire::{Secret, Text};

/// A QR login to confirm.
#[derive(Debug, Api)]
#[api(input, example = {
    "qr_id": "hubq_…"
})]
pub struct OpenQrLogin {
    /// The id in the code.
    pub qr_id: Text<0, 128>,
}

/// A decision about a QR login.
#[derive(Debug, Api)]
#[api(input, example = {
    "approve": true,
    "qr_id": "hubq_…",
    "user_code": "BCDF-GHJK"
})]
pub struct ConfirmQrLogin {
    /// The id in the code.
    pub qr_id: Text<0, 128>,
    /// The code that the requesting device shows; required to approve. A wrong code ends the login.
    pub user_code: Option<Text<0, 32>>,
    /// Whether to sign that device in as the user of this request.
    pub approve: bool,
}

/// Result of a decision about a QR login.
#[derive(Debug, Api)]
#[api(example = {
    "status": "confirmed"
})]
pub struct QrDecision {
    /// `confirmed` or `cancelled`.
    pub status: QrStatus,
}

/// The ticket for a session.
#[derive(Debug, Api)]
#[api(input, example = {
    "exchange": "hubx_0000000000000000000000000000000000000000000000",
    "poll_secret": "hubp_0000000000000000000000000000000000000000000000",
    "qr_id": "hubq_…"
})]
pub struct ExchangeQrLogin {
    /// The id of the login.
    pub qr_id: Text<0, 128>,
    /// Its poll secret.
    pub poll_secret: Secret<128>,
    /// The ticket.
    pub exchange: Secret<128>,
}

/// Kind of credential for a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum QrExchangeKind {
    /// A session, by cookie.
    Session,
    /// An API key.
    ApiKey,
}

/// Result of a QR login.
#[derive(Debug, Union)]
pub enum QrOutcome {
    /// The user who is signed in now.
    User(Me),
    /// An API key of the user.
    Key(QrKey),
}

/// An API key.
#[derive(Debug, Api)]
#[api(example = {
    "api_key": "hubu_…"
})]
pub struct QrKey {
    /// The key. It is not shown again.
    pub api_key: ShownOnce,
}
