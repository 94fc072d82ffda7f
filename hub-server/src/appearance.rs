//! Settings of the pages that a browser stores: language, theme and switches, in the cookie `look`. It contains no
//! secret.

use poem::http::{HeaderMap, header};

use crate::credentials::cookies;

/// Name of the cookie.
const COOKIE: &str = "look";
/// Lifetime of the cookie: a year, in seconds.
const LIFETIME: u32 = 365 * 24 * 60 * 60;
/// Mark in the last part of the cookie: single keys are off.
const NO_KEYS: char = 'k';
/// Mark in the last part of the cookie: announcements are off.
const SILENT: char = 'a';

/// Language, theme and switches of the pages of one browser.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Appearance {
    pub(crate) language: Language,
    /// Whether the user chose the language; otherwise it is the one that the browser prefers.
    is_chosen: bool,
    pub(crate) theme: Theme,
    /// Whether single keys are commands.
    pub(crate) has_keys: bool,
    /// Whether new rows are announced to screen readers.
    pub(crate) announces: bool,
}

/// Language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Chinese,
}

impl Language {
    pub(crate) const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// Returns the language as in the cookie and in forms.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.as_str() == text)
    }

    /// Returns the language of the first entry of `Accept-Language`, if there are pages in it.
    fn preferred(accepted: &str) -> Self {
        let first = accepted.trim_start().get(..2).unwrap_or_default();
        Self::parse(&first.to_ascii_lowercase()).unwrap_or(Self::English)
    }
}

/// Colours of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// As the system has them.
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.as_str() == text)
    }
}

impl Appearance {
    /// Reads the settings from the headers of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut parts = cookies(headers, COOKIE).next().unwrap_or_default().splitn(3, '.');
        let [language, theme, off] = std::array::from_fn(|_| parts.next().unwrap_or_default());
        let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let chosen = Language::parse(language);
        Self {
            language: chosen.unwrap_or_else(|| Language::preferred(accepted.unwrap_or_default())),
            is_chosen: chosen.is_some(),
            theme: Theme::parse(theme).unwrap_or(Theme::System),
            has_keys: !off.contains(NO_KEYS),
            announces: !off.contains(SILENT),
        }
    }

    /// Applies the fields of a form. Absent fields and unknown words change nothing.
    pub(crate) fn with<'f>(mut self, field: impl Fn(&str) -> Option<&'f str>) -> Self {
        if let Some(language) = field("language").and_then(Language::parse) {
            (self.language, self.is_chosen) = (language, true);
        }
        let switch = |name| field(name).and_then(|text| text.parse().ok());
        self.theme = field("theme").and_then(Theme::parse).unwrap_or(self.theme);
        self.has_keys = switch("keys").unwrap_or(self.has_keys);
        self.announces = switch("announcements").unwrap_or(self.announces);
        self
    }

    /// Whether the pages are in Chinese.
    pub(crate) fn is_chinese(self) -> bool {
        self.language == Language::Chinese
    }

    /// Returns the value of `Set-Cookie` that stores the settings.
    pub(crate) fn cookie(self) -> String {
        let language = if self.is_chosen { self.language.as_str() } else { "" };
        let off = match (self.has_keys, self.announces) {
            (true, true) => String::new(),
            (true, false) => format!(".{SILENT}"),
            (false, true) => format!(".{NO_KEYS}"),
            (false, false) => format!(".{NO_KEYS}{SILENT}"),
        };
        format!("{COOKIE}={language}.{}{off}; Path=/; Max-Age={LIFETIME}; SameSite=Lax", self.theme.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appearance(cookie: &str, accepted: &str) -> Appearance {
        let pairs = [(header::COOKIE, cookie), (header::ACCEPT_LANGUAGE, accepted)];
        Appearance::of(&pairs.into_iter().map(|(name, value)| (name, value.parse().unwrap())).collect())
    }

    #[test]
    fn the_cookie_precedes_the_browsers_languages() {
        for (cookie, accepted, language, theme) in [
            ("", "", Language::English, Theme::System),
            ("", "zh-CN,zh;q=0.9", Language::Chinese, Theme::System),
            ("look=en.dark", "zh-CN", Language::English, Theme::Dark),
            ("look=zh.light", "en", Language::Chinese, Theme::Light),
            ("look=.dark", "zh", Language::Chinese, Theme::Dark),
            ("look=xx.pink", "en", Language::English, Theme::System),
        ] {
            let appearance = appearance(cookie, accepted);
            assert_eq!((appearance.language, appearance.theme), (language, theme), "{cookie} {accepted}");
        }
    }

    #[test]
    fn a_theme_alone_keeps_following_the_language_of_the_browser() {
        let dark = appearance("", "zh").with(|name| (name == "theme").then_some("dark"));
        assert!(dark.cookie().starts_with("look=.dark;"), "{}", dark.cookie());
        let english = dark.with(|name| (name == "language").then_some("en"));
        assert!(english.cookie().starts_with("look=en.dark;"), "{}", english.cookie());
    }

    #[test]
    fn switches_are_kept_with_the_rest() {
        let quiet = appearance("look=zh.dark", "").with(|name| match name {
            "keys" => Some("false"),
            "announcements" => Some("maybe"),
            _ => None,
        });
        assert!(quiet.cookie().starts_with("look=zh.dark.k;"), "{}", quiet.cookie());
        let again = appearance("look=zh.dark.ka", "");
        assert!(!again.has_keys && !again.announces && again.is_chinese() && again.theme == Theme::Dark);
        let on = again.with(|name| (name == "keys").then_some("true"));
        assert!(on.cookie().starts_with("look=zh.dark.a;"), "{}", on.cookie());
    }
}
