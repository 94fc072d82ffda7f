//! `#[derive(FromRow)]`.

use quote::quote;
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, LitStr};

pub(crate) fn expand(input: &DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    let Data::Struct(syn::DataStruct { fields: Fields::Named(fields), .. }) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "FromRow needs a struct with named fields"));
    };
    let name = &input.ident;
    let table = table(input)?;
    let values = fields.named.iter().map(value).collect::<syn::Result<Vec<_>>>()?;
    let rows = [quote!(::sqlx::sqlite::SqliteRow), quote!(::sqlx::postgres::PgRow)];
    Ok(rows
        .map(|row| {
            quote! {
                impl ::sqlx::FromRow<'_, #row> for #name {
                    fn from_row(row: &#row) -> ::sqlx::Result<Self> {
                        let read = || ::sqlx::Result::Ok(Self { #(#values),* });
                        read().map_err(|error| crate::columns::damaged(row, #table, error))
                    }
                }
            }
        })
        .into_iter()
        .collect())
}

/// The table's name, for messages; the name of the struct when it has none.
fn table(input: &DeriveInput) -> syn::Result<String> {
    let mut table = input.ident.to_string();
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("row")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("table") {
                return Err(meta.error("expected `table = \"…\"`"));
            }
            table = meta.value()?.parse::<LitStr>()?.value();
            Ok(())
        })?;
    }
    Ok(table)
}

/// The initializer of a field.
fn value(field: &Field) -> syn::Result<proc_macro2::TokenStream> {
    let ident = &field.ident;
    let column = quote!(stringify!(#ident));
    let Some(attribute) = field.attrs.iter().find(|attribute| attribute.path().is_ident("row")) else {
        return Ok(quote!(#ident: ::sqlx::Row::try_get(row, #column)?));
    };
    let word: Ident = attribute.parse_args()?;
    Ok(match word.to_string().as_str() {
        "flatten" => quote!(#ident: ::sqlx::FromRow::from_row(row)?),
        "number" => quote!(#ident: crate::columns::number(row, #column)?),
        "json" => quote!(#ident: crate::columns::json(row, #column)?),
        "skip" => quote!(#ident: ::std::default::Default::default()),
        _ => return Err(Error::new(word.span(), "expected `flatten`, `number`, `json` or `skip`")),
    })
}
