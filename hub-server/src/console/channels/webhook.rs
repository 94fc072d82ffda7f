//! The webhook of a channel: URL, authentication, retries, limits, test, and verification by a receiver.

use hub_core::channels::{
    Channel,
    sinks::{AuthMethod, Ordering, WebhookSettings, WebhookUpdate},
};
use maud::{Markup, html};

use super::{Open, Tab, switch, verify, webhook_trial};
use crate::{
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{
            cause::cause,
            code,
            form::{Field, Form},
            time::time,
        },
        words::Words,
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/:bot/channels/:channel/webhook",
    shows: &["getChannel"],
    command: "hub-cli channels show --bot {bot} {channel} --json=webhook",
    show: handler!(show),
    actions: &[
        does!("setWebhookSink", save, |words| words.webhooks.saved),
        does!("testWebhookSink", test, |words| words.webhooks.tested),
    ],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    Ok(render(ask, &Open::of(ask).await?, None))
}

/// Renders the page, with the outcome of a test if there was one.
fn render(ask: &Ask, open: &Open, tested: Option<&Markup>) -> Answer {
    let (words, channel) = (&ask.words.webhooks, &open.channel);
    let main = html! {
        p.muted { (words.what) }
        p {
            (switch(ask.words, channel.webhook.settings.enabled))
            @if !channel.webhook.settings.url.is_empty() { " " bdi { (channel.webhook.settings.url) } }
        }
        @if let Some(reason) = &channel.webhook_disabled_reason {
            p.error { (words.switched_off) " " (cause(ask.words, reason)) }
            p { (words.switch_on_again) }
        }
        section data-region="test" aria-labelledby="test" {
            h2 #test { (words.test) }
            (test_form(ask, channel))
            @if let Some(tested) = tested { (tested) }
        }
        section aria-labelledby="configuration" {
            h2 #configuration { (words.configuration) }
            (configuration(ask, channel))
        }
        (verify::section(ask, channel))
    };
    open.page(ask, Tab::Webhook, &main)
}

fn test_form(ask: &Ask, channel: &Channel) -> Markup {
    let words = &ask.words.webhooks;
    html! {
        @if channel.webhook.settings.url.is_empty() {
            p { (words.no_url) }
        } @else {
            p.muted { (words.test_help) }
            p.muted { (words.configured) " " (time(Some(channel.updated_at), "")) }
            form method="post" data-enhance { p.actions { button name="do" value="test" { (words.send_test) } } }
        }
    }
}

fn configuration(ask: &Ask, channel: &Channel) -> Markup {
    let (words, webhook) = (&ask.words.webhooks, &channel.webhook.settings);
    let form = Form::new(ask, "save");
    let is_on = webhook.enabled || channel.webhook_disabled_reason.is_some() || webhook.url.is_empty();
    let url = Field {
        kind: "url",
        is_required: true,
        max: Some(2048),
        ..text("url", words.url, Some(words.url_help), webhook.url.clone())
    };
    let fields = html! {
        (form.field(&url))
        (form.checkbox("enabled", words.enabled, is_on))
        (authentication(ask, form, channel))
        (retries(ask.words, form, webhook))
        (limits(ask.words, form, webhook))
    };
    form.render(&fields, words.save)
}

fn authentication(ask: &Ask, form: Form<'_>, channel: &Channel) -> Markup {
    let (words, auth) = (&ask.words.webhooks, &channel.webhook.auth);
    let methods = AuthMethod::ALL.map(|method| (method.as_str(), (words.methods)(method)));
    // The first one that is saved has a signature, unless another method is chosen.
    let method =
        if channel.webhook.settings.url.is_empty() { AuthMethod::Hmac } else { auth.settings.method };
    let header = auth.settings.header_name.clone().unwrap_or_default();
    let secret = Field {
        kind: "password",
        ..text("auth.secret", words.secret, Some(words.secret_help), String::new())
    };
    html! {
        h3 { (words.auth) }
        p { @if channel.webhook.auth.has_secret { (words.has_secret) } @else { (words.no_secret) } }
        @if channel.webhook.auth.old_secret_expires_at.is_some() {
            p { (words.old_secret_until) " " (time(channel.webhook.auth.old_secret_expires_at, "")) }
        }
        (form.select("auth.method", words.method, method.as_str(), &methods))
        (form.field(&text("auth.header_name", words.header_name, Some(words.header_help), header)))
        @if channel.webhook.auth.has_secret { (form.clear("auth.secret", words.remove_secret)) }
        (form.field(&secret))
    }
}

