//! Origins that may open a WebSocket. Programs that are not browsers send no `Origin` and are not restricted.

use hub_core::{ErrorCode, Hub, access::Actor};
use poem::{Request, http::header};

use crate::{AppSettings, envelope::ApiError};

/// Accepts the hub's own pages, and the origins that the channel allows.
pub(super) async fn check(
    hub: &Hub,
    settings: &AppSettings,
    client: &Actor,
    request: &Request,
) -> Result<(), ApiError> {
    let mut origins = request.headers().get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let origin = origin.to_str().ok().filter(|_| origins.next().is_none());
    if origin.is_some_and(|origin| settings.is_own_origin(origin)) {
        return Ok(());
    }
    let channel = hub.channels().of_client(client.client()?).await?;
    if origin.is_some_and(|origin| channel.websocket.allows(origin)) {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::Forbidden,
        "pages of this origin may not connect; the channel's WebSocket sink can allow it (allowed_origins)",
    ))
}
