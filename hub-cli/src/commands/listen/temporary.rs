//! The channel of a listener that names a bot: created at the start, deleted at the end.

use hub_core::random::Random;
use serde_json::json;
use url::Url;

use crate::{
    args::HubArgs,
    client::{ChannelRef, Client, address, id_of},
    context::Context,
    document::cell,
    exit::Failure,
    local,
};

/// A channel for the duration of the command.
#[derive(Debug)]
pub struct Temporary {
    client: Client,
    place: ChannelRef,
    pub key: String,
    pub server: Url,
}

impl Temporary {
    /// Creates a channel on a bot, for all of its messages.
    pub async fn create(hub: &HubArgs, bot: &str, cx: &Context) -> Result<Self, Failure> {
        let client = cx.hub(hub).await?;
        let server = if client.hub().is_some() {
            local::address(&local::settings(&hub.local)?)
        } else {
            address(hub.server.as_ref(), hub.profile.profile.as_deref())?
        };
        let bot = client.bot(bot).await?;
        let number = u16::from_be_bytes(Random::system().bytes());
        let name = format!("hub-cli listen {number:04x} (temporary)");
        let channel = client.post(&format!("/api/bots/{bot}/channels"), &json!({ "name": name })).await?;
        let place = ChannelRef { bot, channel: id_of(&channel)? };
        Ok(Self { client, place, key: cell(&channel, "api_key"), server })
    }

    /// Deletes the channel, with its messages.
    pub async fn delete(self) -> Result<(), Failure> {
        let deleted = self.client.delete(&self.place.path()).await;
        deleted.map(drop).map_err(|failure| {
            let hint =
                format!("hub-cli channels delete {} --bot {} --yes", self.place.channel, self.place.bot);
            failure.with_hint(hint)
        })
    }
}
