//! `signature sign` and `signature verify`: the signatures of the webhook sink and of apps' events.

use std::{io::Read, time::Duration};

use hub_core::{
    delivery::signing::{
        self, Finding, Method, Received, Signing, X_HUB_ATTEMPT, X_SIGNATURE, X_TIMESTAMP, app_signature,
    },
    time::{Clock, Timestamp},
};
use serde_json::{Map, Value, json};

use super::{read_file, secret};
use crate::{
    args::{SignArgs, SignatureCommand, VerifyArgs},
    exit::{Exit, Failure},
    printer::{Printer, Tone},
    screen,
};

/// Maximum size of a body, in bytes.
const MAX_BODY: u64 = 16 << 20;

pub fn run(command: SignatureCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        SignatureCommand::Sign(args) => sign(&args, printer).map(|()| Exit::Done),
        SignatureCommand::Verify(args) => verify(&args, printer),
    }
}

fn sign(args: &SignArgs, printer: &Printer) -> Result<(), Failure> {
    only_one_reads_stdin(&[args.secret.secret_file.as_deref(), Some(&args.body)])?;
    let secret = secret::required(&args.secret, printer)?;
    let body = read_bytes(&args.body)?;
    let at = moment(args.timestamp);
    let pairs: Vec<(String, String)> = if args.app {
        let timestamp = at.as_seconds().to_string();
        let signature = app_signature(&secret, &timestamp, &body);
        vec![(spelled(X_TIMESTAMP.as_str()), timestamp), (spelled(X_SIGNATURE.as_str()), signature)]
    } else {
        let signing = Signing {
            method: &Method::Hmac,
            secret: Some(&(&secret).into()),
            previous: None,
            id: &args.id,
            at,
            attempt: 1,
            body: &body,
        };
        let headers = signing::headers(&signing)?;
        let signatures = headers.iter().filter(|(name, _)| *name != X_HUB_ATTEMPT);
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        signatures.map(|(name, value)| (spelled(name.as_str()), text(value))).collect()
    };
    let lines: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let document: Map<String, Value> = pairs.into_iter().map(|(name, value)| (name, value.into())).collect();
    printer.one(Value::Object(document), &lines.join("\n"))
}

fn verify(args: &VerifyArgs, printer: &Printer) -> Result<Exit, Failure> {
    only_one_reads_stdin(&[args.secret.secret_file.as_deref(), Some(&args.body), args.headers.as_deref()])?;
    let secret = secret::required(&args.secret, printer)?;
    let mut headers = Vec::new();
    for line in &args.header {
        headers.push(header(line).ok_or_else(|| Failure::usage("--header: write it as NAME: VALUE"))?);
    }
    if let Some(file) = &args.headers {
        headers.extend(read_file(file)?.lines().filter_map(header));
    }
    if headers.is_empty() {
        return Err(Failure::usage("there are no headers to check")
            .with_hint("--header \"X-Signature: …\", or --headers FILE"));
    }
    let body = read_bytes(&args.body)?;
    let received = Received {
        headers: &headers,
        body: &body,
        secret: &secret,
        now: moment(args.at),
        tolerance: Duration::from_secs(args.tolerance),
    };
    let findings = received.check();
    let verified = findings.iter().all(|finding| finding.problem.is_none());
    let line = |finding: &Finding| {
        let (mark, tone) = if finding.problem.is_none() { ("ok", Tone::Good) } else { ("wrong", Tone::Bad) };
        format!("{}\t{}\t{}", printer.paint(mark, tone), finding.header, screen::clean(&finding.message))
    };
    let lines: Vec<String> = findings.iter().map(line).collect();
    printer.one(json!({ "verified": verified, "findings": findings }), &lines.join("\n"))?;
    Ok(if verified { Exit::Done } else { Exit::CheckFailed })
}

/// The header in a line; `None` for other lines, such as the request line.
fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// Spelled as in the documentation.
fn spelled(name: &str) -> String {
    match name {
        "x-signature" => "X-Signature".to_owned(),
        "x-timestamp" => "X-Timestamp".to_owned(),
        other => other.to_owned(),
    }
}

fn moment(seconds: Option<i64>) -> Timestamp {
    seconds.map_or_else(
        || Clock::system().now(),
        |seconds| Timestamp::from_millis(seconds.saturating_mul(1_000)),
    )
}

fn only_one_reads_stdin(files: &[Option<&str>]) -> Result<(), Failure> {
    if files.iter().filter(|file| **file == Some("-")).count() > 1 {
        return Err(Failure::usage("only one of the files can be stdin"));
    }
    Ok(())
}

/// The exact bytes of a file.
fn read_bytes(path: &str) -> Result<Vec<u8>, Failure> {
    let source: Box<dyn Read> = if path == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(|error| Failure::file(path, error))?)
    };
    let mut bytes = Vec::new();
    source.take(MAX_BODY + 1).read_to_end(&mut bytes).map_err(|error| Failure::file(path, error))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_BODY) {
        return Err(Failure::file(path, "is over 16 MiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lines_are_found_among_other_lines() {
        assert_eq!(header("X-Signature: sha256=a:b"), Some(("X-Signature".into(), "sha256=a:b".into())));
        assert_eq!(header("HTTP_X_SIGNATURE : v\r"), Some(("HTTP_X_SIGNATURE".into(), "v".into())));
        for line in ["POST /hook HTTP/1.1", "", ": x", "{\"a\": 1}", "GET http://a/ HTTP/1.1"] {
            assert_eq!(header(line), None, "{line}");
        }
    }
}
