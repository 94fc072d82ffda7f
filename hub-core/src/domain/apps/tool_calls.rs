//! Tools of installed apps as a model sees them: names, descriptions and parameters. `delivery` calls them.
//!
//! Requires the scope `message:read`: a call reveals to the app what a person wants from the bot, like a command that
//! the person types, and an app that may not read messages gets neither. `tools:write` allows changes to the list of
//! tools. The model, not the app, sends the result of a tool; a file in the result is sent by the app and requires
//! `message:write`.

use std::fmt::Write;

use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{AppScope, AppTool};
use crate::{
    ai::Tool,
    id::{AppEventId, DeliveryId, InstallationId},
    model::app::Toolbox,
};

/// Longest name of a function, by the rules of OpenAI's API.
const MAX_NAME: usize = 64;
/// Longest description that a model reads, in bytes: an app wrote it, and it was not reviewed.
const MAX_DESCRIPTION: usize = 1024;
/// Most that all tools of a bot may take of a prompt, as JSON in bytes; further ones are left out.
const MAX_OFFERED: usize = 64 * 1024;
/// Longest arguments, in bytes.
const MAX_ARGUMENTS: usize = 64 * 1024;
/// Longest sentence about wrong arguments, in characters: it may repeat a piece of them.
const MAX_PROBLEM: usize = 300;

/// Returns the tools of a bot's apps for a model, in the order of installation, up to [`MAX_OFFERED`] bytes.
pub(crate) fn offered(apps: &[Toolbox]) -> Vec<Tool> {
    let mut room = MAX_OFFERED;
    let functions = callable(apps).map(|(of, tool)| Tool::Function {
        name: function_name(of.app.installation_id, &tool.name),
        description: description(of, tool),
        parameters: parameters(tool),
    });
    functions
        .filter(|function| {
            let size = crate::text::json(function).len();
            let fits = size <= room;
            room -= if fits { size } else { 0 };
            fits
        })
        .collect()
}

/// The tool behind the name of a function.
pub(crate) fn find<'a>(apps: &'a [Toolbox], name: &str) -> Option<(&'a Toolbox, &'a AppTool)> {
    callable(apps).find(|(of, tool)| function_name(of.app.installation_id, &tool.name) == name)
}

fn callable(apps: &[Toolbox]) -> impl Iterator<Item = (&Toolbox, &AppTool)> {
    let apps = apps.iter().filter(|of| of.app.scopes.has(AppScope::MessageRead));
    apps.flat_map(|of| of.tools.iter().map(move |tool| (of, tool)))
}

/// `<installation id>__<tool>`. A name that has no room behind the id keeps its beginning, and an end that makes it
/// unlike others with the same beginning.
fn function_name(installation: InstallationId, tool: &str) -> String {
    let mut name = format!("{installation}__");
    if name.len() + tool.len() <= MAX_NAME {
        name.push_str(tool);
    } else {
        let end = HEXLOWER.encode(&Sha256::digest(tool)[..4]);
        let room = MAX_NAME - name.len() - 1 - end.len();
        let _ = write!(name, "{}_{end}", &tool[..tool.floor_char_boundary(room)]);
    }
    name
}

/// The app's name and its words, on lines without control characters.
fn description(of: &Toolbox, tool: &AppTool) -> String {
    let text = format!("[{}] {}", of.app_name, tool.description);
    let mut text: String = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    text.truncate(text.floor_char_boundary(MAX_DESCRIPTION));
    text.trim_end().to_owned()
}

