//! Steps of traces, as the operations return them.

use hub_core::{
    ai, egress,
    traces::{self, Step},
};
use poem_openapi::{Object, types::Example};

use super::views::{TraceStatus, example_time};
use crate::wire::{self, enumeration, view};

enumeration! {
    /// Name of a step.
    StepName = traces::StepName {
        /// The hub received the message.
        Received,
        /// The channel's handle and filter.
        Filter,
        /// The request hook of a plugin.
        #[oai(rename = "plugin.on_request")]
        PluginOnRequest,
        /// A request to the receiver.
        Request,
        /// The response of the receiver.
        Response,
        /// The response hook of a plugin.
        #[oai(rename = "plugin.on_response")]
        PluginOnResponse,
        /// A reply.
        Reply,
        /// The AI sink.
        Ai,
        /// The WebSocket sink.
        Websocket,
        /// The message was given to a client of the iLink sink.
        Ilink,
    }
}

enumeration! {
    /// Component that performed a step.
    StepKind = traces::StepKind {
        /// The hub took the message from the network.
        Inbox,
        /// The channel's handle and filter.
        Filter,
        /// The channel's log, which WebSocket clients follow.
        Log,
        /// The webhook.
        Webhook,
        /// A plugin.
        Plugin,
        /// The model.
        Ai,
        /// A tool that the model requested.
        ToolCall,
        /// An app.
        App,
        /// A client of the channel sent the message.
        Channel,
        /// A client of the channel's iLink sink received or sent the message.
        Ilink,
        /// A user sent the message.
        Api,
        /// The outbox sent a part to the network.
        Outbox,
        /// A replay was requested.
        Replay,
        /// A parked delivery was cancelled.
        Cancel,
        /// The outcome of an attempt could not be stored.
        Store,
    }
}

enumeration! {
    /// Phase of a request.
    RequestPhase = egress::Phase {
        /// The check of the address.
        Address,
        /// The resolution of the name.
        Dns,
        /// The connection, up to the TLS handshake.
        Connect,
        /// The TLS handshake.
        Tls,
        /// The wait for the beginning of the response.
        FirstByte,
        /// The rest of the response.
        Response,
    }
}

view! {
    /// A step.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none, example)]
    pub struct StepView from step: Step {
        /// Name.
        pub name: StepName,
        /// Component.
        pub kind: StepKind,
        /// Outcome.
        pub status: TraceStatus,
        /// When it began.
        pub started_at: wire::Time,
        /// Duration in milliseconds.
        pub duration_ms: u64,
        /// Number of the attempt that it belongs to, from 1; absent for a step of no attempt.
        pub attempt: Option<u32>,
        /// Details.
        pub detail: StepDetailView,
    }
}

