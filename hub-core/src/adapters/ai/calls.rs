//! Tool calls, put together from their pieces.
//!
//! A piece belongs to the call with its id, else to the last call with its index, else to the last call. A name begins a
//! call unless the call that the piece belongs to still waits for its arguments.

use serde_json::{Map, Value};

use super::{AiFault, ToolCall, lenient_json};

/// Most tools that a model may ask for in one answer.
pub(super) const MAX_TOOL_CALLS: usize = 16;
/// Arguments of a tool that needs none.
const NO_ARGUMENTS: &str = "{}";

#[derive(Debug, Default)]
pub(super) struct Calls(Vec<PartialCall>);

#[derive(Debug, Default)]
struct PartialCall {
    call: ToolCall,
    index: Option<u64>,
    /// The list of calls in which it was last named.
    named_in: u64,
}

/// One element of `tool_calls`.
#[derive(Debug)]
struct CallDelta {
    id: String,
    index: Option<u64>,
    name: String,
    arguments: String,
    extra: Map<String, Value>,
    function_extra: Map<String, Value>,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets what came: a whole message repeats it.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes the elements of one list; `list` numbers the lists. Returns the bytes that are kept of it.
    pub(super) fn take(&mut self, calls: &Value, list: u64) -> Result<usize, AiFault> {
        let mut bytes = 0;
        for call in lenient_json::objects(Some(calls)) {
            let piece = CallDelta::read(call);
            bytes += piece.name.len() + piece.arguments.len() + piece.id.len();
            let place = match self.place(&piece, list) {
                Some(place) => place,
                None if self.0.len() == MAX_TOOL_CALLS => {
                    return Err(AiFault::not_understood("the model requested more than 16 tools"));
                }
                None => {
                    self.0.push(PartialCall::default());
                    self.0.len() - 1
                }
            };
            self.0[place].take(piece, list);
        }
        Ok(bytes)
    }

    /// The call that a piece continues; `None` when it begins one.
    fn place(&self, piece: &CallDelta, list: u64) -> Option<usize> {
        let last_where = |fits: &dyn Fn(&PartialCall) -> bool| self.0.iter().rposition(fits);
        let continues = |place: usize| self.0[place].is_continued_by(piece, list).then_some(place);
        if !piece.id.is_empty()
            && let Some(place) = last_where(&|known| {
                let same_index = piece.index.is_none() || known.index.is_none() || known.index == piece.index;
                known.call.id == piece.id && same_index
            })
        {
            return continues(place);
        }
        let by_index = piece.index.and_then(|index| last_where(&|known| known.index == Some(index)));
        // Without a name nothing begins, whatever its index is.
        let place = by_index.or_else(|| {
            self.0.len().checked_sub(1).filter(|_| piece.name.is_empty() || piece.index.is_none())
        })?;
        continues(place)
    }

    /// The calls, each with an id of its own.
    pub(super) fn finish(self) -> Result<Vec<ToolCall>, AiFault> {
        let is_empty = |call: &ToolCall| call.name.is_empty() && call.arguments.trim().is_empty();
        let mut calls: Vec<ToolCall> = Vec::new();
        for (place, PartialCall { mut call, .. }) in self.0.into_iter().enumerate() {
            if is_empty(&call) {
                continue;
            }
            if call.name.is_empty() {
                return Err(AiFault::not_understood("the model requested a tool without a name"));
            }
            if call.arguments.trim().is_empty() || call.arguments.trim() == "null" {
                NO_ARGUMENTS.clone_into(&mut call.arguments);
            }
            let mut number = place;
            while call.id.is_empty() || calls.iter().any(|other| other.id == call.id) {
                call.id = format!("call_{number}");
                number += MAX_TOOL_CALLS;
            }
            calls.push(call);
        }
        Ok(calls)
    }
}

impl CallDelta {
    fn read(call: &Map<String, Value>) -> Self {
        let nested = call.get("function").and_then(Value::as_object);
        let function = nested.unwrap_or(call);
        let arguments =
            ["arguments", "input", "parameters", "args"].iter().find_map(|name| function.get(*name));
        let arguments = match arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            // A JSON text is documented, and its value is sent.
            Some(value) => value.to_string(),
        };
        let unknown = |members: &Map<String, Value>, known: &[&str]| {
            let unknown =
                members.iter().filter(|(name, value)| !known.contains(&name.as_str()) && !value.is_null());
            unknown.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let known = ["id", "index", "type", "function", "name", "arguments", "input", "parameters", "args"];
        Self {
            id: lenient_json::text(call.get("id")).unwrap_or_default(),
            index: lenient_json::number(call.get("index")),
            name: lenient_json::text(function.get("name")).unwrap_or_default(),
            arguments,
            extra: unknown(call, &known),
            function_extra: nested.map(|members| unknown(members, &known[5..])).unwrap_or_default(),
        }
    }
}

