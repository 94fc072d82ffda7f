//! Closed lists of words: enums whose variants have the same word on the wire and in the store.

/// Declares such an enum: its words both ways (`as_str`, `parse`, `Display`, serde), as values of columns, and as a
/// schema of the OpenAPI document.
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)*
    }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ::hub_macros::Api)]
        $(#[$meta])*
        $vis enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $name {
            /// Every value, in the order of declaration.
            $vis const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// The word on the wire and in the store.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The value with this word.
            $vis fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.as_str() == word)
            }
        }

        // Not every list needs every function.
        const _: (usize, fn(&str) -> Option<$name>) = ($name::ALL.len(), $name::parse);

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <::std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&word).ok_or_else(|| ::serde::de::Error::unknown_variant(&word, &[$($word),*]))
            }
        }

        $crate::words::text_column!(
            [] $name,
            |value: &Self| value.as_str(),
            |word| Self::parse(word).ok_or_else(|| format!("unknown word `{word}`").into())
        );
    };
}

/// Stores a type as text: `text_column!([generics] Type, |value| text, |text| Result<Self, BoxDynError>)`.
macro_rules! text_column {
    ([$($generics:tt)*] $type:ty, $to_text:expr, $from_text:expr) => {
        impl<DB: ::sqlx::Database, $($generics)*> ::sqlx::Type<DB> for $type
        where
            String: ::sqlx::Type<DB>,
        {
            fn type_info() -> DB::TypeInfo {
                <String as ::sqlx::Type<DB>>::type_info()
            }

            fn compatible(found: &DB::TypeInfo) -> bool {
                <String as ::sqlx::Type<DB>>::compatible(found)
            }
        }

        impl<'q, DB: ::sqlx::Database, $($generics)*> ::sqlx::Encode<'q, DB> for $type
        where
            String: ::sqlx::Encode<'q, DB>,
        {
            fn encode_by_ref(
                &self,
                buffer: &mut DB::ArgumentBuffer,
            ) -> Result<::sqlx::encode::IsNull, ::sqlx::error::BoxDynError> {
                let to_text = $to_text;
                <String as ::sqlx::Encode<'q, DB>>::encode(to_text(self).into(), buffer)
            }
        }

        impl<'r, DB: ::sqlx::Database, $($generics)*> ::sqlx::Decode<'r, DB> for $type
        where
            &'r str: ::sqlx::Decode<'r, DB>,
        {
            fn decode(value: DB::ValueRef<'r>) -> Result<Self, ::sqlx::error::BoxDynError> {
                let from_text: fn(&str) -> Result<Self, ::sqlx::error::BoxDynError> = $from_text;
                from_text(<&str as ::sqlx::Decode<'r, DB>>::decode(value)?)
            }
        }
    };
}

pub(crate) use {text_column, words};

#[cfg(test)]
mod tests {
    words! {
        /// Sizes.
        #[derive(Hash)]
        enum Size {
            Small = "small",
            ExtraLarge = "extra-large",
        }
    }

    #[test]
    fn words_and_values_are_one_to_one() {
        for size in Size::ALL {
            assert_eq!(Size::parse(size.as_str()), Some(size));
            assert_eq!(serde_json::from_value::<Size>(serde_json::json!(size)).unwrap(), size);
        }
        assert_eq!(Size::ExtraLarge.to_string(), "extra-large");
        assert_eq!(Size::parse("Small"), None);
        let error = serde_json::from_str::<Size>("\"big\"").unwrap_err().to_string();
        assert!(error.starts_with("unknown variant `big`, expected `small` or `extra-large`"), "{error}");
    }
}
