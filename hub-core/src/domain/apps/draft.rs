//! Input to create or change an app, and its validation.

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::{App, AppEventKind, AppScopes, AppTool, Listing, tool};
use crate::{
    egress::Egress,
    error::{Error, Problems, Result},
    model::app_event as subscription,
    secret::ShownOnce,
};

/// Addresses to which authorizations of one app may lead.
pub const MAX_REDIRECTS: usize = 10;
/// Longest name, in characters.
const MAX_NAME: usize = 64;
/// Longest description, in characters.
const MAX_DESCRIPTION: usize = 4096;
/// Longest word of a list in requests, in characters; every known one is shorter.
pub(super) const MAX_WORD: usize = 1024;
/// Longest address, in bytes.
const MAX_URL: usize = 2048;

/// An app to create.
#[derive(Debug, Clone, Default, PartialEq, Serialize, hub_macros::Api)]
#[api(name = "CreateApp", input, checked, example = {
    "description": "Tells the weather.",
    "events": ["command"],
    "name": "Weather",
    "redirect_uris": ["https://weather.example/oauth/callback"],
    "scopes": ["message:read", "message:write"],
    "slug": "weather",
    "tools": [{
        "command": "/weather",
        "description": "The weather in a city",
        "name": "weather",
        "parameters": { "properties": { "city": { "type": "string" } }, "type": "object" },
    }],
    "webhook_url": "https://weather.example/hub",
})]
pub struct NewApp {
    /// Name.
    #[api(length = 1..=MAX_NAME)]
    pub name: String,
    /// Slug: 3 to 40 of `a-z0-9-`, unique on the hub; derived from the name if absent.
    #[api(length = 3..=40, pattern("^[a-z0-9][a-z0-9-]*[a-z0-9]$", "weather"))]
    pub slug: Option<String>,
    /// The other fields.
    #[serde(flatten)]
    pub rest: AppPatch,
}

/// A change of an app; absent fields keep their values, and an empty text removes a URL.
#[derive(Debug, Clone, Default, PartialEq, Serialize, hub_macros::Api)]
#[api(name = "UpdateApp", input, checked, example = { "description": "Tells the weather of tomorrow." })]
pub struct AppPatch {
    /// Name.
    #[api(line = 1..=MAX_NAME)]
    pub name: Option<String>,
    /// Description.
    #[api(body = 0..=MAX_DESCRIPTION)]
    pub description: Option<String>,
    /// URL of the icon.
    #[api(length = 0..=MAX_URL)]
    pub icon_url: Option<String>,
    /// URL of the homepage.
    #[api(length = 0..=MAX_URL)]
    pub homepage: Option<String>,
    /// Redirect URIs: `https`, or `http` on loopback; compared exactly.
    #[api(items = ..=MAX_REDIRECTS, length = 0..=MAX_URL)]
    pub redirect_uris: Option<Vec<String>>,
    /// URL at which the app starts its installation itself.
    #[api(length = 0..=MAX_URL)]
    pub setup_url: Option<String>,
    /// URL for events. The hub posts a challenge, which must be returned. Without a URL, events wait for a WebSocket
    /// of the app.
    #[api(length = 0..=MAX_URL)]
    pub webhook_url: Option<String>,
    /// Events to receive: `message` or `message.text|image|voice|video|file`, `command`, `bot.status`,
    /// `app.installed`, `app.uninstalled`. Messages require the scope `message:read`, `bot.status` requires
    /// `bot:read`.
    #[api(length = 0..=MAX_WORD)]
    pub events: Option<Vec<String>>,
    /// Scopes that the app requests: `message:read`, `message:write`, `contact:read`, `bot:read`, `tools:write`,
    /// `config:read`. Existing installations keep what they granted.
    #[api(length = 0..=MAX_WORD)]
    pub scopes: Option<Vec<String>>,
    /// Tools.
    #[api(set, items = ..=tool::MAX_TOOLS)]
    pub tools: Option<Vec<AppTool>>,
}

/// A change that keeps the rules.
#[derive(Debug, Clone, Default)]
pub(super) struct Checked {
    name: Option<String>,
    description: Option<String>,
    icon_url: Option<String>,
    homepage: Option<String>,
    redirect_uris: Option<Vec<String>>,
    setup_url: Option<String>,
    webhook_url: Option<String>,
    events: Option<Vec<AppEventKind>>,
    scopes: Option<AppScopes>,
    tools: Option<Vec<AppTool>>,
}

