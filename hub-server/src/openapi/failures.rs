//! The errors that an operation can return: those of its kind, and its own.
//!
//! `tests/endpoints/answers/mod.rs` provokes each of them, and fails for an undocumented one.

use poem::http::StatusCode;
use serde_json::Value;

const UNAUTHORIZED: u16 = 401;
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;
const PAYLOAD_TOO_LARGE: u16 = 413;
const BAD_GATEWAY: u16 = 502;

/// Errors of single operations, in addition to those of their kind.
const OWN: &[(&str, &[u16])] = &[
    // Sign-in: the body contains a credential.
    ("register", &[UNAUTHORIZED, CONFLICT]),
    ("login", &[UNAUTHORIZED]),
    ("beginPasskeyRegistration", &[UNAUTHORIZED, CONFLICT]),
    ("finishPasskeyRegistration", &[UNAUTHORIZED, CONFLICT]),
    ("finishPasskeyLogin", &[UNAUTHORIZED]),
    ("startExternalLogin", &[UNAUTHORIZED, FORBIDDEN, NOT_FOUND, BAD_GATEWAY]),
    ("finishExternalLogin", &[UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT]),
    ("getQrLoginStatus", &[UNAUTHORIZED]),
    ("exchangeQrLogin", &[UNAUTHORIZED]),
    ("resetPassword", &[UNAUTHORIZED]),
    ("exchangeAppCode", &[CONFLICT]),
    ("exchangeAppCodeOlder", &[UNAUTHORIZED, NOT_FOUND, CONFLICT]),
    ("deletePasskey", &[CONFLICT]),
    ("unlinkAccount", &[CONFLICT]),
    // An object named in a body or a query may not exist.
    ("streamEvents", &[FORBIDDEN, NOT_FOUND]),
    ("getSimReceiver", &[NOT_FOUND]),
    ("setSimReceiver", &[NOT_FOUND]),
    // The inbox of the bot on the simulated network may be full.
    ("sendSimMessage", &[CONFLICT]),
    ("confirmBind", &[NOT_FOUND, BAD_GATEWAY]),
    ("startBind", &[BAD_GATEWAY]),
    ("startChannelLogin", &[BAD_GATEWAY]),
    ("getChannelLogin", &[NOT_FOUND, BAD_GATEWAY]),
    ("authorizeApp", &[NOT_FOUND]),
    ("decideApp", &[NOT_FOUND]),
    ("openIlinkLogin", &[NOT_FOUND]),
    ("confirmIlinkLogin", &[NOT_FOUND, CONFLICT]),
    ("rejectIlinkLogin", &[NOT_FOUND]),
    // The state of the requested object.
    ("createInvite", &[CONFLICT]),
    ("testAiConfig", &[CONFLICT]),
    ("deleteUser", &[CONFLICT]),
    ("updateUser", &[CONFLICT]),
    ("approvePlugin", &[CONFLICT]),
    ("rejectPlugin", &[CONFLICT]),
    ("approveApp", &[CONFLICT]),
    ("rejectApp", &[CONFLICT]),
    ("requestAppListing", &[CONFLICT]),
    ("setUpApp", &[CONFLICT]),
    ("verifyAppUrl", &[CONFLICT, BAD_GATEWAY]),
    ("changeInstalledApp", &[CONFLICT]),
    ("updateChannel", &[CONFLICT]),
    ("installPlugin", &[CONFLICT]),
    ("changeChannelPlugin", &[CONFLICT]),
    ("deletePlugin", &[CONFLICT]),
    ("reconnectBot", &[CONFLICT]),
    ("setChannelTyping", &[CONFLICT]),
    ("getUploadUrl", &[CONFLICT, PAYLOAD_TOO_LARGE]),
    ("changePassword", &[CONFLICT]),
    ("replayTrace", &[CONFLICT]),
    ("attemptTrace", &[CONFLICT]),
    ("cancelTrace", &[CONFLICT]),
    ("sendMessage", &[BAD_GATEWAY]),
    ("sendChannelMessage", &[CONFLICT, BAD_GATEWAY]),
    ("sendAppMessage", &[CONFLICT, BAD_GATEWAY]),
    ("sendAppMessageOlder", &[CONFLICT, BAD_GATEWAY]),
];

/// Operations that use neither the store nor another service: nothing in them can fail.
const SIMPLE: [&str; 3] = ["getHealth", "getReadiness", "listProviders"];

/// Bytes of parameters that the edge accepts in the target of a request, of 8 KiB.
const MAX_PARAMETERS: u64 = 7 * 1024;

/// Bytes of a character in a target at most: four of UTF-8, each in percent encoding.
const ENCODED: u64 = 12;

/// Whether an operation of the document, with its security set, can return this error.
pub(super) fn can_happen(path: &str, method: &str, operation: &Value, status: StatusCode) -> bool {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let parameters = || operation["parameters"].as_array().into_iter().flatten();
    let security = operation["security"].to_string();
    let has_credential = security != "[]";
    let is_program = ["channelKey", "appToken", "appSecret"].iter().any(|name| security.contains(name));
    let changes = method != "get";
    let has_body = operation.get("requestBody").is_some();
    let is_health = operation["tags"][0] == "Health";
    let of_its_kind = match status {
        // An invalid head is rejected on every path, and so is a connection over the limit.
        StatusCode::BAD_REQUEST | StatusCode::SERVICE_UNAVAILABLE => true,
        StatusCode::UNAUTHORIZED => has_credential,
        // A page of another site, also where it would sign in; no administrator; a feature that is switched off.
        StatusCode::FORBIDDEN => {
            let signs_in = changes && operation["tags"][0] == "Auth";
            signs_in || (has_credential && (changes || is_program || path.starts_with("/api/admin/")))
        }
        // A path with an id; without a credential there is a code instead.
        StatusCode::NOT_FOUND => has_credential && path.contains('{'),
        StatusCode::CONFLICT => parameters().any(|one| one["name"] == "Idempotency-Key"),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNSUPPORTED_MEDIA_TYPE => has_body,
        StatusCode::URI_TOO_LONG => {
            let in_target = parameters().filter(|one| one["in"] == "query" || one["in"] == "path");
            let longest: u64 = in_target.filter_map(|one| one["schema"]["maxLength"].as_u64()).sum();
            longest * ENCODED > MAX_PARAMETERS
        }
        StatusCode::TOO_MANY_REQUESTS => !is_health,
        StatusCode::INTERNAL_SERVER_ERROR => !SIMPLE.contains(&id),
        _ => false,
    };
    let own = OWN.iter().find(|(name, _)| *name == id);
    of_its_kind || own.is_some_and(|(_, own)| own.contains(&status.as_u16()))
}
