//! Ways to sign in: password, passkeys, accounts of providers.

use hub_core::{
    accounts::{Accounts, ExternalAccount, Passkey},
    page::PageRequest,
};
use maud::{Markup, html};

use crate::{
    api::user::ChangePassword,
    console::{
        assets,
        page::{Answer, Ask, Page, does, handler},
        parts::{
            form::{Field, Form},
            list,
            time::time,
        },
    },
    credentials::entry_cookies,
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/account/security",
    shows: &["getMe", "listPasskeys", "listLinkedAccounts"],
    command: "",
    show: handler!(show),
    actions: &[
        does!("changePassword", change_password, |words| words.account.password_changed),
        does!("deletePasskey", delete_passkey, |words| words.account.passkey_deleted),
        does!("unlinkAccount", unlink, |words| words.account.unlinked),
    ],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let (words, accounts) = (&ask.words.account, ask.hub.accounts());
    let me = accounts.me(&ask.actor).await?;
    // A user has few: the first page has all of them.
    let all = PageRequest::parse(&Accounts::passkey_list(&ask.actor), Some(200), None)?;
    let passkeys = accounts.passkeys(&ask.actor, &all).await?.items;
    let linked = accounts.external_accounts(&ask.actor).await?;
    let main = html! {
        section aria-labelledby="password" {
            h2 #password { (words.password) }
            (password(ask, me.has_password))
        }
        section aria-labelledby="passkeys" {
            h2 #passkeys { (words.passkeys) }
            p.muted { (words.passkeys_help) }
            (passkey_list(ask, &passkeys))
            (add_passkey(ask))
        }
        section aria-labelledby="devices" {
            h2 #devices { (ask.words.devices.title) }
            p { a.button href="/console/account/devices" { (ask.words.devices.title) } }
        }
        @if !linked.is_empty() || !accounts.providers().is_empty() {
            section aria-labelledby="providers" {
                h2 #providers { (words.providers) }
                (providers(ask, &linked))
            }
        }
    };
    Ok(Answer::page(words.security, Vec::new(), main))
}

fn password(ask: &Ask, has_password: bool) -> Markup {
    let words = &ask.words.account;
    let form = Form::new(ask, "change_password");
    let field = |name, label, help| Field {
        name,
        label,
        help,
        kind: "password",
        is_required: true,
        ..Field::default()
    };
    let fields = html! {
        @if has_password { (form.field(&field("old_password", words.old_password, None))) }
        (form.field(&field("new_password", words.new_password, Some(words.password_help))))
    };
    form.render(&fields, words.change_password)
}

fn passkey_list(ask: &Ask, passkeys: &[Passkey]) -> Markup {
    let (words, common) = (&ask.words.account, &ask.words.common);
    let rows = html! {
        @for passkey in passkeys {
            tr {
                td { bdi { (passkey.name) } }
                td { (time(Some(passkey.created_at), common.never)) }
                td { (time(passkey.last_used_at, common.never)) }
                td { (one(ask, "delete_passkey", &passkey.id.to_string(), &(words.delete_named)(&passkey.name))) }
            }
        }
    };
    html! {
        @if passkeys.is_empty() {
            p { (words.no_passkey) }
        } @else {
            (list::table(words.passkeys, &[common.name, words.added, ask.words.keys.last_used, words.action], &rows))
        }
    }
}

/// The form of the script that adds a passkey.
fn add_passkey(ask: &Ask) -> Markup {
    let words = &ask.words.account;
    let said = [
        ("passkey_added", words.passkey_added),
        ("passkey_cancelled", words.passkey_cancelled),
        ("passkey_exists", words.passkey_exists),
        ("passkey_too_old", words.passkey_too_old),
        ("passkey_unavailable", words.passkey_unavailable),
    ];
    html! {
        p.muted #no-passkeys data-no-passkey data-script { (words.passkey_unavailable) }
        p.ok #passkey-added data-added role="status" {}
        form.fields #add-passkey method="dialog" data-passkey data-script hidden {
            div.field {
                label for="passkey-name" { (words.passkey_name) }
                input #passkey-name name="name" maxlength="64" autocomplete="off" aria-describedby="passkey-name-help";
                p.help #passkey-name-help { (words.passkey_name_help) }
            }
            p.problem data-problem role="alert" {}
            p data-confirm data-script hidden {
                a.button href={ "/console/confirm?back=" (ask.path) } { (words.confirm) }
            }
            p.actions { button { (words.add_passkey) } }
        }
        @for (name, text) in said { template data-word=(name) { (text) } }
        script type="module" src=(assets::path("security.js")) {}
    }
}

fn providers(ask: &Ask, linked: &[ExternalAccount]) -> Markup {
    let (words, common) = (&ask.words.account, &ask.words.common);
    let rows = html! {
        @for account in linked {
            tr {
                td { (account.provider) }
                td { bdi { (account.username) } }
                td { (time(Some(account.created_at), common.never)) }
                td { (one(ask, "unlink", &account.provider, &(words.unlink_named)(&account.provider))) }
            }
        }
    };
    let is_linked = |name: &str| linked.iter().any(|account| account.provider == name);
    let others = ask.hub.accounts().providers().iter().filter(|provider| !is_linked(&provider.name));
    html! {
        @if !linked.is_empty() {
            (list::table(words.providers, &[words.provider, common.name, words.linked, words.action], &rows))
        }
        p.actions {
            @for provider in others {
                a.button href={ "/api/auth/oauth/" (provider.name) "?link=true&redirect=" (ask.path) } {
                    ((words.link_named)(&provider.display_name))
                }
            }
        }
    }
}

/// A button that does something to one thing of a list.
fn one(ask: &Ask, action: &'static str, id: &str, text: &str) -> Markup {
    html! {
        form method="post" action=(ask.path) {
            input type="hidden" name="id" value=(id);
            button name="do" value=(action) { (text) }
        }
    }
}

async fn change_password(ask: &Ask) -> Result<Answer, ApiError> {
    ask.limits.check_account(&ask.actor.principal(), None)?;
    let change = ask.form::<ChangePassword>()?;
    let token = ask.hub.accounts().change_password(&ask.actor, change.into()).await?;
    let cookies = match token {
        Some(token) => entry_cookies(&ask.hub, &ask.settings, ask.actor.user()?.user_id, &token).await?,
        None => Vec::new(),
    };
    Ok(ask.done_with(cookies))
}

async fn delete_passkey(ask: &Ask) -> Result<Answer, ApiError> {
    let id = ask.field("id").unwrap_or_default().parse();
    let id = id.map_err(|_| hub_core::Error::not_found("passkey"))?;
    ask.hub.accounts().delete_passkey(&ask.actor, id).await?;
    Ok(ask.done())
}

async fn unlink(ask: &Ask) -> Result<Answer, ApiError> {
    ask.hub.accounts().unlink_external(&ask.actor, ask.field("id").unwrap_or_default()).await?;
    Ok(ask.done())
}
