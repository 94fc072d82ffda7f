//! The messages of all bots, with their outcome in each channel.

use hub_core::{
    Error,
    bots::{Bot, Bots, Direction, MessageFilter, MessageSearch, Outcome},
    page::{MAX_SCANNED, PageRequest},
    time::Timestamp,
};
use maud::{Markup, html};

use super::{
    page::{Answer, Ask, Page, does, handler},
    parts::list,
    words::Words,
};
use crate::envelope::ApiError;
use replay::start_replay;

pub(super) mod message;
pub(super) mod replay;
pub(super) mod row;

pub(super) static PAGE: Page = Page {
    path: "/console/messages",
    shows: &["listAllMessages", "listBots"],
    command: "",
    show: handler!(show),
    actions: &[does!("startReplay", start_replay, |words| words.replays.started)],
};

/// The parameters of the query that are filters, named as in the API.
const FILTERS: [&str; 7] = ["bot_id", "channel_id", "outcome", "direction", "user_id", "since", "q"];

/// Spans of time before now that can be chosen: their name in the query, and their length in hours.
const LAST: [(&str, u64); 3] = [("1h", 1), ("1d", 24), ("7d", 7 * 24)];

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = ask.words.messages;
    if replay::is_refused(ask) {
        return replay::preview(ask).await;
    }
    let search = search(ask)?;
    let request = ask.page_request(&Bots::all_messages_list(&ask.actor, &search))?;
    let found = ask.hub.bots().all_messages(&ask.actor, &search, &request).await?;
    let bots = ask.hub.bots().list(&ask.actor, &PageRequest::default()).await?.items;
    let rows = html! { @for item in &found.items { (row::row(ask, item, true)) } };
    let is_first = ask.query("cursor").is_none();
    let main = html! {
        p.muted { (words.what) }
        (presets(ask))
        (filters(ask, &bots))
        div.messages.stacked data-region="messages" data-live="message trace sent media" data-held[is_first] {
            @if let Some(total) = found.total.filter(|_| !found.items.is_empty()) {
                p.muted data-computed { ((words.total)(total, total >= u64::from(MAX_SCANNED))) }
            }
            @if found.items.is_empty() {
                (empty(ask, &search, found.next_cursor.is_some(), bots.is_empty()))
            } @else {
                @let selection = [ask.words.replays.selection];
                @let columns: Vec<_> = selection.into_iter().chain(columns(ask.words)).collect();
                (replay::form(ask, &list::table(words.title, &columns, &rows)))
            }
            (pages(ask, &search, found.next_cursor.as_deref()))
        }
    };
    Ok(Answer::page(words.title, Vec::new(), main))
}

/// The headings of a table of messages.
pub(super) fn columns(words: &Words) -> [&'static str; 6] {
    let words = words.messages;
    [words.at, words.bot, words.person, words.direction, words.text, words.outcomes]
}

/// The search that the query describes.
fn search(ask: &Ask) -> Result<MessageSearch, ApiError> {
    let text = |name: &str| ask.query(name).map(str::to_owned);
    let now = ask.hub.context().store.now();
    let since = ask
        .query("since")
        .map(|value| since(value, now).ok_or_else(|| Error::invalid("since", "must be a time")));
    Ok(MessageSearch {
        filter: MessageFilter {
            direction: word(ask, "direction", Direction::parse)?,
            user_id: text("user_id"),
            since: since.transpose()?,
            until: None,
            q: text("q"),
        },
        bot_id: word(ask, "bot_id", |id| id.parse().ok())?,
        channel_id: word(ask, "channel_id", |id| id.parse().ok())?,
        outcome: word(ask, "outcome", Outcome::parse)?,
    })
}

/// A parameter of the query as a word or an id.
fn word<T>(ask: &Ask, name: &'static str, parse: fn(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
    let value = ask
        .query(name)
        .map(|value| parse(value).ok_or_else(|| Error::invalid(name, "is not a possible value")));
    Ok(value.transpose()?)
}

/// A time of the query: a span before now, or the time itself.
pub(super) fn since(value: &str, now: Timestamp) -> Option<Timestamp> {
    let span = LAST.iter().find(|(name, _)| *name == value);
    let before = |hours: u64| now - std::time::Duration::from_secs(hours * 60 * 60);
    span.map_or_else(|| value.parse().ok(), |(_, hours)| Some(before(*hours)))
}

