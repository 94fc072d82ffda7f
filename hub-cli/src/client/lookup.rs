//! Objects of a hub by id or unique name.

use hub_core::{
    access::{Actor, Role, UserActor},
    id::{AppId, BotId, ChannelId, Id, Kind, UserId},
    page::MAX_LIMIT,
    plugins::PluginRef,
};
use serde_json::{Value, json};

use super::{Client, Query};
use crate::{
    args::PageArgs,
    document::{next_cursor, take_items},
    exit::Failure,
    screen, suggest,
};

/// Items that are searched for a name.
const MAX_SEARCHED: usize = 2_000;

/// A channel of a bot.
#[derive(Debug, Clone, Copy)]
pub struct ChannelRef {
    pub bot: BotId,
    pub channel: ChannelId,
}

impl ChannelRef {
    pub fn path(self) -> String {
        format!("/api/bots/{}/channels/{}", self.bot, self.channel)
    }
}

/// An app on a bot.
#[derive(Debug, Clone, Copy)]
pub struct InstallationRef {
    pub bot: BotId,
    pub app: AppId,
}

impl InstallationRef {
    pub fn path(self) -> String {
        format!("/api/bots/{}/apps/{}", self.bot, self.app)
    }
}

impl Client {
    /// A bot by id or name.
    pub async fn bot(&self, wanted: &str) -> Result<BotId, Failure> {
        match wanted.parse() {
            Ok(id) => Ok(id),
            Err(_) => id_of(&self.named("/api/bots", "bot", wanted, &["name"], "hub-cli bots list").await?),
        }
    }

    /// A channel of a bot by id or name.
    pub async fn channel(&self, bot: BotId, wanted: &str) -> Result<ChannelId, Failure> {
        if let Ok(id) = wanted.parse() {
            return Ok(id);
        }
        let path = format!("/api/bots/{bot}/channels");
        let hint = "hub-cli channels list --bot BOT";
        id_of(&self.named(&path, "channel", wanted, &["name"], hint).await?)
    }

    /// A channel and its bot, each by id or name.
    pub async fn channel_ref(&self, bot: &str, channel: &str) -> Result<ChannelRef, Failure> {
        let bot = self.bot(bot).await?;
        Ok(ChannelRef { bot, channel: self.channel(bot, channel).await? })
    }

    /// The channel of a bot with this name, without regard to case.
    pub async fn channel_named(&self, bot: BotId, name: &str) -> Result<Option<Value>, Failure> {
        let is_it =
            |item: &Value| item["name"].as_str().unwrap_or_default().to_lowercase() == name.to_lowercase();
        self.first(&format!("/api/bots/{bot}/channels"), is_it).await
    }

    /// An app by id, short name or name.
    pub async fn app(&self, wanted: &str) -> Result<Value, Failure> {
        if let Ok(id) = wanted.parse::<AppId>() {
            return self.get(&format!("/api/apps/{id}")).await;
        }
        self.named("/api/apps", "app", wanted, &["slug", "name"], "hub-cli apps list").await
    }

    /// An app and a bot, each by id or name.
    pub async fn installation_ref(&self, app: &str, bot: &str) -> Result<InstallationRef, Failure> {
        let bot = self.bot(bot).await?;
        Ok(InstallationRef { bot, app: id_of(&self.app(app).await?)? })
    }

    /// An app on a bot, as the list of the bot's apps shows it.
    pub async fn installation(&self, place: InstallationRef) -> Result<Value, Failure> {
        let app = json!(place.app);
        let path = format!("/api/bots/{}/apps", place.bot);
        self.first(&path, |one| one["app_id"] == app).await?.ok_or_else(|| {
            Failure::not_found(format!("the app {} is not on the bot {}", place.app, place.bot))
                .with_hint("hub-cli apps list --bot BOT lists them")
        })
    }

    /// A user by id or name.
    pub async fn user(&self, wanted: &str) -> Result<Value, Failure> {
        if let Ok(id) = wanted.parse::<UserId>() {
            return self.get(&format!("/api/admin/users/{id}")).await;
        }
        let name = wanted.to_lowercase();
        let filters = [("q", Some(name.clone()))];
        let found = self.search("/api/admin/users", &filters, |user| user["username"] == name).await?;
        found.into_iter().next().ok_or_else(|| {
            Failure::not_found(format!("there is no user called {wanted}")).with_hint("hub-cli users list")
        })
    }

    /// The path of a user, by id or name.
    pub async fn user_path(&self, wanted: &str) -> Result<String, Failure> {
        let id: UserId = id_of(&self.user(wanted).await?)?;
        Ok(format!("/api/admin/users/{id}"))
    }

