//! API keys.

use hub_core::accounts::{Accounts, ApiKey, CreatedApiKey, NewApiKey};
use maud::{Markup, html};

use crate::{
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
    path: "/console/account/keys",
    shows: &["listApiKeys"],
    command: "",
    show: handler!(show),
    actions: &[
        does!("createApiKey", create, |words| words.keys.created),
        does!("deleteApiKey", revoke, |words| words.keys.revoked),
    ],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.keys;
    let request = ask.page_request(&Accounts::api_key_list(&ask.actor))?;
    let keys = ask.hub.accounts().api_keys(&ask.actor, &request).await?;
    if let Some(key) = keys.items.iter().find(|key| ask.query("ask") == Some(key.id.to_string().as_str())) {
        let above = vec![(ask.path.clone(), words.title.to_owned())];
        return Ok(Answer::page((words.revoke_named)(&key.name), above, confirm_revocation(ask, key)));
    }
    let now = ask.hub.context().store.now();
    let rows = html! {
        @for key in &keys.items {
            tr {
                td { bdi { (key.name) } }
                td { (code::id(key.prefix())) }
                td { (time(Some(key.created_at), "")) }
                td { (time(key.last_used_at, ask.words.common.never)) }
                td {
                    (time(key.expires_at, ask.words.common.never))
                    @if key.expires_at.is_some_and(|at| at <= now) { " " (words.expired) }
                }
                td { a.button href=(ask.with_query("ask", &key.id.to_string())) { (words.revoke) } }
            }
        }
    };
    let columns = [
        ask.words.common.name,
        words.key,
        ask.words.common.created,
        words.last_used,
        words.expires,
        words.revoke,
    ];
    let main = html! {
        p.muted { (words.what) }
        @if keys.items.is_empty() {
            (list::empty(ask, words.empty, None))
        } @else {
            (list::table(words.title, &columns, &rows))
            (list::pages(ask, keys.next_cursor.as_deref()))
        }
        section aria-labelledby="new" { h2 #new { (words.new) } (new_key(ask)) }
    };
    Ok(Answer::page(words.title, Vec::new(), main))
}

fn new_key(ask: &Ask) -> Markup {
    let words = &ask.words.keys;
    let form = Form::new(ask, "create");
    let name = Field {
        name: "name",
        label: ask.words.common.name,
        help: Some(words.name_help),
        is_required: true,
        max: Some(64),
        ..Field::default()
    };
    let lifetime = Field {
        name: "expires_in_days",
        label: words.lifetime,
        help: Some(words.lifetime_help),
        kind: "number",
        value: "90".to_owned(),
        ..Field::default()
    };
    form.render(&html! { (form.once(ask)) (form.field(&name)) (form.field(&lifetime)) }, words.create)
}

fn confirm_revocation(ask: &Ask, key: &ApiKey) -> Markup {
    html! {
        form method="post" action=(ask.path) {
            input type="hidden" name="id" value=(key.id);
            p.actions {
                a.button href=(ask.path) autofocus { (ask.words.common.cancel) }
                button.danger name="do" value="revoke" { ((ask.words.keys.revoke_named)(&key.name)) }
            }
        }
    }
}

/// The new key is in this answer alone: sent again, the form gives the same key.
async fn create(ask: &Ask) -> Result<Answer, ApiError> {
    let new = ask.form::<NewApiKey>()?;
    let created = ask.hub.accounts().create_api_key(&ask.actor, new, ask.idempotency_key()).await?;
    let above = vec![(ask.path.clone(), ask.words.keys.title.to_owned())];
    Ok(Answer::secret(ask.words.keys.created, above, shown_once(ask, &created)))
}

fn shown_once(ask: &Ask, created: &CreatedApiKey) -> Markup {
    let words = &ask.words.keys;
    let key = created.secret.expose();
    let base = ask.settings.public_url.as_str().trim_end_matches('/');
    html! {
        p { strong { (words.shown_once) } }
        (code::copied(ask.words, key))
        p { (words.try_it) }
        (code::copied(ask.words, &format!("curl -H 'Authorization: Bearer {key}' {base}/api/auth/me")))
        p.actions { a.button href=(ask.path) { (words.saved_it) } }
    }
}

async fn revoke(ask: &Ask) -> Result<Answer, ApiError> {
    let id =
        ask.field("id").unwrap_or_default().parse().map_err(|_| hub_core::Error::not_found("API key"))?;
    ask.hub.accounts().delete_api_key(&ask.actor, id).await?;
    Ok(ask.done())
}
