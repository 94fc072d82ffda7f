//! Enumerations of the document for those of hub-core.

/// A named enumeration of the document for one of hub-core, with the conversions both ways.
macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident = $core:path { $($(#[$variant_doc:meta])* $variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, poem_openapi::Enum)]
        #[oai(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl From<$core> for $name {
            fn from(value: $core) -> Self {
                use $core as Core;
                match value {
                    $(Core::$variant => Self::$variant,)*
                }
            }
        }

        impl $crate::wire::View<$core> for $name {
            fn view(core: $core) -> Self {
                core.into()
            }
        }

        impl From<$name> for $core {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$variant => Self::$variant,)*
                }
            }
        }
    };
}

pub(crate) use enumeration;
