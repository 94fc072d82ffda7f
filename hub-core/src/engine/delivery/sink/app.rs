//! The app sink: one POST of an event, signed as published apps expect it, and the replies in its response.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, header};

use crate::{
    access::AppScope,
    apps::{AppEventKind, MAX_LOGGED_BODY, add_links, envelope, secret_place},
    body_text,
    bots::{Attachment, Fetched},
    context::Context,
    delivery::{
        app_reply::Answered,
        retry::Verdict,
        stage::{Concluded, Outcome, Reply, ReplyContent, ReplyFile},
        work_store::WorkContext,
    },
    egress::{Call, Receipt},
    error::{Error, Result},
    media::MediaRoom,
    model::{
        app_event::socket_wait,
        cause::Cause,
        trace::{Step, StepDetail, StepError, StepKind, StepName, TraceStatus},
    },
    secret::Secret,
    signing,
    store::app_events::DueEvent,
    time::{Stopwatch, Timestamp},
};

/// Timeout of a request to an app.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a response that are read; a response may contain a file.
const MAX_ANSWER: usize = 1024 * 1024;

/// An attempt to deliver an event.
#[derive(Debug)]
pub(in crate::engine::delivery) struct SentEvent {
    pub(in crate::engine::delivery) concluded: Concluded,
    /// Status of the response, if one came.
    pub(in crate::engine::delivery) status: Option<u16>,
    /// Beginning of the response, as the log of events keeps it.
    pub(in crate::engine::delivery) body: String,
    pub(in crate::engine::delivery) took: Duration,
    /// The memory that a fetched file takes up until it is stored.
    _room: Option<MediaRoom>,
}

impl SentEvent {
    /// An attempt in which the hub itself failed. It counts, so that an event that always fails ends.
    pub(in crate::engine::delivery) fn panicked() -> Self {
        let summary = Cause::InternalError.to_string();
        Self::unanswered(Outcome::Failure { summary, permanent: false }, Vec::new(), Duration::ZERO)
    }

    fn unanswered(outcome: Outcome, steps: Vec<Step>, took: Duration) -> Self {
        let concluded = Concluded { outcome, replies: Vec::new(), steps };
        Self { concluded, status: None, body: String::new(), took, _room: None }
    }
}

/// Sends an event to its app once.
pub(in crate::engine::delivery) async fn send(ctx: &WorkContext, event: &mut DueEvent) -> SentEvent {
    let (started, watch) = (ctx.store.now(), Stopwatch::start());
    let answered = match blocked(event, started) {
        Some(outcome) => Err(outcome),
        None => call(ctx, event).await.map_err(|summary| Outcome::Failure { summary, permanent: false }),
    };
    let took = watch.elapsed();
    match answered {
        Ok(receipt) => concluded(ctx, event, &receipt, started, took).await,
        Err(outcome) => {
            let steps = match &outcome {
                Outcome::Failure { summary, .. } => {
                    vec![response_step(event, None, "", Some(summary), (started, ctx.store.now()))]
                }
                _ => Vec::new(),
            };
            SentEvent::unanswered(outcome, steps, took)
        }
    }
}

/// The outcome of an attempt that cannot be made.
fn blocked(event: &DueEvent, now: Timestamp) -> Option<Outcome> {
    let permanent = |cause: Cause| Outcome::Failure { summary: cause.to_string(), permanent: true };
    // The event about the removal follows the removal.
    if event.scopes.is_none() && event.kind != AppEventKind::AppUninstalled.as_str() {
        return Some(permanent(Cause::AppOff));
    }
    if event.webhook_url.is_some() {
        return None;
    }
    let until = event.created_at + socket_wait();
    if now < until {
        return Some(Outcome::Waits { cause: Cause::WaitsForSocket, recheck: until.since(now) });
    }
    Some(permanent(Cause::NoSocket))
}

/// Sends the request; fails with a line about what went wrong.
async fn call(ctx: &WorkContext, event: &mut DueEvent) -> Result<Receipt, String> {
    let unsendable = |error: Error| error.message().to_owned();
    add_links(ctx.files(), std::iter::once(&mut event.event)).await.map_err(unsendable)?;
    let call = call_of(ctx, event, ctx.store.now(), CALL_TIMEOUT).map_err(unsendable)?;
    ctx.egress.receive(call).await.map_err(|error| error.to_string())
}

async fn concluded(
    ctx: &WorkContext,
    event: &DueEvent,
    receipt: &Receipt,
    started: Timestamp,
    took: Duration,
) -> SentEvent {
    let (status, ended) = (receipt.status.as_u16(), ctx.store.now());
    let verdict = Verdict::of(receipt.status, &receipt.headers, ended);
    let summary = match verdict {
        Verdict::Success => Cause::AppDelivered,
        _ => Cause::Status { status },
    };
    let summary = summary.to_string();
    let error = (verdict != Verdict::Success).then_some(&*summary);
    let body = logged(receipt);
    let mut steps = vec![response_step(event, Some(status), &body, error, (started, ended))];
    let (replies, room) = match verdict {
        Verdict::Success => replies(ctx, event, receipt, &mut steps).await,
        _ => (Vec::new(), None),
    };
    let concluded = Concluded { outcome: Outcome::Answer { verdict, summary }, replies, steps };
    SentEvent { concluded, status: Some(status), body, took, _room: room }
}

