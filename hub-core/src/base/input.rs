//! Fields of requests: changes, and the bounds that `#[derive(Api)]` reads from `chars`, `range` and `items`.

use std::{borrow::Cow, ops::RangeInclusive};

use serde::{Deserialize, Deserializer};

use crate::{error::Problems, secret::Secret};

/// A change of a value that is not shown: an absent field keeps it, `null` clears it, a value sets it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Change<T> {
    /// The field was left out.
    #[default]
    Keep,
    /// The field was `null`.
    Clear,
    /// The field had a value.
    Set(T),
}

impl<T> Change<T> {
    /// The value after the change.
    pub fn apply<'a>(&'a self, stored: Option<&'a T>) -> Option<&'a T> {
        match self {
            Self::Keep => stored,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    /// Requires `#[serde(default)]` on the field, which distinguishes an absent field from `null`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}

/// A rule of a text and the bounds of its length: the reason if a text breaks it.
pub type Rule = fn(&str, &RangeInclusive<usize>) -> Option<Cow<'static, str>>;

/// The values in a field that bounds hold for: that of an option or a change if it is there, and each of a list.
pub trait Values {
    /// `str` for texts, `f64` for numbers.
    type Value: ?Sized;

    /// Visits each value with the path of its field.
    fn each(&self, field: &str, visit: &mut dyn FnMut(&str, &Self::Value));
}

/// A list, or a list that may be absent.
pub trait Items {
    /// The number of its entries.
    fn items(&self) -> Option<usize>;
}

/// Notes a list with too few or too many entries. Returns whether there was none.
pub fn check_items(
    problems: &mut Problems,
    field: &str,
    list: &impl Items,
    bounds: &RangeInclusive<usize>,
) -> bool {
    let reason = list.items().and_then(|items| items_problem(items, bounds));
    note(problems, field, reason)
}

/// Notes the texts that break a rule.
pub fn check_texts(
    problems: &mut Problems,
    field: &str,
    texts: &impl Values<Value = str>,
    bounds: &RangeInclusive<usize>,
    rule: Rule,
) {
    texts.each(field, &mut |field, text| _ = note(problems, field, rule(text, bounds)));
}

/// Notes the numbers that are not in the range.
pub fn check_range(
    problems: &mut Problems,
    field: &str,
    numbers: &impl Values<Value = f64>,
    bounds: &RangeInclusive<f64>,
) {
    numbers.each(field, &mut |field, number| _ = note(problems, field, range_problem(*number, bounds)));
}

fn note(problems: &mut Problems, field: &str, reason: Option<Cow<'static, str>>) -> bool {
    let is_fine = reason.is_none();
    if let Some(reason) = reason {
        problems.add(field.to_owned(), reason);
    }
    is_fine
}

/// Says why a list does not have that many entries.
pub fn items_problem(items: usize, bounds: &RangeInclusive<usize>) -> Option<Cow<'static, str>> {
    (!bounds.contains(&items)).then(|| match (*bounds.start(), *bounds.end()) {
        (0, max) => format!("must have at most {max} entries").into(),
        (1, _) if items == 0 => "must not be empty".into(),
        (min, usize::MAX) => format!("must have at least {min} entries").into(),
        (min, max) => format!("must have {min} to {max} entries").into(),
    })
}

/// Says why a number is not in the range.
pub fn range_problem(number: f64, bounds: &RangeInclusive<f64>) -> Option<Cow<'static, str>> {
    (!bounds.contains(&number)).then(|| match (*bounds.start(), *bounds.end()) {
        (min, max) if min.is_finite() && max.is_finite() => format!("must be from {min} to {max}").into(),
        (min, _) if min.is_finite() => format!("must be at least {min}").into(),
        (_, max) => format!("must be at most {max}").into(),
    })
}

impl Values for String {
    type Value = str;

    fn each(&self, field: &str, visit: &mut dyn FnMut(&str, &str)) {
        visit(field, self);
    }
}

impl Values for Secret {
    type Value = str;

