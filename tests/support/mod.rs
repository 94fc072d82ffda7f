//! Helpers of tests: databases, release binaries and their processes, receivers of webhooks, callers.

pub mod binaries;
pub mod database;
pub mod fault_proxy;
pub mod fault_receiver;
pub mod http;
pub mod hub_process;
pub mod logged_plans;
pub mod port;
pub mod postgres;
pub mod postgres_user;
pub mod process;
pub mod receiver;
pub mod reverse_proxy;
pub mod strace;
pub mod world;
