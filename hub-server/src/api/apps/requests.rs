//! Request bodies about apps. Bounds here reject the absurd; the rules are hub-core's.

use std::collections::BTreeMap;

use hub_core::{
    apps::{self, AppConfig, AppPatch, InstallationPatch, NewApp, NewInstallation},
    id::AppId,
};
use poem_openapi::{Enum, Object, types::Example};
use serde_json::json;

use crate::wire::{Checked, ConfigValue, JsonObject, Slug, Text, ToolName};

type Word = Text<0, 1024>;
type Url = Checked<0, 2048>;
type Body = Checked<0, 4096>;

/// Kinds of apps in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case", rename = "AppFilter")]
pub enum AppView {
    /// All apps that the caller may see.
    All,
    /// The caller's own apps.
    Own,
    /// Listed apps.
    Public,
    /// Apps that are installed on the caller's bots.
    Installed,
}

impl From<AppView> for apps::AppView {
    fn from(view: AppView) -> Self {
        match view {
            AppView::All => Self::All,
            AppView::Own => Self::Own,
            AppView::Public => Self::Public,
            AppView::Installed => Self::Installed,
        }
    }
}

/// A tool of an app.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none)]
pub struct SetAppTool {
    /// Name for models: 1 to 64 letters, digits, `_` and `-`; unique in the app.
    pub name: ToolName,
    /// Description, at most 1,024 characters.
    pub description: Option<Checked<0, 1024>>,
    /// Command with which people call it, with or without the slash; if absent, the tool is for models only.
    pub command: Option<Checked<0, 33>>,
    /// JSON Schema of its arguments: the schema of an object, at most 16 KiB, without external references.
    pub parameters: Option<JsonObject>,
}

impl From<SetAppTool> for apps::AppTool {
    fn from(tool: SetAppTool) -> Self {
        Self {
            name: tool.name.into(),
            description: tool.description.map(String::from).unwrap_or_default(),
            command: tool.command.map(String::from),
            parameters: tool.parameters.map(|schema| schema.0),
        }
    }
}

fn texts<const MAX: usize, const ENFORCED: bool>(
    texts: Option<Vec<Text<0, MAX, ENFORCED>>>,
) -> Option<Vec<String>> {
    Some(texts?.into_iter().map(String::from).collect())
}

fn tools(tools: Option<Vec<SetAppTool>>) -> Option<Vec<apps::AppTool>> {
    Some(tools?.into_iter().map(Into::into).collect())
}

fn config(config: Option<BTreeMap<String, ConfigValue>>) -> Option<AppConfig> {
    Some(config?.into_iter().map(|(name, value)| (name, value.0)).collect())
}

/// An app to create.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct CreateApp {
    /// Name, 1 to 64 characters.
    pub name: Checked<1, 64>,
    /// Slug: 3 to 40 of `a-z0-9-`, unique on the hub; derived from the name if absent.
    pub slug: Option<Slug>,
    /// Description, at most 4,096 characters.
    pub description: Option<Body>,
    /// URL of the icon.
    pub icon_url: Option<Url>,
    /// URL of the homepage.
    pub homepage: Option<Url>,
    /// Redirect URIs: `https`, or `http` on loopback; compared exactly. At most 10.
    #[oai(validator(max_items = 10))]
    pub redirect_uris: Option<Vec<Url>>,
    /// URL at which the app starts its installation itself.
    pub setup_url: Option<Url>,
    /// URL for events. The hub posts a challenge, which must be returned. Without a URL, events wait for a WebSocket
    /// of the app.
    pub webhook_url: Option<Url>,
    /// Events to receive: `message` or `message.text|image|voice|video|file`, `command`, `bot.status`,
    /// `app.installed`, `app.uninstalled`. Messages require the scope `message:read`, `bot.status` requires
    /// `bot:read`.
    pub events: Option<Vec<Word>>,
    /// Scopes that the app requests: `message:read`, `message:write`, `contact:read`, `bot:read`, `tools:write`,
    /// `config:read`.
    pub scopes: Option<Vec<Word>>,
    /// Tools; at most 50.
    #[oai(validator(max_items = 50))]
    pub tools: Option<Vec<SetAppTool>>,
}

impl Example for CreateApp {
    fn example() -> Self {
        let word = |text: &str| Text(text.to_owned());
        let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        Self {
            name: Text("Weather".to_owned()),
            slug: Some("weather".into()),
            description: Some(Text("Tells the weather.".to_owned())),
            icon_url: None,
            homepage: None,
            redirect_uris: Some(vec![Text("https://weather.example/oauth/callback".to_owned())]),
            setup_url: None,
            webhook_url: Some(Text("https://weather.example/hub".to_owned())),
            events: Some(vec![word("command")]),
            scopes: Some(vec![word("message:read"), word("message:write")]),
            tools: Some(vec![SetAppTool {
                name: "weather".into(),
                description: Some(Text("The weather in a city".to_owned())),
                command: Some(Text("/weather".to_owned())),
                parameters: Some(JsonObject(schema)),
            }]),
        }
    }
}

