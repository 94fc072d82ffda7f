//! The plugins of a channel around its webhook request, in their order of installation.
//!
//! The hub checks the result of each hook here: the destination and the headers of the request. Secrets are added
//! only afterwards. The channel's `on_plugin_error` decides about a hook that fails, and about one that does not
//! run because its system calls cannot be filtered. After any other failure of the sandbox, which is not the
//! plugin's, the delivery is retried.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{
    response_reply::ResponseReply,
    stage::{Answered, Concluded, Drafted, Outcome, Prepared, Reply, Request, State},
};
use crate::{
    channels::OnPluginError,
    delivery::{channels::ChannelRuntime, plugins::Installed, work_store::WorkContext},
    egress::Receipt,
    model::{
        cause::Cause,
        trace::{Step, StepDetail, StepKind, StepName, TraceStatus},
    },
    plugins::request::{self, LeftRequest, Reach, Violation},
    sandbox::{HookInput, HookOutcome, PluginRequest, SandboxFault},
};

mod reply;
mod report;
mod runner;
#[cfg(test)]
mod tests;

use report::Report;
use runner::{Due, Runner};

/// Cause of a failed hook.
enum Failed {
    /// Failure of the plugin: kind and message.
    Plugin(&'static str, String),
    Sandbox(SandboxFault),
}

impl<'j> Drafted<'j> {
    /// Runs the channel's request hooks in their order of installation. Without plugins the request is as it was
    /// drafted.
    pub(super) async fn on_request(self, ctx: &WorkContext) -> Prepared<'j> {
        let Self { job, channel, mut request } = self;
        let mut prepared = Prepared {
            job,
            channel: Arc::clone(&channel),
            request: Err(Outcome::Skipped),
            replies: Vec::new(),
            replied: false,
            states: Vec::new(),
            steps: Vec::new(),
        };
        if channel.plugins.is_empty() {
            prepared.request = Ok(request);
            return prepared;
        }
        let runner = Runner::new(ctx, job, &channel, &request.url);
        for plugin in &channel.plugins {
            let (ended, mut report) = match runner.due(plugin) {
                Due::Bypassed(cause) => {
                    let step = Report::new(ctx, plugin).skipped(&cause);
                    prepared.steps.push(step.into_step(ctx, StepName::PluginOnRequest));
                    continue;
                }
                Due::Fails(failed) => (Err(failed), Report::new(ctx, plugin)),
                Due::Runs { source, manifest } => {
                    let shown =
                        request::shown(&request.method, &request.url, &request.headers, &request.body);
                    let input = HookInput::on_request(runner.message.clone(), shown.clone());
                    // Boxed here and below: otherwise the task of every delivery would be larger by a run.
                    let run = Box::pin(runner.run(plugin, source, manifest, input));
                    let Some((ran, report)) = run.await else { continue };
                    let ended = ran.and_then(|mut outcome| {
                        prepared.keep(plugin, &mut outcome);
                        after_request(outcome, &shown, runner.reach(manifest))
                    });
                    (ended, report)
                }
            };
            let end = match ended {
                Ok(After::Unchanged) => None,
                Ok(After::Skip) => Some(Outcome::Skipped),
                Ok(After::Changed(left)) => {
                    let LeftRequest { method, url, headers, body } = left;
                    let changed = Request { method, url, headers, body };
                    report.changes(&runner.redactor, &request, &changed);
                    request = changed;
                    None
                }
                Err(failed) => {
                    report.failed(&failed);
                    channel.on_plugin_error.ends(&failed, plugin)
                }
            };
            prepared.steps.push(report.into_step(ctx, StepName::PluginOnRequest));
            if let Some(end) = end {
                prepared.request = Err(end);
                return prepared;
            }
        }
        prepared.request = Ok(request);
        prepared
    }
}

impl Answered<'_> {
    /// Runs the channel's response hooks, then the automatic reply unless a plugin replied. A `reply` of the
    /// response that is not sent becomes a step with the reason.
    pub(super) async fn on_response(self, ctx: &WorkContext) -> Concluded {
        let (channel, replied) = (Arc::clone(&self.channel), self.replied);
        let found = self.response.as_ref().map(|receipt| automatic_reply(&channel, receipt));
        let mut concluded = on_response(ctx, self).await;
        let plugins_replied = replied || !concluded.replies.is_empty();
        let reason = match found.flatten() {
            None => return concluded,
            Some(Ok(_)) if plugins_replied => Cause::PluginReplied.to_string(),
            Some(Ok(text)) if text.len() > ctx.config.max_text => {
                Cause::ReplyTooLong { bytes: text.len(), max_bytes: ctx.config.max_text }.to_string()
            }
            Some(Ok(text)) => {
                concluded.replies.push(Reply::text(StepKind::Webhook, text));
                return concluded;
            }
            Some(Err(reason)) => reason,
        };
        let now = ctx.store.now();
        let detail = StepDetail { reason: Some(reason), ..StepDetail::default() };
        let step = Step::new(StepName::Reply, StepKind::Webhook, TraceStatus::Skipped, now, now, detail);
        concluded.steps.push(step);
        concluded
    }
}

