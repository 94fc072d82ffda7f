//! The endpoints: one file per section of the API, each with its wire structs, their `From` and one stateless struct
//! of endpoints. To add a section: a file here, its struct in [`Api`] and in [`all`].
//!
//! 1. A handler is at most ten lines: call hub-core with the actor, wrap with [`ok`](crate::envelope::ok).
//! 2. It returns [`ApiResult<T>`](crate::envelope::ApiResult) and uses `?` on `hub_core::Result`.
//! 3. Argument order: `Data<&Hub>`, credential, path, query, body. Arguments are read in that order.
//! 4. Credentials: `user: User` ([`User`](crate::credentials::User)), `client: ChannelClient` or `app: AppClient`;
//!    `user.0` is the `Actor`. The argument proves that the caller is authenticated and that the origin rule was
//!    applied.
//! 5. Path arguments are `Path<BotId>` and the like: they bind by position, and their types catch a mix-up.
//! 6. Bodies are [`wire::Body<T>`](crate::wire::Body), never poem's `Json`; request structs derive `Object` with
//!    `#[oai(deny_unknown_fields)]` on management endpoints, strings are `wire::Text<MIN, MAX>`,
//!    secrets `wire::Secret<MAX>`.
//! 7. Responses are records of hub-core, which derive `hub_macros::Api`. What a response has in another shape is an
//!    `Object` with `#[oai(skip_serializing_if_is_none)]` here.
//! 8. Lists: `limit: Query<Option<Limit>>, cursor: Query<Option<Cursor>>` → `page_request(list, limit.0,
//!    cursor.0.as_ref())?` → `ok(page.into())` with data `wire::Page<Noun>`.
//! 9. All methods of one path are in one impl; no parameters in `prefix_path`; paths have no trailing slash.
//! 10. Every method has `tag = "Tag::…"` (or its impl has) and `operation_id`: lowerCamel, verb first, unique.
//! 11. The first line of a doc comment becomes the summary, the rest the description; fields are described too.
//! 12. Examples are composed of those of the fields (`openapi/examples.rs`), or declared: `#[api(example = { … })]`,
//!     and for a request `#[oai(example)]` and `impl poem_openapi::types::Example`.
//! 13. Never log or echo bodies, queries or secrets; the edge writes the one log line of a request.
//! 14. Sign-in handlers take a `SignIn`, which has checked the origin; they call `sign_in.check_account(name)`
//!     before they look up the name, and respond with `sign_in.respond(signed_in)`, which sets the cookies.
//! 15. Tests speak as actors of `crate::testing`: `App::new().await.stranger().get(path).await.error(404, "…")`,
//!     `app.user("alice").await.post(path, &json!({…})).await.data()`.

pub mod activity;
pub mod admin;
pub mod app_sockets;
pub mod apps;
pub mod auth;
pub mod bot_api;
pub mod bots;
pub mod channel_api;
pub mod channels;
pub mod events;
pub mod explain;
pub mod external;
pub mod files;
pub mod ilink;
pub mod meta;
pub mod passkeys;
pub mod password_reset;
pub mod plugins;
pub mod qr_login;
pub mod replays;
#[cfg(test)]
mod request_bodies_tests;
pub(crate) mod sign_in;
pub mod sim;
pub mod traces;
pub mod user;
pub mod user_stats;

use poem_openapi::Tags;

/// The sections of the API, in the order of the document.
#[derive(Debug, Clone, Copy, Tags)]
pub enum Tag {
    /// Registration, sign-in, sessions.
    Auth,
    /// Bots, their messages, contacts and traces.
    Bots,
    /// Calls with the API key of a channel.
    #[oai(rename = "Channel API")]
    ChannelApi,
    /// Channels and their sinks.
    Channels,
    /// Plugins, their review and installation.
    Plugins,
    /// Apps, their installation and OAuth.
    Apps,
    /// The profile, password and API keys of the signed-in user.
    User,
    /// Administration.
    Admin,
    /// Calls of installed apps, with their token.
    #[oai(rename = "Bot API")]
    BotApi,
    /// Health of the process.
    Health,
}

/// The names of the tags in the order of [`Tag`]; poem-openapi sorts them alphabetically.
pub const TAG_ORDER: [&str; 10] =
    ["Auth", "Bots", "Channel API", "Channels", "Plugins", "Apps", "User", "Admin", "Bot API", "Health"];

/// All endpoints, in the order of the document. A tuple holds 2 to 16; nest them beyond that.
pub type Api = (
    SignInApi,
    (bots::BotsApi, sim::SimApi),
    TraceApi,
    channel_api::ChannelClientApi,
    (channels::ChannelsApi, ilink::IlinkApi),
    files::FilesApi,
    plugins::PluginsApi,
    plugins::PluginDebugApi,
    AppApi,
    admin::plugins::AdminPluginsApi,
    (user::UserApi, user_stats::UserStatsApi),
    (activity::ActivityApi, events::EventsApi),
    admin::AdminApi,
    admin::ai_config::AiConfigApi,
    bot_api::BotApi,
    meta::MetaApi,
);

/// Traces, and what is derived from them.
pub type TraceApi = (traces::TracesApi, explain::ExplanationApi, replays::ReplaysApi);

/// Apps, on their own and on bots.
pub type AppApi = (
    apps::AppsApi,
    apps::InstallationsApi,
    apps::AppOauthApi,
    app_sockets::AppSocketsApi,
    admin::apps::AdminAppsApi,
);

/// Sign-in methods.
pub type SignInApi = (
    auth::AuthApi,
    passkeys::PasskeysApi,
    external::ExternalApi,
    qr_login::QrLoginApi,
    password_reset::PasswordResetApi,
);

/// One of each.
pub fn all() -> Api {
    let sign_in = (
        auth::AuthApi,
        passkeys::PasskeysApi,
        external::ExternalApi,
        qr_login::QrLoginApi,
        password_reset::PasswordResetApi,
    );
    let apps = (
        apps::AppsApi,
        apps::InstallationsApi,
        apps::AppOauthApi,
        app_sockets::AppSocketsApi,
        admin::apps::AdminAppsApi,
    );
    (
        sign_in,
        (bots::BotsApi, sim::SimApi),
        (traces::TracesApi, explain::ExplanationApi, replays::ReplaysApi),
        channel_api::ChannelClientApi,
        (channels::ChannelsApi, ilink::IlinkApi),
        files::FilesApi,
        plugins::PluginsApi,
        plugins::PluginDebugApi,
        apps,
        admin::plugins::AdminPluginsApi,
        (user::UserApi, user_stats::UserStatsApi),
        (activity::ActivityApi, events::EventsApi),
        admin::all(),
        admin::ai_config::AiConfigApi,
        bot_api::BotApi,
        meta::MetaApi,
    )
}
