//! An enum whose variants have values: an object with the word of the variant and its values.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, Error, Fields, Ident, Variant};

use super::{container::Container, doc, member::Member};

/// The fields of the schema, and the statements that write a `record` to `object`.
pub(super) fn parts(
    container: &Container,
    tag: &str,
    data: &DataEnum,
) -> syn::Result<(TokenStream, TokenStream)> {
    let choices = data.variants.iter().map(Choice::of).collect::<syn::Result<Vec<_>>>()?;
    let words = choices.iter().map(|choice| &choice.word);
    let text = choices.iter().map(|choice| format!("- `{}`: {}", choice.word, doc(&choice.variant.attrs)));
    let text = text.collect::<Vec<_>>().join("\n");
    let fields = choices.iter().map(|choice| choice.described(container));
    let arms = choices.iter().map(|choice| choice.written(tag));
    Ok((
        quote!(::hub_core::openapi::Field::tag(#tag, #text, &[#(#words),*]), #(#fields)*),
        quote!(match record { #(#arms)* }),
    ))
}

struct Choice<'a> {
    variant: &'a Variant,
    word: String,
    members: Vec<Member<'a>>,
}

impl<'a> Choice<'a> {
    fn of(variant: &'a Variant) -> syn::Result<Self> {
        let members = match &variant.fields {
            Fields::Named(fields) => fields.named.iter().map(Member::of).collect::<syn::Result<_>>()?,
            Fields::Unit => Vec::new(),
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => Vec::new(),
            Fields::Unnamed(_) => {
                return Err(Error::new_spanned(variant, "a variant has named fields, or one record"));
            }
        };
        Ok(Self { variant, word: snake_case(&variant.ident.to_string()), members })
    }

    fn described(&self, container: &Container) -> TokenStream {
        if let Fields::Unnamed(record) = &self.variant.fields {
            let ty = record.unnamed.iter().map(|field| &field.ty);
            return quote!(#(::hub_core::openapi::Field::flat::<#ty>(),)*);
        }
        self.members.iter().map(|member| member.described(container)).collect()
    }

    /// The arm that writes the variant.
    fn written(&self, tag: &str) -> TokenStream {
        let (ident, word) = (&self.variant.ident, &self.word);
        let (pattern, fields) = match &self.variant.fields {
            Fields::Unit => (quote!(), quote!()),
            Fields::Unnamed(_) => (quote!((of)), quote!(::hub_core::openapi::write_all(object, of);)),
            Fields::Named(fields) => {
                let fields: Vec<&Ident> =
                    fields.named.iter().filter_map(|field| field.ident.as_ref()).collect();
                let names = fields.iter().map(ToString::to_string);
                let causes =
                    self.members.iter().zip(&fields).filter_map(|(member, field)| {
                        member.cause().map(|cause| cause.written(&quote!(#field)))
                    });
                let written = quote!(#(::hub_core::openapi::write(object, #names, #fields);)* #(#causes)*);
                (quote!({ #(#fields),* }), written)
            }
        };
        quote! {
            Self::#ident #pattern => {
                ::hub_core::openapi::write(object, #tag, &#word.to_owned());
                #fields
            }
        }
    }
}

/// The word of a variant, as serde's `rename_all = "snake_case"` spells it.
fn snake_case(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.extend(c.to_lowercase());
    }
    word
}