impl AppPatch {
    /// Reads the change. Schemas of tools are compiled here: call it off the async threads.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every bad field.
    pub(super) fn check(self, egress: &Egress) -> Result<Checked> {
        let mut problems = Problems::default();
        self.check_bounds(&mut problems);
        for (field, url) in [("icon_url", &self.icon_url), ("homepage", &self.homepage)] {
            if let Some(Err(reason)) = not_empty(url.as_ref()).map(check_page) {
                problems.add(field, reason);
            }
        }
        for (at, uri) in self.redirect_uris.iter().flatten().enumerate().take(MAX_REDIRECTS) {
            if let Err(reason) = check_redirect(uri) {
                problems.add(format!("redirect_uris[{at}]"), reason);
            }
        }
        if let Some(Err(reason)) = not_empty(self.setup_url.as_ref()).map(check_redirect) {
            problems.add("setup_url", reason);
        }
        if let Some(Err(error)) = not_empty(self.webhook_url.as_ref()).map(|url| egress.check_url(url)) {
            problems.take_as(&error, |_| "webhook_url".into());
        }
        let events = noted(&mut problems, self.events.as_deref().map(subscription::parse_all));
        let scopes = noted(&mut problems, self.scopes.map(AppScopes::parse));
        let tools = noted(&mut problems, self.tools.map(tool::checked));
        problems.finish()?;
        Ok(Checked {
            name: self.name,
            description: self.description,
            icon_url: self.icon_url,
            homepage: self.homepage,
            redirect_uris: self.redirect_uris,
            setup_url: self.setup_url,
            webhook_url: self.webhook_url,
            events,
            scopes,
            tools,
        })
    }
}

impl Checked {
    /// Applies the change to an app. A listed app whose scopes or URLs change needs another review.
    pub(super) fn apply(self, app: &mut App) {
        let before = app.clone();
        put(&mut app.name, self.name);
        put(&mut app.description, self.description);
        put(&mut app.icon_url, self.icon_url);
        put(&mut app.homepage, self.homepage);
        put(&mut app.redirect_uris, self.redirect_uris);
        put(&mut app.setup_url, self.setup_url.map(Some));
        put(&mut app.webhook_url, self.webhook_url.map(Some));
        app.setup_url.take_if(|url| url.is_empty());
        app.webhook_url.take_if(|url| url.is_empty());
        put(&mut app.events, self.events);
        put(&mut app.scopes, self.scopes);
        put(&mut app.tools, self.tools);
        app.webhook_verified &= app.webhook_url == before.webhook_url;
        let reviewed = |app: &App| {
            let addresses = (app.redirect_uris.clone(), app.setup_url.clone(), app.webhook_url.clone());
            (app.name.clone(), addresses, app.events.clone(), app.scopes, app.tools.clone())
        };
        if app.listing == Listing::Listed && reviewed(app) != reviewed(&before) {
            app.listing = Listing::Pending;
        }
    }
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn not_empty(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// Takes what was read, and notes what was wrong with it under its own fields.
fn noted<T>(problems: &mut Problems, read: Option<Result<T>>) -> Option<T> {
    read?.map_err(|error| problems.take(&error)).ok()
}

fn parse(text: &str) -> Result<Url, &'static str> {
    if text.len() > MAX_URL || text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err("must be at most 2048 bytes without spaces, control characters and backslashes");
    }
    let url = Url::parse(text).map_err(|_| "is not a complete URL like https://example.com/path")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password");
    }
    Ok(url)
}

/// A page that people may open.
fn check_page(text: &str) -> Result<(), &'static str> {
    match parse(text)?.scheme() {
        "http" | "https" => Ok(()),
        _ => Err("must start with http:// or https://"),
    }
}

/// An address to which a browser is sent with something confidential.
fn check_redirect(text: &str) -> Result<(), &'static str> {
    let url = parse(text)?;
    if url.fragment().is_some() {
        return Err("must not have a fragment");
    }
    let loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if loopback => Ok(()),
        _ => Err("must start with https://, or with http:// on this machine (localhost)"),
    }
}

/// Checks a short name that an author chose.
///
/// # Errors
/// `INVALID_PARAMS` on the field `slug`.
pub(super) fn check_slug(slug: &str) -> Result<()> {
    let is_slug = (3..=40).contains(&slug.len())
        && slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !slug.starts_with('-')
        && !slug.ends_with('-');
    if is_slug {
        return Ok(());
    }
    Err(Error::invalid("slug", "must be 3 to 40 of a-z, 0-9 and -, and neither begin nor end with -"))
}

