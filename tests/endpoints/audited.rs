//! The audit log of every operation: what changes where people's messages go, or a credential, leaves an entry.

use hub_core::{
    access::Actor,
    audit::{Action, AuditEntry},
    page::PageRequest,
    store::audit::AuditFilter,
};
use poem::http::Method;
use serde_json::{Value, json};

use super::{
    operation::{Operation, operations},
    stage::{PASSWORD, Stage},
    table::TABLE,
};

/// Audit entries that a valid call of each operation adds.
const AUDITED: &[(&str, &[Action])] = &[
    ("register", &[Action::UserRegistered, Action::Login]),
    ("login", &[Action::Login]),
    ("logout", &[Action::Logout]),
    ("changePassword", &[Action::PasswordChanged]),
    ("deleteSession", &[Action::SessionEnded]),
    ("deletePasskey", &[Action::PasskeyDeleted]),
    ("unlinkAccount", &[Action::AccountUnlinked]),
    ("createApiKey", &[Action::KeyCreated]),
    ("deleteApiKey", &[Action::KeyDeleted]),
    ("updateUser", &[Action::UserUpdated]),
    ("deleteUser", &[Action::UserDeleted]),
    ("createInvite", &[Action::InviteCreated]),
    ("createResetLink", &[Action::ResetLinkCreated]),
    ("endUserSession", &[Action::SessionsEnded]),
    ("endUserSessions", &[Action::SessionsEnded]),
    ("setAiConfig", &[Action::AiConfigChanged]),
    ("deleteBot", &[Action::BotDeleted]),
    ("createChannel", &[Action::ChannelCreated]),
    ("updateChannel", &[Action::ChannelUpdated]),
    ("deleteChannel", &[Action::ChannelDeleted]),
    ("setChannelFilter", &[Action::FilterChanged]),
    ("setWebhookSink", &[Action::WebhookChanged]),
    ("setAiSink", &[Action::AiSinkChanged]),
    ("setWebSocketSink", &[Action::WebSocketChanged]),
    ("setIlinkSink", &[Action::IlinkChanged]),
    ("regenerateChannelKey", &[Action::ChannelKeyRegenerated]),
    ("submitPlugin", &[Action::PluginSubmitted]),
    ("updatePlugin", &[Action::PluginSubmitted]),
    ("approvePlugin", &[Action::PluginApproved]),
    ("deletePlugin", &[Action::PluginDeleted]),
    ("installPlugin", &[Action::PluginInstalled]),
    ("changeChannelPlugin", &[Action::PluginArranged]),
    ("uninstallPlugin", &[Action::PluginUninstalled]),
    ("createApp", &[Action::AppCreated]),
    ("updateApp", &[Action::AppUpdated]),
    ("deleteApp", &[Action::AppDeleted]),
    ("approveApp", &[Action::AppReviewed]),
    ("rejectApp", &[Action::AppReviewed]),
    ("installApp", &[Action::AppInstalled]),
    ("changeInstalledApp", &[Action::InstallationChanged]),
    ("uninstallApp", &[Action::AppUninstalled]),
    ("regenerateAppToken", &[Action::AppTokenRegenerated]),
];

/// Operations that change something else, or whose right call in the table has no effect that lasts. Replays are logged
/// if they go to another URL; a bind when it is confirmed.
const OTHERS: &[&str] = &[
    "beginPasskeyRegistration",
    "beginPasskeyLogin",
    "generateQrLogin",
    "updateProfile",
    "startBind",
    "confirmBind",
    "scanSimBind",
    "renameBot",
    "reconnectBot",
    "sendSimMessage",
    "setSimReceiver",
    "retryMedia",
    "setContactRemark",
    "startReplay",
    "replayTrace",
    "testChannelFilter",
    "testWebhookSink",
    "testAiSink",
    "testAiConfig",
    "setChannelTyping",
    "postChannelConfig",
    "startChannelLogin",
    "debugRequestHook",
    "debugResponseHook",
    "requestAppListing",
    "withdrawAppListing",
    "setAppTools",
    "setInstallationTools",
];

/// The log from here on.
struct Log<'s> {
    stage: &'s Stage,
    seen: usize,
}

impl<'s> Log<'s> {
    async fn new(stage: &'s Stage) -> Self {
        let mut log = Self { stage, seen: 0 };
        log.new_entries().await;
        log
    }

