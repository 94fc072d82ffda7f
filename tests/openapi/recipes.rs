//! `openapi/RECIPES.md`: a curl command for each operation, made from the document, and each of them run.
//!
//! `HUB_UPDATE_REFERENCE=1` regenerates the page.

use std::{fmt::Write as _, path::Path};

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi/RECIPES.md");

const HEAD: &str = "\
# Recipes

A curl command for each operation, with the examples of the [OpenAPI document](hub.json). The page is made from the
document, and a test runs every command against a live hub: `HUB_UPDATE_REFERENCE=1 cargo test --workspace --test it -- recipes`
regenerates it.

`HUB` is the address of the hub, and `cookies` the file of a session:

```sh
HUB=http://localhost:9800
curl -sS -c cookies -H \"Origin: $HUB\" --json '{\"username\":\"ada\",\"password\":\"correct horse battery\"}' \"$HUB/api/auth/login\"
```

Other variables are ids that lists and answers show (`BOT` is `bot_…`, and so on), `PERSON`, someone's id on the chat network, and
what is shown once: `CHANNEL_KEY` (`hubc_…`), `APP_TOKEN` (`huba_…`) and `APP_SECRET` (`hubh_…`).
";

/// Variables by the beginning of an id.
const IDS: [(&str, &str); 11] = [
    ("app", "APP"),
    ("bnd", "BIND"),
    ("bot", "BOT"),
    ("ch", "CHANNEL"),
    ("hubq", "QR"),
    ("key", "KEY_ID"),
    ("msg", "MESSAGE"),
    ("plg", "PLUGIN"),
    ("ses", "SESSION"),
    ("tr", "TRACE"),
    ("usr", "USER"),
];

/// Values of parameters that cannot be taken from the schema, by `operation.name` or by name.
const PARAMETERS: [(&str, &str); 13] = [
    ("client_id", "$APP"),
    ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
    ("code_challenge_method", "S256"),
    ("content_type", "application/pdf"),
    ("endUserSession.sessionId", "$USER_SESSION"),
    ("filename", "plan.pdf"),
    ("getChannelLogin.bind_id", "$CHANNEL_BIND"),
    ("poll_secret", "$POLL_SECRET"),
    ("provider", "github"),
    ("qr_id", "$QR"),
    ("size", "1001"),
    ("streamEvents.timeout", "1"),
    ("userId", "$PERSON"),
];

/// Optional parameters without which an operation is refused.
const WANTED: [(&str, &str); 7] = [
    ("authorizeApp", "code_challenge"),
    ("authorizeApp", "code_challenge_method"),
    ("authorizeApp", "bot_id"),
    ("authorizeAppOlder", "code_challenge"),
    ("authorizeAppOlder", "bot_id"),
    ("connectApp", "app_id"),
    ("streamEvents", "timeout"),
];

/// Operations whose right answer here is a refusal that otherwise means that a recipe is wrong.
const REFUSED: [(&str, u16, &str); 19] = [
    ("startExternalLogin", 404, "the hub has no provider"),
    ("finishExternalLogin", 404, "the hub has no provider"),
    ("unlinkAccount", 404, "nothing is linked"),
    ("deletePasskey", 404, "a passkey needs an authenticator"),
    ("finishPasskeyRegistration", 400, "the example is that of a login, which has the same schema"),
    ("exchangeAppCode", 400, "the code of the example was never given out: `invalid_grant`"),
    ("verifyAppUrl", 502, "nothing answers at the app's address"),
    ("getTraceCase", 404, "no plugin ran in the trace"),
    ("getReplay", 404, "the replay of the example was never started"),
    ("deleteChannelClient", 404, "no client is connected"),
    ("deleteIlinkClient", 404, "no client is logged in"),
    ("openIlinkLogin", 404, "no program shows a code"),
    ("confirmIlinkLogin", 404, "no program shows a code"),
    ("rejectIlinkLogin", 404, "no program shows a code"),
    ("scanSimBind", 404, "the simulator is another process"),
    ("sendSimMessage", 404, "the simulator is another process"),
    ("getSimOutbound", 404, "the simulator is another process"),
    ("getSimReceiver", 404, "the simulator is another process"),
    ("setSimReceiver", 404, "the simulator is another process"),
];

