//! The AI sink: a model answers the sender.
//!
//! The response and its model are determined from the store alone, so that an attempt after a crash does the same;
//! the reply is keyed by its delivery, so that it is sent once.

use std::time::Duration;

use self::{
    dialogue::{Dialogue, Limits},
    setup::{Refusal, Setup},
};
use crate::{
    ai::{self, AiFault, AiFaultClass, Completion, Endpoint, Prompt, ToolScope, Usage},
    delivery::{
        bot::BotWork,
        channels::ChannelRuntime,
        job::Job,
        retry::{Verdict, retry_after},
        stage::{Concluded, Outcome, Reply},
        work_store::WorkContext,
    },
    model::{
        cause::Cause,
        trace::{Step, StepDetail, StepError, StepKind, StepName, TraceStatus},
    },
    network::typing::TypingIndicator,
    redact::Redactor,
    secret::Secret,
    store::ai::{AiUsage, ConversationQuery},
    time::Timestamp,
};

mod dialogue;
mod history;
mod images;
pub(in crate::engine::delivery) mod setup;

/// Waits between attempts, in seconds: a person does not wait for days.
pub(in crate::engine::delivery) const SCHEDULE_S: [u32; 5] = [2, 10, 30, 120, 600];
/// Interval of checks whether a message that waits for an endpoint can be answered.
const RECHECK_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Replies of a channel to one conversation within [`LOOP_SPAN`]. Further messages are not answered, which stops
/// two bots that talk to each other.
const MAX_REPLIES: i64 = 20;
const LOOP_SPAN: Duration = Duration::from_secs(60);

/// Result of an attempt, and its usage.
pub(in crate::engine::delivery) struct Answered {
    pub concluded: Concluded,
    pub usage: Option<AiUsage>,
}

/// Lets the model answer once.
pub(in crate::engine::delivery) async fn answer(
    ctx: &WorkContext,
    bot: &BotWork,
    channel: &ChannelRuntime,
    job: &Job,
) -> Answered {
    let mut attempt = Attempt { ctx, bot, channel, job, steps: Vec::new(), usage: None, endpoint_key: None };
    let (outcome, replies) = match attempt.run().await {
        Ok(reply) => reply,
        Err(outcome) => (outcome, Vec::new()),
    };
    let Attempt { steps, usage, .. } = attempt;
    let replies = replies.into_iter().map(|text| Reply::text(StepKind::Ai, text)).collect();
    Answered { concluded: Concluded { outcome, replies, steps }, usage }
}

/// Returns the reason for an empty answer, as far as the endpoint reports it.
fn why_empty(completion: &Completion) -> String {
    let is_thinking = !completion.thinking.trim().is_empty() || !completion.text.trim().is_empty();
    match completion.finish_reason.as_deref() {
        Some("length" | "max_tokens") if is_thinking => ": it reached max_tokens while thinking".to_owned(),
        Some(reason) if reason != "stop" => format!(" (finish reason: {reason})"),
        _ if is_thinking => ": it only thought".to_owned(),
        _ => String::new(),
    }
}

/// One attempt in the making.
struct Attempt<'a> {
    ctx: &'a WorkContext,
    bot: &'a BotWork,
    channel: &'a ChannelRuntime,
    job: &'a Job,
    steps: Vec<Step>,
    usage: Option<AiUsage>,
    /// API key of the endpoint, which no trace may show.
    endpoint_key: Option<Secret>,
}

