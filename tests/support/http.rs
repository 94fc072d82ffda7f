//! Callers of the HTTP interface from outside: someone with or without a session.

use std::time::Duration;

use hub_core::time::Clock;
use reqwest::{
    Method, StatusCode,
    header::{self, HeaderMap, HeaderName},
};
use serde_json::Value;

/// A caller of one server. Clones share nothing but the address.
#[derive(Debug, Clone)]
pub struct Caller {
    client: reqwest::Client,
    /// The server's address, without a slash at the end.
    pub base: String,
    cookie: Option<String>,
    headers: HeaderMap,
}

impl Caller {
    /// Someone the server does not know.
    #[expect(clippy::disallowed_methods, reason = "a test calls the server from outside, over a real socket")]
    pub fn stranger(base: &str) -> Self {
        // Absent only when another test was first, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().timeout(Duration::from_secs(60)).no_proxy();
        // Shorter than the server's own timeout: a connection that it is about to close is not used again.
        let client = client.pool_idle_timeout(Duration::from_secs(2)).build().unwrap();
        Self { client, base: base.trim_end_matches('/').to_owned(), cookie: None, headers: HeaderMap::new() }
    }

    /// The same person against another address: a server that was started again.
    #[must_use]
    pub fn at(&self, base: &str) -> Self {
        Self { base: base.trim_end_matches('/').to_owned(), ..self.clone() }
    }

    /// Someone who signed in elsewhere.
    #[must_use]
    pub fn with_cookie(self, cookie: String) -> Self {
        Self { cookie: Some(cookie), ..self }
    }

    /// Someone with a key or a token.
    #[must_use]
    pub fn with_bearer(self, bearer: &str) -> Self {
        self.with_header(header::AUTHORIZATION.as_str(), &format!("Bearer {bearer}"))
    }

    /// Someone who sends this header as well.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(HeaderName::from_static(name), value.parse().unwrap());
        self
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        let request = request.headers(self.headers.clone()).header("sec-fetch-site", "same-origin");
        match &self.cookie {
            Some(cookie) => request.header(header::COOKIE, cookie),
            None => request,
        }
    }

    /// A request as it is: status and JSON (null when there is none).
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value, Option<String>) {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let set = answer.headers().get(header::SET_COOKIE).and_then(|value| value.to_str().ok());
        let set = set.and_then(|value| value.split(';').next()).map(str::to_owned);
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::Null), set)
    }

    /// Sends a request to a server that may be down, with an idempotency key, in which spaces become `_`. Returns
    /// status, `Retry-After` in seconds, and JSON.
    ///
    /// # Errors
    /// Fails if there was no complete response.
    pub async fn attempt(
        &self,
        method: Method,
        path: &str,
        key: &str,
        body: &Value,
    ) -> Result<(StatusCode, Option<u64>, Value), reqwest::Error> {
        let request = self.request(method, path).header("idempotency-key", key.replace(' ', "_"));
        let answer = request.json(body).send().await?;
        let status = answer.status();
        let wait = answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let wait = wait.and_then(|text| text.parse().ok());
        let text = answer.text().await?;
        Ok((status, wait, serde_json::from_str(&text).unwrap_or(Value::Null)))
    }

    /// The data of a successful POST of a form with a file.
    pub async fn upload(&self, path: &str, form: reqwest::multipart::Form) -> Value {
        let answer = self.request(Method::POST, path).multipart(form).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str::<Value>(&text).unwrap()["data"].take()
    }

    /// The bytes at an address of the server.
    pub async fn bytes(&self, path: &str) -> Vec<u8> {
        let answer = self.client.get(format!("{}{path}", self.base)).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.bytes().await.unwrap().into()
    }

    async fn succeed(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let (status, mut answer, _) = self.call(method, path, body).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        assert_eq!(answer["success"], true, "{path}: {answer}");
        answer["data"].take()
    }

    /// The data of a successful GET.
    pub async fn get(&self, path: &str) -> Value {
        self.succeed(Method::GET, path, None).await
    }

    /// The data of a successful POST.
    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.succeed(Method::POST, path, Some(body)).await
    }

    /// A POST that is refused with this status and code.
    pub async fn refused(&self, path: &str, body: Value, status: u16, code: &str) {
        let (got, answer, _) = self.call(Method::POST, path, Some(body)).await;
        assert_eq!(
            (got.as_u16(), answer["error"]["code"].as_str()),
            (status, Some(code)),
            "{path}: {answer}"
        );
    }

    /// Registers or logs in, and is that person from then on.
    pub async fn sign_in(&mut self, path: &str, body: Value) -> Value {
        let (status, mut answer, cookie) = self.call(Method::POST, path, Some(body)).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        self.cookie = Some(cookie.unwrap());
        answer["data"].take()
    }

    /// The answer of the simulator's control API, which has no envelope.
    pub async fn control(&self, path: &str, body: Option<Value>) -> Value {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let (status, answer, _) = self.call(method, path, body).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }
}

/// Asks until there is an answer, with a deadline in real time.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = look().await {
            return found;
        }
        Clock::system().sleep(Duration::from_millis(50)).await;
    }
    panic!("waited for in vain: {what}");
}