    /// The hub with the user as the caller whom a flag for files names. A server has the user of its key: the flag may
    /// name that one, so that the same line works with both.
    pub async fn as_user(&self, flag: &str, name: Option<&str>) -> Result<Self, Failure> {
        if self.hub().is_some() {
            let name =
                name.ok_or_else(|| Failure::usage(format!("the owner is missing: add {flag} NAME")))?;
            let id = id_of(&self.user(name).await?)?;
            return Ok(self.acting_as(Actor::User(UserActor::embedded(id, Role::Member))));
        }
        let Some(name) = name else { return Ok(self.clone()) };
        let me = self.get("/api/auth/me").await?;
        let username = me["username"].as_str().unwrap_or_default();
        if username.eq_ignore_ascii_case(name) {
            return Ok(self.clone());
        }
        let username = screen::clean(username);
        Err(Failure::usage(format!("{flag} {name}: you are signed in as {username}"))
            .with_hint(format!("leave {flag} out, sign in as {name}, or add --local to work on the files")))
    }

    /// A plugin by name or id, with its versions and the source of the newest; by the id of a version with that
    /// version's source.
    pub async fn plugin(&self, wanted: &str) -> Result<Value, Failure> {
        self.get(&format!("/api/plugins/{}", self.plugin_ref(wanted).await?)).await
    }

    /// The id of a plugin by name or id, or of a version by id.
    pub async fn plugin_ref(&self, wanted: &str) -> Result<String, Failure> {
        if wanted.parse::<PluginRef>().is_ok() {
            return Ok(wanted.to_owned());
        }
        let found = self.plugin_named(wanted, false).await?;
        found.as_ref().and_then(|plugin| plugin["id"].as_str()).map(str::to_owned).ok_or_else(|| {
            Failure::not_found(format!("there is no plugin called {wanted}"))
                .with_hint("hub-cli plugins list, hub-cli plugins pending")
        })
    }

    /// The plugin with a name; with `mine` only one of the caller.
    pub async fn plugin_named(&self, name: &str, mine: bool) -> Result<Option<Value>, Failure> {
        let query = [("name", Some(name.to_owned())), ("mine", mine.then(|| "true".to_owned()))];
        let mut found = self.call("GET", "/api/plugins", &query, &Value::Null).await?;
        Ok(take_items(&mut found).into_iter().next())
    }

    /// The first item of a list that is the one, among those that are searched.
    pub async fn first(
        &self,
        path: &str,
        is_it: impl FnMut(&Value) -> bool,
    ) -> Result<Option<Value>, Failure> {
        Ok(self.search(path, &[], is_it).await?.into_iter().next())
    }

    /// Items of the list at a path, as far as they are searched.
    async fn search(
        &self,
        path: &str,
        filters: &Query<'_>,
        is_it: impl FnMut(&Value) -> bool,
    ) -> Result<Vec<Value>, Failure> {
        let mut searched = 0;
        let is_searched = |_: &Value| {
            searched += 1;
            searched <= MAX_SEARCHED
        };
        Ok(self.items_while(path, filters, is_searched).await?.into_iter().filter(is_it).collect())
    }

    /// The items of a list before the first one that `is_wanted` rejects.
    pub async fn items_while(
        &self,
        path: &str,
        filters: &Query<'_>,
        mut is_wanted: impl FnMut(&Value) -> bool,
    ) -> Result<Vec<Value>, Failure> {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let mut page = self.list(path, filters, &PageArgs { limit: MAX_LIMIT, cursor }).await?;
            cursor = next_cursor(&page);
            for item in take_items(&mut page) {
                if !is_wanted(&item) {
                    return Ok(found);
                }
                found.push(item);
            }
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }

    /// The only item of a list that has a name, in one of these fields.
    async fn named(
        &self,
        path: &str,
        kind: &str,
        wanted: &str,
        fields: &[&str],
        hint: &str,
    ) -> Result<Value, Failure> {
        let mut others = Vec::new();
        let is_it = |item: &Value| {
            let names: Vec<&str> = fields.iter().filter_map(|field| item[*field].as_str()).collect();
            others.extend(names.iter().map(|name| screen::clean(name)));
            names.contains(&wanted)
        };
        let mut found = self.search(path, &[], is_it).await?;
        match found.len() {
            0 => Err(Failure::not_found(format!("there is no {kind} called {wanted}"))
                .with_hint(suggest::hint(wanted, others, hint))),
            1 => Ok(found.remove(0)),
            count => {
                let ids: Vec<_> = found.iter().filter_map(|one| one["id"].as_str()).take(5).collect();
                Err(Failure::usage(format!("{count} {kind}s are called {wanted}"))
                    .with_hint(format!("use an id: {}", ids.join(", "))))
            }
        }
    }
}

/// The id in a document.
pub fn id_of<K: Kind>(document: &Value) -> Result<Id<K>, Failure> {
    let id = document["id"].as_str().and_then(|id| id.parse().ok());
    id.ok_or_else(|| Failure::unreachable("the server's response has no id"))
}
