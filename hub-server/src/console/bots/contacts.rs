//! The people a bot talks to, and the owner's remarks on them.

use hub_core::bots::{Bots, Contact};
use maud::{Markup, html};

use crate::{
    api::bots::SetRemark,
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{
            code,
            form::{Field, Form},
            list,
            time::time,
        },
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/:bot/contacts",
    shows: &["listContacts"],
    command: "hub-cli bots contacts {bot}",
    show: handler!(show),
    actions: &[does!("setContactRemark", remark, |words| words.people.remark_saved)],
};

/// The address of a contact: ids of people may contain anything.
pub(super) fn address(bot: &str, user: &str) -> String {
    let user: String = url::form_urlencoded::byte_serialize(user.as_bytes()).collect();
    format!("/console/bots/{bot}/contacts/{}", user.replace('+', "%20"))
}

/// The name of a person: the remark, else the name on the network, else the id.
fn name(contact: &Contact) -> &str {
    let names = [&contact.remark, &contact.user_name, &contact.user_id];
    names.into_iter().find(|name| !name.is_empty()).map_or("", String::as_str)
}

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.people;
    let id = ask.id("bot")?;
    let bot = ask.hub.bots().get(&ask.actor, id).await?;
    let request = ask.page_request(&Bots::contact_list(id))?;
    let contacts = ask.hub.bots().contacts(&ask.actor, id, &request).await?;
    let above = vec![
        ("/console/bots".to_owned(), ask.words.bots.title.to_owned()),
        (format!("/console/bots/{id}"), bot.name),
    ];
    if let Some(contact) = contacts.items.iter().find(|contact| ask.query("remark") == Some(&contact.user_id))
    {
        return Ok(Answer::page((words.remark_of)(name(contact)), above, remark_form(ask, contact)));
    }
    let rows = html! { @for contact in &contacts.items { (row(ask, contact)) } };
    let columns = [
        words.person,
        words.user_id,
        words.last_message,
        words.messages,
        words.sends_left,
        words.window,
        words.remark,
    ];
    let main = html! {
        p.muted { (words.what) }
        @if contacts.items.is_empty() {
            (list::empty(ask, words.empty, None))
        } @else {
            (list::table(words.title, &columns, &rows))
            (list::pages(ask, contacts.next_cursor.as_deref()))
        }
    };
    Ok(Answer::page(words.title, above, main))
}

fn row(ask: &Ask, contact: &Contact) -> Markup {
    let words = &ask.words.people;
    html! {
        tr {
            td { a href=(address(ask.param("bot"), &contact.user_id)) { bdi { (name(contact)) } } }
            td { (code::id(&contact.user_id)) }
            td { (time(Some(contact.last_message_at), "")) }
            td { (contact.message_count) }
            td {
                @if let Some(left) = contact.sends_left { (left) } @else { (words.unlimited) }
                @if contact.next_send_at.is_some() { br; (words.next_send) " " (time(contact.next_send_at, "")) }
            }
            td { (time(contact.window_expires_at, words.no_end)) }
            td {
                @if !contact.remark.is_empty() { bdi { (contact.remark) } br; }
                a href=(ask.with_query("remark", &contact.user_id)) { (words.change_remark) }
            }
        }
    }
}

fn remark_form(ask: &Ask, contact: &Contact) -> Markup {
    let words = &ask.words.people;
    let form = Form::new(ask, "remark");
    let remark = Field {
        name: "remark",
        label: words.remark,
        help: Some(words.remark_help),
        value: contact.remark.clone(),
        max: Some(64),
        ..Field::default()
    };
    html! {
        dl.facts {
            dt { (words.person) } dd { bdi { (contact.user_name) } }
            dt { (words.user_id) } dd { (code::id(&contact.user_id)) }
        }
        (form.render(&html! {
            input type="hidden" name="user" value=(contact.user_id);
            (form.field(&remark))
        }, ask.words.common.save))
        p { a href=(ask.path) { (ask.words.common.cancel) } }
    }
}

async fn remark(ask: &Ask) -> Result<Answer, ApiError> {
    let body = ask.form::<SetRemark>()?;
    let user = ask.submitted.as_ref().and_then(|form| form.field("user")).unwrap_or_default();
    ask.hub.bots().set_remark(&ask.actor, ask.id("bot")?, user, &body.remark).await?;
    Ok(ask.done())
}
