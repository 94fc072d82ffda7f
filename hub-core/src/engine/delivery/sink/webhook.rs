//! The webhook sink: one signed POST.

use std::time::Duration;

use http::header;

use crate::{
    delivery::{
        channels::ChannelRuntime,
        job::Job,
        retry::Verdict,
        stage::{Answered, Outcome, Prepared, Request},
        work_store::WorkContext,
    },
    egress::{Call, CheckedUrl, EgressError, EgressFault, Receipt},
    error::Result,
    model::{
        cause::Cause,
        trace::{Step, StepDetail, StepError, StepKind, StepName, TraceStatus},
    },
    redact::Redactor,
    signing::{self, Method, Signing},
    time::Timestamp,
};

/// Bytes of a response that are read, for plugins and replies; a trace keeps fewer.
const MAX_ANSWER: usize = 1024 * 1024;

impl<'j> Prepared<'j> {
    /// Posts to the channel's URL once. Whether the attempt is repeated is decided from the result.
    pub(in crate::engine::delivery) async fn attempt(self, ctx: &WorkContext) -> Answered<'j> {
        self.post(ctx, false).await
    }

    /// As [`attempt`](Self::attempt), for steps that are not stored: that of the request contains how long its phases took.
    pub(in crate::engine::delivery) async fn measured_attempt(self, ctx: &WorkContext) -> Answered<'j> {
        self.post(ctx, true).await
    }

    async fn post(self, ctx: &WorkContext, is_measured: bool) -> Answered<'j> {
        let Self { job, channel, request, replies, replied, states, mut steps } = self;
        let (outcome, request, response) = match request {
            Err(outcome) => (outcome, None, None),
            Ok(request) => {
                let (outcome, response) = post(ctx, (job, &channel), &request, is_measured, &mut steps).await;
                (outcome, Some(request), response)
            }
        };
        Answered { job, channel, outcome, request, response, replies, replied, states, steps }
    }
}

/// Signs and sends; adds the steps `request` and, when something came back, `response`.
async fn post(
    ctx: &WorkContext,
    (job, channel): (&Job, &ChannelRuntime),
    request: &Request,
    is_measured: bool,
    steps: &mut Vec<Step>,
) -> (Outcome, Option<Receipt>) {
    // By the clock that all nodes share: receivers refuse signatures that are minutes old.
    let started = ctx.store.now();
    let redactor = job.redactor(channel);
    let step = |status, ended, detail| {
        Step::new(StepName::Request, StepKind::Webhook, status, started, ended, detail)
    };
    let mut detail = StepDetail { method: Some(request.method.as_str().to_owned()), ..StepDetail::default() };
    let known = channel.webhook_target.as_ref().filter(|_| request.url == channel.webhook.url);
    let url = match known.map_or_else(|| ctx.egress.check_url(&request.url), |url| Ok(url.clone())) {
        Ok(url) => url,
        Err(error) => {
            // It was acceptable when it was saved: the rules are others now.
            let class = EgressFault::BlockedAddress.as_str();
            detail.error = Some(of_class(class, error.message().to_owned()));
            steps.push(step(TraceStatus::Error, started, detail));
            let summary = format!("{class}: {}", error.message());
            return (Outcome::Failure { summary, permanent: true }, None);
        }
    };
    let call = match sign(job, channel, request, url, started) {
        Ok(call) => call,
        Err(error) => {
            detail.error = Some(StepError::new(error.to_string()));
            steps.push(step(TraceStatus::Error, started, detail));
            ctx.node.counters.attempts.count("unsendable");
            // Nothing but another configuration helps, and that makes a replay, not a retry.
            return (Outcome::Failure { summary: error.message().to_owned(), permanent: true }, None);
        }
    };
    detail.url = Some(redactor.url(call.url.as_url()));
    detail.headers = Some(redactor.headers(&call.headers));
    if !is_measured && can_be_made_again(job, channel, &request.body) {
        detail.payload_crc = Some(crc32fast::hash(&request.body));
    } else {
        detail.body = Some(redactor.body(&request.body));
    }
    let (answer, phases) = ctx.egress.receive_measured(call).await;
    if is_measured {
        detail.phases = Some((&phases).into());
    }
    let ended = ctx.store.now();
    match answer {
        Ok(answer) => {
            ctx.node.counters.count_answer(answer.status);
            steps.push(step(TraceStatus::Ok, ended, detail));
            let outcome = judge(&answer, ended, &redactor, steps);
            (outcome, Some(answer))
        }
        Err((EgressError { fault, message, .. }, phase)) => {
            ctx.node.counters.attempts.count(fault.as_str());
            let phase = is_measured.then_some(phase);
            detail.error = Some(StepError { phase, ..of_class(fault.as_str(), message.clone()) });
            steps.push(step(TraceStatus::Error, ended, detail));
            (Outcome::Failure { summary: format!("{}: {message}", fault.as_str()), permanent: false }, None)
        }
    }
}

