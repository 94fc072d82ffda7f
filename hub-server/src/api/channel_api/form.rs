//! A send in either of its forms: a JSON object, or `multipart/form-data` that brings the file itself
//! (`contract.md` §5.2).

use bytes::Bytes;
use hub_core::{
    Error, ErrorCode, Hub,
    bots::{Attachment, NewSend},
    media::MediaRoom,
};
use multer::{Constraints, Field, Multipart, SizeLimit};
use poem::{Request, RequestBody, Result, http::header};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaMediaType, MetaRequest, MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};
use serde_json::{Map, Value};

use super::ChannelSend;
use crate::{
    envelope::{ApiError, is_over_cap, too_large},
    wire::{Body, read},
};

/// The texts of a form; other fields are ignored, as on all of the channel API.
const TEXTS: [&str; 6] = ["to_user_id", "recipient", "content", "text", "context_token", "format"];
const FILE: &str = "file";
/// Largest text of a form, in bytes: what a message may have, and more than a permission to answer has.
const MAX_TEXT: u64 = 256 * 1024;

/// What a channel sends.
#[derive(Debug)]
pub struct SendBody {
    /// The message.
    pub(super) message: NewSend,
    /// Where the file is, until it is stored.
    pub(super) _room: Option<MediaRoom>,
}

impl<'a> ApiExtractor<'a> for SendBody {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        ChannelSend::register(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        let json = MetaMediaType { content_type: "application/json", schema: ChannelSend::schema_ref() };
        let form = MetaMediaType { content_type: "multipart/form-data", schema: schema() };
        Some(MetaRequest { description: None, content: vec![json, form], required: true })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        options: ExtractParamOptions<()>,
    ) -> Result<Self> {
        let content_type = request.header(header::CONTENT_TYPE).unwrap_or_default();
        if let Ok(boundary) = multer::parse_boundary(content_type) {
            return Ok(read_form(request, body, boundary).await?);
        }
        let Body(json) = Body::<ChannelSend>::from_request(request, body, options).await?;
        Ok(Self { message: json.try_into().map_err(ApiError::from)?, _room: None })
    }
}

/// What the form may hold, for the document.
fn schema() -> MetaSchemaRef {
    let property = |name: &'static str| {
        let schema = MetaSchema { description: Some("As in the JSON body."), ..MetaSchema::new("string") };
        (name, MetaSchemaRef::Inline(Box::new(schema)))
    };
    let file = MetaSchema {
        description: Some("The file, with its name and its type; people see it after the text."),
        ..MetaSchema::new_with_format("string", "binary")
    };
    let file = (FILE, MetaSchemaRef::Inline(Box::new(file)));
    let properties = std::iter::once(file).chain(TEXTS.map(property)).collect();
    MetaSchemaRef::Inline(Box::new(MetaSchema { properties, ..MetaSchema::new("object") }))
}

async fn read_form(
    request: &Request,
    body: &mut RequestBody,
    boundary: String,
) -> Result<SendBody, ApiError> {
    let hub = request.data::<Hub>().ok_or_else(|| Error::internal("a request without its hub"))?;
    let max = hub.context().config.media.max_outbound;
    let length = request.header(header::CONTENT_LENGTH).and_then(|text| text.parse().ok());
    let room = hub.media().room(length.unwrap_or(max).min(max)).await;
    let taken = body.take().map_err(|error| Error::invalid("body", error.to_string()))?;
    let limit = SizeLimit::new().per_field(MAX_TEXT).for_field(FILE, max as u64);
    let mut form = Multipart::with_constraints(
        taken.into_bytes_stream(),
        boundary,
        Constraints::new().size_limit(limit),
    );
    let (mut texts, mut file) = (Map::new(), None);
    while let Some(field) = form.next_field().await.map_err(|error| unreadable(&error))? {
        let name = field.name().unwrap_or_default().to_owned();
        let known = TEXTS.contains(&name.as_str());
        if texts.contains_key(&name) || (name == FILE && file.is_some()) {
            return Err(Error::invalid(name, "stands there twice").into());
        }
        if name == FILE {
            file = Some(attachment(field).await?);
        } else if known {
            let text = String::from_utf8(bytes(field).await?.to_vec())
                .map_err(|_| Error::invalid(name.clone(), "is not UTF-8"))?;
            texts.insert(name, Value::String(text));
        } else {
            bytes(field).await?;
        }
    }
    let mut message = NewSend::try_from(read::<ChannelSend>(&Value::Object(texts))?)?;
    message.media = file;
    Ok(SendBody { message, _room: Some(room) })
}

async fn attachment(field: Field<'_>) -> Result<Attachment, ApiError> {
    let file_name = field.file_name().unwrap_or_default().to_owned();
    let content_type = field.content_type().map(ToString::to_string);
    Ok(Attachment::Bytes { file_name, content_type, bytes: bytes(field).await? })
}

async fn bytes(field: Field<'_>) -> Result<Bytes, ApiError> {
    field.bytes().await.map_err(|error| unreadable(&error))
}

fn unreadable(error: &multer::Error) -> ApiError {
    match error {
        multer::Error::FieldSizeExceeded { field_name, limit } => {
            let name = field_name.as_deref().unwrap_or("a field");
            ApiError::new(ErrorCode::PayloadTooLarge, format!("{name} may have {limit} bytes"))
        }
        error if is_over_cap(error) => too_large().into(),
        error => Error::invalid("body", format!("is not a form: {error}")).into(),
    }
}
