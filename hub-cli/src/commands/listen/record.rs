//! `listen --record`: requests and responses, in the format of `traces export`.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
    path::Path,
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use hub_core::{
    delivery::redact::Redactor,
    egress::Receipt,
    id::{BotId, ChannelId, Ids},
    private_files,
    random::Random,
    replay::Recording,
    secret::Secret,
    time::{Clock, Timestamp},
    traces::{Step, StepDetail, StepError, StepKind, StepName, Trace, TraceStatus},
};
use url::Url;

use crate::{commands::recordings::line, exit::Failure};

/// A posted message and its response.
pub struct Exchange<'e> {
    pub channel: (ChannelId, BotId),
    /// The id of the message.
    pub message_id: &'e str,
    pub url: &'e Url,
    pub headers: &'e HeaderMap,
    pub body: &'e Bytes,
    pub started: Timestamp,
    pub ended: Timestamp,
    pub answer: Result<&'e Receipt, &'e str>,
}

/// Appends requests and responses to a file of recordings.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    shown: String,
    ids: Ids,
    redactor: Redactor,
}

impl Recorder {
    /// Opens or creates a file that only its owner can read. The secrets are masked in it.
    ///
    /// # Errors
    /// A failure if the file cannot be written, or its last line is incomplete.
    pub fn open(path: &Path, secrets: &[Secret]) -> Result<Self, Failure> {
        let shown = path.display().to_string();
        let open = || {
            private_files::open(path)?;
            let mut file = File::options().read(true).append(true).open(path)?;
            let mut last = [b'\n'];
            if file.metadata()?.len() > 0 {
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
            }
            Ok((file, last == [b'\n']))
        };
        let (file, is_whole) = open().map_err(|error: std::io::Error| Failure::file(&shown, error))?;
        if !is_whole {
            return Err(Failure::file(&shown, "its last line is incomplete")
                .with_hint("it was cut off, or is not a file of recordings; name another one"));
        }
        let ids = Ids::new(Clock::system(), Random::system());
        Ok(Self { file, shown, ids, redactor: Redactor::new(secrets, None) })
    }

    /// Appends one.
    pub fn append(&mut self, exchange: &Exchange<'_>) -> Result<(), Failure> {
        let recording = self.recording(exchange)?;
        let text = format!("{}\n", line(&recording));
        self.file.write_all(text.as_bytes()).map_err(|error| Failure::file(&self.shown, error))
    }

    fn recording(&self, exchange: &Exchange<'_>) -> Result<Recording, Failure> {
        let &Exchange { url, headers, body, started, ended, .. } = exchange;
        let status = exchange.answer.map(|answer| answer.status);
        let well = if status.is_ok_and(|status: StatusCode| status.is_success()) {
            TraceStatus::Ok
        } else {
            TraceStatus::Error
        };
        let mut request = StepDetail {
            method: Some("POST".to_owned()),
            url: Some(self.redactor.url(url)),
            headers: Some(self.redactor.headers(headers)),
            body: Some(self.redactor.body(body)),
            ..StepDetail::default()
        };
        let mut steps = Vec::new();
        let step = |name, started, detail| {
            Step::new(name, StepKind::Webhook, well, started, ended, detail).of_attempt(1)
        };
        match exchange.answer {
            Ok(answer) => {
                steps.push(step(StepName::Request, started, request));
                let detail = StepDetail {
                    status: Some(answer.status.as_u16()),
                    headers: Some(self.redactor.headers(&answer.headers)),
                    body: Some(self.redactor.body(&answer.body)),
                    ..StepDetail::default()
                };
                steps.push(step(StepName::Response, ended, detail));
            }
            Err(reason) => {
                request.error = Some(StepError::new(reason));
                steps.push(step(StepName::Request, started, request));
            }
        }
        let (channel_id, bot_id) = exchange.channel;
        let no_hub = || Failure::unreachable("the hub sent a message without an id");
        let message_id = exchange.message_id.parse().map_err(|_| no_hub())?;
        let trace = Trace {
            channel_id: Some(channel_id),
            status: well,
            summary: status
                .map_or_else(|_| "no response".to_owned(), |status| format!("status {}", status.as_u16())),
            duration_ms: u64::try_from(ended.since(started).as_millis()).unwrap_or(u64::MAX),
            attempts: 1,
            ..Trace::new(self.ids.next(), message_id, bot_id, started, steps)
        };
        Ok(Recording::new(trace, None))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn exchange<'e>(url: &'e Url, headers: &'e HeaderMap, body: &'e Bytes) -> Exchange<'e> {
        let ids = Ids::new(Clock::system(), Random::seeded(1));
        let at = Timestamp::from_millis(1_790_000_000_000);
        Exchange {
            channel: (ids.next(), ids.next()),
            message_id: "msg_01KAJ6Z8QH0000000000000000",
            url,
            headers,
            body,
            started: at,
            ended: at + std::time::Duration::from_millis(7),
            answer: Err("connection refused"),
        }
    }

    #[test]
    fn lines_are_appended_and_read_as_recordings_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orders.jsonl");
        let url = Url::parse("http://localhost:3000/hook?token=abcdef").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "Bearer of-mine".parse().unwrap());
        headers.insert("content-type", "application/json".parse().unwrap());
        let body = Bytes::from(json!({ "type": "message", "content": "the hubc_secret key" }).to_string());
        for _ in 0..2 {
            let mut recorder = Recorder::open(&path, &["hubc_secret".into()]).unwrap();
            recorder.append(&exchange(&url, &headers, &body)).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains("of-mine") && !text.contains("hubc_secret") && !text.contains("abcdef"),
            "{text}"
        );
        assert!(!private_files::is_exposed(&path).unwrap());
        let read: Vec<Recording> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read.len(), 2);
        assert_ne!(read[0].trace.trace_id, read[1].trace.trace_id);
        assert_eq!((read[0].trace.duration_ms, read[0].trace.status), (7, TraceStatus::Error));
        assert_eq!(read[0].response(), None);
        let request = read[0].request().unwrap();
        assert_eq!((request.headers.len(), request.masks("authorization")), (1, true));
        assert_eq!(read[0].message.as_ref().unwrap()["content"], "the *** key");
    }

    #[test]
    fn a_truncated_or_unwritable_recording_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orders.jsonl");
        std::fs::write(&path, "{\"trace_id\":").unwrap();
        assert!(Recorder::open(&path, &[]).unwrap_err().message.contains("incomplete"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"trace_id\":");
        assert!(Recorder::open(folder.path(), &[]).is_err());
        assert!(Recorder::open(&folder.path().join("none/orders.jsonl"), &[]).is_err());
    }
}
