//! The hub against the simulator over a real loopback socket, on a clock moved by hand: the cases that the hub
//! decides. Tests are named after their case (`hub-core/docs/ilink.md#conformance-cases`).

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
