//! The body of the stream: events, comments, and what ends it.

use std::{fmt::Write, io, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use hub_core::{
    event_feed::EventFeed,
    time::{Clock, Instant},
};
use poem::{Body, IntoResponse, Response, http::header};
use poem_openapi::{
    ApiResponse,
    registry::{MetaMediaType, MetaResponse, MetaResponses, Registry},
    types::{ToJSON, Type},
};
use tokio_util::sync::CancellationToken;

use super::views::StreamEvent;
use crate::credentials::Held;

const CONTENT_TYPE: &str = "text/event-stream";
/// Longest silence of a stream: proxies close a connection without data.
const PING: Duration = Duration::from_secs(15);
/// How long a browser waits before it connects again, in milliseconds.
const RECONNECT_MS: u32 = 2_000;

/// An open stream. Whatever the client has not read stays in the feed, which holds only a position.
#[derive(Debug)]
pub struct EventStream {
    feed: EventFeed,
    held: Held,
    clock: Clock,
    ping_at: Instant,
    ends_at: Option<Instant>,
    draining: CancellationToken,
    has_begun: bool,
}

impl EventStream {
    pub(super) fn new(
        feed: EventFeed,
        held: Held,
        clock: &Clock,
        draining: CancellationToken,
        timeout: Option<Duration>,
    ) -> Self {
        let now = clock.instant();
        let (ping_at, ends_at) = (now + PING, timeout.map(|timeout| now + timeout));
        Self { feed, held, clock: clock.clone(), ping_at, ends_at, draining, has_begun: false }
    }

    /// The next piece of the body; `None` at the end of the stream.
    async fn next(&mut self) -> Option<String> {
        let mut text = String::new();
        let now = self.clock.instant();
        if !std::mem::replace(&mut self.has_begun, true) {
            let _ = write!(text, "retry: {RECONNECT_MS}\n\n");
        } else if self.ends_at.is_some_and(|end| now >= end) {
            return None;
        }
        let wake_at = self.ends_at.map_or(self.ping_at, |end| end.min(self.ping_at));
        tokio::select! {
            biased;
            () = self.draining.cancelled() => return None,
            () = self.held.ended() => return None,
            items = self.feed.next() => match items {
                Ok(items) => items.into_iter().for_each(|item| add(&mut text, &item.into())),
                Err(error) => {
                    tracing::debug!(%error, "an event stream ends: the store cannot be read");
                    return None;
                }
            },
            () = self.clock.sleep_until(wake_at) => {
                // An id without data: a browser continues after events that were none of the client's.
                let _ = write!(text, ": ping\nid: {}\n\n", self.feed.position());
            }
        }
        self.ping_at = self.clock.instant() + PING;
        Some(text)
    }
}

fn add(text: &mut String, event: &StreamEvent) {
    let (id, name, data) = (&event.id, event.kind.to_json(), event.to_json_string());
    let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
    let _ = write!(text, "id: {id}\nevent: {name}\ndata: {data}\n\n");
}

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        let pieces = stream::unfold(self, |mut this| async {
            let piece = this.next().await?;
            Some((Ok::<_, io::Error>(Bytes::from(piece)), this))
        });
        Response::builder()
            .content_type(CONTENT_TYPE)
            .header(header::CACHE_CONTROL, "no-store")
            // nginx would collect the stream before it passes it on.
            .header("x-accel-buffering", "no")
            .body(Body::from_bytes_stream(pieces))
    }
}

impl ApiResponse for EventStream {
    fn meta() -> MetaResponses {
        MetaResponses {
            responses: vec![MetaResponse {
                description: "A stream of server-sent events, each with an object of this schema as its `data`.",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType {
                    content_type: CONTENT_TYPE,
                    schema: StreamEvent::schema_ref(),
                }],
                headers: Vec::new(),
            }],
        }
    }

    fn register(registry: &mut Registry) {
        StreamEvent::register(registry);
    }
}
