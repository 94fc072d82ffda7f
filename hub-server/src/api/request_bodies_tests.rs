//! What each request body means to hub-core: with all fields of its example, and with the required ones alone, where
//! the defaults show. A default that changes changes the behaviour of clients that leave the field out, and no schema
//! shows it.

use std::{
    collections::BTreeSet,
    fmt::{Debug, Write as _},
    path::Path,
};

use hub_core::{
    accounts as core_accounts, admin as core_admin, apps as core_apps, bots as core_bots,
    channels as core_channels, plugins as core_plugins, secret::Secret,
};
use poem_openapi::types::ParseFromJSON;
use serde_json::{Map, Value};

use super::*;
use crate::wire;

/// What hub-core gets for the examples of a body.
struct Read {
    name: String,
    text: String,
}

/// A body that is converted to `Core`; its handler reads it field by field where that is the body itself.
fn body<T, Core>(document: &Value) -> Read
where
    T: ParseFromJSON,
    Core: TryFrom<T> + Debug,
    Core::Error: Debug,
{
    let name = T::name().into_owned();
    let schema = &document["components"]["schemas"][&name];
    let example = schema["example"].as_object().unwrap_or_else(|| panic!("{name} has no example"));
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut least = example.clone();
    least.retain(|field, _| required.contains(&&**field));
    let mut bodies = vec![Map::new(), least, example.clone()];
    bodies.dedup();
    let mut text = String::new();
    for body in bodies.into_iter().map(Value::Object) {
        writeln!(text, "{name} {body}").unwrap();
        match wire::read::<T>(&body).map(Core::try_from) {
            Ok(Ok(core)) => writeln!(text, "{core:#?}\n"),
            Ok(Err(error)) => writeln!(text, "{error:?}\n"),
            Err(error) => writeln!(text, "{error}\n"),
        }
        .unwrap();
    }
    Read { name, text }
}

/// The names of the schemas that the bodies of requests refer to; that of a form is the one of its JSON with files.
fn names_of_bodies(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    let contents =
        operations.filter_map(|operation| operation["requestBody"]["content"].as_object()).flatten();
    let references = contents.filter_map(|(_, media)| media["schema"]["$ref"].as_str());
    let names = references.filter_map(|reference| reference.strip_prefix("#/components/schemas/"));
    names.map(|name| name.strip_suffix("Form").unwrap_or(name).to_owned()).collect()
}

#[test]
fn every_body_means_to_hub_core_what_it_meant() {
    let document = crate::openapi::document("/");
    let read = [
        body::<admin::ai_config::SetAiConfig, core_admin::ai_config::AiConfigUpdate>(&document),
        body::<admin::CreateInvite, admin::CreateInvite>(&document),
        body::<admin::UpdateUser, core_admin::UserPatch>(&document),
        body::<apps::ChangeApp, core_apps::InstallationPatch>(&document),
        body::<apps::CreateApp, core_apps::NewApp>(&document),
        body::<apps::DecideApp, core_apps::Decision>(&document),
        body::<apps::ExchangeCode, apps::ExchangeCode>(&document),
        body::<apps::ExchangeCodeOlder, apps::ExchangeCodeOlder>(&document),
        body::<apps::InstallApp, core_apps::NewInstallation>(&document),
        body::<apps::RejectApp, apps::RejectApp>(&document),
        body::<apps::UpdateApp, core_apps::AppPatch>(&document),
        body::<auth::LoginRequest, auth::LoginRequest>(&document),
        body::<auth::RegisterRequest, (core_accounts::NewUser, Option<Secret>)>(&document),
        body::<bot_api::BotSend, bot_api::BotSend>(&document),
        body::<bot_api::SetTools, Vec<core_apps::AppTool>>(&document),
        body::<bots::ConfirmBind, bots::ConfirmBind>(&document),
        body::<bots::RenameBot, bots::RenameBot>(&document),
        body::<bots::SendMessage, core_bots::NewSend>(&document),
        body::<bots::SetRemark, bots::SetRemark>(&document),
        body::<bots::StartBind, core_bots::NewBind>(&document),
        body::<channel_api::ChannelSend, core_bots::NewSend>(&document),
        body::<channel_api::ChannelTyping, channel_api::ChannelTyping>(&document),
        body::<channels::CreateChannel, core_channels::NewChannel>(&document),
        body::<channels::SetAi, core_channels::sinks::AiUpdate>(&document),
        body::<channels::SetFilter, core_channels::Filter>(&document),
        body::<channels::SetWebSocket, core_channels::sinks::WebSocketSettings>(&document),
        body::<channels::SetWebhook, core_channels::sinks::WebhookUpdate>(&document),
        body::<channels::TestFilter, channels::TestFilter>(&document),
        body::<channels::UpdateChannel, core_channels::ChannelPatch>(&document),
        body::<ilink::ConfirmIlinkLogin, ilink::ConfirmIlinkLogin>(&document),
        body::<ilink::NamedIlinkLogin, ilink::NamedIlinkLogin>(&document),
        body::<ilink::SetIlink, core_channels::sinks::IlinkSettings>(&document),
        body::<passkeys::BeginPasskey, core_accounts::NewPasskey>(&document),
        body::<passkeys::BeginPasskeyLogin, passkeys::BeginPasskeyLogin>(&document),
        body::<passkeys::PasskeyAnswer, (Secret, Value)>(&document),
        body::<password_reset::ResetPassword, password_reset::ResetPassword>(&document),
        body::<plugins::ApprovePlugin, plugins::ApprovePlugin>(&document),
        body::<plugins::ChangeInstallation, core_plugins::InstallationPatch>(&document),
        body::<plugins::DebugRequestHook, plugins::DebugRequestHook>(&document),
        body::<plugins::DebugResponseHook, plugins::DebugResponseHook>(&document),
        body::<plugins::InstallPlugin, core_plugins::NewInstallation>(&document),
        body::<plugins::RejectPlugin, plugins::RejectPlugin>(&document),
        body::<plugins::SubmitPlugin, core_plugins::Submission>(&document),
        body::<qr_login::ConfirmQrLogin, qr_login::ConfirmQrLogin>(&document),
        body::<qr_login::ExchangeQrLogin, qr_login::ExchangeQrLogin>(&document),
        body::<qr_login::OpenQrLogin, qr_login::OpenQrLogin>(&document),
        body::<replays::StartReplay, replays::StartReplay>(&document),
        body::<sim::SetSimReceiver, sim::SetSimReceiver>(&document),
        body::<sim::SimScan, sim::SimScan>(&document),
        body::<sim::SimWrite, sim::SimWrite>(&document),
        body::<traces::ReplayTrace, traces::ReplayTrace>(&document),
        body::<user::ChangePassword, core_accounts::NewPassword>(&document),
        body::<user::CreateApiKey, core_accounts::NewApiKey>(&document),
        body::<user::UpdateProfile, core_accounts::ProfilePatch>(&document),
    ];
    let names: BTreeSet<String> = read.iter().map(|read| read.name.clone()).collect();
    assert_eq!(names, names_of_bodies(&document));
    let text: String = read.into_iter().map(|read| read.text).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api/request_bodies.txt");
    if std::env::var_os("HUB_UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        known == text,
        "a body has another meaning than in {}; if that is meant, run with HUB_UPDATE_REFERENCE=1",
        path.display()
    );
}
