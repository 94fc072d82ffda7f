//! A client of the server, and everything that it received.

use std::{fmt::Write as _, time::Duration};

use reqwest::{Method, header};
use serde_json::Value;

/// A caller that keeps the responses.
pub(super) struct Caller {
    client: reqwest::Client,
    base: String,
    pub(super) cookie: Option<String>,
    /// Device cookies from sign-ins.
    pub(super) devices: Vec<String>,
    pub(super) heard: String,
    /// `Location` of the last response.
    pub(super) location: Option<String>,
}

impl Caller {
    #[expect(clippy::disallowed_methods, reason = "a test calls the server from outside, over a real socket")]
    pub(super) fn new(base: &str) -> Self {
        let client = reqwest::Client::builder().timeout(Duration::from_secs(60)).no_proxy();
        let client = client.redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self {
            client,
            base: base.to_owned(),
            cookie: None,
            devices: Vec::new(),
            heard: String::new(),
            location: None,
        }
    }

    /// Sends a request. With `shown`, the response may show a secret and is not kept.
    pub(super) async fn call(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
        shown: bool,
    ) -> (u16, Value, Option<String>) {
        let mut request = self.client.request(method.clone(), format!("{}{path}", self.base));
        request = request.header("sec-fetch-site", "same-origin");
        let device = self.devices.last().map(|device| format!("device={device}"));
        let cookies: Vec<&str> = self.cookie.iter().chain(&device).map(String::as_str).collect();
        if !cookies.is_empty() {
            request = request.header(header::COOKIE, cookies.join("; "));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let sets = answer.headers().get_all(header::SET_COOKIE).iter();
        let (devices, mut sets): (Vec<_>, Vec<_>) =
            sets.map(|value| value.to_str().unwrap().to_owned()).partition(|set| set.starts_with("device="));
        self.devices.extend(devices.iter().map(|set| set.split([';', '=']).nth(1).unwrap().to_owned()));
        let set = sets.pop();
        let location = answer.headers().get(header::LOCATION).map(|value| value.to_str().unwrap().to_owned());
        self.location = location;
        let mut told = String::new();
        for (name, value) in answer.headers() {
            if name != header::SET_COOKIE {
                let _ = writeln!(told, "{name}: {}", String::from_utf8_lossy(value.as_bytes()));
            }
        }
        told.push_str(&answer.text().await.unwrap());
        if !shown {
            let _ = writeln!(self.heard, "{method} {status}\n{told}");
        }
        let body = told.split_once("\n{").map_or(Value::Null, |(_, rest)| {
            serde_json::from_str(&format!("{{{rest}")).unwrap_or(Value::Null)
        });
        (status, body, set)
    }

    /// A request that works.
    pub(super) async fn done(&mut self, method: Method, path: &str, body: Option<Value>) -> Value {
        let body = body.map(|body| body.to_string());
        let (status, mut answer, _) = self.call(method, path, &[], body, false).await;
        assert!(status < 300, "{path}: {status} {answer}");
        answer["data"].take()
    }

    /// A request that is refused.
    pub(super) async fn refused(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) {
        let (status, answer, _) = self.call(method, path, headers, body, false).await;
        assert!((400..500).contains(&status), "{path}: {status} {answer}");
    }
}