    fn each(&self, field: &str, visit: &mut dyn FnMut(&str, &str)) {
        visit(field, self.expose());
    }
}

impl<T> Items for Vec<T> {
    fn items(&self) -> Option<usize> {
        Some(self.len())
    }
}

impl<T: Items> Items for Option<T> {
    fn items(&self) -> Option<usize> {
        self.as_ref().and_then(T::items)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Values for $number {
            type Value = f64;

            fn each(&self, field: &str, visit: &mut dyn FnMut(&str, &f64)) {
                visit(field, &f64::from(*self));
            }
        }
    )*};
}
numbers!(u16, u32, f64);

impl Values for u64 {
    type Value = f64;

    #[expect(
        clippy::cast_precision_loss,
        reason = "bounds are exact, and a number that is rounded is beyond them"
    )]
    fn each(&self, field: &str, visit: &mut dyn FnMut(&str, &f64)) {
        visit(field, &(*self as f64));
    }
}

impl<T: Values> Values for Option<T> {
    type Value = T::Value;

    fn each(&self, field: &str, visit: &mut dyn FnMut(&str, &Self::Value)) {
        if let Some(value) = self {
            value.each(field, visit);
        }
    }
}

impl<T: Values> Values for Change<T> {
    type Value = T::Value;

    fn each(&self, field: &str, visit: &mut dyn FnMut(&str, &Self::Value)) {
        if let Self::Set(value) = self {
            value.each(field, visit);
        }
    }
}

impl<T: Values> Values for Vec<T> {
    type Value = T::Value;

    fn each(&self, field: &str, visit: &mut dyn FnMut(&str, &Self::Value)) {
        for (index, value) in self.iter().enumerate() {
            value.each(&format!("{field}[{index}]"), visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::chars_problem;

    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        secret: Change<Secret>,
    }

    #[test]
    fn left_out_null_and_value_differ() {
        let stored = Secret::from("old");
        for (text, change, after) in [
            ("{}", Change::Keep, Some("old")),
            (r#"{"secret":null}"#, Change::Clear, None),
            (r#"{"secret":"new"}"#, Change::Set(Secret::from("new")), Some("new")),
        ] {
            let body: Body = serde_json::from_str(text).unwrap();
            assert_eq!(body.secret, change);
            assert_eq!(body.secret.apply(Some(&stored)).map(Secret::expose), after);
        }
        assert!(serde_json::from_str::<Body>(r#"{"secret":1}"#).is_err());
    }

    #[test]
    fn a_bound_holds_for_what_is_there() {
        let noted = |check: &dyn Fn(&mut Problems)| {
            let mut problems = Problems::default();
            check(&mut problems);
            problems.finish().err().map(|error| error.to_string()).unwrap_or_default()
        };
        let text = |text: &str| text.to_owned();
        for (value, reason) in [
            (Change::Set(text("")), "INVALID_PARAMS: name must not be empty"),
            (Change::Set(text("äöü")), ""),
            (Change::Set(text("abcd")), "INVALID_PARAMS: name must be at most 3 characters"),
            (Change::Keep, ""),
            (Change::Clear, ""),
        ] {
            assert_eq!(
                noted(&|problems| check_texts(problems, "name", &value, &(1..=3), chars_problem)),
                reason
            );
        }
        let list = vec![Some(1_u32), None, Some(9)];
        let reason = "INVALID_PARAMS: list[2] must be from 1 to 8";
        assert_eq!(noted(&|problems| check_range(problems, "list", &list, &(1.0..=8.0))), reason);
        for (bounds, reason) in [
            (0..=2, "INVALID_PARAMS: list must have at most 2 entries"),
            (4..=5, "INVALID_PARAMS: list must have 4 to 5 entries"),
            (1..=3, ""),
        ] {
            assert_eq!(noted(&|problems| _ = check_items(problems, "list", &list, &bounds)), reason);
        }
        assert_eq!(items_problem(0, &(1..=20)).unwrap(), "must not be empty");
    }
}
