//! Settings of the webhook sink.

use serde::{Deserialize, Serialize};

use crate::{
    egress::{
        Egress,
        headers::{check_name, check_value},
    },
    error::{Error, Problems, Result},
    model::sinks::Change,
    random::Random,
    secret::Secret,
    signing,
    words::words,
};

/// Waits between attempts, in seconds, unless a channel has its own.
pub const DEFAULT_SCHEDULE_S: [u32; 7] = [5, 30, 120, 600, 3600, 21_600, 86_400];
/// Name of the header of the method `header`, unless a channel has its own.
pub const DEFAULT_AUTH_HEADER: &str = "X-Custom-Auth";

const MAX_TIMEOUT_MS: u32 = 30_000;
pub(crate) const MAX_RETRIES: usize = 20;
pub(crate) const MAX_WAIT_S: u32 = 604_800;
const MAX_CONCURRENCY: u32 = 64;
const MAX_RATE: u32 = 1000;
/// A shorter key of a signature can be guessed from one signed message.
const MIN_SIGNING_SECRET: usize = 16;
const MAX_SECRET: usize = 4096;

words! {
    /// How the hub authenticates itself to the receiver.
    #[derive(Default)]
    pub enum AuthMethod {
        /// No authentication.
        #[default]
        None = "none",
        /// `Authorization: Bearer <secret>`.
        Bearer = "bearer",
        /// A header with a configurable name contains the secret.
        Header = "header",
        /// `X-Signature` over the body.
        Hmac = "hmac",
    }
}

/// Authentication as stored: without the secret.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, hub_macros::Api)]
#[serde(default)]
pub struct AuthSettings {
    /// The method.
    #[api(and(
        header_name: Option<String> = |auth: &Self| {
            (auth.method == AuthMethod::Header).then(|| auth.header_name_or_default().to_owned())
        },
        "Header of the method `header`."
    ))]
    pub method: AuthMethod,
    /// Header of the method `header`; [`DEFAULT_AUTH_HEADER`] if absent.
    #[api(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_name: Option<String>,
}

impl AuthSettings {
    /// The header of the method `header`.
    pub fn header_name_or_default(&self) -> &str {
        self.header_name.as_deref().unwrap_or(DEFAULT_AUTH_HEADER)
    }
}

words! {
    /// Order of the deliveries of a channel.
    #[derive(Default)]
    pub enum Ordering {
        /// Deliveries of one conversation in order of arrival, one at a time.
        #[default]
        Conversation = "conversation",
        /// No order.
        None = "none",
    }
}

/// Schedule of retries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[api(name = "Retry", read, checked)]
#[serde(default, deny_unknown_fields)]
pub struct RetrySettings {
    /// Seconds before each retry, 1 to 20 entries; after the last one the delivery is dead.
    #[api(items = 1..=MAX_RETRIES, range = 1..=MAX_WAIT_S)]
    pub schedule_s: Vec<u32>,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self { schedule_s: DEFAULT_SCHEDULE_S.to_vec() }
    }
}

/// The webhook sink as stored: without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[serde(default)]
pub struct WebhookSettings {
    /// Whether messages are sent.
    pub enabled: bool,
    /// URL; absent until it is set.
    #[api(with(Option<String>, crate::openapi::unless_empty))]
    pub url: String,
    /// How the hub authenticates itself.
    #[api(skip)]
    pub auth: AuthSettings,
    /// Timeout of one attempt in milliseconds.
    pub timeout_ms: u32,
    /// Schedule of retries.
    pub retry: RetrySettings,
    /// Order of deliveries.
    pub ordering: Ordering,
    /// Maximum requests in flight.
    pub max_concurrency: u32,
    /// Maximum requests per second; absent for no limit.
    pub rate_limit_per_s: Option<u32>,
    /// Whether a text `reply` in a JSON response is sent to the sender.
    pub auto_reply: bool,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            url: String::new(),
            auth: AuthSettings::default(),
            timeout_ms: 10_000,
            retry: RetrySettings::default(),
            ordering: Ordering::default(),
            max_concurrency: 8,
            rate_limit_per_s: None,
            auto_reply: false,
        }
    }
}

