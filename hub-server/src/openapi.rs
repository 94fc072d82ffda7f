//! The OpenAPI document: what the endpoints say of themselves, and a finishing pass over it.

use poem_openapi::OpenApiService;

use crate::api::{self, Api};

/// The endpoints as an OpenAPI service. Stateless: a pure function, so that the document needs no hub.
pub fn service() -> OpenApiService<Api, ()> {
    OpenApiService::new(api::all(), "Message Hub", env!("CARGO_PKG_VERSION"))
        .description("A hub between people's chat bot accounts and programs.")
}

/// The finished document as JSON.
pub fn document() -> String {
    service().spec()
}
