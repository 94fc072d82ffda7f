//! The endpoint's URL and the header of its key.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{AiFault, AiFaultClass, Endpoint};
use crate::{
    egress::{CheckedUrl, Egress, headers::check_name},
    error::Problems,
};

/// The path after the base URL.
const PATH: &str = "/chat/completions";
/// Parameters of a query that hold a key: the base URL is shown, and a key is not.
const KEYS: [&str; 9] =
    ["key", "api_key", "api-key", "apikey", "token", "access_token", "secret", "sig", "subscription-key"];
/// Headers that a request has anyway.
const OWN_HEADERS: [HeaderName; 4] =
    [header::CONTENT_TYPE, header::ACCEPT, header::USER_AGENT, header::ACCEPT_ENCODING];

/// Checks the field `base_url`; returns it without a slash at the end of its path.
pub(crate) fn checked_base_url(text: &str, egress: &Egress, problems: &mut Problems) -> String {
    match egress.check_url(text) {
        Ok(url) => {
            let url = url.as_url();
            let holds_key = url.query_pairs().any(|(name, _)| KEYS.contains(&name.to_lowercase().as_str()));
            problems.check(
                !holds_key,
                "base_url",
                "must not hold a key; use api_key, and key_header for its header",
            );
            with_path(url, ToOwned::to_owned)
        }
        Err(error) => {
            problems.take_as(&error, |_| "base_url".into());
            String::new()
        }
    }
}

/// Checks the field `key_header`; `Authorization` is the default, and stored as such.
pub(crate) fn checked_key_header(text: &str, problems: &mut Problems) -> String {
    if text.is_empty() || text.eq_ignore_ascii_case("authorization") {
        return String::new();
    }
    let checked = check_name(text).and_then(|name| {
        if OWN_HEADERS.contains(&name) { Err("is a header that cannot be set") } else { Ok(name) }
    });
    match checked {
        Ok(name) => name.as_str().to_owned(),
        Err(reason) => {
            problems.add("key_header", reason);
            String::new()
        }
    }
}

fn with_path(url: &url::Url, path: impl Fn(&str) -> String) -> String {
    let mut url = url.clone();
    let path = path(url.path().trim_end_matches('/'));
    url.set_path(&path);
    // The parser adds the slash of an empty path.
    let text = url.as_str();
    if path.is_empty() && url.query().is_none() {
        text.trim_end_matches('/').to_owned()
    } else {
        text.to_owned()
    }
}

impl Endpoint {
    /// The URL to call: the path is completed unless it is complete.
    pub(super) fn url(&self, egress: &Egress) -> Result<CheckedUrl, AiFault> {
        let bad =
            |error: &crate::error::Error| AiFault::new(AiFaultClass::BadUrl, error.message().to_owned());
        let base = egress.check_url(&self.base_url).map_err(|error| bad(&error))?;
        let url = with_path(base.as_url(), |path| {
            if path.ends_with(PATH) { path.to_owned() } else { format!("{path}{PATH}") }
        });
        egress.check_url(&url).map_err(|error| bad(&error))
    }

    pub(super) fn headers(&self) -> Result<HeaderMap, AiFault> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        if let Some(key) = &self.api_key {
            let unsendable = || AiFault::new(AiFaultClass::BadUrl, "the key cannot be sent in a header");
            let (name, value) = if self.key_header.is_empty() {
                (header::AUTHORIZATION, HeaderValue::try_from(format!("Bearer {}", key.expose())))
            } else {
                let name = check_name(&self.key_header).map_err(|_| unsendable())?;
                (name, HeaderValue::try_from(key.expose()))
            };
            let mut value = value.map_err(|_| unsendable())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::EgressConfig;

    #[test]
    fn every_form_of_a_base_url_leads_to_the_completions() {
        let egress = Egress::new(EgressConfig::default()).unwrap();
        for (base, url) in [
            ("https://ai.example/v1", "https://ai.example/v1/chat/completions"),
            ("https://ai.example/v1/", "https://ai.example/v1/chat/completions"),
            ("https://ai.example", "https://ai.example/chat/completions"),
            ("https://ai.example/v1/chat/completions", "https://ai.example/v1/chat/completions"),
            ("https://ai.example/v1/chat/completions/", "https://ai.example/v1/chat/completions"),
            (
                "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21",
                "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
            ),
            (
                "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1",
                "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1",
            ),
            ("https://ai.example/?tenant=a/", "https://ai.example/chat/completions?tenant=a/"),
        ] {
            let mut problems = Problems::default();
            let base_url = checked_base_url(base, &egress, &mut problems);
            problems.finish().unwrap();
            let endpoint = Endpoint { base_url, api_key: None, key_header: String::new() };
            assert_eq!(endpoint.url(&egress).unwrap().as_url().as_str(), url, "{base}");
        }
        for base in [
            "https://ai.example/v1?key=1",
            "https://ai.example/?Api_Key=1",
            "ftp://ai.example/",
            "ai.example",
        ] {
            let mut problems = Problems::default();
            checked_base_url(base, &egress, &mut problems);
            assert_eq!(problems.finish().unwrap_err().details()[0].field, "base_url", "{base}");
        }
    }

    #[test]
    fn the_key_is_sent_in_its_header() {
        let headers = |key_header: &str| {
            let mut problems = Problems::default();
            let key_header = checked_key_header(key_header, &mut problems);
            problems.finish()?;
            let endpoint = Endpoint { base_url: String::new(), api_key: Some("sk-1".into()), key_header };
            Ok::<_, crate::error::Error>(endpoint.headers().unwrap())
        };
        assert_eq!(headers("").unwrap()["authorization"], "Bearer sk-1");
        assert_eq!(headers("authorization").unwrap()["authorization"], "Bearer sk-1");
        for name in ["api-key", "X-Api-Key", "Ocp-Apim-Subscription-Key"] {
            let headers = headers(name).unwrap();
            assert_eq!(headers[name], "sk-1");
            assert!(headers[name].is_sensitive() && !headers.contains_key("authorization"), "{name}");
        }
        for name in ["Host", "content-type", "Content-Length", "a b", "X-Forwarded-For", "ü"] {
            assert_eq!(headers(name).unwrap_err().details()[0].field, "key_header", "{name}");
        }
    }
}
