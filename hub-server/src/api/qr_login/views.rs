//! The shapes of sign-in by QR code.

use hub_core::{
    accounts::{Me, QrStatus},
    secret::ShownOnce,
};
use poem_openapi::{Enum, Object, Union, types::Example};

use crate::wire::{Secret, Text};

/// A QR login to confirm.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct OpenQrLogin {
    /// The id in the code.
    pub qr_id: Text<0, 128>,
}

/// A decision about a QR login.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct ConfirmQrLogin {
    /// The id in the code.
    pub qr_id: Text<0, 128>,
    /// The code that the requesting device shows; required to approve. A wrong code ends the login.
    pub user_code: Option<Text<0, 32>>,
    /// Whether to sign that device in as the user of this request.
    pub approve: bool,
}

/// Result of a decision about a QR login.
#[derive(Debug, Object)]
#[oai(example)]
pub struct QrDecision {
    /// `confirmed` or `cancelled`.
    pub status: QrStatus,
}

/// The ticket for a session.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
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
#[derive(Debug, Object)]
#[oai(example)]
pub struct QrKey {
    /// The key. It is not shown again.
    pub api_key: ShownOnce,
}

fn example_id() -> String {
    "hubq_…".to_owned()
}

impl Example for OpenQrLogin {
    fn example() -> Self {
        Self { qr_id: Text(example_id()) }
    }
}

impl Example for ConfirmQrLogin {
    fn example() -> Self {
        Self { qr_id: Text(example_id()), user_code: Some(Text("BCDF-GHJK".to_owned())), approve: true }
    }
}

impl Example for QrDecision {
    fn example() -> Self {
        Self { status: QrStatus::Confirmed }
    }
}

impl Example for QrKey {
    fn example() -> Self {
        Self { api_key: ShownOnce("hubu_…".into()) }
    }
}

impl Example for ExchangeQrLogin {
    fn example() -> Self {
        let (poll_secret, exchange) = (Secret("hubp_…".into()), Secret("hubx_…".into()));
        Self { qr_id: Text(example_id()), poll_secret, exchange }
    }
}
