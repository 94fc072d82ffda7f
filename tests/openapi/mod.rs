//! The OpenAPI document, held to what others read it with: validators and linters, a fuzzer, generators of clients.
//!
//! `.ci/run clients` installs them outside the checkout; a test whose tool is missing is skipped, in CI it fails.

mod clients;
mod fuzz;
mod lint;
mod recipes;
