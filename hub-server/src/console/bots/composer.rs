//! The form that sends a message, on the pages of a bot and of a contact.

use hub_core::{
    Error,
    bots::{Attachment, NewSend},
};
use maud::{Markup, html};

use crate::{
    api::bots::SendMessage,
    console::{
        page::{Answer, Ask},
        parts::{
            cause::cause,
            form::{Field, Form},
        },
    },
    envelope::ApiError,
};

/// Recipient of the message.
pub(super) enum Recipient<'a> {
    /// The owner of the account; `reason` explains why `can_send` is false.
    Owner { can_send: bool, reason: Option<&'a str> },
    /// Id of a contact. The network accepts or rejects a message only on sending.
    Contact(&'a str),
}

/// Renders the form. If nothing can be sent, it shows the reason and its button is disabled.
pub(super) fn render(ask: &Ask, to: &Recipient<'_>) -> Markup {
    let words = &ask.words.people;
    let form = Form::new(ask, "send");
    let content =
        Field { name: "content", label: words.content, help: Some(words.content_help), ..Field::default() };
    let max = ask.hub.context().config.media.max_outbound;
    let file_help = (words.file_help)(max >> 20);
    let file = Field {
        name: "file",
        label: words.file,
        help: Some(&file_help),
        kind: "file",
        max: u32::try_from(max).ok(),
        ..Field::default()
    };
    let media = Field {
        name: "media.url",
        label: words.media_url,
        help: Some(words.media_help),
        kind: "url",
        ..Field::default()
    };
    let formats = [("plain", words.plain), ("markdown", words.markdown)];
    html! {
        section aria-labelledby="composer" {
            h2 #composer { (words.write) }
            form.fields method="post" enctype="multipart/form-data" data-enhance {
                @match to {
                    Recipient::Owner { can_send, reason } => {
                        p.muted { (words.to_owner) }
                        @if !can_send {
                            p.warn {
                                (words.disabled) " "
                                @if let Some(reason) = reason { (cause(ask.words, reason)) }
                            }
                            p.muted { (words.disabled_help) }
                        }
                    }
                    Recipient::Contact(user) => { input type="hidden" name="to_user_id" value=(user); }
                }
                (form.once(ask))
                (form.area(&content, 3))
                (form.field(&file))
                // Problems of the fields in it are visible.
                details open[form.is_refused()] {
                    summary { (words.format) " · " (words.media_url) }
                    (form.select("format", words.format, "plain", &formats))
                    (form.field(&media))
                }
                @let is_disabled = matches!(to, Recipient::Owner { can_send: false, .. });
                p.actions { button name="do" value="send" disabled[is_disabled] { (words.send) } }
            }
        }
    }
}

/// Sends the text and the chosen file.
pub(super) async fn send(ask: &Ask) -> Result<Answer, ApiError> {
    let mut message = NewSend::try_from(ask.form::<SendMessage>()?)?;
    let file = ask.submitted.as_ref().and_then(|form| form.file.as_ref());
    if let Some((file, _room)) = file {
        if message.media.is_some() {
            return Err(Error::invalid("file", "choose a file or enter a URL, not both").into());
        }
        if matches!(file, Attachment::Bytes { bytes, .. } if bytes.is_empty()) {
            return Err(Error::invalid("file", "is empty").into());
        }
        message.media = Some(file.clone());
    }
    message.stop = ask.client_gone.token();
    ask.hub.bots().send(&ask.actor, ask.id("bot")?, message, ask.idempotency_key()).await?;
    Ok(ask.done())
}