view! {
    /// Details of a step: each field is present if the step knows it. The description says which steps have it. Secrets are
    /// replaced by `***` before they are stored.
    #[derive(Debug, Object)]
    #[oai(rename = "StepDetail", skip_serializing_if_is_none, example)]
    pub struct StepDetailView from detail: traces::StepDetail {
        /// Why the step failed.
        pub error: Option<StepErrorView>,
        /// Why a filter or a sink took no notice, why a plugin did not run, why a reply is not sent, and what is wrong
        /// with the body of a response.
        pub reason: Option<String>,

        /// `received`: type of the message.
        pub msg_type: Option<String>,
        /// `received`: number of parts of the message.
        pub items: Option<u64>,
        /// `received`: the app that gets an event.
        pub app: Option<wire::AppId>,
        /// `received`: the handle that addressed the app.
        pub handle: Option<String>,
        /// `received`: the trace that this one repeats.
        pub replay_of: Option<wire::TraceId>,
        /// `received`, `reply`: recipient. Of a replay: URL without its query, or the model.
        pub to: Option<String>,

        /// `request`: method.
        pub method: Option<String>,
        /// `request`: URL.
        pub url: Option<String>,
        /// `response`: HTTP status.
        pub status: Option<u16>,
        /// `request`, `response`: names and values of headers, in order.
        pub headers: Option<Vec<Vec<String>>> =
            detail.headers.map(|all| all.into_iter().map(|(name, value)| vec![name, value]).collect()),
        /// `request`, `response`: body, truncated at 64 KiB.
        pub body: Option<String>,
        /// `request`: durations of its phases, where they are measured.
        pub phases: Option<StepPhasesView>,
        /// When the next attempt is due.
        pub next_attempt_at: Option<wire::Time>,
        /// Whether later messages of the conversation no longer wait for this one.
        pub parked: Option<bool>,

        /// `plugin.*`: id of the plugin.
        pub plugin_id: Option<wire::PluginId>,
        /// `plugin.*`: its name.
        pub plugin: Option<String>,
        /// `plugin.*`: its version.
        pub version: Option<String>,
        /// `plugin.*`: whether the plugin has this hook.
        pub hook: Option<bool>,
        /// `plugin.*`: duration of the run in microseconds, without the wait.
        pub duration_us: Option<u64>,
        /// `plugin.*`: time that it waited for a worker, in milliseconds.
        pub wait_ms: Option<u64>,
        /// `plugin.*`: memory that the run allocated, in bytes, where it is measured.
        pub memory_bytes: Option<u64>,
        /// `plugin.*`: whether it skipped the message.
        pub skipped: Option<bool>,
        /// `plugin.*`: number of replies that it made.
        pub replies: Option<u64>,
        /// `plugin.*`: what it changed in the request.
        pub changes: Option<StepChangesView>,
        /// `plugin.*`: what it logged.
        pub logs: Option<Vec<StepLogView>>,
        /// `plugin.*`: what it fetched.
        pub fetches: Option<Vec<StepFetchView>>,
        /// `plugin.*`: why the hub disabled the plugin after this run.
        pub paused: Option<String>,

        /// `reply`: id of the message.
        pub message_id: Option<wire::MessageId>,
        /// `reply`: state of the part, or `queued`.
        pub state: Option<String>,
        /// `reply`: position of the part, from 1.
        pub part: Option<u64>,
        /// `received`, `reply`: number of parts that the message is sent in.
        pub parts: Option<u64>,
        /// `reply`: name of the file.
        pub file: Option<String>,
        /// `reply`: size of the file in bytes.
        pub size: Option<u64>,
        /// `reply`: id of the message on the network.
        pub network_id: Option<String>,

        /// `ai`: where the settings of the model come from: `custom` for the channel's own, or `global`.
        pub source: Option<String>,
        /// `ai`: the model.
        pub model: Option<String>,
        /// `ai`: number of this call within the attempt, from 1.
        pub round: Option<u32>,
        /// `ai`: number of messages of the conversation that were sent.
        pub messages: Option<u64>,
        /// `ai`: number of images that were sent.
        pub images: Option<u64>,
        /// `ai`: number of tools that were offered.
        pub tools: Option<u64>,
        /// `ai`: parts of the request that were left out or renamed, because the endpoint refuses them.
        pub left_out: Option<Vec<String>>,
        /// `ai`: why the model stopped.
        pub finish_reason: Option<String>,
        /// `ai`: what the call cost.
        pub usage: Option<ModelUsage>,
        /// `ai`: text of the model, or result of the tool.
        pub answer: Option<String>,
        /// `ai`: names of the tools that the model requested.
        pub tool_calls: Option<Vec<String>>,
        /// `ai`: name of the tool that was called.
        pub tool: Option<String>,
        /// `ai`: arguments of the tool, as JSON text.
        pub arguments: Option<String>,

        /// `websocket`: number of clients that were connected.
        pub clients: Option<u64>,
        /// `ilink`: the client.
        pub ilink_client: Option<wire::IlinkClientId>,
        /// Id of the event for an app.
        pub event_id: Option<wire::AppEventId>,
    }
}

