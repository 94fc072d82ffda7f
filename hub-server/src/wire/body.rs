//! The JSON body of a request.

use hub_core::{Error, ErrorCode};
use poem::{FromRequest, Request, RequestBody, Result, http::header};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaMediaType, MetaRequest, Registry},
    types::ParseFromJSON,
};
use serde_json::Value;

use super::{diagnosis::diagnose, json};
use crate::envelope::{ApiError, rule};

/// A JSON body. The last argument of a handler, so that unauthenticated callers are rejected before it is read. A
/// name that an object repeats is rejected in every body, also where unknown fields are ignored: programs disagree on
/// its meaning.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<'a, T: ParseFromJSON> ApiExtractor<'a> for Body<T> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        Some(MetaRequest {
            description: None,
            content: vec![MetaMediaType { content_type: "application/json", schema: T::schema_ref() }],
            required: T::IS_REQUIRED,
        })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> Result<Self> {
        let bytes = <Vec<u8> as FromRequest>::from_request(request, body).await?;
        Ok(Self(parse(request.header(header::CONTENT_TYPE), &bytes)?))
    }
}

fn parse<T: ParseFromJSON>(content_type: Option<&str>, bytes: &[u8]) -> Result<T, ApiError> {
    if bytes.is_empty() {
        let missing = || Error::invalid("body", "must be a JSON object").into();
        return T::parse_from_json(None).map_err(|_| missing());
    }
    if !content_type.is_some_and(is_json) {
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType, "the body must be application/json"));
    }
    let (value, repeated) =
        json::value(bytes).map_err(|error| Error::invalid("body", format!("is not valid JSON: {error}")))?;
    if value.is_null() {
        // An optional body must be an object if it is present.
        return Err(Error::invalid("body", "must be a JSON object").into());
    }
    if !repeated.is_empty() {
        let mut problems = diagnose::<T>(&value);
        for name in repeated {
            problems.add(name, "appears more than once");
        }
        problems.finish()?;
    }
    read(&value)
}

/// The value as the type of the operation.
///
/// # Errors
/// `INVALID_PARAMS` with every field that violates the schema.
pub(crate) fn read<T: ParseFromJSON>(value: &Value) -> Result<T, ApiError> {
    T::parse_from_json(Some(value.clone())).map_err(|error| {
        // A rule that is not in the schema gets the framework's own message.
        let other = || Error::invalid("body", rule(error.message()).to_owned());
        diagnose::<T>(value).finish().err().unwrap_or_else(other).into()
    })
}

/// Whether a media type is JSON.
pub(crate) fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_types_are_json() {
        for good in ["application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"] {
            assert!(is_json(good), "{good}");
        }
        for bad in ["text/plain", "text/json", "application/jsonx", "", "application/x-www-form-urlencoded"] {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
