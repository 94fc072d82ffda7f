//! The calls to the model, and between them the tools that it requests.

use std::time::Duration;

use super::{Attempt, setup::Setup};
use crate::{
    ai::{self, AiFault, AiFaultClass, Completion, Message, Prompt, Tool, ToolCall, ToolScope, Usage},
    egress::EgressFault,
    model::{
        cause::Cause,
        trace::{StepDetail, StepError, StepKind, TraceStatus},
    },
    time::Instant,
};

/// Most tools that a model is offered; further ones are left out.
pub(super) const MAX_TOOLS: usize = 64;
/// Most calls to the model for one message.
const MAX_ROUNDS: u32 = 5;
/// Most of a tool's answer that the model is shown, in bytes.
const MAX_TOOL_ANSWER: usize = 16 * 1024;

/// Longest name of a tool in the kind of a step: a model may request any name.
const MAX_NAME: usize = 64;

/// Time limits of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub started: Instant,
    /// Longest silence of the model, and longest run of a tool.
    pub silence: Duration,
    /// Over all calls and tools.
    pub total: Duration,
}

/// A conversation between the model and its tools.
pub(super) struct Dialogue<'d, 'a> {
    attempt: &'d mut Attempt<'a>,
    setup: &'d Setup,
    prompt: Prompt,
    scope: ToolScope,
    limits: Limits,
    /// Tokens that the calls used so far.
    pub usage: Usage,
    /// Calls that were answered.
    pub calls: u32,
}

impl<'d, 'a> Dialogue<'d, 'a> {
    pub fn new(
        attempt: &'d mut Attempt<'a>,
        setup: &'d Setup,
        prompt: Prompt,
        scope: ToolScope,
        limits: Limits,
    ) -> Self {
        Self { attempt, setup, prompt, scope, limits, usage: Usage::default(), calls: 0 }
    }

    /// Calls the model until it answers without requesting tools.
    pub async fn speak(&mut self) -> Result<Completion, AiFault> {
        for round in 1..=MAX_ROUNDS {
            let completion = self.ask(round).await?;
            if completion.tool_calls.is_empty() {
                return Ok(completion);
            }
            if self.prompt.tools.is_empty() {
                return Err(stubborn("the model requested a tool, but none was offered"));
            }
            if round < MAX_ROUNDS {
                self.use_tools(completion).await?;
            }
        }
        Err(stubborn("the model requested tools five times without a response"))
    }

    /// One call to the model.
    async fn ask(&mut self, round: u32) -> Result<Completion, AiFault> {
        let started = self.attempt.ctx.store.now();
        let limits = ai::Limits { silence: self.limits.silence, total: self.left()? };
        let (ctx, endpoint) = (self.attempt.ctx, &self.setup.endpoint);
        let dialects = &ctx.node.dialects;
        let answered = ai::complete(&ctx.egress, dialects, &ctx.clock, endpoint, &self.prompt, limits).await;
        let counted = answered.as_ref().map_or_else(|fault| fault.class.as_str(), |_| "answered");
        self.attempt.ctx.node.counters.ai_calls.count(counted);
        let mut detail = StepDetail {
            source: Some(self.setup.source.to_owned()),
            model: Some(self.prompt.model.clone()),
            round: Some(round),
            messages: Some(self.prompt.messages.len() as u64),
            images: Some(self.prompt.images() as u64),
            tools: Some(self.prompt.tools.len() as u64),
            ..StepDetail::default()
        };
        let redactor = self.attempt.redactor();
        let status = match &answered {
            Ok(completion) => {
                let usage = completion.usage.unwrap_or_default();
                self.calls += 1;
                self.usage += usage;
                detail.finish_reason.clone_from(&completion.finish_reason);
                detail.usage = completion.usage;
                let left_out = completion.left_out.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
                detail.left_out = Some(left_out).filter(|parts| !parts.is_empty());
                detail.answer = Some(redactor.body(completion.text.as_bytes()));
                let names = completion.tool_calls.iter().map(|call| redactor.text(&call.name));
                detail.tool_calls = Some(names.collect());
                TraceStatus::Ok
            }
            Err(fault) => {
                let told =
                    self.setup.endpoint_message(fault).map(|message| redactor.body(message.as_bytes()));
                let (class, message) = (fault.class.as_str(), redactor.text(&fault.message));
                detail.error =
                    Some(StepError { class: Some(class.to_owned()), told, ..StepError::new(message) });
                TraceStatus::Error
            }
        };
        self.attempt.step(StepKind::Ai, status, started, detail);
        answered
    }

    /// Calls the requested tools in the order of the model, and adds the results to the conversation.
    async fn use_tools(&mut self, completion: Completion) -> Result<(), AiFault> {
        let calls = completion.tool_calls.clone();
        self.prompt.messages.push(Message::asking(completion));
        for call in calls {
            let answer = self.use_tool(&call).await?;
            self.prompt.messages.push(Message::of_tool(&call, answer));
            self.scope.place += 1;
        }
        Ok(())
    }

    async fn use_tool(&mut self, call: &ToolCall) -> Result<String, AiFault> {
        let ctx = self.attempt.ctx;
        let started = ctx.store.now();
        let is_offered = self.prompt.tools.iter().any(|Tool::Function { name, .. }| *name == call.name);
        let answered = if is_offered {
            let tool = ctx.tools.call(&self.scope, call);
            let in_time = ctx.clock.timeout(self.left()?.min(self.limits.silence), tool).await;
            in_time.unwrap_or_else(|| Err(Cause::ToolTimeout.to_string()))
        } else {
            Err(Cause::NoSuchTool { name: call.name.clone() }.to_string())
        };
        let status = if answered.is_ok() { TraceStatus::Ok } else { TraceStatus::Error };
        let answer = answered.unwrap_or_else(|error| format!("error: {error}"));
        let answer = answer[..answer.floor_char_boundary(MAX_TOOL_ANSWER)].to_owned();
        let redactor = self.attempt.redactor();
        let mut name = redactor.text(&call.name);
        name.truncate(name.floor_char_boundary(MAX_NAME));
        let detail = StepDetail {
            tool: Some(name),
            arguments: Some(redactor.body(call.arguments.as_bytes())),
            answer: Some(redactor.body(answer.as_bytes())),
            ..StepDetail::default()
        };
        self.attempt.step(StepKind::ToolCall, status, started, detail);
        Ok(answer)
    }

    /// The time that is left for everything.
    fn left(&self) -> Result<Duration, AiFault> {
        let used = self.attempt.ctx.clock.instant().since(self.limits.started);
        let left = self.limits.total.checked_sub(used).filter(|left| !left.is_zero());
        left.ok_or_else(|| {
            let message = format!("no response within {} s", self.limits.total.as_secs());
            AiFault::new(AiFaultClass::Egress(EgressFault::Timeout), message)
        })
    }
}

/// Returns a permanent fault: the model would do the same again in a retry.
fn stubborn(message: &'static str) -> AiFault {
    AiFault { permanent: true, ..AiFault::new(AiFaultClass::NotUnderstood, message) }
}
