//! The pages of a channel: an overview, and one for each of its parts.

use hub_core::{bots::Bot, channels::Channel};
use maud::{Markup, html};

use super::{
    page::{Answer, Ask},
    parts::badge::{Tone, badge},
    words::Words,
};
use crate::envelope::ApiError;

pub(super) mod ai;
pub(super) mod filter;
pub(super) mod ilink;
pub(super) mod list;
pub(super) mod overview;
pub(super) mod plugins;
pub(super) mod settings;
mod verify;
pub(super) mod webhook;
mod webhook_trial;
pub(super) mod websocket;

/// A page of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Overview,
    Filter,
    Webhook,
    WebSocket,
    Ilink,
    Ai,
    Plugins,
    Settings,
}

impl Tab {
    const ALL: [Self; 8] = [
        Self::Overview,
        Self::Filter,
        Self::Webhook,
        Self::WebSocket,
        Self::Ilink,
        Self::Ai,
        Self::Plugins,
        Self::Settings,
    ];

    /// Its end of the path, and its name.
    fn parts(self, words: &Words) -> (&'static str, &'static str) {
        let words = &words.channels;
        match self {
            Self::Overview => ("", words.overview),
            Self::Filter => ("/filter", words.filter),
            Self::Webhook => ("/webhook", words.webhook),
            Self::WebSocket => ("/websocket", words.websocket),
            Self::Ilink => ("/ilink", words.ilink),
            Self::Ai => ("/ai", words.ai),
            Self::Plugins => ("/plugins", words.plugins),
            Self::Settings => ("/settings", words.settings),
        }
    }
}

/// A channel with its bot, as its pages show them.
struct Open {
    bot: Bot,
    channel: Channel,
}

impl Open {
    /// The channel of the address.
    async fn of(ask: &Ask) -> Result<Self, ApiError> {
        let (bot, channel) = (ask.id("bot")?, ask.id("channel")?);
        let channel = ask.hub.channels().get(&ask.actor, bot, channel).await?;
        Ok(Self { bot: ask.hub.bots().get(&ask.actor, bot).await?, channel })
    }

    fn path(&self) -> String {
        format!("/console/bots/{}/channels/{}", self.bot.id, self.channel.id)
    }

    /// Links to the pages above: of a page below a tab, the tab too.
    fn above(&self, ask: &Ask, tab: Option<Tab>) -> Vec<(String, String)> {
        let mut above = vec![
            ("/console/bots".to_owned(), ask.words.bots.title.to_owned()),
            (format!("/console/bots/{}", self.bot.id), self.bot.name.clone()),
        ];
        if let Some(tab) = tab {
            let (end, name) = tab.parts(ask.words);
            above.push((self.path(), self.channel.name.clone()));
            above.push((format!("{}{end}", self.path()), name.to_owned()));
        }
        above
    }

    /// A page with the links to the others.
    fn page(&self, ask: &Ask, tab: Tab, main: &Markup) -> Answer {
        let words = &ask.words.channels;
        let (_, name) = tab.parts(ask.words);
        let mut above = self.above(ask, None);
        let title = if tab == Tab::Overview {
            self.channel.name.clone()
        } else {
            above.push((self.path(), self.channel.name.clone()));
            format!("{name} · {}", self.channel.name)
        };
        let main = html! {
            nav.tabs aria-label=(words.tabs) {
                ul {
                    @for other in Tab::ALL {
                        @let (end, name) = other.parts(ask.words);
                        li {
                            a href={ (self.path()) (end) } aria-current=[(other == tab).then_some("page")] { (name) }
                        }
                    }
                }
            }
            @if !self.channel.enabled {
                p.notice.warn { (words.is_off) }
            } @else if list::sinks(ask.words, &self.channel).is_empty() {
                p.notice.warn { (words.nowhere) }
            }
            (main)
        };
        Answer::page(title, above, main)
    }
}

/// Whether something is on.
fn switch(words: &Words, is_on: bool) -> Markup {
    let words = &words.channels;
    if is_on { badge(Tone::Ok, words.on) } else { badge(Tone::Skipped, words.off) }
}

/// A value of a form field for a switch.
const fn truth(is_on: bool) -> &'static str {
    if is_on { "true" } else { "false" }
}
