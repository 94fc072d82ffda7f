//! The application and the control API of a simulator on one address: test suites of apps expect the bot API and
//! `/mock/…` under one base URL.

use std::sync::Arc;

use hub_core::{Error, demo::AppMock, local_http::LocalService, secret::authorization::bearer_token};
use poem::{
    Endpoint, Request, Response, Result,
    error::ReadBodyError,
    http::{self, HeaderValue, StatusCode, header},
};

use crate::envelope::{ApiError, too_large};

/// Path of the control API.
const CONTROL: [&str; 2] = ["/mock/", "/_sim/"];

/// An application with the control API of a simulator.
#[derive(Clone)]
pub struct WithSimulator<E> {
    app: E,
    control: Arc<dyn LocalService>,
    token: Option<(Arc<str>, AppMock)>,
}

impl<E> std::fmt::Debug for WithSimulator<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WithSimulator")
    }
}

impl<E: Endpoint<Output = Response>> WithSimulator<E> {
    /// Adds the control API to an application.
    pub fn new(app: E, control: Arc<dyn LocalService>) -> Self {
        Self { app, control, token: None }
    }

    /// Accepts `chosen` instead of the token of the app under test: suites of published apps have a fixed token.
    #[must_use]
    pub fn with_app_token(mut self, chosen: &str, mock: AppMock) -> Self {
        self.token = Some((chosen.into(), mock));
        self
    }

    /// Replaces the chosen token by the real one.
    async fn replace_token(&self, request: &mut Request) -> Result<(), ApiError> {
        let Some((chosen, mock)) = &self.token else { return Ok(()) };
        let in_header = bearer_token(request.headers()) == Some(&**chosen);
        let query = request.uri().query().unwrap_or_default().to_owned();
        let in_query = url::form_urlencoded::parse(query.as_bytes())
            .any(|(name, value)| name == "token" && value == **chosen);
        if !in_header && !in_query {
            return Ok(());
        }
        let token = mock.token().await?;
        if in_header {
            let bearer = format!("Bearer {}", token.expose());
            let value = HeaderValue::try_from(bearer).map_err(Error::internal)?;
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        if in_query {
            let pairs = url::form_urlencoded::parse(query.as_bytes()).map(|(name, value)| match &*name {
                "token" => (name, token.expose().into()),
                _ => (name, value),
            });
            let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
            let path = format!("{}?{query}", request.uri().path());
            let mut parts = request.uri().clone().into_parts();
            parts.path_and_query = Some(path.try_into().map_err(Error::internal)?);
            *request.uri_mut() = parts.try_into().map_err(Error::internal)?;
        }
        Ok(())
    }

    async fn control(&self, request: Request) -> Result<Response, ApiError> {
        let (given, body) = request.into_parts();
        let (mut head, ()) = http::Request::new(()).into_parts();
        (head.method, head.uri, head.headers) = (given.method, given.uri, given.headers);
        let body =
            body.into_bytes_limit(self.control.max_body(&head)).await.map_err(|error| match error {
                ReadBodyError::PayloadTooLarge => ApiError::from(too_large()),
                other => Error::invalid("body", other.to_string()).into(),
            })?;
        let Ok(answer) = self.control.call(http::Request::from_parts(head, body)).await else {
            // Only the protocol of the chat network cuts connections, and it is not used here.
            return Ok(Response::builder().status(StatusCode::BAD_GATEWAY).finish());
        };
        let (head, body) = answer.into_parts();
        let mut response = Response::builder().status(head.status).body(body);
        *response.headers_mut() = head.headers;
        Ok(response)
    }
}

impl<E: Endpoint<Output = Response>> Endpoint for WithSimulator<E> {
    type Output = Response;

    async fn call(&self, mut request: Request) -> Result<Response> {
        if CONTROL.iter().any(|prefix| request.uri().path().starts_with(prefix)) {
            return Ok(self.control(request).await?);
        }
        self.replace_token(&mut request).await?;
        self.app.call(request).await
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use bytes::Bytes;
    use hub_core::local_http::Cut;
    use poem::{EndpointExt, endpoint::make_sync, test::TestClient};

    use super::*;

    /// Answers with the path and the body's length.
    struct Echo;

    #[async_trait]
    impl LocalService for Echo {
        async fn call(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, Cut> {
            if request.uri().path() == "/_sim/cut" {
                return Err(Cut);
            }
            let text = format!("{} {} {}", request.method(), request.uri().path(), request.body().len());
            Ok(http::Response::builder().status(201).header("x-own", "1").body(text.into()).unwrap())
        }

        fn max_body(&self, _: &http::request::Parts) -> usize {
            4
        }
    }

    #[tokio::test]
    async fn control_calls_do_not_reach_the_application() {
        let app = make_sync(|request| format!("app {}", request.uri().path())).map_to_response();
        let client = TestClient::new(WithSimulator::new(app, Arc::new(Echo)));
        let answer = client.post("/mock/event").body("abc").send().await;
        answer.assert_status(StatusCode::CREATED);
        answer.assert_header("x-own", "1");
        answer.assert_text("POST /mock/event 3").await;
        client.get("/_sim/accounts").send().await.assert_text("GET /_sim/accounts 0").await;
        client.post("/mock/event").body("abcde").send().await.assert_status(StatusCode::PAYLOAD_TOO_LARGE);
        client.get("/_sim/cut").send().await.assert_status(StatusCode::BAD_GATEWAY);
        for of_app in ["/bot/v1/bot", "/mock", "/api/mock/event"] {
            client.get(of_app).send().await.assert_text(format!("app {of_app}")).await;
        }
    }
}
