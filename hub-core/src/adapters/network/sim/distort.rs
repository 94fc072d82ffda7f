//! Effects of faults on answers.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use super::faults::{Action, IdForm, status_code};
use crate::{
    local_http::Cut,
    network::server::{Call, Endpoint, Reply},
};

/// Page that a gateway returns instead of JSON.
const PAGE: &str =
    "<!DOCTYPE html>\n<html><head><title>Gateway</title></head><body><h1>Try later</h1></body></html>\n";

/// Returns the distorted answer; the right one for actions that do something else.
pub(super) fn distort(action: &Action, call: &Call, reply: Reply) -> Result<Reply, Cut> {
    Ok(match action {
        Action::Cut { .. } => return Err(Cut),
        Action::Status { status, body, headers, .. } => {
            Reply { status: status_code(*status), headers: to_headers(headers), body: body.clone().into() }
        }
        Action::Html { status, .. } => Reply::html(status_code(*status), PAGE),
        Action::Empty { .. } => Reply::raw_json(String::new()),
        Action::Error { ret, errcode, errmsg, .. } => {
            let mut answer = json!({"ret": ret, "errcode": errcode, "errmsg": errmsg});
            if let Some(fields) = answer.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
            Reply::json(&answer)
        }
        Action::Truncate => {
            let half = reply.body.len() / 2;
            Reply { body: reply.body.slice(..half), ..reply }
        }
        Action::Patch { set, remove, remove_headers } => {
            let mut reply = edit(reply, |answer| {
                answer.retain(|name, _| !remove.contains(name));
                answer.extend(set.clone());
            });
            let removed = |name: &HeaderName| remove_headers.iter().any(|gone| name == gone.as_str());
            reply.headers.retain(|(name, _)| !removed(name));
            reply
        }
        Action::FreezeCursor => edit(reply, |answer| {
            answer.insert("get_updates_buf".into(), json!(call.text("get_updates_buf")));
        }),
        Action::Reorder => edit_messages(reply, |messages| messages.reverse()),
        Action::Ids { form } if call.endpoint == Endpoint::GetUpdates => {
            edit_messages(reply, |messages| messages.iter_mut().for_each(|message| write_ids(message, *form)))
        }
        Action::Ids { form } => edit(reply, |answer| {
            if let Some(id) = answer.get_mut("message_id") {
                write_id(id, *form);
            }
        }),
        Action::Unknown => edit_messages(reply, |messages| messages.iter_mut().for_each(add_unknown)),
        Action::Pass
        | Action::Repeat { .. }
        | Action::Expire { .. }
        | Action::RateLimit { .. }
        | Action::Shadow { .. } => reply,
    })
}

/// The messages of an answer of `getupdates`.
pub(super) fn messages_of(reply: &Reply) -> Vec<Value> {
    let answer: Map<String, Value> = serde_json::from_slice(&reply.body).unwrap_or_default();
    answer.get("msgs").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Changes the fields of a JSON answer; other answers stay as they are.
fn edit(reply: Reply, change: impl FnOnce(&mut Map<String, Value>)) -> Reply {
    let Ok(mut answer) = serde_json::from_slice::<Map<String, Value>>(&reply.body) else { return reply };
    change(&mut answer);
    Reply { body: Value::Object(answer).to_string().into(), ..reply }
}

fn edit_messages(reply: Reply, change: impl FnOnce(&mut Vec<Value>)) -> Reply {
    edit(reply, |answer| {
        if let Some(messages) = answer.get_mut("msgs").and_then(Value::as_array_mut) {
            change(messages);
        }
    })
}

/// Writes every id of a message in one form: its own, those of its items and of what they quote.
fn write_ids(value: &mut Value, form: IdForm) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| write_ids(value, form)),
        Value::Object(fields) => {
            for (name, value) in fields {
                if matches!(name.as_str(), "message_id" | "msg_id" | "svr_id") {
                    write_id(value, form);
                } else {
                    write_ids(value, form);
                }
            }
        }
        _ => {}
    }
}

fn write_id(id: &mut Value, form: IdForm) {
    let number = id.as_u64().or_else(|| id.as_str().and_then(|text| text.parse().ok()));
    if let Some(number) = number {
        *id = match form {
            IdForm::String => json!(number.to_string()),
            IdForm::Number => json!(number),
        };
    }
}

fn add_unknown(message: &mut Value) {
    message["unknown_field"] = json!({"nested": [1, "two", null]});
    if let Some(items) = message.get_mut("item_list").and_then(Value::as_array_mut) {
        items.push(json!({"type": 99, "something_item": {"x": 1}, "button_item_list": []}));
    }
}

/// The headers of a checked fault.
fn to_headers(headers: &BTreeMap<String, String>) -> Vec<(HeaderName, HeaderValue)> {
    let parse = |(name, value): (&String, &String)| {
        Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?))
    };
    headers.iter().filter_map(parse).collect()
}
