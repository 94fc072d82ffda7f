//! Calls of apps' tools for models: the app gets a command, signed like any event, and its reply is the result for
//! the model. A call is in the app's log of events once it has ended.
//!
//! A call that is made again is the same event for the app. If the log holds its whole answer, the app is not
//! called again: the model or the hub failed after the tool had done its work.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{
    app_reply::Answered,
    sink::app::{call_of, logged},
};
use crate::{
    access::{Actor, AppActor},
    ai::{Tool, ToolCall, ToolScope, Tools},
    apps::{AppEventKind, AppEventState, MAX_LOGGED_BODY, Toolbox, tool_calls},
    bots::{Attachment, Bots, NewSend},
    context::Context,
    egress::Receipt,
    error::{Error, ErrorCode, Result},
    id::AppEventId,
    secret::KeyMark,
    store::app_events::{DueEvent, EventAttempt, NewAppEvent},
    time::{Stopwatch, Timestamp},
};

/// Timeout of a tool: longer than the timeout of an event, since the app may have to call other services, and
/// within the time limit of an answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Message to the model after a fault of the hub itself; the log has the details.
const FAULT: &str = "the hub could not call the tool";

/// The tools of the apps on a bot.
#[derive(Debug)]
pub(crate) struct AppTools {
    ctx: Context,
}

impl AppTools {
    /// Creates the tools of this hub. The context must not hold them already: the two would keep each other alive.
    pub(crate) fn new(ctx: Context) -> Self {
        Self { ctx }
    }

    async fn toolboxes(&self, scope: &ToolScope) -> Result<Vec<Toolbox>> {
        self.ctx.store.read().await?.installations().toolboxes(scope.bot_id).await
    }

    /// Finds the called tool and validates its arguments.
    async fn question(&self, scope: &ToolScope, call: &ToolCall) -> Result<Question, Refusal> {
        // Once more: the app may have been taken off since it was offered.
        let apps = self.toolboxes(scope).await?;
        let Some((of, tool)) = tool_calls::find(&apps, &call.name) else {
            return Err(Refusal(format!("there is no tool called {} any more", call.name)));
        };
        let (checked, text) = (tool.clone(), call.arguments.clone());
        let arguments = self
            .ctx
            .computations
            .run(move || tool_calls::arguments(&checked, &text))
            .await?
            .map_err(Refusal)?;
        Ok(Question::new(scope, of, &tool.name, &arguments, self.ctx.store.now()))
    }

    /// Returns the logged answer of the same call, if the log holds all of it.
    async fn answered_before(&self, id: AppEventId) -> Result<Option<String>> {
        let attempt = self.ctx.store.read().await?.app_events().find(id).await?;
        let done = attempt.filter(|attempt| attempt.state == AppEventState::Delivered);
        Ok(done.map(|attempt| attempt.response_body).filter(|body| body.len() < MAX_LOGGED_BODY))
    }

    async fn ask(&self, question: &Question) -> Result<Receipt, Refusal> {
        let mut note = Note::begin(&self.ctx, &question.event);
        let call = call_of(&self.ctx, &question.due, self.ctx.store.now(), CALL_TIMEOUT)?;
        let answer = self.ctx.clock.timeout(CALL_TIMEOUT, self.ctx.egress.receive(call)).await;
        let (refusal, error) = match answer {
            Some(Ok(answer)) => {
                note.attempt.response_status = Some(answer.status.as_u16());
                note.attempt.response_body = logged(&answer);
                if answer.status.is_success() {
                    note.attempt.state = AppEventState::Delivered;
                    note.attempt.error = None;
                    note.store().await?;
                    return Ok(answer);
                }
                let status = format!("status {}", answer.status.as_u16());
                (format!("the app answered with {status}"), status)
            }
            // The exact failure is for the user who installed the app.
            Some(Err(error)) => {
                (format!("the app was not reached: {}", error.fault.as_str()), error.to_string())
            }
            None => {
                let late = format!("no response within {} s", CALL_TIMEOUT.as_secs());
                (format!("the app gave {late}"), late)
            }
        };
        note.attempt.error = Some(error);
        note.store().await?;
        Err(Refusal(refusal))
    }

