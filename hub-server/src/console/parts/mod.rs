//! Pieces of pages.

pub(super) mod badge;
pub(super) mod cause;
pub(super) mod code;
pub(super) mod form;
pub(super) mod icon;
pub(super) mod json;
pub(super) mod list;
pub(super) mod qr;
pub(super) mod signs;
pub(super) mod time;
