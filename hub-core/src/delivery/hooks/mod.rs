//! The plugins of a channel around its webhook request, in their order of installation (spec §6;
//! `contract.md` §6.4, §7).
//!
//! What a plugin may have done is checked here, in the hub, after each hook: where the request goes, what its
//! headers are. Secrets are added only afterwards. A hook that fails is the channel's `on_plugin_error`; a sandbox
//! that fails is nobody's fault, and the delivery is tried again.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::value::RawValue;
use url::Url;

use super::{
    job::Job,
    payload::Payload,
    redact::Redactor,
    sink::webhook,
    stage::{Answered, Concluded, Drafted, Outcome, Prepared, Reply, Request},
};
use crate::{
    channels::{OnPluginError, filter::FilterInput, runtime::ChannelRuntime},
    context::WorkContext,
    id::PluginId,
    plugins::{
        Manifest,
        gate::ConnectGate,
        request::{self, LeftRequest, Reach, Violation},
        runtime::{Code, Installed},
    },
    sandbox::{Grants, Hook, HookInput, HookOutcome, HookRun, Limits, PluginRequest, SandboxFault, Source},
    traces::{Step, StepName},
};

mod report;
#[cfg(test)]
mod tests;

use report::Report;

/// What a plugin left in `ctx.state` for its other hook.
#[derive(Debug)]
pub struct State {
    plugin: PluginId,
    json: Box<RawValue>,
}

/// The head of an answer, for hooks.
#[derive(Debug)]
pub struct Head {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
}

/// Why a hook did not come to its end.
enum Failed {
    /// The plugin's own doing; what kind and what it says.
    Plugin(&'static str, String),
    /// The sandbox's.
    Sandbox(SandboxFault),
}

/// Runs every request hook. Without plugins the request is as it was drafted.
pub(super) async fn on_request<'j>(ctx: &WorkContext, drafted: Drafted<'j>) -> Prepared<'j> {
    let Drafted { job, channel, mut request } = drafted;
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
        let Some((source, manifest)) = runner.due(StepName::PluginOnRequest, plugin, &mut prepared.steps)
        else {
            continue;
        };
        let shown = request::shown(&request.method, &request.url, &request.headers, &request.body);
        let (ran, mut report) = match &manifest {
            Ok(manifest) => {
                let input = HookInput::on_request(runner.message.clone(), shown.clone());
                runner.run(plugin, source, manifest, input).await
            }
            Err(reason) => (Err(Failed::Plugin("match", reason.clone())), Report::new(ctx, plugin)),
        };
        if is_absent(&ran) {
            continue;
        }
        let ended = ran.and_then(|mut outcome| {
            prepared.replies.extend(replies(plugin, Hook::OnRequest, &mut outcome));
            if let Some(json) = outcome.state.take() {
                prepared.states.push(State { plugin: plugin.plugin_id, json });
            }
            after_request(outcome, &shown, runner.reach(manifest.as_deref().ok()))
        });
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

