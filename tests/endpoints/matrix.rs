//! Every operation against every kind of credential.
//!
//! A new operation needs one line: its name under who may call it. The table is written by hand, so that it is
//! compared with what the code does and not made from it; an operation that it lacks fails.

use poem::http::Method;

use super::{
    operation::{Operation, operations},
    refused,
    stage::{Answer, Stage},
};

/// Callers that an operation accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Anyone.
    Open,
    /// A user, by session or API key; what is not theirs is not there.
    User,
    /// A user as above, and an administrator also for what is another user's.
    Shared,
    /// A user by session alone.
    InPerson,
    /// An administrator, by session or API key.
    Admin,
    /// A program with a channel's key.
    Channel,
    /// An installed app.
    App,
    /// An app as a whole, by its secret.
    WholeApp,
}

use Access::{Admin, Channel, InPerson, Open, Shared, User};

const ACCESS: &[(&str, Access)] = &[
    ("getHealth", Open),
    ("getReadiness", Open),
    ("register", Open),
    ("login", Open),
    ("beginPasskeyRegistration", Open),
    ("finishPasskeyRegistration", Open),
    ("beginPasskeyLogin", Open),
    ("finishPasskeyLogin", Open),
    ("listPasskeys", User),
    ("deletePasskey", InPerson),
    ("listProviders", Open),
    ("startExternalLogin", Open),
    ("finishExternalLogin", Open),
    ("listLinkedAccounts", User),
    ("unlinkAccount", InPerson),
    ("generateQrLogin", Open),
    ("getQrLoginStatus", Open),
    ("openQrLogin", InPerson),
    ("confirmQrLogin", InPerson),
    ("exchangeQrLogin", Open),
    ("resetPassword", Open),
    ("logout", User),
    ("getMe", User),
    ("listSessions", User),
    ("deleteSession", User),
    ("getProfile", User),
    ("getUserStats", User),
    ("updateProfile", User),
    ("changePassword", InPerson),
    ("listActivity", User),
    ("streamEvents", User),
    ("listApiKeys", User),
    ("createApiKey", InPerson),
    ("deleteApiKey", User),
    ("listBots", User),
    ("getBot", User),
    ("getBotStatus", User),
    ("startBind", User),
    ("confirmBind", User),
    ("getBind", User),
    ("scanSimBind", User),
    ("renameBot", User),
    ("reconnectBot", User),
    ("deleteBot", User),
    ("sendMessage", User),
    ("sendSimMessage", User),
    ("getSimOutbound", User),
    ("getSimReceiver", User),
    ("setSimReceiver", User),
    ("listMessages", User),
    ("listAllMessages", User),
    ("getMessage", User),
    ("listContacts", User),
    ("setContactRemark", User),
    ("listTraces", User),
    ("getTrace", User),
    ("findTrace", User),
    ("getTraceCase", User),
    ("listAllTraces", User),
    ("explainMessage", User),
    ("startReplay", User),
    ("getReplay", User),
    ("attemptTrace", User),
    ("cancelTrace", User),
    ("replayTrace", User),
    ("listChannels", User),
    ("createChannel", User),
    ("getChannel", User),
    ("updateChannel", User),
    ("deleteChannel", User),
    ("setChannelFilter", User),
    ("testChannelFilter", User),
    ("setWebSocketSink", User),
    ("setIlinkSink", User),
    ("listIlinkClients", User),
    ("deleteIlinkClient", User),
    ("openIlinkLogin", User),
    ("confirmIlinkLogin", User),
    ("rejectIlinkLogin", User),
    ("setWebhookSink", User),
    ("testWebhookSink", User),
    ("listChannelClients", User),
    ("deleteChannelClient", User),
    ("setAiSink", User),
    ("testAiSink", User),
    ("regenerateChannelKey", User),
    ("listPlugins", User),
    ("submitPlugin", User),
    ("getPlugin", Shared),
    ("updatePlugin", Shared),
    ("deletePlugin", Shared),
    ("installPlugin", User),
    ("listChannelPlugins", User),
    ("changeChannelPlugin", User),
    ("uninstallPlugin", User),
    ("listApps", User),
    ("createApp", User),
    ("getApp", Shared),
    ("updateApp", User),
    ("deleteApp", User),
    ("verifyAppUrl", User),
    ("requestAppListing", User),
    ("withdrawAppListing", User),
    ("listPendingApps", Admin),
    ("approveApp", Admin),
    ("rejectApp", Admin),
    ("listInstalledApps", User),
    ("installApp", User),
    ("changeInstalledApp", User),
    ("uninstallApp", User),
    ("regenerateAppToken", User),
    ("authorizeApp", User),
    ("authorizeAppOlder", User),
    ("decideApp", User),
    ("exchangeAppCode", Open),
    ("exchangeAppCodeOlder", Open),
    ("setUpApp", User),
    ("listAppCalls", User),
    ("listAppEvents", User),
    ("sendAppMessage", Access::App),
    ("sendAppMessageOlder", Access::App),
    ("listAppContacts", Access::App),
    ("listAppContactsOlder", Access::App),
    ("getAppBot", Access::App),
    ("getAppBotOlder", Access::App),
    ("getAppConfig", Access::App),
    ("getAppConfigOlder", Access::App),
    ("setAppTools", Access::App),
    ("setInstallationTools", Access::App),
    ("connectInstallation", Access::App),
    ("connectApp", Access::WholeApp),
    ("listPendingPlugins", Admin),
    ("approvePlugin", Admin),
    ("rejectPlugin", Admin),
    ("listUsers", Admin),
    ("getUser", Admin),
    ("updateUser", Admin),
    ("deleteUser", Admin),
    ("listUserSessions", Admin),
    ("endUserSessions", Admin),
    ("endUserSession", Admin),
    ("createResetLink", Admin),
    ("listAllBots", Admin),
    ("getStats", Admin),
    ("listAudit", Admin),
    ("createInvite", Admin),
    ("getAiConfig", Admin),
    ("setAiConfig", Admin),
    ("testAiConfig", Admin),
    ("retryMedia", User),
    ("debugRequestHook", User),
    ("debugResponseHook", User),
    ("connectChannel", Channel),
    ("pollChannelMessages", Channel),
    ("getUploadUrl", Channel),
    ("sendChannelMessage", Channel),
    ("setChannelTyping", Channel),
    ("getChannelConfig", Channel),
    ("postChannelConfig", Channel),
    ("getChannelStatus", Channel),
    ("startChannelLogin", Channel),
    ("getChannelLogin", Channel),
];