/// How the hub authenticates itself to the receiver.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, hub_macros::Api)]
#[serde(default, deny_unknown_fields)]
#[api(name = "SetAuth", input, checked)]
pub struct AuthUpdate {
    /// The method; `none` if absent.
    pub method: AuthMethod,
    /// Header of the method `header`; `X-Custom-Auth` if absent.
    #[api(chars = 0..=128)]
    pub header_name: Option<String>,
    /// Token, header value or key, depending on the method; at least 16 bytes for signatures. If absent, it is kept,
    /// or generated for `hmac` if the webhook has no secret yet; `null` removes it. `whsec_` followed by base64 is the form of
    /// Standard Webhooks: the key is the decoded bytes. Of any other text, the key is the UTF-8 bytes.
    #[api(chars = 0..=MAX_SECRET)]
    pub secret: Change<Secret>,
}

/// A new configuration of the webhook sink.
// An embedder keeps the other settings with `WebhookUpdate { url, ..channel.webhook.into() }`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, hub_macros::Api)]
#[serde(default, deny_unknown_fields)]
#[api(name = "SetWebhook", input, checked, like = WebhookSettings, example = {
    "auth": { "method": "hmac", "secret": "a key of at least 16 bytes" },
    "enabled": true,
    "timeout_ms": 10000,
    "url": "https://example.com/hook",
})]
#[expect(missing_docs, reason = "the other fields are those of `WebhookSettings`")]
pub struct WebhookUpdate {
    pub enabled: bool,
    /// URL that receives the POST requests; private addresses are rejected.
    #[api(chars = 0..=2048)]
    pub url: String,
    /// How the hub authenticates itself; not at all if absent.
    pub auth: AuthUpdate,
    #[api(range = 1..=MAX_TIMEOUT_MS)]
    pub timeout_ms: u32,
    /// Schedule of retries; after 5 s, 30 s, 2 min, 10 min, 1 h, 6 h and 24 h if absent.
    pub retry: RetrySettings,
    pub ordering: Ordering,
    #[api(range = 1..=MAX_CONCURRENCY)]
    pub max_concurrency: u32,
    #[api(range = 1..=MAX_RATE)]
    pub rate_limit_per_s: Option<u32>,
    pub auto_reply: bool,
}

impl Default for WebhookUpdate {
    /// Enabled, with the other settings at the defaults of [`WebhookSettings`].
    fn default() -> Self {
        Self { enabled: true, ..WebhookSettings::default().into() }
    }
}

/// Keeps the stored settings and the secret, for an update that changes some of them:
///
/// ```
/// use hub_core::channels::sinks::{WebhookSettings, WebhookUpdate};
///
/// let stored = WebhookSettings { auto_reply: true, ..WebhookSettings::default() };
/// let update = WebhookUpdate { url: "https://shop.example/hook".into(), ..stored.into() };
/// assert!(update.auto_reply);
/// ```
impl From<WebhookSettings> for WebhookUpdate {
    fn from(stored: WebhookSettings) -> Self {
        Self {
            enabled: stored.enabled,
            url: stored.url,
            auth: AuthUpdate {
                method: stored.auth.method,
                header_name: stored.auth.header_name,
                secret: Change::Keep,
            },
            timeout_ms: stored.timeout_ms,
            retry: stored.retry,
            ordering: stored.ordering,
            max_concurrency: stored.max_concurrency,
            rate_limit_per_s: stored.rate_limit_per_s,
            auto_reply: stored.auto_reply,
        }
    }
}

