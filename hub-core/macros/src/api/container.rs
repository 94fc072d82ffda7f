//! The attribute `#[api(…)]` of a type.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, Ident, LitStr, Path, Token};

use super::{each, in_parentheses};

pub(super) struct Container {
    pub name: String,
    pub example: Option<TokenStream>,
    /// The field with the word of the variant of an enum.
    pub tag: Option<String>,
    pub direction: Direction,
    /// The record whose texts the fields without one have.
    pub like: Option<Path>,
    /// The function that returns the text of a field without one, by its name.
    pub texts: Option<Path>,
    /// The schema of the same fields in a request that leaves out what it does not change: its name and text.
    pub set: Option<(String, String)>,
    /// Whether absent fields have the value of the type's `Default`.
    pub has_default: bool,
    /// Whether a request may have other fields.
    pub is_lenient: bool,
    /// Whether the bounds are checked with the other rules of the request, and not when it is read.
    pub is_checked: bool,
    /// Whether it is the request that sets the record.
    pub is_set: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Response,
    Request,
    Both,
}

impl Container {
    pub fn of(input: &DeriveInput) -> syn::Result<Self> {
        let mut found = Self {
            name: input.ident.to_string(),
            example: None,
            tag: None,
            direction: Direction::Response,
            like: None,
            texts: None,
            set: None,
            has_default: false,
            is_lenient: false,
            is_checked: false,
            is_set: false,
        };
        each(&input.attrs, "serde", |meta| {
            found.has_default |= meta.path.is_ident("default") && !meta.input.peek(Token![=]);
            if meta.input.peek(Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            }
            Ok(())
        })?;
        each(&input.attrs, "api", |meta| {
            match meta.path.get_ident().map(Ident::to_string).as_deref() {
                Some("name") => found.name = meta.value()?.parse::<LitStr>()?.value(),
                Some("example") => {
                    let json: proc_macro2::Group = meta.value()?.parse()?;
                    found.example = Some(quote!(#json));
                }
                Some("tag") => found.tag = Some(meta.value()?.parse::<LitStr>()?.value()),
                Some("input") => found.direction = Direction::Request,
                Some("read") => found.direction = Direction::Both,
                Some("like") => found.like = Some(meta.value()?.parse()?),
                Some("texts") => found.texts = Some(meta.value()?.parse()?),
                Some("default") => found.has_default = true,
                Some("lenient") => found.is_lenient = true,
                Some("checked") => found.is_checked = true,
                Some("set") => {
                    let content = in_parentheses(meta)?;
                    let name = content.parse::<LitStr>()?.value();
                    content.parse::<Token![,]>()?;
                    found.set = Some((name, content.parse::<LitStr>()?.value()));
                }
                _ => return Err(meta.error("not an attribute of `Api`")),
            }
            Ok(())
        })?;
        // What is sent and received has every field.
        found.has_default &= found.direction != Direction::Both;
        if found.direction == Direction::Response && found.is_lenient {
            return Err(Error::new_spanned(&input.ident, "`lenient` is for requests"));
        }
        Ok(found)
    }

    /// The request that sets the record, and its text: absent fields have their defaults.
    pub fn as_set(&self) -> Option<(Self, String)> {
        let (name, text) = self.set.clone()?;
        let container = Self {
            name,
            example: self.example.clone(),
            tag: None,
            direction: Direction::Request,
            like: None,
            texts: None,
            set: None,
            has_default: true,
            is_lenient: false,
            is_checked: self.is_checked,
            is_set: true,
        };
        Some((container, text))
    }
}
