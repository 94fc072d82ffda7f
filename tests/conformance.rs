//! The whole hub against the simulator over a real loopback socket: the cases of `protocols/ilink.md` §18 that
//! the hub decides, on a clock that is moved by hand. Each test is named after its case.

mod crashes;
mod expiry;
mod login;
mod media;
mod outcomes;
mod quotes;
mod receiving;
mod sending;
mod stage;
mod trouble;
mod two_nodes;
