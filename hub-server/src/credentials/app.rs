//! An app on a bot, by its token.

use hub_core::{ErrorCode, Hub, access::Actor};
use poem::{Request, RequestBody, Result};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions, registry::Registry};

use super::{Presented, bearer, data, raise_body_cap};
use crate::{app_calls::CallNote, envelope::ApiError};

/// An app on a bot. Holding one is the proof that its token was good.
#[derive(Debug, Clone, Copy)]
pub struct AppClient(pub Actor);

impl<'a> ApiExtractor<'a> for AppClient {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        registry.create_security_scheme("appToken", bearer("The token `huba_…` of an app on a bot."));
    }

    fn security_schemes() -> Vec<&'static str> {
        vec!["appToken"]
    }

    async fn from_request(
        request: &'a Request,
        _: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> Result<Self> {
        let presented = Presented::of(request.headers(), true);
        let missing =
            || ApiError::new(ErrorCode::Unauthorized, "send the app's token as Authorization: Bearer");
        let token = presented.explicit.ok_or_else(missing)?;
        let actor = data::<Hub>(request).apps().authenticate_token(token.expose()).await;
        let client = Self(actor.map_err(ApiError::from)?);
        if let Some(note) = request.data::<CallNote>() {
            note.is_of(client.0.app().map_err(ApiError::from)?.installation_id);
        }
        raise_body_cap(request);
        Ok(client)
    }
}
