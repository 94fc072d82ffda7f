//! Binding an account: a code to scan, and its state until the bot is there.

use std::time::Duration;

use hub_core::{
    Error, ErrorCode,
    bots::{BindStatus, BindStep, Bot, NewBind},
    id::BindId,
};
use maud::{Markup, html};

use crate::{
    api::{
        bots::ConfirmBind,
        sim::{SimScan, playground},
    },
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{
            badge,
            cause::cause,
            code,
            form::{Field, Form},
            qr,
            time::time,
        },
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/new",
    shows: &["getBind"],
    command: "hub-cli bots bind",
    show: handler!(show),
    actions: &[
        does!("startBind", start, |words| words.bind.started),
        does!("confirmBind", confirm, |words| words.bind.sent),
        does!("scanSimBind", scan_as, |words| words.bind.scanned),
    ],
};

/// The network in the process of a development server.
const SIMULATED: &str = "sim";

/// With `?bind=`, shows the state of the login in progress, so that a browser can return to it.
async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    let words = ask.words;
    let above = vec![("/console/bots".to_owned(), words.bots.title.to_owned())];
    let Some(bind) = ask.query("bind") else {
        return Ok(Answer::page(words.bind.title, above, choose(ask)));
    };
    let id: BindId = bind.parse().map_err(|_| Error::not_found("bind"))?;
    let step = ask.hub.bots().bind_state(&ask.actor, id).await?;
    Ok(Answer::secret(words.bind.title, above, state(ask, id, &step)?))
}

/// The form that starts a login.
fn choose(ask: &Ask) -> Markup {
    html! { p { (ask.words.bind.what) } (start_form(ask, ask.words.bind.start)) }
}

fn start_form(ask: &Ask, button: &str) -> Markup {
    let words = &ask.words.bind;
    let form = Form::new(ask, "start");
    let mut networks: Vec<&str> = ask.hub.context().networks.keys().map(String::as_str).collect();
    networks.sort_unstable();
    let options: Vec<_> = networks.iter().map(|name| (*name, *name)).collect();
    let name = Field {
        name: "name",
        label: ask.words.common.name,
        help: Some(words.name_help),
        value: ask.query("name").unwrap_or_default().to_owned(),
        max: Some(64),
        ..Field::default()
    };
    let fields = html! {
        (form.select("network", ask.words.bots.network, ask.query("network").unwrap_or_default(), &options))
        (form.field(&name))
    };
    form.render(&fields, button)
}

fn state(ask: &Ask, id: BindId, step: &BindStep) -> Result<Markup, ApiError> {
    let words = &ask.words.bind;
    let bot = step.bot.as_ref();
    let is_written_to = bot.and_then(|bot| bot.last_inbound_at).is_some_and(|at| at > id.made_at());
    let waits_for_message = step.status == BindStatus::Confirmed && !is_written_to;
    Ok(html! {
        section data-region="bind" data-poll=[waits_for_message.then_some("2000")] aria-labelledby="state" {
            h2 #state { ((words.state)(step.status)) }
            p role="status" { ((words.sentence)(step.status)) }
            @if let Some(reason) = &step.reason { p { (cause(ask.words, reason)) } }
            @match step.status {
                BindStatus::Waiting => {
                    @if let Some(text) = &step.qr_text { (scan(ask, step, text.expose())?) }
                    p.muted { (words.age) " " (time(Some(id.made_at()), "")) }
                    (check_again(ask, id))
                }
                BindStatus::Scanned => (check_again(ask, id)),
                BindStatus::NeedCode => (number(ask, id)),
                BindStatus::Confirmed | BindStatus::AlreadyBound => {
                    @if let Some(bot) = bot { (bound(ask, bot)) }
                    @if step.status == BindStatus::Confirmed {
                        p role="status" {
                            @if is_written_to { (badge::badge(badge::Tone::Ok, words.first_message)) }
                            @else { (badge::badge(badge::Tone::Warn, words.no_message)) }
                        }
                    }
                }
                BindStatus::Expired | BindStatus::Refused => (start_form(ask, words.again)),
            }
        }
    })
}

