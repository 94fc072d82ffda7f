//! A valid call of each operation.

use serde_json::{Value, json};

use super::stage::{self, PASSWORD, Stage};

/// A valid call of an operation.
pub struct Entry {
    pub operation: &'static str,
    /// Valid body; null if the operation takes none.
    pub body: fn(&Stage) -> Value,
    /// Status of the response in these tests.
    pub answers: u16,
}

const fn entry(operation: &'static str, body: fn(&Stage) -> Value, answers: u16) -> Entry {
    Entry { operation, body, answers }
}

fn none(_: &Stage) -> Value {
    Value::Null
}

/// The answer of a browser, as far as its form goes.
fn passkey_answer(signed: &str) -> Value {
    let mut response = json!({ "clientDataJSON": "e30", "authenticatorData": "e30" });
    response[signed] = "e30".into();
    json!({ "flow_id": "hubf_x", "id": "e30", "rawId": "e30", "type": "public-key", "response": response })
}

/// In the order of calling: what deletes is last.
pub const TABLE: &[Entry] = &[
    entry("getHealth", none, 200),
    entry("getReadiness", none, 200),
    entry("register", |_| json!({ "username": "carol", "password": "another long password" }), 200),
    entry("login", |_| json!({ "username": "bob", "password": PASSWORD }), 200),
    entry("beginPasskeyRegistration", |_| json!({ "username": "dora" }), 200),
    entry("beginPasskeyLogin", |_| json!({ "username": "ada" }), 200),
    // Nothing was begun for these: the refusal of what no one began.
    entry("finishPasskeyRegistration", |_| passkey_answer("attestationObject"), 401),
    entry("finishPasskeyLogin", |_| passkey_answer("signature"), 401),
    entry("listProviders", none, 200),
    // This hub has no provider.
    entry("startExternalLogin", none, 404),
    entry("finishExternalLogin", none, 404),
    entry("generateQrLogin", none, 200),
    // Its query has tests of its own.
    entry("getQrLoginStatus", none, 400),
    entry("openQrLogin", |_| json!({ "qr_id": "hubq_x" }), 401),
    entry("confirmQrLogin", |_| json!({ "qr_id": "hubq_x", "user_code": "BCDF-GHJK", "approve": true }), 401),
    entry(
        "exchangeQrLogin",
        |_| json!({ "qr_id": "hubq_x", "poll_secret": "hubp_x", "exchange": "hubx_x" }),
        401,
    ),
    // No such link was made.
    entry("resetPassword", |_| json!({ "token": "hubr_x", "new_password": PASSWORD }), 401),
    entry("getMe", none, 200),
    entry("listPasskeys", none, 200),
    entry("listLinkedAccounts", none, 200),
    entry("listSessions", none, 200),
    entry("getProfile", none, 200),
    entry("getUserStats", none, 200),
    entry("updateProfile", |_| json!({ "display_name": "Ada" }), 200),
    entry("listActivity", none, 200),
    entry("streamEvents", none, 200),
    entry("listApiKeys", none, 200),
    entry("createApiKey", |_| json!({ "name": "ci" }), 200),
    entry("deleteApiKey", none, 200),
    entry("listBots", none, 200),
    entry("getBot", none, 200),
    entry("getBotStatus", none, 200),
    entry("startBind", |_| json!({ "network": "sim" }), 200),
    entry("confirmBind", |stage| json!({ "bind_id": stage.bind, "wait_ms": 0 }), 200),
    entry("renameBot", |_| json!({ "name": "Shop" }), 200),
    entry("reconnectBot", none, 200),
    entry("sendMessage", |_| json!({ "content": "hello" }), 409),
    entry("getBind", none, 200),
    entry("scanSimBind", |_| json!({ "from": "cleo" }), 200),
    entry("sendSimMessage", |_| json!({ "text": "hello" }), 200),
    entry("getSimOutbound", none, 200),
    entry("getSimReceiver", none, 200),
    entry("setSimReceiver", |_| json!({ "mode": "answer" }), 200),
    entry("listMessages", none, 200),
    entry("listAllMessages", none, 200),
    entry("getMessage", none, 200),
    entry("retryMedia", none, 200),
    entry("listContacts", none, 200),
    entry("setContactRemark", |_| json!({ "remark": "a friend" }), 200),
    entry("listTraces", none, 200),
    entry("getTrace", none, 200),
    entry("findTrace", none, 200),
    // No plugin ran.
    entry("getTraceCase", none, 404),
    entry("listAllTraces", none, 200),
    entry("explainMessage", none, 200),
    entry("startReplay", |stage| json!({ "trace_ids": [stage.known("traceId")] }), 200),
    entry("getReplay", none, 200),
    // No delivery is parked.
    entry("attemptTrace", none, 409),
    entry("cancelTrace", none, 409),
    // The delivery of the replay before still waits: no node works.
    entry("replayTrace", |_| json!({ "supersede": true }), 200),
    entry("listChannels", none, 200),
    entry("createChannel", |_| json!({ "name": "second" }), 200),
    entry("getChannel", none, 200),
    entry("updateChannel", |_| json!({ "name": "renamed" }), 200),
    entry("setChannelFilter", |_| json!({ "keywords": ["order"] }), 200),
    entry("testChannelFilter", |_| json!({ "filter": { "keywords": ["order"] }, "last": 10 }), 200),
    entry("setWebSocketSink", |_| json!({ "enabled": true }), 200),
    entry("setIlinkSink", |_| json!({ "enabled": true }), 200),
    entry("listIlinkClients", none, 200),
    // No client is logged in, and no program shows a code.
    entry("deleteIlinkClient", none, 404),
    entry("openIlinkLogin", |_| json!({ "login_id": "unknown" }), 404),
    entry(
        "confirmIlinkLogin",
        |stage| json!({ "login_id": "unknown", "channel_id": stage.known("channelId") }),
        404,
    ),
    entry("rejectIlinkLogin", |_| json!({ "login_id": "unknown" }), 404),
    entry("setWebhookSink", |_| json!({ "enabled": true, "url": "http://receiver.test/hook" }), 200),
    entry("testWebhookSink", none, 200),
    entry("listChannelClients", none, 200),
    // No client is connected.
    entry("deleteChannelClient", none, 404),
    entry("setAiSink", |_| json!({ "enabled": false }), 200),
    entry("testAiSink", none, 200),
    entry("getAiConfig", none, 200),
    entry("setAiConfig", |_| json!({ "base_url": "http://receiver.test/v1", "model": "m" }), 200),
    entry("testAiConfig", none, 200),
    // Only a request to switch protocols is answered otherwise.
    entry("connectChannel", none, 400),
    entry("pollChannelMessages", none, 200),
    entry("sendChannelMessage", |_| json!({ "recipient": "ann", "text": "hello" }), 409),
    entry("getUploadUrl", none, 200),
    entry("setChannelTyping", |_| json!({ "to_user_id": "ann", "status": "typing" }), 200),
    entry("getChannelConfig", none, 200),
    entry("postChannelConfig", none, 200),
    entry("getChannelStatus", none, 200),
    entry("getChannelLogin", none, 200),
    entry("startChannelLogin", none, 200),
    entry("regenerateChannelKey", none, 200),
    entry("listPlugins", none, 200),
    entry("submitPlugin", |_| json!({ "script": stage::script("another") }), 200),
    entry("getPlugin", none, 200),
    entry("updatePlugin", |_| json!({ "script": stage::script("tagger") }), 200),
    entry("listPendingPlugins", none, 200),
    entry("approvePlugin", |_| json!({}), 200),
    entry("rejectPlugin", |_| json!({ "reason": "too late" }), 409),
    entry("installPlugin", |stage| json!({ "plugin_id": stage.plugin, "position": 0 }), 200),
    entry("listChannelPlugins", none, 200),
    entry("changeChannelPlugin", |_| json!({ "enabled": false }), 200),
    entry("debugRequestHook", |_| stage::mock_message(), 200),
    entry("debugResponseHook", |_| stage::mock_response(), 200),
    entry("uninstallPlugin", none, 200),
    entry("deletePlugin", none, 200),
    entry("listApps", none, 200),
    entry("createApp", |_| json!({ "name": "Third" }), 200),
    entry("getApp", none, 200),
    entry("updateApp", |_| json!({ "description": "Tells more." }), 200),
    // Its URL does not know the challenge.
    entry("verifyAppUrl", none, 502),
    entry("requestAppListing", none, 200),
    entry("listPendingApps", none, 200),
    entry("approveApp", none, 200),
    entry("rejectApp", |_| json!({ "reason": "says nothing" }), 200),
    entry("withdrawAppListing", none, 200),
    entry("listInstalledApps", none, 200),
    entry("installApp", |stage| json!({ "app_id": stage.spare_app }), 200),
    entry("authorizeApp", none, 200),
    entry("authorizeAppOlder", none, 200),
    entry("decideApp", Stage::unseen_decision, 403),
    entry("exchangeAppCode", |_| json!({ "grant_type": "authorization_code", "code": "hubo_x" }), 400),
    entry("exchangeAppCodeOlder", |_| json!({ "code": "hubo_x", "code_verifier": "v".repeat(43) }), 401),
    // It begins nothing itself.
    entry("setUpApp", none, 409),
    entry("listAppCalls", none, 200),
    entry("listAppEvents", none, 200),
    entry("sendAppMessage", |_| json!({ "to": "ann", "content": "hello" }), 409),
    entry("sendAppMessageOlder", |_| json!({ "content": "hello" }), 409),
    entry("listAppContacts", none, 200),
    entry("listAppContactsOlder", none, 200),
    entry("getAppBot", none, 200),
    entry("getAppBotOlder", none, 200),
    entry("getAppConfig", none, 200),
    entry("getAppConfigOlder", none, 200),
    // As the channel's.
    entry("connectInstallation", none, 400),
    entry("connectApp", none, 400),
    entry("setAppTools", |_| json!({ "tools": [] }), 200),
    entry("setInstallationTools", |_| json!({ "tools": [{ "name": "t" }] }), 200),
    entry("changeInstalledApp", |_| json!({ "scopes": ["bot:read"] }), 200),
    entry("regenerateAppToken", none, 200),
    entry("uninstallApp", none, 200),
    entry("deleteApp", none, 200),
    entry("listUsers", none, 200),
    entry("getUser", none, 200),
    entry("updateUser", |_| json!({ "display_name": "Dan" }), 200),
    entry("listUserSessions", none, 200),
    entry("createResetLink", none, 200),
    entry("endUserSession", none, 200),
    entry("endUserSessions", none, 200),
    entry("listAllBots", none, 200),
    entry("getStats", none, 200),
    entry("listAudit", none, 200),
    entry("createInvite", |_| json!({}), 200),
    entry("deleteUser", none, 200),
    entry("deleteChannel", none, 200),
    entry("deleteBot", none, 200),
    entry("deletePasskey", none, 200),
    entry("unlinkAccount", none, 200),
    entry("deleteSession", none, 200),
    entry("logout", none, 200),
    // Ends every session.
    entry(
        "changePassword",
        |_| json!({ "old_password": "correct horse battery", "new_password": "a better passphrase" }),
        200,
    ),
];
