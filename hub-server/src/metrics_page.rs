//! The page of [metrics](crate::metrics) as an endpoint.

use hub_core::{
    Error, ErrorCode, Hub,
    secret::{Secret, TokenHash},
};
use poem::{Endpoint, IntoResponse, Request, Response, Result};

use crate::{credentials::Presented, envelope::ApiError, metrics::Metrics};

pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The page as an endpoint. With a token it answers only to `Authorization: Bearer` or `X-API-Key` with it.
#[derive(Debug)]
pub(crate) struct MetricsPage {
    pub(crate) hub: Hub,
    pub(crate) metrics: Metrics,
    pub(crate) token: Option<Secret>,
}

impl Endpoint for MetricsPage {
    type Output = Response;

    async fn call(&self, request: Request) -> Result<Response> {
        if let Some(token) = &self.token {
            let refused = |code, message| Err(ApiError::new(code, message).into());
            match Presented::of(request.headers(), true).explicit {
                None => return refused(ErrorCode::Unauthorized, "send the metrics token as a bearer token"),
                Some(sent) if TokenHash::of(sent.expose()) != TokenHash::of(token.expose()) => {
                    return refused(ErrorCode::InvalidToken, "this is not the metrics token");
                }
                Some(_) => {}
            }
        }
        let page = self
            .metrics
            .page(&self.hub)
            .map_err(|error| ApiError::from(Error::internal(error.to_string())))?;
        Ok(page.with_content_type(CONTENT_TYPE).into_response())
    }
}