impl Attempt<'_> {
    async fn run(&mut self) -> Result<(Outcome, Vec<String>), Outcome> {
        let (ctx, channel, job) = (self.ctx, self.channel, self.job);
        let started = ctx.clock.instant();
        // Commands and mentions are for others.
        if job.text().trim_start().starts_with(['/', '@']) {
            return Err(self.ignore(Cause::CommandIgnored));
        }
        let now = ctx.store.now();
        let query = ConversationQuery {
            bot_id: job.bot_id,
            channel_id: channel.id,
            peer: job.content.peer.clone(),
            message_id: job.content.message_id,
            // A replay shows the model the same conversation as the first time.
            later_answers: job.seq > 0,
            limit: channel.ai.max_history.saturating_mul(2),
            replies_since: now - LOOP_SPAN,
            day: now.as_days(),
        };
        let conversation = ctx.store.conversation(&query).await;
        let conversation = conversation.map_err(|error| self.fail(&error.to_string(), false))?;
        if conversation.replies >= MAX_REPLIES {
            return Err(self.ignore(Cause::MaybeLoop));
        }
        let setup = Setup::of(ctx, channel, &conversation).await;
        let setup = setup.map_err(|refusal| match refusal {
            Refusal::Later(error) => self.fail(&error, false),
            Refusal::Permanent(error) => self.fail(&error, true),
            Refusal::NoEndpoint => {
                self.fail(&Cause::NoEndpoint.to_string(), false);
                Outcome::Waits { cause: Cause::NoEndpoint, recheck: RECHECK_INTERVAL }
            }
        })?;
        self.endpoint_key.clone_from(&setup.endpoint.api_key);
        let content = &job.content;
        let _typing = TypingIndicator::start(
            self.bot.connection.clone(),
            content.peer.clone(),
            content.context_token.clone(),
            ctx.clock.clone(),
            &self.bot.tasks,
        );
        let scope = ToolScope {
            bot_id: job.bot_id,
            channel_id: channel.id,
            message_id: content.message_id,
            delivery_id: job.id,
            place: 0,
            trace_id: job.trace_id,
            user_id: content.from_user_id.clone(),
            peer: content.peer.clone(),
            session_id: content.session_id.clone(),
        };
        let tools = if channel.ai.tools { ctx.tools.offered(&scope).await } else { Ok(Vec::new()) };
        let mut tools = tools.map_err(|error| self.fail(&error.to_string(), false))?;
        tools.truncate(dialogue::MAX_TOOLS);
        let images = images::of(ctx, job).await.map_err(|error| self.fail(&error.to_string(), false))?;
        let prompt = Prompt {
            model: setup.model.clone(),
            messages: history::messages(&setup.system_prompt, job, &conversation.messages, images.parts),
            max_tokens: setup.max_tokens,
            temperature: channel.ai.temperature,
            tools,
        };
        let silence = Duration::from_millis(u64::from(channel.ai.timeout_ms));
        let limits = Limits { started, silence, total: ai::MAX_TIME };
        let mut dialogue = Dialogue::new(self, &setup, prompt, scope, limits);
        let spoken = dialogue.speak().await;
        let (usage, calls) = (dialogue.usage, dialogue.calls);
        self.note_usage(&setup, usage, calls, now);
        match spoken {
            Ok(completion) => Ok(self.reply(&setup, &completion, usage)),
            Err(fault) => Err(self.judge(&setup, &fault)),
        }
    }

    /// The text that the sender gets, as the channel wants it.
    fn reply(&self, setup: &Setup, completion: &Completion, usage: Usage) -> (Outcome, Vec<String>) {
        let settings = &self.channel.ai;
        let mut text = if settings.hide_thinking {
            ai::without_thinking(&completion.text)
        } else if completion.thinking.trim().is_empty() {
            completion.text.trim().to_owned()
        } else {
            format!("{}\n\n{}", completion.thinking.trim(), completion.text.trim())
        };
        if settings.strip_markdown {
            text = ai::strip_markdown(&text);
        }
        // No column takes U+0000, and no message is longer than what may be sent.
        text = text.replace('\0', "\u{fffd}");
        text.truncate(text.floor_char_boundary(self.ctx.config.max_text));
        let tokens = usage.prompt_tokens.saturating_add(usage.completion_tokens);
        let cost = if tokens > 0 { format!(", {tokens} tokens") } else { String::new() };
        if text.trim().is_empty() {
            let why = why_empty(completion);
            let summary =
                self.redactor().text(&format!("{} returned an empty response{why}{cost}", setup.model));
            return (Outcome::Failure { summary, permanent: true }, Vec::new());
        }
        let model = setup.model.clone();
        let summary = if tokens > 0 {
            Cause::Answered { model, tokens }.to_string()
        } else {
            Cause::AnsweredUncounted { model }.to_string()
        };
        let outcome = Outcome::Answer { verdict: Verdict::Success, summary };
        (outcome, vec![text])
    }

    /// Returns the outcome of the delivery after a fault.
    fn judge(&self, setup: &Setup, fault: &AiFault) -> Outcome {
        let endpoint_message = setup
            .endpoint_message(fault)
            .map_or_else(String::new, |endpoint_message| format!(": {endpoint_message}"));
        let summary =
            self.redactor().text(&format!("{}: {}{endpoint_message}", fault.class.as_str(), fault.message));
        let delay = match fault.class {
            AiFaultClass::Status(429 | 503) if !fault.permanent => {
                retry_after(&fault.headers, self.ctx.store.now())
            }
            _ => None,
        };
        match delay {
            Some(_) => {
                let verdict = Verdict::Retry { after: delay };
                Outcome::Answer { verdict, summary }
            }
            None => Outcome::Failure { summary, permanent: fault.permanent },
        }
    }

    /// Skips a message that is not for a model.
    fn ignore(&mut self, cause: Cause) -> Outcome {
        let detail = StepDetail { reason: Some(cause.to_string()), ..StepDetail::default() };
        self.step(StepKind::Ai, TraceStatus::Skipped, self.ctx.store.now(), detail);
        self.ctx.node.counters.ai_calls.count("ignored");
        Outcome::Ignored { cause }
    }

    /// Fails the attempt because the model could not be called.
    fn fail(&mut self, error: &str, permanent: bool) -> Outcome {
        let detail = StepDetail { error: Some(StepError::new(error)), ..StepDetail::default() };
        self.step(StepKind::Ai, TraceStatus::Error, self.ctx.store.now(), detail);
        self.ctx.node.counters.ai_calls.count("not_asked");
        Outcome::Failure { summary: error.to_owned(), permanent }
    }

    fn step(&mut self, kind: StepKind, status: TraceStatus, started: Timestamp, detail: StepDetail) {
        let ended = self.ctx.store.now();
        self.steps.push(Step::new(StepName::Ai, kind, status, started, ended, detail));
    }

    fn note_usage(&mut self, setup: &Setup, usage: Usage, calls: u32, now: Timestamp) {
        if calls == 0 {
            return;
        }
        let number = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        self.ctx.node.counters.count_tokens(usage);
        self.usage = Some(AiUsage {
            channel_id: self.channel.id,
            day: now.as_days(),
            source: setup.source,
            calls: i64::from(calls),
            prompt_tokens: number(usage.prompt_tokens),
            completion_tokens: number(usage.completion_tokens),
        });
    }

    /// Returns a redactor for the secrets of this attempt: the endpoint's key and the permission to answer.
    fn redactor(&self) -> Redactor {
        let secrets = [self.endpoint_key.as_ref(), self.job.content.context_token.as_ref()];
        Redactor::new(secrets.into_iter().flatten(), None)
    }
}