/// The schema as models want it: always of an object, with its properties named.
fn parameters(tool: &AppTool) -> Value {
    let mut schema = match &tool.parameters {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

/// Parses the arguments that a model wrote for a tool and validates them against the tool's schema. CPU-bound: call
/// it off the async threads.
///
/// # Errors
/// A sentence for the model, which may try again.
pub(crate) fn arguments(tool: &AppTool, text: &str) -> Result<Value, String> {
    if text.len() > MAX_ARGUMENTS {
        return Err(format!("the arguments are longer than {MAX_ARGUMENTS} bytes"));
    }
    // Models write nothing where a tool takes nothing.
    let text = if text.trim().is_empty() { "{}" } else { text };
    let arguments: Value =
        serde_json::from_str(text).map_err(|error| format!("the arguments are no JSON: {error}"))?;
    if !arguments.is_object() {
        return Err("the arguments must be a JSON object".to_owned());
    }
    let Some(schema) = &tool.parameters else { return Ok(arguments) };
    // It was compiled when it was stored.
    let schema = jsonschema::validator_for(schema).map_err(|_| "the tool's schema is broken".to_owned())?;
    if let Err(error) = schema.validate(&arguments) {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the arguments".to_owned() } else { place };
        let problem = format!("wrong arguments: {place}: {error}");
        return Err(problem.chars().take(MAX_PROBLEM).collect());
    }
    Ok(arguments)
}

/// The id of a call's event. A repeat of the same call, after a crash or after a failure of the model, has the same
/// id, by which the app knows it; another question in the same place has another.
pub(crate) fn event_id(
    (delivery, place): (DeliveryId, u32),
    of: InstallationId,
    tool: &str,
    arguments: &Value,
) -> AppEventId {
    let call = format!("{delivery} {place} {of} {tool} {arguments}");
    let digest = Sha256::digest(call);
    let random = digest[..10].iter().fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
    // The time of the delivery, so that it is in the right place in the log.
    AppEventId::from_u128(((delivery.as_u128() >> 80) << 80) | random)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::AppActor,
        apps::AppScopes,
        id::Id,
        secret::{KeyMark, Sealed},
    };

    fn tool(name: &str, parameters: Option<Value>) -> AppTool {
        AppTool { name: name.to_owned(), description: format!("does {name}"), command: None, parameters }
    }

    fn toolbox(number: u128, tools: Vec<AppTool>) -> Toolbox {
        Toolbox {
            app: AppActor {
                installation_id: Id::from_u128(number),
                app_id: Id::from_u128(number),
                bot_id: Id::from_u128(1),
                owner_id: Id::from_u128(1),
                is_own: true,
                scopes: AppScopes::default().with(AppScope::MessageRead),
                token: KeyMark::default(),
            },
            app_name: "Weather".to_owned(),
            webhook_url: "https://app.example".to_owned(),
            webhook_secret: Sealed::from(String::new()),
            tools,
        }
    }

    fn names(tools: &[Tool]) -> Vec<&str> {
        tools.iter().map(|Tool::Function { name, .. }| name.as_str()).collect()
    }

    #[test]
    fn every_tool_has_a_name_that_models_take_and_is_found_by_it() {
        let long = "a".repeat(64);
        let other = format!("{}b", "a".repeat(63));
        let apps = [
            toolbox(1, vec![tool("weather", None), tool(&long, None)]),
            toolbox(2, vec![tool("weather", None), tool(&other, None), tool(&"b".repeat(32), None)]),
        ];
        let offered = offered(&apps);
        let names = names(&offered);
        assert_eq!(names[0], "ins_00000000000000000000000001__weather");
        assert_eq!(names[4].len(), 64);
        let mut unlike = names.clone();
        unlike.sort_unstable();
        unlike.dedup();
        assert_eq!(unlike.len(), 5, "{names:?}");
        for name in &names {
            let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
            assert!(name.len() <= 64 && name.bytes().all(allowed), "{name}");
        }
        let found: Vec<_> = names.iter().map(|name| find(&apps, name).unwrap()).collect();
        assert_eq!(found[1].1.name, long);
        assert_eq!((found[3].0.app.installation_id, &*found[3].1.name), (Id::from_u128(2), &*other));
        for unknown in ["weather", "ins_00000000000000000000000003__weather", "__weather", ""] {
            assert!(find(&apps, unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn an_app_without_the_read_scope_offers_no_tools() {
        let mut app = toolbox(1, vec![tool("weather", None)]);
        app.app.scopes = AppScopes::parse(["message:write", "tools:write"]).unwrap();
        let name = function_name(app.app.installation_id, "weather");
        assert!(offered(std::slice::from_ref(&app)).is_empty() && find(&[app], &name).is_none());
    }

    #[test]
    fn a_tool_of_the_installation_replaces_the_tool_of_the_app() {
        let own = AppTool { description: "of this bot".to_owned(), ..tool("weather", None) };
        let tools = Toolbox::merged(vec![tool("news", None), tool("weather", None)], vec![own]);
        let offered: Vec<_> = tools.iter().map(|tool| (&*tool.name, &*tool.description)).collect();
        assert_eq!(offered, [("news", "does news"), ("weather", "of this bot")]);
    }

    #[test]
    fn texts_of_apps_are_bounded() {
        let loud = AppTool { description: format!("say\u{7}\n{}", "好".repeat(1000)), ..tool("loud", None) };
        let [Tool::Function { description, .. }] = &offered(&[toolbox(1, vec![loud])])[..] else { panic!() };
        assert!(description.starts_with("[Weather] say \n好") && description.len() <= MAX_DESCRIPTION);
        let title = "x".repeat(16 * 1000);
        let large = (0..5).map(|n| tool(&format!("large{n}"), Some(json!({ "title": title })))).collect();
        let apps = [toolbox(1, large), toolbox(2, vec![tool("small", None)])];
        let offered = offered(&apps);
        assert_eq!(offered.len(), 5, "four of the large ones have room, and behind them the small one");
        assert!(crate::text::json(&offered).len() <= MAX_OFFERED + 100);
        assert!(names(&offered)[4].ends_with("__small"));
    }

    #[test]
    fn a_tool_schema_is_offered_as_an_object_schema() {
        assert_eq!(parameters(&tool("a", None)), json!({ "type": "object", "properties": {} }));
        let given = json!({ "required": ["x"], "properties": { "x": {} } });
        let expected = json!({ "type": "object", "required": ["x"], "properties": { "x": {} } });
        assert_eq!(parameters(&tool("a", Some(given))), expected);
    }

    #[test]
    fn arguments_are_validated_against_the_schema() {
        let city = tool(
            "weather",
            Some(json!({ "type": "object", "properties": { "city": { "type": "string", "maxLength": 20 } },
                "required": ["city"], "additionalProperties": false })),
        );
        assert_eq!(arguments(&city, r#"{"city":"Paris"}"#).unwrap(), json!({ "city": "Paris" }));
        for (text, part) in [
            ("", "required"),
            ("{}", "\"city\" is a required property"),
            (r#"{"city":7}"#, "/city: 7 is not of type \"string\""),
            (r#"{"city":"Paris","when":1}"#, "when"),
            (r#"{"city":"Paris"#, "no JSON"),
            ("[]", "must be a JSON object"),
            ("null", "must be a JSON object"),
        ] {
            let problem = arguments(&city, text).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
        let long = arguments(&city, &json!({ "city": "x".repeat(10_000) }).to_string()).unwrap_err();
        assert!(long.chars().count() <= MAX_PROBLEM);
        assert!(arguments(&city, &" ".repeat(MAX_ARGUMENTS + 1)).is_err());
        assert_eq!(arguments(&tool("free", None), "").unwrap(), json!({}));
    }

    #[test]
    fn equal_calls_have_equal_ids_and_others_do_not() {
        let delivery = DeliveryId::from_u128((0x0192_0000_0000 << 80) | 7);
        let (of, arguments) = (Id::from_u128(1), json!({ "city": "Paris" }));
        let id = event_id((delivery, 0), of, "weather", &arguments);
        assert_eq!(event_id((delivery, 0), of, "weather", &arguments), id);
        assert_eq!(id.as_u128() >> 80, 0x0192_0000_0000);
        for other in [
            event_id((delivery, 1), of, "weather", &arguments),
            event_id((DeliveryId::from_u128(8), 0), of, "weather", &arguments),
            event_id((delivery, 0), Id::from_u128(2), "weather", &arguments),
            event_id((delivery, 0), of, "news", &arguments),
            event_id((delivery, 0), of, "weather", &json!({})),
        ] {
            assert_ne!(other, id);
        }
    }
}
