//! `traces diff`: compares two traces.

use std::collections::BTreeMap;

use hub_core::{
    plugins::diff::{laid_out, unified},
    replay::{RecordedRequest, RecordedResponse, Recording},
    sandbox::{Body, PluginRequest},
};
use serde_json::{Value, json, value::RawValue};

use super::recording;
use crate::{
    args::TracesDiffArgs,
    commands::{plugins::run::changes, recordings::trace_id},
    context::Context,
    exit::Failure,
    printer::{Printer, Tone},
    screen,
};

/// Headers that differ in every delivery.
const VOLATILE_HEADERS: [&str; 3] = ["webhook-id", "webhook-timestamp", "x-hub-attempt"];

pub async fn run(args: TracesDiffArgs, cx: &Context) -> Result<(), Failure> {
    let (before, after) = (trace_id(&args.before)?, trace_id(&args.after)?);
    let client = cx.hub(&args.hub).await?;
    let (before, after) = (recording(&client, before).await?, recording(&client, after).await?);
    let compared = Compared::of(&before, &after);
    cx.printer.one(compared.document(), &compared.text(&cx.printer))
}

struct Compared {
    ids: [String; 2],
    status: [&'static str; 2],
    requests: [Option<PluginRequest>; 2],
    responses: [Option<RecordedResponse>; 2],
    /// Unified differences, empty when there is none.
    request: String,
    response: String,
    steps: String,
}

impl Compared {
    fn of(before: &Recording, after: &Recording) -> Self {
        let both = [before, after];
        let requests = both.map(|recording| recording.request().map(request));
        let responses = both.map(Recording::response);
        let [a, b] =
            [&requests[0], &requests[1]].map(|request| request.as_ref().map(written).unwrap_or_default());
        let answer = |response: &Option<RecordedResponse>| {
            let written =
                response.as_ref().map(|answer| format!("{}\n{}\n", answer.status, laid_out(&answer.body)));
            written.unwrap_or_default()
        };
        Self {
            ids: both.map(|recording| recording.trace.trace_id.to_string()),
            status: both.map(|recording| recording.trace.status.as_str()),
            request: unified(&a, &b),
            response: unified(&answer(&responses[0]), &answer(&responses[1])),
            steps: unified(&steps(before), &steps(after)),
            requests,
            responses,
        }
    }

    fn is_same(&self) -> bool {
        self.status[0] == self.status[1]
            && [&self.request, &self.response, &self.steps].iter().all(|text| text.is_empty())
    }

    fn document(&self) -> Value {
        let shown = |text: &String| if text.is_empty() { Value::Null } else { json!(text) };
        json!({
            "before": self.ids[0], "after": self.ids[1], "same": self.is_same(), "status": self.status,
            "request": shown(&self.request), "response": shown(&self.response), "steps": shown(&self.steps),
        })
    }

