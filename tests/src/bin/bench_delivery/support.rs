//! Modules shared with the integration tests.
#![expect(clippy::unwrap_used, dead_code, reason = "written for tests: what goes wrong ends the run")]

#[path = "../../../support/http.rs"]
pub mod http;
#[path = "../../../support/postgres.rs"]
pub mod postgres;
#[path = "../../../support/postgres_user.rs"]
pub mod postgres_user;
