//! What the other side of a hub may do to it: receivers, names, certificates, slow clients (reliability §4.2:
//! F8, S3, S6), and what of secrets stays behind (S8).

mod addresses;
mod dns;
mod models;
mod names;
mod namespace;
mod providers;
mod receivers;
mod scene;
mod secrets;
mod slow_clients;
mod tls;
