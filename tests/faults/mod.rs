//! Faults of the systems around a hub: receivers, names, certificates, slow clients. No secret is left behind.

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
