//! `--jq`: filters a document with a jq expression.

use std::{fmt, sync::Arc};

use jaq_core::{
    Compiler, Ctx, Filter, Vars,
    data::JustLut,
    load::{Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::{Val, read};
use serde_json::Value;

use crate::{exit::Failure, screen};

/// Maximum width of a value in an error message, in columns.
const MAX_ERROR_COLUMNS: usize = 120;

#[derive(Clone)]
pub struct Jq(Arc<Filter<JustLut<Val>>>);

impl fmt::Debug for Jq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jq")
    }
}

impl Jq {
    pub fn parse(code: &str) -> Result<Self, String> {
        let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let arena = Arena::default();
        let modules = Loader::new(definitions).load(&arena, File { code, path: () });
        let modules = modules.map_err(|_| format!("--jq: {code} is not a jq expression"))?;
        let filter = Compiler::default().with_funs(functions).compile(modules);
        let unknown = |errors: Vec<(_, Vec<(&str, _)>)>| {
            let names = errors.iter().flat_map(|(_, errors)| errors.iter().map(|(name, _)| *name));
            format!("--jq: unknown: {}", names.collect::<Vec<_>>().join(", "))
        };
        filter.map(|filter| Self(Arc::new(filter))).map_err(unknown)
    }

    /// Passes each result to `write`: strings raw, everything else as JSON.
    ///
    /// # Errors
    /// A usage failure when the expression fails on the document; errors of `write`.
    pub fn run(
        &self,
        document: &Value,
        mut write: impl FnMut(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let text = document.to_string();
        let input = read::parse_single(text.as_bytes());
        let input = input.map_err(|error| Failure::usage(format!("--jq: {error}")))?;
        let context = Ctx::<JustLut<Val>>::new(&self.0.lut, Vars::new([]));
        for result in self.0.id.run((context, input)).map(unwrap_valr) {
            match result {
                Ok(Val::TStr(text)) => write(&String::from_utf8_lossy(&text))?,
                Ok(other) => write(&other.to_string())?,
                Err(error) => {
                    let message = screen::fit(&screen::clean(&error.to_string()), MAX_ERROR_COLUMNS);
                    return Err(Failure::usage(format!("--jq: {message}")));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results(code: &str, document: &Value) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        let keep = |text: &str| {
            found.push(text.to_owned());
            Ok(())
        };
        Jq::parse(code)?.run(document, keep).map_err(|failure| failure.message)?;
        Ok(found)
    }

    #[test]
    fn jq_prints_strings_raw_and_other_values_as_json() {
        let page =
            json!({ "items": [{ "name": "a\tb", "n": 1 }, { "name": "ü", "n": 2.5 }], "next_cursor": null });
        assert_eq!(results(".items[].name", &page).unwrap(), ["a\tb", "ü"]);
        assert_eq!(results(".items | map(.n) | add", &page).unwrap(), ["3.5"]);
        assert_eq!(results(".items[0]", &page).unwrap(), [r#"{"n":1,"name":"a\tb"}"#]);
        assert_eq!(results("empty", &page).unwrap(), [""; 0]);
        assert_eq!(results(r#".items[] | select(.n > 1) | "\(.name) \(.n)""#, &page).unwrap(), ["ü 2.5"]);
    }

    #[test]
    fn jq_errors_are_reported() {
        let page = json!({ "items": [] });
        assert!(results(".items[", &page).unwrap_err().contains("is not a jq expression"));
        assert!(results("nonsense", &page).unwrap_err().contains("unknown: nonsense"));
        assert!(results(".items.x", &page).unwrap_err().starts_with("--jq: cannot index"));
    }
}
