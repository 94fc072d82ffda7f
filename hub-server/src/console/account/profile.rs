//! Name and e-mail address.

use hub_core::accounts::ProfilePatch;
use maud::{Markup, html};

use crate::{
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::form::{Field, Form},
        shortcuts,
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/account",
    shows: &["getProfile"],
    command: "hub-cli whoami",
    show: handler!(show),
    actions: &[does!("updateProfile", save, |words| words.account.profile_saved)],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.account;
    let me = ask.hub.accounts().me(&ask.actor).await?.user;
    let form = Form::new(ask, "save");
    let display_name = Field {
        name: "display_name",
        label: words.display_name,
        value: me.display_name,
        is_required: true,
        max: Some(64),
        ..Field::default()
    };
    let email = Field {
        name: "email",
        label: words.email,
        kind: "email",
        value: me.email,
        max: Some(254),
        ..Field::default()
    };
    let main = html! {
        dl.facts {
            dt { (words.username) } dd { bdi { (me.username) } }
            dt { (words.role_title) } dd { ((words.role)(me.role)) }
        }
        (form.render(&html! { (form.field(&display_name)) (form.field(&email)) }, words.save_profile))
        (switches(ask))
    };
    Ok(Answer::page(words.profile, Vec::new(), main))
}

/// Renders the switches that this browser keeps in addition to language and theme.
fn switches(ask: &Ask) -> Markup {
    let words = &ask.words.shortcuts;
    let form = Form::new(ask, "look");
    html! {
        section #look aria-labelledby="look-heading" {
            h2 #look-heading { (words.look) }
            p.muted { (words.look_help) " " a href=(shortcuts::PATH) { (words.title) } }
            form.fields method="post" {
                (form.checkbox("keys", words.single_keys, ask.appearance.has_keys))
                (form.checkbox("announcements", words.announcements, ask.appearance.announces))
                (form.button(ask.words.frame.apply))
            }
        }
    }
}

async fn save(ask: &Ask) -> Result<Answer, ApiError> {
    let mut patch = ask.form::<ProfilePatch>()?;
    // An empty field of the form removes the address.
    patch.email = patch.email.or_else(|| ask.field("email").map(str::to_owned));
    ask.hub.accounts().update_profile(&ask.actor, patch).await?;
    Ok(ask.done())
}