/// Returns the text of a response that is sent to the sender, or the reason why its `reply` is not sent; `None`
/// when there is no `reply`.
fn automatic_reply(channel: &ChannelRuntime, receipt: &Receipt) -> Option<Result<String, String>> {
    let is_automatic = channel.webhook.auto_reply;
    let found = match ResponseReply::of(receipt) {
        ResponseReply::None => return None,
        ResponseReply::Unreadable(_) if !is_automatic => return None,
        ResponseReply::Unreadable(why) | ResponseReply::Unusable(why) => Err(why),
        ResponseReply::Text(text) => Ok(text),
    };
    if !is_automatic && found.is_ok() {
        return Some(Err(Cause::NoAutoReply.to_string()));
    }
    Some(found)
}

/// Runs every response hook if a response was received. A hook that fails makes the trace an error, and the request
/// is not repeated: the receiver has the message.
async fn on_response(ctx: &WorkContext, answered: Answered<'_>) -> Concluded {
    let Answered { job, channel, outcome, request, response, mut replies, states, mut steps, .. } = answered;
    if let (Some(request), Some(response), false) = (&request, &response, channel.plugins.is_empty()) {
        let runner = Runner::new(ctx, job, &channel, &request.url);
        let shown = request::shown(&request.method, &request.url, &request.headers, &request.body);
        for plugin in &channel.plugins {
            // The step of the request hook has the reason why a plugin is not run.
            let Due::Runs { source, manifest } = runner.due(plugin) else { continue };
            let answer = request::shown_answer(response.status, &response.headers, &response.body);
            let input = HookInput {
                state: state_of(&states, plugin),
                ..HookInput::on_response(runner.message.clone(), shown.clone(), answer)
            };
            let run = Box::pin(runner.run(plugin, source, manifest, input));
            let Some((ran, mut report)) = run.await else { continue };
            match ran {
                Ok(mut outcome) => {
                    replies.extend(reply::taken(plugin, &mut outcome, Some(response)));
                    if let Some(failed) = failure(&outcome) {
                        report.failed(&failed);
                    }
                }
                Err(failed) => report.failed(&failed),
            }
            steps.push(report.into_step(ctx, StepName::PluginOnResponse));
        }
    }
    Concluded { outcome, replies, steps }
}

impl Prepared<'_> {
    /// Keeps the replies of a plugin and the state for its other hook, even if its request is rejected.
    fn keep(&mut self, plugin: &Installed, outcome: &mut HookOutcome) {
        self.replies.extend(reply::taken(plugin, outcome, None));
        if let Some(json) = outcome.state.take() {
            self.states.push(State { plugin: plugin.plugin_id, json });
        }
    }
}

/// Result of a request hook that succeeded.
enum After {
    Unchanged,
    Skip,
    Changed(LeftRequest),
}

fn after_request(outcome: HookOutcome, shown: &PluginRequest, reach: Reach<'_>) -> Result<After, Failed> {
    if let Some(failed) = failure(&outcome) {
        return Err(failed);
    }
    if outcome.skipped {
        return Ok(After::Skip);
    }
    match outcome.request {
        None => Ok(After::Unchanged),
        Some(left) => match request::checked(left, shown, &reach) {
            Ok(left) => Ok(After::Changed(left)),
            Err(Violation { kind, message }) => Err(Failed::Plugin(kind, message)),
        },
    }
}

fn failure(outcome: &HookOutcome) -> Option<Failed> {
    outcome.error.as_ref().map(|error| Failed::Plugin(error.kind.as_str(), error.message.clone()))
}

fn state_of(states: &[State], plugin: &Installed) -> Option<Box<RawValue>> {
    states.iter().find(|state| state.plugin == plugin.plugin_id).map(|state| state.json.clone())
}

impl OnPluginError {
    /// Returns the outcome of a delivery whose plugin failed; `None` if it continues without the plugin's changes.
    fn ends(self, failed: &Failed, plugin: &Installed) -> Option<Outcome> {
        let (kind, is_plugins) = match failed {
            Failed::Plugin(kind, _) => (*kind, true),
            Failed::Sandbox(fault) => (fault.as_str(), *fault == SandboxFault::Unfiltered),
        };
        let summary = Cause::PluginFailed { plugin: plugin.name.clone(), kind: kind.to_owned() }.to_string();
        match self {
            Self::Send if is_plugins => None,
            Self::Drop if is_plugins => Some(Outcome::PluginFailed { summary, retry: false }),
            _ => Some(Outcome::PluginFailed { summary, retry: true }),
        }
    }
}
