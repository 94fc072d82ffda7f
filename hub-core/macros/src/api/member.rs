//! The fields of a record.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Error, Expr, ExprLit, ExprRange, Field, Ident, Lit, LitStr, RangeLimits, Token, Type, ext::IdentExt,
    parse::ParseStream, spanned::Spanned,
};

use super::{
    cause::CauseField,
    container::{Container, Direction},
    doc, each, in_parentheses,
};

/// A field of a schema.
pub(super) struct Member<'a> {
    field: &'a Field,
    name: String,
    is_skipped: bool,
    is_flat: bool,
    /// Whether it is a sentence that states a cause.
    is_cause: bool,
    /// Whether a request contains what sets its value.
    is_set: bool,
    /// Whether a request has to contain it although the type has a default.
    is_required: bool,
    /// The type of the schema, and the function that makes it of the field.
    with: Option<(Type, Expr)>,
    /// The type of the schema, and the function that makes the field of it.
    from: Option<(Type, Expr)>,
    /// The computed fields behind this one.
    and: Vec<Computed>,
    /// The value where a request leaves the field out.
    absent: Option<Expr>,
    /// A regular expression, and a text that matches it.
    pattern: Option<(String, String)>,
    /// The bounds of texts, and the function of `text` that checks them, unless another rule of the field does.
    texts: Option<(Bounds, Option<&'static str>)>,
    range: Option<Bounds>,
    items: Option<Bounds>,
    /// The bounds of the number of entries of an object.
    properties: Option<Bounds>,
}

/// A field of the schema that the record does not have: its name, type, function of the record, and text.
struct Computed {
    name: String,
    ty: Type,
    function: Expr,
    doc: String,
    /// Whether it is a sentence that states a cause.
    is_cause: bool,
}

/// `1..=20`, `..=20` or `1..`.
struct Bounds {
    start: Option<Box<Expr>>,
    end: Option<Box<Expr>>,
}

