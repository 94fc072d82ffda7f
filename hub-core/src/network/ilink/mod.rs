//! iLink.