struct Recipe {
    operation: String,
    tag: String,
    summary: String,
    command: String,
    documented: Value,
    /// Place in the order of execution: a recipe that removes an object runs after those that need it.
    turn: u8,
}

fn document() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi/hub.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// `$BOT` for the id of a bot.
fn variable(text: &str) -> Option<String> {
    let (kind, rest) = text.split_once('_')?;
    let is_id = rest.len() == 26 || rest == "…";
    let (_, name) = IDS.iter().find(|(known, _)| is_id && *known == kind)?;
    Some(format!("${name}"))
}

/// The value of a parameter in a URL.
fn value(operation: &str, parameter: &Value) -> String {
    let name = parameter["name"].as_str().unwrap();
    let qualified = format!("{operation}.{name}");
    let known = |wanted: &str| PARAMETERS.iter().find(|(name, _)| *name == wanted);
    if let Some((_, value)) = known(&qualified).or_else(|| known(name)) {
        return (*value).to_owned();
    }
    let schema = &parameter["schema"];
    if let Some(text) = schema["example"].as_str() {
        return variable(text).unwrap_or_else(|| text.to_owned());
    }
    let pattern = schema["pattern"].as_str().unwrap_or_default().trim_start_matches('^');
    let pattern = if pattern.starts_with("pl[gv]") { "plg" } else { pattern };
    let named = IDS.iter().find(|(kind, _)| pattern.split('_').next() == Some(*kind));
    match (named, name) {
        (Some((_, variable)), _) => format!("${variable}"),
        (None, "app_id") => "$APP".to_owned(),
        (None, "bot_id") => "$BOT".to_owned(),
        (None, _) => panic!("{qualified} has no example; PARAMETERS may say what it is"),
    }
}

/// Ids of an example become variables, between signs that no example has.
fn with_variables(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(variable) = variable(text) {
                *text = format!("\u{ab}{variable}\u{bb}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(with_variables),
        Value::Object(fields) => fields.values_mut().for_each(with_variables),
        _ => {}
    }
}

/// JSON as a word of a shell.
fn quoted(mut body: Value) -> String {
    with_variables(&mut body);
    let text = body.to_string().replace('\'', r"'\''");
    format!("'{}'", text.replace('\u{ab}', "'\"").replace('\u{bb}', "\"'"))
}

fn recipe(document: &Value, method: &str, path: &str, described: &Value) -> Recipe {
    let operation = described["operationId"].as_str().unwrap();
    let mut address = format!("$HUB{path}");
    let mut query = Vec::new();
    for parameter in described["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        if parameter["in"] == "path" {
            address = address.replace(&format!("{{{name}}}"), &value(operation, parameter));
        } else if parameter["in"] == "query"
            && (parameter["required"] == true || WANTED.contains(&(operation, name)))
        {
            query.push(format!("{name}={}", value(operation, parameter)));
        }
    }
    if !query.is_empty() {
        let _ = write!(address, "?{}", query.join("&"));
    }
    let mut command = "curl -sS".to_owned();
    let security = described["security"].to_string();
    let is_of_others = ["channelKey", "appToken", "appSecret"].iter().any(|name| security.contains(name));
    for (scheme, credential) in [
        ("channelKey", "-H \"X-API-Key: $CHANNEL_KEY\""),
        ("appToken", "-H \"Authorization: Bearer $APP_TOKEN\""),
        ("appSecret", "-H \"Authorization: Bearer $APP_SECRET\""),
        ("plainSession", "-b cookies"),
    ] {
        if security.contains(scheme) {
            let _ = write!(command, " {credential}");
        }
    }
    if security.contains("plainSession") && method != "get" {
        command += " -H \"Origin: $HUB\"";
    }
    if described["responses"].get("101").is_some() {
        // The frames that come within a second.
        command += " --http1.1 -N -m 1 -H \"Connection: Upgrade\" -H \"Upgrade: websocket\" -H \"Sec-WebSocket-Version: 13\" \
            -H \"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\"";
    }
    let schema = described["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
    if let Some(schema) = schema {
        let body = document.pointer(&format!("{}/example", schema.trim_start_matches('#'))).unwrap();
        let _ = write!(command, " --json {}", quoted(body.clone()));
    }
    let implied = if schema.is_some() { "post" } else { "get" };
    if method != implied {
        let _ = write!(command, " -X {}", method.to_uppercase());
    }
    let turn = match operation {
        "register" => 0,
        "changePassword" => 50,
        "logout" => 51,
        _ if is_of_others => 1,
        // What is inside goes before what it is in.
        _ if method == "delete" => 40 - u8::try_from(path.split('/').count()).unwrap(),
        _ if operation.starts_with("regenerate") => 3,
        _ => 2,
    };
    Recipe {
        operation: operation.to_owned(),
        tag: described["tags"][0].as_str().unwrap().to_owned(),
        summary: described["summary"].as_str().unwrap().to_owned(),
        command: format!("{command} \"{address}\""),
        documented: described["responses"].clone(),
        turn,
    }
}

fn recipes() -> Vec<Recipe> {
    let document = document();
    let mut recipes = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, described) in operations.as_object().unwrap() {
            recipes.push(recipe(&document, method, path, described));
        }
    }
    recipes
}

