//! Cookies: reading them, and those that the hub sets.

use hub_core::{Hub, accounts::DEVICE_LIFETIME, id::UserId, secret::Secret};
use poem::http::{HeaderMap, header};

use crate::{AppSettings, envelope::ApiError};

/// Name of the session cookie when the public URL is https.
pub const SECURE_COOKIE: &str = "__Host-session";
/// Name of the session cookie on plain http, which is for loopback.
pub const PLAIN_COOKIE: &str = "session";

/// The value of a cookie. Two cookies of one name indicate that one was planted: neither counts.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut found = headers
        .get_all(header::COOKIE)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b';'))
        .filter_map(|pair| str::from_utf8(pair).ok()?.trim().split_once('='))
        .filter(|(key, value)| *key == name && !value.is_empty());
    let first = found.next()?.1;
    found.next().is_none().then_some(first)
}

/// `Set-Cookie` for a new session.
pub fn session_cookie(settings: &AppSettings, token: &Secret, lifetime: std::time::Duration) -> String {
    let seconds = lifetime.as_secs();
    if settings.is_https() {
        let token = token.expose();
        format!("{SECURE_COOKIE}={token}; Path=/; Max-Age={seconds}; HttpOnly; Secure; SameSite=Lax")
    } else {
        format!("{PLAIN_COOKIE}={}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax", token.expose())
    }
}

/// Name of the cookie of a browser in which someone has signed in before.
pub(crate) fn device_cookie_name(settings: &AppSettings) -> &'static str {
    if settings.is_https() { "__Host-device" } else { "device" }
}

/// `Set-Cookie` for such a browser. `Strict`: only requests of the hub's own pages carry it.
fn device_cookie(settings: &AppSettings, device: &Secret) -> String {
    let (name, value, seconds) = (device_cookie_name(settings), device.expose(), DEVICE_LIFETIME.as_secs());
    let secure = if settings.is_https() { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly{secure}; SameSite=Strict")
}

/// `Set-Cookie` after a successful authentication: the new session, and the browser, which is recognised from now on.
pub(crate) async fn entry_cookies(
    hub: &Hub,
    settings: &AppSettings,
    user_id: UserId,
    token: &Secret,
) -> std::result::Result<Vec<String>, ApiError> {
    let device = hub.accounts().device_cookie(user_id).await?;
    let session = session_cookie(settings, token, hub.context().config.session_lifetime);
    Ok([session].into_iter().chain(device.map(|device| device_cookie(settings, &device))).collect())
}

/// Name of the cookie that binds a sign-in ceremony to a browser.
pub(crate) fn flow_cookie_name(settings: &AppSettings) -> &'static str {
    if settings.is_https() { "__Host-flow" } else { "flow" }
}

/// `Set-Cookie` for the browser that begins a ceremony. `Lax`: it has to be sent when an external provider redirects
/// back.
pub(crate) fn flow_cookie(settings: &AppSettings, browser: &Secret) -> String {
    let (name, value) = (flow_cookie_name(settings), browser.expose());
    let secure = if settings.is_https() { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age=600; HttpOnly{secure}; SameSite=Lax")
}

/// `Set-Cookie` that ends the session in the browser.
pub fn cleared_cookie(settings: &AppSettings) -> String {
    session_cookie(settings, &Secret::new(""), std::time::Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use poem::http::HeaderValue;

    use super::*;
    use crate::{credentials::Presented, settings::Values};

    #[test]
    fn planted_cookies_do_not_count() {
        let cookie = |https, text: &str| {
            let headers = [(header::COOKIE, HeaderValue::from_bytes(text.as_bytes()).unwrap())];
            let presented = Presented::of(&headers.into_iter().collect(), https);
            presented.cookie.map(|secret| secret.expose().to_owned())
        };
        assert_eq!(cookie(false, "a=b; session=abc").as_deref(), Some("abc"));
        assert_eq!(cookie(true, "session=abc"), None, "on https only the __Host- name counts");
        assert_eq!(cookie(true, "__Host-session=abc; session=x").as_deref(), Some("abc"));
        assert_eq!(cookie(false, "session=abc; session=def"), None);
        assert_eq!(cookie(false, "session="), None);
        assert_eq!(cookie(false, "name=Zoë; session=abc").as_deref(), Some("abc"));
        let unreadable = HeaderValue::from_bytes(b"name=\xeb; session=abc").unwrap();
        let headers = [(header::COOKIE, unreadable)].into_iter().collect();
        let found = super::cookie(&headers, "session");
        assert_eq!(found, Some("abc"), "a part that cannot be read discards itself alone");
    }

    #[test]
    fn cookies_are_guarded_as_far_as_the_url_allows() {
        let set = |url: &str| {
            let settings = AppSettings::from(Values::new(url.parse().unwrap()));
            session_cookie(&settings, &Secret::new("t"), std::time::Duration::from_secs(60))
        };
        assert_eq!(
            set("https://hub.example"),
            "__Host-session=t; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Lax"
        );
        assert_eq!(set("http://localhost:9800"), "session=t; Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
    }
}