fn access(operation: &Operation) -> Access {
    let found = ACCESS.iter().find(|(name, _)| *name == operation.id);
    found.unwrap_or_else(|| panic!("{} is not in the matrix of who may call what", operation.id)).1
}

#[test]
fn the_matrix_has_every_operation_once_and_agrees_with_the_document() {
    let operations = operations();
    for operation in &operations {
        let security = operation.described["security"].to_string();
        match access(operation) {
            Open => assert!(operation.is_open(), "{} asks for a credential", operation.id),
            User | Shared | InPerson | Admin => {
                assert!(security.contains("userKey"), "{}: {security}", operation.id);
            }
            Channel => assert!(security.contains("channelKey"), "{}: {security}", operation.id),
            Access::App => assert!(security.contains("appToken"), "{}: {security}", operation.id),
            Access::WholeApp => assert!(security.contains("appSecret"), "{}: {security}", operation.id),
        }
        let is_admin = operation.path.starts_with("/api/admin/");
        assert_eq!(access(operation) == Admin, is_admin, "{} {}", operation.id, operation.path);
    }
    for (n, (name, _)) in ACCESS.iter().enumerate() {
        assert!(operations.iter().any(|operation| operation.id == *name), "{name} is in no document");
        assert!(ACCESS[..n].iter().all(|(other, _)| other != name), "{name} is duplicated");
    }
}