fn page() -> String {
    let recipes = recipes();
    let mut page = HEAD.to_owned();
    for tag in document()["tags"].as_array().unwrap() {
        let _ = write!(page, "\n## {}\n", tag["name"].as_str().unwrap());
        for recipe in recipes.iter().filter(|recipe| tag["name"] == *recipe.tag) {
            let Recipe { operation, summary, command, .. } = recipe;
            let _ = write!(page, "\n{summary} (`{operation}`):\n\n```sh\n{command}\n```\n");
        }
    }
    page
}

#[test]
fn the_page_of_recipes_is_made_from_the_document() {
    let page = page();
    if std::env::var_os("HUB_UPDATE_REFERENCE").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(written == page, "openapi/RECIPES.md is not up to date: run with HUB_UPDATE_REFERENCE=1");
}

/// Makes one of everything, and says which it is.
async fn set_up(hub: &HubProcess, network: &NetworkProcess, script: &Value) -> Vec<(&'static str, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned();
    let mut ada = Caller::stranger(&hub.url);
    let person = |name: &str| json!({ "username": name, "password": "correct horse battery" });
    let me = ada.sign_in("/api/auth/register", person("ada")).await;
    assert!(me.is_object(), "{me}");
    let session = ada.get("/api/auth/sessions").await["items"][0]["id"].clone();
    let bob = Caller::stranger(&hub.url).sign_in("/api/auth/register", person("bob")).await;
    let bob = text(&bob["id"]);
    let bobs = ada.get(&format!("/api/admin/users/{bob}/sessions")).await["items"][0]["id"].clone();
    let bind = ada.post("/api/bots/bind/start", json!({ "network": "sim" })).await;
    let account = network.control.control("/_sim/confirm", Some(json!({ "qr_text": bind["qr_text"] }))).await;
    let ask = json!({ "bind_id": bind["bind_id"], "wait_ms": 2000 });
    let bot = until("the login", async || {
        let step = ada.post("/api/bots/bind/confirm", ask.clone()).await;
        (step["status"] == "confirmed").then(|| text(&step["bot"]["id"]))
    })
    .await;
    let channel = ada.post(&format!("/api/bots/{bot}/channels"), json!({ "name": "desk" })).await;
    let plugin = ada.post("/api/plugins", script.clone()).await;
    let install = format!("/api/bots/{bot}/channels/{}/plugins/install", text(&channel["id"]));
    ada.post(&install, json!({ "plugin_id": plugin["id"] })).await;
    let app = json!({ "name": "Desk", "description": "Answers.", "webhook_url": "https://weather.example/hub",
        "redirect_uris": ["https://weather.example/oauth/callback"], "events": ["message"],
        "scopes": ["message:read", "message:write", "contact:read", "bot:read", "tools:write", "config:read"] });
    let app = ada.post("/api/apps", app).await;
    let installed = ada.post(&format!("/api/bots/{bot}/apps/install"), json!({ "app_id": app["id"] })).await;
    let key = ada.post("/api/user/api-keys", json!({ "name": "recipes" })).await;
    let client = Caller::stranger(&hub.url).with_bearer(&text(&channel["api_key"]));
    let channel_bind = client.post("/api/v1/channels/login/qr", json!({})).await;
    let qr = ada.post("/api/auth/qr/generate", json!({})).await;
    network.say(&text(&account["wx_id"]), "hello").await;
    let newest = async |what: &str| {
        let path = format!("/api/bots/{bot}/{what}");
        until(what, async || ada.get(&path).await["items"].get(0).cloned()).await
    };
    let (message, trace, contact) =
        (newest("messages").await, newest("traces").await, newest("contacts").await);
    vec![
        ("APP", text(&app["id"])),
        ("APP_SECRET", text(&app["webhook_secret"])),
        ("APP_TOKEN", text(&installed["app_token"])),
        ("BIND", text(&bind["bind_id"])),
        ("BOT", bot.clone()),
        ("CHANNEL", text(&channel["id"])),
        ("CHANNEL_BIND", text(&channel_bind["bind_id"])),
        ("CHANNEL_KEY", text(&channel["api_key"])),
        ("KEY_ID", text(&key["id"])),
        ("MESSAGE", text(&message["id"])),
        ("PERSON", text(&contact["user_id"])),
        ("PLUGIN", text(&plugin["id"])),
        ("POLL_SECRET", text(&qr["poll_secret"])),
        ("QR", text(&qr["qr_id"])),
        ("SESSION", text(&session)),
        ("TRACE", text(&trace["trace_id"])),
        ("USER", bob),
        ("USER_SESSION", text(&bobs)),
    ]
}