    /// Entries that were added since, oldest first.
    async fn new_entries(&mut self) -> Vec<AuditEntry> {
        let (filter, mut entries) = (AuditFilter::default(), Vec::new());
        let mut cursor = None::<String>;
        loop {
            let request = PageRequest::parse(&filter.list_name(), Some(200), cursor.as_deref()).unwrap();
            let page = self.stage.hub.hub.admin().audit(&Actor::Operator, &filter, &request).await.unwrap();
            entries.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        entries.reverse();
        let new = entries.split_off(self.seen);
        self.seen += new.len();
        new
    }
}

/// The words of actions in alphabetical order.
fn words(actions: &[Action]) -> Vec<&'static str> {
    let mut words: Vec<_> = actions.iter().map(|action| action.as_str()).collect();
    words.sort_unstable();
    words
}

fn find<'o>(operations: &'o [Operation], id: &str) -> &'o Operation {
    operations.iter().find(|operation| operation.id == id).unwrap()
}

/// Whether the operation is about a thing that the call or its response names.
fn names_its_target(operation: &Operation) -> bool {
    [
        "/api/bots/",
        "/api/plugins",
        "/api/apps",
        "/api/admin/plugins/",
        "/api/admin/apps/",
        "/api/admin/users/",
    ]
    .iter()
    .any(|start| operation.path.starts_with(start))
        && operation.id != "endUserSession"
}

#[tokio::test]
async fn every_operation_leaves_its_entry_in_the_audit_log() {
    let stage = Stage::new().await;
    let operations = operations();
    let owner = stage.hub.owner.principal();
    let mut log = Log::new(&stage).await;
    for entry in TABLE {
        let operation = find(&operations, entry.operation);
        let cookie = if operation.id == "logout" { &stage.spare } else { &stage.ada };
        let path = stage.path(operation);
        let answer = stage.ask_as(operation, &path, if operation.is_open() { "" } else { cookie }).await;
        let entries = log.new_entries().await;
        let mut left: Vec<_> = entries.iter().map(|entry| entry.action.as_str()).collect();
        left.sort_unstable();
        let expected = AUDITED.iter().find(|(audited, _)| *audited == operation.id);
        let Some((_, actions)) = expected else {
            let is_known = operation.method == Method::GET
                || answer.status >= 300
                || OTHERS.contains(&operation.id.as_str());
            assert!(is_known, "{}: say what it leaves in the audit log", operation.id);
            assert!(left.is_empty(), "{} leaves {left:?}", operation.id);
            continue;
        };
        assert_eq!(left, words(actions), "{}: {}", operation.id, answer.json);
        for entry in &entries {
            assert!(operation.is_open() || entry.actor == owner, "{}: {entry:?}", operation.id);
            let place = format!("{path} {}", answer.json);
            let is_named = !entry.target.is_empty() && place.contains(&entry.target);
            let installation = ["installApp", "changeInstalledApp", "uninstallApp", "regenerateAppToken"];
            let is_installation = installation.contains(&&*operation.id) && entry.target.starts_with("ins");
            assert!(
                !names_its_target(operation) || is_named || is_installation,
                "{}: {entry:?}",
                operation.id
            );
        }
    }
    stage.hub.stop().await;
}

/// Values that must not be in the log.
const SECRETS: [&str; 8] = [
    "secret-of-the-webhook",
    "secret-of-the-model",
    "secret-of-the-hub-model",
    "secret-in-a-path",
    "secret-in-a-query",
    "secret-of-a-new-webhook",
    "secret-of-a-new-model",
    PASSWORD,
];

