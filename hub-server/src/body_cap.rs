//! Bodies are counted while they are read: nothing in the process ever holds more than the cap.

use http_body_util::{BodyExt, Limited};
use poem::{Body, Request, http::header};

use crate::envelope::{ApiError, too_large};

/// Refuses a declared length over the cap and makes reading fail at the cap otherwise, also for chunked bodies.
/// (poem's own `SizeLimit` answers 411 to every request without a declared length.)
pub(crate) fn limit(request: &mut Request, cap: usize) -> Result<(), ApiError> {
    let declared = request.header(header::CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok());
    if declared.is_some_and(|length| length > cap as u64) {
        return Err(too_large().into());
    }
    let body: http_body_util::combinators::BoxBody<_, std::io::Error> = request.take_body().into();
    let limited = Limited::new(body, cap).map_err(std::io::Error::other).boxed();
    request.set_body(Body::from(limited));
    Ok(())
}
