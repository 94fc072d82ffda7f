//! Runs the hooks of one attempt.

use std::sync::Arc;

use serde_json::value::RawValue;
use url::Url;

use super::{Failed, report::Report};
use crate::{
    delivery::{
        channels::ChannelRuntime,
        job::Job,
        plugins::{Code, Installed},
        work_store::WorkContext,
    },
    events::Event,
    filter::FilterInput,
    model::cause::Cause,
    plugins::{Manifest, breaker::Breaker, gate::ConnectGate, request::Reach},
    redact::Redactor,
    sandbox::{ErrorKind, Grants, Hook, HookInput, HookOutcome, HookRun, Limits, SandboxFault, Source},
    wake::Hint,
};

/// Runs the hooks of one attempt.
pub(super) struct Runner<'a> {
    ctx: &'a WorkContext,
    job: &'a Job,
    channel: &'a ChannelRuntime,
    pub(super) redactor: Redactor,
    /// URL of the request unless a plugin changes it.
    configured: Option<Url>,
    pub(super) message: Box<RawValue>,
}

/// Whether a plugin is run for a message.
pub(super) enum Due<'p> {
    Runs {
        source: &'p Source,
        manifest: &'p Arc<Manifest>,
    },
    /// It is bypassed, for this reason.
    Bypassed(Cause),
    /// It should run and cannot. That counts as its own failure.
    Fails(Failed),
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        ctx: &'a WorkContext,
        job: &'a Job,
        channel: &'a ChannelRuntime,
        drafted: &str,
    ) -> Self {
        let target = job.target_url.as_deref().unwrap_or(&channel.webhook.url);
        let message = serde_json::value::to_raw_value(&job.payload());
        Self {
            ctx,
            job,
            channel,
            redactor: job.redactor(channel),
            configured: Url::parse(target).or_else(|_| Url::parse(drafted)).ok(),
            message: message.expect("our own types always serialise"),
        }
    }

    /// Whether a plugin is run for the message. An expression that cannot be evaluated counts as the plugin's
    /// failure, and so does a pause by the hub: the plugin's changes are not left out silently.
    pub(super) fn due<'p>(&self, plugin: &'p Installed) -> Due<'p> {
        match &plugin.code {
            Code::Stopped(cause) => Due::Bypassed(cause.clone()),
            Code::Ready { .. } if plugin.hooks.get().is_some_and(|hooks| hooks.are_none()) => {
                Due::Bypassed(Cause::PluginHasNoHook)
            }
            Code::Paused(reason) => Due::Fails(Failed::Plugin("paused", reason.clone())),
            Code::Ready { source, manifest } => match manifest.matches.matches(&self.filter_input()) {
                Ok(true) => Due::Runs { source, manifest },
                Ok(false) => Due::Bypassed(Cause::PluginNotMatched),
                Err(reason) => {
                    let cause = Cause::PluginMatchFails { error: reason };
                    Due::Fails(Failed::Plugin("match", cause.to_string()))
                }
            },
        }
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

    pub(super) fn reach<'r>(&'r self, manifest: &'r Manifest) -> Reach<'r> {
        Reach {
            configured: self.configured.as_ref(),
            connects: &manifest.connects,
            plain_http: self.plain_http(),
        }
    }

    fn plain_http(&self) -> bool {
        self.configured.as_ref().is_some_and(|url| url.scheme() == "http")
    }

    /// Runs a hook once. `None` when the plugin does not have the hook and no step is needed.
    pub(super) async fn run(
        &self,
        plugin: &Installed,
        source: &Source,
        manifest: &Manifest,
        mut input: HookInput,
    ) -> Option<(Result<HookOutcome, Failed>, Report)> {
        // A run costs more than everything else about a message.
        if plugin.hooks.get().is_some_and(|hooks| !hooks.have(input.hook)) {
            return None;
        }
        let (mut report, input_hook) = (Report::new(self.ctx, plugin), input.hook);
        input.dialect = manifest.sandbox_dialect();
        input.grants = Grants {
            reply: manifest.grants.reply,
            skip: manifest.grants.skip,
            fetch: !manifest.connects.is_empty(),
        };
        input.seed = self.ctx.random.bytes();
        input.limits = Limits { timeout: manifest.timeout.as_duration(), ..Limits::default() };
        let gate = ConnectGate::new(self.ctx.egress.clone(), &manifest.connects, self.plain_http());
        let run = HookRun { tenant: self.channel.bot_id_text().to_owned(), source: source.clone(), input };
        let ran = self.ctx.sandbox.run(run, &gate).await;
        if let Ok(HookOutcome { hooks: Some(hooks), .. }) = &ran {
            let _ = plugin.hooks.set(*hooks);
        }
        if ran.as_ref().is_ok_and(|outcome| !outcome.present && outcome.error.is_none()) {
            let is_first = input_hook == Hook::OnRequest;
            let has_none = plugin.hooks.get().is_some_and(|hooks| hooks.are_none());
            return (is_first && has_none)
                .then(|| (ran.map_err(Failed::Sandbox), report.skipped(&Cause::PluginHasNoHook)));
        }
        report.fetched(&self.redactor, &gate.made());
        if let Ok(outcome) = &ran {
            report.ran(&self.redactor, outcome);
        }
        self.count(&ran);
        if self.overran(plugin, &ran).await {
            report.paused(&Breaker::reason());
        }
        Some((ran.map_err(Failed::Sandbox), report))
    }

    fn count(&self, ran: &Result<HookOutcome, SandboxFault>) {
        let ended = match ran {
            Ok(outcome) => match &outcome.error {
                None => "ok",
                Some(error) if error.kind == ErrorKind::Timeout => "timeout",
                Some(_) => "error",
            },
            // No run was made, or nothing is known of it.
            Err(_) => return,
        };
        self.ctx.node.counters.plugin_runs.count(ended);
    }

    /// Records whether a run ended by itself. After too many that did not, pauses the plugin in this channel and
    /// returns `true`.
    async fn overran(&self, plugin: &Installed, ran: &Result<HookOutcome, SandboxFault>) -> bool {
        let ended = match ran {
            Ok(outcome) => outcome.error.as_ref().is_none_or(|error| !error.kind.is_overrun()),
            Err(_) => return false,
        };
        if !plugin.breaker.note(ended) {
            return false;
        }
        let (bot_id, channel_id) = (self.job.bot_id, self.channel.id);
        match self.ctx.store.pause_plugin(channel_id, plugin.version_id, Breaker::reason()).await {
            Ok(true) => {
                tracing::warn!(%bot_id, %channel_id, plugin = %plugin.plugin_id, "a plugin is stopped in a channel");
                self.ctx.node.events.notify(Event::PluginPaused {
                    bot_id,
                    channel_id,
                    plugin_id: plugin.plugin_id,
                });
                self.ctx.node.wake.hint(Hint::Bot(bot_id));
                true
            }
            // Another run paused it, or it is not installed any more.
            Ok(false) => false,
            // The next run that does not end tries again.
            Err(error) => {
                tracing::warn!(%bot_id, %channel_id, %error, "a plugin could not be stopped");
                false
            }
        }
    }
}
