//! The connector against the simulator over a real loopback socket: the cases of `protocols/ilink.md` §18
//! that the connector decides. Each test is named after its case.

mod life;
mod login;
mod media;
mod quotes;
mod receiving;
mod sending;
pub mod stage;
mod typing;