/// The code, and the link in it.
fn scan(ask: &Ask, step: &BindStep, link: &str) -> Result<Markup, ApiError> {
    let words = &ask.words.bind;
    let is_simulated = step.network == SIMULATED;
    Ok(html! {
        @if is_simulated && ask.settings.playground.is_some() { (simulated_phone(ask)) }
        (qr::code(link, words.code)?)
        p { (words.link) }
        (code::copied(ask.words, link))
        @if is_simulated {
            p { (words.simulated) }
            (code::copied(ask.words, &format!("hub-cli sim scan '{link}'")))
        }
    })
}

fn bound(ask: &Ask, bot: &Bot) -> Markup {
    html! {
        p {
            a.button href={ "/console/bots/" (bot.id) } { (ask.words.bind.open) }
            " " bdi { (bot.name) } " " (badge::bot(ask.words, bot.status))
        }
    }
}

/// Renders the form that scans the code as a person of the simulated network, in place of a phone.
fn simulated_phone(ask: &Ask) -> Markup {
    let words = &ask.words.bind;
    let form = Form::new(ask, "scan_as");
    let person = Field {
        name: "from",
        label: words.person,
        help: Some(words.person_help),
        max: Some(100),
        ..Field::default()
    };
    form.render(&form.field(&person), words.scan)
}

/// Asks the network for the next step. A script sends the form from time to time.
fn check_again(ask: &Ask, id: BindId) -> Markup {
    html! {
        form method="post" data-enhance data-poll="2000" {
            input type="hidden" name="bind_id" value=(id);
            input type="hidden" name="wait_ms" value="0";
            p.actions { button name="do" value="confirm" { (ask.words.bind.check) } }
        }
    }
}

fn number(ask: &Ask, id: BindId) -> Markup {
    let words = &ask.words.bind;
    let form = Form::new(ask, "confirm");
    let number = Field {
        name: "verify_code",
        label: words.number,
        is_required: true,
        max: Some(16),
        ..Field::default()
    };
    let fields = html! {
        input type="hidden" name="bind_id" value=(id);
        input type="hidden" name="wait_ms" value="0";
        (form.field(&number))
    };
    form.render(&fields, words.send)
}

/// Starts a login and redirects to its page. The query contains its id, to resume it, and the choices, to start it
/// again.
async fn start(ask: &Ask) -> Result<Answer, ApiError> {
    let body = ask.form::<NewBind>()?;
    let chosen = [("name", body.name.as_deref()), ("network", body.network.as_deref())];
    let chosen = chosen.map(|(name, value)| (name, value.unwrap_or_default().to_owned()));
    let bots = ask.hub.bots();
    let started = ask.client_gone.while_connected(bots.start_bind(&ask.actor, body)).await?;
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(chosen.iter().filter(|(_, value)| !value.is_empty()));
    query.append_pair("bind", &started.bind_id.to_string());
    Ok(Answer::Goto(format!("{}?{}", ask.path, query.finish())))
}

async fn confirm(ask: &Ask) -> Result<Answer, ApiError> {
    let body = ask.form::<ConfirmBind>()?;
    let (id, code) = (body.bind_id, body.verify_code.as_deref());
    let bots = ask.hub.bots();
    let step = Box::pin(bots.confirm_bind(&ask.actor, id, code, body.wait()));
    match ask.client_gone.while_connected(step).await {
        // The network did not respond; the login continues.
        Err(error) if error.inner().code() == ErrorCode::UpstreamError => {}
        step => drop(step?),
    }
    Ok(Answer::Goto(ask.with_query("bind", &id.to_string())))
}

async fn scan_as(ask: &Ask) -> Result<Answer, ApiError> {
    let SimScan { from } = ask.form::<SimScan>()?;
    let id: BindId = ask.query("bind").unwrap_or_default().parse().map_err(|_| Error::not_found("bind"))?;
    playground(&ask.settings)?.scan(&ask.hub, &ask.actor, id, from.as_deref()).await?;
    Box::pin(ask.hub.bots().confirm_bind(&ask.actor, id, None, Duration::ZERO)).await?;
    Ok(Answer::Goto(ask.with_query("bind", &id.to_string())))
}