impl WebhookUpdate {
    /// Checks everything, and gives what is to be stored. `stored` is the secret the channel has now: together
    /// with `auth.secret` it decides whether the method has one it can use.
    ///
    /// # Errors
    /// `INVALID_PARAMS` naming every bad field, relative to this update.
    pub fn validate(&self, egress: &Egress, stored: Option<&Secret>) -> Result<WebhookSettings> {
        let mut problems = Problems::default();
        let url = self.checked_url(egress, &mut problems);
        problems.within("auth", |problems| self.auth.check(stored, problems));
        self.check_bounds(&mut problems);
        problems.within("retry", |problems| self.retry.check_bounds(problems));
        problems.finish()?;
        Ok(WebhookSettings {
            enabled: self.enabled,
            url,
            auth: AuthSettings { method: self.auth.method, header_name: self.auth.header_name.clone() },
            timeout_ms: self.timeout_ms,
            retry: self.retry.clone(),
            ordering: self.ordering,
            max_concurrency: self.max_concurrency,
            rate_limit_per_s: self.rate_limit_per_s,
            auto_reply: self.auto_reply,
        })
    }

    /// The URL as it is stored; a sink that is off may be without.
    fn checked_url(&self, egress: &Egress, problems: &mut Problems) -> String {
        if self.url.is_empty() {
            problems.check(!self.enabled, "url", "must be set");
            return String::new();
        }
        match egress.check_url(&self.url) {
            Ok(url) => url.as_url().to_string(),
            Err(error) => {
                problems.take(&error);
                String::new()
            }
        }
    }
}

impl AuthUpdate {
    /// Generates a secret where the method signs, none was given and none is `stored`, and sets it.
    pub(crate) fn generate(&mut self, stored: Option<&Secret>, random: &Random) -> Option<Secret> {
        let is_wanted = self.method == AuthMethod::Hmac && self.secret == Change::Keep && stored.is_none();
        let secret = is_wanted.then(|| signing::new_secret(random))?;
        self.secret = Change::Set(secret.clone());
        Some(secret)
    }

    pub(crate) fn check(&self, stored: Option<&Secret>, problems: &mut Problems) {
        self.check_bounds(problems);
        if let Some(name) = &self.header_name {
            match check_name(name) {
                Err(reason) => problems.add("header_name", reason),
                // It says what the body is; a secret in it would break every receiver.
                Ok(name) => {
                    problems.check(
                        name != http::header::CONTENT_TYPE,
                        "header_name",
                        "is a header that cannot be set",
                    );
                }
            }
        }
        let field = "secret";
        let Some(secret) = self.secret.apply(stored).map(Secret::expose) else {
            problems.check(self.method == AuthMethod::None, field, "must be set for this method");
            return;
        };
        match self.method {
            _ if secret.is_empty() => problems.add(field, "must not be empty"),
            AuthMethod::Bearer => problems.check(
                secret.bytes().all(|b| b.is_ascii_graphic()),
                field,
                "must be visible ASCII without spaces",
            ),
            AuthMethod::Header => match check_value(secret) {
                Err(reason) => problems.add(field, reason),
                Ok(_) => {
                    problems.check(
                        secret.trim_ascii() == secret,
                        field,
                        "must not start or end with a space",
                    );
                }
            },
            AuthMethod::None | AuthMethod::Hmac if !signing::is_readable(secret) => {
                problems.add(field, "starts with whsec_ and must be base64 after it");
            }
            AuthMethod::None | AuthMethod::Hmac => problems.check(
                secret.len() >= MIN_SIGNING_SECRET,
                field,
                "signs the body and must be at least 16 bytes long",
            ),
        }
    }
}

impl TryFrom<&AuthSettings> for signing::Method {
    type Error = Error;

