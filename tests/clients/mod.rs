//! Clients of other authors test the simulator: each logs in, receives, replies, shows that it is typing and
//! exchanges media with it over a real socket, and the records of both sides are compared. The requests of Tencent's
//! own modules and of another author's client are then compared with those of the hub's connector.
//!
//! There is also a server of the API of models, and an MCP client of the hub itself.
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
