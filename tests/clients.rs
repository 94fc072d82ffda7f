//! Clients of other authors prove the simulator: each logs in, receives, answers, shows that it is typing and
//! exchanges media with it over a real socket, and both sides are asked what happened. What Tencent's own modules and
//! another author's client write is then compared with what the hub's connector writes.
//!
//! One server is among them, of the API that models are asked over; and one client of the hub itself, of the protocol
//! in which models are offered tools.
//!
//! `.ci/run clients` installs them outside the checkout; a test whose client is missing is skipped, in CI it fails.

mod aimock;
pub mod foreign;
pub mod installed;
mod mcp;
mod openilink;
mod similarity;
mod standard_webhooks;
mod story;
mod tencent;
mod wechat_link;
mod weixin_agent;