    fn try_from(auth: &AuthSettings) -> Result<Self> {
        Ok(match auth.method {
            AuthMethod::None => Self::None,
            AuthMethod::Bearer => Self::Bearer,
            AuthMethod::Hmac => Self::Hmac,
            AuthMethod::Header => {
                let name = check_name(auth.header_name_or_default());
                Self::Header { name: name.map_err(|reason| Error::invalid("auth.header_name", reason))? }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::EgressConfig;

    fn problems(json: &str, stored: Option<&str>) -> Vec<String> {
        let update: WebhookUpdate = serde_json::from_str(json).unwrap();
        let egress = Egress::new(EgressConfig::default()).unwrap();
        let error = update.validate(&egress, stored.map(Secret::from).as_ref()).unwrap_err();
        error.details().iter().map(|detail| detail.field.to_string()).collect()
    }

    fn accepted(json: &str, stored: Option<&str>) -> WebhookSettings {
        let update: WebhookUpdate = serde_json::from_str(json).unwrap();
        let egress = Egress::new(EgressConfig::default()).unwrap();
        update.validate(&egress, stored.map(Secret::from).as_ref()).unwrap()
    }

    #[test]
    fn missing_fields_get_their_defaults() {
        let settings = accepted(r#"{"url":"https://example.com#x"}"#, None);
        let expected = WebhookSettings {
            enabled: true,
            url: "https://example.com/".into(),
            ..WebhookSettings::default()
        };
        assert_eq!(settings, expected);
        let json = serde_json::to_string(&settings).unwrap();
        assert!(!json.contains("secret") && json.contains("[5,30,120,600,3600,21600,86400]"), "{json}");
        assert_eq!(serde_json::from_str::<WebhookSettings>(&json).unwrap(), settings);
        assert!(accepted(r#"{"enabled":false}"#, None).url.is_empty());
    }

    #[test]
    fn every_bad_field_is_named() {
        let json = r#"{"url":"http://10.0.0.1/","auth":{"method":"header","header_name":"Host","secret":"é"},
            "timeout_ms":30001,"retry":{"schedule_s":[]},"max_concurrency":65,"rate_limit_per_s":0}"#;
        let fields = [
            "url",
            "auth.header_name",
            "auth.secret",
            "timeout_ms",
            "max_concurrency",
            "rate_limit_per_s",
            "retry.schedule_s",
        ];
        assert_eq!(problems(json, None), fields);
        assert_eq!(problems("{}", None), ["url"]);
        for (schedule, field) in [
            ("[0]", "retry.schedule_s[0]"),
            ("[1,604801]", "retry.schedule_s[1]"),
            (&*format!("[{}1]", "1,".repeat(20)), "retry.schedule_s"),
        ] {
            let json = format!(r#"{{"enabled":false,"retry":{{"schedule_s":{schedule}}}}}"#);
            assert_eq!(problems(&json, None), [field]);
        }
        for unknown in [r#"{"secret":"x"}"#, r#"{"auth":{"key":"x"}}"#, r#"{"auth":{"method":"basic"}}"#] {
            assert!(serde_json::from_str::<WebhookUpdate>(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn secrets_fit_their_method() {
        let update = |method: &str, secret: &str| {
            format!(r#"{{"enabled":false,"auth":{{"method":"{method}"{secret}}}}}"#)
        };
        for (method, secret, stored) in [
            ("none", "", None),
            ("none", r#","secret":null"#, Some("x")),
            ("none", r#","secret":"0123456789abcdef""#, None),
            ("bearer", r#","secret":"t""#, None),
            ("bearer", "", Some("stored")),
            ("header", r#","secret":"a b""#, None),
            ("hmac", "", Some("0123456789abcdef")),
        ] {
            accepted(&update(method, secret), stored);
        }
        for (method, secret, stored) in [
            ("none", r#","secret":"short""#, None),
            ("none", r#","secret":"""#, None),
            ("bearer", "", None),
            ("bearer", r#","secret":null"#, Some("stored")),
            ("bearer", r#","secret":"a b""#, None),
            ("header", "", None),
            ("header", r#","secret":"a\r\nb: c""#, None),
            ("header", r#","secret":" a""#, None),
            ("header", r#","header_name":"content-type","secret":"a""#, None),
            ("hmac", "", None),
            ("hmac", r#","secret":"0123456789abcde""#, None),
            // Kept from another method, and too weak for this one.
            ("hmac", "", Some("short")),
        ] {
            assert_eq!(problems(&update(method, secret), stored).len(), 1, "{method} {secret} {stored:?}");
        }
    }
}
