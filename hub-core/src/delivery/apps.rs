//! Delivery of events to apps: events are read from the store, posted and signed as published apps expect, and
//! retried on the schedule of webhooks; replies in responses are sent to the person. Events of an app without a
//! webhook wait for its [sockets](crate::apps::sockets).
//!
//! A slow app does not delay the events of other apps: each app has its own limit of concurrent attempts, and an
//! attempt is short.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, header};
use tokio::sync::Notify;

use super::{
    app_reply::Answered,
    retry::{Next, Verdict, next_attempt},
};
use crate::{
    access::{Actor, AppActor},
    apps::{AppEventKind, AppEventState, MAX_LOGGED_BODY, add_links, envelope, secret_place, sockets},
    body_text,
    bots::{Attachment, Bots, NewSend},
    context::Context,
    egress::{Call, Receipt},
    error::{Error, ErrorCode, Result},
    id::TraceId,
    model::{
        cause::Cause,
        sinks::DEFAULT_SCHEDULE_S,
        trace::{PackedSteps, Step, StepDetail, StepError, StepKind, StepName, TraceStatus},
    },
    secret::{KeyMark, Secret},
    signing,
    store::{
        app_events::{DueEvent, EventAttempt},
        traces::TraceUpdate,
    },
    tasks::Tasks,
    time::{Stopwatch, Timestamp},
    wake::Hint,
};

/// Poll interval without a signal.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Events that one node delivers at the same time, of all apps and of one.
const MAX_CLAIMED: u32 = 64;
const MAX_CLAIMED_PER_APP: u32 = 4;
/// Timeout of a request to an app.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Duration of a node's claim on an event. If the node dies, another node takes the event after it.
const CLAIM_DURATION: Duration = Duration::from_secs(60);
/// Bytes of a response that are read; a response may contain a file.
const MAX_ANSWER: usize = 1024 * 1024;

pub(super) fn start(ctx: &Context, tasks: &Tasks) {
    let (ctx, own) = (ctx.clone(), tasks.clone());
    tasks.supervise("app events", ctx.clock.clone(), move || work(ctx.clone(), own.clone()));
}

async fn work(ctx: Context, tasks: Tasks) {
    let mut hints = ctx.node.wake.listen();
    let done = Arc::new(Notify::new());
    loop {
        match claim(&ctx).await {
            Ok(claimed) => {
                for event in claimed {
                    let (ctx, done) = (ctx.clone(), Arc::clone(&done));
                    tasks.spawn("app event", async move {
                        deliver(&ctx, event).await;
                        done.notify_one();
                    });
                }
            }
            Err(error) => tracing::warn!(%error, "events of apps cannot be claimed"),
        }
        let hinted =
            async { while hints.recv().await.is_ok_and(|received| received.hint != Hint::AppEvents) {} };
        tokio::select! {
            biased;
            () = tasks.stop_token().cancelled() => return,
            () = done.notified() => {}
            () = hinted => {}
            () = ctx.clock.sleep(POLL_INTERVAL) => {}
        }
    }
}

/// Claims due events, and leaves events of apps without a webhook to sockets. Writes nothing when nothing is due.
async fn claim(ctx: &Context) -> Result<Vec<DueEvent>> {
    let now = ctx.store.now();
    if !ctx.store.read().await?.app_events().has_due(now).await? {
        return Ok(Vec::new());
    }
    let write = ctx.store.write(move |tx| {
        Box::pin(async move {
            tx.app_events().park(now, sockets::wait()).await?;
            tx.app_events().claim(now, now + CLAIM_DURATION, MAX_CLAIMED_PER_APP, MAX_CLAIMED).await
        })
    });
    write.await
}

/// Makes one attempt and stores its outcome.
async fn deliver(ctx: &Context, mut due: DueEvent) {
    let (started, watch) = (ctx.store.now(), Stopwatch::start());
    let outcome = match attempt(ctx, &mut due).await {
        Ok(outcome) => outcome,
        Err(error) => Outcome::failed(error.message().to_owned()),
    };
    if let Err(error) = settle(ctx, &due, outcome, started, watch.elapsed()).await {
        tracing::warn!(event = %due.id, %error, "the outcome of an app's event could not be stored; it is sent again");
    }
}

/// Result of an attempt.
struct Outcome {
    verdict: Verdict,
    status: Option<u16>,
    body: String,
    error: Option<String>,
    /// Reason why the reply in the response is not sent, if that is not a failure.
    unsent_reply: Option<String>,
}