/// Credential of a request.
#[derive(Debug, Clone)]
enum Shown<'a> {
    Nothing,
    Cookie(&'a str),
    Bearer(&'a str),
    Header(&'a str),
}

async fn ask(stage: &Stage, operation: &Operation, path: &str, shown: &Shown<'_>) -> Answer {
    let body = (operation.entry().body)(stage);
    let (name, value) = match shown {
        Shown::Nothing => ("X-Nothing", "0".to_owned()),
        Shown::Cookie(token) => ("Cookie", format!("session={token}")),
        Shown::Bearer(token) => ("Authorization", format!("Bearer {token}")),
        Shown::Header(token) => ("X-API-Key", (*token).to_owned()),
    };
    stage
        .ask(operation, path, |request| {
            let request = request.header(name, value);
            if body.is_null() { request } else { request.body_json(&body) }
        })
        .await
}

#[tokio::test]
async fn callers_without_permission_are_refused_as_declared() {
    const UNAUTHORIZED: (u16, &str) = (401, "UNAUTHORIZED");
    const INVALID_TOKEN: (u16, &str) = (401, "INVALID_TOKEN");
    const FORBIDDEN: (u16, &str) = (403, "FORBIDDEN");
    let stage = Stage::new().await;
    let before = stage.stored().await;
    let all = &stage.credentials;
    let mut cells = 0;
    for operation in operations() {
        let access = access(&operation);
        let path = stage.path(&operation);
        let is_user = ![Open, Access::Channel, Access::App, Access::WholeApp].contains(&access);
        let of_users = |answer| if is_user { answer } else { INVALID_TOKEN };
        let cookie = |answer| if is_user { answer } else { UNAUTHORIZED };
        let mut expected = vec![
            (Shown::Nothing, UNAUTHORIZED),
            (Shown::Cookie("hubs_garbage"), UNAUTHORIZED),
            (Shown::Cookie(&all.expired_session), UNAUTHORIZED),
            (Shown::Cookie(&all.ada_key), UNAUTHORIZED),
            (Shown::Bearer("garbage"), INVALID_TOKEN),
            (Shown::Bearer(""), INVALID_TOKEN),
            (Shown::Bearer(&stage.ada), INVALID_TOKEN),
            (Shown::Bearer(&all.expired_key), INVALID_TOKEN),
            (Shown::Header(&all.expired_key), INVALID_TOKEN),
            (Shown::Header("huba_garbage"), INVALID_TOKEN),
        ];
        if access != Access::Channel {
            expected.push((Shown::Header(&all.channel_key), INVALID_TOKEN));
            expected.push((Shown::Bearer(&all.channel_key), INVALID_TOKEN));
        }
        if access != Access::App {
            expected.push((Shown::Header(&all.app_token), INVALID_TOKEN));
            expected.push((Shown::Bearer(&all.app_token), INVALID_TOKEN));
        }
        match access {
            Open => continue,
            Admin => expected.extend([
                (Shown::Cookie(&stage.bob), FORBIDDEN),
                (Shown::Bearer(&all.bob_key), FORBIDDEN),
                (Shown::Header(&all.bob_key), FORBIDDEN),
            ]),
            InPerson => expected.extend([(Shown::Bearer(&all.ada_key), FORBIDDEN)]),
            User | Shared => {}
            Access::Channel | Access::App | Access::WholeApp => expected.extend([
                (Shown::Cookie(&stage.ada), cookie(UNAUTHORIZED)),
                (Shown::Bearer(&all.ada_key), of_users(INVALID_TOKEN)),
            ]),
        }
        for (shown, (status, code)) in expected {
            let answer = ask(&stage, &operation, &path, &shown).await;
            refused(&operation, &answer, status, code, &format!("{shown:?}"));
            cells += 1;
        }
        if operation.parameters().is_empty() || !is_user {
            continue;
        }
        let wrong = operation.parameters().into_iter().map(|name| (name, "usr_01BX5ZZKBKACTAV9WEVGEMMVRZ"));
        let absent = operation.with(&wrong.collect::<Vec<_>>());
        let mut strangers = vec![Shown::Cookie(&stage.bob)];
        if access != InPerson {
            strangers.push(Shown::Bearer(&all.bob_key));
        }
        if access != Shared {
            // An administrator is no one special outside the administration.
            strangers.push(Shown::Cookie(&all.admin));
        }
        match access {
            Admin => {
                // Not even whether it is there shows.
                let answer = ask(&stage, &operation, &absent, &Shown::Cookie(&stage.bob)).await;
                refused(&operation, &answer, 403, "FORBIDDEN", "a member, and nothing there");
                let answer = ask(&stage, &operation, &absent, &Shown::Cookie(&all.admin)).await;
                refused(&operation, &answer, 404, "NOT_FOUND", "an administrator, and nothing there");
                cells += 2;
            }
            _ => {
                for shown in strangers {
                    let theirs = ask(&stage, &operation, &path, &shown).await;
                    refused(&operation, &theirs, 404, "NOT_FOUND", &format!("another user's {shown:?}"));
                    let none = ask(&stage, &operation, &absent, &shown).await;
                    refused(&operation, &none, 404, "NOT_FOUND", &format!("absent {shown:?}"));
                    cells += 2;
                }
            }
        }
    }
    assert!(cells > 500, "{cells} cells");
    assert_eq!(stage.stored().await, before, "a refusal changed something");
}

#[tokio::test]
async fn a_key_may_what_its_user_may_but_for_credentials() {
    let stage = Stage::new().await;
    let operations = operations();
    for entry in super::TABLE {
        let operation = operations.iter().find(|operation| operation.id == entry.operation).unwrap();
        let shown = Shown::Header(&stage.credentials.ada_key);
        let answers = match access(operation) {
            User | Shared | Admin => entry.answers,
            InPerson => 403,
            Open | Access::Channel | Access::App | Access::WholeApp => continue,
        };
        let answer = ask(&stage, operation, &stage.path(operation), &shown).await;
        assert_eq!(answer.status, answers, "{}: {}", operation.id, answer.json);
    }
    stage.hub.stop().await;
}

#[tokio::test]
async fn an_administrator_reads_nothing_that_is_said() {
    let stage = Stage::new().await;
    let admin = Shown::Cookie(&stage.credentials.admin);
    for operation in operations() {
        if access(&operation) == Admin && operation.method == Method::GET {
            let answer = ask(&stage, &operation, &stage.path(&operation), &admin).await;
            assert_eq!(answer.status, 200, "{}: {}", operation.id, answer.json);
            let text = answer.json.to_string();
            // The one message of the stage, its person, and every secret.
            for secret in [
                "\"hi\"",
                "\"ann\"",
                "argon2",
                &stage.credentials.channel_key,
                &stage.credentials.ada_key,
                &stage.credentials.bob_key,
                &stage.ada,
                &stage.bob,
            ] {
                assert!(!text.contains(secret), "{} shows {secret}", operation.id);
            }
        }
    }
}

/// Reading changes nothing, no other site may read, and every answer says so.
#[tokio::test]
async fn reading_changes_nothing_and_every_answer_has_its_headers() {
    let stage = Stage::new().await;
    let before = stage.stored().await;
    for operation in operations() {
        let path = stage.path(&operation);
        if operation.method == Method::GET {
            ask(&stage, &operation, &path, &Shown::Cookie(&stage.ada)).await;
        }
        // Refused or not: a page of another site learns nothing, not even what it may request.
        for origin in ["https://evil.example", "null", "http://localhost:9800.evil.example"] {
            let mut response = stage
                .client
                .request(operation.method.clone(), &path)
                .header("Origin", origin)
                .header("X-HTTP-Method-Override", "DELETE")
                .header("Access-Control-Request-Method", "DELETE")
                .send()
                .await
                .0;
            let id = &operation.id;
            let headers = response.headers();
            assert!(
                headers.keys().all(|name| !name.as_str().starts_with("access-control-")),
                "{id}: {headers:?}"
            );
            assert_eq!(headers["x-content-type-options"], "nosniff", "{id}");
            assert_eq!(headers["referrer-policy"], "no-referrer", "{id}");
            assert_eq!(headers["cross-origin-resource-policy"], "same-origin", "{id}");
            assert_eq!(headers["cross-origin-opener-policy"], "same-origin", "{id}");
            let policy = headers["content-security-policy"].to_str().unwrap();
            assert!(policy.contains("frame-ancestors 'none'"), "{id}: {policy}");
            if operation.path.starts_with("/api/") {
                assert_eq!(headers["cache-control"], "no-store", "{id}");
            }
            response.take_body();
        }
    }
    assert_eq!(stage.stored().await, before, "reading changed something");
}
