//! A contact: the last messages in both directions, and the form that sends another.

use hub_core::bots::{Bots, Message, MessageFilter};
use maud::{Markup, html};

use super::composer::{self, Recipient, send};
use crate::{
    console::{
        messages::row,
        page::{Answer, Ask, Page, does, handler},
        parts::{cause::cause, code, list, time::time},
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/:bot/contacts/:user",
    shows: &["listMessages"],
    command: "hub-cli bots messages {bot} --user {user}",
    show: handler!(show),
    actions: &[does!("sendMessage", send, |words| words.people.sent)],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.people;
    let (id, user) = (ask.id("bot")?, ask.param("user"));
    let bot = ask.hub.bots().get(&ask.actor, id).await?;
    let filter = MessageFilter { user_id: Some(user.to_owned()), ..MessageFilter::default() };
    let request = ask.page_request(&Bots::message_list(id, &filter))?;
    let messages = ask.hub.bots().messages(&ask.actor, id, &filter, &request).await?;
    let known = messages.items.iter().map(|message| message.user_name.as_str()).find(|name| !name.is_empty());
    let above = vec![
        ("/console/bots".to_owned(), ask.words.bots.title.to_owned()),
        (format!("/console/bots/{id}"), bot.name),
        (format!("/console/bots/{id}/contacts"), words.title.to_owned()),
    ];
    let rows = html! { @for message in &messages.items { (message_row(ask, message)) } };
    let main = html! {
        p { (words.user_id) " " (code::id(user)) }
        (composer::render(ask, &Recipient::Contact(user)))
        section data-region="messages" data-live="message sent" aria-labelledby="messages" {
            h2 #messages { (words.messages) }
            @if messages.items.is_empty() {
                (list::empty(ask, words.no_messages, None))
            } @else {
                (list::table(words.messages, &[words.time, words.way, words.text, words.state], &rows))
                (list::pages(ask, messages.next_cursor.as_deref()))
            }
        }
    };
    Ok(Answer::page(known.unwrap_or(user), above, main))
}

fn message_row(ask: &Ask, message: &Message) -> Markup {
    let words = &ask.words.people;
    html! {
        tr {
            td {
                a href={ "/console/messages/" (message.bot_id) "/" (message.id) } { (time(Some(message.created_at), "")) }
            }
            td { (row::way(ask.words, message.direction)) }
            td.said {
                @if message.content.is_empty() { span.muted { "[" ((words.kind)(message.kind)) "]" } }
                @else { bdi { (message.content) } }
                @for file in message.media.iter().filter(|file| !file.file_name.is_empty()) {
                    " " span.muted { "[" bdi { (file.file_name) } "]" }
                }
            }
            td {
                ((ask.words.messages.statuses)(message.status))
                @if let Some(reason) = &message.status_reason { br; span.muted { (cause(ask.words, reason)) } }
            }
        }
    }
}
