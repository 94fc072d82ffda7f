//! Messages of a prompt: the system prompt, the conversation, and the message to answer.

use crate::{
    ai::{Content, Message, Part, Role},
    delivery::job::Job,
    model::message::Direction,
    network::{MessageKind, Quote},
    store::ai::SaidRow,
};

/// Most of the conversation that the model is shown, in estimated tokens; older messages are left out.
const MAX_TOKENS: usize = 8_000;
/// Most of the message to answer that the model is shown, in bytes.
const MAX_MESSAGE: usize = 64 * 1024;

/// The messages of a prompt. `said` is newest first; `images` belong to the message to answer.
pub(super) fn messages(system_prompt: &str, job: &Job, said: &[SaidRow], images: Vec<Part>) -> Vec<Message> {
    let mut messages = Vec::new();
    let is_group = !job.content.group_id.is_empty();
    let mut left = MAX_TOKENS;
    for row in said {
        let (role, text) = spoken(row, is_group);
        let Some(rest) = left.checked_sub(tokens(&text)) else { break };
        left = rest;
        messages.push((role, text));
    }
    messages.reverse();
    messages.push((Role::User, question(job, is_group)));
    let mut prompt: Vec<Message> = Vec::with_capacity(messages.len() + 1);
    if !system_prompt.trim().is_empty() {
        prompt.push(Message::text(Role::System, system_prompt));
    }
    prompt.extend(merged(messages).into_iter().map(|(role, text)| Message::text(role, text)));
    if let Some(last) = prompt.last_mut().filter(|_| !images.is_empty()) {
        illustrate(last, images);
    }
    prompt
}

fn illustrate(message: &mut Message, images: Vec<Part>) {
    if let Some(Content::Text(text)) = message.content.take() {
        *message = Message::parts(std::iter::once(Part::Text { text }).chain(images).collect());
    }
}

fn spoken(row: &SaidRow, is_group: bool) -> (Role, String) {
    let text = shown(&row.content, MessageKind::from_word(&row.kind));
    match row.direction {
        Direction::Outbound => (Role::Assistant, text.to_owned()),
        Direction::Inbound => (Role::User, with_name(text, &row.user_name, is_group)),
    }
}

/// The message to answer, with what it quotes.
fn question(job: &Job, is_group: bool) -> String {
    let content = &job.content;
    let text = shown(job.text(), content.kind);
    let text = with_name(&text[..text.floor_char_boundary(MAX_MESSAGE)], &content.user_name, is_group);
    match content.quote.as_ref().and_then(Quote::meant) {
        Some(quoted) => {
            let quoted = &quoted[..quoted.floor_char_boundary(MAX_MESSAGE)];
            let lines: Vec<String> = quoted.lines().map(|line| format!("> {line}")).collect();
            format!("{}\n\n{text}", lines.join("\n"))
        }
        None => text,
    }
}

/// A text, or a placeholder for a message without one.
fn shown(text: &str, kind: MessageKind) -> &str {
    match kind {
        _ if !text.trim().is_empty() => text,
        MessageKind::Image => "[an image]",
        MessageKind::Voice => "[a voice message]",
        MessageKind::Video => "[a video]",
        MessageKind::File => "[a file]",
        MessageKind::Text | MessageKind::Other => "[a message without text]",
    }
}

/// Adds the sender's name in a group, where the model has to know who speaks.
fn with_name(text: &str, name: &str, is_group: bool) -> String {
    if is_group && !name.is_empty() { format!("{name}: {text}") } else { text.to_owned() }
}

/// Merges consecutive turns of one side: many models insist that the sides alternate.
fn merged(messages: Vec<(Role, String)>) -> Vec<(Role, String)> {
    let mut merged: Vec<(Role, String)> = Vec::with_capacity(messages.len());
    for (role, text) in messages {
        match merged.last_mut() {
            Some((last, before)) if *last == role => {
                before.push('\n');
                before.push_str(&text);
            }
            _ => merged.push((role, text)),
        }
    }
    merged
}

