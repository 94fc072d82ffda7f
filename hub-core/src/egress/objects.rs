//! The HTTP client of the store for files: `object_store` brings none of its own (its usual one is an older
//! `reqwest` with another TLS provider).

use async_trait::async_trait;
use http_body_util::BodyExt;
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
        HttpService,
    },
};

use super::{Egress, client};

/// Lends a client to `object_store`.
#[derive(Debug, Clone)]
pub(crate) struct ObjectHttp(Egress);

impl ObjectHttp {
    /// The operator configured the address: the client is a trusted one.
    pub(crate) fn new(egress: Egress) -> Self {
        Self(egress)
    }
}

impl HttpConnector for ObjectHttp {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for ObjectHttp {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = url::Url::parse(&parts.uri.to_string())
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let port = url.port_or_known_default().unwrap_or(443);
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        if !body.is_empty() {
            *request.body_mut() = Some(reqwest::Body::wrap(body));
        }
        let response = client::with_port(port, self.0.http.execute(request)).await.map_err(failed)?;
        let (parts, body) = http::Response::<reqwest::Body>::from(response).into_parts();
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body.map_err(failed))))
    }
}

/// Which requests may be repeated is `object_store`'s question.
fn failed(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else if error.is_decode() {
        HttpErrorKind::Decode
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error.without_url())
}
