//! `traces explain`: why a message did or did not arrive.

use hub_core::{
    id::{BotId, ChannelId, MessageId, TraceId},
    traces::{Explanation, OfChannel, OfPlugin, Remedy, SinkId, WebhookField},
};
use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    args::{PageArgs, TracesExplainArgs},
    client::Client,
    context::Context,
    document::cell,
    exit::Failure,
    printer::Tone,
    screen,
};

pub async fn run(args: TracesExplainArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let (bot, message, of_trace) = place(&client, &args.id).await?;
    let channel = match &args.channel {
        Some(channel) => Some(client.channel(bot, channel).await?),
        None => of_trace,
    };
    let query = [("channel_id", channel.map(|id| id.to_string()))];
    let path = format!("/api/bots/{bot}/messages/{message}/explain");
    let found = client.call("GET", &path, &query, &Value::Null).await?;
    let text = text(&found, |text, tone| cx.printer.paint(text, tone));
    cx.printer.one(found, &text)
}

/// The bot and the message of an id, and the channel if it is that of a trace.
async fn place(client: &Client, id: &str) -> Result<(BotId, MessageId, Option<ChannelId>), Failure> {
    if let Ok(trace) = id.parse::<TraceId>() {
        let trace = client.trace(None, trace).await?;
        return Ok((trace.bot_id, trace.message_id, trace.channel_id));
    }
    let message: MessageId = id
        .parse()
        .map_err(|_| Failure::usage(format!("{id} is no id of a trace (tr_…) or of a message (msg_…)")))?;
    let filters = [("q", Some(id.to_owned()))];
    let page = client.list("/api/messages", &filters, &PageArgs { limit: 1, cursor: None }).await?;
    let bot = page["items"][0]["bot_id"].as_str().and_then(|id| id.parse().ok());
    let bot = bot.ok_or_else(|| Failure::not_found(format!("there is no message {id}")))?;
    Ok((bot, message, None))
}

/// The verdict, the checks and the remedies, rendered from their values. Those of a newer server, which may have
/// values that this program does not know, are shown as its sentences.
fn text(found: &Value, paint: impl Fn(&str, Tone) -> String) -> String {
    let lines = match Explanation::deserialize(found) {
        Ok(explanation) => rendered(&explanation, &paint),
        Err(_) => sentences(found, &paint),
    };
    lines.join("\n")
}

fn rendered(found: &Explanation, paint: &impl Fn(&str, Tone) -> String) -> Vec<String> {
    let checks = found.checks.iter();
    let checks = checks.map(|one| check(one.ok, one.name.as_str(), &one.finding.to_string(), paint));
    let remedies = found.remedies.iter().map(|remedy| screen::clean(&with_command(remedy)));
    [screen::clean(&found.sentence())].into_iter().chain(checks).chain(remedies).collect()
}

fn sentences(found: &Value, paint: &impl Fn(&str, Tone) -> String) -> Vec<String> {
    let checks = found["checks"].as_array().into_iter().flatten();
    let checks = checks.map(|one| check(one["ok"] == true, &cell(one, "name"), &cell(one, "why"), paint));
    let remedy = found["remedy"].as_str().map(screen::clean);
    [screen::clean(&cell(found, "sentence"))].into_iter().chain(checks).chain(remedy).collect()
}

fn check(ok: bool, name: &str, why: &str, paint: &impl Fn(&str, Tone) -> String) -> String {
    let (sign, tone) = if ok { ("ok  ", Tone::Good) } else { ("no  ", Tone::Bad) };
    format!("  {}{:<9} {}", paint(sign, tone), screen::clean(name), screen::clean(why))
}

/// A remedy as a sentence, with the command that applies it.
fn with_command(remedy: &Remedy) -> String {
    command(remedy).map_or_else(|| format!("{remedy}."), |command| format!("{remedy}: hub-cli {command}"))
}

