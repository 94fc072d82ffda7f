//! poem-openapi types for the vocabulary of `hub_core`: texts, pages, and the JSON body.

mod body;
mod diagnosis;
mod form;
mod json;
mod number;
mod object;
mod page;
mod secret;
mod text;
mod view;

pub use body::Body;
pub(crate) use body::{is_json, read};
pub(crate) use diagnosis::is_strict;
pub(crate) use form::read_multipart;
pub use form::{FileForm, FormOrJson, FormTexts};
pub use hub_core::openapi::JsonObject;
pub use number::Number;
pub use object::Stored;
pub use page::{CountedPage, Cursor, Limit, NextCursor, Page, page_request};
pub use secret::Secret;
pub use text::{Checked, Digits, MAX_TEXT, Text, Username};
pub(crate) use view::view;

/// The part of poem-openapi's `Type` that is the same for every scalar of this module.
pub(crate) use hub_core::openapi::itself as scalar;
