//! Tools of apps: people call them with a command, models with arguments.

use serde_json::Value;

use crate::{
    error::{Error, Problems, Result},
    model::app::AppTool,
    text,
};

/// Tools of one app, and of one installation.
pub const MAX_TOOLS: usize = 50;
/// Longest schema of a tool's arguments, as JSON in bytes.
const MAX_SCHEMA: usize = 16 * 1024;
/// Longest description, in bytes.
const MAX_DESCRIPTION: usize = 1024;
/// Longest command, in characters.
const MAX_COMMAND: usize = 32;

/// Reads the list of an app's tools: commands lose their slash.
///
/// # Errors
/// `INVALID_PARAMS` with every bad field. Compiling schemas takes a while: call it off the async threads.
pub(super) fn checked(mut tools: Vec<AppTool>) -> Result<Vec<AppTool>> {
    let mut problems = Problems::default();
    tools.truncate(MAX_TOOLS);
    for at in 0..tools.len() {
        let (before, tool) = tools.split_at_mut(at);
        let tool = &mut tool[0];
        tool.command = tool.command.take().map(|command| command.trim_start_matches('/').to_lowercase());
        if let Err(error) = check(tool, before) {
            problems.merge(&format!("tools[{at}]"), &error);
        }
    }
    problems.finish()?;
    Ok(tools)
}

fn check(tool: &AppTool, before: &[AppTool]) -> Result<()> {
    let mut problems = Problems::default();
    let is_name = (1..=64).contains(&tool.name.len())
        && tool.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    problems.check(is_name, "name", "must be 1 to 64 of letters, digits, _ and -");
    problems.check(before.iter().all(|other| other.name != tool.name), "name", "is there twice");
    text::check_body(&mut problems, "description", &tool.description, MAX_DESCRIPTION);
    if let Some(command) = &tool.command {
        text::check_name(&mut problems, "command", command, 1..=MAX_COMMAND);
        let is_word = !command.chars().any(|c| c.is_whitespace() || matches!(c, '/' | '@' | '＠'));
        problems.check(is_word, "command", "must be one word without / and @");
        let is_new = before.iter().all(|other| other.command.as_ref() != Some(command));
        problems.check(is_new, "command", "is there twice");
    }
    if let Some(Err(error)) = tool.parameters.as_ref().map(check_schema) {
        problems.add("parameters", error.message().to_owned());
    }
    problems.finish()
}

fn check_schema(schema: &Value) -> Result<()> {
    let refused = |reason: String| Err(Error::new(crate::ErrorCode::InvalidParams, reason));
    if !schema.is_object() {
        return refused("must be an object".to_owned());
    }
    if schema.to_string().len() > MAX_SCHEMA {
        return refused(format!("must be at most {MAX_SCHEMA} bytes of JSON"));
    }
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return refused("must be the schema of an object".to_owned());
    }
    match jsonschema::validator_for(schema) {
        Ok(_) => Ok(()),
        // The message may repeat a piece of the schema, which is the caller's own.
        Err(error) => {
            let reason: String = error.to_string().chars().take(200).collect();
            refused(format!("is not a JSON Schema: {reason}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(tools: Value) -> Vec<String> {
        let tools = serde_json::from_value(tools).unwrap();
        let error = checked(tools).unwrap_err();
        error.details().iter().map(|detail| detail.field.to_string()).collect()
    }

    #[test]
    fn tools_are_read_and_commands_lose_their_slash() {
        let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } },
            "required": ["city"], "additionalProperties": false });
        let tools = json!([{ "name": "weather", "command": "/Weather", "parameters": schema },
            { "name": "说", "command": "天气" }, { "name": "plain", "description": "for models" }]);
        assert_eq!(fields(tools.clone()), ["tools[1].name"]);
        let mut tools: Vec<AppTool> = serde_json::from_value(tools).unwrap();
        tools.remove(1);
        let tools = checked(tools).unwrap();
        assert_eq!(tools[0].command.as_deref(), Some("weather"));
        assert_eq!(tools[1].command, None);
    }

    #[test]
    fn bad_tools_are_refused_by_field() {
        for (tool, field) in [
            (json!({ "name": "" }), "name"),
            (json!({ "name": "a b" }), "name"),
            (json!({ "name": "a", "command": "two words" }), "command"),
            (json!({ "name": "a", "command": "/" }), "command"),
            (json!({ "name": "a", "command": "a/b" }), "command"),
            (json!({ "name": "a", "parameters": true }), "parameters"),
            (json!({ "name": "a", "parameters": { "type": "string" } }), "parameters"),
            (json!({ "name": "a", "parameters": { "type": 7 } }), "parameters"),
            (json!({ "name": "a", "parameters": { "properties": [] } }), "parameters"),
            (
                json!({ "name": "a", "parameters": { "properties": { "x": { "pattern": "(" } } } }),
                "parameters",
            ),
            // Nothing is fetched to read a schema.
            (json!({ "name": "a", "parameters": { "$ref": "http://127.0.0.1:1/schema" } }), "parameters"),
            (json!({ "name": "a", "parameters": { "$ref": "file:///etc/passwd" } }), "parameters"),
            (json!({ "name": "a", "parameters": { "title": "x".repeat(MAX_SCHEMA) } }), "parameters"),
        ] {
            assert_eq!(fields(json!([tool])), [format!("tools[0].{field}")], "{tool}");
        }
        let twice = json!([{ "name": "a", "command": "x" }, { "name": "a", "command": "/X" }]);
        assert_eq!(fields(twice), ["tools[1].name", "tools[1].command"]);
    }
}
