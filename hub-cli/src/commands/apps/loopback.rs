//! The local address to which a browser is redirected with a code (RFC 8252 §7.3).

use std::{net::SocketAddr, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use hub_core::{
    local_http::{self, Cut, Limits, LocalService},
    tasks::Tasks,
    time::Clock,
};
use tokio::{net::TcpListener, sync::mpsc};
use url::Url;

use crate::exit::{Exit, Failure};

/// A listener that waits for one redirect.
#[derive(Debug)]
pub struct Loopback {
    answers: mpsc::Receiver<Result<String, Failure>>,
    tasks: Tasks,
}

struct Expected {
    path: String,
    state: String,
    sender: mpsc::Sender<Result<String, Failure>>,
}

/// Whether an address is on this machine, and can be listened on.
pub fn is_here(uri: &str) -> bool {
    address_of(uri).is_some()
}

/// The socket address for a redirect URI. For `localhost` it is IPv4, which browsers try too.
fn address_of(uri: &str) -> Option<SocketAddr> {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "http")?;
    let ip = match url.host()? {
        url::Host::Domain("localhost") => std::net::Ipv4Addr::LOCALHOST.into(),
        url::Host::Domain(_) => return None,
        url::Host::Ipv4(ip) => std::net::IpAddr::V4(ip),
        url::Host::Ipv6(ip) => ip.into(),
    };
    ip.is_loopback().then(|| SocketAddr::new(ip, url.port().unwrap_or(80)))
}

impl Loopback {
    /// Listens on a redirect URI for a redirect with this state.
    pub async fn listen(redirect_uri: &str, state: &str) -> Result<Self, Failure> {
        let address = address_of(redirect_uri).ok_or_else(|| {
            Failure::usage(format!("{redirect_uri} is not an http address on this machine"))
        })?;
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::usage(format!("cannot listen on {address}: {error}"))
                .with_hint("stop the program that uses it, or register another address: hub-cli apps edit")
        })?;
        let path = Url::parse(redirect_uri).map(|url| url.path().to_owned()).unwrap_or_default();
        let (sender, answers) = mpsc::channel(1);
        let expected = Arc::new(Expected { path, state: state.to_owned(), sender });
        let (tasks, limits) = (Tasks::new(), Limits { connections: 16, ..Limits::default() });
        tasks.spawn("loopback", local_http::serve(listener, expected, limits, tasks.clone()));
        Ok(Self { answers, tasks })
    }

    pub async fn code(mut self, timeout: std::time::Duration) -> Result<String, Failure> {
        let clock = Clock::system();
        let answer = clock.timeout(timeout, self.answers.recv()).await;
        self.tasks.stop();
        self.tasks.wait(&clock, Limits::default().drain).await;
        answer.flatten().unwrap_or_else(|| {
            Err(Failure::timed_out(format!("timed out after {} s without a decision", timeout.as_secs()))
                .with_hint("use --timeout to wait longer"))
        })
    }
}

impl Expected {
    /// The result of a request; `None` for an unrelated one.
    fn read(&self, request: &Request<Bytes>) -> Option<Result<String, Failure>> {
        let uri = request.uri();
        if request.method() != Method::GET || uri.path() != self.path {
            return None;
        }
        let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let query: Vec<(String, String)> = query.into_owned().collect();
        let text = |wanted: &str| query.iter().find(|(name, _)| name == wanted).map(|(_, value)| &**value);
        // A redirect with another state is not for this authorization (RFC 6749 §10.12).
        if text("state") != Some(&self.state) {
            return None;
        }
        match (text("code"), text("error")) {
            (_, Some("access_denied")) => {
                Some(Err(Failure::new(Exit::Denied, "FORBIDDEN", "the bot's owner rejected it")))
            }
            (_, Some(error)) => {
                let what = format!("the hub responded {}", crate::screen::clean(error));
                Some(Err(Failure::new(Exit::Failed, "UPSTREAM_ERROR", what)))
            }
            (Some(code), None) => Some(Ok(code.to_owned())),
            (None, None) => None,
        }
    }
}

#[async_trait]
impl LocalService for Expected {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let (status, message) = match self.read(&request) {
            None => (StatusCode::NOT_FOUND, "This is not the redirect that the terminal waits for."),
            Some(answer) => {
                let message = match &answer {
                    Ok(_) => "Done. You can close this page and return to the terminal.",
                    Err(_) => "The terminal shows the error. You can close this page.",
                };
                // The first redirect counts.
                let _ = self.sender.try_send(answer);
                (StatusCode::OK, message)
            }
        };
        let page = format!(
            "<!doctype html><meta charset=\"utf-8\"><title>Message Hub</title>\
             <p style=\"font-family:sans-serif\">{message}</p>"
        );
        let mut response = Response::new(Bytes::from(page));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(header::REFERRER_POLICY, header::HeaderValue::from_static("no-referrer"));
        headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
        Ok(response)
    }

    fn max_body(&self, _: &http::request::Parts) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_redirect_uris_on_this_machine_are_accepted() {
        for (uri, address) in [
            ("http://127.0.0.1:8976/callback", "127.0.0.1:8976"),
            ("http://localhost:80/", "127.0.0.1:80"),
            ("http://[::1]:9/cb", "[::1]:9"),
        ] {
            assert_eq!(address_of(uri), Some(address.parse().unwrap()), "{uri}");
        }
        for elsewhere in ["https://127.0.0.1/cb", "http://10.0.0.1/cb", "http://localhost.evil.example/", "x"]
        {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn only_a_redirect_with_the_state_is_accepted() {
        let (sender, _answers) = mpsc::channel(1);
        let expected = Expected { path: "/callback".to_owned(), state: "s1".to_owned(), sender };
        let read = |method: Method, uri: &str| {
            let request = Request::builder().method(method).uri(uri).body(Bytes::new()).unwrap();
            expected.read(&request).map(|answer| answer.map_err(|failure| failure.exit))
        };
        assert_eq!(read(Method::GET, "/callback?code=c%2B1&state=s1"), Some(Ok("c+1".to_owned())));
        assert_eq!(read(Method::GET, "/callback?error=access_denied&state=s1"), Some(Err(Exit::Denied)));
        assert_eq!(read(Method::GET, "/callback?error=server_error&state=s1"), Some(Err(Exit::Failed)));
        for not_it in
            ["/callback?code=c&state=s2", "/callback?code=c", "/other?code=c&state=s1", "/callback?state=s1"]
        {
            assert_eq!(read(Method::GET, not_it), None, "{not_it}");
        }
        assert_eq!(read(Method::POST, "/callback?code=c&state=s1"), None);
    }
}
