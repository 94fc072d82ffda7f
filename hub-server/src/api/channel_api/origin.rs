//! Which pages may open a WebSocket (`contract.md` §5.1, reliability W1). Programs that are no browsers send no
//! `Origin` and are not concerned.

use hub_core::{ErrorCode, Hub, access::Actor};
use poem::{Request, http::header};

use crate::{AppSettings, envelope::ApiError};

/// Lets the hub's own pages in, and those that the channel allows.
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