impl PartialCall {
    /// Whether a piece with this call's id or place is more of this call.
    fn is_continued_by(&self, piece: &CallDelta, list: u64) -> bool {
        let Self { call, named_in, .. } = self;
        if piece.name.is_empty() || call.name.is_empty() {
            return true;
        }
        let begins_anew = *named_in == list || has_all_arguments(&call.arguments);
        let (has_id, same_id) = (!piece.id.is_empty(), call.id == piece.id);
        if has_id && !same_id && !call.id.is_empty() {
            // A new id with a name is a new call; some adapters make a new id for every piece of one.
            return !begins_anew && call.name == piece.name && !call.arguments.is_empty();
        }
        // Repeated as it was, it is the same call; with the same id it is another only under another name.
        if call.name == piece.name {
            return !begins_anew || (has_id && same_id && *named_in != list);
        }
        // What is left is the second half of a name.
        !begins_anew && call.arguments.is_empty() && (has_id || piece.index.is_some())
    }

    fn take(&mut self, piece: CallDelta, list: u64) {
        let call = &mut self.call;
        if call.id.is_empty() {
            call.id = piece.id;
        }
        self.index = self.index.or(piece.index);
        if !piece.name.is_empty() {
            self.named_in = list;
            // Some repeat the name with every piece, or all of it so far.
            match piece.name.strip_prefix(call.name.as_str()) {
                Some(_) => call.name = piece.name,
                None => call.name.push_str(&piece.name),
            }
        }
        // Whole arguments that are repeated are no second half.
        if !(has_all_arguments(&call.arguments) && call.arguments == piece.arguments) {
            call.arguments.push_str(&piece.arguments);
        }
        call.extra.extend(piece.extra);
        call.function_extra.extend(piece.function_extra);
    }
}