/// The command that does it, without the name of the program; `None` if none does.
fn command(remedy: &Remedy) -> Option<String> {
    let channel = |verb: &str, of: &OfChannel, options: &str| {
        format!("channels {verb} {} --bot {}{options}", of.channel_id, of.bot_id)
    };
    let plugin = |verb: &str, of: &OfPlugin| {
        let OfPlugin { place: OfChannel { bot_id, channel_id }, plugin } = of;
        format!("channels plugins {verb} {plugin} --bot {bot_id} --channel {channel_id}")
    };
    Some(match remedy {
        Remedy::Attempt(of) => format!("traces attempt {}", of.trace_id),
        Remedy::Replay(of) => format!("replay {}", of.trace_id),
        Remedy::OpenTrace(of) => format!("traces show {}", of.trace_id),
        Remedy::DebugPlugin(of) => format!("debug request --trace {}", of.trace_id),
        Remedy::CreateChannel(of) => format!("channels create orders --bot {}", of.bot_id),
        Remedy::EnableChannel(of) => channel("edit", of, " --enabled true"),
        Remedy::RemoveHandle(of) => channel("edit", of, " --no-handle"),
        Remedy::SetFilter(of) => channel("set-filter", of, " --keywords WORDS"),
        Remedy::SetExpression(of) => channel("set-filter", of, " --expression EXPRESSION"),
        Remedy::SetWebhook(of) => {
            let options = match of.field {
                WebhookField::Url => " --url URL",
                WebhookField::Auth => " --method METHOD --secret-file FILE",
                WebhookField::TimeoutMs => " --timeout-ms N",
                WebhookField::AutoReply => " --auto-reply true",
                // Only a file of all settings has these.
                WebhookField::RateLimitPerS | WebhookField::MaxConcurrency => " --file FILE",
            };
            channel("set-webhook", &of.place, options)
        }
        Remedy::EnableSink(of) => {
            let verb = match of.sink {
                SinkId::Webhook => "set-webhook",
                SinkId::Ai => "set-ai",
            };
            channel(verb, &of.place, " --on")
        }
        Remedy::SetModel(of) => format!("ai-config set, or hub-cli {}", channel("set-ai", of, "")),
        Remedy::TestModel(of) => format!("{}, or hub-cli ai-config test", channel("test-ai", of, "")),
        Remedy::EnablePlugin(of) => plugin("enable", of),
        Remedy::DisablePlugin(of) => plugin("disable", of),
        Remedy::OpenApps(of) => format!("apps list --bot {}", of.bot_id),
        Remedy::OpenBot(of) => format!("bots status {}", of.bot_id),
        Remedy::BindBot(_) => "bots bind".to_owned(),
        Remedy::Send(of) => format!("send --bot {}", of.bot_id),
        Remedy::Wait
        | Remedy::MentionHandle
        | Remedy::ConnectClient(_)
        | Remedy::CheckPhone
        | Remedy::Write
        | Remedy::WriteText
        | Remedy::CorrectReceiver
        | Remedy::StartReceiver
        | Remedy::RenewCertificate
        | Remedy::StartNode
        | Remedy::UpdateHub
        | Remedy::ChangeSetting(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plain(text: &str, _: Tone) -> String {
        text.to_owned()
    }

    #[test]
    fn an_explanation_is_rendered_from_its_values_with_the_command_of_each_remedy() {
        let (bot_id, channel_id, trace_id) = (BotId::MAX, ChannelId::MAX, TraceId::MAX);
        let found = json!({
            "message_id": MessageId::MAX, "channel_name": "orders", "verdict": "filtered", "attempts": 0,
            "cause": { "code": "filter", "reason": "keyword" },
            "sentence": "Not read.", "remedy": "Not read.",
            "checks": [
                { "name": "channel", "ok": true, "why": "not read", "finding": { "code": "channel", "enabled": true } },
                { "name": "filter", "ok": false, "why": "not read", "finding": { "code": "filter", "reason": "keyword" } },
            ],
            "remedies": [
                { "action": "set_filter", "bot_id": bot_id, "channel_id": channel_id },
                { "action": "replay", "bot_id": bot_id, "trace_id": trace_id },
                { "action": "disable_plugin", "bot_id": bot_id, "channel_id": channel_id, "plugin": "tagger" },
                { "action": "wait" },
            ],
        });
        let expected = format!(
            "The filter of the channel orders did not match: keyword.\n  ok  channel   the channel is on\n  \
             no  filter    keyword\n\
             Change the filter: hub-cli channels set-filter {channel_id} --bot {bot_id} --keywords WORDS\n\
             Then replay the message: hub-cli replay {trace_id}\n\
             Change the plugin tagger, or disable it: hub-cli channels plugins disable tagger --bot {bot_id} \
             --channel {channel_id}\nWait."
        );
        assert_eq!(text(&found, plain), expected);
    }

    #[test]
    fn values_of_a_newer_server_are_shown_as_its_sentences() {
        let found = json!({
            "sentence": "It is late.", "remedy": "Dance.", "remedies": [{ "action": "dance" }],
            "checks": [{ "name": "moon", "ok": false, "why": "new", "finding": { "code": "moon" } }],
        });
        assert_eq!(text(&found, plain), "It is late.\n  no  moon      new\nDance.");
    }
}