#[tokio::test]
async fn entries_tell_where_messages_go_from_now_on_and_no_secret() {
    let stage = Stage::new().await;
    let operations = operations();
    let mut log = Log::new(&stage).await;
    let secret_url = "http://elsewhere.test/secret-in-a-path?token=secret-in-a-query";
    let origin = "http://elsewhere.test";
    let own_model = |key: &str| json!({ "enabled": true, "source": "custom", "base_url": "http://elsewhere.test/secret-in-a-path", "model": "m", "api_key": key });
    let trace = stage.known("traceId");
    let moved = json!({ "from": "http://receiver.test", "to": origin });
    for (operation, body, action, detail) in [
        (
            "setWebhookSink",
            json!({ "enabled": true, "url": secret_url,
                "auth": { "method": "bearer", "secret": "secret-of-the-webhook" } }),
            Action::WebhookChanged,
            json!({ "webhook_origin": moved }),
        ),
        (
            "setAiSink",
            own_model("secret-of-the-model"),
            Action::AiSinkChanged,
            json!({ "ai_origin": { "from": null, "to": origin } }),
        ),
        (
            "setAiConfig",
            json!({ "base_url": "http://elsewhere.test/v1", "model": "m", "api_key": "secret-of-the-hub-model" }),
            Action::AiConfigChanged,
            json!({}),
        ),
        (
            "createChannel",
            json!({ "name": "third", "ai": own_model("secret-of-a-new-model"),
                "webhook": { "url": secret_url, "auth": { "method": "bearer", "secret": "secret-of-a-new-webhook" } } }),
            Action::ChannelCreated,
            json!({ "webhook_origin": origin, "ai_origin": origin }),
        ),
        (
            "updateChannel",
            json!({ "enabled": false }),
            Action::ChannelUpdated,
            json!({ "changed": ["enabled"] }),
        ),
        (
            "replayTrace",
            json!({ "url": secret_url, "supersede": true }),
            Action::ReplayedToUrl,
            json!({ "origin": origin }),
        ),
        (
            "startReplay",
            json!({ "trace_ids": [trace], "url": "http://third.test/secret-in-a-path" }),
            Action::ReplayedToUrl,
            json!({ "origin": "http://third.test", "traces": 1 }),
        ),
        (
            "updateApp",
            json!({ "webhook_url": "http://receiver.test/secret-in-a-path" }),
            Action::AppUpdated,
            json!({ "webhook_origin": "http://receiver.test" }),
        ),
    ] {
        let operation = find(&operations, operation);
        let answer = stage.ask_saying(operation, &stage.path(operation), &stage.ada, &body).await;
        assert_eq!(answer.status, 200, "{}: {}", operation.id, answer.json);
        let entries = log.new_entries().await;
        assert_eq!(entries.len(), 1, "{}: {entries:?}", operation.id);
        let entry = &entries[0];
        assert_eq!((entry.action.as_str(), entry.actor_name.as_str()), (action.as_str(), "ada"), "{entry:?}");
        assert!(entry.credential.starts_with("ses_"), "{entry:?}");
        for (name, value) in detail.as_object().unwrap() {
            assert_eq!(&entry.detail[name], value, "{}: {entry:?}", operation.id);
        }
    }
    log.seen = 0;
    let all = format!("{:?}", log.new_entries().await);
    for secret in SECRETS {
        assert!(!all.contains(secret), "{secret} is in the log");
    }
    for kind in ["hubs_", "hubu_", "hubc_", "hubi_"] {
        assert!(!all.contains(kind), "a token is in the log: {all}");
    }
    stage.hub.stop().await;
}

#[tokio::test]
async fn a_bind_leaves_an_entry_for_a_new_bot_and_for_a_new_login() {
    let stage = Stage::new().await;
    let operations = operations();
    let mut log = Log::new(&stage).await;
    let call = async |id: &str, path: &str, body: Value| {
        let answer = stage.ask_saying(find(&operations, id), path, &stage.ada, &body).await;
        assert_eq!(answer.status, 200, "{id}: {}", answer.json);
        answer.json["data"].clone()
    };
    // The second code was made before the account was bound: the network gives it a login of its own.
    let start = async || call("startBind", "/api/bots/bind/start", json!({ "network": "sim" })).await;
    for (bind, action) in [(start().await, Action::BotBound), (start().await, Action::BotLoggedIn)] {
        let bind = bind["bind_id"].as_str().unwrap();
        call("scanSimBind", &format!("/api/binds/{bind}/sim/scan"), json!({ "from": "cleo" })).await;
        assert_eq!(log.new_entries().await, [], "no login is stored yet");
        let done = json!({ "bind_id": bind, "wait_ms": 0 });
        let bound = call("confirmBind", "/api/bots/bind/confirm", done).await;
        let entries = log.new_entries().await;
        assert_eq!(entries.len(), 1, "{entries:?}");
        let entry = &entries[0];
        assert_eq!(
            (entry.action.as_str(), &json!(entry.target), entry.actor_name.as_str()),
            (action.as_str(), &bound["bot"]["id"], "ada")
        );
        assert!(!entry.target_name.is_empty(), "{entry:?}");
    }
    stage.hub.stop().await;
}