/// Whether arguments are a whole object.
fn has_all_arguments(arguments: &str) -> bool {
    arguments.trim_end().ends_with('}') && serde_json::from_str::<Map<String, Value>>(arguments).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Names, arguments and ids that come of lists of pieces.
    fn joined(lists: &[Value]) -> Vec<(String, String, String)> {
        let mut calls = Calls::default();
        for (list, pieces) in (1..).zip(lists) {
            calls.take(pieces, list).unwrap();
        }
        calls.finish().unwrap().into_iter().map(|call| (call.name, call.arguments, call.id)).collect()
    }

    fn piece(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &Value) -> Value {
        json!([{ "index": index, "id": id, "function": { "name": name, "arguments": arguments } }])
    }

    /// Id, name and arguments of each call.
    type Expected<'c> = &'c [(&'c str, &'c str, &'c str)];

    #[test]
    fn pieces_are_put_together_by_id_then_index_then_order() {
        let text = |text: &str| json!(text);
        let (a, b) = (Some("a"), Some("b"));
        let (weather, time) = (Some("weather"), Some("time"));
        let two = [("weather", "{\"x\":1}", "a"), ("time", "{\"y\":2}", "b")];
        let made = [("weather", "{\"x\":1}", "call_0"), ("time", "{\"y\":2}", "call_1")];
        let cases: Vec<(&str, Vec<Value>, Expected<'_>)> = vec![
            (
                "as documented",
                vec![
                    piece(Some(0), a, weather, &text("")),
                    piece(Some(0), None, None, &text("{\"x\"")),
                    piece(Some(0), None, None, &text(":1}")),
                    piece(Some(1), b, time, &text("{\"y\":2}")),
                ],
                &two,
            ),
            (
                "interleaved",
                vec![
                    piece(Some(0), a, weather, &text("")),
                    piece(Some(1), b, time, &text("")),
                    piece(Some(0), None, None, &text("{\"x\":")),
                    piece(Some(1), None, None, &text("{\"y\":")),
                    piece(Some(0), None, None, &text("1}")),
                    piece(Some(1), None, None, &text("2}")),
                ],
                &two,
            ),
            (
                "one index for all",
                vec![
                    piece(Some(0), a, weather, &text("")),
                    piece(Some(0), None, None, &text("{\"x\":1}")),
                    piece(Some(0), b, time, &text("")),
                    piece(Some(0), None, None, &text("{\"y\":2}")),
                ],
                &two,
            ),
            (
                "one index for all, whole",
                vec![
                    piece(Some(0), a, weather, &text("{\"x\":1}")),
                    piece(Some(0), b, time, &text("{\"y\":2}")),
                ],
                &two,
            ),
            (
                "no index",
                vec![
                    piece(None, a, weather, &text("{\"x\":")),
                    piece(None, None, None, &text("1}")),
                    piece(None, b, time, &text("{\"y\":2}")),
                ],
                &two,
            ),
            (
                "neither index nor id",
                vec![
                    piece(None, None, weather, &text("{\"x\":1}")),
                    piece(None, None, time, &text("{\"y\":")),
                    piece(None, None, None, &text("2}")),
                ],
                &made,
            ),
            (
                "id and name in every piece",
                vec![
                    piece(Some(0), a, weather, &text("{\"x\":")),
                    piece(Some(0), a, weather, &text("1}")),
                    piece(Some(1), b, time, &text("")),
                    piece(Some(1), b, time, &text("{\"y\":2}")),
                ],
                &two,
            ),
            (
                "a new id for every piece",
                vec![
                    piece(Some(0), a, weather, &text("{\"x\":")),
                    piece(Some(0), Some("a2"), None, &text("1}")),
                    piece(Some(1), b, time, &text("{\"y\":")),
                    piece(Some(1), Some("b2"), Some("time"), &text("2}")),
                ],
                &two,
            ),
            (
                "the rest under an index of its own",
                vec![
                    piece(Some(0), a, weather, &text("{\"x\":")),
                    piece(Some(5), None, None, &text("1}")),
                    piece(Some(7), b, time, &text("{\"y\":2}")),
                ],
                &two,
            ),
            (
                "one id for all",
                vec![
                    piece(Some(0), a, weather, &text("{\"x\":1}")),
                    piece(Some(1), a, time, &text("{\"y\":2}")),
                ],
                &[("weather", "{\"x\":1}", "a"), ("time", "{\"y\":2}", "call_1")],
            ),
            (
                "a name in two pieces, arguments as an object",
                vec![
                    piece(Some(0), None, Some("wea"), &Value::Null),
                    piece(Some(0), a, Some("ther"), &Value::Null),
                    piece(Some(0), None, None, &json!({ "x": 1 })),
                    piece(Some(1), b, time, &json!({ "y": 2 })),
                ],
                &two,
            ),
            (
                "one list, empty ids",
                vec![json!([
                    { "index": 0, "id": "", "function": { "name": "weather", "arguments": "" } },
                    { "index": 0, "id": "", "function": { "name": "weather", "arguments": {} } },
                    { "name": "time", "arguments": null },
                ])],
                &[("weather", "{}", "call_0"), ("weather", "{}", "call_1"), ("time", "{}", "call_2")],
            ),
            (
                "repeated whole",
                vec![
                    piece(Some(0), a, weather, &text("{\"x\":1}")),
                    piece(Some(0), a, weather, &text("{\"x\":1}")),
                    piece(Some(1), b, time, &text("{\"y\":2}")),
                ],
                &two,
            ),
            (
                "late id, index as text, an object in place of a list",
                vec![
                    json!({ "index": "0", "function": { "name": "weather" } }),
                    json!({ "index": "0", "id": "a", "function": { "arguments": "{\"x\":1}" } }),
                    json!({ "index": 1.0, "id": "b", "function": { "name": "time", "arguments": "{\"y\":2}" } }),
                    json!({ "index": 2, "id": "", "function": { "name": "", "arguments": "" } }),
                    json!(["noise", null, 7]),
                ],
                &two,
            ),
        ];
        for (case, lists, expected) in cases {
            let found = joined(&lists);
            let found: Vec<_> =
                found.iter().map(|(name, arguments, id)| (&**name, &**arguments, &**id)).collect();
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn unknown_members_are_kept() {
        let mut calls = Calls::default();
        let signature = json!({ "google": { "thought_signature": "c2ln" } });
        let call = json!([{ "id": "a", "type": "function", "extra_content": signature, "note": null,
            "function": { "name": "f", "arguments": "{}", "thought_signature": "x" } }]);
        calls.take(&call, 1).unwrap();
        let call = calls.finish().unwrap().remove(0);
        assert_eq!(
            serde_json::to_value(&call).unwrap(),
            json!({ "id": "a", "type": "function", "extra_content": signature,
                "function": { "name": "f", "arguments": "{}", "thought_signature": "x" } })
        );
    }

    #[test]
    fn too_many_calls_and_calls_without_a_name_are_refused() {
        let mut calls = Calls::default();
        for index in 0..16 {
            calls
                .take(&piece(Some(index), Some(&format!("c{index}")), Some("f"), &Value::Null), index)
                .unwrap();
        }
        assert!(calls.take(&piece(Some(16), Some("c16"), Some("f"), &Value::Null), 20).is_err());
        let mut nameless = Calls::default();
        nameless.take(&piece(Some(0), Some("a"), None, &json!("{\"x\":1}")), 1).unwrap();
        assert!(nameless.finish().is_err());
    }
}
