//! The names of the fields of a command's JSON document: those of an operation of the API, as its schema lists them,
//! and the command's own.

use clap::builder::CommandExt;

/// Names of fields, as a command declares them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields {
    operation: Option<&'static str>,
    list: &'static str,
    own: &'static [&'static str],
    absent: &'static [&'static str],
}

impl CommandExt for Fields {}

impl Fields {
    /// Those of the data of an operation's response, or of the items when that is a page.
    pub const fn of(operation: &'static str) -> Self {
        Self { operation: Some(operation), list: "items", own: &[], absent: &[] }
    }

    /// Those of a document that no operation responds with.
    pub const fn own(own: &'static [&'static str]) -> Self {
        Self { operation: None, list: "", own, absent: &[] }
    }

    /// Those of the items of a list in the data of an operation's response.
    pub const fn of_list(operation: &'static str, list: &'static str) -> Self {
        Self { list, ..Self::of(operation) }
    }

    /// The same, and further ones that the command adds.
    #[must_use]
    pub const fn and(self, own: &'static [&'static str]) -> Self {
        Self { own, ..self }
    }

    /// The same without those that the command does not request.
    #[must_use]
    pub const fn without(self, absent: &'static [&'static str]) -> Self {
        Self { absent, ..self }
    }

    /// The names, in the order of the document.
    pub fn names(self) -> Vec<&'static str> {
        let of_operation = |operation| hub_server::openapi::fields(operation, self.list);
        let mut names = self.operation.map(of_operation).unwrap_or_default();
        names.retain(|name| !self.absent.contains(name));
        names.extend(self.own);
        names
    }
}
