//! The calls on behalf of one account: polling, sending, typing (`docs/ilink.md#polling`).

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use serde_json::{Value, json};
use url::Url;

use super::{
    Timeouts,
    hosts::Hosts,
    media,
    reply::Reply,
    send,
    tickets::{Ticket, Tickets},
    transport::{Endpoint, Transport},
    updates,
};
use crate::{
    egress::{EgressError, EgressFault},
    network::{
        Batch, Connection, FetchedMedia, MediaError, MediaFile, NetworkError, Outgoing, SendOutcome,
        UploadedMedia,
    },
    secret::Secret,
    time::Clock,
};

/// Polls in a row without an answer after which the connection is taken for dead.
const SILENT_POLLS: u32 = 3;
/// Gateway time-outs in a row that are taken for empty polls.
const GATEWAY_TIMEOUTS: u32 = 2;
const TYPING: i64 = 1;
const NOT_TYPING: i64 = 2;

pub(super) struct IlinkConnection {
    transport: Transport,
    hosts: Arc<Hosts>,
    /// `None` when the stored base URL is not among the hosts that may be called.
    base: Option<Url>,
    token: Secret,
    clock: Clock,
    polls: Mutex<Polls>,
    tickets: Tickets,
}

impl IlinkConnection {
    pub(super) fn new(
        transport: Transport,
        hosts: Arc<Hosts>,
        base: Option<Url>,
        token: Secret,
        clock: Clock,
    ) -> Self {
        let polls = Mutex::new(Polls::new(transport.config().timeouts));
        Self { transport, hosts, base, token, clock, polls, tickets: Tickets::default() }
    }

    async fn call(
        &self,
        endpoint: Endpoint,
        mut body: Value,
        deadline: Duration,
    ) -> Result<Reply, EgressError> {
        let Some(base) = &self.base else {
            let message = "the account's base URL is not an allowed host".to_owned();
            return Err(EgressError { fault: EgressFault::BlockedAddress, written: false, message });
        };
        if body.get("base_info").is_none() {
            body["base_info"] = self.transport.base_info();
        }
        let sent = self.transport.post(endpoint, &endpoint.url(base), Some(&self.token), &body, deadline)?;
        drop(body);
        sent.await
    }

    /// Requests the URL for the upload of a file.
    async fn permit(&self, to_user_id: &str, upload: &media::Upload) -> Result<Url, MediaError> {
        let answer =
            self.call(Endpoint::GetUploadUrl, upload.request(to_user_id), self.timeouts().send).await;
        let reply = answer.map_err(|error| MediaError::Later(error.to_string()))?;
        upload.target(&self.hosts, &self.transport.config().cdn_base_url, &reply)
    }

    fn polls(&self) -> MutexGuard<'_, Polls> {
        self.polls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn timeouts(&self) -> Timeouts {
        self.transport.config().timeouts
    }

    /// Returns the ticket for a person, from memory or from the network. Only a definite answer is remembered.
    async fn ticket(&self, user: &str, context_token: Option<&Secret>) -> Result<Ticket, NetworkError> {
        if let Some(known) = self.tickets.find(user, self.clock.now()) {
            return Ok(known);
        }
        let mut body = json!({ "ilink_user_id": user });
        if let Some(token) = context_token {
            body["context_token"] = token.expose().into();
        }
        let reply = self.call(Endpoint::GetConfig, body, self.timeouts().control).await?;
        let ticket = reply.accept().map(|fields| match fields.text("typing_ticket") {
            ticket if ticket.is_empty() => Ticket::Denied,
            ticket => Ticket::Granted(Secret::new(ticket)),
        });
        let clear = match &ticket {
            Ok(ticket) => Some(ticket.clone()),
            Err(NetworkError::Refused { .. } | NetworkError::Throttled { .. }) => Some(Ticket::Denied),
            Err(NetworkError::LoginExpired(_) | NetworkError::Unreachable(_)) => None,
        };
        if let Some(ticket) = clear {
            self.tickets.insert(user, ticket, self.clock.now());
        }
        ticket
    }
}

#[async_trait]
impl Connection for IlinkConnection {
    async fn start(&self) -> Result<(), NetworkError> {
        let reply = self.call(Endpoint::NotifyStart, json!({}), self.timeouts().control).await?;
        reply.accept().map(drop)
    }

    async fn receive(&self, cursor: &str) -> Result<Batch, NetworkError> {
        let limit = self.polls().limit();
        let reply = match self.call(Endpoint::GetUpdates, json!({ "get_updates_buf": cursor }), limit).await {
            Ok(reply) => reply,
            Err(error) if error.fault == EgressFault::Timeout && error.written => {
                if self.polls().silent() {
                    self.transport.reset();
                }
                return Ok(Batch::default());
            }
            Err(error) => return Err(error.into()),
        };
        if self.polls().answered(&reply) {
            return Ok(Batch::default());
        }
        reply.accept().map(|fields| updates::read_batch(&fields, self.clock.now()))
    }

    async fn send(&self, outgoing: &Outgoing) -> SendOutcome {
        if let Some(refused) = send::refuse(outgoing) {
            return refused;
        }
        let body = send::body(outgoing, &self.transport.base_info());
        send::outcome(self.call(Endpoint::SendMessage, body, self.timeouts().send).await)
    }

    async fn fetch_media(
        &self,
        reference: &Secret,
        earlier: &[Secret],
        limit: usize,
    ) -> Result<FetchedMedia, MediaError> {
        media::fetch(&self.transport, &self.hosts, reference, earlier, limit).await
    }

