//! What tests share: databases, release binaries and their processes, receivers of webhooks, callers.

pub mod database;
pub mod postgres;
pub mod postgres_user;