impl<'a> Member<'a> {
    pub fn of(field: &'a Field) -> syn::Result<Self> {
        let ident = field.ident.as_ref().map(|ident| ident.unraw().to_string());
        let mut member = Self {
            field,
            name: ident.unwrap_or_default(),
            is_skipped: false,
            is_flat: false,
            is_cause: false,
            is_set: false,
            is_required: false,
            with: None,
            from: None,
            and: Vec::new(),
            absent: None,
            pattern: None,
            texts: None,
            range: None,
            items: None,
            properties: None,
        };
        each(&field.attrs, "serde", |meta| {
            if meta.path.is_ident("flatten") {
                member.is_flat = true;
            } else if meta.path.is_ident("default") && !meta.input.peek(Token![=]) {
                member.absent = Some(syn::parse_quote!(::std::default::Default::default()));
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
            match meta.path.get_ident().map(Ident::to_string).as_deref() {
                Some("skip") => member.is_skipped = true,
                Some("flatten") => member.is_flat = true,
                Some("cause") => member.is_cause = true,
                Some("name") => member.name = meta.value()?.parse::<LitStr>()?.value(),
                Some("with") => member.with = Some(converted(&in_parentheses(meta)?)?),
                Some("set") => member.is_set = true,
                Some("from") => member.from = Some(converted(&in_parentheses(meta)?)?),
                Some("and") => member.and.push(Computed::parse(&in_parentheses(meta)?)?),
                Some("absent") => member.absent = Some(meta.value()?.parse()?),
                Some("pattern") => {
                    let content = in_parentheses(meta)?;
                    let pattern = content.parse::<LitStr>()?.value();
                    content.parse::<Token![,]>()?;
                    member.pattern = Some((pattern, content.parse::<LitStr>()?.value()));
                }
                Some("chars") => member.texts = Some((Bounds::parse(meta.value()?)?, Some("chars_problem"))),
                Some("line") => member.texts = Some((Bounds::parse(meta.value()?)?, Some("line_problem"))),
                Some("body") => member.texts = Some((Bounds::parse(meta.value()?)?, Some("body_problem"))),
                Some("length") => member.texts = Some((Bounds::parse(meta.value()?)?, None)),
                Some("required") => member.is_required = true,
                Some("properties") => member.properties = Some(Bounds::parse(meta.value()?)?),
                Some("range") => member.range = Some(Bounds::parse(meta.value()?)?),
                Some("items") => member.items = Some(Bounds::parse(meta.value()?)?),
                _ => return Err(meta.error("not an attribute of a field of `Api`")),
            }
            Ok(())
        })?;
        Ok(member)
    }

    /// The fields of the schema.
    pub fn described(&self, container: &Container) -> TokenStream {
        let (name, text) = (&self.name, doc(&self.field.attrs));
        let and = self.and.iter().map(|computed| {
            let Computed { name, ty, doc, .. } = computed;
            let cause = computed.cause().map(|cause| cause.described());
            quote!(::hub_core::openapi::Field::new::<#ty>(#name, #doc), #cause)
        });
        if self.is_skipped {
            return and.collect();
        }
        let ty =
            if container.direction == Direction::Request { self.read_type() } else { self.written_type() };
        if self.is_flat {
            return quote!(::hub_core::openapi::Field::flat::<#ty>(),);
        }
        // A response promises no bounds: those of requests may change.
        let bounded = (container.direction != Direction::Response).then(|| {
            let chars = self.texts.iter().map(|(bounds, _)| bounds.of_lengths());
            let range = self.range.iter().map(Bounds::of_numbers);
            let items = self.items.iter().map(Bounds::of_lengths);
            let pattern = self.pattern.iter().map(|(pattern, example)| quote!(#pattern, #example));
            let properties = self.properties.iter().map(Bounds::of_lengths);
            quote!(#(.chars(#chars))* #(.range(#range))* #(.items(#items))* #(.pattern(#pattern))* #(.properties(#properties))*)
        });
        let text = match &container.texts {
            Some(texts) if text.is_empty() => quote!(#texts(#name)),
            _ => quote!(#text),
        };
        let cause = self.cause().map(|cause| cause.described());
        let like = container.like.iter();
        let input = (container.direction == Direction::Request).then(|| {
            let is_required = !self.may_be_absent(container);
            let absent = self.shown_default(container).into_iter();
            quote!(.required(#is_required) #(.absent(#absent))*)
        });
        quote! {
            ::hub_core::openapi::Field::new::<#ty>(#name, #text) #(.like::<#like>())* #bounded #input,
            #cause
            #(#and)*
        }
    }

    /// The field with the cause that this one states, if it states one.
    pub fn cause(&self) -> Option<CauseField<'_>> {
        self.is_cause.then_some(CauseField(&self.name))
    }

    fn read_type(&self) -> TokenStream {
        let ty = self.from.as_ref().map_or(&self.field.ty, |(ty, _)| ty);
        if self.is_set { quote!(<#ty as ::hub_core::openapi::Settable>::Set) } else { quote!(#ty) }
    }

    fn written_type(&self) -> TokenStream {
        let ty = self.with.as_ref().map_or(&self.field.ty, |(ty, _)| ty);
        quote!(#ty)
    }

    /// Whether requests may leave the field out.
    fn may_be_absent(&self, container: &Container) -> bool {
        !self.is_required && (self.is_optional() || self.absent.is_some() || container.has_default)
    }

    fn is_optional(&self) -> bool {
        let Type::Path(path) = &self.field.ty else { return false };
        path.path.segments.last().is_some_and(|last| last.ident == "Option" || last.ident == "Change")
    }

    /// Whether the text names the value of an absent field: where it is the text of a record.
    pub fn shows_default(&self, container: &Container) -> bool {
        let has_text_of_record = container.is_set || doc(&self.field.attrs).is_empty();
        let is_shown = !(self.is_required || self.is_skipped || self.is_flat || self.is_optional());
        let is_shown = is_shown && !self.is_set && self.from.is_none();
        (container.has_default || self.absent.is_some()) && has_text_of_record && is_shown
    }

    /// Whether an absent field has the value of the type's `Default`.
    pub fn needs_default(&self, container: &Container) -> bool {
        let is_read = self.is_skipped || !(self.is_flat || self.is_optional());
        container.has_default && is_read && !self.is_required && self.absent.is_none()
    }

    /// The value of an absent field, for its text.
    fn shown_default(&self, container: &Container) -> Option<TokenStream> {
        self.shows_default(container).then(|| {
            let (ty, default) = (&self.field.ty, self.default(container));
            quote!({ let value: #ty = #default; value })
        })
    }

    fn default(&self, container: &Container) -> Option<TokenStream> {
        if self.is_required {
            return None;
        }
        let ident = &self.field.ident;
        let absent = self.absent.as_ref().map(|absent| quote!(#absent));
        absent.or_else(|| container.has_default.then(|| quote!(default.#ident)))
    }

    /// The initializer of the field, from the `object` of a request.
    pub fn read(&self, container: &Container) -> syn::Result<TokenStream> {
        let (ident, name) = (&self.field.ident, &self.name);
        if self.is_skipped {
            let default = self.default(container).unwrap_or_else(|| quote!(Default::default()));
            return Ok(quote!(#ident: #default,));
        }
        let ty = self.read_type();
        // What is read, as the value of the field.
        let value = match (&self.from, self.is_set) {
            (_, true) => quote!(.map(::hub_core::openapi::Settable::of_set)),
            (Some((_, function)), false) => quote!(.map(#function)),
            (None, false) => TokenStream::new(),
        };
        if self.is_flat {
            return Ok(quote! {
                #ident: <#ty as ::hub_core::openapi::Fields>::take(object)#value.map_err(ParseError::propagate)?,
            });
        }
        let is_written_only =
            (self.with.is_some() && self.from.is_none()) || !self.and.is_empty() || self.is_cause;
        if is_written_only {
            return Err(Error::new_spanned(ident, "a field that is computed cannot be read"));
        }
        let text = self.texts.iter().map(|_| quote!(::hub_core::openapi::only_texts(object, #name)?;));
        let value = if self.is_optional() && self.from.is_some() {
            // The function is of the value that is there.
            quote!(::hub_core::openapi::read::<#ty, Self>(object, #name)?#value)
        } else if self.is_optional() {
            quote!(::hub_core::openapi::read::<#ty, Self>(object, #name)#value?)
        } else if let Some(default) = self.default(container) {
            let found = quote!(::hub_core::openapi::read::<Option<#ty>, Self>(object, #name)?#value);
            quote!(match #found { Some(value) => value, None => #default })
        } else {
            quote!(::hub_core::openapi::read::<#ty, Self>(object, #name)#value?)
        };
        Ok(quote!(#ident: { #(#text)* #value },))
    }

    /// The statements that write the field of `record` to `object`.
    pub fn written(&self) -> TokenStream {
        let (ident, name) = (&self.field.ident, &self.name);
        let own = match &self.with {
            _ if self.is_skipped => TokenStream::new(),
            _ if self.is_flat => quote!(::hub_core::openapi::write_all(object, &record.#ident);),
            Some((ty, function)) => quote! {
                let value: #ty = (#function)(&record.#ident);
                ::hub_core::openapi::write(object, #name, &value);
            },
            None => quote!(::hub_core::openapi::write(object, #name, &record.#ident);),
        };
        let cause = self.cause().map(|cause| cause.written(&quote!(&record.#ident)));
        let and = self.and.iter().map(|computed| {
            let Computed { name, ty, function, .. } = computed;
            let cause = computed.cause().map(|cause| cause.written(&quote!(&value)));
            quote! {
                let value: #ty = (#function)(record);
                ::hub_core::openapi::write(object, #name, &value);
                #cause
            }
        });
        quote!(#own #cause #(#and)*)
    }

    /// The bounds that only the schema uses.
    pub fn unchecked(&self) -> impl Iterator<Item = TokenStream> {
        let texts = self.texts.iter().filter(|(_, rule)| rule.is_none()).map(|(bounds, _)| bounds);
        texts.chain(&self.properties).map(Bounds::of_lengths)
    }

    /// The statement that notes the `problems` of the bounds of the field.
    pub fn checked(&self) -> Option<TokenStream> {
        let (ident, name) = (self.field.ident.as_ref()?, &self.name);
        let texts = self.texts.iter().filter_map(|(bounds, rule)| {
            let (bounds, rule) = (bounds.of_lengths(), Ident::new((*rule)?, ident.span()));
            Some(quote! {
                ::hub_core::input::check_texts(
                    problems, #name, &self.#ident, &(#bounds), ::hub_core::text::#rule,
                );
            })
        });
        let range = self.range.iter().map(|bounds| {
            let bounds = bounds.of_numbers();
            quote!(::hub_core::input::check_range(problems, #name, &self.#ident, &(#bounds));)
        });
        let each = texts.chain(range).collect::<TokenStream>();
        match &self.items {
            Some(items) => {
                let items = items.of_lengths();
                let is_bounded = quote! {
                    ::hub_core::input::check_items(problems, #name, &self.#ident, &(#items))
                };
                Some(if each.is_empty() { quote!(#is_bounded;) } else { quote!(if #is_bounded { #each }) })
            }
            None => (!each.is_empty()).then_some(each),
        }
    }
}

impl Bounds {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let range: ExprRange = input.parse()?;
        if matches!((&range.limits, &range.end), (RangeLimits::HalfOpen(_), Some(_))) {
            return Err(Error::new(range.span(), "the end is included: `..=`"));
        }
        Ok(Self { start: range.start, end: range.end })
    }

    /// As a range of `usize`.
    fn of_lengths(&self) -> TokenStream {
        let start = self.start.as_ref().map_or_else(|| quote!(0), |start| quote!(#start));
        let end = self.end.as_ref().map_or_else(|| quote!(usize::MAX), |end| quote!(#end));
        quote!(#start..=#end)
    }

    /// As a range of `f64`.
    fn of_numbers(&self) -> TokenStream {
        let start = self.start.as_ref().map_or_else(|| quote!(f64::NEG_INFINITY), |start| quote!(#start));
        let end = self.end.as_ref().map_or_else(|| quote!(f64::INFINITY), |end| quote!(#end));
        quote!(f64::from(#start)..=f64::from(#end))
    }
}

impl Computed {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut name = input.parse::<Ident>()?.to_string();
        let is_cause = name == "cause" && input.peek(Ident);
        if is_cause {
            name = input.parse::<Ident>()?.to_string();
        }
        input.parse::<Token![:]>()?;
        let ty = input.parse()?;
        input.parse::<Token![=]>()?;
        let function = input.parse()?;
        input.parse::<Token![,]>()?;
        let doc = input.parse::<LitStr>()?.value();
        Ok(Self { name, ty, function, doc, is_cause })
    }

    fn cause(&self) -> Option<CauseField<'_>> {
        self.is_cause.then_some(CauseField(&self.name))
    }
}

fn converted(input: ParseStream<'_>) -> syn::Result<(Type, Expr)> {
    let ty = input.parse()?;
    input.parse::<Token![,]>()?;
    Ok((ty, input.parse()?))
}
