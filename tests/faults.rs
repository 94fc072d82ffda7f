//! What the other side of a hub may do to it: receivers, names, certificates, slow clients, and what of secrets stays
//! behind.

mod addresses;
mod closing;
mod dns;
mod models;
mod names;
mod namespace;
mod providers;
mod receivers;
mod scene;
mod secrets;
mod slow_clients;
mod strangers;
mod tls;
