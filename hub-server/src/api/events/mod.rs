//! The stream of events.

use std::time::Duration;

use hub_core::{
    Hub,
    event_feed::{EventQuery, MAX_BOTS},
    events::EventKind,
    id::BotId,
};
use poem::{Request, web::Data};
use poem_openapi::{
    Enum, OpenApi,
    param::{Header, Query},
};

mod stream;
mod views;

pub use stream::EventStream;
pub use views::{StreamEvent, StreamEventType};

use super::Tag;
use crate::{
    AppSettings,
    credentials::{Held, User},
    envelope::ApiError,
    wire::Text,
};

/// Events of the caller's things.
#[derive(Debug, Clone, Copy)]
pub struct EventsApi;

/// Whose events a stream contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum EventScope {
    /// Events of the caller's own bots, plugins and apps.
    Own,
    /// Events of all users; for administrators.
    All,
}

// Compared with the validator of the parameter.
const _: () = assert!(MAX_BOTS == 100);

#[OpenApi(tag = "Tag::User")]
impl EventsApi {
    /// Streams events
    ///
    /// Server-sent events (`text/event-stream`): what happens to the caller's bots, plugins and apps. An event
    /// contains ids and states, never contents; the client reads what it shows with other operations. The `data` of
    /// each event is a JSON object, and the name after `event:` is its `type`.
    ///
    /// The first event is `hello`. It contains the position of the stream: read the lists after it arrived, then
    /// follow the events. `resync` means that events may be missing: read the lists again. `hello` contains
    /// `"resync": true` if the stream cannot continue after the requested event, because it is no longer kept or
    /// belongs to another node or an earlier process. A node keeps its newest 4,096 events.
    ///
    /// Every 15 seconds without an event the stream contains a comment. The stream ends when the session or API key
    /// is revoked, when the role of the user changes, and when the server stops; then connect again with the last id.
    /// A user may have 8 streams per node; a further one is rejected with 429.
    #[oai(path = "/api/events", method = "get", operation_id = "streamEvents")]
    #[expect(clippy::too_many_arguments, reason = "one argument per parameter of the operation")]
    async fn stream(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        user: User,
        request: &Request,
        /// Only events of these bots; the parameter may be repeated.
        #[oai(default, validator(max_items = 100))]
        bot_id: Query<Vec<BotId>>,
        /// Only these kinds of events, separated by commas; all if absent. `hello` and `resync` are always sent.
        #[oai(explode = false, default, validator(max_items = 8))]
        kinds: Query<Vec<EventKind>>,
        /// Id of the last event that the client has: the stream continues after it.
        after: Query<Option<Text<1, 64>>>,
        /// Id of the last event, as browsers send it when they reconnect; it has priority over `after`.
        #[oai(name = "Last-Event-ID")]
        last_event_id: Header<Option<Text<1, 64>>>,
        /// Whose events; `own` if absent.
        scope: Query<Option<EventScope>>,
        /// The stream ends after this number of seconds; if absent, it stays open.
        #[oai(validator(maximum(value = "3600")))]
        timeout: Query<Option<u32>>,
    ) -> Result<EventStream, ApiError> {
        let query = EventQuery {
            bots: bot_id.0,
            kinds: kinds.0,
            after: last_event_id.0.or(after.0).map(Into::into),
            of_everyone: scope.0 == Some(EventScope::All),
        };
        let feed = hub.follow(&user.0, query).await?;
        let held = Held::begin(&hub, &settings, &user, request);
        let timeout = timeout.0.map(|seconds| Duration::from_secs(seconds.into()));
        Ok(EventStream::new(feed, held, &hub.context().clock, settings.draining.clone(), timeout))
    }
}
