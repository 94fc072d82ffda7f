//! Changes of channels as entries of the audit log.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    audit::origin,
    model::{audit::NewEntry, channel::ChannelRecord},
};

/// An entry about a channel that was created.
pub(super) fn created(entry: NewEntry, channel: &ChannelRecord) -> NewEntry {
    let detail = json!({
        "bot": channel.bot_id,
        "webhook_origin": url_of(&channel.webhook, "url"),
        "ai_origin": url_of(&channel.ai, "base_url"),
    });
    entry.target(channel.id, &*channel.name).detail(detail)
}

/// An entry about a channel that was deleted.
pub(super) fn deleted(entry: NewEntry, channel: &ChannelRecord) -> NewEntry {
    entry.target(channel.id, &*channel.name).detail(json!({ "bot": channel.bot_id }))
}

/// An entry about a channel that was changed: the names of the settings that have other values, and the origin of a
/// URL that is another one.
pub(super) fn changed(entry: NewEntry, before: &ChannelRecord, after: &ChannelRecord) -> NewEntry {
    let mut names = BTreeSet::new();
    let mut note = |name: &str, is_changed: bool| {
        if is_changed {
            names.insert(name.to_owned());
        }
    };
    note("name", before.name != after.name);
    note("handle", before.handle != after.handle);
    note("enabled", before.enabled != after.enabled);
    note("options", before.options != after.options);
    note("secret", before.webhook_secret != after.webhook_secret);
    note("api_key", before.ai_api_key != after.ai_api_key);
    for settings in [
        [&before.filter, &after.filter],
        [&before.websocket, &after.websocket],
        [&before.ilink, &after.ilink],
        [&before.webhook, &after.webhook],
        [&before.ai, &after.ai],
    ] {
        let [old, new] = settings.map(|json| fields(json));
        for name in old.keys().chain(new.keys()) {
            note(name, old.get(name) != new.get(name));
        }
    }
    let mut detail = json!({ "bot": after.bot_id, "changed": names });
    for (name, [old, new], field) in [
        ("webhook_origin", [&before.webhook, &after.webhook], "url"),
        ("ai_origin", [&before.ai, &after.ai], "base_url"),
    ] {
        let [old, new] = [old, new].map(|settings| url_of(settings, field));
        if old != new {
            detail[name] = json!({ "from": old, "to": new });
        }
    }
    entry.target(after.id, &*after.name).detail(detail)
}

fn fields(settings: &str) -> Map<String, Value> {
    serde_json::from_str(settings).unwrap_or_default()
}

fn url_of(settings: &str, field: &str) -> Option<String> {
    origin(fields(settings).get(field)?.as_str()?)
}