#[tokio::test]
async fn every_recipe_is_answered_as_documented() {
    let mut recipes = recipes();
    recipes.sort_by_key(|recipe| recipe.turn);
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let many = ["HUB_RATE_DEFAULT", "HUB_RATE_SENDS", "HUB_RATE_AUTH_PER_IP", "HUB_RATE_BAD_CREDENTIALS"];
    let hub =
        HubProcess::start(&folder.path().join("hub"), &network, &many.map(|name| (name, "4000000000"))).await;
    let script = document()["components"]["schemas"]["SubmitPlugin"]["example"].clone();
    let variables = set_up(&hub, &network, &script).await;
    let run = async |command: &str| {
        // The recipe, except for its output.
        let whole = format!("curl() {{ command curl -o answer -w '%{{http_code}}' \"$@\"; }}\n{command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &whole]).current_dir(folder.path()).env("HUB", &hub.url);
        shell.env("NO_PROXY", "localhost,127.0.0.1").envs(variables.iter().cloned()).kill_on_drop(true);
        let output = shell.output().await.unwrap();
        let status = String::from_utf8_lossy(&output.stdout).into_owned();
        (status, std::fs::read_to_string(folder.path().join("answer")).unwrap_or_default())
    };
    let login = HEAD.lines().find(|line| line.starts_with("curl")).unwrap();
    assert_eq!(run(login).await.0, "200");
    let mut wrong = Vec::new();
    for Recipe { operation, command, documented, .. } in &recipes {
        let (status, answer) = run(command).await;
        let number: u16 = status.parse().unwrap_or_default();
        let refused = REFUSED.iter().find(|(of, ..)| of == operation).map(|(_, status, _)| *status);
        let is_server_error = StatusCode::from_u16(number).is_ok_and(|status| status.is_server_error());
        let is_right = refused
            .map_or(!is_server_error && ![400, 404, 405].contains(&number), |expected| number == expected);
        if !is_right || documented.get(&status).is_none() {
            wrong.push(format!("{operation}: {status} {answer}\n{command}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), recipes.len(), wrong.join("\n\n"));
}
