//! Styles and scripts, compiled into the program. Their address contains a hash of all of them, so that browsers may
//! keep them for ever.

use std::{io::Write as _, sync::LazyLock};

use data_encoding::HEXLOWER;
use flate2::{Compression, write::GzEncoder};
use hub_core::ErrorCode;
use poem::{IntoResponse, Request, Response, Result, handler, http::header, web::Path};
use sha2::{Digest, Sha256};

use crate::envelope::ApiError;

/// The path of all files.
pub(super) const ROUTE: &str = "/console/assets/:id/:file";

struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $content_type:literal) => {
        Asset { name: $name, content_type: $content_type, bytes: include_bytes!(concat!("assets/", $name)) }
    };
}

static ASSETS: &[Asset] = &[
    asset!("console.css", "text/css; charset=utf-8"),
    asset!("page.js", "text/javascript; charset=utf-8"),
    asset!("live.js", "text/javascript; charset=utf-8"),
    asset!("keys.js", "text/javascript; charset=utf-8"),
    asset!("palette.js", "text/javascript; charset=utf-8"),
    asset!("signature.js", "text/javascript; charset=utf-8"),
    asset!("passkey.js", "text/javascript; charset=utf-8"),
    asset!("security.js", "text/javascript; charset=utf-8"),
];

/// The hash of all files, and each compressed.
static PREPARED: LazyLock<(String, Vec<Vec<u8>>)> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    let compressed = ASSETS.iter().map(|asset| {
        hash.update(asset.bytes);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder
            .write_all(asset.bytes)
            .and_then(|()| encoder.finish())
            .expect("writing to a vector cannot fail")
    });
    let compressed = compressed.collect();
    (HEXLOWER.encode(&hash.finalize()[..8]), compressed)
});

/// The address of a file.
pub(super) fn path(name: &str) -> String {
    format!("/console/assets/{}/{name}", PREPARED.0)
}

/// Whether a path is that of a file.
pub(super) fn is_asset(path: &str) -> bool {
    path.starts_with("/console/assets/")
}

#[handler]
pub(super) fn serve(request: &Request, Path((id, file)): Path<(String, String)>) -> Result<Response> {
    let found = ASSETS.iter().zip(&PREPARED.1).find(|(asset, _)| id == PREPARED.0 && asset.name == file);
    let (asset, compressed) = found
        .ok_or_else(|| ApiError::new(ErrorCode::NotFound, "this file is of another version of the hub"))?;
    let is_compressed = request.header(header::ACCEPT_ENCODING).is_some_and(|text| text.contains("gzip"));
    let response = if is_compressed {
        compressed.as_slice().with_header(header::CONTENT_ENCODING, "gzip").into_response()
    } else {
        asset.bytes.into_response()
    };
    Ok(response
        .with_content_type(asset.content_type)
        .with_header(header::CACHE_CONTROL, "public, max-age=31536000, immutable")
        .with_header(header::VARY, "Accept-Encoding")
        .into_response())
}

/// Two people with a hub between them.
const ICON: &str = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'>\
<rect width='32' height='32' rx='7' fill='#0a58ca'/>\
<path d='M8 16h16' stroke='#fff' stroke-width='3'/>\
<circle cx='8' cy='16' r='4' fill='#fff'/><circle cx='24' cy='16' r='4' fill='#fff'/>\
<circle cx='16' cy='16' r='5' fill='#fff'/></svg>";

#[handler]
pub(crate) fn icon() -> Response {
    ICON.with_content_type("image/svg+xml")
        .with_header(header::CACHE_CONTROL, "public, max-age=86400")
        .into_response()
}
