//! The filter of a channel: a description in words, and the rules as fields.

use hub_core::{
    channels::{
        Channel, Filter, FilterVerdict,
        filter::{MAX_EXPRESSION, Match},
    },
    error::Problems,
    network::MessageKind,
    openapi::Set,
};
use maud::{Markup, html};

use super::{Open, Tab};
use crate::{
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{
            badge::{Tone, badge},
            cause::cause,
            form::{Field, Form},
            list,
            time::time,
        },
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/:bot/channels/:channel/filter",
    shows: &["getChannel"],
    command: "hub-cli channels show --bot {bot} {channel} --json=filter",
    show: handler!(show),
    actions: &[
        does!("setChannelFilter", save, |words| words.filters.saved),
        does!("testChannelFilter", try_on, |words| words.filters.try_on),
    ],
};

/// Messages on which a filter is tried.
const TRIED: u32 = 50;

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    Ok(render(ask, &Open::of(ask).await?, None))
}

/// The page; with the verdicts on recent messages, if the filter was tried.
fn render(ask: &Ask, open: &Open, tried: Option<&[FilterVerdict]>) -> Answer {
    let words = &ask.words.filters;
    let main = html! {
        p.muted { (words.what) }
        section aria-labelledby="now" {
            h2 #now { (words.now) }
            (sentence(ask, &open.channel))
        }
        section aria-labelledby="rules" {
            h2 #rules { (words.rules) }
            (rules(ask, &open.channel.filter))
        }
        @if let Some(tried) = tried { (verdicts(ask, tried)) }
    };
    open.page(ask, Tab::Filter, &main)
}

/// Renders which of the recent messages pass the filter, and the rule that rejects each of the others.
fn verdicts(ask: &Ask, tried: &[FilterVerdict]) -> Markup {
    let (words, bot) = (&ask.words.filters, ask.param("bot"));
    let passed = tried.iter().filter(|verdict| verdict.passed).count();
    let rows = html! {
        @for verdict in tried {
            tr {
                td { (time(Some(verdict.created_at), "")) }
                td { bdi { (verdict.from_user_id) } }
                td { a href={ "/console/messages/" (bot) "/" (verdict.message_id) } { bdi { (verdict.excerpt) } } }
                td {
                    @if verdict.passed { (badge(Tone::Ok, words.would_pass)) } @else {
                        (badge(Tone::Skipped, words.would_not)) " " (cause(ask.words, &verdict.reason))
                    }
                }
            }
        }
    };
    let columns = [ask.words.messages.at, ask.words.messages.person, ask.words.messages.text, words.verdict];
    html! {
        section aria-labelledby="tried" {
            h2 #tried tabindex="-1" autofocus { ((words.tried)(passed, tried.len())) }
            @if !tried.is_empty() { (list::table(words.verdict, &columns, &rows)) }
        }
    }
}

/// The filter in words.
pub(super) fn sentence(ask: &Ask, channel: &Channel) -> Markup {
    let (words, filter) = (&ask.words.filters, &channel.filter);
    let types: Vec<String> = filter.message_types.iter().map(|name| type_name(ask, name)).collect();
    let lists =
        [(words.sender_is, &filter.user_ids), (words.contains, &filter.keywords), (words.type_is, &types)];
    let lists: Vec<_> = lists.into_iter().filter(|(_, entries)| !entries.is_empty()).collect();
    html! {
        @if let Some(handle) = &channel.handle { p { ((ask.words.channels.only_mentions)(handle.as_str())) } }
        @if lists.is_empty() && filter.expression.is_none() {
            p { (words.everything) }
        }
        @if !lists.is_empty() {
            p { @if filter.mode == Match::All { (words.passes_if_all) } @else { (words.passes_if_any) } }
            ul.rules {
                @for (said, entries) in lists {
                    li { (said) @for entry in entries { " " bdi.entry { (entry) } } }
                }
            }
        }
        @if let Some(expression) = &filter.expression {
            p { (words.in_addition) }
            pre tabindex="0" { code { (expression) } }
        }
    }
}

/// Returns the display name of a message type; the type itself if this version does not know it.
fn type_name(ask: &Ask, name: &str) -> String {
    MessageKind::parse(name).map_or(name, |kind| (ask.words.people.kind)(kind)).to_owned()
}

fn rules(ask: &Ask, filter: &Filter) -> Markup {
    let words = &ask.words.filters;
    let form = Form::new(ask, "save").or(ask, "try_on");
    let area =
        |name, label, help, value: String| Field { name, label, help: Some(help), value, ..Field::default() };
    let kinds = MessageKind::ALL.map(|kind| {
        let is_chosen = filter.message_types.iter().any(|name| name == kind.as_str());
        (kind.as_str(), (ask.words.people.kind)(kind), is_chosen)
    });
    let mode = if filter.mode == Match::All { "all" } else { "any" };
    let expression = Field {
        max: u32::try_from(MAX_EXPRESSION).ok(),
        ..area(
            "expression",
            words.expression,
            words.expression_help,
            filter.expression.clone().unwrap_or_default(),
        )
    };
    let fields = html! {
        (form.choices("message_types", words.types, &kinds))
        (form.area(&area("keywords", words.keywords, words.keywords_help, filter.keywords.join("\n")), 3))
        (form.area(&area("user_ids", words.user_ids, words.user_ids_help, filter.user_ids.join("\n")), 3))
        (form.select("match", words.mode, mode, &[("all", words.all), ("any", words.any)]))
        (form.area(&expression, 3))
        p.actions { button name="do" value="try_on" { (words.try_on) } }
    };
    form.render(&fields, words.save)
}

async fn try_on(ask: &Ask) -> Result<Answer, ApiError> {
    let open = Open::of(ask).await?;
    let Set(filter) = ask.form::<Set<Filter>>()?;
    let (bot, channel) = (open.bot.id, open.channel.id);
    let tried =
        ask.hub.channels().test_filter(&ask.actor, bot, channel, filter, TRIED).await.map_err(|error| {
            // The fields of the form are those of the filter itself.
            let mut problems = Problems::default();
            for detail in error.details() {
                let field = detail.field.strip_prefix("filter.").unwrap_or(&detail.field).to_owned();
                problems.add(field, detail.reason.clone());
            }
            problems.finish().err().unwrap_or(error)
        })?;
    Ok(render(ask, &open, Some(&tried.messages)))
}

async fn save(ask: &Ask) -> Result<Answer, ApiError> {
    let Set(filter) = ask.form::<Set<Filter>>()?;
    ask.hub.channels().set_filter(&ask.actor, ask.id("bot")?, ask.id("channel")?, &filter).await?;
    Ok(ask.done())
}
