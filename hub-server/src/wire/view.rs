//! Objects of the document for records of hub-core.

use std::collections::BTreeMap;

use hub_core::{
    id::{self, Kind},
    secret::Secret,
    time::Timestamp,
};
use poem_openapi::types::Any;
use serde_json::Value;

use super::{Id, ShownOnce, Time};

/// A type of the document for the type `T` of hub-core. A conversion of its own because `From` has none from
/// `Option<T>` to `Option<V>` and from `Vec<T>` to `Vec<V>`.
pub trait View<T> {
    /// Converts a value.
    fn view(core: T) -> Self;
}

/// An object of the document with the conversion from a record of hub-core. A field is the record's field of the same
/// name, or the expression after `=`.
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

        impl $crate::wire::View<$record> for $name {
            fn view(core: $record) -> Self {
                core.into()
            }
        }
    };
    (@field $core:ident.$field:ident) => {
        $crate::wire::View::view($core.$field)
    };
    (@field $core:ident.$field:ident = $value:expr) => {
        $value
    };
}
pub(crate) use view;

macro_rules! same {
    ($($type:ty),*) => {
        $(impl View<$type> for $type {
            fn view(core: $type) -> Self {
                core
            }
        })*
    };
}
same!(bool, u16, u32, u64, i64, f64, String, BTreeMap<String, String>);

impl<T, V: View<T>> View<Option<T>> for Option<V> {
    fn view(core: Option<T>) -> Self {
        core.map(V::view)
    }
}

impl<T, V: View<T>> View<Vec<T>> for Vec<V> {
    fn view(core: Vec<T>) -> Self {
        core.into_iter().map(V::view).collect()
    }
}

impl<K: Kind> View<id::Id<K>> for Id<K> {
    fn view(core: id::Id<K>) -> Self {
        Self(core)
    }
}

impl View<Timestamp> for Time {
    fn view(core: Timestamp) -> Self {
        Self(core)
    }
}

impl View<Secret> for ShownOnce {
    fn view(core: Secret) -> Self {
        Self(core)
    }
}

impl View<Value> for Any<Value> {
    fn view(core: Value) -> Self {
        Self(core)
    }
}
