//! The API called from the same process, without a socket: for programs that have opened the hub's files, such as
//! `hub-cli --local`. A request gets the same checks and the same response as over HTTP, except that its caller is
//! named by the program instead of proven by a credential.

use std::sync::Arc;

use bytes::Bytes;
use hub_core::{Error, Hub, Result, access::Actor};
use poem::{Endpoint, EndpointExt, Request, Response, endpoint::BoxEndpoint, http};

use crate::{AppSettings, app::api, credentials::InProcessCaller, envelope::Refusal};

/// The API of a hub of this process.
#[derive(Clone)]
pub struct InProcess(Arc<BoxEndpoint<'static, Response>>);

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InProcess")
    }
}

impl InProcess {
    /// The API of `hub`.
    pub fn new(hub: Hub, settings: AppSettings) -> Self {
        Self(Arc::new(api(hub, settings).boxed()))
    }

    /// Calls the API as `actor`. Credentials in the headers do not count.
    ///
    /// # Errors
    /// What the operation fails with, its causes included.
    pub async fn call(&self, actor: Actor, request: http::Request<Bytes>) -> Result<http::Response<Bytes>> {
        let (head, body) = request.into_parts();
        let mut request = Request::builder().method(head.method).uri(head.uri).body(body);
        *request.headers_mut() = head.headers;
        request.set_data(InProcessCaller(actor));
        let response = self.0.call(request).await;
        let mut response =
            response.map_err(|error| Error::internal(format!("outside the error layer: {error}")))?;
        if let Some(error) = response.data::<Refusal>().and_then(Refusal::take) {
            return Err(error);
        }
        let body = response.take_body().into_bytes().await.map_err(Error::internal)?;
        let mut complete = http::Response::new(body);
        *complete.status_mut() = response.status();
        *complete.headers_mut() = std::mem::take(response.headers_mut());
        Ok(complete)
    }
}

#[cfg(test)]
mod tests {
    use hub_core::ErrorCode;
    use poem::http::StatusCode;
    use serde_json::Value;

    use super::*;
    use crate::testing::App;

    fn get(path: &str) -> http::Request<Bytes> {
        http::Request::get(path).body(Bytes::new()).unwrap()
    }

    #[tokio::test]
    async fn the_operator_sees_what_belongs_to_every_user() {
        let app = App::new().await;
        app.user("alice").await;
        app.user("bob").await;
        let api = InProcess::new(app.hub.clone(), app.settings.clone());
        let response = api.call(Actor::Operator, get("/api/admin/users")).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert!(body["data"]["items"].as_array().unwrap().len() >= 2, "{body}");
    }

    #[tokio::test]
    async fn a_failure_keeps_its_code_and_details() {
        let app = App::new().await;
        let api = InProcess::new(app.hub.clone(), app.settings.clone());
        let error = api.call(Actor::Operator, get("/api/bots?limit=0")).await.unwrap_err();
        assert_eq!((error.code(), error.details().len()), (ErrorCode::InvalidParams, 1));
    }

    #[tokio::test]
    async fn no_header_and_no_query_makes_the_caller_of_an_http_request_the_operator() {
        let app = App::new().await;
        for (name, value) in [
            ("authorization", "Bearer operator"),
            ("authorization", "Operator"),
            ("x-api-key", "operator"),
            ("cookie", "session=operator"),
            ("caller", "operator"),
            ("x-caller", "operator"),
            ("x-actor", "operator"),
            ("x-forwarded-user", "operator"),
        ] {
            let path = "/api/admin/users?caller=operator&actor=operator&api_key=operator";
            let reply = app.stranger().with(name, value).get(path).await;
            let status = reply.response.status();
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{name}: {value}");
        }
    }
}
