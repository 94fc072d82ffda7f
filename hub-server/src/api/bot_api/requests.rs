//! Requests of apps, in both dialects.

use hub_core::{
    Error, Result,
    apps::AppTool,
    bots::{Attachment, NewSend},
    openapi::Api,
};
use poem_openapi::{Enum, types::Any};
use serde_json::Value;

use crate::wire::{FormTexts, MAX_TEXT, Secret, Text};

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum MediaKind {
    /// Text.
    Text,
    /// Image.
    Image,
    /// A video.
    Video,
    /// Voice; people see it as a file.
    Voice,
    /// A file.
    File,
}

/// A message to send.
#[derive(Debug, Default, Api)]
#[api(read, lenient, example = {
    "content": "Your order is on its way."
})]
pub struct BotSend {
    /// Recipient; the owner of the network account if absent or empty.
    pub to_user_id: Option<Text<0, 1024>>,
    /// Alias of `to_user_id`, in the older dialect.
    pub to: Option<Text<0, 1024>>,
    /// Kind; `text` if absent. For a file, its content decides.
    #[api(name = "type")]
    pub kind: Option<MediaKind>,
    /// The text; the caption of a file. The hub accepts as many bytes of UTF-8 as its setting `max_text` says, 64 KiB
    /// by default; `maxLength` is the upper bound of that setting.
    pub content: Option<Text<0, MAX_TEXT>>,
    /// Public URL from which the hub downloads the file: at most 50 MiB within 30 seconds, after up to five redirects.
    pub url: Option<Text<0, 8192>>,
    /// A file as base64, optionally after `data:…;base64,`.
    pub base64: Option<Text<0, 73_400_320>>,
    /// File name.
    pub filename: Option<Text<0, 1024>>,
    /// Context token of a received message. It is used if it belongs to a recent message of the recipient; otherwise,
    /// or if absent, the newest one of the recipient is used.
    pub context_token: Option<Secret<16_384>>,
    /// Id of the trace that the message belongs to.
    pub trace_id: Option<Text<0, 256>>,
}

impl FormTexts for BotSend {
    const TEXTS: &'static [&'static str] =
        &["to_user_id", "to", "type", "content", "url", "base64", "filename", "context_token", "trace_id"];
}

impl BotSend {
    /// The message; `trace` is the header with its trace, `file` the file of a form.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for an invalid file, or two files.
    pub(crate) fn into_send(self, trace: Option<&str>, file: Option<Attachment>) -> Result<NewSend> {
        let text = |text: Option<Text<0, 1024>>| text.map(String::from).filter(|text| !text.is_empty());
        let trace_id = trace.or(self.trace_id.as_deref()).and_then(|id| id.parse().ok());
        let file_name = self.filename.map(String::from).unwrap_or_default();
        let mut content = self.content.map(String::from).unwrap_or_default();
        let is_file = self.kind.is_some_and(|kind| kind != MediaKind::Text);
        // A form also sends its empty fields.
        let url = self.url.map(String::from).filter(|url| !url.is_empty());
        let base64 = self.base64.map(String::from).filter(|text| !text.is_empty());
        let media = match (url, base64) {
            (None, None) if file.is_some() => file.map(|file| named(file, file_name)),
            _ if file.is_some() => return Err(Error::invalid("file", "must be absent with url or base64")),
            (None, None) if !is_file => None,
            // The older dialect may have the URL of the file in its content.
            (None, None) if content.starts_with("http://") || content.starts_with("https://") => {
                Some(Attachment::Url(std::mem::take(&mut content)))
            }
            (None, None) if content.starts_with("data:") => {
                Some(Attachment::from_base64("content", &std::mem::take(&mut content), file_name)?)
            }
            (None, None) => return Err(Error::invalid("url", "url or base64 is required for a file")),
            (Some(url), None) => Some(Attachment::Url(url)),
            (None, Some(base64)) => Some(Attachment::from_base64("base64", &base64, file_name)?),
            (Some(_), Some(_)) => return Err(Error::invalid("url", "must be absent with base64")),
        };
        Ok(NewSend {
            to_user_id: text(self.to_user_id).or(text(self.to)),
            content,
            media,
            context_token: self.context_token.map(|token| token.0),
            trace_id,
            ..NewSend::default()
        })
    }
}

/// The file with the given name, if any.
fn named(file: Attachment, name: String) -> Attachment {
    match file {
        Attachment::Bytes { content_type, bytes, .. } if !name.is_empty() => {
            Attachment::Bytes { file_name: name, content_type, bytes }
        }
        file => file,
    }
}

/// A tool of an app, in a request of the app.
#[derive(Debug, Api)]
#[api(input, lenient)]
pub struct BotTool {
    /// Name for models: 1 to 64 letters, digits, `_` and `-`; unique in the list.
    pub name: Text<0, 1024>,
    /// Description, at most 1 KiB.
    pub description: Option<Text<0, 65_536>>,
    /// Command with which people call it, with or without the slash; if absent, the tool is for models only.
    pub command: Option<Text<0, 1024>>,
    /// JSON Schema of its arguments: the schema of an object, at most 16 KiB.
    pub parameters: Option<Any<Value>>,
}

impl From<BotTool> for AppTool {
    fn from(tool: BotTool) -> Self {
        Self {
            name: tool.name.into(),
            description: tool.description.map(String::from).unwrap_or_default(),
            command: tool.command.map(String::from).filter(|command| !command.is_empty()),
            parameters: tool.parameters.map(|schema| schema.0),
        }
    }
}

/// The tools of an app.
#[derive(Debug, Api)]
#[api(input, lenient, example = {
    "tools": []
})]
pub struct SetTools {
    /// All of them; at most 50.
    pub tools: Vec<BotTool>,
}

impl From<SetTools> for Vec<AppTool> {
    fn from(body: SetTools) -> Self {
        body.tools.into_iter().map(Into::into).collect()
    }
}