fn retries(words: &Words, form: Form<'_>, webhook: &WebhookSettings) -> Markup {
    let schedule = &webhook.retry.schedule_s;
    let lines: Vec<String> = schedule.iter().map(u32::to_string).collect();
    let waits: Vec<String> = schedule.iter().map(|wait| span(words, (*wait).into())).collect();
    let whole = schedule.iter().copied().map(u64::from).sum();
    let words_here = &words.webhooks;
    html! {
        h3 { (words_here.retries) }
        ol.schedule { li { (words_here.at_once) } @for wait in &waits { li { "+ " (wait) } } }
        p { ((words_here.gives_up)(&span(words, whole))) }
        (form.area(&text(
            "retry.schedule_s", words_here.schedule, Some(words_here.schedule_help), lines.join("\n")
        ), 7))
    }
}

/// A time span in the largest unit that has no more than two digits.
fn span(words: &Words, seconds: u64) -> String {
    let words = &words.webhooks;
    match seconds {
        0..100 => (words.seconds)(seconds),
        100..6000 => (words.minutes)(seconds.div_ceil(60)),
        _ => (words.hours)(seconds.div_ceil(3600)),
    }
}

fn limits(words: &Words, form: Form<'_>, webhook: &WebhookSettings) -> Markup {
    let words = &words.webhooks;
    let number = |name, label, help, value: Option<u32>| Field {
        kind: "number",
        ..text(name, label, Some(help), value.map(|value| value.to_string()).unwrap_or_default())
    };
    let orderings = Ordering::ALL.map(|ordering| (ordering.as_str(), (words.orderings)(ordering)));
    html! {
        h3 { (words.limits) }
        (form.select("ordering", words.ordering, webhook.ordering.as_str(), &orderings))
        (form.field(&number("timeout_ms", words.timeout, words.timeout_help, Some(webhook.timeout_ms))))
        (form.field(&number(
            "max_concurrency", words.concurrency, words.concurrency_help, Some(webhook.max_concurrency)
        )))
        (form.field(&number("rate_limit_per_s", words.rate, words.rate_help, webhook.rate_limit_per_s)))
        (form.checkbox("auto_reply", words.auto_reply, webhook.auto_reply))
    }
}

fn text<'a>(name: &'a str, label: &'a str, help: Option<&'a str>, value: String) -> Field<'a> {
    Field { name, label, help, value, ..Field::default() }
}

/// A generated secret is in this answer alone.
async fn save(ask: &Ask) -> Result<Answer, ApiError> {
    let words = &ask.words.webhooks;
    let update = ask.form::<WebhookUpdate>()?;
    let (bot, channel) = (ask.id("bot")?, ask.id("channel")?);
    let saved = ask.hub.channels().set_webhook(&ask.actor, bot, channel, update).await?;
    let Some(secret) = &saved.webhook.auth.secret else { return Ok(ask.done()) };
    let main = html! {
        p { strong { (words.secret_once) } }
        (code::copied(ask.words, secret.expose()))
        p { (words.secret_use) }
        p.actions { a.button href=(ask.path) { (words.saved_it) } }
    };
    let above = vec![(ask.path.clone(), ask.words.channels.webhook.to_owned())];
    Ok(Answer::secret(words.secret_title, above, main))
}

/// The outcome is on the page itself: nothing of it is stored.
async fn test(ask: &Ask) -> Result<Answer, ApiError> {
    let open = Open::of(ask).await?;
    let outcome = webhook_trial::run(ask, &open).await?;
    Ok(render(ask, &open, Some(&outcome)))
}