/// Renders links to the most frequent searches. Other filters stay.
fn presets(ask: &Ask) -> Markup {
    let words = ask.words.messages;
    let outcomes = [Outcome::Failed, Outcome::InFlight, Outcome::Skipped];
    let mut links = vec![(String::new(), String::new(), words.all)];
    links.extend(outcomes.map(|outcome| (outcome.to_string(), String::new(), (words.outcome)(outcome))));
    links.push((String::new(), Direction::Outbound.to_string(), words.sent_by_us));
    let is = |name: &str, value: &str| ask.query(name).unwrap_or_default() == value;
    html! {
        nav.presets aria-label=(words.presets) {
            @for (outcome, direction, text) in &links {
                @let is_here = is("outcome", outcome) && is("direction", direction);
                a href=(ask.with_queries(&[("outcome", outcome), ("direction", direction), ("cursor", "")]))
                    aria-current=[is_here.then_some("true")]
                    aria-keyshortcuts=[(*outcome == Outcome::Failed.to_string()).then_some("f")] { (text) }
            }
        }
    }
}

fn filters(ask: &Ask, bots: &[Bot]) -> Markup {
    let words = ask.words.messages;
    let is_filtered = FILTERS.iter().any(|name| ask.query(name).is_some());
    let bot_options = bots.iter().map(|bot| (bot.id.to_string(), bot.name.clone())).collect::<Vec<_>>();
    let ways =
        [Direction::Inbound, Direction::Outbound].map(|way| (way.to_string(), (words.way)(way).to_owned()));
    let mut spans: Vec<_> =
        LAST.iter().zip(words.last).map(|((name, _), text)| ((*name).to_owned(), text.to_owned())).collect();
    if let Some(since) = ask.query("since").filter(|since| spans.iter().all(|(name, _)| name != since)) {
        spans.push((since.to_owned(), since.to_owned()));
    }
    html! {
        form.filters method="get" action=(ask.path) role="search" aria-label=(words.filter) {
            @for name in ["outcome", "channel_id"] {
                @if let Some(value) = ask.query(name) { input type="hidden" name=(name) value=(value); }
            }
            (choice(ask, "bot_id", words.bot, words.any_bot, &bot_options))
            (choice(ask, "direction", words.direction, words.any, &ways))
            (choice(ask, "since", words.since, words.ever, &spans))
            (input(ask, "user_id", words.person, words.person_help))
            (input(ask, "q", words.text, ""))
            p.actions {
                button { (words.show) }
                @if is_filtered { a.button href=(ask.path) { (words.remove_filters) } }
            }
        }
    }
}

fn choice(ask: &Ask, name: &str, label: &str, any: &str, options: &[(String, String)]) -> Markup {
    let chosen = ask.query(name).unwrap_or_default();
    html! {
        div.field {
            label for={ "filter-" (name) } { (label) }
            select id={ "filter-" (name) } name=(name) {
                option value="" { (any) }
                @for (value, text) in options { option value=(value) selected[*value == chosen] { (text) } }
            }
        }
    }
}

fn input(ask: &Ask, name: &str, label: &str, placeholder: &str) -> Markup {
    html! {
        div.field {
            label for={ "filter-" (name) } { (label) }
            input id={ "filter-" (name) } name=(name) type="search" maxlength="200" autocomplete="off"
                placeholder=(placeholder) value=(ask.query(name).unwrap_or_default());
        }
    }
}

/// Renders the reason for an empty list: nothing was ever received, nothing matches, or nothing matches on this page.
fn empty(ask: &Ask, search: &MessageSearch, has_more: bool, has_no_bot: bool) -> Markup {
    let words = ask.words.messages;
    if has_more {
        return list::empty(ask, words.nothing_yet, None);
    }
    if let Some(text) = &search.filter.q {
        return list::empty(ask, &(words.no_match)(text), None);
    }
    if *search == MessageSearch::default() {
        return if has_no_bot {
            list::empty(ask, words.empty_no_bot, Some("hub-cli bots bind"))
        } else {
            list::empty(ask, words.empty, Some("hub-cli sim say \"order 42\" --as Ada"))
        };
    }
    list::empty(ask, (words.nothing)(search.outcome), None)
}

/// Links to the next page and to the first one. A cursor belongs to one search, so the time stays the same.
fn pages(ask: &Ask, search: &MessageSearch, next_cursor: Option<&str>) -> Markup {
    let since = search.filter.since.map(|at| at.to_string()).unwrap_or_default();
    list::pages_with(ask, &[("since", &since)], next_cursor)
}
