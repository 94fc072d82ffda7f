//! The delivery pipeline of a hub, on a clock moved by hand: deliveries and their retries, replies and sends,
//! polling. Some tests are named after their case (`hub-core/docs/ilink.md#conformance-cases`).

mod ai;
mod apps;
mod clock;
mod delivery;
mod leases;
mod polling;
mod replies;
mod sending;
