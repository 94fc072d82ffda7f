//! HTTP access to providers through the guarded client, with a timeout and a size limit.

use std::{future::Future, time::Duration};

use oauth2::{HttpRequest, HttpResponse};

use crate::egress::{Call, Egress, EgressError};

/// Time limit of one request and its response.
const DEADLINE: Duration = Duration::from_secs(10);
/// Largest response in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// Reason that a provider was not reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreachable {
    /// The hub does not connect to its address.
    #[error("{0}")]
    Address(String),
    /// No response was received.
    #[error(transparent)]
    Egress(#[from] EgressError),
    /// The response could not be built.
    #[error(transparent)]
    Http(#[from] http::Error),
}

/// Returns an HTTP client for the OAuth libraries. They are strict, so `tidy` rewrites each response before they read
/// it.
pub(super) fn client(
    egress: &Egress,
    tidy: fn(HttpResponse) -> HttpResponse,
) -> impl Fn(HttpRequest) -> std::pin::Pin<Box<dyn Future<Output = Result<HttpResponse, Unreachable>> + Send>>
+ use<> {
    let egress = egress.clone();
    move |request| {
        let egress = egress.clone();
        Box::pin(async move { send(&egress, request).await.map(tidy) })
    }
}

/// Fetches a profile with an access token.
pub(super) async fn profile(egress: &Egress, url: &str, token: &str) -> Result<HttpResponse, Unreachable> {
    let request = http::Request::get(url)
        .header("accept", "application/json")
        .header("authorization", format!("Bearer {token}"))
        .body(Vec::new())?;
    send(egress, request).await
}

/// Sends one request. Redirects are not followed.
pub(super) async fn send(egress: &Egress, request: HttpRequest) -> Result<HttpResponse, Unreachable> {
    let (head, body) = request.into_parts();
    let url = egress
        .check_url(&head.uri.to_string())
        .map_err(|error| Unreachable::Address(error.message().to_owned()))?;
    let call = Call {
        method: head.method,
        url,
        headers: head.headers,
        body: body.into(),
        deadline: DEADLINE,
        max_answer: MAX_ANSWER,
    };
    let answer = egress.send(call).await?;
    let mut response = http::Response::builder().status(answer.status).body(answer.body.to_vec())?;
    *response.headers_mut() = answer.headers;
    Ok(response)
}
