//! The contract of the command line, with the program itself: what reaches stdout and stderr, and how it ends.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ai_config;
mod apps;
mod bots;
mod channels;
mod completion;
mod confirm;
mod db;
mod demo;
mod doctor;
mod every_command;
mod examples;
mod exit_codes;
mod generated;
mod help;
mod hubs;
mod listen;
mod messages;
mod plugins;
mod program;
mod pty;
mod rate_limits;
mod refusals;
mod replay;
mod server;
mod signature;
mod sim;
mod stage;
mod transports;
mod users;
