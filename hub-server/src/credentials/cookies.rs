//! Cookies: reading them, and those that the hub sets.

use hub_core::{
    Hub,
    accounts::DEVICE_LIFETIME,
    id::UserId,
    secret::{Secret, TokenKind, parse_token},
};
use poem::http::{HeaderMap, header};

use crate::{AppSettings, envelope::ApiError};

/// Name of the session cookie when the public URL is https.
pub const SECURE_COOKIE: &str = "__Host-session";
/// Name of the session cookie on plain http, which is for loopback.
pub const PLAIN_COOKIE: &str = "session";

/// Cookies of one name that are tried; further ones are ignored.
const MAX_TRIED: usize = 8;

/// The values of the cookies of this name, without quotes, in their order. Browsers send several if they were set for
/// several paths or domains. A cookie that is not text is passed over alone.
pub(crate) fn cookies<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
    let pairs =
        headers.get_all(header::COOKIE).iter().flat_map(|value| value.as_bytes().split(|b| *b == b';'));
    let named = pairs.filter_map(move |pair| {
        let (found, value) = str::from_utf8(pair).ok()?.split_once('=')?;
        (found.trim() == name).then(|| unquoted(value.trim()))
    });
    named.filter(|value| !value.is_empty())
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value)
}

/// The cookies that may be sessions: other programs of the host may use the same name.
pub(super) fn sessions(headers: &HeaderMap, https: bool) -> Vec<Secret> {
    let name = if https { SECURE_COOKIE } else { PLAIN_COOKIE };
    let ours = cookies(headers, name).filter(|value| parse_token(TokenKind::Session, value).is_some());
    ours.take(MAX_TRIED).map(Secret::new).collect()
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

/// The cookies that may be of a browser in which someone has signed in before.
pub(crate) fn devices(settings: &AppSettings, headers: &HeaderMap) -> Vec<String> {
    cookies(headers, device_cookie_name(settings)).take(MAX_TRIED).map(str::to_owned).collect()
}

/// Name of the cookie of a browser in which someone has signed in before.
fn device_cookie_name(settings: &AppSettings) -> &'static str {
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

/// The cookie that binds a sign-in ceremony to a browser: the first that the hub may have set.
pub(crate) fn flow_of(settings: &AppSettings, headers: &HeaderMap) -> Option<String> {
    let mut found = cookies(headers, flow_cookie_name(settings));
    found.find(|value| parse_token(TokenKind::Browser, value).is_some()).map(str::to_owned)
}

/// Name of the cookie that binds a sign-in ceremony to a browser.
fn flow_cookie_name(settings: &AppSettings) -> &'static str {
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
    use hub_core::{random::Random, secret::new_token};
    use poem::http::HeaderValue;

    use super::*;
    use crate::{credentials::Presented, settings::Values};

    fn found(https: bool, values: &[&[u8]]) -> Vec<String> {
        let value = |value: &&[u8]| (header::COOKIE, HeaderValue::from_bytes(value).unwrap());
        let presented = Presented::of(&values.iter().map(value).collect(), https);
        presented.cookies.iter().map(|secret| secret.expose().to_owned()).collect()
    }

    #[test]
    fn neighbours_cookies_hide_no_session() {
        let token = || new_token(TokenKind::Session, &Random::seeded(1)).expose().to_owned();
        let (ours, name) = (token(), "session");
        for before in [
            b"a=b".as_slice(),
            "nick=\u{5f20}\u{4e09}".as_bytes(),
            b"nick=\xeb\xff",
            b"session=x",
            b"session=",
            b"session",
            b"session=\xeb",
            b"=",
            b"",
            b"json={\"a\":1,\"b\":\"c\"}",
            b"__Host-session=x",
            b"Session=y",
        ] {
            for pair in [format!("{name}={ours}"), format!("{name}=\"{ours}\""), format!(" {name} = {ours} ")]
            {
                let joined = [before, b"; ", pair.as_bytes()].concat();
                assert_eq!(found(false, &[&joined]), [ours.as_str()], "{joined:?}");
                let joined = [pair.as_bytes(), b";", before].concat();
                assert_eq!(found(false, &[&joined]), [ours.as_str()], "{joined:?}");
                assert_eq!(found(false, &[before, pair.as_bytes()]), [ours.as_str()], "{before:?}");
            }
        }
        let secure = format!("session=x; __Host-session={ours}; session={ours}");
        assert_eq!(found(true, &[secure.as_bytes()]), [ours.as_str()]);
        let plain = format!("session={ours}");
        assert!(found(true, &[plain.as_bytes()]).is_empty(), "on https only the __Host- name counts");
    }

    #[test]
    fn so_many_sessions_are_tried() {
        let random = Random::seeded(1);
        let many: Vec<_> = (0..2 * MAX_TRIED).map(|_| new_token(TokenKind::Session, &random)).collect();
        let pairs: Vec<_> = many.iter().map(|token| format!("session={}", token.expose())).collect();
        let tried = found(false, &[pairs.join("; ").as_bytes()]);
        assert_eq!(tried.len(), MAX_TRIED);
        assert!(tried.iter().zip(&many).all(|(tried, token)| tried == token.expose()));
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