    async fn upload_media(&self, to_user_id: &str, file: &MediaFile) -> Result<UploadedMedia, MediaError> {
        let upload = media::Upload::prepare(&self.transport, file).await?;
        let mut target = None;
        let mut failed = MediaError::Later("not tried".to_owned());
        for tried in 0..media::UPLOADS {
            if tried > 0 {
                self.clock.sleep(media::UPLOAD_PAUSE).await;
            }
            // The last try has a permit of its own.
            if target.is_none() || tried + 1 == media::UPLOADS {
                match self.permit(to_user_id, &upload).await {
                    Ok(url) => target = Some(url),
                    Err(error @ MediaError::Later(_)) => failed = error,
                    Err(error) => return Err(error),
                }
            }
            let Some(url) = target.clone() else { continue };
            match media::put(&self.transport, url, &upload).await {
                Err(error @ MediaError::Later(_)) => failed = error,
                settled => return settled,
            }
        }
        Err(failed)
    }

    async fn typing(
        &self,
        to_user_id: &str,
        context_token: Option<&Secret>,
        on: bool,
    ) -> Result<(), NetworkError> {
        let Ticket::Granted(ticket) = self.ticket(to_user_id, context_token).await? else { return Ok(()) };
        let body = json!({
            "ilink_user_id": to_user_id,
            "typing_ticket": ticket.expose(),
            "status": if on { TYPING } else { NOT_TYPING },
        });
        let sent = self.call(Endpoint::SendTyping, body, self.timeouts().control).await;
        let accepted = sent.map_err(NetworkError::from).and_then(|reply| reply.accept().map(drop));
        accepted.inspect_err(|_| self.tickets.remove(to_user_id))
    }

    async fn stop(&self) {
        let stopped = self.call(Endpoint::NotifyStop, json!({}), self.timeouts().stop).await;
        let stopped = stopped.map_err(NetworkError::from).and_then(|reply| reply.accept().map(drop));
        if let Err(error) = stopped {
            tracing::debug!(%error, "the end of polling was not announced");
        }
    }

    fn reset(&self) {
        self.transport.reset();
    }
}

impl fmt::Debug for IlinkConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IlinkConnection")
            .field("base", &self.base.as_ref().map(Url::as_str))
            .finish_non_exhaustive()
    }
}

/// State learned from earlier polls.
struct Polls {
    timeouts: Timeouts,
    hold: Duration,
    silent: u32,
    gateway_timeouts: u32,
    /// A gateway on the way cuts long polls, so this side ends them first, until restart.
    short: bool,
}

impl Polls {
    fn new(timeouts: Timeouts) -> Self {
        Self { timeouts, hold: timeouts.hold, silent: 0, gateway_timeouts: 0, short: false }
    }

    /// Returns the timeout of the next poll.
    fn limit(&self) -> Duration {
        let Timeouts { hold_margin, hold_max, short_poll, .. } = self.timeouts;
        if self.short { short_poll } else { (self.hold + hold_margin).min(hold_max) }
    }

    /// Records a poll without an answer; `true` when the connection is to be replaced.
    fn silent(&mut self) -> bool {
        self.silent += 1;
        self.silent.is_multiple_of(SILENT_POLLS)
    }

    /// Records an answer; `true` when it is only the timeout of a gateway, which counts as an empty poll at first.
    /// A hold time is adopted from error answers too.
    fn answered(&mut self, reply: &Reply) -> bool {
        self.silent = 0;
        if let Some(hold) = reply.fields().as_ref().and_then(updates::hold) {
            self.hold = hold;
        }
        if reply.status.as_u16() != 524 {
            self.gateway_timeouts = 0;
            return false;
        }
        self.gateway_timeouts += 1;
        self.short |= self.gateway_timeouts > GATEWAY_TIMEOUTS;
        self.gateway_timeouts <= GATEWAY_TIMEOUTS
    }
}

#[cfg(test)]
mod tests {
    use super::{super::reply::reply, *};

    fn answer(status: u16, body: &str) -> Reply {
        reply(Endpoint::GetUpdates, status, body)
    }

    #[test]
    fn every_third_silent_poll_asks_for_a_new_connection() {
        let mut polls = Polls::new(Timeouts::default());
        let reconnects: Vec<bool> = (0..7).map(|_| polls.silent()).collect();
        assert_eq!(reconnects, [false, false, true, false, false, true, false]);
        assert!(!polls.answered(&answer(200, "{}")));
        assert!(!polls.silent() && !polls.silent() && polls.silent());
    }

    #[test]
    fn a_gateway_that_cuts_polls_makes_them_short() {
        let (gateway, good) = (answer(524, ""), answer(200, "{}"));
        let mut polls = Polls::new(Timeouts::default());
        assert_eq!(polls.limit(), Duration::from_secs(45));
        assert!(polls.answered(&gateway) && polls.answered(&gateway));
        assert!(!polls.answered(&good), "an answer between starts the count again");
        assert!(polls.answered(&gateway) && polls.answered(&gateway));
        assert_eq!(polls.limit(), Duration::from_secs(45));
        assert!(!polls.answered(&gateway));
        assert_eq!(polls.limit(), Duration::from_secs(10));
        polls.answered(&good);
        assert_eq!(polls.limit(), Duration::from_secs(10), "until restart");
    }

    #[test]
    fn r8_polls_last_a_little_longer_than_the_server_holds_them() {
        let mut polls = Polls::new(Timeouts::default());
        for (body, limit) in [
            (r#"{"longpolling_timeout_ms":5000}"#, 15),
            ("{}", 15),
            (r#"{"longpolling_timeout_ms":0}"#, 15),
            (r#"{"ret":-1,"longpolling_timeout_ms":20000}"#, 30),
            (r#"{"longpolling_timeout_ms":600000}"#, 70),
        ] {
            polls.answered(&answer(200, body));
            assert_eq!(polls.limit(), Duration::from_secs(limit), "{body}");
        }
    }
}