/// A short name out of a name, with an end that makes it unlike others where that is needed.
pub(super) fn slug_of(name: &str, end: Option<&str>) -> String {
    let dashed: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' })
        .collect();
    let words: Vec<&str> = dashed.split('-').filter(|word| !word.is_empty()).collect();
    let cut: String = words.join("-").chars().take(30).collect();
    let slug = match cut.trim_end_matches('-') {
        "" => "app".to_owned(),
        short if short.len() < 3 => format!("app-{short}"),
        long => long.to_owned(),
    };
    match end {
        Some(end) => format!("{slug}-{end}"),
        None => slug,
    }
}

/// A created app. The secrets are shown only here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, hub_macros::Api)]
pub struct CreatedApp {
    /// The app.
    #[api(flatten)]
    pub app: App,
    /// Secret that authenticates the app at the token endpoint.
    pub client_secret: ShownOnce,
    /// Secret that signs requests of the hub to the app.
    pub webhook_secret: ShownOnce,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::EgressConfig;

    fn named(name: &str) -> AppTool {
        AppTool { name: name.to_owned(), description: String::new(), command: None, parameters: None }
    }

    fn fields(patch: AppPatch) -> Vec<String> {
        let egress = Egress::new(EgressConfig::default()).unwrap();
        match patch.check(&egress) {
            Ok(_) => Vec::new(),
            Err(error) => error.details().iter().map(|detail| detail.field.to_string()).collect(),
        }
    }

    #[test]
    fn redirects_are_https_or_on_this_machine() {
        for good in [
            "https://app.example/cb",
            "https://app.example:8443/cb?x=1",
            "http://localhost:3000/cb",
            "http://127.0.0.1/cb",
            "http://[::1]:9/",
        ] {
            assert_eq!(check_redirect(good), Ok(()), "{good}");
        }
        for bad in [
            "http://app.example/cb",
            "https://app.example/cb#x",
            "https://user@app.example/cb",
            "https://u:p@app.example/cb",
            "myapp://callback",
            "javascript:alert(1)",
            "data:text/html,x",
            "/cb",
            "https://app.example/a b",
            "https://app.example\\@evil.example/",
            "http://localhost.evil.example/",
            "http://10.0.0.1/",
            "",
        ] {
            assert!(check_redirect(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_bad_field_is_named() {
        let patch = AppPatch {
            name: Some(" ".to_owned()),
            description: Some("a\0b".to_owned()),
            icon_url: Some("ftp://x.example".to_owned()),
            homepage: Some("x".to_owned()),
            redirect_uris: Some(vec!["https://ok.example".to_owned(), "http://x.example".to_owned()]),
            setup_url: Some("http://x.example".to_owned()),
            webhook_url: Some("http://10.0.0.1/".to_owned()),
            events: Some(vec!["message.sticker".to_owned()]),
            scopes: Some(vec!["everything".to_owned()]),
            tools: Some(vec![named("")]),
        };
        let all = [
            "name",
            "description",
            "icon_url",
            "homepage",
            "redirect_uris[1]",
            "setup_url",
            "webhook_url",
            "events",
            "scopes",
            "tools[0].name",
        ];
        assert_eq!(fields(patch), all);
        let many = AppPatch {
            redirect_uris: Some((0..11).map(|n| format!("https://x{n}.example")).collect()),
            tools: Some((0..=tool::MAX_TOOLS).map(|n| named(&format!("t{n}"))).collect()),
            ..AppPatch::default()
        };
        assert_eq!(fields(many), ["redirect_uris", "tools"]);
        let empty = || Some(String::new());
        let cleared = AppPatch {
            icon_url: empty(),
            homepage: empty(),
            setup_url: empty(),
            webhook_url: empty(),
            ..AppPatch::default()
        };
        assert!(fields(cleared).is_empty());
    }

    #[test]
    fn slugs_are_validated_and_generated() {
        for good in ["abc", "a-1", "shop-bot-2"] {
            assert!(check_slug(good).is_ok(), "{good}");
        }
        for bad in ["ab", "Abc", "-ab", "ab-", "a_b", "é-é", &"a".repeat(41)] {
            assert!(check_slug(bad).is_err(), "{bad}");
        }
        for (name, slug) in [
            ("Shop Bot!", "shop-bot"),
            ("  A--b ", "a-b"),
            ("天气", "app"),
            ("X", "app-x"),
            (&"long name ".repeat(9), "long-name-long-name-long-name"),
        ] {
            let made = slug_of(name, None);
            assert!(check_slug(&made).is_ok(), "{made}");
            assert_eq!(made, slug);
            assert!(check_slug(&slug_of(name, Some("k3x9qa"))).is_ok());
        }
    }
}
