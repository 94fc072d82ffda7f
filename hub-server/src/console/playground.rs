//! The playground: a person of the simulated network writes to a bot, and the outcome is shown at once.

use hub_core::{
    bots::{Bot, Bots, ListedMessage, MessageSearch},
    demo::{self, Behaviour, ReceiverState},
    page::PageRequest,
};
use maud::{Markup, html};

use super::{
    messages,
    page::{Answer, Ask, Page, does, handler},
    parts::{
        badge::{Tone, badge},
        code,
        form::{Field, Form},
        list,
        time::time,
    },
};
use crate::{
    api::sim::{self, SetSimReceiver, SimWrite},
    envelope::ApiError,
};

pub(super) static PAGE: Page = Page {
    path: "/console/playground",
    shows: &["listBots", "listAllMessages", "getSimReceiver"],
    command: "",
    show: handler!(show),
    actions: &[
        does!("sendSimMessage", write, |words| words.playground.written),
        does!("setSimReceiver", change, |words| words.playground.changed),
    ],
};

/// Messages of the conversation that are shown.
const SHOWN: u32 = 10;
/// Requests of the receiver that are shown.
const REQUESTS: usize = 5;

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.playground;
    let Some(playground) = &ask.settings.playground else {
        return Ok(Answer::page(words.title, Vec::new(), html! { p { (words.absent) } }));
    };
    let all = PageRequest::parse(&Bots::bot_list(&ask.actor), Some(200), None)?;
    let mut bots = ask.hub.bots().list(&ask.actor, &all).await?.items;
    bots.retain(|bot| bot.network == demo::NETWORK);
    let chosen = bots.iter().find(|bot| ask.query("bot") == Some(&*bot.id.to_string()));
    let Some(bot) = chosen.or_else(|| bots.last()) else {
        let main =
            html! { p { (words.no_bot) } p { a.button href="/console/bots/new" { (ask.words.bots.title) } } };
        return Ok(Answer::page(words.title, Vec::new(), main));
    };
    let search = MessageSearch { bot_id: Some(bot.id), ..MessageSearch::default() };
    let page = PageRequest::parse(&Bots::all_messages_list(&ask.actor, &search), Some(SHOWN), None)?;
    let messages = ask.hub.bots().all_messages(&ask.actor, &search, &page).await?.items;
    // The receiver is the demo's; users who do not own that bot do not see it.
    let receiver = playground.receiver(&ask.hub, &ask.actor).await.ok();
    let main = html! {
        p.muted { (words.what) }
        (choice(ask, &bots, bot))
        (conversation(ask, bot, &messages))
        @if let Some(receiver) = receiver { (receiver_state(ask, &receiver)) }
        section aria-labelledby="own" {
            h2 #own { (words.own_code) }
            p { (words.own_code_help) }
            (code::copied(ask.words, &format!("hub-cli listen --bot {} --forward-to http://localhost:3000", bot.id)))
        }
    };
    Ok(Answer::page(words.title, Vec::new(), main))
}

/// Renders the selection of a bot, if there are several.
fn choice(ask: &Ask, bots: &[Bot], chosen: &Bot) -> Markup {
    let words = &ask.words.playground;
    html! {
        @if bots.len() > 1 {
            form.line method="get" {
                label for="bot" { (words.bot) }
                select #bot name="bot" {
                    @for bot in bots { option value=(bot.id) selected[bot.id == chosen.id] { (bot.name) } }
                }
                button { (words.choose) }
            }
        }
    }
}

fn conversation(ask: &Ask, bot: &Bot, messages: &[ListedMessage]) -> Markup {
    let words = &ask.words.playground;
    let form = Form::new(ask, "write");
    let text =
        Field { name: "text", label: words.text, is_required: true, max: Some(4000), ..Field::default() };
    let rows = html! { @for message in messages { (messages::row::row(ask, message, false)) } };
    html! {
        section aria-labelledby="conversation" {
            h2 #conversation { (words.conversation) " · " bdi { (bot.name) } }
            (form.render(
                &html! {
                    input type="hidden" name="bot" value=(bot.id);
                    (form.select("from", words.person, "Ada", &[("Ada", "Ada"), ("Bob", "Bob")]))
                    (form.field(&text))
                },
                words.write,
            ))
            div.messages.stacked data-region="conversation" data-live="message trace sent" {
                @if messages.is_empty() {
                    p { (words.no_message) }
                } @else {
                    (list::table(words.conversation, &messages::columns(ask.words), &rows))
                }
            }
        }
    }
}

fn receiver_state(ask: &Ask, receiver: &ReceiverState) -> Markup {
    let words = &ask.words.playground;
    let form = Form::new(ask, "change");
    let modes = ["answer", "fail", "hang", "cut"];
    let mode = match receiver.behaviour {
        Behaviour::Answer => 0,
        Behaviour::Fail => 1,
        Behaviour::Hang => 2,
        Behaviour::Cut => 3,
    };
    let options: Vec<_> = modes.into_iter().zip(words.modes).collect();
    let times = Field {
        name: "times",
        label: words.times,
        help: Some(words.times_help),
        kind: "number",
        value: receiver.left.map(|left| left.to_string()).unwrap_or_default(),
        ..Field::default()
    };
    let rows = html! {
        @for request in receiver.received.iter().rev().take(REQUESTS) {
            tr {
                td { (time(Some(request.at), "")) }
                td { bdi { (request.content) } }
                td { (request.attempt) }
                td { @if request.verdict.verified { (badge(Tone::Ok, words.verified)) } @else {
                    (badge(Tone::Error, words.not_verified)) " " span lang="en" { (request.verdict.reason) } } }
                td { bdi { (request.reply.as_deref().unwrap_or_default()) } }
            }
        }
    };
    html! {
        section aria-labelledby="receiver" {
            h2 #receiver { (words.receiver) }
            p.muted { (words.receiver_help) }
            (form.render(
                &html! { (form.select("mode", words.mode, modes[mode], &options)) (form.field(&times)) },
                words.change,
            ))
            div data-region="receiver" data-live="message trace" {
                h3 { (words.requests) }
                @if receiver.received.is_empty() {
                    p { (words.no_request) }
                } @else {
                    (list::table(
                        words.requests,
                        &[ask.words.account.at, words.message, words.attempt, words.signature, words.reply],
                        &rows,
                    ))
                }
            }
        }
    }
}

async fn write(ask: &Ask) -> Result<Answer, ApiError> {
    let SimWrite { text, from } = ask.form()?;
    let bot = ask.field("bot").unwrap_or_default().parse();
    let bot = bot.map_err(|_| hub_core::Error::not_found("bot"))?;
    let playground = sim::playground(&ask.settings)?;
    playground.write(&ask.hub, &ask.actor, bot, from.as_deref(), &text).await?;
    Ok(ask.done_at(&ask.with_query("bot", &bot.to_string())))
}

async fn change(ask: &Ask) -> Result<Answer, ApiError> {
    let SetSimReceiver { mode, times } = ask.form()?;
    let playground = sim::playground(&ask.settings)?;
    playground.behave(&ask.hub, &ask.actor, mode, times).await?;
    Ok(ask.done())
}
