//! The account of the signed-in user.

pub(super) mod activity;
pub(super) mod confirm;
pub(super) mod devices;
pub(super) mod keys;
pub(super) mod profile;
pub(super) mod security;
pub(super) mod sessions;
