//! Bodies that are a form or JSON, as programs and browsers prefer.

use hub_core::Error;
use poem::{FromRequest, Request, RequestBody, Result, http::header};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaMediaType, MetaRequest, Registry},
    types::ParseFromJSON,
};
use serde_json::{Map, Value};

use super::{Body, read};
use crate::envelope::ApiError;

mod file;

pub(crate) use file::read_multipart;
pub use file::{FileForm, FormTexts};

const FORM: &str = "application/x-www-form-urlencoded";

/// A JSON object, or a form whose fields are texts.
#[derive(Debug)]
pub struct FormOrJson<T> {
    /// The fields.
    pub value: T,
    /// Whether it was a form.
    pub is_form: bool,
}

impl<'a, T: ParseFromJSON> ApiExtractor<'a> for FormOrJson<T> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        let content = ["application/json", FORM]
            .map(|content_type| MetaMediaType { content_type, schema: T::schema_ref() });
        Some(MetaRequest { description: None, content: content.into(), required: true })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        options: ExtractParamOptions<()>,
    ) -> Result<Self> {
        let content_type = request.header(header::CONTENT_TYPE).unwrap_or_default();
        if !content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM) {
            let Body(value) = Body::<T>::from_request(request, body, options).await?;
            return Ok(Self { value, is_form: false });
        }
        let bytes = <Vec<u8> as FromRequest>::from_request(request, body).await?;
        let mut fields = Fields::default();
        for (name, value) in url::form_urlencoded::parse(&bytes) {
            fields.put(&name, value.into_owned())?;
        }
        Ok(Self { value: fields.read()?, is_form: true })
    }
}

/// The text fields of a form. Each may appear once (RFC 6749, section 3.1, requires that of parameters; a repeated
/// field has no meaning elsewhere either).
#[derive(Debug, Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, name: &str, value: String) -> Result<(), ApiError> {
        match self.0.insert(name.to_owned(), Value::String(value)) {
            Some(_) => Err(twice(name)),
            None => Ok(()),
        }
    }

    /// Their values, by the rules of the JSON body.
    fn read<T: ParseFromJSON>(self) -> Result<T, ApiError> {
        read(&Value::Object(self.0))
    }
}

fn twice(name: &str) -> ApiError {
    Error::invalid(name.to_owned(), "appears more than once").into()
}