/// Runs every response hook, when an answer came. One that fails is noted, and changes nothing: the receiver has
/// the message.
pub(super) async fn on_response(ctx: &WorkContext, answered: Answered<'_>) -> Concluded {
    let Answered { job, channel, outcome, request, head, mut replies, states, mut steps, .. } = answered;
    if let (Outcome::Answer { body, .. }, Some(request), Some(head), false) =
        (&outcome, &request, &head, channel.plugins.is_empty())
    {
        let runner = Runner::new(ctx, job, &channel, &request.url);
        let shown = request::shown(&request.method, &request.url, &request.headers, &request.body);
        for plugin in &channel.plugins {
            let Some((source, Ok(manifest))) = runner.due(StepName::PluginOnResponse, plugin, &mut steps)
            else {
                continue;
            };
            let answer = request::shown_answer(head.status, &head.headers, body);
            let input = HookInput {
                state: state_of(&states, plugin),
                ..HookInput::on_response(runner.message.clone(), shown.clone(), answer)
            };
            let (ran, mut report) = runner.run(plugin, source, &manifest, input).await;
            if is_absent(&ran) {
                continue;
            }
            match ran {
                Ok(mut outcome) => {
                    let made = self::replies(plugin, Hook::OnResponse, &mut outcome);
                    replies.extend(made.into_iter().map(|reply| reply.forwarding(head, body)));
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

/// What follows from a request hook that came to its end.
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

/// Whether the plugin does not have the hook, which is nothing to tell of.
fn is_absent(ran: &Result<HookOutcome, Failed>) -> bool {
    ran.as_ref().is_ok_and(|outcome| !outcome.present && outcome.error.is_none())
}

fn failure(outcome: &HookOutcome) -> Option<Failed> {
    outcome.error.as_ref().map(|error| Failed::Plugin(error.kind.as_str(), error.message.clone()))
}

fn state_of(states: &[State], plugin: &Installed) -> Option<Box<RawValue>> {
    states.iter().find(|state| state.plugin == plugin.plugin_id).map(|state| state.json.clone())
}

/// One reply is one row keyed by the delivery, the plugin, the hook and its place: a run that is made again adds
/// none (`contract.md` §6.6).
fn replies(plugin: &Installed, hook: Hook, outcome: &mut HookOutcome) -> Vec<Reply> {
    let place = match hook {
        Hook::OnRequest => 'q',
        Hook::OnResponse => 's',
    };
    let made = std::mem::take(&mut outcome.replies).into_iter().enumerate();
    made.map(|(n, content)| Reply { key: format!("{}.{place}.{n}", plugin.plugin_id), by: "plugin", content })
        .collect()
}

impl OnPluginError {
    /// How a delivery ends whose plugin failed; `None` when it goes on without what the plugin did.
    fn ends(self, failed: &Failed, plugin: &Installed) -> Option<Outcome> {
        let (summary, is_plugins) = match failed {
            Failed::Plugin(kind, _) => (format!("plugin {}: {kind}", plugin.name), true),
            // A plugin can bring its process down; everything else is the hub's own trouble.
            Failed::Sandbox(fault) => (
                format!("plugin {}: {}", plugin.name, fault.as_str()),
                matches!(fault, SandboxFault::Crashed(_)),
            ),
        };
        match self {
            Self::Send if is_plugins => None,
            Self::Drop if is_plugins => Some(Outcome::PluginFailed { summary, retry: false }),
            _ => Some(Outcome::PluginFailed { summary, retry: true }),
        }
    }
}

/// Runs the hooks of one attempt.
struct Runner<'a> {
    ctx: &'a WorkContext,
    job: &'a Job,
    channel: &'a ChannelRuntime,
    redactor: Redactor,
    /// Where the request goes unless a plugin changes that.
    configured: Option<Url>,
    /// `ctx.msg`.
    message: Box<RawValue>,
}

impl<'a> Runner<'a> {
    fn new(ctx: &'a WorkContext, job: &'a Job, channel: &'a ChannelRuntime, drafted: &str) -> Self {
        let target = job.target_url.as_deref().unwrap_or(&channel.webhook.url);
        let message = serde_json::value::to_raw_value(&Payload::of(job));
        Self {
            ctx,
            job,
            channel,
            redactor: webhook::redactor(job, channel),
            configured: Url::parse(target).or_else(|_| Url::parse(drafted)).ok(),
            message: message.expect("our own types always serialise"),
        }
    }

    /// Whether a plugin is run for the message, and with what; notes why not. An expression that has no answer is
    /// the plugin's failure.
    fn due<'p>(
        &self,
        name: StepName,
        plugin: &'p Installed,
        steps: &mut Vec<Step>,
    ) -> Option<(&'p Source, Result<Arc<Manifest>, String>)> {
        let skipped = match &plugin.code {
            Code::Stopped(reason) => reason.as_str(),
            Code::Ready { source, manifest } => match manifest.matches.matches(&self.filter_input()) {
                Ok(true) => return Some((source, Ok(Arc::clone(manifest)))),
                Ok(false) => "@match does not take the message",
                Err(reason) => return Some((source, Err(format!("@match: {reason}")))),
            },
        };
        let step = Report::new(self.ctx, plugin).skipped(skipped);
        // Said once: the response hooks are bypassed for the same reason.
        if name == StepName::PluginOnRequest {
            steps.push(step.into_step(self.ctx, name));
        }
        None
    }

    fn filter_input(&self) -> FilterInput<'_> {
        let content = &self.job.content;
        FilterInput {
            content: self.job.text(),
            user_id: &content.from_user_id,
            user_name: &content.user_name,
            session_id: &content.session_id,
            kind: content.kind,
            timestamp: content.sent_at.as_seconds(),
            bot_id: self.channel.bot_id_text(),
            channel_id: self.channel.id_text(),
        }
    }

    fn reach<'r>(&'r self, manifest: Option<&'r Manifest>) -> Reach<'r> {
        Reach {
            configured: self.configured.as_ref(),
            connects: manifest.map_or(&[], |manifest| &manifest.connects),
            plain_http: self.plain_http(),
        }
    }

    fn plain_http(&self) -> bool {
        self.configured.as_ref().is_some_and(|url| url.scheme() == "http")
    }

    async fn run(
        &self,
        plugin: &Installed,
        source: &Source,
        manifest: &Manifest,
        mut input: HookInput,
    ) -> (Result<HookOutcome, Failed>, Report) {
        let mut report = Report::new(self.ctx, plugin);
        input.dialect = manifest.sandbox_dialect();
        input.grants = Grants {
            reply: manifest.grants.reply,
            skip: manifest.grants.skip,
            fetch: !manifest.connects.is_empty(),
        };
        input.limits = Limits { timeout: manifest.timeout.as_duration(), ..Limits::default() };
        let gate = ConnectGate::new(self.ctx.egress.clone(), &manifest.connects, self.plain_http());
        let run = HookRun { tenant: self.channel.bot_id_text().to_owned(), source: source.clone(), input };
        let ran = self.ctx.sandbox.run(run, &gate).await;
        report.fetched(&self.redactor, &gate.made());
        if let Ok(outcome) = &ran {
            report.ran(&self.redactor, outcome);
        }
        (ran.map_err(Failed::Sandbox), report)
    }
}

impl Reply {
    /// A reply that is the receiver's answer, with that answer in it: a text, or a file.
    fn forwarding(mut self, head: &Head, body: &Bytes) -> Self {
        if self.content == crate::sandbox::Reply::Forward && request::is_text(&head.headers, body) {
            self.content = crate::sandbox::Reply::Text(String::from_utf8_lossy(body).into_owned());
        }
        self
    }
}
