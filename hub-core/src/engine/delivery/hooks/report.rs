//! The trace step of a hook.

use http::HeaderMap;
use url::Url;

use super::Failed;
use crate::{
    delivery::{plugins::Installed, stage::Request, work_store::WorkContext},
    model::{
        cause::Cause,
        trace::{
            Step, StepChanges, StepDetail, StepError, StepFetch, StepKind, StepLog, StepName, TraceStatus,
        },
    },
    plugins::{diff, gate::Fetched},
    redact::Redactor,
    sandbox::HookOutcome,
    time::Timestamp,
};

/// The trace step of one hook, while it is written.
pub(super) struct Report {
    started: Timestamp,
    status: TraceStatus,
    detail: StepDetail,
}

impl Report {
    /// Begins the step of a hook that starts now.
    pub(super) fn new(ctx: &WorkContext, plugin: &Installed) -> Self {
        let detail = StepDetail {
            plugin_id: Some(plugin.plugin_id),
            plugin: Some(plugin.name.clone()),
            version: Some(plugin.version.clone()),
            ..StepDetail::default()
        };
        Self { started: ctx.store.now(), status: TraceStatus::Ok, detail }
    }

    /// Records that the hook is not run, with the reason.
    pub(super) fn skipped(mut self, cause: &Cause) -> Self {
        self.status = TraceStatus::Skipped;
        self.detail.reason = Some(cause.to_string());
        self
    }

    /// Records the result of the run.
    pub(super) fn ran(&mut self, redactor: &Redactor, outcome: &HookOutcome) {
        // The step begins with the run: the time limit is for the run, without the wait in the queue.
        self.started = self.started + outcome.waited;
        let clean = |text: &str| redactor.text(text).replace('\0', "\u{fffd}");
        let detail = &mut self.detail;
        detail.hook = Some(outcome.present);
        detail.duration_us = Some(u64::try_from(outcome.duration.as_micros()).unwrap_or(u64::MAX));
        detail.memory_bytes = Some(outcome.memory_bytes).filter(|bytes| *bytes > 0);
        let wait_ms = u64::try_from(outcome.waited.as_millis()).unwrap_or(u64::MAX);
        detail.wait_ms = Some(wait_ms).filter(|ms| *ms > 0);
        let log = |log: &crate::sandbox::LogLine| StepLog {
            at_ms: log.at_ms,
            level: log.level.as_str().to_owned(),
            text: clean(&log.text),
        };
        detail.logs = Some(outcome.logs.iter().map(log).collect()).filter(|logs: &Vec<_>| !logs.is_empty());
        detail.replies = Some(outcome.replies.len() as u64).filter(|count| *count > 0);
        detail.skipped = outcome.skipped.then_some(true);
        detail.error = outcome.error.as_ref().map(|error| StepError {
            kind: Some(error.kind.as_str().to_owned()),
            line: error.line,
            column: error.column,
            stack: error.stack.as_deref().map(clean),
            ..StepError::new(clean(&error.message))
        });
    }

    /// Records the requests that the plugin made.
    pub(super) fn fetched(&mut self, redactor: &Redactor, made: &[Fetched]) {
        if made.is_empty() {
            return;
        }
        let line = |fetched: &Fetched| {
            let url = Url::parse(&fetched.url)
                .map_or_else(|_| redactor.text(&fetched.url), |url| redactor.url(&url));
            let (status, error) = match &fetched.result {
                Ok(status) => (Some(*status), None),
                Err(error) => (None, Some(error.clone())),
            };
            StepFetch {
                method: fetched.method.chars().filter(|c| !c.is_control()).take(16).collect(),
                url: url.replace('\0', "\u{fffd}").chars().take(1024).collect(),
                status,
                error,
            }
        };
        self.detail.fetches = Some(made.iter().map(line).collect());
    }

    /// Records the changes to the request, with secrets masked on both sides.
    pub(super) fn changes(&mut self, redactor: &Redactor, before: &Request, after: &Request) {
        let mut changes = StepChanges::default();
        if before.method != after.method {
            changes.method = Some([&before.method, &after.method].map(ToString::to_string));
        }
        if before.url != after.url {
            let shown =
                |url: &str| Url::parse(url).map_or_else(|_| redactor.text(url), |url| redactor.url(&url));
            changes.url = Some([shown(&before.url), shown(&after.url)]);
        }
        let headers = header_changes(redactor, &before.headers, &after.headers);
        changes.headers = Some(headers).filter(|lines| !lines.is_empty());
        if before.body != after.body {
            let shown = |body: &[u8]| diff::laid_out(&redactor.body(body));
            changes.body = Some(diff::unified(&shown(&before.body), &shown(&after.body)));
        }
        self.detail.changes = Some(changes).filter(|changes| *changes != StepChanges::default());
    }

    /// Records that the hub stops the plugin after this run.
    pub(super) fn paused(&mut self, reason: &str) {
        self.detail.paused = Some(reason.to_owned());
    }

    /// Records a failure. An error that the plugin itself threw is recorded already and stays.
    pub(super) fn failed(&mut self, failed: &Failed) {
        self.status = TraceStatus::Error;
        let (kind, message) = match failed {
            Failed::Plugin(kind, message) => (*kind, message.clone()),
            Failed::Sandbox(fault) => (fault.as_str(), fault.to_string()),
        };
        let error = || StepError { kind: Some(kind.to_owned()), ..StepError::new(message) };
        self.detail.error.get_or_insert_with(error);
    }

    pub(super) fn into_step(self, ctx: &WorkContext, name: StepName) -> Step {
        let Self { started, status, detail } = self;
        Step::new(name, StepKind::Plugin, status, started, ctx.store.now(), detail)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_wait_for_a_worker_is_shown_next_to_the_run_and_not_in_it() {
        let queued = Timestamp::from_millis(1_000);
        let mut report = Report { started: queued, status: TraceStatus::Ok, detail: StepDetail::default() };
        let redactor = Redactor::new([], None);
        let run = Duration::from_millis(20);
        let outcome = HookOutcome { waited: Duration::from_secs(8), duration: run, ..HookOutcome::default() };
        report.ran(&redactor, &outcome);
        assert_eq!(report.started, queued + Duration::from_secs(8));
        assert_eq!((report.detail.wait_ms, report.detail.duration_us), (Some(8_000), Some(20_000)));
        let mut report = Report { started: queued, status: TraceStatus::Ok, detail: StepDetail::default() };
        report.ran(&redactor, &HookOutcome { waited: Duration::ZERO, ..outcome });
        assert_eq!((report.started, report.detail.wait_ms), (queued, None));
    }
}
