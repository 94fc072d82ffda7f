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
    channels as core_channels, openapi::Set, plugins as core_plugins, secret::Secret,
};
use poem_openapi::types::ParseFromJSON;
use serde_json::{Map, Value};

use super::*;
use crate::{envelope::ApiError, wire};

/// What hub-core gets for the examples of a body.
struct Read {
    name: String,
    text: String,
}

/// A body that hub-core takes as it is, or whose handler reads it field by field.
fn same<T: ParseFromJSON + Debug>(document: &Value) -> Read {
    converted::<T, _, ApiError>(document, Ok)
}

/// A body that sets a record of hub-core.
fn set<T: Debug>(document: &Value) -> Read
where
    Set<T>: ParseFromJSON,
{
    converted::<Set<T>, T, ApiError>(document, |body| Ok(body.0))
}

/// A body that is converted to `Core`.
fn body<T, Core>(document: &Value) -> Read
where
    T: ParseFromJSON,
    Core: TryFrom<T> + Debug,
    Core::Error: Debug,
{
    converted::<T, _, _>(document, Core::try_from)
}

fn converted<T, Core, Error>(document: &Value, convert: impl Fn(T) -> Result<Core, Error>) -> Read
where
    T: ParseFromJSON,
    Core: Debug,
    Error: Debug,
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
        match wire::read::<T>(&body).map(&convert) {
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
        same::<core_admin::ai_config::AiConfigUpdate>(&document),
        same::<admin::CreateInvite>(&document),
        same::<core_admin::UserPatch>(&document),
        same::<core_apps::InstallationPatch>(&document),
        same::<core_apps::NewApp>(&document),
        body::<apps::DecideApp, core_apps::Decision>(&document),
        same::<apps::ExchangeCode>(&document),
        same::<apps::ExchangeCodeOlder>(&document),
        same::<core_apps::NewInstallation>(&document),
        same::<admin::apps::RejectApp>(&document),
        same::<core_apps::AppPatch>(&document),
        same::<auth::LoginRequest>(&document),
        body::<auth::RegisterRequest, (core_accounts::NewUser, Option<Secret>)>(&document),
        same::<bot_api::BotSend>(&document),
        body::<bot_api::SetTools, Vec<core_apps::AppTool>>(&document),
        same::<bots::ConfirmBind>(&document),
        same::<bots::RenameBot>(&document),
        body::<bots::SendMessage, core_bots::NewSend>(&document),
        same::<bots::SetRemark>(&document),
        same::<core_bots::NewBind>(&document),
        body::<channel_api::ChannelSend, core_bots::NewSend>(&document),
        same::<channel_api::ChannelTyping>(&document),
        same::<core_channels::NewChannel>(&document),
        same::<core_channels::sinks::AiUpdate>(&document),
        set::<core_channels::Filter>(&document),
        set::<core_channels::sinks::WebSocketSettings>(&document),
        same::<core_channels::sinks::WebhookUpdate>(&document),
        same::<channels::TestFilter>(&document),
        same::<core_channels::ChannelPatch>(&document),
        same::<ilink::ConfirmIlinkLogin>(&document),
        same::<ilink::NamedIlinkLogin>(&document),
        set::<core_channels::sinks::IlinkSettings>(&document),
        body::<passkeys::BeginPasskey, core_accounts::NewPasskey>(&document),
        same::<passkeys::BeginPasskeyLogin>(&document),
        body::<passkeys::PasskeyAnswer, (Secret, Value)>(&document),
        same::<password_reset::ResetPassword>(&document),
        same::<plugins::ApprovePlugin>(&document),
        same::<core_plugins::InstallationPatch>(&document),
        same::<plugins::DebugRequestHook>(&document),
        same::<plugins::DebugResponseHook>(&document),
        same::<core_plugins::NewInstallation>(&document),
        same::<plugins::RejectPlugin>(&document),
        same::<core_plugins::Submission>(&document),
        same::<qr_login::ConfirmQrLogin>(&document),
        same::<qr_login::ExchangeQrLogin>(&document),
        same::<qr_login::OpenQrLogin>(&document),
        same::<replays::StartReplay>(&document),
        same::<sim::SetSimReceiver>(&document),
        same::<sim::SimScan>(&document),
        same::<sim::SimWrite>(&document),
        same::<traces::ReplayTrace>(&document),
        body::<user::ChangePassword, core_accounts::NewPassword>(&document),
        same::<core_accounts::NewApiKey>(&document),
        same::<core_accounts::ProfilePatch>(&document),
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
