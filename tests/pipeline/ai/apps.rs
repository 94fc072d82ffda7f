//! Tools of installed apps, called by a model.

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use hub_core::{
    apps::{
        AppEvent, AppEventState, AppPatch, AppTool, Apps, Install, InstallationPatch, NewApp, NewInstallation,
    },
    channels::sinks::AiUpdate,
    id::{AppId, ChannelId, InstallationId},
    page::PageRequest,
    secret::Secret,
    traces::TraceStatus,
};
use serde_json::{Value, json};
use sha2::Sha256;

use super::{MINUTE, MODEL, SECOND, ai_steps, channel, ended, own_model, said, tools::asks_for};
use crate::support::{
    receiver::{Received, Reply},
    world::{TestBot, World},
};

const APP: &str = "/app";

struct Scene {
    hub: World,
    bot: TestBot,
    channel: ChannelId,
    app: AppId,
    secret: Secret,
    installation: InstallationId,
    /// The name under which the model knows the tool `weather`.
    weather: String,
}

fn weather() -> AppTool {
    AppTool {
        name: "weather".to_owned(),
        description: "The weather in a city".to_owned(),
        command: Some("w".to_owned()),
        parameters: Some(json!({ "type": "object", "properties": { "city": { "type": "string" } },
            "required": ["city"], "additionalProperties": false })),
    }
}

impl Scene {
    /// An app with a tool on a bot, and a channel in which a model answers and may use tools.
    async fn new(scopes: &[&str]) -> Self {
        let hub = World::start().await;
        hub.receiver.is_app(APP);
        hub.receiver.always(MODEL, said("Take an umbrella."));
        let bot = hub.bot().await;
        let channel = channel(&hub, &bot, AiUpdate { tools: true, ..own_model() }).await;
        let rest = AppPatch {
            webhook_url: Some(format!("http://receiver.test{APP}")),
            scopes: Some(scopes.iter().map(|word| (*word).to_owned()).collect()),
            tools: Some(vec![weather()]),
            ..AppPatch::default()
        };
        let new = NewApp { name: "Sky".to_owned(), slug: None, rest };
        let created = hub.hub.apps().create(&hub.owner, new, None).await.unwrap();
        assert!(created.app.webhook_verified);
        let app = created.app.id;
        let new = NewInstallation { app_id: app, scopes: None, handle: None, config: None };
        let installed = hub.hub.apps().install(&hub.owner, bot.id, new, None).await.unwrap();
        let Install::Done(installed) = installed else { panic!("{installed:?}") };
        let installation = installed.installation.id;
        let weather = format!("{installation}__weather");
        Self { hub, bot, channel, app, secret: created.webhook_secret.0, installation, weather }
    }

    fn asks(&self, arguments: &str) -> Reply {
        asks_for(&self.weather, arguments)
    }

    /// The person asks, and gets the answer.
    async fn answered(&self) {
        self.hub.say(&self.bot, "Do I need an umbrella in Paris?");
        let sent = self.hub.wait_sent(&self.bot, 1).await;
        assert_eq!(sent.last().unwrap().text, "Take an umbrella.");
    }

    fn asked(&self) -> Vec<Received> {
        self.hub.receiver.received_at(APP)
    }

    /// The results of tools in the last request to the model.
    fn told(&self) -> Vec<String> {
        let last = self.hub.receiver.received_at(MODEL).last().unwrap().json();
        let messages = last["messages"].as_array().unwrap().iter();
        let answers = messages.filter(|message| message["role"] == "tool");
        answers.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    }

