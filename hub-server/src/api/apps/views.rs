//! Response bodies about apps.

use hub_core::{
    apps::{Install, InstalledApp},
    openapi::Api,
};
use poem::{IntoResponse, Response};
use poem_openapi::{
    ApiResponse,
    payload::Json,
    registry::{MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};

use crate::envelope::{Always, ApiError, Envelope, ok};

/// An app that starts its installation itself.
#[derive(Debug, Api)]
pub struct NeedsOauthView {
    /// Always `true`.
    pub needs_oauth: Always<true>,
    /// Redirect target for the browser.
    pub oauth_redirect: String,
}

/// Result of an installation.
pub(crate) enum InstallAnswer {
    /// The app is installed.
    Done(Box<Json<Envelope<InstalledApp>>>),
    /// The installation continues at the app.
    NeedsOauth(Json<Envelope<NeedsOauthView>>),
}

impl InstallAnswer {
    /// The response to an installation.
    pub(super) fn of(install: Install) -> Result<Self, ApiError> {
        Ok(match install {
            Install::Done(installed) => Self::Done(Box::new(ok(*installed)?)),
            Install::AtTheApp(oauth_redirect) => {
                Self::NeedsOauth(ok(NeedsOauthView { needs_oauth: Always, oauth_redirect })?)
            }
        })
    }
}

impl IntoResponse for InstallAnswer {
    fn into_response(self) -> Response {
        match self {
            Self::Done(json) => json.into_response(),
            Self::NeedsOauth(json) => json.into_response(),
        }
    }
}

impl ApiResponse for InstallAnswer {
    fn meta() -> MetaResponses {
        let either = vec![Envelope::<InstalledApp>::schema_ref(), Envelope::<NeedsOauthView>::schema_ref()];
        let schema = MetaSchemaRef::Inline(Box::new(MetaSchema { any_of: either, ..MetaSchema::ANY }));
        MetaResponses {
            responses: vec![MetaResponse {
                description: "The installation, or the URL at which it starts.",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType { content_type: "application/json", schema }],
                headers: Vec::new(),
            }],
        }
    }

    fn register(registry: &mut Registry) {
        Envelope::<InstalledApp>::register(registry);
        Envelope::<NeedsOauthView>::register(registry);
    }
}
