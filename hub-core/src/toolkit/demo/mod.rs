//! A demo hub: one simulated bot, two people, one channel, and a receiver that checks signatures. The server seeds
//! it in development, `hub-cli demo` runs it in one process.

mod mock;
mod names;
mod playground;
mod receiver;
mod seed;
mod signature;
mod stage;
#[cfg(test)]
mod tests;

pub use mock::{AppMock, MOCK_PATH, MOCK_SLUG, MockSetup};
pub use names::{greet, name_contacts, person_id};
pub use playground::{MAX_SHOWN, MAX_TEXT, Playground, ReceiverState};
pub use receiver::{Behaviour, DemoReceiver, Received};
pub use seed::{Demo, renew_logins, seed};
pub use signature::Verdict;
pub use stage::{DemoListener, connector, connector_with};

/// The host under which the receiver is called inside the process.
pub const RECEIVER_HOST: &str = "receiver.local";
/// URL of the webhook of the demo's channel.
pub const RECEIVER_URL: &str = "http://receiver.local/hook";
/// Name of the demo's bot and of its channel.
pub const NAME: &str = "demo";
/// The person the demo's bot belongs to.
pub const ADA: &str = "ada@im.wechat";
/// Another person.
pub const BOB: &str = "bob@im.wechat";
/// Name of the simulated network in a hub.
pub const NETWORK: &str = "sim";
