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

/// Describes a record of the API, or a closed list of words, as a schema of the OpenAPI document, and checks its bounds.
/// The schema exists only with the feature `openapi` of hub-core. The texts of the schema are the doc comments. A struct is
/// written as JSON without the fields that are `None`; `rename` and `flatten` of serde apply. A check of the bounds,
/// `check_bounds`, is generated where a field has some.
///
/// On the type, as `#[api(…)]`:
///
/// - `name = "…"`: the name of the schema where it is not that of the type;
/// - `example = { … }`: its example, as JSON;
/// - `tag = "…"` on an enum whose variants have values: the field with the variant's name in snake case, next to the
///   values, as serde's `tag` has it;
/// - `read`: it is part of responses and of requests, with every field;
/// - `input`: it is part of requests only. A field may be absent if it is an `Option` or a `Change`, if it has
///   `absent`, or if the type has serde's `default` (or `default`, where it does not derive `Deserialize`). Other
///   fields are rejected, unless the type is `lenient`;
/// - `set("Name", "text")`: `Set<Type>` is a request that sets the record; absent fields have their defaults;
/// - `like = Record`: a field without a doc comment has the text of the record's field of the same name;
/// - `texts = function`: a field without a doc comment has the text that the function returns for its name;
/// - `checked`: the bounds are not checked when a request is read: `check_bounds` is called with the other rules.
///
/// On a field, as `#[api(…)]`:
///
/// - `skip`: not part of the schema;
/// - `name = "…"`: its name where the record has another;
/// - `flatten`: its fields are those of the record, where the stored form nests them;
/// - `with(Type, function)`: shown as what the function makes of it;
/// - `and(name: Type = function, "text")`: behind it, what the function makes of the record;
/// - `cause`: a sentence that states a cause; `<name>_cause` next to it has the code and the values. The same as
///   `and(cause name: …)`;
/// - `from(Type, function)`: read as another type;
/// - `set`: read as the `Set` of its type;
/// - `absent = value`: its value where a request leaves it out;
/// - `chars = 0..=200`: the number of characters of a text, or of each text of a list; `line` and `body` also
///   check the characters, as `hub_core::text` does for one line and for several;
/// - `range = 1..=20`: the range of a number, or of each number of a list;
/// - `items = 1..=20`: the number of entries of a list;
/// - `length = 0..=200`: as `chars`, for the schema alone, where another rule of the field checks it;
/// - `properties = ..=64`: the number of entries of an object, for the schema alone;
/// - `required`: a request has to contain it, although the type has a default;
/// - `pattern("…", "example")`: a regular expression that the text matches and a text that does, for the schema alone.
#[proc_macro_derive(Api, attributes(api))]
pub fn api(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    api::expand(&input).unwrap_or_else(Error::into_compile_error).into()
}