fn response_step(
    event: &DueEvent,
    status: Option<u16>,
    body: &str,
    error: Option<&str>,
    (started, ended): (Timestamp, Timestamp),
) -> Step {
    let detail = StepDetail {
        event_id: Some(event.id),
        status,
        body: Some(body.to_owned()),
        error: error.map(StepError::new),
        ..StepDetail::default()
    };
    let status = if error.is_none() { TraceStatus::Ok } else { TraceStatus::Error };
    Step::new(StepName::Response, StepKind::App, status, started, ended, detail)
}

/// The replies of an app to the person who wrote. A reply that is not sent on purpose is a step with the reason.
async fn replies(
    ctx: &WorkContext,
    event: &DueEvent,
    receipt: &Receipt,
    steps: &mut Vec<Step>,
) -> (Vec<Reply>, Option<MediaRoom>) {
    let (mut answered, unsent) = Answered::read(receipt);
    let (later, text) = (answered.later, std::mem::take(&mut answered.text));
    let file = answered.file();
    let has_reply = !text.is_empty() || !matches!(file, Ok(None));
    let reason = match (has_reply, unsent) {
        (false, None) => return (Vec::new(), None),
        (false, Some(why)) => Some(why),
        (true, _) if event.peer.is_empty() => Some(Cause::EventWithoutPerson.to_string()),
        (true, _) if event.scopes.is_none() => Some(Cause::AppGone.to_string()),
        (true, _) if later => Some(Cause::RepliesLater.to_string()),
        (true, _) => None,
    };
    if let Some(reason) = reason {
        let (now, detail) = (ctx.store.now(), StepDetail { reason: Some(reason), ..StepDetail::default() });
        steps.push(Step::new(StepName::Reply, StepKind::App, TraceStatus::Skipped, now, now, detail));
        return (Vec::new(), None);
    }
    let (content, room) = content(ctx, event, text, file).await;
    (vec![Reply { key: "0".to_owned(), by: StepKind::App, content }], room)
}

/// The content of a reply, whose file is fetched if the app named its address.
async fn content(
    ctx: &WorkContext,
    event: &DueEvent,
    text: String,
    file: Result<Option<Attachment>>,
) -> (ReplyContent, Option<MediaRoom>) {
    let unsendable = |error: Error| (ReplyContent::Unsendable(Cause::read(error.message())), None);
    if let Err(error) = event.scopes.unwrap_or_default().require(AppScope::MessageWrite) {
        return unsendable(error);
    }
    let file = match file {
        Ok(None) => return (ReplyContent::Text(text), None),
        Ok(Some(file)) => file,
        Err(error) => return unsendable(error),
    };
    match file.load(ctx).await {
        Ok((Fetched { file_name, content_type, bytes }, room)) => {
            let file = ReplyFile { caption: text, file_name, content_type, bytes };
            (ReplyContent::File(file), room)
        }
        Err(error) => unsendable(error),
    }
}

/// The beginning of an answer, as the log keeps it.
pub(in crate::engine::delivery) fn logged(answer: &Receipt) -> String {
    let mut text = body_text::decode(&answer.headers, &answer.body).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(MAX_LOGGED_BODY));
    text
}

/// Builds the signed request that delivers an event to the app's webhook URL.
pub(in crate::engine::delivery) fn call_of<S>(
    ctx: &Context<S>,
    event: &DueEvent,
    now: Timestamp,
    deadline: Duration,
) -> Result<Call> {
    let url = event.webhook_url.as_deref().unwrap_or_default();
    let secret = ctx.sealer.open(&secret_place(event.app_id), &event.webhook_secret)?;
    let body = envelope(event.trace_id, event.installation_id, event.bot_id, &event.event)?;
    Ok(Call {
        method: Method::POST,
        url: ctx.egress.check_url(url)?,
        headers: headers(event, &secret, &body, now)?,
        body,
        deadline,
        max_answer: MAX_ANSWER,
    })
}

fn headers(event: &DueEvent, secret: &Secret, body: &[u8], now: Timestamp) -> Result<HeaderMap> {
    let timestamp = now.as_seconds().to_string();
    let plain = |text: &str| HeaderValue::try_from(text).map_err(Error::internal);
    let mut signature = plain(&signing::app_signature(secret, &timestamp, body))?;
    signature.set_sensitive(true);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("x-app-id", plain(&event.app_id.to_string())?);
    headers.insert("x-installation-id", plain(&event.installation_id.to_string())?);
    headers.insert(signing::X_TIMESTAMP, plain(&timestamp)?);
    headers.insert(signing::X_SIGNATURE, signature);
    let trace_id = event.trace_id.map(|id| id.to_string()).unwrap_or_default();
    headers.insert("x-trace-id", plain(&trace_id)?);
    headers.insert(signing::X_HUB_ATTEMPT, (event.attempts + 1).into());
    Ok(headers)
}
