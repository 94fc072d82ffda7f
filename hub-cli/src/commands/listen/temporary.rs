//! The channel of a listener that names a bot: created at the start, deleted at the end.

use hub_core::random::Random;
use hub_server::banner::public_url;
use url::Url;

use crate::{
    args::HubArgs,
    commands::users::cell,
    exit::Failure,
    local,
    reach::{ChannelPlace, Reach, address},
};

/// A channel that lasts as long as the command.
#[derive(Debug)]
pub struct Temporary {
    reach: Reach,
    place: ChannelPlace,
    /// Its key.
    pub key: String,
    /// The server that has it.
    pub server: Url,
}

impl Temporary {
    /// Creates a channel on a bot, for all of its messages.
    pub async fn create(hub: &HubArgs, bot: &str, local: bool) -> Result<Self, Failure> {
        let reach = Reach::open(hub, local).await?;
        let server = match &reach {
            Reach::Local(_) => {
                let settings = local::settings(&hub.local)?;
                public_url(&settings, &settings.listen)
            }
            Reach::Remote(_) => address(hub.server.as_ref(), hub.profile.profile.as_deref())?,
        };
        let bot = reach.bot(bot).await?;
        let number = u16::from_be_bytes(Random::system().bytes());
        let name = format!("hub-cli listen {number:04x} (temporary)");
        let channel = reach.create_channel(bot, name, None, false).await?;
        let id = cell(&channel, "id").parse();
        let channel_id = id.map_err(|_| Failure::unreachable("the hub returned no id of the channel"))?;
        let place = ChannelPlace { bot, channel: channel_id };
        Ok(Self { reach, place, key: cell(&channel, "api_key"), server })
    }

    /// Deletes the channel, with its messages.
    pub async fn delete(self) -> Result<(), Failure> {
        let deleted = self.reach.delete_channel(self.place).await;
        self.reach.close().await;
        deleted.map_err(|failure| {
            let hint =
                format!("hub-cli channels delete {} --bot {} --yes", self.place.channel, self.place.bot);
            failure.with_hint(hint)
        })
    }
}
