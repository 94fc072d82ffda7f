//! Configuration of a simulator.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Mode of the delivery of inbound messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryMode {
    /// Everything behind the cursor is sent again until the cursor moves on.
    #[default]
    Cursor,
    /// Once answered, a message never comes again, old cursors included.
    Consume,
    /// As [`Cursor`](Self::Cursor), and an empty cursor replays the last [`SimConfig::replay`] messages.
    ReplayOnEmpty,
}

/// Handling of a send without a context token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenlessSend {
    /// `-2`, `prepare failed`.
    #[default]
    PrepareFailed,
    /// HTTP 200 with an empty body, not delivered.
    Silent,
    /// Delivered.
    Accept,
    /// `-3`, `invalid arguments`.
    Invalid,
}

/// Forms of the upload URL that `getuploadurl` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UploadUrls {
    /// `upload_full_url` and `upload_param`.
    #[default]
    Both,
    /// `upload_full_url` only.
    Full,
    /// `upload_param` only.
    Param,
}

/// The simulator's settings. The defaults are described in `docs/ilink.md#simulator`.
#[derive(Debug, Clone)]
pub struct SimConfig {
    /// Hold time of `getupdates` without a message; also returned as `longpolling_timeout_ms`.
    pub hold: Duration,
    /// Hold time of `get_qrcode_status` without a change.
    pub qr_hold: Duration,
    /// Lifetime of a QR code.
    pub qr_life: Duration,
    /// Time for which `confirmed` and `binded_redirect` are repeated.
    pub qr_done_life: Duration,
    /// Wrong pairing codes until `verify_code_blocked`.
    pub verify_tries: u32,
    /// Delivery of inbound messages.
    pub delivery: DeliveryMode,
    /// Messages an empty cursor replays in [`DeliveryMode::ReplayOnEmpty`].
    pub replay: usize,
    /// Inbound messages are held back until `notifystart`.
    pub silent_until_notifystart: bool,
    /// Time for which a person's message permits answers.
    pub window: Duration,
    /// Number of answers that it permits.
    pub window_sends: u32,
    /// Sends without a context token.
    pub tokenless: TokenlessSend,
    /// Malformed or missing headers are refused with -14 in place of being recorded.
    pub strict_headers: bool,
    /// A media item that cannot be opened is refused with -2 in place of being marked.
    pub strict_media: bool,
    /// Forms of the upload URL.
    pub upload_urls: UploadUrls,
    /// CDN parameters contain `+`, `/` and `=` in place of being URL-safe.
    pub awkward_cdn_params: bool,
    /// Lifetime of a CDN reference.
    pub cdn_life: Duration,
    /// Base of every returned URL, in place of the address of the request.
    pub public_url: Option<String>,
    /// Caps on everything that is kept.
    pub caps: SimCaps,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            hold: Duration::from_secs(35),
            qr_hold: Duration::from_secs(30),
            qr_life: Duration::from_secs(120),
            qr_done_life: Duration::from_secs(60),
            verify_tries: 3,
            delivery: DeliveryMode::Cursor,
            replay: 50,
            silent_until_notifystart: false,
            window: Duration::from_secs(24 * 3600),
            window_sends: 10,
            tokenless: TokenlessSend::PrepareFailed,
            strict_headers: false,
            strict_media: false,
            upload_urls: UploadUrls::Both,
            awkward_cdn_params: false,
            cdn_life: Duration::from_secs(24 * 3600),
            public_url: None,
            caps: SimCaps::default(),
        }
    }
}

impl SimConfig {
    /// Short holds for tests on the system clock: 300 ms for messages, 200 ms for QR codes.
    #[must_use]
    pub fn quick() -> Self {
        Self { hold: Duration::from_millis(300), qr_hold: Duration::from_millis(200), ..Self::default() }
    }
}

/// Caps on the state of a simulator, and the effect of each.
#[derive(Debug, Clone, Copy)]
pub struct SimCaps {
    /// Bound accounts; a further confirmation is refused.
    pub accounts: usize,
    /// QR codes; the oldest is forgotten.
    pub qr_codes: usize,
    /// People per account; a further person's message is refused.
    pub peers: usize,
    /// Inbound messages per account that no cursor has acknowledged; a further message is refused.
    pub pending: usize,
    /// Acknowledged inbound messages kept per account for old cursors; the oldest is forgotten.
    pub retained: usize,
    /// Sends kept for [`Simulator::outbound`](super::Simulator::outbound); the oldest is forgotten, which shows
    /// as a gap in `n`.
    pub outbound: usize,
    /// `client_id`s remembered per account; the oldest is forgotten.
    pub client_ids: usize,
    /// Typing calls and violations, each; the oldest is forgotten.
    pub records: usize,
    /// Faults at a time; a further one is refused.
    pub faults: usize,
    /// Upload permissions; the oldest is forgotten.
    pub uploads: usize,
    /// Bytes of uploaded media; the oldest media is forgotten.
    pub media_bytes: usize,
}

impl Default for SimCaps {
    fn default() -> Self {
        Self {
            accounts: 20_000,
            qr_codes: 20_000,
            peers: 10_000,
            pending: 100_000,
            retained: 1_000,
            outbound: 20_000,
            client_ids: 20_000,
            records: 10_000,
            faults: 1_000,
            uploads: 10_000,
            media_bytes: 512 << 20,
        }
    }
}
