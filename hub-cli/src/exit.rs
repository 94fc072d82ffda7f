//! Stable exit codes, and failures with their exit code.

use std::{io, path::Path, process::ExitCode};

use hub_core::{
    Error, ErrorCode,
    error::{Advice, Setting},
};
use serde_json::{Map, Value, json};
use url::Url;

use crate::document::cell;

/// The exit codes, as `hub-cli help exit-codes` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    /// Rejected by the hub, or an error.
    Failed = 1,
    Usage = 2,
    Partial = 3,
    /// Not signed in, or not allowed, also by the operating system.
    Denied = 4,
    NotFound = 5,
    /// A conflict, or an invalid input file.
    Conflict = 6,
    Unreachable = 7,
    TimedOut = 8,
    CheckFailed = 9,
    Interrupted = 130,
}

/// The table of `help exit-codes`.
pub const TABLE: &str = concat!(
    "  0  done\n",
    "  1  failed: rejected by the hub, or an error\n",
    "  2  wrong usage, or a deletion was not confirmed\n",
    "  3  partly done (bulk commands: some failed)\n",
    "  4  not signed in, expired or forbidden\n",
    "  5  not found\n",
    "  6  conflict, or an invalid input file\n",
    "  7  unreachable: the server, the simulator or the database\n",
    "  8  timed out waiting\n",
    "  9  a check failed (doctor, db check, config check, --check, --compare, signature verify)\n",
    "130  interrupted\n",
);

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Failure of a command.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    /// Code of the closed list of `hub_core::ErrorCode`.
    pub code: &'static str,
    pub message: String,
    pub causes: Vec<String>,
    pub hint: Option<String>,
    refusal: Box<Refusal>,
    /// The reader of the output closed the pipe, which is not an error.
    pub reader_gone: bool,
}

/// Details of an error of a server.
#[derive(Debug, Default)]
struct Refusal {
    details: Vec<(String, String)>,
    server: Option<String>,
    /// Id of the request in the server's log.
    request_id: Option<String>,
}

impl Failure {
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
            refusal: Box::default(),
            reader_gone: false,
        }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "INVALID_PARAMS", message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Exit::NotFound, "NOT_FOUND", message)
    }

    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::new(Exit::TimedOut, "UNAVAILABLE", message)
    }

    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(Exit::Unreachable, "UNAVAILABLE", message)
    }

    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "UNAVAILABLE", "interrupted")
    }

    /// A file that cannot be read, or has the wrong content.
    pub fn file(path: impl AsRef<Path>, reason: impl std::fmt::Display) -> Self {
        let path = path.as_ref().display();
        Self::new(Exit::Conflict, "INVALID_PARAMS", format!("{path}: {reason}"))
    }

    /// The error of a response; `None` when it has none.
    pub fn of_response(document: &Value) -> Option<Self> {
        let error = &document["error"];
        let code = ErrorCode::ALL.into_iter().find(|code| error["code"] == code.as_str())?;
        let message = error["message"].as_str().unwrap_or("the request was rejected");
        let mut failure = Self::new(exit_of(code), code.as_str(), message);
        let details = error["details"].as_array().into_iter().flatten();
        failure.refusal.details =
            details.map(|detail| (cell(detail, "field"), cell(detail, "reason"))).collect();
        failure.hint = error["hint"].as_str().map(str::to_owned);
        Some(failure)
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks the error as one of a server, with the id of the request.
    #[must_use]
    pub fn with_server(mut self, server: &Url, request_id: Option<&str>) -> Self {
        self.refusal.server = Some(server.to_string());
        self.refusal.request_id = request_id.map(str::to_owned);
        self
    }

    /// Returns the envelope of the API, with the hint and the exit code.
    pub fn to_json(&self) -> Value {
        let mut error = Map::new();
        error.insert("code".into(), self.code.into());
        error.insert("message".into(), self.message.as_str().into());
        if !self.refusal.details.is_empty() {
            let details = self
                .refusal
                .details
                .iter()
                .map(|(field, reason)| json!({ "field": field, "reason": reason }));
            error.insert("details".into(), details.collect());
        }
        if !self.causes.is_empty() {
            error.insert("causes".into(), self.causes.clone().into());
        }
        if let Some(request_id) = &self.refusal.request_id {
            error.insert("request_id".into(), request_id.as_str().into());
        }
        let mut document =
            json!({ "success": false, "error": error, "hint": self.hint, "exit_code": self.exit as u8 });
        if let Some(server) = &self.refusal.server {
            document["server"] = server.as_str().into();
        }
        document
    }

    /// Returns the text: message, invalid fields, causes and hint.
    pub fn to_text(&self) -> String {
        // A signal sent by the user is not an error.
        let mut lines = vec![match self.exit {
            Exit::Interrupted => self.message.clone(),
            _ => format!("error[{}]: {}", self.code, self.message),
        }];
        // The message repeats the first field.
        lines.extend(
            self.refusal.details.iter().skip(1).map(|(field, reason)| format!("  also: {field} {reason}")),
        );
        lines.extend(self.causes.iter().map(|cause| format!("cause: {cause}")));
        lines.extend(self.hint.iter().map(|hint| format!("hint: {hint}")));
        if let Some(server) = &self.refusal.server {
            let request = self.refusal.request_id.iter().map(|id| format!(", request {id}"));
            lines.push(format!("server: {server}{}", request.collect::<String>()));
        }
        lines.join("\n")
    }
}

/// The hint of an error, with the commands that it advises.
pub fn hint(error: &Error) -> Option<String> {
    error.hint_in(|advice| match advice {
        Advice::BindBot => "hub-cli bots bind".to_owned(),
        Advice::Set(Setting::DataDir, _) => "--data-dir DIR".to_owned(),
        Advice::Set(Setting::BackupPassphrase, _) => "--passphrase-file FILE".to_owned(),
        other => hub_server::advice::words(other),
    })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = exit_of(error.code());
        let mut failure = Self::new(exit, error.code().as_str(), error.message());
        let details = error.details().iter();
        failure.refusal.details =
            details.map(|detail| (detail.field.to_string(), detail.reason.to_string())).collect();
        failure.hint = hint(&error);
        failure.causes = error.causes();
        failure
    }
}

impl From<io::Error> for Failure {
    /// A failed write to stdout; other files are reported with their name.
    fn from(error: io::Error) -> Self {
        let gone = error.kind() == io::ErrorKind::BrokenPipe;
        let failure = Self::new(Exit::Failed, "INTERNAL_ERROR", format!("cannot write the output: {error}"));
        Self { reader_gone: gone, ..failure }
    }
}

/// The category of a code.
fn exit_of(code: ErrorCode) -> Exit {
    match code {
        ErrorCode::Unauthorized | ErrorCode::InvalidToken | ErrorCode::Forbidden => Exit::Denied,
        ErrorCode::NotFound => Exit::NotFound,
        ErrorCode::InvalidParams => Exit::Usage,
        ErrorCode::Conflict => Exit::Conflict,
        ErrorCode::UpstreamError | ErrorCode::Unavailable => Exit::Unreachable,
        ErrorCode::MethodNotAllowed
        | ErrorCode::WindowClosed
        | ErrorCode::PayloadTooLarge
        | ErrorCode::UnsupportedMediaType
        | ErrorCode::RateLimited
        | ErrorCode::Internal => Exit::Failed,
    }
}