    /// The names of the tools in the model's last question.
    fn offered(&self) -> Vec<String> {
        let last = self.hub.receiver.received_at(MODEL).last().unwrap().json();
        let tools = last["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The app's log, newest first.
    async fn log(&self) -> Vec<AppEvent> {
        let page = PageRequest::parse(&Apps::event_list(self.bot.id, self.app), None, None).unwrap();
        self.hub.hub.apps().events(&self.hub.owner, self.bot.id, self.app, &page).await.unwrap().items
    }
}

const READ: &[&str] = &["message:read"];

#[tokio::test]
async fn a_model_calls_an_apps_tool_and_answers_with_what_it_learnt() {
    let scene = Scene::new(READ).await;
    scene.hub.receiver.then(APP, [Reply::json(&json!({ "reply": "rain, 12 °C" }))]);
    scene.hub.receiver.then(MODEL, [scene.asks(r#"{"city":"Paris"}"#)]);
    scene.answered().await;
    let first = scene.hub.receiver.received_at(MODEL)[0].json();
    let function = &first["tools"][0]["function"];
    assert_eq!(
        (&function["name"], &function["description"]),
        (&json!(scene.weather), &json!("[Sky] The weather in a city"))
    );
    assert_eq!(function["parameters"], weather().parameters.unwrap());
    assert_eq!(scene.told(), ["rain, 12 °C"]);

    let asked = scene.asked();
    assert_eq!(asked.len(), 1);
    let (body, event) = (asked[0].json(), asked[0].json()["event"].clone());
    let mut mac = Hmac::<Sha256>::new_from_slice(scene.secret.expose().as_bytes()).unwrap();
    mac.update(format!("{}:", asked[0].header("x-timestamp")).as_bytes());
    mac.update(&asked[0].body);
    let expected = format!("sha256={}", HEXLOWER.encode(&mac.finalize().into_bytes()));
    assert_eq!(asked[0].header("x-signature"), expected);
    assert_eq!(asked[0].header("x-installation-id"), scene.installation.to_string());
    assert_eq!((&body["v"], &body["type"], &event["type"]), (&json!(1), &json!("event"), &json!("command")));
    let data = &event["data"];
    assert_eq!(
        (&data["command"], &data["text"], &data["args"]),
        (&json!("weather"), &json!(""), &json!({ "city": "Paris" }))
    );
    assert_eq!(data["sender"], json!({ "id": scene.bot.account.owner_user_id, "role": "agent" }));
    assert_eq!(data["group"], Value::Null);

    let trace = ended(&scene.hub, &scene.bot, scene.channel, TraceStatus::Ok).await;
    assert_eq!(body["trace_id"], trace.trace_id.to_string());
    let expected = [("ai", TraceStatus::Ok), (&*scene.weather, TraceStatus::Ok), ("ai", TraceStatus::Ok)];
    assert_eq!(ai_steps(&trace), expected);
    let log = scene.log().await;
    assert_eq!((log.len(), log[0].state, log[0].attempts), (1, AppEventState::Delivered, 1));
    assert_eq!(log[0].id.to_string(), event["id"].as_str().unwrap());
    assert_eq!((log[0].trace_id, log[0].response_status), (Some(trace.trace_id), Some(200)));
    assert!(log[0].response_body.contains("rain"));
    // No one is notified of it a second time.
    scene.hub.jump(MINUTE * 10).await;
    assert_eq!(scene.asked().len(), 1);
}

#[tokio::test]
async fn wrong_arguments_and_tools_of_others_do_not_reach_an_app() {
    let scene = Scene::new(READ).await;
    // The same app on another bot: nothing that is said here leads there.
    let elsewhere = scene.hub.bot().await;
    let new = NewInstallation { app_id: scene.app, scopes: None, handle: None, config: None };
    let installed = scene.hub.hub.apps().install(&scene.hub.owner, elsewhere.id, new, None).await.unwrap();
    let Install::Done(installed) = installed else { panic!("{installed:?}") };
    let paris = r#"{"city":"Paris"}"#;
    let questions = [
        scene.asks(r#"{"city":7}"#),
        asks_for(&format!("{}__weather", installed.installation.id), paris),
        asks_for(&format!("{}__news", scene.installation), "{}"),
        scene.asks("nonsense"),
    ];
    scene.hub.receiver.then(MODEL, questions);
    scene.answered().await;
    let told = scene.told();
    assert!(told[0].contains("/city") && told[0].starts_with("error: wrong arguments"), "{told:?}");
    assert!(
        told[1].contains("there is no tool called") && told[2].contains("there is no tool called"),
        "{told:?}"
    );
    assert!(told[3].contains("no JSON"), "{told:?}");
    assert!(scene.asked().is_empty() && scene.log().await.is_empty());
}

#[tokio::test]
async fn a_failed_or_slow_app_is_reported_to_the_model_which_continues() {
    let scene = Scene::new(READ).await;
    let late = Reply::json(&json!({ "reply": "rain" })).after(MINUTE * 60);
    scene.hub.receiver.then(APP, [Reply::status(500), Reply::status(302), late]);
    let questions = ["Paris", "Lyon", "Nice"].map(|city| scene.asks(&json!({ "city": city }).to_string()));
    scene.hub.receiver.then(MODEL, questions);
    scene.answered().await;
    assert_eq!(
        scene.told(),
        [
            "error: the app answered with status 500",
            "error: the app answered with status 302",
            "error: the app gave no response within 20 s"
        ]
    );
    let log = scene.log().await;
    let errors: Vec<_> =
        log.iter().rev().map(|event| (event.state, event.error.as_deref().unwrap())).collect();
    let mut expected = [
        (AppEventState::Failed, "status 500"),
        (AppEventState::Failed, "status 302"),
        (AppEventState::Failed, "no response within 20 s"),
    ];
    // All of one message: they have their time in common, and no order.
    expected.sort_unstable_by_key(|(_, error)| *error);
    let mut errors = errors;
    errors.sort_unstable_by_key(|(_, error)| *error);
    assert_eq!(errors, expected);
}

#[tokio::test]
async fn the_time_of_the_whole_answer_ends_a_call_too() {
    let scene = Scene::new(READ).await;
    let ai = AiUpdate { tools: true, timeout_ms: 8000, ..own_model() };
    scene.hub.hub.channels().set_ai(&scene.hub.owner, scene.bot.id, scene.channel, ai).await.unwrap();
    scene.hub.receiver.then(APP, [Reply::json(&json!({ "reply": "rain" })).after(MINUTE * 60)]);
    scene.hub.receiver.then(MODEL, [scene.asks(r#"{"city":"Paris"}"#)]);
    // The next try asks the model again, which needs no tool then.
    scene.answered().await;
    let log = scene.hub.until("the entry in the log", async || scene.log().await.into_iter().next()).await;
    assert_eq!(log.state, AppEventState::Failed);
    assert_eq!(log.error.as_deref(), Some("the time for the whole response had expired"));
}

#[tokio::test]
async fn a_model_that_keeps_calling_tools_is_stopped_together_with_its_tool() {
    let scene = Scene::new(READ).await;
    scene.hub.receiver.always(APP, Reply::json(&json!({ "reply": "rain" })));
    scene.hub.receiver.always(MODEL, scene.asks(r#"{"city":"Paris"}"#));
    scene.hub.say(&scene.bot, "Paris?");
    let stopped = ended(&scene.hub, &scene.bot, scene.channel, TraceStatus::Error).await;
    assert!(stopped.summary.contains("five times"), "{}", stopped.summary);
    assert_eq!((scene.hub.receiver.received_at(MODEL).len(), scene.asked().len()), (5, 4));
    let ids: std::collections::HashSet<_> =
        scene.asked().iter().map(|asked| asked.json()["event"]["id"].to_string()).collect();
    assert_eq!(ids.len(), 4, "the same question in another place is another call");
}

#[tokio::test]
async fn an_app_that_is_taken_off_in_the_middle_is_not_asked() {
    let scene = Scene::new(READ).await;
    scene.hub.receiver.then(MODEL, [scene.asks(r#"{"city":"Paris"}"#).after(SECOND * 5)]);
    scene.hub.say(&scene.bot, "Paris?");
    scene
        .hub
        .until("the model is asked", async || {
            (!scene.hub.receiver.received_at(MODEL).is_empty()).then_some(())
        })
        .await;
    scene.hub.hub.apps().uninstall(&scene.hub.owner, scene.bot.id, scene.app).await.unwrap();
    scene.hub.wait_sent(&scene.bot, 1).await;
    let told = scene.told();
    assert!(told[0].contains("any more"), "{told:?}");
    assert!(scene.asked().is_empty());
}

#[tokio::test]
async fn a_call_that_went_well_is_not_made_again_when_the_model_fails_after_it() {
    let scene = Scene::new(READ).await;
    let call = || scene.asks(r#"{"city":"Paris"}"#);
    scene.hub.receiver.then(APP, [Reply::status(503), Reply::json(&json!({ "reply": "rain" }))]);
    // The app fails, then the model; the app works, then the model fails; at last everything works.
    scene.hub.receiver.then(MODEL, [call(), Reply::status(500), call(), Reply::status(500), call()]);
    scene.answered().await;
    let asked = scene.asked();
    assert_eq!(asked.len(), 2, "what it answered the second time is known");
    assert_eq!(asked[0].json()["event"]["id"], asked[1].json()["event"]["id"], "a repeat is the same event");
    assert_eq!(scene.told(), ["rain"]);
    let log = scene.log().await;
    assert_eq!((log.len(), log[0].attempts, log[0].state), (1, 2, AppEventState::Delivered));
}

#[tokio::test]
async fn a_file_goes_to_the_person_with_the_apps_own_permission() {
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let picture = || {
        Reply::json(
            &json!({ "reply": "rain", "reply_type": "image", "reply_base64": png, "reply_name": "sky.png" }),
        )
    };
    let may = Scene::new(&["message:read", "message:write"]).await;
    may.hub.receiver.then(APP, [picture()]);
    may.hub.receiver.then(MODEL, [may.asks(r#"{"city":"Paris"}"#)]);
    may.hub.say(&may.bot, "Show me Paris");
    let sent = may.hub.wait_sent(&may.bot, 2).await;
    assert!(sent[0].media.is_some() && sent[1].text == "Take an umbrella.", "{sent:?}");
    assert_eq!(may.told(), ["rain\n(a file from the app was sent to the person)"]);

    let may_not = Scene::new(READ).await;
    may_not.hub.receiver.then(APP, [picture()]);
    may_not.hub.receiver.then(MODEL, [may_not.asks(r#"{"city":"Paris"}"#)]);
    may_not.answered().await;
    let told = may_not.told();
    assert!(told[0].starts_with("rain\n(a file from the app could not be sent: "), "{told:?}");
    assert!(told[0].contains("message:write"), "{told:?}");
}

#[tokio::test]
async fn an_app_may_answer_later_say_nothing_or_say_what_is_no_answer() {
    let scene = Scene::new(READ).await;
    let answers = [
        Reply::json(&json!({ "reply_async": true })),
        Reply::json(&json!({ "ok": true })),
        Reply::text("text/html", "<html>"),
        Reply::json(&json!({ "reply": "x".repeat(20_000) })),
    ];
    scene.hub.receiver.then(APP, answers);
    scene
        .hub
        .receiver
        .then(MODEL, ["a", "b", "c", "d"].map(|city| scene.asks(&json!({ "city": city }).to_string())));
    scene.answered().await;
    let told = scene.told();
    assert_eq!(told[0], "the app is working on it and will reply to the person itself");
    assert_eq!(told[1..3], ["the app completed it without a reply", "the app completed it without a reply"]);
    assert_eq!(told[3].len(), 16 * 1024, "an answer is cut");
}

#[tokio::test]
async fn only_apps_that_may_read_messages_and_can_be_asked_offer_tools() {
    let scene = Scene::new(&["message:read", "message:write"]).await;
    let apps = scene.hub.hub.apps();
    let (owner, bot) = (&scene.hub.owner, scene.bot.id);
    let patch = async |patch: InstallationPatch| {
        apps.change_installation(owner, bot, scene.app, patch).await.unwrap();
    };
    let mut asked = 0;
    let mut offered = async || {
        scene.hub.say(&scene.bot, "hello");
        asked += 1;
        scene.hub.wait_sent(&scene.bot, asked).await;
        scene.offered()
    };
    let expected = [scene.weather.clone()];
    assert_eq!(offered().await, expected);
    let scopes = |word: &str| Some(vec![word.to_owned()]);
    patch(InstallationPatch { scopes: scopes("message:write"), ..InstallationPatch::default() }).await;
    assert!(offered().await.is_empty());
    patch(InstallationPatch { scopes: scopes("message:read"), ..InstallationPatch::default() }).await;
    assert_eq!(offered().await, expected);
    patch(InstallationPatch { enabled: Some(false), ..InstallationPatch::default() }).await;
    assert!(offered().await.is_empty());
    patch(InstallationPatch { enabled: Some(true), ..InstallationPatch::default() }).await;
    // No one answers at another address.
    let elsewhere =
        AppPatch { webhook_url: Some("http://receiver.test/elsewhere".to_owned()), ..AppPatch::default() };
    assert!(!apps.update(owner, scene.app, elsewhere).await.unwrap().webhook_verified);
    assert!(offered().await.is_empty());
}
