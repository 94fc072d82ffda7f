//! The HTTP client of the store for files: `object_store` brings none of its own (its usual one is an older
//! `reqwest` with another TLS provider).

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use http_body_util::BodyExt;
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
        HttpService,
    },
};

use super::{
    Egress, EgressConfig, client,
    dial::{DIAL, Dial},
    target::Target,
};
use crate::error::{Error, Result as HubResult};

/// Time limit for the service to receive a request and to begin its response, so that a hanging service does not
/// block its callers. The largest request is a whole file.
const ANSWER: Duration = Duration::from_secs(120);

/// Longest pause within a response: files are streams without a deadline.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// Lends a client to `object_store`.
#[derive(Debug, Clone)]
pub(crate) struct ObjectHttp {
    http: reqwest::Client,
    config: Arc<EgressConfig>,
}

impl ObjectHttp {
    /// The operator configured the address: the address rule is skipped.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when no client can be made.
    pub(crate) fn new(egress: &Egress) -> HubResult<Self> {
        Self::build(egress, READ_TIMEOUT)
    }

    /// Decoding is off: bodies arrive as they are stored.
    fn build(egress: &Egress, read_timeout: Duration) -> HubResult<Self> {
        let client = client::builder(&egress.0.config, &egress.0.tls, false).read_timeout(read_timeout);
        let http = client.build().map_err(Error::internal)?;
        Ok(Self { http, config: Arc::clone(&egress.0.config) })
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
        let dial = Dial::of(&Target::of(&url), &self.config);
        let mut request = reqwest::Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        // Not `body.is_empty()`: object_store 0.14.2 says that of every payload that is not empty, and a request
        // without the body that its `Content-Length` announces is waited for until the other side gives up.
        if body.content_length() > 0 {
            *request.body_mut() = Some(reqwest::Body::wrap(body));
        }
        let execution = DIAL.scope(dial, self.http.execute(request));
        let response = tokio::time::timeout(ANSWER, execution)
            .await
            .map_err(|elapsed| HttpError::new(HttpErrorKind::Timeout, elapsed))?
            .map_err(failed)?;
        let (parts, body) = http::Response::<reqwest::Body>::from(response).into_parts();
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body.map_err(failed))))
    }
}

/// Classifies an error; `object_store` decides which requests may be repeated.
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

#[cfg(test)]
mod tests {
    use object_store::client::HttpRequestBody;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::{egress::EgressConfig, tasks::Tasks};

    #[tokio::test]
    async fn a_transfer_is_aborted_when_the_service_stops_responding() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tasks = Tasks::new();
        tasks.spawn("a silent service", async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").await.unwrap();
            std::future::pending::<()>().await;
        });
        let egress = Egress::new(EgressConfig::default()).unwrap();
        let client = ObjectHttp::build(&egress, Duration::from_millis(50)).unwrap();
        let request = http::Request::get(format!("http://{address}/file")).body(HttpRequestBody::empty());
        let answer = client.call(request.unwrap()).await.unwrap();
        let mut body = answer.into_body();
        assert_eq!(&*body.frame().await.unwrap().unwrap().into_data().unwrap(), b"half");
        assert_eq!(body.frame().await.unwrap().unwrap_err().kind(), HttpErrorKind::Timeout);
    }
}
