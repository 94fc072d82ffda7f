//! The way of a message through a whole hub, on a clock moved by hand: deliveries and their retries, replies
//! and sends, polling. Cases of `protocols/ilink.md` §18 are named after their number.

mod ai;
mod apps;
mod clock;
mod delivery;
mod leases;
mod polling;
mod sending;
