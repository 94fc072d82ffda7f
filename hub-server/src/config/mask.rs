//! Values of settings as they are shown: without passwords.

use url::Url;

/// Placeholder of a part that is not shown.
pub(super) const MASK: &str = "***";

/// Masks what may be secret in a URL: the password, or a user without one, which may be a token, and the query. Of a URL
/// that does not parse only the scheme is shown, since its parts are not known; other text is returned as it is.
pub fn mask_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    if Url::parse(text).is_err() {
        return format!("{scheme}://{MASK}");
    }
    // A password with an unescaped slash ends the host for the parser, not for its author.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, rest),
    };
    let user = match user.map(|user| user.split_once(':')) {
        Some(Some((name, _))) => format!("{name}:{MASK}@"),
        Some(None) => format!("{MASK}@"),
        None => String::new(),
    };
    match rest.find(['?', '#']) {
        Some(end) => format!("{scheme}://{user}{}{MASK}", &rest[..=end]),
        None => format!("{scheme}://{user}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_what_may_be_secret() {
        for (url, shown) in [
            ("postgres://hub:marker@db/hub", "postgres://hub:***@db/hub"),
            ("postgres://hub@db/hub?password=marker", "postgres://***@db/hub?***"),
            ("postgres://hub:p@ss:w/r#marker@db/hub", "postgres://***"),
            ("postgres://hub:p@marker:w/r", "postgres://***"),
            ("postgres://hub:12/marker@db/hub", "postgres://hub:***@db/hub"),
            ("postgres://hub:12#marker@db/hub", "postgres://hub:***@db/hub"),
            ("https://marker@s3.example", "https://***@s3.example"),
            ("https://otel.example/#marker", "https://otel.example/#***"),
            ("http://[::1]:9800", "http://[::1]:9800"),
            ("file:///var/lib/hub/media", "file:///var/lib/hub/media"),
            ("/var/lib/hub", "/var/lib/hub"),
        ] {
            assert_eq!(mask_url(url), shown);
        }
    }
}