/// Whether a body can be made again out of the stored message, with nothing to mask but the permission to answer. Then a
/// trace, which lives no longer than its message, need not store it.
fn can_be_made_again(job: &Job, channel: &ChannelRuntime, body: &[u8]) -> bool {
    let is_payload = channel.plugins.is_empty() && !job.content.has_media && job.channel_text.is_none();
    is_payload && channel.redactor.is_clean(body)
}

fn judge(answer: &Receipt, now: Timestamp, redactor: &Redactor, steps: &mut Vec<Step>) -> Outcome {
    let verdict = Verdict::of(answer.status, &answer.headers, now);
    let status = if verdict == Verdict::Success { TraceStatus::Ok } else { TraceStatus::Error };
    let detail = StepDetail {
        status: Some(answer.status.as_u16()),
        headers: Some(redactor.headers(&answer.headers)),
        body: Some(redactor.response(answer)),
        reason: answer.end.problem(),
        ..StepDetail::default()
    };
    steps.push(Step::new(StepName::Response, StepKind::Webhook, status, now, now, detail));
    Outcome::Answer { verdict, summary: summary(answer, redactor) }
}

/// The status, and the target of a redirect, since none is followed.
fn summary(answer: &Receipt, redactor: &Redactor) -> String {
    let status = answer.status.as_u16();
    let location = answer.headers.get(header::LOCATION).filter(|_| answer.status.is_redirection());
    match location {
        None => Cause::Status { status },
        Some(location) => Cause::Redirected { status, location: redactor.header(location) },
    }
    .to_string()
}

/// Adds authentication to the final bytes: nothing changes the request after this.
fn sign(
    job: &Job,
    channel: &ChannelRuntime,
    request: &Request,
    url: CheckedUrl,
    now: Timestamp,
) -> Result<Call> {
    // A replay to another address never carries the channel's credentials there.
    let replayed_elsewhere = job.target_url.as_ref().is_some_and(|target| *target != channel.webhook.url);
    // Nor does a request that a plugin sent to another origin.
    let is_own = |own: &CheckedUrl| own.as_url().origin() == url.as_url().origin();
    let own = !replayed_elsewhere && channel.webhook_target.as_ref().is_some_and(is_own);
    let method = if own { Method::try_from(&channel.webhook.auth)? } else { Method::None };
    let id = job.id.to_string();
    let mut headers = request.headers.clone();
    let signing = Signing {
        method: &method,
        secret: channel.webhook_secret.as_ref().filter(|_| own),
        previous: channel.old_secret_at(now).filter(|_| own),
        id: &id,
        at: now,
        attempt: job.attempts + 1,
        body: &request.body,
    };
    signing::sign(&signing, &mut headers)?;
    Ok(Call {
        method: request.method.clone(),
        url,
        headers,
        body: request.body.clone(),
        deadline: Duration::from_millis(u64::from(channel.webhook.timeout_ms)),
        max_answer: MAX_ANSWER,
    })
}

/// The failure of a request that has a class.
fn of_class(class: &str, message: String) -> StepError {
    StepError { class: Some(class.to_owned()), ..StepError::new(message) }
}
