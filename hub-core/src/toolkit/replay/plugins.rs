//! A recording through plugins that run here, as a draft of them would have treated it.

use http::HeaderMap;
use serde_json::{Value, value::RawValue};
use url::Url;

use super::{NotSent, Recording};
use crate::{
    egress::CheckedHeaders,
    error::Result,
    plugins::{
        Manifest,
        debug::{DebugResponse, DebugRun, Debugged, debug},
    },
    sandbox::{PluginRequest, Reply, Sandbox},
};

/// Tenant of the runs, for fair scheduling in the sandbox.
const TENANT: &str = "replay";

/// A plugin to run.
#[derive(Debug, Clone)]
pub struct Script {
    name: String,
    source: String,
    manifest: Manifest,
}

impl Script {
    /// Parses a source; `name` is for messages.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for metadata that could not be submitted.
    pub fn parse(name: impl Into<String>, source: impl Into<String>) -> Result<Self> {
        let (name, source) = (name.into(), source.into());
        Ok(Self { manifest: Manifest::parse(&source)?, name, source })
    }
}

/// Result of the request hooks.
#[derive(Debug)]
pub(super) struct Left {
    pub request: PluginRequest,
    replies: Vec<String>,
    /// State of each plugin, for its other hook.
    states: Vec<Option<Box<RawValue>>>,
}

/// Result of the response hooks.
#[derive(Debug)]
pub(super) struct Answered {
    pub replies: Vec<String>,
    pub failures: Vec<String>,
}

impl Left {
    /// Runs every request hook in order.
    pub(super) async fn of(
        sandbox: &Sandbox,
        scripts: &[Script],
        recording: &Recording,
        url: &Url,
    ) -> std::result::Result<Self, NotSent> {
        let message = recording.message.as_ref();
        let message =
            message.ok_or_else(|| NotSent::Impossible("its message is not known any more".to_owned()))?;
        let (mut request, mut replies, mut states) = (None, Vec::new(), Vec::new());
        for script in scripts {
            let run = DebugRun { request, ..run(script, message, url.as_str()) };
            let Debugged { error, skipped, request: left, replies: said, state, .. } =
                debug(sandbox, TENANT, run, &script.manifest)
                    .await
                    .map_err(|error| NotSent::Impossible(error.message().to_owned()))?;
            if let Some(error) = error {
                return Err(NotSent::Impossible(format!("{} failed: {}", script.name, error.message)));
            }
            replies.extend(said.iter().map(reply_text));
            states.push(state);
            if skipped {
                return Err(NotSent::Nothing(format!("{} skips it", script.name)));
            }
            request = left;
        }
        let request = request.ok_or_else(|| NotSent::Impossible("there is no plugin to run".to_owned()))?;
        Ok(Self { request, replies, states })
    }

    /// The headers as they may be sent.
    pub(super) fn headers(&self) -> std::result::Result<HeaderMap, NotSent> {
        let pairs = self.request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let checked = CheckedHeaders::parse(pairs);
        checked.map(CheckedHeaders::into_map).map_err(|error| NotSent::Impossible(error.message().to_owned()))
    }

    /// Runs every response hook. A failure is recorded and changes nothing: the receiver has the message.
    pub(super) async fn answered(
        self,
        sandbox: &Sandbox,
        scripts: &[Script],
        recording: &Recording,
        answer: &DebugResponse,
    ) -> Answered {
        let mut answered = Answered { replies: self.replies, failures: Vec::new() };
        let Some(message) = &recording.message else { return answered };
        for (script, state) in scripts.iter().zip(self.states) {
            let run = DebugRun {
                request: Some(self.request.clone()),
                response: Some(answer.clone()),
                state,
                ..run(script, message, &self.request.url)
            };
            match debug(sandbox, TENANT, run, &script.manifest).await {
                Ok(Debugged { error: Some(error), .. }) => {
                    answered.failures.push(format!("{} failed: {}", script.name, error.message));
                }
                Ok(debugged) => answered.replies.extend(debugged.replies.iter().map(reply_text)),
                Err(error) => {
                    answered.failures.push(format!("{} was not run: {}", script.name, error.message()));
                }
            }
        }
        answered
    }
}

fn run(script: &Script, message: &Value, url: &str) -> DebugRun {
    DebugRun {
        script: script.source.clone(),
        message: message.clone(),
        request: None,
        url: url.to_owned(),
        response: None,
        state: None,
    }
}

fn reply_text(reply: &Reply) -> String {
    match reply {
        Reply::Text(text) => text.clone(),
        Reply::DataUri(uri) => format!("a data: URI of {} bytes", uri.len()),
        Reply::File { filename, .. } => format!("the file {filename}"),
        Reply::Forward => "the webhook's answer as it is".to_owned(),
    }
}
