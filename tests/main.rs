//! Promises of the specification, tested from outside.

mod ilink;