    fn text(&self, printer: &Printer) -> String {
        let mut lines = Vec::new();
        let [before, after] = self.status;
        let status = if before == after { before.to_owned() } else { format!("{before} → {after}") };
        lines.push(format!("{}  {status}", printer.paint("status  ", Tone::Strong)));
        lines.push(printer.paint("request", Tone::Strong));
        match &self.requests {
            [Some(before), Some(after)] => lines.extend(changes(before, after, printer)),
            [None, None] => lines.push("  none".to_owned()),
            [Some(_), None] => lines.push("  only the first".to_owned()),
            [None, Some(_)] => lines.push("  only the second".to_owned()),
        }
        lines.push(printer.paint("answer", Tone::Strong));
        match &self.responses {
            [Some(before), Some(_)] if self.response.is_empty() => {
                lines.push(format!("  {} {}", before.status, printer.paint("as it was", Tone::Faint)));
            }
            [None, None] => lines.push("  none".to_owned()),
            _ => lines.extend(indented(&self.response, printer)),
        }
        lines.push(printer.paint("steps", Tone::Strong));
        if self.steps.is_empty() {
            lines.push(format!("  {}", printer.paint("as they were", Tone::Faint)));
        }
        lines.extend(indented(&self.steps, printer));
        lines.join("\n")
    }
}

fn indented(text: &str, printer: &Printer) -> Vec<String> {
    text.lines().map(|line| format!("  {}", printer.paint_diff(line))).collect()
}

/// A recorded request in the form of the view of plugins' changes.
fn request(recorded: RecordedRequest) -> PluginRequest {
    let mut headers = BTreeMap::new();
    for (name, value) in &recorded.headers {
        if !VOLATILE_HEADERS.contains(&name.as_str()) {
            headers.insert(name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned());
        }
    }
    headers.extend(recorded.masked.into_iter().map(|name| (name, "***".to_owned())));
    let body = match RawValue::from_string(recorded.body.clone()) {
        Ok(json) => Body::Json(json),
        Err(_) => Body::Text(recorded.body),
    };
    PluginRequest { url: recorded.url, method: recorded.method.to_string(), headers, body }
}

fn written(request: &PluginRequest) -> String {
    let mut lines = vec![format!("{} {}", request.method, request.url)];
    lines.extend(request.headers.iter().map(|(name, value)| format!("{name}: {value}")));
    format!("{}\n\n{}\n", lines.join("\n"), laid_out(request.body.text()))
}

/// One line per step, without values that always differ.
fn steps(recording: &Recording) -> String {
    let line = |step: &hub_core::traces::Step| {
        let detail = &step.detail;
        let error = detail.error.as_ref().map(|error| &error.message);
        let known = [
            ("reason", detail.reason.as_ref()),
            ("plugin", detail.plugin.as_ref()),
            ("version", detail.version.as_ref()),
            ("state", detail.state.as_ref()),
            ("error", error),
        ];
        let known =
            known.into_iter().filter_map(|(name, text)| Some(format!("  {name} {}", screen::clean(text?))));
        format!("{}  {}{}\n", step.name.as_str(), step.status.as_str(), known.collect::<String>())
    };
    recording.trace.steps.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(status: &str, answer: &str, content: &str, at: i64) -> Recording {
        let step = |name: &str, detail: Value| {
            json!({ "name": name, "kind": "webhook", "status": status, "started_at": "2026-01-02T03:04:05.678Z",
                "duration_ms": at, "detail": detail })
        };
        serde_json::from_value(json!({
            "trace_id": "tr_01KAJ6Z8QH0000000000000001", "message_id": "msg_01KAJ6Z8QH0000000000000000",
            "bot_id": "bot_01KAJ6Z8QH0000000000000000", "channel_id": null, "replay_of": null, "status": status,
            "summary": "", "started_at": "2026-01-02T03:04:05.678Z", "duration_ms": at, "attempts": 1,
            "steps": [
                step("request", json!({ "method": "POST", "url": "http://a.test/", "attempt": at,
                    "body": json!({ "content": content }).to_string(),
                    "headers": [["webhook-timestamp", at.to_string()], ["x-signature", "***"]] })),
                step("response", json!({ "status": 200, "body": answer })),
            ],
        }))
        .unwrap()
    }

    #[test]
    fn traces_diff_ignores_times_and_ids() {
        let same = Compared::of(&recording("ok", "{}", "x", 1), &recording("ok", "{}", "x", 2));
        assert!(same.is_same(), "{:?}", same.document());
    }

    #[test]
    fn traces_diff_shows_differences_by_part() {
        let other = Compared::of(&recording("ok", "{}", "x", 1), &recording("error", "{\"a\":1}", "y", 2));
        let document = other.document();
        assert_eq!(document["status"], json!(["ok", "error"]));
        assert!(
            document["request"].as_str().unwrap().contains("-  \"content\": \"x\"\n+  \"content\": \"y\"")
        );
        assert!(document["response"].as_str().unwrap().contains("+  \"a\": 1"));
        assert!(document["steps"].as_str().unwrap().contains("-request  ok"));
    }
}
