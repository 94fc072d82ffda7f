//! The second sending of a request that the other side did not take.
//!
//! A server may close a connection that it kept, in the moment in which the next request uses it. Browsers send such a
//! request again, and so does the hub, at once and on a new connection. A request that a server of HTTP/2 says it
//! did not process (RFC 9113 §8.7) may always be sent again.

use std::{cell::Cell, io, net::SocketAddr};

use hyper_util::client::legacy::{
    self,
    connect::{Connected, Connection, HttpInfo},
};
use reqwest::{Request, Response};

use super::{
    Shared,
    client::Prepared,
    fault::{find, io_kind},
};

tokio::task_local! {
    /// This machine's end of the connection that was opened for the request of this task.
    static OPENED: Cell<Option<SocketAddr>>;
}

/// Notes that a connection was opened. Where the request has already taken another one, which became free, the library
/// opens it in a task of its own, and nothing is noted.
pub(super) fn note_opened(connection: &impl Connection) {
    let _ = OPENED.try_with(|opened| opened.set(this_end(&connection.connected())));
}

fn this_end(connected: &Connected) -> Option<SocketAddr> {
    let mut extras = http::Extensions::new();
    connected.get_extras(&mut extras);
    extras.get().map(HttpInfo::local_addr)
}

/// Sends a request, and once more if that is safe.
pub(super) async fn execute(clients: &Shared, request: Prepared) -> reqwest::Result<Response> {
    let sending = async {
        let first = clients.http.execute(Request::from(request.clone())).await;
        match first {
            Err(error) if is_untouched(&error) || (was_kept(&error) && is_lost(&error)) => {
                tracing::debug!(%error, "a request is sent once more");
                // Not one of the other kept connections, which may be closed as well.
                clients.unpooled().execute(request.into()).await
            }
            first => first,
        }
    };
    OPENED.scope(Cell::new(None), sending).await
}

/// Whether the request had a connection that another one had opened.
fn was_kept(error: &reqwest::Error) -> bool {
    let used = find::<legacy::Error>(error).and_then(legacy::Error::connect_info).and_then(this_end);
    used.is_some_and(|used| OPENED.with(Cell::get) != Some(used))
}

/// Whether the server says that it did not process the request.
pub(super) fn is_untouched(error: &reqwest::Error) -> bool {
    find::<h2::Error>(error).is_some_and(|error| {
        let reason = error.reason();
        error.is_remote()
            && ((error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM))
                || (error.is_go_away() && reason == Some(h2::Reason::NO_ERROR)))
    })
}

/// Whether the connection ended before the response began.
fn is_lost(error: &reqwest::Error) -> bool {
    let is_incomplete = find::<hyper::Error>(error).is_some_and(hyper::Error::is_incomplete_message);
    let is_cut = io_kind(error).is_some_and(|kind| {
        matches!(
            kind,
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::NotConnected
                | io::ErrorKind::UnexpectedEof
        )
    });
    !error.is_timeout() && (is_incomplete || is_cut)
}
