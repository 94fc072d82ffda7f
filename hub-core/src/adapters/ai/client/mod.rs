//! One call over the guarded client.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Method;
use tokio::sync::Notify;

use super::{AiFault, AiFaultClass, Completion, Dialects, Endpoint, Limits, Prompt, reader::AnswerReader};
use crate::{
    egress::{Call, Egress, EgressError, EgressFault},
    time::Clock,
};

/// Largest response, framing included, in bytes. Of an answer far less is kept: see [`MAX_ANSWER`](super::MAX_ANSWER).
pub const MAX_RESPONSE: usize = 32 * 1024 * 1024;

/// Asks a model. The answer is requested as a stream; whatever comes is read by its first bytes. A refusal teaches: what
/// it names is left out or renamed and the call is repeated, once for each part of the request. What was learned is
/// remembered in `dialects`.
///
/// # Errors
/// [`AiFault`].
pub async fn complete(
    egress: &Egress,
    dialects: &Dialects,
    clock: &Clock,
    endpoint: &Endpoint,
    prompt: &Prompt,
    limits: Limits,
) -> Result<Completion, AiFault> {
    let (url, headers) = (endpoint.url(egress)?, endpoint.headers()?);
    let known = dialects.of(endpoint, &prompt.model, clock.instant());
    let mut dialect = known;
    loop {
        let call = Call {
            method: Method::POST,
            url: url.clone(),
            headers: headers.clone(),
            body: Bytes::from(crate::text::json(&dialect.request(prompt))),
            deadline: limits.total,
            max_answer: MAX_RESPONSE,
        };
        match ask(egress, call, limits.silence).await {
            Err(refused) if dialect.learn(&refused, prompt) => {}
            Ok(completion) => {
                if dialect != known {
                    dialects.remember(endpoint, &prompt.model, dialect, clock.instant());
                }
                return Ok(Completion { left_out: dialect.left_out(prompt), ..completion });
            }
            refused => return refused,
        }
    }
}

async fn ask(egress: &Egress, call: Call, silence: Duration) -> Result<Completion, AiFault> {
    let mut reader = AnswerReader::default();
    let alive = Arc::clone(&reader.alive);
    let read = tokio::select! {
        read = egress.read(call, &mut reader) => read,
        () = silent(&alive, silence) => {
            let message = format!("nothing came from the model for {} ms", silence.as_millis());
            Err(EgressError { fault: EgressFault::Timeout, written: true, message })
        }
    };
    match read {
        Ok(()) => reader.finish(),
        // Nothing is missing but the end of the connection.
        Err(_) if reader.is_whole() => reader.finish(),
        Err(EgressError { fault, message, .. }) => Err(AiFault::new(AiFaultClass::Egress(fault), message)),
    }
}

/// Returns when nothing came for a while.
async fn silent(alive: &Notify, limit: Duration) {
    while tokio::time::timeout(limit, alive.notified()).await.is_ok() {}
}

#[cfg(test)]
mod tests;
