//! Responses of a webhook.

use std::time::Duration;

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use hub_core::{
    delivery::{
        ResponseReply,
        retry::{Next, Verdict, next_attempt},
    },
    egress::BodyEnd,
    random::Random,
    time::Timestamp,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Two bytes of a status, a `Retry-After` up to a NUL, and the body, of the type that the same bytes are: a wait is at
/// least a second and at most a day, and no reply is blank.
pub fn answer(data: &[u8]) {
    let (status, rest) = data.split_first_chunk().unwrap_or((&[0, 200], data));
    let status = StatusCode::from_u16(u16::from_be_bytes(*status)).unwrap_or(StatusCode::OK);
    let (wait, body) = super::halves(rest, 0);
    let now = Timestamp::from_millis(1_790_000_000_000);
    let headers: HeaderMap =
        HeaderValue::from_bytes(wait).into_iter().map(|value| (RETRY_AFTER, value)).collect();
    let verdict = Verdict::of(status, &headers, now);
    assert_eq!(verdict == Verdict::Success, status.is_success());
    if let Verdict::Retry { after } = verdict {
        assert!(after.is_none_or(|wait| (Duration::from_secs(1)..=DAY).contains(&wait)));
        let next = next_attempt(1, &[5], after, now, &Random::seeded(1));
        assert!(matches!(next, Next::At(at) if at > now && at <= now + DAY), "{next:?}");
    }
    let typed = HeaderValue::from_bytes(wait).into_iter().map(|value| (CONTENT_TYPE, value)).collect();
    if let ResponseReply::Text(reply) = ResponseReply::read(&typed, body, &BodyEnd::Complete) {
        assert!(!reply.trim().is_empty());
    }
}
