//! The derives of hub-core.
//!
//! sqlx has a `FromRow` of its own. Its crate of macros depends on the drivers, so a release build compiles SQLite,
//! the TLS stack and the runtime a second time, for the compiler's own use. The derives of poem-openapi emit three
//! formats, and know nothing of serde's attributes.

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, parse_macro_input};

mod api;
mod from_row;

/// Implements `sqlx::FromRow` for rows of SQLite and PostgreSQL. Each field is read from the column with its name,
/// unless it is marked as
///
/// - `#[row(flatten)]`: read from the whole row, by its own `FromRow`;
/// - `#[row(number)]`: another integer than `i64`, read from one and converted;
/// - `#[row(json)]`: read from a text that is JSON; an `Option` is `None` where the column is NULL;
/// - `#[row(skip)]`: not a column; the default, for the caller to replace.
///
/// A value that cannot be read is reported with the table, `#[row(table = "…")]` on the struct, and the row's `id`.
#[proc_macro_derive(FromRow, attributes(row))]
pub fn from_row(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    from_row::expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Describes a record that the API returns, or a closed list of words, as a schema of the OpenAPI document; only with
/// the feature `openapi`. The texts of the schema are the doc comments. A struct is written as JSON without the fields
/// that are `None`; `rename` and `flatten` of serde apply.
///
/// - `#[api(name = "…")]`: the name of the schema where it is not that of the type;
/// - `#[api(example = { … })]`: its example, as JSON;
/// - `#[api(read)]`: requests contain it, too; every field is read, and others are rejected;
/// - `#[api(items = 1..=20)]` on a list: the bounds of its length;
/// - `#[api(skip)]` on a field: not part of the schema;
/// - `#[api(name = "…")]` on a field: its name where the record has another;
/// - `#[api(flatten)]` on a field: its fields are those of the record, where the stored form nests them;
/// - `#[api(with(Type, function))]` on a field: shown as what the function makes of it;
/// - `#[api(and(name: Type = function, "text"))]` on a field: behind it, what the function makes of the record.
#[proc_macro_derive(Api, attributes(api))]
pub fn api(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    api::expand(&input).unwrap_or_else(Error::into_compile_error).into()
}