/// Estimates the tokens of a text: four ASCII characters make one, and so does any other character.
fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().filter(|c| !c.is_ascii()).count();
    ascii / 4 + others + 4
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{ai::ImageUrl, id::Id, model::sinks::SinkId, payload::Content as Said, time::Timestamp};

    fn job(text: &str, group: &str, kind: MessageKind, quote: Option<&str>) -> Job {
        let quote = quote.map(|text| Quote { text: Some(text.to_owned()), ..Quote::default() });
        let content = Said {
            message_id: Id::from_u128(1),
            from_user_id: "ann".to_owned(),
            user_name: "Ann".to_owned(),
            peer: "ann".to_owned(),
            session_id: "ann".to_owned(),
            group_id: group.to_owned(),
            kind,
            text: text.to_owned(),
            items: "[]".to_owned(),
            has_media: false,
            quote,
            context_token: None,
            sent_at: Timestamp::from_millis(0),
        };
        Job {
            id: Id::from_u128(2),
            trace_id: Id::from_u128(3),
            bot_id: Id::from_u128(4),
            channel_id: Id::from_u128(5),
            sink: SinkId::Ai,
            fence: 1,
            seq: 1,
            is_alone: false,
            attempts: 0,
            first_attempt: None,
            is_followed: false,
            target_url: None,
            channel_text: None,
            content: Arc::new(content),
            media: Vec::new(),
        }
    }

    fn row(direction: &str, text: &str) -> SaidRow {
        SaidRow {
            direction: Direction::parse(direction).unwrap(),
            user_name: "Ann".to_owned(),
            kind: "text".to_owned(),
            content: text.to_owned(),
        }
    }

    fn shown(system: &str, job: &Job, said: &[SaidRow]) -> Vec<(Role, String)> {
        let text = |message: Message| match message.content {
            Some(Content::Text(text)) => (message.role, text),
            other => panic!("{other:?}"),
        };
        messages(system, job, said, Vec::new()).into_iter().map(text).collect()
    }

    fn pairs(expected: &[(Role, &str)]) -> Vec<(Role, String)> {
        expected.iter().map(|(role, text)| (*role, (*text).to_owned())).collect()
    }

    #[test]
    fn the_conversation_is_in_order_and_roles_alternate() {
        let said = [row("outbound", "4"), row("inbound", "3"), row("inbound", "2"), row("outbound", "1")];
        let job = job("5", "", MessageKind::Text, None);
        let expected = [
            (Role::System, "be brief"),
            (Role::Assistant, "1"),
            (Role::User, "2\n3"),
            (Role::Assistant, "4"),
        ];
        let mut expected = pairs(&expected);
        expected.extend(pairs(&[(Role::User, "5")]));
        assert_eq!(shown("be brief", &job, &said), expected);
        assert_eq!(shown(" ", &job, &[]), pairs(&[(Role::User, "5")]));
    }

    #[test]
    fn messages_beyond_the_budget_are_left_out() {
        let long = |text: &str| text.repeat(4 * (MAX_TOKENS / 2));
        let said = [
            row("outbound", &long("a")),
            row("inbound", "q"),
            row("outbound", &long("b")),
            row("inbound", "x"),
        ];
        let seen = shown("", &job("now", "", MessageKind::Text, None), &said);
        assert_eq!(seen.len(), 3);
        assert_eq!((seen[0].1.as_str(), &seen[1].1[..1]), ("q", "a"));
        // Characters of other scripts are tokens of their own.
        assert_eq!(tokens(&"好".repeat(10)), 14);
        assert_eq!(tokens("12345678"), 6);
    }

    #[test]
    fn images_are_next_to_the_text_of_the_last_message() {
        let image = Part::ImageUrl { image_url: ImageUrl { url: "data:image/png;base64,AAAA".to_owned() } };
        let said = [row("inbound", "look:")];
        let mut seen = messages("", &job(" ", "", MessageKind::Image, None), &said, vec![image.clone()]);
        let text = Part::Text { text: "look:\n[an image]".to_owned() };
        assert_eq!(seen.pop().unwrap().content, Some(Content::Parts(vec![text, image])));
        assert!(seen.is_empty());
    }

    #[test]
    fn groups_quotes_and_messages_without_text_are_described_to_the_model() {
        let said = [row("inbound", "before")];
        let in_group = shown("", &job("now", "group", MessageKind::Text, None), &said);
        assert_eq!(in_group, pairs(&[(Role::User, "Ann: before\nAnn: now")]));
        let quoting = shown("", &job("really?", "", MessageKind::Text, Some("one\ntwo")), &[]);
        assert_eq!(quoting, pairs(&[(Role::User, "> one\n> two\n\nreally?")]));
        for (kind, text) in [
            (MessageKind::Image, "[an image]"),
            (MessageKind::Voice, "[a voice message]"),
            (MessageKind::Other, "[a message without text]"),
        ] {
            assert_eq!(shown("", &job(" ", "", kind, None), &[]), pairs(&[(Role::User, text)]));
        }
        assert_eq!(
            shown("", &job("spoken", "", MessageKind::Voice, None), &[]),
            pairs(&[(Role::User, "spoken")])
        );
        let huge = shown("", &job(&"é".repeat(MAX_MESSAGE), "", MessageKind::Text, None), &[]);
        assert_eq!(huge[0].1.len(), MAX_MESSAGE);
    }
}
