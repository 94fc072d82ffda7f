//! Activity log of the account.

use hub_core::accounts::Accounts;
use maud::html;

use crate::{
    console::{
        page::{Answer, Ask, Page, handler},
        parts::{list, time::time},
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/account/activity",
    shows: &["listActivity"],
    command: "",
    show: handler!(show),
    actions: &[],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.account;
    let request = ask.page_request(&Accounts::activity_list(&ask.actor))?;
    let activity = ask.hub.accounts().activity(&ask.actor, &request).await?;
    let rows = html! {
        @for event in &activity.items {
            tr {
                td { (time(Some(event.entry.at), "")) }
                td { ((words.act)(&event.entry.action).unwrap_or(&event.entry.action)) @if event.current { " (" (words.this_session) ")" } }
                td { bdi { (event.entry.target_name) } }
                td { span.id { (event.entry.ip) } }
            }
        }
    };
    let main = html! {
        p.muted { (words.activity_help) }
        div.stacked { (list::table(words.activity, &[words.at, words.event, words.target, words.address], &rows)) }
        (list::pages(ask, activity.next_cursor.as_deref()))
    };
    Ok(Answer::page(words.activity, Vec::new(), main))
}
