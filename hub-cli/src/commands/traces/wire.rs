//! The recorded HTTP requests of a trace, in formats of other tools. Secrets are not recorded.
//!
//! One line quotes for a shell; a crate for it would be longer to declare.

use std::fmt::Write as _;

use hub_core::{
    replay::Recording,
    traces::{Step, StepDetail, StepName, Trace},
};
use serde_json::{Value, json};

use crate::exit::Failure;

/// A request and its response.
struct Exchange<'t> {
    request: &'t Step,
    response: Option<&'t Step>,
}

/// A command for curl.
#[derive(Debug)]
pub struct Curl {
    pub command: String,
    /// Headers whose values are not recorded.
    pub left_out: Vec<String>,
    /// Whether the body is truncated.
    pub is_cut: bool,
}

fn exchanges(trace: &Trace) -> Result<Vec<Exchange<'_>>, Failure> {
    let steps = &trace.steps;
    let requests = steps.iter().enumerate().filter(|(_, step)| step.name == StepName::Request);
    let found: Vec<_> = requests
        .map(|(at, request)| {
            let later = steps[at + 1..].iter().take_while(|step| step.name != StepName::Request);
            Exchange { request, response: later.into_iter().find(|step| step.name == StepName::Response) }
        })
        .collect();
    if found.is_empty() { Err(nothing()) } else { Ok(found) }
}

fn nothing() -> Failure {
    Failure::not_found("no request was sent for this message").with_hint("see hub-cli traces show")
}

/// Each request and its response, as HTTP text.
pub fn raw(trace: &Trace) -> Result<String, Failure> {
    let mut text = String::new();
    for exchange in exchanges(trace)? {
        let sent = &exchange.request.detail;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} {} HTTP/1.1", words(sent.method.as_ref()), words(sent.url.as_ref()));
        message(&mut text, sent);
        let Some(response) = exchange.response else { continue };
        let _ = writeln!(text, "HTTP/1.1 {}", response.detail.status.unwrap_or_default());
        message(&mut text, &response.detail);
    }
    Ok(text)
}

fn message(text: &mut String, detail: &StepDetail) {
    for (name, value) in headers(detail) {
        let _ = writeln!(text, "{name}: {value}");
    }
    let _ = writeln!(text, "\n{}\n", words(detail.body.as_ref()));
}

/// The last request as a command for curl.
pub fn curl(trace: &Trace) -> Result<Curl, Failure> {
    let recording = Recording { trace: trace.clone(), message: None };
    let request = recording.request().ok_or_else(nothing)?;
    let mut command = format!("curl -X {} {}", request.method, quoted(&request.url));
    for (name, value) in &request.headers {
        let header = format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()));
        let _ = write!(command, " \\\n  -H {}", quoted(&header));
    }
    if !request.body.is_empty() {
        let _ = write!(command, " \\\n  --data-raw {}", quoted(&request.body));
    }
    let is_cut = request.is_cut();
    Ok(Curl { command, left_out: request.masked, is_cut })
}

/// A word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Requests and responses as an HTTP archive (HAR 1.2).
pub fn har(trace: &Trace) -> Result<Value, Failure> {
    let entries: Vec<Value> = exchanges(trace)?.iter().map(entry).collect();
    Ok(json!({ "log": {
        "version": "1.2",
        "creator": { "name": "hub-cli", "version": env!("CARGO_PKG_VERSION") },
        "entries": entries,
    }}))
}

fn entry(exchange: &Exchange<'_>) -> Value {
    let (sent, took) = (&exchange.request.detail, exchange.request.duration_ms);
    let url = words(sent.url.as_ref());
    let query: Vec<Value> = url::Url::parse(url).map_or_else(
        |_| Vec::new(),
        |url| url.query_pairs().map(|(name, value)| json!({ "name": name, "value": value })).collect(),
    );
    json!({
        "startedDateTime": exchange.request.started_at,
        "time": took,
        "request": {
            "method": sent.method,
            "url": url,
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": pairs(sent),
            "queryString": query,
            "postData": { "mimeType": content_type(sent), "text": words(sent.body.as_ref()) },
            // Not measured.
            "headersSize": -1,
            "bodySize": words(sent.body.as_ref()).len(),
        },
        "response": answer(exchange.response.map(|step| &step.detail)),
        "cache": {},
        "timings": { "send": 0, "wait": took, "receive": 0 },
    })
}

/// A response; archives use status 0 for a missing one.
fn answer(detail: Option<&StepDetail>) -> Value {
    let none = StepDetail::default();
    let detail = detail.unwrap_or(&none);
    let (status, body) = (detail.status.unwrap_or(0), words(detail.body.as_ref()));
    let reason = http::StatusCode::from_u16(status).ok();
    json!({
        "status": status,
        "statusText": reason.and_then(|code| code.canonical_reason()).unwrap_or_default(),
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": pairs(detail),
        "content": { "size": body.len(), "mimeType": content_type(detail), "text": body },
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": body.len(),
    })
}

fn words(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}

fn headers(detail: &StepDetail) -> impl Iterator<Item = &(String, String)> {
    detail.headers.iter().flatten()
}

fn pairs(detail: &StepDetail) -> Vec<Value> {
    headers(detail).map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

fn content_type(detail: &StepDetail) -> &str {
    let is_type = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
    headers(detail).find(is_type).map_or("", |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_word_is_quoted() {
        assert_eq!(quoted("it's $(here) \"now\""), r#"'it'\''s $(here) "now"'"#);
        assert_eq!(quoted(""), "''");
    }
}
