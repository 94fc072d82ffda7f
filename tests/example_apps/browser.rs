//! The browser of a bot's owner, as far as an installation needs one.

use reqwest::{Client, RequestBuilder, header, redirect::Policy};
use serde_json::{Map, Value, json};

/// A browser that is signed in to a hub, and goes nowhere by itself.
#[derive(Debug)]
pub struct Browser {
    client: Client,
    hub: String,
    cookie: String,
}

impl Browser {
    #[expect(clippy::disallowed_methods, reason = "a test calls from outside, over real sockets")]
    pub fn new(hub: &str, cookie: &str) -> Self {
        let client = Client::builder().redirect(Policy::none()).no_proxy().build().unwrap();
        Self { client, hub: hub.to_owned(), cookie: cookie.to_owned() }
    }

    /// Adds the session cookie to requests to the hub only.
    fn with_cookie(&self, url: &str, request: RequestBuilder) -> RequestBuilder {
        if url.starts_with(&format!("{}/", self.hub)) {
            request.header(header::COOKIE, &self.cookie).header("sec-fetch-site", "same-origin")
        } else {
            request
        }
    }

    async fn open(&self, url: &str) -> reqwest::Response {
        let request = self.client.get(url).header(header::ACCEPT, "text/html");
        self.with_cookie(url, request).send().await.unwrap()
    }

    /// Returns the target of the redirect of a page.
    pub async fn led_by(&self, url: &str) -> String {
        let answer = self.open(url).await;
        let status = answer.status();
        let to = answer.headers().get(header::LOCATION).and_then(|to| to.to_str().ok()).map(str::to_owned);
        match to {
            Some(to) if status.is_redirection() => to,
            _ => panic!("{url} leads nowhere: {status} {}", answer.text().await.unwrap()),
        }
    }

    pub async fn status_of(&self, url: &str) -> u16 {
        self.open(url).await.status().as_u16()
    }

    /// Looks at a question, and decides: where that leads.
    pub async fn decide(&self, question: &str, decision: &str) -> String {
        let request = self.client.get(question).header(header::ACCEPT, "application/json");
        let asked = self.with_cookie(question, request).send().await.unwrap();
        let status = asked.status();
        let asked: Value = asked.json().await.unwrap();
        assert!(status.is_success(), "{question}: {asked}");
        let url = url::Url::parse(question).unwrap();
        let parameters = url.query_pairs().map(|(name, value)| (name.into_owned(), Value::from(&*value)));
        let mut body: Map<String, Value> = parameters.collect();
        body.insert("consent".to_owned(), asked["data"]["consent"].clone());
        body.insert("decision".to_owned(), json!(decision));
        let decide = format!("{}/api/auth/oauth/authorize", self.hub);
        let request = self.client.post(&decide).json(&body);
        let decided: Value = self.with_cookie(&decide, request).send().await.unwrap().json().await.unwrap();
        decided["data"]["redirect_to"].as_str().unwrap_or_else(|| panic!("{decided}")).to_owned()
    }
}
