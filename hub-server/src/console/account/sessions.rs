//! Sessions of the user.

use hub_core::accounts::Accounts;
use maud::html;

use crate::{
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{list, time::time},
    },
    credentials::cleared_cookie,
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/account/sessions",
    shows: &["listSessions"],
    command: "",
    show: handler!(show),
    actions: &[does!("deleteSession", end, |words| words.account.session_ended)],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.account;
    let request = ask.page_request(&Accounts::session_list(&ask.actor))?;
    let sessions = ask.hub.accounts().sessions(&ask.actor, &request).await?;
    let rows = html! {
        @for session in &sessions.items {
            tr {
                td.text { bdi { (session.user_agent) } @if session.current { " " strong { "(" (words.this_session) ")" } } }
                td { span.id { (session.ip) } }
                td data-label=(words.signed_in_at) { (time(Some(session.created_at), "")) }
                td data-label=(words.last_seen) { (time(Some(session.last_seen_at), "")) }
                td {
                    form method="post" action=(ask.path) {
                        input type="hidden" name="id" value=(session.id);
                        button name="do" value="end" { (words.end_session) }
                    }
                }
            }
        }
    };
    let columns = [words.program, words.address, words.signed_in_at, words.last_seen, words.action];
    let main = html! {
        p.muted { (words.sessions_help) }
        div.stacked { (list::table(words.sessions, &columns, &rows)) }
        (list::pages(ask, sessions.next_cursor.as_deref()))
    };
    Ok(Answer::page(words.sessions, Vec::new(), main))
}

async fn end(ask: &Ask) -> Result<Answer, ApiError> {
    let id = ask.field("id").unwrap_or_default().parse();
    let id = id.map_err(|_| hub_core::Error::not_found("session"))?;
    ask.hub.accounts().delete_session(&ask.actor, id).await?;
    if ask.actor.user()?.session_id == Some(id) {
        return Ok(Answer::Leave { to: "/login".to_owned(), cookies: vec![cleared_cookie(&ask.settings)] });
    }
    Ok(ask.done())
}
