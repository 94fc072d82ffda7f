//! Spans to an OpenTelemetry collector, over HTTP with protobuf bodies. The content of spans is decided where they
//! are created: [`hub_core::spans`] and the edge. Log lines are not exported.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hub_core::{
    egress::{Call, Egress},
    spans,
    tasks::Tasks,
};
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tokio::runtime::Handle;
use tracing_subscriber::{Layer, Registry, filter::filter_fn};
use url::Url;

/// Timeout of an export, and of the last one when the process ends.
const DEADLINE: Duration = Duration::from_secs(5);
/// Maximum size of a response, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// The export of spans. Spans that the collector does not accept in time are dropped: nothing waits for it.
#[derive(Debug)]
pub struct Spans(SdkTracerProvider);

impl Spans {
    /// Exports to `endpoint` + `/v1/traces` through `client`, on tasks of `runtime`.
    ///
    /// # Errors
    /// Message about the endpoint.
    pub fn start(endpoint: &Url, node: &str, client: Egress, runtime: Handle) -> Result<Self, String> {
        let url = format!("{}/v1/traces", endpoint.as_str().trim_end_matches('/'));
        client.check_url(&url).map_err(|error| error.to_string())?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(OurClient { client, runtime, tasks: Tasks::new() })
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url)
            .with_timeout(DEADLINE)
            .build()
            .map_err(|error| error.to_string())?;
        let resource = Resource::builder_empty().with_service_name("message-hub").with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", node.to_owned()),
        ]);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Self(provider))
    }

    /// The layer that passes spans to the export; events, which may contain more than a span should, are excluded.
    pub fn layer(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("message-hub"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_filter(filter_fn(|about| about.is_span() && about.target() == spans::TARGET))
            .boxed()
    }

    /// Exports the remaining spans. Blocks: must not be called on a task.
    pub fn finish(self) {
        if let Err(error) = self.0.shutdown_with_timeout(DEADLINE) {
            tracing::debug!(%error, "the last spans were not exported");
        }
    }
}

/// Lends the export our own client. The export runs on a thread outside of the runtime.
#[derive(Debug)]
struct OurClient {
    client: Egress,
    runtime: Handle,
    tasks: Tasks,
}

#[async_trait]
impl HttpClient for OurClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let call = Call {
            method: head.method,
            url: self.client.check_url(&head.uri.to_string())?,
            headers: head.headers,
            body,
            deadline: DEADLINE,
            max_answer: MAX_ANSWER,
        };
        let client = self.client.clone();
        let sent = {
            let _inside = self.runtime.enter();
            self.tasks.spawn("span export", async move { client.send(call).await })
        };
        let answer = sent.await?.ok_or("the export panicked")??;
        let mut response = Response::new(answer.body);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Arc};

    use hub_core::{egress::EgressConfig, local_http::LocalService, testing::Receiver};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;
    use crate::testing::App;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn spans_reach_the_collector_without_private_data() {
        let collector = Receiver::new();
        let service: Arc<dyn LocalService> = collector.clone();
        let in_process = HashMap::from([("collector.test".to_owned(), service)]);
        let client = Egress::new(EgressConfig { in_process, ..EgressConfig::default() }).unwrap();
        let endpoint = "http://collector.test/otlp/".parse().unwrap();
        let spans = Spans::start(&endpoint, "node-7", client, Handle::current()).unwrap();
        let subscriber = tracing_subscriber::registry().with(vec![spans.layer()]);
        {
            let _here = tracing::subscriber::set_default(subscriber);
            let app = App::new().await;
            let asking = app.stranger().with("X-Request-Id", "req-42").with("Authorization", "Bearer s3cret");
            asking.get("/api/auth/me?api_key=s3cret").await;
            tracing::error!(target: spans::TARGET, "a line with a s3cret");
        }
        tokio::task::spawn_blocking(|| spans.finish()).await.unwrap();
        let requests = collector.requests();
        assert_eq!(requests.len(), 1, "one batch");
        assert_eq!(requests[0].uri().path(), "/otlp/v1/traces");
        assert_eq!(requests[0].headers()["content-type"], "application/x-protobuf");
        // Texts stand in protobuf as they are.
        let body = String::from_utf8_lossy(requests[0].body()).into_owned();
        for text in ["message-hub", "node-7", "http request", "/api/auth/me", "req-42"] {
            assert!(body.contains(text), "{text} is missing");
        }
        assert!(!body.contains("s3cret"), "{body}");
    }
}