    /// Sends a file to the person of a call as its app; once, however often the call is made.
    async fn send(&self, due: &DueEvent, media: Option<Attachment>) -> Result<()> {
        let actor = Actor::App(AppActor {
            installation_id: due.installation_id,
            app_id: due.app_id,
            bot_id: due.bot_id,
            owner_id: due.owner_id,
            is_own: false,
            scopes: due.scopes.unwrap_or_default(),
            token: KeyMark::default(),
        });
        let to_user_id = Some(due.peer.clone());
        let new = NewSend { to_user_id, media, trace_id: due.trace_id, ..NewSend::default() };
        let once = format!("reply:{}", due.id);
        match Bots::new(&self.ctx).send(&actor, due.bot_id, new, Some(&once)).await {
            // It was sent before, with another response.
            Err(error) if error.code() == ErrorCode::Conflict => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// Returns the result for the model. A file in the answer is sent to the person.
    async fn result(
        &self,
        question: &Question,
        (mut answer, unusable): (Answered, Option<String>),
    ) -> String {
        let (later, text) = (answer.later, std::mem::take(&mut answer.text));
        if later {
            let text = if text.is_empty() { text } else { format!(": {text}") };
            return format!("the app is working on it and will reply to the person itself{text}");
        }
        let sent = match answer.file() {
            Ok(None) => None,
            Ok(file) => Some(self.send(&question.due, file).await),
            Err(error) => Some(Err(error)),
        };
        let sent = match sent {
            None if text.is_empty() => match unusable {
                None => "the app completed it without a reply".to_owned(),
                Some(why) => format!("the reply of the app cannot be used: {why}"),
            },
            None => String::new(),
            Some(Ok(())) => "(a file from the app was sent to the person)".to_owned(),
            Some(Err(error)) => format!("(a file from the app could not be sent: {})", error.message()),
        };
        [text, sent].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

#[async_trait]
impl Tools for AppTools {
    async fn offered(&self, scope: &ToolScope) -> Result<Vec<Tool>> {
        Ok(tool_calls::offered(&self.toolboxes(scope).await?))
    }

    async fn call(&self, scope: &ToolScope, call: &ToolCall) -> Result<String, String> {
        let answered = async {
            let question = self.question(scope, call).await?;
            let answered = match self.answered_before(question.event.id).await? {
                Some(body) => Answered::of_text(&body),
                None => Answered::read(&self.ask(&question).await?),
            };
            Ok::<_, Refusal>(self.result(&question, answered).await)
        };
        answered.await.map_err(|Refusal(attempt)| attempt)
    }
}

/// The result for the model if there is no response.
struct Refusal(String);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        tracing::warn!(%error, "a tool of an app could not be called");
        Self(FAULT.to_owned())
    }
}

/// One call, as the event in the log and as the request to the app.
struct Question {
    event: NewAppEvent,
    due: DueEvent,
}

impl Question {
    fn new(scope: &ToolScope, of: &Toolbox, tool: &str, arguments: &Value, now: Timestamp) -> Self {
        let app = of.app;
        let id = tool_calls::event_id((scope.delivery_id, scope.place), app.installation_id, tool, arguments);
        let group = if scope.peer == scope.user_id { Value::Null } else { json!({ "id": scope.peer }) };
        // By the tool's name: its command is what people type. `agent` says that the person did not ask in these
        // words.
        let data = json!({ "message_id": scope.message_id, "command": tool, "text": "", "args": arguments,
            "sender": { "id": scope.user_id, "role": "agent" }, "group": group });
        let kind = AppEventKind::Command.as_str().to_owned();
        let event =
            json!({ "type": kind, "id": id, "timestamp": now.as_seconds(), "data": data }).to_string();
        let due = DueEvent {
            id,
            app_id: app.app_id,
            bot_id: app.bot_id,
            owner_id: app.owner_id,
            installation_id: app.installation_id,
            scopes: Some(app.scopes),
            kind: kind.clone(),
            trace_id: Some(scope.trace_id),
            peer: scope.peer.clone(),
            event: event.clone(),
            state: AppEventState::Pending,
            attempts: 0,
            webhook_url: Some(of.webhook_url.clone()),
            webhook_secret: of.webhook_secret.clone(),
            created_at: now,
        };
        let event = NewAppEvent {
            id,
            app_id: app.app_id,
            bot_id: app.bot_id,
            installation_id: app.installation_id,
            message_id: Some(scope.message_id),
            trace_id: Some(scope.trace_id),
            kind,
            peer: scope.peer.clone(),
            event,
            now,
        };
        Self { event, due }
    }
}

/// The log entry of a call. If it is dropped before it is stored, it is stored with a timeout error.
struct Note<'a> {
    ctx: &'a Context,
    event: Option<NewAppEvent>,
    attempt: EventAttempt,
    watch: Stopwatch,
}

impl<'a> Note<'a> {
    fn begin(ctx: &'a Context, event: &NewAppEvent) -> Self {
        let attempt = EventAttempt {
            id: event.id,
            state: AppEventState::Failed,
            response_status: None,
            response_body: String::new(),
            error: Some("the time for the whole response had expired".to_owned()),
            duration_ms: 0,
        };
        Self { ctx, event: Some(event.clone()), attempt, watch: Stopwatch::start() }
    }

    fn entry(&mut self) -> Option<(NewAppEvent, EventAttempt)> {
        let took = u64::try_from(self.watch.elapsed().as_millis()).unwrap_or(u64::MAX);
        let attempt = EventAttempt { duration_ms: took, ..self.attempt.clone() };
        self.event.take().map(|event| (event, attempt))
    }

    /// Stores the entry before the answer is used, so that the app is not called again.
    async fn store(mut self) -> Result<()> {
        let Some((event, attempt)) = self.entry() else { return Ok(()) };
        let write = self
            .ctx
            .store
            .write(move |tx| Box::pin(async move { tx.app_events().note(&event, &attempt).await }));
        write.await
    }
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        if let Some((event, attempt)) = self.entry() {
            self.ctx
                .store
                .write_later(move |tx| Box::pin(async move { tx.app_events().note(&event, &attempt).await }));
        }
    }
}
