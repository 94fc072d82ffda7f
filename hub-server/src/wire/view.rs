//! Objects of the document that differ from the record of hub-core.

/// An object of the document with the conversion from a record of hub-core. A field is converted from the record's field
/// of the same name, or is the expression after `=`.
macro_rules! view {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident from $core:ident: $record:ty {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(= $value:expr)?),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl From<$record> for $name {
            fn from($core: $record) -> Self {
                Self { $($field: $crate::wire::view!(@field $core.$field $(= $value)?),)* }
            }
        }
    };
    (@field $core:ident.$field:ident) => {
        $core.$field.into()
    };
    (@field $core:ident.$field:ident = $value:expr) => {
        $value
    };
}
pub(crate) use view;
