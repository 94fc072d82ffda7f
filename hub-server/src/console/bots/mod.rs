//! The list of bots.

use hub_core::bots::Bots;
use maud::html;

use super::{
    page::{Answer, Ask, Page, handler},
    parts::{badge, list, time::time},
};
use crate::envelope::ApiError;

pub(super) mod bind;
pub(super) mod bot;
mod composer;
pub(super) mod contact;
pub(super) mod contacts;

pub(super) static PAGE: Page = Page {
    path: "/console/bots",
    shows: &["listBots"],
    command: "hub-cli bots list",
    show: handler!(show),
    actions: &[],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.bots;
    let request = ask.page_request(&Bots::bot_list(&ask.actor))?;
    let bots = ask.hub.bots().list(&ask.actor, &request).await?;
    let rows = html! {
        @for bot in &bots.items {
            tr data-key=(bot.id) {
                td { a href={ "/console/bots/" (bot.id) } { bdi { (bot.name) } } }
                td { (badge::bot(ask.words, bot.status)) }
                td { (bot.network) }
                td { (time(bot.last_inbound_at, ask.words.common.never)) }
            }
        }
    };
    let columns = [ask.words.common.name, words.state, words.network, words.last_message];
    let main = html! {
        p.muted { (words.what) }
        p { a.button href="/console/bots/new" { (ask.words.bind.title) } }
        div data-region="bots" data-live="bot" {
            @if bots.items.is_empty() {
                (list::empty(ask, words.empty, Some("hub-cli bots bind")))
            } @else {
                (list::table(words.title, &columns, &rows))
                (list::pages(ask, bots.next_cursor.as_deref()))
            }
        }
    };
    Ok(Answer::page(words.title, Vec::new(), main))
}
