//! The field with the cause that a sentence states.

use proc_macro2::TokenStream;
use quote::quote;

/// The field with the cause that a sentence states, next to it.
pub(super) struct CauseField<'a>(pub &'a str);

impl CauseField<'_> {
    fn name(&self) -> String {
        format!("{}_cause", self.0)
    }

    pub fn described(&self) -> TokenStream {
        let (name, text) = (
            self.name(),
            format!("The cause that `{}` states, with its values; absent without a text.", self.0),
        );
        quote!(::hub_core::openapi::Field::new::<Option<::hub_core::traces::Cause>>(#name, #text),)
    }

    /// The statement that writes it to `object`, of the sentence that the expression borrows.
    pub fn written(&self, sentence: &TokenStream) -> TokenStream {
        let name = self.name();
        quote! {
            ::hub_core::openapi::write(object, #name, &::hub_core::traces::Sentence::cause(#sentence));
        }
    }
}
