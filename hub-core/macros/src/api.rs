//! `#[derive(Api)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, ExprLit, ExprRange, Field, Fields, Ident, Lit, LitStr, Meta,
    Token, Type,
    ext::IdentExt,
    meta::ParseNestedMeta,
    parenthesized,
    parse::{ParseBuffer, ParseStream},
};

pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let container = Container::of(input)?;
    let (ident, name, doc) = (&input.ident, &container.name, doc(&input.attrs));
    let implementation = match &input.data {
        Data::Struct(syn::DataStruct { fields: Fields::Named(fields), .. }) => {
            let fields = fields.named.iter().map(Member::of).collect::<syn::Result<Vec<_>>>()?;
            let fields = fields.iter().flatten();
            let (described, written): (Vec<_>, Vec<_>) =
                fields.clone().map(|field| (field.described(), field.written())).unzip();
            let read = if container.is_read {
                let fields = fields.map(Member::read).collect::<syn::Result<Vec<_>>>()?;
                quote! {
                    let mut object = crate::openapi::fields(value)?;
                    let record = Self { #(#fields),* };
                    crate::openapi::no_others(&object)?;
                    Ok(record)
                }
            } else {
                quote!(let _ = value; crate::openapi::unread())
            };
            let example =
                container.example.map_or(quote!(None), |json| quote!(Some(::serde_json::json!(#json))));
            quote! {
                crate::openapi::record!(
                    #ident, #name, #doc, [#(#described),*], #example,
                    |record, object| { #(#written)* }, |value| { #read }
                );
            }
        }
        Data::Enum(_) => quote!(crate::openapi::list!(#ident, #name, #doc);),
        _ => {
            return Err(Error::new_spanned(
                ident,
                "Api needs a struct with named fields, or a list of words",
            ));
        }
    };
    Ok(quote! {
        #[cfg(feature = "openapi")]
        #implementation
    })
}

/// The attribute `#[api(…)]` of a type.
struct Container {
    name: String,
    example: Option<TokenStream>,
    /// Whether requests contain it.
    is_read: bool,
}

impl Container {
    fn of(input: &DeriveInput) -> syn::Result<Self> {
        let mut found = Self { name: input.ident.to_string(), example: None, is_read: false };
        each(&input.attrs, "api", |meta| {
            if meta.path.is_ident("name") {
                found.name = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.path.is_ident("example") {
                let json: proc_macro2::Group = meta.value()?.parse()?;
                found.example = Some(quote!(#json));
            } else if meta.path.is_ident("read") {
                found.is_read = true;
            } else {
                return Err(meta.error("expected `name`, `example` or `read`"));
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// A field of a schema.
struct Member<'a> {
    field: &'a Field,
    name: String,
    is_flat: bool,
    /// The type of the schema, and the function that makes it of the field.
    with: Option<(Type, Expr)>,
    /// The computed fields behind this one.
    and: Vec<Computed>,
    /// The bounds of the length of a list.
    items: Option<ExprRange>,
}

/// A field of the schema that the record does not have: its name, type, function of the record, and text.
struct Computed {
    name: String,
    ty: Type,
    function: Expr,
    doc: String,
}

impl<'a> Member<'a> {
    /// `None` where the field is skipped.
    fn of(field: &'a Field) -> syn::Result<Option<Self>> {
        let ident = field.ident.as_ref().map(|ident| ident.unraw().to_string());
        let mut member = Self {
            field,
            name: ident.unwrap_or_default(),
            is_flat: false,
            with: None,
            and: Vec::new(),
            items: None,
        };
        let mut is_skipped = false;
        each(&field.attrs, "serde", |meta| {
            if meta.path.is_ident("flatten") {
                member.is_flat = true;
            } else if meta.input.peek(Token![=]) {
                let value: Expr = meta.value()?.parse()?;
                if let (true, Expr::Lit(ExprLit { lit: Lit::Str(name), .. })) =
                    (meta.path.is_ident("rename"), value)
                {
                    member.name = name.value();
                }
            }
            Ok(())
        })?;
        each(&field.attrs, "api", |meta| {
            if meta.path.is_ident("skip") {
                is_skipped = true;
            } else if meta.path.is_ident("flatten") {
                member.is_flat = true;
            } else if meta.path.is_ident("name") {
                member.name = meta.value()?.parse::<LitStr>()?.value();
            } else if meta.path.is_ident("with") {
                let content = in_parentheses(meta)?;
                let ty = content.parse()?;
                content.parse::<Token![,]>()?;
                member.with = Some((ty, content.parse()?));
            } else if meta.path.is_ident("and") {
                member.and.push(Computed::parse(&in_parentheses(meta)?)?);
            } else if meta.path.is_ident("items") {
                member.items = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error("expected `skip`, `flatten`, `name`, `with`, `and` or `items`"));
            }
            Ok(())
        })?;
        Ok((!is_skipped).then_some(member))
    }

    fn described(&self) -> TokenStream {
        let (name, doc) = (&self.name, doc(&self.field.attrs));
        let ty = self.with.as_ref().map_or(&self.field.ty, |(ty, _)| ty);
        let own = if self.is_flat {
            quote!(crate::openapi::Field::flat::<#ty>())
        } else {
            let items = self.items.iter();
            quote!(crate::openapi::Field::new::<#ty>(#name, #doc)#(.items(#items))*)
        };
        let and = self
            .and
            .iter()
            .map(|Computed { name, ty, doc, .. }| quote!(, crate::openapi::Field::new::<#ty>(#name, #doc)));
        quote!(#own #(#and)*)
    }

    /// The initializer of the field, from the `object` of a request.
    fn read(&self) -> syn::Result<TokenStream> {
        let (ident, name) = (&self.field.ident, &self.name);
        if self.is_flat || self.with.is_some() || !self.and.is_empty() {
            return Err(Error::new_spanned(ident, "only plain fields can be read"));
        }
        let items = self.items.iter();
        Ok(quote! {
            #ident: crate::openapi::read(&mut object, #name)#(.and_then(crate::openapi::within(#items)))*?
        })
    }

    /// The statements that write the field of `record` to `object`.
    fn written(&self) -> TokenStream {
        let (ident, name) = (&self.field.ident, &self.name);
        let own = match &self.with {
            _ if self.is_flat => quote!(crate::openapi::write_all(object, &record.#ident);),
            Some((ty, function)) => quote! {
                let value: #ty = (#function)(&record.#ident);
                crate::openapi::write(object, #name, &value);
            },
            None => quote!(crate::openapi::write(object, #name, &record.#ident);),
        };
        let and = self.and.iter().map(|Computed { name, ty, function, .. }| {
            quote! {
                let value: #ty = (#function)(record);
                crate::openapi::write(object, #name, &value);
            }
        });
        quote!(#own #(#and)*)
    }
}

impl Computed {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse::<Ident>()?.to_string();
        input.parse::<Token![:]>()?;
        let ty = input.parse()?;
        input.parse::<Token![=]>()?;
        let function = input.parse()?;
        input.parse::<Token![,]>()?;
        let doc = input.parse::<LitStr>()?.value();
        Ok(Self { name, ty, function, doc })
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
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}
