//! The connector against the simulator over a real loopback socket: the cases that the connector decides. Tests are
//! named after their case (`hub-core/docs/ilink.md#conformance-cases`).

mod life;
mod login;
mod media;
mod quotes;
mod receiving;
mod sending;
pub mod stage;
mod typing;