impl From<CreateApp> for NewApp {
    fn from(body: CreateApp) -> Self {
        let CreateApp { name, slug, description, icon_url, homepage, .. } = body;
        Self {
            name: name.into(),
            slug: slug.map(String::from),
            rest: AppPatch {
                name: None,
                description: description.map(String::from),
                icon_url: icon_url.map(String::from),
                homepage: homepage.map(String::from),
                redirect_uris: texts(body.redirect_uris),
                setup_url: body.setup_url.map(String::from),
                webhook_url: body.webhook_url.map(String::from),
                events: texts(body.events),
                scopes: texts(body.scopes),
                tools: tools(body.tools),
            },
        }
    }
}

/// A change of an app; absent fields keep their values, and an empty text removes a URL.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct UpdateApp {
    /// Name, 1 to 64 characters.
    pub name: Option<Checked<1, 64>>,
    /// Description, at most 4,096 characters.
    pub description: Option<Body>,
    /// URL of the icon.
    pub icon_url: Option<Url>,
    /// URL of the homepage.
    pub homepage: Option<Url>,
    /// Redirect URIs.
    #[oai(validator(max_items = 10))]
    pub redirect_uris: Option<Vec<Url>>,
    /// URL at which the app starts its installation itself.
    pub setup_url: Option<Url>,
    /// URL for events; a new one is verified at once.
    pub webhook_url: Option<Url>,
    /// Events to receive.
    pub events: Option<Vec<Word>>,
    /// Scopes that the app requests. Existing installations keep what they granted.
    pub scopes: Option<Vec<Word>>,
    /// Tools.
    #[oai(validator(max_items = 50))]
    pub tools: Option<Vec<SetAppTool>>,
}

impl Example for UpdateApp {
    fn example() -> Self {
        Self {
            name: None,
            description: Some(Text("Tells the weather of tomorrow.".to_owned())),
            icon_url: None,
            homepage: None,
            redirect_uris: None,
            setup_url: None,
            webhook_url: None,
            events: None,
            scopes: None,
            tools: None,
        }
    }
}

impl From<UpdateApp> for AppPatch {
    fn from(body: UpdateApp) -> Self {
        Self {
            name: body.name.map(String::from),
            description: body.description.map(String::from),
            icon_url: body.icon_url.map(String::from),
            homepage: body.homepage.map(String::from),
            redirect_uris: texts(body.redirect_uris),
            setup_url: body.setup_url.map(String::from),
            webhook_url: body.webhook_url.map(String::from),
            events: texts(body.events),
            scopes: texts(body.scopes),
            tools: tools(body.tools),
        }
    }
}

/// An app to install on a bot.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct InstallApp {
    /// Id of the app.
    pub app_id: AppId,
    /// Granted scopes, all or some of those that the app requests; all if absent.
    pub scopes: Option<Vec<Word>>,
    /// Handle on this bot, without the `@`: 2 to 32 of `a-z0-9_-`; the slug if absent.
    pub handle: Option<Checked<2, 32>>,
    /// Configuration of the app on this bot: texts by name, numbers and booleans are stored as text. At most 64
    /// entries, names of 1 to 64 characters, 16 KiB in total. It is encrypted at rest; the app reads it with the scope
    /// `config:read`.
    #[oai(validator(max_properties = 64))]
    pub config: Option<BTreeMap<String, ConfigValue>>,
}

impl Example for InstallApp {
    fn example() -> Self {
        let app_id = hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0007);
        Self { app_id, scopes: Some(vec![Text("message:read".to_owned())]), handle: None, config: None }
    }
}

impl From<InstallApp> for NewInstallation {
    fn from(body: InstallApp) -> Self {
        let InstallApp { app_id, scopes, handle, .. } = body;
        Self { app_id, scopes: texts(scopes), handle: handle.map(String::from), config: config(body.config) }
    }
}

/// A change of an installed app; absent fields keep their values.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct ChangeApp {
    /// Handle, without the `@`.
    pub handle: Option<Checked<2, 32>>,
    /// Granted scopes.
    pub scopes: Option<Vec<Word>>,
    /// Whether the app receives events and its token works.
    pub enabled: Option<bool>,
    /// Replaces the configuration, with the bounds of an installation. A value that begins with `***`, as the
    /// response has it, keeps the stored value of its name.
    #[oai(validator(max_properties = 64))]
    pub config: Option<BTreeMap<String, ConfigValue>>,
}

impl Example for ChangeApp {
    fn example() -> Self {
        Self { handle: None, scopes: None, enabled: Some(false), config: None }
    }
}

impl From<ChangeApp> for InstallationPatch {
    fn from(body: ChangeApp) -> Self {
        let ChangeApp { handle, scopes, enabled, .. } = body;
        Self { handle: handle.map(String::from), scopes: texts(scopes), enabled, config: config(body.config) }
    }
}

/// A rejection of a listing.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct RejectApp {
    /// Reason for the author, at most 2,000 characters.
    pub reason: Checked<1, 2000>,
}

impl Example for RejectApp {
    fn example() -> Self {
        Self { reason: Text("does not explain what it does with messages".to_owned()) }
    }
}
