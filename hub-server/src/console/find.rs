//! The search of the top bar: ids lead to their pages, other texts find bots, and messages by a link.

use hub_core::{
    bots::{Bots, MessageFilter, MessageSearch},
    id::{BotId, ChannelId, MessageId, TraceId},
    page::{MAX_LIMIT, PageRequest},
};
use maud::{Markup, html};

use super::{
    page::{Answer, Ask, Page, handler},
    parts::badge,
};
use crate::envelope::ApiError;

pub(super) const PATH: &str = "/console/find";

/// Longest text to look for, in characters.
pub(super) const MAX_TEXT: usize = 200;

pub(super) static PAGE: Page = Page {
    path: PATH,
    shows: &["listBots"],
    command: "hub-cli bots list",
    show: handler!(show),
    actions: &[],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = ask.words.live;
    let text: String = ask.query("q").unwrap_or_default().trim().chars().take(MAX_TEXT).collect();
    let is_id = ["tr_", "msg_", "bot_", "ch_"].iter().any(|prefix| text.starts_with(prefix));
    if is_id && let Some(to) = address(ask, &text).await? {
        return Ok(Answer::Goto(to));
    }
    let request = PageRequest::parse(&Bots::bot_list(&ask.actor), Some(MAX_LIMIT), None)?;
    let mut bots = ask.hub.bots().list(&ask.actor, &request).await?.items;
    let wanted = text.to_lowercase();
    bots.retain(|bot| bot.name.to_lowercase().contains(&wanted));
    let main = html! {
        p.muted { (words.find_help) }
        @if is_id {
            p { ((words.no_such_id)(&text)) }
        } @else {
            @if !text.is_empty() { p { a.button href=(in_messages(&text)) { ((words.in_messages)(&text)) } } }
            section aria-labelledby="bots-found" {
                h2 #bots-found { (words.bots_found) }
                @if bots.is_empty() {
                    p { @if text.is_empty() { (ask.words.bots.empty) } @else { ((words.no_bot)(&text)) } }
                } @else {
                    ul.plain-list {
                        @for bot in &bots {
                            li { a href={ "/console/bots/" (bot.id) } { bdi { (bot.name) } } " " (badge::bot(ask.words, bot.status)) }
                        }
                    }
                }
            }
        }
    };
    Ok(Answer::page(words.find, Vec::new(), main))
}

/// The page of the thing with this id; `None` if there is none that the user may see.
async fn address(ask: &Ask, id: &str) -> Result<Option<String>, ApiError> {
    if let Ok(id) = id.parse::<TraceId>() {
        let trace = ask.hub.traces().find(&ask.actor, None, id).await?;
        return Ok(trace.map(|trace| format!("/console/traces/{}/{id}", trace.bot_id)));
    }
    if let Ok(message) = id.parse::<MessageId>() {
        let filter = MessageFilter { q: Some(id.to_owned()), ..MessageFilter::default() };
        let search = MessageSearch { filter, ..MessageSearch::default() };
        let found = ask.hub.bots().all_messages(&ask.actor, &search, &PageRequest::default()).await?;
        let bot = found.items.first().map(|item| item.message.bot_id);
        return Ok(bot.map(|bot| format!("/console/messages/{bot}/{message}")));
    }
    if let Ok(id) = id.parse::<BotId>() {
        return Ok(Some(format!("/console/bots/{id}")));
    }
    Ok(id.parse::<ChannelId>().ok().map(|id| format!("/console/messages?channel_id={id}")))
}

fn in_messages(text: &str) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("q", text).finish();
    format!("/console/messages?{query}")
}

/// The field of the top bar.
pub(super) fn field(ask: &Ask) -> Markup {
    let words = ask.words.live;
    let typed = ask.query("q").filter(|_| ask.path == PATH).unwrap_or_default();
    html! {
        form.find method="get" action=(PATH) role="search" aria-label=(words.find) {
            input name="q" type="search" maxlength=(MAX_TEXT) value=(typed) aria-label=(words.find_label)
                placeholder=(words.find_label) autocomplete="off" aria-keyshortcuts="Control+K Meta+K";
            button { (words.find) }
        }
    }
}
