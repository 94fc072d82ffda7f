//! Promises of the specification, tested from outside.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod administration;
mod clients;
mod conformance;
mod console;
mod crash;
mod deploy;
mod disconnected_clients;
mod documents;
mod endpoints;
mod example_apps;
mod examples;
mod fault_proxy;
mod faults;
mod fuzzing;
mod gateway;
mod identity;
mod ilink;
mod openapi;
mod pipeline;
mod plugins;
mod s3;
mod sandbox;
mod settings;
mod sockets;
mod store_contract;
mod story;
mod support;
