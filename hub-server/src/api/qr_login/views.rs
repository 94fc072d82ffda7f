//! The shapes of sign-in by QR code.

use hub_core::{
    accounts::{QrAsker, QrLogin, QrPoll},
    time::Timestamp,
};
use poem_openapi::{Enum, Object, Union, types::Example};

use crate::{
    api::auth::Me,
    wire::{Secret, ShownOnce, Text, Time, enumeration, view},
};

view! {
    /// A new QR login.
    #[derive(Debug, Object)]
    #[oai(example)]
    pub struct QrLoginView from login: QrLogin {
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
        pub expires_at: Time,
    }
}

enumeration! {
    /// Status of a QR login.
    QrLoginStatus = hub_core::accounts::QrStatus {
        /// The code was not opened yet.
        Waiting,
        /// The code was opened.
        Scanned,
        /// Confirmed: the session can be collected.
        Confirmed,
        /// Expired.
        Expired,
        /// Rejected, or the entered code was wrong.
        Cancelled,
    }
}

view! {
    /// Status of a QR login, for the requesting device.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none, example)]
    pub struct QrStatusView from poll: QrPoll {
        /// The status.
        pub status: QrLoginStatus,
        /// The user who confirmed it.
        pub user_name: Option<String>,
        /// Ticket for the session, once confirmed.
        pub exchange: Option<ShownOnce>,
    }
}

/// A QR login to confirm.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct OpenQrLogin {
    /// The id in the code.
    pub qr_id: Text<0, 128>,
}

view! {
    /// The requesting device.
    #[derive(Debug, Object)]
    #[oai(example)]
    pub struct QrAskerView from asker: QrAsker {
        /// Client address; empty if unknown.
        pub ip: String,
        /// User agent; empty if unknown.
        pub user_agent: String,
        /// When it was requested.
        pub requested_at: Time,
        /// When it expires.
        pub expires_at: Time,
    }
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
    pub status: QrLoginStatus,
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

const EXAMPLE_TIME: Time = Time(Timestamp::from_millis(1_795_253_400_000));

fn example_id() -> String {
    "hubq_…".to_owned()
}

impl Example for QrLoginView {
    fn example() -> Self {
        Self {
            qr_id: example_id(),
            qr_text: "https://hub.example/login?qr=hubq_…".to_owned(),
            qr_svg: "<svg …>".to_owned(),
            user_code: "BCDF-GHJK".to_owned(),
            poll_secret: ShownOnce("hubp_…".into()),
            expires_at: EXAMPLE_TIME,
        }
    }
}

impl Example for QrStatusView {
    fn example() -> Self {
        Self { status: QrLoginStatus::Waiting, user_name: None, exchange: None }
    }
}

impl Example for OpenQrLogin {
    fn example() -> Self {
        Self { qr_id: Text(example_id()) }
    }
}

impl Example for QrAskerView {
    fn example() -> Self {
        Self {
            ip: "192.0.2.7".to_owned(),
            user_agent: "hub-cli/0.1.0".to_owned(),
            requested_at: EXAMPLE_TIME,
            expires_at: EXAMPLE_TIME,
        }
    }
}

impl Example for ConfirmQrLogin {
    fn example() -> Self {
        Self { qr_id: Text(example_id()), user_code: Some(Text("BCDF-GHJK".to_owned())), approve: true }
    }
}

impl Example for QrDecision {
    fn example() -> Self {
        Self { status: QrLoginStatus::Confirmed }
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