impl Outcome {
    fn failed(error: String) -> Self {
        Self {
            verdict: Verdict::Retry { after: None },
            status: None,
            body: String::new(),
            error: Some(error),
            unsent_reply: None,
        }
    }

    /// Returns the outcome for an event without a receiver.
    fn over(error: &str) -> Self {
        Self { verdict: Verdict::Gone, ..Self::failed(error.to_owned()) }
    }
}

async fn attempt(ctx: &Context, due: &mut DueEvent) -> Result<Outcome> {
    if due.webhook_url.is_none() {
        // The wait for a socket of the app has ended.
        return Ok(Outcome::over("no socket of the app came for it, and no URL has echoed a challenge"));
    }
    // The event about the removal follows the removal.
    if due.scopes.is_none() && due.kind != AppEventKind::AppUninstalled.as_str() {
        return Ok(Outcome::over("the app was taken off the bot, or switched off"));
    }
    add_links(ctx, std::iter::once(&mut due.event)).await?;
    let answer = match ctx.egress.receive(call_of(ctx, due, CALL_TIMEOUT)?).await {
        Ok(answer) => answer,
        Err(error) => return Ok(Outcome::failed(error.to_string())),
    };
    let verdict = Verdict::of(answer.status, &answer.headers, ctx.store.now());
    let mut outcome = Outcome {
        verdict,
        status: Some(answer.status.as_u16()),
        body: logged(&answer),
        error: (verdict != Verdict::Success).then(|| format!("status {}", answer.status.as_u16())),
        unsent_reply: None,
    };
    if verdict != Verdict::Success {
        return Ok(outcome);
    }
    let (answered, unsent) = Answered::read(&answer);
    outcome.unsent_reply = unsent;
    if let Err(error) = reply(ctx, due, answered, &mut outcome.unsent_reply).await {
        if error.code() == ErrorCode::Unavailable {
            return Ok(Outcome::failed("the hub could not send the reply".to_owned()));
        }
        let is_group = due.peer_is_group() && error.code() == ErrorCode::WindowClosed;
        let why =
            if is_group { "the chat network does not accept messages to groups" } else { error.message() };
        outcome.error = Some(format!("the reply was not sent: {why}"));
    }
    Ok(outcome)
}

/// The beginning of an answer, as the log keeps it.
pub(super) fn logged(answer: &Receipt) -> String {
    let mut text = body_text::decode(&answer.headers, &answer.body).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(MAX_LOGGED_BODY));
    text
}

/// Builds the signed request that delivers an event to the app's webhook URL.
pub(super) fn call_of(ctx: &Context, due: &DueEvent, deadline: Duration) -> Result<Call> {
    let url = due.webhook_url.as_deref().unwrap_or_default();
    let secret = ctx.sealer.open(&secret_place(due.app_id), &due.webhook_secret)?;
    let body = envelope(due.trace_id, due.installation_id, due.bot_id, &due.event)?;
    Ok(Call {
        method: Method::POST,
        url: ctx.egress.check_url(url)?,
        headers: headers(due, &secret, &body, ctx.store.now())?,
        body,
        deadline,
        max_answer: MAX_ANSWER,
    })
}

fn headers(due: &DueEvent, secret: &Secret, body: &[u8], now: Timestamp) -> Result<HeaderMap> {
    let timestamp = now.as_seconds().to_string();
    let plain = |text: &str| HeaderValue::try_from(text).map_err(Error::internal);
    let mut signature = plain(&signing::app_signature(secret, &timestamp, body))?;
    signature.set_sensitive(true);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("x-app-id", plain(&due.app_id.to_string())?);
    headers.insert("x-installation-id", plain(&due.installation_id.to_string())?);
    headers.insert(signing::X_TIMESTAMP, plain(&timestamp)?);
    headers.insert(signing::X_SIGNATURE, signature);
    let trace_id = due.trace_id.map(|id| id.to_string()).unwrap_or_default();
    headers.insert("x-trace-id", plain(&trace_id)?);
    headers.insert(signing::X_HUB_ATTEMPT, (due.attempts + 1).into());
    Ok(headers)
}

/// Sends the reply of an app to the person who wrote. If it is not sent on purpose, `unsent` gets the reason.
async fn reply(
    ctx: &Context,
    due: &DueEvent,
    mut answer: Answered,
    unsent: &mut Option<String>,
) -> Result<()> {
    let (later, content) = (answer.later, std::mem::take(&mut answer.text));
    let media = answer.file()?;
    if content.is_empty() && media.is_none() {
        return Ok(());
    }
    let reason = if due.peer.is_empty() {
        Cause::EventWithoutPerson
    } else if due.scopes.is_none() {
        Cause::AppGone
    } else if later {
        Cause::RepliesLater
    } else {
        return send(ctx, due, content, media).await;
    };
    *unsent = Some(reason.to_string());
    Ok(())
}

