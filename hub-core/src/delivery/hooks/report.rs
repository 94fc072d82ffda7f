//! What a hook did, as a step of the trace.

use http::HeaderMap;
use serde_json::{Map, Value, json};
use url::Url;

use super::Failed;
use crate::{
    delivery::{plugins::Installed, redact::Redactor, stage::Request, work_store::WorkContext},
    model::trace::{Step, StepName, TraceStatus},
    plugins::{diff, gate::Fetched},
    sandbox::{HookOutcome, LogLevel},
    time::Timestamp,
};

/// A step that is being written: which plugin, what it did, how it ended.
pub(super) struct Report {
    started: Timestamp,
    status: TraceStatus,
    detail: Map<String, Value>,
}

impl Report {
    /// A hook that begins now.
    pub(super) fn new(ctx: &WorkContext, plugin: &Installed) -> Self {
        let mut detail = Map::new();
        detail.insert("plugin_id".into(), json!(plugin.plugin_id));
        detail.insert("plugin".into(), json!(plugin.name));
        detail.insert("version".into(), json!(plugin.version));
        Self { started: ctx.clock.now(), status: TraceStatus::Ok, detail }
    }

    /// It is not run, and why.
    pub(super) fn skipped(mut self, reason: &str) -> Self {
        self.status = TraceStatus::Skipped;
        self.detail.insert("reason".into(), json!(reason));
        self
    }

    /// What came out of it.
    pub(super) fn ran(&mut self, redactor: &Redactor, outcome: &HookOutcome) {
        let micros = u64::try_from(outcome.duration.as_micros()).unwrap_or(u64::MAX);
        self.detail.insert("hook".into(), json!(outcome.present));
        self.detail.insert("duration_us".into(), json!(micros));
        if outcome.memory_bytes > 0 {
            self.detail.insert("memory_bytes".into(), json!(outcome.memory_bytes));
        }
        // The step begins with the run: its limit is that of the run, not of the queue.
        self.started = self.started + outcome.waited;
        if let wait_ms @ 1.. = outcome.waited.as_millis() {
            self.detail.insert("wait_ms".into(), json!(u64::try_from(wait_ms).unwrap_or(u64::MAX)));
        }
        if !outcome.logs.is_empty() {
            let line = |log: &crate::sandbox::LogLine| json!({ "at_ms": log.at_ms, "level": level(log.level), "text": redactor.text(&log.text).replace('\0', "\u{fffd}") });
            self.detail.insert("logs".into(), outcome.logs.iter().map(line).collect());
        }
        if !outcome.replies.is_empty() {
            self.detail.insert("replies".into(), json!(outcome.replies.len()));
        }
        if outcome.skipped {
            self.detail.insert("skipped".into(), json!(true));
        }
        if let Some(error) = &outcome.error {
            let clean = |text: &str| redactor.text(text).replace('\0', "\u{fffd}");
            self.detail.insert(
                "error".into(),
                json!({
                    "kind": error.kind.as_str(),
                    "message": clean(&error.message),
                    "line": error.line,
                    "column": error.column,
                    "stack": error.stack.as_deref().map(clean),
                }),
            );
        }
    }

    /// What it fetched.
    pub(super) fn fetched(&mut self, redactor: &Redactor, made: &[Fetched]) {
        if made.is_empty() {
            return;
        }
        let line = |fetched: &Fetched| {
            let url = Url::parse(&fetched.url)
                .map_or_else(|_| redactor.text(&fetched.url), |url| redactor.url(&url));
            let url: String = url.replace('\0', "\u{fffd}").chars().take(1024).collect();
            let method: String = fetched.method.chars().filter(|c| !c.is_control()).take(16).collect();
            match &fetched.result {
                Ok(status) => json!({ "method": method, "url": url, "status": status }),
                Err(error) => json!({ "method": method, "url": url, "error": error }),
            }
        };
        self.detail.insert("fetches".into(), made.iter().map(line).collect());
    }

    /// What it changed, with secrets masked on both sides.
    pub(super) fn changes(&mut self, redactor: &Redactor, before: &Request, after: &Request) {
        let mut changes = Map::new();
        if before.method != after.method {
            changes.insert("method".into(), json!([before.method.as_str(), after.method.as_str()]));
        }
        if before.url != after.url {
            let shown =
                |url: &str| Url::parse(url).map_or_else(|_| redactor.text(url), |url| redactor.url(&url));
            changes.insert("url".into(), json!([shown(&before.url), shown(&after.url)]));
        }
        let headers = header_changes(redactor, &before.headers, &after.headers);
        if !headers.is_empty() {
            changes.insert("headers".into(), json!(headers));
        }
        if before.body != after.body {
            let shown = |body: &[u8]| diff::laid_out(&redactor.body(body));
            let text = diff::unified(&shown(&before.body), &shown(&after.body));
            changes.insert("body".into(), json!(text));
        }
        if !changes.is_empty() {
            self.detail.insert("changes".into(), Value::Object(changes));
        }
    }

    /// The hub stops the plugin after this run.
    pub(super) fn paused(&mut self, reason: &str) {
        self.detail.insert("paused".into(), json!(reason));
    }

    /// It failed. What the plugin itself threw is noted already.
    pub(super) fn failed(&mut self, failed: &Failed) {
        self.status = TraceStatus::Error;
        let (kind, message) = match failed {
            Failed::Plugin(kind, message) => (*kind, message.clone()),
            Failed::Sandbox(fault) => (fault.as_str(), fault.to_string()),
        };
        self.detail.entry("error").or_insert_with(|| json!({ "kind": kind, "message": message }));
    }

    pub(super) fn into_step(self, ctx: &WorkContext, name: StepName) -> Step {
        let Self { started, status, detail } = self;
        Step::new(name, "plugin", status, started, ctx.clock.now(), Value::Object(detail))
    }
}

/// Lines `- name: value` and `+ name: value`.
fn header_changes(redactor: &Redactor, before: &HeaderMap, after: &HeaderMap) -> Vec<String> {
    let (before, after) = (redactor.headers(before), redactor.headers(after));
    let line = |sign: char, (name, value): &(String, String)| format!("{sign} {name}: {value}");
    let gone = before.iter().filter(|pair| !after.contains(pair)).map(|pair| line('-', pair));
    let new = after.iter().filter(|pair| !before.contains(pair)).map(|pair| line('+', pair));
    gone.chain(new).collect()
}

const fn level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_wait_for_a_worker_is_shown_next_to_the_run_and_not_in_it() {
        let queued = Timestamp::from_millis(1_000);
        let mut report = Report { started: queued, status: TraceStatus::Ok, detail: Map::new() };
        let redactor = Redactor::new([], None);
        let run = Duration::from_millis(20);
        let outcome = HookOutcome { waited: Duration::from_secs(8), duration: run, ..HookOutcome::default() };
        report.ran(&redactor, &outcome);
        assert_eq!(report.started, queued + Duration::from_secs(8));
        assert_eq!(
            (&report.detail["wait_ms"], &report.detail["duration_us"]),
            (&json!(8_000), &json!(20_000))
        );
        let mut report = Report { started: queued, status: TraceStatus::Ok, detail: Map::new() };
        report.ran(&redactor, &HookOutcome { waited: Duration::ZERO, ..outcome });
        assert_eq!((report.started, report.detail.get("wait_ms")), (queued, None));
    }
}
