//! `traces explain`: why a message did or did not arrive.

use hub_core::id::{BotId, ChannelId, MessageId, TraceId};
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

/// The sentence, the checks and the remedy.
fn text(found: &Value, paint: impl Fn(&str, Tone) -> String) -> String {
    let shown = |value: &Value, field: &str| screen::clean(&cell(value, field));
    let checks = found["checks"].as_array().into_iter().flatten().map(|check| {
        let (sign, tone) = if check["ok"] == true { ("ok  ", Tone::Good) } else { ("no  ", Tone::Bad) };
        format!("  {}{:<9} {}", paint(sign, tone), shown(check, "name"), shown(check, "why"))
    });
    let mut lines = vec![shown(found, "sentence")];
    lines.extend(checks);
    lines.extend(found["remedy"].as_str().map(screen::clean));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_explanation_shows_the_sentence_the_checks_and_the_remedy() {
        let found = json!({
            "sentence": "The filter did not match.", "remedy": "Change the filter.",
            "checks": [{ "name": "bot", "ok": true, "why": "online" }, { "name": "filter", "ok": false, "why": "keywords" }],
        });
        let plain = |text: &str, _: Tone| text.to_owned();
        assert_eq!(
            text(&found, plain),
            "The filter did not match.\n  ok  bot       online\n  no  filter    keywords\nChange the filter."
        );
    }
}
