//! The AI sink of a channel.

use hub_core::{
    admin::ai_trial::AiTest,
    channels::{
        Channel,
        sinks::{AiSettings, AiSource, AiUpdate},
    },
    delivery::model_trial::test_model,
};
use maud::{Markup, html};

use super::{Open, Tab, switch};
use crate::{
    console::{
        page::{Answer, Ask, Page, does, handler},
        parts::{
            badge::{Tone, badge},
            form::{Field, Form},
        },
        words::Words,
    },
    envelope::ApiError,
};

pub(in crate::console) static PAGE: Page = Page {
    path: "/console/bots/:bot/channels/:channel/ai",
    shows: &["getChannel"],
    command: "hub-cli channels show --bot {bot} {channel} --json=ai",
    show: handler!(show),
    actions: &[
        does!("setAiSink", save, |words| words.models.saved),
        does!("testAiSink", test, |words| words.models.tested),
    ],
};

async fn show(ask: &Ask) -> Result<Answer, ApiError> {
    render(ask, None).await
}

/// The page; with the result of a test, if there was one.
async fn render(ask: &Ask, tested: Option<&AiTest>) -> Result<Answer, ApiError> {
    let words = &ask.words.models;
    let open = Open::of(ask).await?;
    let warning = ask.hub.channels().ai_warning(&open.channel).await?;
    let main = html! {
        p.muted { (words.what) }
        p { (switch(ask.words, open.channel.ai.settings.enabled)) }
        @if let Some(warning) = warning { p.warn { (words.warning) " " ((ask.words.traces.cause)(&warning)) } }
        section data-region="test" aria-labelledby="test" {
            h2 #test { (words.test) }
            p.muted { (words.test_help) }
            form method="post" data-enhance { p.actions { button name="do" value="test" { (words.send_test) } } }
            @if let Some(tested) = tested { (outcome(ask, tested)) }
        }
        section aria-labelledby="configuration" {
            h2 #configuration { (words.configuration) }
            (configuration(ask, &open.channel))
        }
    };
    Ok(open.page(ask, Tab::Ai, &main))
}

/// Renders the response of the model, or the error.
fn outcome(ask: &Ask, tested: &AiTest) -> Markup {
    let words = &ask.words.models;
    let took = (words.milliseconds)(tested.took.as_millis());
    html! {
        div.tested role="status" {
            @match &tested.outcome {
                Ok(answer) => {
                    p {
                        (badge(Tone::Ok, words.responded)) " " bdi { (tested.model) } " · " (took)
                        @if let Some(usage) = answer.usage {
                            " · " ((words.tokens)(usage.prompt_tokens, usage.completion_tokens))
                        }
                    }
                    pre tabindex="0" { (answer.text) }
                }
                Err((class, message)) => {
                    p { (badge(Tone::Error, words.not_responded)) " " bdi { (tested.model) } " · " (took) }
                    p lang="en" { code { (class) } " " (message) }
                }
            }
        }
    }
}

fn configuration(ask: &Ask, channel: &Channel) -> Markup {
    let (words, ai) = (&ask.words.models, &channel.ai.settings);
    let form = Form::new(ask, "save");
    let fields = html! {
        (form.checkbox("enabled", words.enabled, ai.enabled))
        (endpoint(ask.words, form, ai, channel.ai.has_api_key))
        (behaviour(ask.words, form, ai))
        h3 { (words.limits) }
        (form.field(&number("timeout_ms", words.timeout, words.timeout_help, Some(ai.timeout_ms))))
        (form.area(&text("error_reply", words.error_reply, words.error_reply_help, &ai.error_reply), 2))
    };
    form.render(&fields, words.save)
}

fn endpoint(words: &Words, form: Form<'_>, ai: &AiSettings, has_key: bool) -> Markup {
    let words = &words.models;
    let source = match ai.source {
        AiSource::Global => "global",
        AiSource::Custom => "custom",
    };
    let key = Field {
        kind: "password",
        ..text("api_key", words.api_key, if has_key { words.has_key } else { words.no_key }, "")
    };
    html! {
        h3 { (words.endpoint) }
        (form.select("source", words.source, source, &[("global", words.global), ("custom", words.custom)]))
        (form.field(&Field { kind: "url", ..text("base_url", words.base_url, words.base_url_help, &ai.base_url) }))
        @if has_key { (form.clear("api_key", words.remove_key)) }
        (form.field(&key))
        (form.field(&text("key_header", words.key_header, words.key_header_help, &ai.key_header)))
        (form.field(&text("model", words.model, words.model_help, &ai.model)))
    }
}

fn behaviour(words: &Words, form: Form<'_>, ai: &AiSettings) -> Markup {
    let words = &words.models;
    let prompt = Field {
        name: "system_prompt",
        label: words.system_prompt,
        value: ai.system_prompt.clone(),
        ..Field::default()
    };
    let temperature = ai.temperature.map(|temperature| temperature.to_string()).unwrap_or_default();
    html! {
        h3 { (words.prompt) }
        (form.area(&prompt, 6))
        (form.field(&number("max_history", words.max_history, words.max_history_help, Some(ai.max_history))))
        (form.field(&number("max_tokens", words.max_tokens, words.max_tokens_help, ai.max_tokens)))
        (form.field(&text("temperature", words.temperature, words.temperature_help, &temperature)))
        (form.checkbox("hide_thinking", words.hide_thinking, ai.hide_thinking))
        (form.checkbox("strip_markdown", words.strip_markdown, ai.strip_markdown))
        (form.checkbox("tools", words.tools, ai.tools))
    }
}

fn text<'a>(name: &'a str, label: &'a str, help: &'a str, value: &str) -> Field<'a> {
    Field { name, label, help: Some(help), value: value.to_owned(), ..Field::default() }
}

fn number<'a>(name: &'a str, label: &'a str, help: &'a str, value: Option<u32>) -> Field<'a> {
    let value = value.map(|value| value.to_string()).unwrap_or_default();
    Field { kind: "number", ..text(name, label, help, &value) }
}

async fn save(ask: &Ask) -> Result<Answer, ApiError> {
    let update = ask.form::<AiUpdate>()?;
    ask.hub.channels().set_ai(&ask.actor, ask.id("bot")?, ask.id("channel")?, update).await?;
    Ok(ask.done())
}

/// The result is on the page itself: nothing of it is stored.
async fn test(ask: &Ask) -> Result<Answer, ApiError> {
    let tested = Box::pin(test_model(ask.hub.context(), &ask.actor, ask.id("bot")?, ask.id("channel")?));
    render(ask, Some(&ask.client_gone.while_connected(tested).await?)).await
}
