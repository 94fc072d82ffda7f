//! Conversion of thrown values to [`ScriptError`], with as little of the author's code run as possible.

use rquickjs::{Ctx, Error, Function, Object, Value};

use super::{
    super::hook::{ErrorKind, MAX_ERROR_TEXT, ScriptError},
    program::PLUGIN,
};

/// Message for `throw null`.
pub(super) const NULL: &str = "null was thrown";

/// Reads the pending exception. `kind` applies unless the exception implies another one; `describe` formats thrown
/// values that are not errors.
pub(super) fn read<'js>(
    ctx: &Ctx<'js>,
    error: &Error,
    kind: ErrorKind,
    describe: Option<&Function<'js>>,
) -> ScriptError {
    match error {
        Error::Exception => thrown(&ctx.catch(), kind, describe),
        Error::Allocation => ScriptError::new(ErrorKind::Memory, "out of memory"),
        Error::InvalidString(_) => ScriptError::new(kind, "there is a NUL character in it"),
        // Names of types, never addresses.
        other => ScriptError::new(kind, cut(other.to_string())),
    }
}

fn thrown<'js>(value: &Value<'js>, kind: ErrorKind, describe: Option<&Function<'js>>) -> ScriptError {
    if value.is_null() {
        return ScriptError::new(kind, NULL);
    }
    let Some(object) = value.as_object().filter(|_| value.is_error()) else {
        let described = describe.and_then(|describe| describe.call::<_, String>((value.clone(),)).ok());
        let what = described.map_or_else(
            || "a value that is not an Error was thrown".to_owned(),
            |described| format!("thrown: {described}"),
        );
        return ScriptError::new(kind, cut(what));
    };
    let name = property(object, "name").unwrap_or_else(|| "Error".to_owned());
    let said = property(object, "message").unwrap_or_default();
    let stack = property(object, "stack").map(|stack| cut(stack.trim_end().to_owned()));
    let kind = match (name.as_str(), said.as_str()) {
        ("InternalError", "out of memory") => ErrorKind::Memory,
        ("RangeError", said) if said.starts_with("Maximum call stack") => ErrorKind::Stack,
        _ => kind,
    };
    let at = stack.as_deref().and_then(position);
    let message = if said.is_empty() { name } else { format!("{name}: {said}") };
    ScriptError {
        kind,
        message: cut(message),
        line: at.map(|(line, _)| line),
        column: at.map(|(_, column)| column),
        stack: stack.filter(|stack| !stack.is_empty()),
    }
}

/// Reads a string property. A string with a lone surrogate is replaced by a note.
fn property(object: &Object<'_>, name: &str) -> Option<String> {
    let value: Value = object.get(name).ok().or_else(|| {
        object.ctx().catch();
        None
    })?;
    let text = value.as_string()?.to_string();
    text.ok().or_else(|| Some("(text with a lone surrogate)".to_owned()))
}

/// Line and column of the topmost stack frame in the author's file.
fn position(stack: &str) -> Option<(u32, u32)> {
    stack.lines().find_map(|frame| {
        let (_, place) = frame.split_once(PLUGIN)?;
        let mut numbers = place.trim_start_matches(':').split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    })
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_ERROR_TEXT));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topmost_place_in_the_authors_file_counts() {
        let stack =
            "    at parse (native)\n    at inner (plugin.js:12:7)\n    at onRequest (plugin.js:3:1)\n";
        assert_eq!(position(stack), Some((12, 7)));
        assert_eq!(position("    at plugin.js:4:2"), Some((4, 2)));
        assert_eq!(position("    at begin (prelude.js:4:2)"), None);
        assert_eq!(position(""), None);
    }
}
