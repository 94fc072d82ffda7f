//! A form with a file and text fields: `multipart/form-data`.

use bytes::Bytes;
use hub_core::{Error, ErrorCode, Hub, bots::Attachment, file_name, media::MediaRoom};
use multer::{Constraints, Field, Multipart, SizeLimit};
use poem::{Request, RequestBody, Result, http::header};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaMediaType, MetaRequest, MetaSchema, MetaSchemaRef, Registry},
    types::ParseFromJSON,
};

use super::{Fields, twice};
use crate::{
    envelope::{ApiError, is_over_cap, too_large},
    wire::Body,
};

const FILE: &str = "file";
/// Maximum size of a text field of a form, in bytes: that of a message, which exceeds that of a context token.
const MAX_TEXT: u64 = 256 * 1024;
/// Maximum number of text fields of a form.
const MAX_FIELDS: usize = 100;

/// A body whose form has these text fields in addition to the file.
pub trait FormTexts: ParseFromJSON {
    /// Their names, which are those of the JSON body; other fields of a form are ignored.
    const TEXTS: &'static [&'static str];
}

/// A JSON object, or a form that may contain a file.
#[derive(Debug)]
pub struct FileForm<T> {
    /// The fields other than the file.
    pub value: T,
    /// The file; its bytes are never in JSON.
    pub file: Option<Attachment>,
    /// The file until it is stored.
    room: Option<MediaRoom>,
}

impl<T> FileForm<T> {
    /// A body that is not a form.
    pub fn without_file(value: T) -> Self {
        Self { value, file: None, room: None }
    }

    /// Whether it was a form.
    pub fn is_form(&self) -> bool {
        self.room.is_some()
    }
}

impl<'a, T: FormTexts> ApiExtractor<'a> for FileForm<T> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        let json = MetaMediaType { content_type: "application/json", schema: T::schema_ref() };
        let form = MetaMediaType { content_type: "multipart/form-data", schema: schema(T::TEXTS) };
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
        let Body(value) = Body::<T>::from_request(request, body, options).await?;
        Ok(Self::without_file(value))
    }
}

/// The fields of the form, for the document.
fn schema(texts: &[&'static str]) -> MetaSchemaRef {
    let property = |name: &&'static str| {
        let schema = MetaSchema { description: Some("As in the JSON body."), ..MetaSchema::new("string") };
        (*name, MetaSchemaRef::Inline(Box::new(schema)))
    };
    let file = MetaSchema {
        description: Some("The file, with its name and type; it is shown after the text."),
        ..MetaSchema::new_with_format("string", "binary")
    };
    let file = (FILE, MetaSchemaRef::Inline(Box::new(file)));
    let properties = std::iter::once(file).chain(texts.iter().map(property)).collect();
    MetaSchemaRef::Inline(Box::new(MetaSchema { properties, ..MetaSchema::new("object") }))
}

/// A form as it was sent: its text fields in their order, and the file.
#[derive(Debug)]
pub(crate) struct SentForm {
    pub(crate) texts: Vec<(String, String)>,
    pub(crate) file: Option<Attachment>,
    /// The file until it is stored.
    pub(crate) room: MediaRoom,
}

/// Reads `multipart/form-data` from the body of a request.
///
/// # Errors
/// `INVALID_PARAMS` if it is not one or contains two files, `PAYLOAD_TOO_LARGE`.
pub(crate) async fn read_multipart(
    request: &Request,
    body: &mut RequestBody,
    boundary: String,
) -> Result<SentForm, ApiError> {
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
    let mut sent = SentForm { texts: Vec::new(), file: None, room };
    while let Some(field) = form.next_field().await.map_err(|error| unreadable(&error))? {
        let name = field.name().unwrap_or_default().to_owned();
        if name == FILE {
            if sent.file.is_some() {
                return Err(twice(FILE));
            }
            sent.file = Some(attachment(field).await?);
            continue;
        }
        if sent.texts.len() >= MAX_FIELDS {
            return Err(Error::invalid("body", "has too many fields").into());
        }
        let bytes = bytes(field).await?;
        let text =
            String::from_utf8(bytes.to_vec()).map_err(|_| Error::invalid(name.clone(), "is not UTF-8"))?;
        sent.texts.push((name, text));
    }
    Ok(sent)
}

async fn read_form<T: FormTexts>(
    request: &Request,
    body: &mut RequestBody,
    boundary: String,
) -> Result<FileForm<T>, ApiError> {
    let sent = read_multipart(request, body, boundary).await?;
    let mut texts = Fields::default();
    for (name, text) in sent.texts.into_iter().filter(|(name, _)| T::TEXTS.contains(&name.as_str())) {
        texts.put(&name, text)?;
    }
    Ok(FileForm { value: texts.read()?, file: sent.file, room: Some(sent.room) })
}

async fn attachment(field: Field<'_>) -> Result<Attachment, ApiError> {
    let disposition = field.headers().get(header::CONTENT_DISPOSITION);
    let file_name = disposition.and_then(|value| file_name::of_disposition(value.as_bytes()));
    let content_type = field.content_type().map(ToString::to_string);
    Ok(Attachment::Bytes {
        file_name: file_name.unwrap_or_default(),
        content_type,
        bytes: bytes(field).await?,
    })
}

async fn bytes(field: Field<'_>) -> Result<Bytes, ApiError> {
    field.bytes().await.map_err(|error| unreadable(&error))
}

fn unreadable(error: &multer::Error) -> ApiError {
    match error {
        multer::Error::FieldSizeExceeded { field_name, limit } => {
            let name = field_name.as_deref().unwrap_or("a field");
            ApiError::new(ErrorCode::PayloadTooLarge, format!("{name} exceeds {limit} bytes"))
        }
        error if is_over_cap(error) => too_large().into(),
        error => Error::invalid("body", format!("is not a form: {error}")).into(),
    }
}
