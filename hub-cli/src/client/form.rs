//! A form with a file: `multipart/form-data`.

use bytes::Bytes;
use futures_util::TryStreamExt;
use reqwest::multipart::{Form as Multipart, Part};
use serde_json::Value;

use crate::exit::Failure;

/// The body of a request with a file.
#[derive(Debug)]
pub struct Form {
    pub content_type: String,
    pub bytes: Bytes,
}

impl Form {
    /// The text fields of a JSON object, and a file with its name.
    pub async fn new(texts: &Value, name: String, file: Vec<u8>) -> Result<Self, Failure> {
        let texts = texts.as_object().into_iter().flatten();
        let texts = texts.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
        let form = texts.fold(Multipart::new(), |form, (name, text)| form.text(name, text));
        let form = form.part("file", Part::bytes(file).file_name(name));
        let content_type = format!("multipart/form-data; boundary={}", form.boundary());
        let pieces: Result<Vec<Bytes>, _> = form.into_stream().try_collect().await;
        let pieces = pieces.map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Self { content_type, bytes: pieces.concat().into() })
    }
}