/// Sends something to the person of an event as its app; once, however often the event is sent.
pub(super) async fn send(
    ctx: &Context,
    due: &DueEvent,
    content: String,
    media: Option<Attachment>,
) -> Result<()> {
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
    let new = NewSend { to_user_id, content, media, trace_id: due.trace_id, ..NewSend::default() };
    let once = format!("reply:{}", due.id);
    match Bots::new(ctx).send(&actor, due.bot_id, new, Some(&once)).await {
        // It was sent before, with another response.
        Err(error) if error.code() == ErrorCode::Conflict => Ok(()),
        sent => sent.map(drop),
    }
}

/// Stores the outcome of an attempt, with its steps in the trace.
async fn settle(
    ctx: &Context,
    due: &DueEvent,
    outcome: Outcome,
    started: Timestamp,
    took: Duration,
) -> Result<()> {
    let now = ctx.store.now();
    let attempts = due.attempts + 1;
    let (state, due_at) = match outcome.verdict {
        Verdict::Success => (AppEventState::Delivered, now),
        Verdict::Gone => (AppEventState::Failed, now),
        Verdict::Retry { after } => {
            match next_attempt(attempts, &DEFAULT_SCHEDULE_S, after, now, &ctx.random) {
                Next::At(at) => (AppEventState::Pending, at),
                Next::Dead => (AppEventState::Failed, now),
            }
        }
    };
    let trace = due.trace_id.map(|id| trace_of(id, due, &outcome, state, attempts, (started, now)));
    let attempt = EventAttempt {
        id: due.id,
        state,
        due_at,
        response_status: outcome.status,
        response_body: outcome.body,
        error: outcome.error.or(outcome.unsent_reply.map(|why| format!("the reply was not sent: {why}"))),
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    };
    // A receiver that responds with 410 gets no further events until it is verified again.
    let gone = due.webhook_url.clone().filter(|_| attempt.response_status == Some(410));
    let app_id = due.app_id;
    let write = ctx.store.write(move |tx| {
        Box::pin(async move {
            tx.app_events().settle(&attempt).await?;
            if let Some(url) = gone {
                tx.apps().set_verified(app_id, &url, false).await?;
                tx.apps().begin_change(app_id).await?;
            }
            match &trace {
                Some(trace) => tx.traces().update(&[trace]).await,
                None => Ok(()),
            }
        })
    });
    write.await
}

fn trace_of(
    id: TraceId,
    due: &DueEvent,
    outcome: &Outcome,
    state: AppEventState,
    attempts: u32,
    (started, ended): (Timestamp, Timestamp),
) -> TraceUpdate {
    let ok = outcome.verdict == Verdict::Success;
    // The app took the event and its reply could not be sent: an error, too.
    let status = if ok && outcome.error.is_none() { TraceStatus::Ok } else { TraceStatus::Error };
    let detail = StepDetail {
        event_id: Some(due.id),
        status: outcome.status,
        body: Some(outcome.body.clone()),
        error: outcome.error.as_deref().map(StepError::new),
        ..StepDetail::default()
    };
    let step = |name, status, detail| {
        Step::new(name, StepKind::App, status, started, ended, detail).of_attempt(attempts)
    };
    let mut steps = vec![step(StepName::Response, status, detail)];
    steps.extend(outcome.unsent_reply.as_ref().map(|why| {
        let detail = StepDetail { reason: Some(why.clone()), ..StepDetail::default() };
        step(StepName::Reply, TraceStatus::Skipped, detail)
    }));
    let over = state != AppEventState::Pending;
    let summary = match (over, ok) {
        (true, true) => match &outcome.error {
            Some(error) => Cause::AppDeliveredWithout { failure: Box::new(Cause::read(error)) },
            None => Cause::AppDelivered,
        },
        (true, false) => Cause::AppNotDelivered,
        (false, _) => Cause::AppRetrying { attempt: attempts, attempts: DEFAULT_SCHEDULE_S.len() + 1 },
    };
    TraceUpdate {
        id,
        status: over.then_some(status),
        ended: i64::from(over),
        summary: Some(summary.to_string()),
        attempts: Some(attempts.into()),
        ended_at: ended,
        steps: PackedSteps::new(id, &steps),
    }
}
