//! Apps: made, changed, put onto bots, and their logs.

use hub_core::{
    Hub,
    access::Actor,
    apps::{
        App, AppCall, AppEvent, AppPatch, AppView, Apps, CreatedApp, Install, Installation, InstalledApp,
        NewApp, NewInstallation, token_prefix,
    },
    id::{AppId, BotId},
    page::{MAX_LIMIT, PageRequest},
};
use serde_json::{Value, json};

use super::{Reach, expect_user, page_document, plugins::user};
use crate::{args::PageArgs, exit::Failure, likeness, local, screen};

/// Things that are looked through for a name.
const MAX_SEEN: usize = 2_000;

/// Which log of an app on a bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppLog {
    /// What it was told.
    Events,
    /// What it asked.
    Calls,
}

/// An app on a bot.
#[derive(Debug, Clone, Copy)]
pub struct AppPlace {
    /// The bot.
    pub bot: BotId,
    /// The app.
    pub app: AppId,
}

impl AppPlace {
    fn path(self) -> String {
        format!("/api/bots/{}/apps/{}", self.bot, self.app)
    }
}

impl Reach {
    /// A page of apps.
    pub async fn apps(&self, view: AppView, page: &PageArgs) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let request = request(&Apps::app_list(&Actor::Operator, view), page)?;
                Ok(page_document(&hub.apps().list(&Actor::Operator, view, &request).await?, document))
            }
            Self::Remote(remote) => {
                let query = [&[("view", Some(view.as_str().to_owned()))][..], &paging(page)].concat();
                remote.call("GET", "/api/apps", &query, &Value::Null).await
            }
        }
    }

    /// A page of the apps on a bot.
    pub async fn installed_apps(&self, bot: BotId, page: &PageArgs) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let request = request(&Apps::installed_list(bot), page)?;
                let installed = hub.apps().installed(&Actor::Operator, bot, &request).await?;
                Ok(page_document(&installed, installation_document))
            }
            Self::Remote(remote) => {
                remote.call("GET", &format!("/api/bots/{bot}/apps"), &paging(page), &Value::Null).await
            }
        }
    }

    /// An app by id, short name or name.
    pub async fn app(&self, wanted: &str) -> Result<Value, Failure> {
        if let Ok(id) = wanted.parse::<AppId>() {
            return match self {
                Self::Local(hub) => Ok(document(&hub.apps().get(&Actor::Operator, id).await?)),
                Self::Remote(remote) => {
                    remote.call("GET", &format!("/api/apps/{id}"), &[], &Value::Null).await
                }
            };
        }
        let pages = async |page: PageArgs| self.apps(AppView::All, &page).await;
        called(pages, "app", wanted, &["slug", "name"], "hub-cli apps list").await
    }

    /// A bot by id or name.
    pub async fn bot(&self, wanted: &str) -> Result<BotId, Failure> {
        match (self, wanted.parse::<BotId>()) {
            (_, Ok(id)) => Ok(id),
            (Self::Local(hub), Err(_)) => Ok(local::find_bot(hub, wanted).await?.id),
            (Self::Remote(remote), Err(_)) => {
                let pages = async |page: PageArgs| {
                    remote.call("GET", "/api/bots", &paging(&page), &Value::Null).await
                };
                id_of(&called(pages, "bot", wanted, &["name"], "hub-cli bots list").await?)
            }
        }
    }

    /// An app on a bot, by what somebody calls them.
    pub async fn app_place(&self, app: &str, bot: &str) -> Result<AppPlace, Failure> {
        self.app_place_on(app, self.bot(bot).await?).await
    }

    /// An app on a bot that is known.
    pub async fn app_place_on(&self, app: &str, bot: BotId) -> Result<AppPlace, Failure> {
        Ok(AppPlace { bot, app: id_of(&self.app(app).await?)? })
    }

    /// An app on a bot, as its bot's list shows it.
    pub async fn installation(&self, place: AppPlace) -> Result<Value, Failure> {
        let app = json!(place.app);
        let pages = async |page: PageArgs| self.installed_apps(place.bot, &page).await;
        let found = search(pages, |installation| installation["app_id"] == app).await?;
        found.into_iter().next().ok_or_else(|| {
            Failure::not_found(format!("the app {} is not on the bot {}", place.app, place.bot))
                .with_hint("hub-cli apps list --bot BOT shows what is")
        })
    }

    /// Makes an app. On files `owner` says whose it is, on a server the key.
    pub async fn create_app(&self, new: NewApp, owner: Option<&str>) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let owner = owner.ok_or_else(|| Failure::usage("whose is it? add --owner NAME"))?;
                let created = hub.apps().create(&user(hub, owner).await?, new, None).await?;
                Ok(created_document(&created))
            }
            Self::Remote(remote) => {
                expect_user(remote, "--owner", owner).await?;
                let mut body = given(&new.rest);
                body["name"] = new.name.into();
                if let Some(slug) = new.slug {
                    body["slug"] = slug.into();
                }
                remote.call("POST", "/api/apps", &[], &body).await
            }
        }
    }

    /// Changes an app.
    pub async fn update_app(&self, app: AppId, patch: AppPatch) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => Ok(document(&hub.apps().update(&Actor::Operator, app, patch).await?)),
            Self::Remote(remote) => {
                remote.call("PUT", &format!("/api/apps/{app}"), &[], &given(&patch)).await
            }
        }
    }

    /// Tries an app's URL for events again.
    pub async fn verify_app(&self, app: AppId) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => Ok(document(&hub.apps().verify_url(&Actor::Operator, app).await?)),
            Self::Remote(remote) => {
                remote.call("POST", &format!("/api/apps/{app}/verify-url"), &[], &Value::Null).await
            }
        }
    }

    /// Deletes an app.
    pub async fn delete_app(&self, app: AppId) -> Result<(), Failure> {
        match self {
            Self::Local(hub) => Ok(hub.apps().delete(&Actor::Operator, app).await?),
            Self::Remote(remote) => {
                remote.call("DELETE", &format!("/api/apps/{app}"), &[], &Value::Null).await.map(|_| ())
            }
        }
    }

    /// Puts an app onto a bot.
    pub async fn install_app(&self, bot: BotId, new: NewInstallation) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => match hub.apps().install(&Actor::Operator, bot, new, None).await? {
                Install::Done(installed) => Ok(installed_document(&installed)),
                Install::AtTheApp(url) => Ok(json!({ "needs_oauth": true, "oauth_redirect": url })),
            },
            Self::Remote(remote) => {
                remote.call("POST", &format!("/api/bots/{bot}/apps/install"), &[], &given(&new)).await
            }
        }
    }

    /// Takes an app off a bot.
    pub async fn uninstall_app(&self, place: AppPlace) -> Result<(), Failure> {
        match self {
            Self::Local(hub) => Ok(hub.apps().uninstall(&Actor::Operator, place.bot, place.app).await?),
            Self::Remote(remote) => remote.call("DELETE", &place.path(), &[], &Value::Null).await.map(|_| ()),
        }
    }

    /// Gives an app on a bot a new token.
    pub async fn rotate_app_token(&self, place: AppPlace, grace: Option<u32>) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let apps = hub.apps();
                let new = apps.regenerate_token(&Actor::Operator, place.bot, place.app, grace).await?;
                Ok(json!({
                    "app_token": new.app_token.expose(), "old_token_expires_at": new.old_token_expires_at,
                }))
            }
            Self::Remote(remote) => {
                let path = format!("{}/regenerate-token", place.path());
                let grace = [("grace_hours", grace.map(|hours| hours.to_string()))];
                remote.call("POST", &path, &grace, &Value::Null).await
            }
        }
    }

    /// A page of a log of an app on a bot.
    pub async fn app_log(&self, log: AppLog, place: AppPlace, page: &PageArgs) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => local_log(hub, log, place, page).await,
            Self::Remote(remote) => {
                let name = match log {
                    AppLog::Events => "events",
                    AppLog::Calls => "api-logs",
                };
                let path = format!("{}/{name}", place.path());
                remote.call("GET", &path, &paging(page), &Value::Null).await
            }
        }
    }
}

