//! `#[derive(FromRow)]` for the two databases of the store.
//!
//! sqlx has a derive of the same name. Its crate of macros depends on the drivers, so a release build compiles SQLite,
//! the TLS stack and the runtime a second time, for the compiler's own use.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, parse_macro_input};

/// Implements `sqlx::FromRow` for rows of SQLite and PostgreSQL. Each field is read from the column with its name;
/// a field marked `#[row(flatten)]` is itself read from the whole row.
#[proc_macro_derive(FromRow, attributes(row))]
pub fn from_row(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: &DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    let Data::Struct(syn::DataStruct { fields: Fields::Named(fields), .. }) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "FromRow needs a struct with named fields"));
    };
    let name = &input.ident;
    let mut values = Vec::with_capacity(fields.named.len());
    for field in &fields.named {
        let ident = &field.ident;
        let attribute = field.attrs.iter().find(|attribute| attribute.path().is_ident("row"));
        values.push(if let Some(attribute) = attribute {
            attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
                let word: syn::Ident = input.parse()?;
                if word == "flatten" { Ok(()) } else { Err(Error::new(word.span(), "expected `flatten`")) }
            })?;
            quote!(#ident: ::sqlx::FromRow::from_row(row)?)
        } else {
            quote!(#ident: ::sqlx::Row::try_get(row, stringify!(#ident))?)
        });
    }
    let rows = [quote!(::sqlx::sqlite::SqliteRow), quote!(::sqlx::postgres::PgRow)];
    Ok(rows
        .map(|row| {
            quote! {
                impl ::sqlx::FromRow<'_, #row> for #name {
                    fn from_row(row: &#row) -> ::sqlx::Result<Self> {
                        Ok(Self { #(#values),* })
                    }
                }
            }
        })
        .into_iter()
        .collect())
}
