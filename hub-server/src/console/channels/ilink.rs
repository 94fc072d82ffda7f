//! The iLink sink of a channel, and the page on which a login of a program is confirmed.

use hub_core::{
    Error, ErrorCode,
    bots::Bots,
    channels::{Channels, NewChannel, sinks::IlinkSettings},
    gateway::{IlinkClient, IlinkLogin},
    id::{BotId, ChannelId},
    openapi::Set,
    page::PageRequest,
};
use maud::{Markup, html};

use super::{Open, Tab, list::base, switch};
use crate::{
    api::ilink::ConfirmIlinkLogin,
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{
            code,
            form::{self, Field, Form},
            list,
            time::time,
        },
    },
    envelope::ApiError,
};

/// Prefix of the form value for a new channel; the id of its bot follows.
const NEW: &str = "new:";
/// Characters of the name that a program gives a channel.
const MAX_NAME: usize = 48;
/// Characters of the login that are appended to a name that is in use.
const SUFFIX: usize = 6;

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/:bot/channels/:channel/ilink",
    shows: &["getChannel", "listIlinkClients"],
    command: "hub-cli channels ilink-clients --bot {bot} {channel}",
    show: handler!(show),
    actions: &[
        does!("setIlinkSink", save, |words| words.ilink.saved),
        does!("deleteIlinkClient", log_out, |words| words.ilink.logged_out),
    ],
};

pub(in crate::console) static LOGIN: Page = Page {
    path: "/console/ilink",
    shows: &[],
    command: "",
    show: handler!(show_login),
    actions: &[
        does!("openIlinkLogin", open, |words| words.ilink.opened),
        does!("confirmIlinkLogin", confirm, |words| words.ilink.confirmed),
        does!("rejectIlinkLogin", refuse, |words| words.ilink.refused),
    ],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.ilink;
    let open = Open::of(ask).await?;
    let settings = open.channel.ilink;
    let clients = ask.hub.gateway().clients(&ask.actor, open.bot.id, open.channel.id).await?;
    let main = html! {
        p.muted { (words.what) }
        p { (switch(ask.words, settings.enabled)) }
        section data-region="clients" data-poll="10000" aria-labelledby="clients" {
            h2 #clients { (words.clients) }
            (rows(ask, &clients))
        }
        section aria-labelledby="configuration" {
            h2 #configuration { (words.configuration) }
            (configuration(ask, settings))
        }
        section aria-labelledby="connect" {
            h2 #connect { (words.connect) }
            p { (words.base_url) }
            (code::copied(ask.words, base(ask)))
            p { (words.cdn_url) }
            (code::copied(ask.words, &format!("{}/c2c", base(ask))))
        }
    };
    Ok(open.page(ask, Tab::Ilink, &main))
}

fn rows(ask: &Ask, clients: &[IlinkClient]) -> Markup {
    let words = &ask.words.ilink;
    let rows = html! {
        @for client in clients {
            tr data-key=(client.id) {
                td { bdi { (client.ip) } }
                td { bdi { (client.user_agent) } }
                td { (time(Some(client.created_at), "")) }
                td { (time(Some(client.last_used_at), "")) }
                td { data value=(client.acked_seq) { (client.acked_seq) } }
                td {
                    form method="post" data-enhance {
                        input type="hidden" name="client" value=(client.id);
                        button name="do" value="log_out" { (words.log_out) }
                    }
                }
            }
        }
    };
    let columns =
        [words.address, words.program, words.since, words.last_used, words.acknowledged, words.action];
    html! {
        @if clients.is_empty() {
            p.muted { (words.no_clients) }
        } @else {
            (list::table(words.clients, &columns, &rows))
        }
    }
}

fn configuration(ask: &Ask, settings: IlinkSettings) -> Markup {
    let words = &ask.words.ilink;
    let form = Form::new(ask, "save");
    let number = |name, label, help, value: u32| Field {
        name,
        label,
        help: Some(help),
        kind: "number",
        value: value.to_string(),
        ..Field::default()
    };
    let fields = html! {
        (form.checkbox("enabled", words.enabled, settings.enabled))
        (form.field(&number("max_clients", words.max_clients, words.max_clients_help, settings.max_clients)))
        (form.field(&number("idle_days", words.idle_days, words.idle_days_help, settings.idle_days)))
    };
    form.render(&fields, words.save)
}

async fn save(ask: &Ask) -> Result<Answer, ApiError> {
    let Set(settings) = ask.form::<Set<IlinkSettings>>()?;
    ask.hub.channels().set_ilink(&ask.actor, ask.id("bot")?, ask.id("channel")?, settings).await?;
    Ok(ask.done())
}

async fn log_out(ask: &Ask) -> Result<Answer, ApiError> {
    let client = ask.field("client").unwrap_or_default().parse();
    let client = client.map_err(|_| Error::not_found("client"))?;
    ask.hub.gateway().revoke(&ask.actor, ask.id("bot")?, ask.id("channel")?, client).await?;
    Ok(ask.done())
}

/// With `?login=`, as in the code, the field is filled in.
async fn show_login(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.ilink;
    let form = Form::new(ask, "open").or(ask, "confirm");
    let login = Field {
        name: "login_id",
        label: words.login,
        help: Some(words.login_help),
        value: ask.query("login").unwrap_or_default().to_owned(),
        is_required: true,
        max: Some(2048),
        ..Field::default()
    };
    let main = html! {
        p { (words.login_what) }
        (form.render(&html! { (form.field(&login)) (form::page_token(ask)) }, words.open))
    };
    Ok(login_page(ask, main))
}

