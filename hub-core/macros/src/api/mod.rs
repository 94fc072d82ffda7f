//! `#[derive(Api)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, ExprLit, Fields, Ident, Lit, Meta, meta::ParseNestedMeta,
    parenthesized, parse::ParseBuffer,
};

use container::{Container, Direction};
use member::Member;

mod cause;
mod container;
mod member;
mod tagged;

pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let container = Container::of(input)?;
    let (ident, text) = (&input.ident, doc(&input.attrs));
    match &input.data {
        Data::Struct(syn::DataStruct { fields: Fields::Named(fields), .. }) => {
            let members = fields.named.iter().map(Member::of).collect::<syn::Result<Vec<_>>>()?;
            let bounds = bounds(ident, &members);
            let has_bounds = bounds.is_some();
            let own =
                Schema { ident, container: &container, members: &members, has_bounds }.implemented(&text)?;
            let set = container.as_set().map(|(container, text)| {
                let set = Schema { ident, container: &container, members: &members, has_bounds };
                let implemented = set.implemented(&text)?;
                Ok::<_, Error>(quote! {
                    #implemented
                    impl ::hub_core::openapi::Settable for #ident {
                        type Set = ::hub_core::openapi::Set<Self>;

                        fn of_set(set: Self::Set) -> Self {
                            set.0
                        }
                    }
                })
            });
            let set = set.transpose()?;
            // Constants are used without the schema, too.
            let unchecked = members.iter().flat_map(Member::unchecked);
            Ok(quote! {
                #bounds
                #(const _: ::std::ops::RangeInclusive<usize> = #unchecked;)*
                ::hub_core::when_openapi! { #own #set }
            })
        }
        Data::Enum(data) if container.tag.is_some() => {
            let tag = container.tag.as_deref().unwrap_or_default();
            let (fields, write) = tagged::parts(&container, tag, data)?;
            let schema = Schema { ident, container: &container, members: &[], has_bounds: false };
            let schema = schema.of_parts(&text, &fields, &write)?;
            Ok(quote!(::hub_core::when_openapi! { #schema }))
        }
        Data::Enum(_) => {
            let name = &container.name;
            Ok(quote! {
                ::hub_core::when_openapi! { ::hub_core::openapi::list!(#ident, #name, #text); }
            })
        }
        _ => Err(Error::new_spanned(
            ident,
            "Api needs a struct with named fields, or a list of words, or an enum with a tag",
        )),
    }
}

/// The check of the bounds of a record that has any.
fn bounds(ident: &Ident, members: &[Member<'_>]) -> Option<TokenStream> {
    let checks: Vec<_> = members.iter().filter_map(Member::checked).collect();
    (!checks.is_empty()).then(|| {
        quote! {
            impl #ident {
                /// Notes the fields that are out of their bounds.
                pub(crate) fn check_bounds(&self, problems: &mut ::hub_core::error::Problems) {
                    #(#checks)*
                }
            }
        }
    })
}

/// A record, or the request that sets one.
struct Schema<'a> {
    ident: &'a Ident,
    container: &'a Container,
    members: &'a [Member<'a>],
    has_bounds: bool,
}

impl Schema<'_> {
    fn ty(&self) -> TokenStream {
        let ident = self.ident;
        if self.container.is_set { quote!(::hub_core::openapi::Set<#ident>) } else { quote!(#ident) }
    }

    /// The implementation of poem-openapi's traits.
    fn implemented(&self, text: &str) -> syn::Result<TokenStream> {
        let fields = self.members.iter().map(|member| member.described(self.container)).collect();
        let write = self.members.iter().map(Member::written).collect();
        self.of_parts(text, &fields, &write)
    }

    /// The implementation with these fields, and the statements that write a `record` to `object`.
    fn of_parts(&self, text: &str, fields: &TokenStream, write: &TokenStream) -> syn::Result<TokenStream> {
        let (container, ty) = (self.container, self.ty());
        let name = &container.name;
        let example = container.example.as_ref().map(|json| quote!(Some(::serde_json::json!(#json))));
        let example = example.unwrap_or_else(|| quote!(None));
        let default =
            self.default(|member| member.shows_default(container) && member.needs_default(container));
        let write = (container.direction != Direction::Request).then(|| self.write(write));
        let parse = self.parse()?;
        Ok(quote! {
            const _: () = {
                use ::poem_openapi::types::{ParseError, ParseResult};
                use ::serde_json::{Map, Value};

                impl ::poem_openapi::types::Type for #ty {
                    ::hub_core::openapi::itself!(#name);

                    fn register(registry: &mut ::poem_openapi::registry::Registry) {
                        registry.create_schema::<Self, _>(#name.to_owned(), |registry| {
                            #default
                            let fields = vec![#fields];
                            ::hub_core::openapi::object_schema(registry, #name, #text, fields, #example)
                        });
                    }
                }

                impl ::poem_openapi::types::IsObjectType for #ty {}

                #write
                #parse
            };
        })
    }

    fn write(&self, written: &TokenStream) -> TokenStream {
        let ty = self.ty();
        quote! {
            impl ::poem_openapi::types::ToJSON for #ty {
                fn to_json(&self) -> Option<Value> {
                    let (record, mut fields) = (self, Map::new());
                    let object = &mut fields;
                    #written
                    Some(Value::Object(fields))
                }
            }
        }
    }

    /// Binds the value that absent fields have, if a field needs it.
    fn default(&self, needs: impl Fn(&Member<'_>) -> bool) -> Option<TokenStream> {
        let ident = self.ident;
        let is_needed = self.container.has_default && self.members.iter().any(needs);
        is_needed.then(|| quote!(let default = <#ident as ::std::default::Default>::default();))
    }

    fn parse(&self) -> syn::Result<TokenStream> {
        let (ident, container, ty) = (self.ident, self.container, self.ty());
        if container.direction == Direction::Response {
            return Ok(quote! {
                impl ::poem_openapi::types::ParseFromJSON for #ty {
                    fn parse_from_json(_: Option<Value>) -> ParseResult<Self> {
                        ::hub_core::openapi::unread()
                    }
                }
            });
        }
        let fields = self.members.iter().map(|member| member.read(container));
        let fields = fields.collect::<syn::Result<Vec<_>>>()?;
        let default = self.default(|member| member.needs_default(container));
        let is_checked = self.has_bounds && !container.is_checked;
        let checked = is_checked
            .then(|| quote!(::hub_core::openapi::bounded(|problems| record.check_bounds(problems))?;));
        let others = (!container.is_lenient).then(|| quote!(::hub_core::openapi::no_others(&object)?;));
        let record = if container.is_set { quote!(::hub_core::openapi::Set(record)) } else { quote!(record) };
        Ok(quote! {
            impl ::hub_core::openapi::Fields for #ty {
                fn take(object: &mut Map<String, Value>) -> ParseResult<Self> {
                    #default
                    let record = #ident { #(#fields)* };
                    #checked
                    Ok(#record)
                }
            }

            impl ::poem_openapi::types::ParseFromJSON for #ty {
                fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
                    let mut object = ::hub_core::openapi::object(value)?;
                    let record = <Self as ::hub_core::openapi::Fields>::take(&mut object)?;
                    #others
                    Ok(record)
                }
            }
        })
    }
}

fn in_parentheses<'a>(meta: &ParseNestedMeta<'a>) -> syn::Result<ParseBuffer<'a>> {
    let content;
    parenthesized!(content in meta.input);
    Ok(content)
}

fn each(
    attributes: &[Attribute],
    name: &str,
    mut act: impl FnMut(&ParseNestedMeta) -> syn::Result<()>,
) -> syn::Result<()> {
    let mut found = attributes.iter().filter(|attribute| attribute.path().is_ident(name));
    found.try_for_each(|attribute| attribute.parse_nested_meta(|meta| act(&meta)))
}

/// The doc comment, its lines as they are.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => line(&doc.value),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A line of a doc comment; the fragment of a macro is in a group.
fn line(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value().trim().to_owned()),
        Expr::Group(group) => line(&group.expr),
        _ => None,
    }
}
