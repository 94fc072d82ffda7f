//! A sandbox with worker processes, and short ways to make a run.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use hub_core::{
    sandbox::{
        Body, ErrorKind, FetchGate, HookInput, HookOutcome, HookRun, Limits, NoFetch, PluginRequest,
        PluginResponse, Sandbox, SandboxConfig, SandboxFault, Source, WorkerProgram,
    },
    time::Clock,
};
use serde_json::value::{RawValue, to_raw_value};

pub struct Stage {
    pub sandbox: Sandbox,
}

impl Stage {
    pub fn new(workers: usize) -> Self {
        let worker = WorkerProgram::Path(PathBuf::from(env!("CARGO_BIN_EXE_sandbox-worker")));
        let config = SandboxConfig { workers, ..SandboxConfig::of(worker) };
        Self { sandbox: Sandbox::new(config, Clock::system()) }
    }

    pub async fn run(&self, source: &str, input: HookInput) -> HookOutcome {
        self.try_run(source, input, &NoFetch).await.unwrap()
    }

    pub async fn try_run(
        &self,
        source: &str,
        input: HookInput,
        gate: &dyn FetchGate,
    ) -> Result<HookOutcome, SandboxFault> {
        let run = HookRun { tenant: "tenant".to_owned(), source: Source::new(source), input };
        self.sandbox.run(run, gate).await
    }

    /// `onRequest` of a source on the usual message.
    pub async fn ask(&self, source: &str) -> HookOutcome {
        self.run(source, asked()).await
    }

    /// An honest run gives what it should.
    pub async fn assert_honest(&self, after: &str) {
        let honest = "const seen = Object.keys(globalThis).concat(typeof polluted, typeof ({}).polluted);
            function onRequest(ctx) {
                ctx.req.body.content = ctx.msg.content.toUpperCase();
                ctx.req.headers['X-Seen'] = seen.join();
                ctx.reply([3, 1, 2].sort().map((n) => n * 2).join('-'));
            }";
        let outcome = self.ask(honest).await;
        assert_eq!(outcome.error, None, "after {after}");
        let request = outcome.request.unwrap_or_else(|| panic!("nothing changed after {after}"));
        assert_eq!(request.body.text(), r#"{"content":"ORDER 42","n":1}"#, "after {after}");
        assert_eq!(request.headers["X-Seen"], "undefined,undefined", "after {after}");
        assert_eq!(outcome.replies, [hub_core::sandbox::Reply::Text("2-4-6".to_owned())], "after {after}");
    }
}

pub fn json(value: &serde_json::Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

pub fn message() -> Box<RawValue> {
    json(&serde_json::json!({
        "content": "order 42",
        "sender": {"user_id": "u1", "user_name": "Ada"},
        "sessionID": "s1",
    }))
}

pub fn request() -> PluginRequest {
    PluginRequest {
        url: "https://good.example/hook".to_owned(),
        method: "POST".to_owned(),
        headers: BTreeMap::from([("Content-Type".to_owned(), "application/json".to_owned())]),
        body: Body::Json(RawValue::from_string(r#"{"content":"order 42","n":1}"#.to_owned()).unwrap()),
    }
}

pub fn response(body: Option<&str>) -> PluginResponse {
    PluginResponse { status: 200, headers: BTreeMap::new(), body: body.map(str::to_owned) }
}

pub fn asked() -> HookInput {
    HookInput::on_request(message(), request())
}

pub fn answered(body: Option<&str>) -> HookInput {
    HookInput::on_response(message(), request(), response(body))
}

pub fn within(millis: u64, input: HookInput) -> HookInput {
    let limits = Limits { timeout: Duration::from_millis(millis), ..input.limits };
    HookInput { limits, ..input }
}

pub fn kind(outcome: &HookOutcome) -> Option<ErrorKind> {
    outcome.error.as_ref().map(|error| error.kind)
}