view! {
    /// Why a step failed.
    #[derive(Debug, Object)]
    #[oai(rename = "StepError", skip_serializing_if_is_none, example)]
    pub struct StepErrorView from error: traces::StepError {
        /// One sentence.
        pub message: String,
        /// Class of the failure of a request.
        pub class: Option<String>,
        /// The phase of a measured request that failed.
        pub phase: Option<RequestPhase>,
        /// What the receiver said, where it may be shown.
        pub told: Option<String>,
        /// Kind of the failure of a plugin.
        pub kind: Option<String>,
        /// Line in the source of the plugin, from 1.
        pub line: Option<u32>,
        /// Column in the source of the plugin, from 1.
        pub column: Option<u32>,
        /// The calls that led to the failure.
        pub stack: Option<String>,
    }
}

view! {
    /// Durations of the phases of a request, in milliseconds; what did not happen, or cannot be distinguished, is absent.
    #[derive(Debug, Object)]
    #[expect(clippy::struct_field_names, reason = "the field names of the API contain the unit")]
    #[oai(rename = "StepPhases", skip_serializing_if_is_none)]
    pub struct StepPhasesView from phases: traces::StepPhases {
        /// Resolution of the name.
        pub dns_ms: Option<u64>,
        /// TCP connection and, for https, TLS handshake.
        pub connect_ms: Option<u64>,
        /// From the connection to the beginning of the response.
        pub first_byte_ms: Option<u64>,
    }
}

view! {
    /// What a plugin changed in the request.
    #[derive(Debug, Object)]
    #[oai(rename = "StepChanges", skip_serializing_if_is_none, example)]
    pub struct StepChangesView from changes: traces::StepChanges {
        /// Method before and after.
        pub method: Option<Vec<String>> = changes.method.map(Vec::from),
        /// URL before and after.
        pub url: Option<Vec<String>> = changes.url.map(Vec::from),
        /// Lines `- name: value` and `+ name: value`.
        pub headers: Option<Vec<String>>,
        /// Difference of the bodies, in the unified format.
        pub body: Option<String>,
    }
}

view! {
    /// A line that a plugin logged.
    #[derive(Debug, Object)]
    #[oai(rename = "StepLog", skip_serializing_if_is_none)]
    pub struct StepLogView from log: traces::StepLog {
        /// When, in milliseconds after the run began.
        pub at_ms: u64,
        /// Level: `debug`, `info`, `warn` or `error`.
        pub level: String,
        /// Text.
        pub text: String,
    }
}

view! {
    /// A request that a plugin made.
    #[derive(Debug, Object)]
    #[oai(rename = "StepFetch", skip_serializing_if_is_none)]
    pub struct StepFetchView from fetch: traces::StepFetch {
        /// Method.
        pub method: String,
        /// URL.
        pub url: String,
        /// HTTP status of the response.
        pub status: Option<u16>,
        /// Why there is no response.
        pub error: Option<String>,
    }
}

view! {
    /// What a call to a model cost.
    #[derive(Debug, Object)]
    pub struct ModelUsage from usage: ai::Usage {
        /// Tokens that the model read.
        pub prompt_tokens: u64,
        /// Tokens that the model wrote.
        pub completion_tokens: u64,
    }
}

impl Example for StepDetailView {
    fn example() -> Self {
        traces::StepDetail {
            status: Some(200),
            headers: Some(vec![("content-type".to_owned(), "application/json".to_owned())]),
            body: Some("{}".to_owned()),
            ..traces::StepDetail::default()
        }
        .into()
    }
}

impl Example for StepChangesView {
    fn example() -> Self {
        let headers = Some(vec!["+ x-kind: order".to_owned()]);
        traces::StepChanges { headers, ..traces::StepChanges::default() }.into()
    }
}

impl Example for StepErrorView {
    fn example() -> Self {
        let class = Some(egress::EgressFault::Connect.as_str().to_owned());
        traces::StepError { class, ..traces::StepError::new("connection refused") }.into()
    }
}

impl Example for StepView {
    fn example() -> Self {
        Self {
            name: StepName::Response,
            kind: StepKind::Webhook,
            status: TraceStatus::Ok,
            started_at: example_time(),
            duration_ms: 0,
            attempt: Some(1),
            detail: StepDetailView::example(),
        }
    }
}
