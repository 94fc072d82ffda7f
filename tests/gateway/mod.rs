//! The iLink gateway of a whole hub whose bot is bound to the simulator: clients of other authors log in to the hub in place
//! of the network, and what the network would refuse is refused in its words.

mod foreign;
mod hub_on_hub;
mod idle;
mod proxies;
mod quotes;
mod refused;
pub mod stage;
mod together;