fn login_page(ask: &Ask, main: Markup) -> Answer {
    Answer::page(
        ask.words.ilink.title,
        vec![("/console/bots".to_owned(), ask.words.bots.title.to_owned())],
        main,
    )
}

/// Shows the program that wants to log in and the channels that can accept it. Address, program and time come first,
/// because users are tricked into confirming the logins of others.
async fn open(ask: &Ask) -> Result<Answer, ApiError> {
    ask.check_page_token()?;
    let id = id_in(ask.field("login_id").unwrap_or_default());
    let login = ask.hub.gateway().open_login(&ask.actor, &id).await.map_err(unknown)?;
    let channels = admitting(ask).await?;
    Ok(login_page(ask, decision(ask, &id, &login, &channels)))
}

/// Turns `NOT_FOUND` into an error of the form's field.
fn unknown(error: Error) -> Error {
    if error.code() == ErrorCode::NotFound {
        return Error::invalid(
            "login_id",
            "is unknown, was used or has expired; let the program show a new code",
        );
    }
    error
}

/// Extracts the id from the input: the link in the code, or the id itself.
fn id_in(typed: &str) -> String {
    let typed = typed.trim();
    let of_link = url::Url::parse(typed).ok().and_then(|link| {
        link.query_pairs().find(|(name, _)| name == "login").map(|(_, value)| value.into_owned())
    });
    of_link.unwrap_or_else(|| typed.to_owned())
}

/// Lists the choices for a program, as values of the form with names: channels of the user's newest bots whose iLink
/// sink is on, then a new channel of each bot.
async fn admitting(ask: &Ask) -> Result<Vec<(String, String)>, ApiError> {
    let list = Bots::bot_list(&ask.actor);
    let bots = ask.hub.bots().list(&ask.actor, &PageRequest::parse(&list, None, None)?).await?;
    let (mut found, mut new) = (Vec::new(), Vec::new());
    for bot in bots.items {
        new.push((format!("{NEW}{}", bot.id), format!("{} · {}", bot.name, ask.words.ilink.new_channel)));
        let list = Channels::channel_list(bot.id);
        let page = PageRequest::parse(&list, None, None)?;
        for channel in ask.hub.channels().list(&ask.actor, bot.id, &page).await?.items {
            if channel.enabled && channel.ilink.enabled {
                found.push((channel.id.to_string(), format!("{} · {}", bot.name, channel.name)));
            }
        }
    }
    found.append(&mut new);
    Ok(found)
}

fn decision(ask: &Ask, id: &str, login: &IlinkLogin, channels: &[(String, String)]) -> Markup {
    let words = &ask.words.ilink;
    html! {
        p { strong { (words.question) } }
        dl.facts {
            dt { (words.program) } dd { bdi { (login.user_agent) } }
            dt { (words.address) } dd { (login.ip) }
            dt { (words.requested) } dd { (time(Some(login.requested_at), "")) }
            dt { (words.expires) } dd { (time(Some(login.expires_at), "")) }
        }
        @if channels.is_empty() { p.notice.warn { (words.no_bot) } }
        form.fields method="post" {
            input type="hidden" name="login_id" value=(id);
            (form::page_token(ask))
            @if !channels.is_empty() {
                div.field {
                    label for="channel_id" { (words.channel) }
                    select #channel_id name="channel_id" required aria-describedby="channel_id-help" {
                        @for (id, name) in channels { option value=(id) { (name) } }
                    }
                    p.help #channel_id-help { (words.channel_help) }
                }
            }
            p.actions {
                @if !channels.is_empty() { button name="do" value="confirm" { (words.confirm) } }
                button name="do" value="refuse" formnovalidate { (words.refuse) }
            }
        }
    }
}

async fn confirm(ask: &Ask) -> Result<Answer, ApiError> {
    ask.check_page_token()?;
    if let Some(bot) = ask.field("channel_id").and_then(|chosen| chosen.strip_prefix(NEW)) {
        let bot = bot.parse().map_err(|_| Error::not_found("bot"))?;
        let id = ask.field("login_id").unwrap_or_default();
        let channel = add_channel(ask, bot, id).await?;
        ask.hub.gateway().confirm_login(&ask.actor, id, channel).await.map_err(unknown)?;
        return Ok(ask.done());
    }
    let ConfirmIlinkLogin { login_id, channel_id } = ask.form()?;
    ask.hub.gateway().confirm_login(&ask.actor, &login_id, channel_id).await.map_err(unknown)?;
    Ok(ask.done())
}

/// Creates a channel for a program that waits, with its name if no other channel has that.
async fn add_channel(ask: &Ask, bot: BotId, login: &str) -> Result<ChannelId, ApiError> {
    let program = ask.hub.gateway().open_login(&ask.actor, login).await.map_err(unknown)?.user_agent;
    let name = program.split(['/', ' ']).next().filter(|name| !name.is_empty()).unwrap_or("program");
    let name: String = name.chars().take(MAX_NAME).collect();
    let other = format!("{name} {}", login.chars().take(SUFFIX).collect::<String>());
    let ilink = IlinkSettings { enabled: true, ..IlinkSettings::default() };
    let create = async |name| {
        let new = NewChannel { ilink, ..NewChannel::named(name) };
        ask.hub.channels().create(&ask.actor, bot, new, None).await
    };
    let created = match create(name).await {
        Err(error) if error.code() == ErrorCode::Conflict => create(other).await?,
        created => created?,
    };
    Ok(created.channel.id)
}

async fn refuse(ask: &Ask) -> Result<Answer, ApiError> {
    ask.check_page_token()?;
    let id = ask.field("login_id").unwrap_or_default();
    ask.hub.gateway().reject_login(&ask.actor, id).await.map_err(unknown)?;
    Ok(ask.done())
}
