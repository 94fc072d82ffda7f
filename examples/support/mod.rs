//! What an example needs and is not about: a hub in a temporary folder, and somebody who binds a bot.

use std::{error::Error, time::Duration};

use hub_core::{
    Hub,
    access::{Actor, UserActor},
    accounts::{ClientInfo, NewUser},
    bots::{Bot, NewBind, NewSend},
    network::Network,
    random::Random,
    store::StoreConfig,
};
use tempfile::TempDir;

/// A running hub with one network; its folder goes when the first part is dropped.
pub async fn open(network: impl Network) -> Result<(TempDir, Hub), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = StoreConfig::Sqlite(folder.path().join("hub.db"));
    let hub =
        Hub::builder().store(store).secret_key(Random::system().bytes()).network(network).open().await?;
    hub.start().await?;
    Ok((folder, hub))
}

/// A plain text for the person who owns the bot.
pub fn text(content: &str) -> NewSend {
    NewSend { content: content.to_owned(), ..NewSend::default() }
}

/// Registers a user and binds a bot on the hub's only network, which confirms by itself.
pub async fn bind(hub: &Hub) -> Result<(Actor, Bot), Box<dyn Error>> {
    let password = "correct horse".into();
    let new = NewUser { username: "ada".to_owned(), password, display_name: None, email: None };
    let user = hub.accounts().register(new, None, &ClientInfo::default()).await?.me.user;
    let actor = Actor::User(UserActor::embedded(user.id, user.role));
    let login = hub.bots().start_bind(&actor, NewBind::default()).await?;
    let step = hub.bots().confirm_bind(&actor, login.bind_id, None, Duration::ZERO).await?;
    Ok((actor, step.bot.ok_or("the bot was not bound")?))
}