async fn local_log(hub: &Hub, log: AppLog, place: AppPlace, page: &PageArgs) -> Result<Value, Failure> {
    let AppPlace { bot, app } = place;
    match log {
        AppLog::Events => {
            let request = request(&Apps::event_list(bot, app), page)?;
            let events = hub.apps().events(&Actor::Operator, bot, app, &request).await?;
            Ok(page_document(&events, event_document))
        }
        AppLog::Calls => {
            let request = request(&Apps::call_list(bot, app), page)?;
            let calls = hub.apps().calls(&Actor::Operator, bot, app, &request).await?;
            Ok(page_document(&calls, call_document))
        }
    }
}

fn request(list: &str, page: &PageArgs) -> Result<PageRequest, Failure> {
    Ok(PageRequest::parse(list, Some(page.limit), page.cursor.as_deref())?)
}

pub(super) fn paging(page: &PageArgs) -> [(&'static str, Option<String>); 2] {
    [("limit", Some(page.limit.to_string())), ("cursor", page.cursor.clone())]
}

/// The id in a document.
pub fn id_of<K: hub_core::id::Kind>(document: &Value) -> Result<hub_core::id::Id<K>, Failure> {
    let id = document["id"].as_str().and_then(|id| id.parse().ok());
    id.ok_or_else(|| Failure::unreachable("the server's answer has no id"))
}

/// The items of a list that are meant.
async fn search(
    pages: impl AsyncFn(PageArgs) -> Result<Value, Failure>,
    mut is_it: impl FnMut(&Value) -> bool,
) -> Result<Vec<Value>, Failure> {
    let (mut found, mut seen, mut cursor) = (Vec::new(), 0, None);
    loop {
        let mut page = pages(PageArgs { limit: MAX_LIMIT, cursor }).await?;
        let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        seen += items.len();
        found.extend(items.into_iter().filter(&mut is_it));
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() || seen >= MAX_SEEN {
            return Ok(found);
        }
    }
}

/// The only thing of a list that has a name, in one of these fields.
pub(super) async fn called(
    pages: impl AsyncFn(PageArgs) -> Result<Value, Failure>,
    what: &str,
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
    let mut found = search(pages, is_it).await?;
    match found.len() {
        0 => Err(Failure::not_found(format!("there is no {what} called {wanted}"))
            .with_hint(likeness::hint(wanted, others, hint))),
        1 => Ok(found.remove(0)),
        count => {
            let ids: Vec<_> = found.iter().filter_map(|one| one["id"].as_str()).take(5).collect();
            Err(Failure::usage(format!("{count} {what}s are called {wanted}"))
                .with_hint(format!("use an id: {}", ids.join(", "))))
        }
    }
}

/// A change without what it leaves alone.
pub(super) fn given(change: &impl serde::Serialize) -> Value {
    let mut body = json!(change);
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    body
}

fn document(app: &App) -> Value {
    given(app)
}

fn created_document(created: &CreatedApp) -> Value {
    let mut document = document(&created.app);
    document["client_secret"] = created.client_secret.expose().into();
    document["webhook_secret"] = created.webhook_secret.expose().into();
    document
}

fn installation_document(installation: &Installation) -> Value {
    let mut document = given(installation);
    if let Some(fields) = document.as_object_mut() {
        fields.remove("token_last4");
    }
    document["app_token_prefix"] = token_prefix(&installation.token_last4).into();
    document
}

fn installed_document(installed: &InstalledApp) -> Value {
    let mut document = installation_document(&installed.installation);
    document["app_token"] = installed.app_token.expose().into();
    document
}

fn event_document(event: &AppEvent) -> Value {
    json!({
        "id": event.id,
        "trace_id": event.trace_id,
        "event_type": event.kind,
        "event": serde_json::from_str::<Value>(&event.event).unwrap_or_default(),
        "status": event.state.as_str(),
        "attempts": event.attempts,
        "next_attempt_at": event.next_attempt_at,
        "response_status": event.response_status,
        "response_body": event.response_body,
        "error": event.error,
        "duration_ms": event.duration_ms,
        "created_at": event.created_at,
    })
}

fn call_document(call: &AppCall) -> Value {
    json!({
        "id": call.id,
        "trace_id": call.trace_id,
        "method": call.method,
        "path": call.path,
        "request_body": call.request_body,
        "status_code": call.status,
        "response_body": call.response_body,
        "duration_ms": call.duration_ms,
        "created_at": call.created_at,
    })
}
