//! What apps send, in both dialects.

use hub_core::{
    Error, Result,
    apps::AppTool,
    bots::{Attachment, NewSend},
};
use poem_openapi::{
    Enum, Object,
    types::{Any, Example},
};
use serde_json::Value;

use crate::wire::{FormTexts, Secret, Text};

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum MediaKind {
    /// Text.
    Text,
    /// A picture.
    Image,
    /// A video.
    Video,
    /// A voice note; people see it as a file.
    Voice,
    /// A file.
    File,
}

/// A message to send.
#[derive(Debug, Default, Object)]
#[oai(skip_serializing_if_is_none, example)]
pub struct BotSend {
    /// Receiver; the person who owns the network account when left out or empty.
    pub to_user_id: Option<Text<0, 1024>>,
    /// The same, in the older dialect.
    pub to: Option<Text<0, 1024>>,
    /// What it is; `text` when left out. A file says by itself what it is.
    #[oai(rename = "type")]
    pub kind: Option<MediaKind>,
    /// The text, at most 64 KiB; with a file its caption.
    pub content: Option<Text<0, 1_048_576>>,
    /// A file that the hub fetches from a public address: at most 50 MiB within 30 seconds, without redirects.
    pub url: Option<Text<0, 8192>>,
    /// A file as base64, with or without `data:…;base64,` in front.
    pub base64: Option<Text<0, 73_400_320>>,
    /// Name of the file.
    pub filename: Option<Text<0, 1024>>,
    /// Permission to answer, as a message brought it. It is used if it came with one of the receiver's recent
    /// messages; otherwise, and when it is left out, the receiver's newest one is used.
    pub context_token: Option<Secret<16_384>>,
    /// The trace that the message belongs to.
    pub trace_id: Option<Text<0, 256>>,
}

impl Example for BotSend {
    fn example() -> Self {
        Self { content: Some(Text("Your order is on its way.".to_owned())), ..Self::default() }
    }
}

impl FormTexts for BotSend {
    const TEXTS: &'static [&'static str] =
        &["to_user_id", "to", "type", "content", "url", "base64", "filename", "context_token", "trace_id"];
}

impl BotSend {
    /// The message; `trace` is the header that names its trace, `file` what a form brought.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for a file that is none, or two.
    pub(crate) fn into_send(self, trace: Option<&str>, file: Option<Attachment>) -> Result<NewSend> {
        let text = |text: Option<Text<0, 1024>>| text.map(String::from).filter(|text| !text.is_empty());
        let trace_id = trace.or(self.trace_id.as_deref()).and_then(|id| id.parse().ok());
        let file_name = self.filename.map(String::from).unwrap_or_default();
        let mut content = self.content.map(String::from).unwrap_or_default();
        let is_file = self.kind.is_some_and(|kind| kind != MediaKind::Text);
        // A form sends the fields that nobody filled in, too.
        let url = self.url.map(String::from).filter(|url| !url.is_empty());
        let base64 = self.base64.map(String::from).filter(|text| !text.is_empty());
        let media = match (url, base64) {
            (None, None) if file.is_some() => file.map(|file| named(file, file_name)),
            _ if file.is_some() => return Err(Error::invalid("file", "must not stand beside url or base64")),
            (None, None) if !is_file => None,
            // The older dialect may say where a file is in its content.
            (None, None) if content.starts_with("http://") || content.starts_with("https://") => {
                Some(Attachment::Url(std::mem::take(&mut content)))
            }
            (None, None) if content.starts_with("data:") => {
                Some(Attachment::from_base64("content", &std::mem::take(&mut content), file_name)?)
            }
            (None, None) => return Err(Error::invalid("url", "url or base64 must say what the file is")),
            (Some(url), None) => Some(Attachment::Url(url)),
            (None, Some(base64)) => Some(Attachment::from_base64("base64", &base64, file_name)?),
            (Some(_), Some(_)) => return Err(Error::invalid("url", "must not stand beside base64")),
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

/// The file under the name that was said beside it, if one was.
fn named(file: Attachment, name: String) -> Attachment {
    match file {
        Attachment::Bytes { content_type, bytes, .. } if !name.is_empty() => {
            Attachment::Bytes { file_name: name, content_type, bytes }
        }
        file => file,
    }
}

/// A tool of the app, as the app says it.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct BotTool {
    /// Its name for models: 1 to 64 of letters, digits, `_` and `-`; unique in the list.
    pub name: Text<0, 1024>,
    /// What it does, at most 1 KiB.
    pub description: Option<Text<0, 65_536>>,
    /// The command by which people call it, with or without the slash; left out, the tool is for models alone.
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
#[derive(Debug, Object)]
#[oai(example)]
pub struct SetTools {
    /// All of them; at most 50.
    pub tools: Vec<BotTool>,
}

impl Example for SetTools {
    fn example() -> Self {
        Self { tools: Vec::new() }
    }
}

impl From<SetTools> for Vec<AppTool> {
    fn from(body: SetTools) -> Self {
        body.tools.into_iter().map(Into::into).collect()
    }
}
