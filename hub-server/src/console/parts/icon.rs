//! Icons: drawings of our own on a grid of 16, each next to a word.

use maud::{Markup, PreEscaped, Render};

#[derive(Debug, Clone, Copy)]
pub(in crate::console) enum Icon {
    Home,
    Message,
    Bot,
    Book,
    Appearance,
    Person,
    Ok,
    Warn,
    Error,
    Skipped,
}

impl Icon {
    const fn path(self) -> &'static str {
        match self {
            Self::Home => "M2 8l6-5 6 5M4 7v6h8V7",
            Self::Message => "M2 3h12v8H7l-3 3v-3H2z",
            Self::Bot => "M3 6h10v7H3zM8 6V3M6 9v1M10 9v1",
            Self::Book => "M3 3h4l1 1 1-1h4v10H9l-1 1-1-1H3zM8 4v9",
            Self::Appearance => "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
            Self::Person => "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6M2 14c1-3 3-4 6-4s5 1 6 4",
            Self::Ok => "M3 8l4 4 6-8",
            Self::Warn => "M13 8a5 5 0 1 1-2-4M11 1v3h3",
            Self::Error => "M4 4l8 8M12 4l-8 8",
            Self::Skipped => "M3 8h10",
        }
    }
}

impl Render for Icon {
    fn render(&self) -> Markup {
        PreEscaped(format!(
            "<svg class=\"icon\" viewBox=\"0 0 16 16\" width=\"16\" height=\"16\" aria-hidden=\"true\" \
             focusable=\"false\"><path d=\"{}\"/></svg>",
            self.path()
        ))
    }
}
