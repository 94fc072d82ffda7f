//! Looking after a hub that keeps its things for years: is everything whole, and a new key for its secrets.

mod check;
mod rotation;

pub use check::{Checked, Finding, check};
pub use rotation::{Rotated, rotate_key};

#[cfg(test)]
mod tests;
