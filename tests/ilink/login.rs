//! Login cases.

use std::time::Duration;

use hub_core::network::{
    LoginState, LoginStep, Network,
    sim::{Action, Endpoint, Fault, QrAction},
};
use serde_json::{Map, json};

use super::stage::{Stage, within};

async fn begin(stage: &Stage) -> (String, LoginState) {
    let prompt = stage.network.begin_login(&[]).await.unwrap();
    (prompt.qr_text.expose().to_owned(), prompt.state)
}

fn patch_status(set: Map<String, serde_json::Value>, remove: &[&str]) -> Fault {
    let remove = remove.iter().map(ToString::to_string).collect();
    Fault::on(Endpoint::GetQrcodeStatus, Action::Patch { set, remove, remove_headers: vec![] })
}

#[tokio::test]
async fn l1_the_login_request_has_the_published_shape() {
    let stage = Stage::quick().await;
    stage.network.begin_login(&["bot:1".into(), "bot:2".into()]).await.unwrap();
    let request = stage.tap.requests("get_bot_qrcode").remove(0);
    assert_eq!(request.method(), "POST");
    assert_eq!(request.uri().query(), Some("bot_type=3"));
    assert_eq!(stage.tap.bodies("get_bot_qrcode"), [json!({ "local_token_list": ["bot:1", "bot:2"] })]);
    let headers = request.headers();
    assert!(!headers.contains_key("authorization"));
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["authorizationtype"], "ilink_bot_token");
    assert_eq!(headers["ilink-app-id"], "bot");
    assert!(headers.contains_key("x-wechat-uin") && headers.contains_key("ilink-app-clientversion"));
    assert_eq!(stage.sim.violations(None), []);
}

#[tokio::test]
async fn l3_a_login_outlives_time_outs_gateways_and_refused_connections() {
    let mut stage = Stage::quick().await;
    let (qr_text, mut state) = begin(&stage).await;
    let held = Fault::on(Endpoint::GetQrcodeStatus, Action::Pass).after(Duration::from_secs(3600));
    stage.sim.add_fault(held).unwrap();
    let progress = stage.network.login_step(&state, None, Duration::from_millis(50)).await.unwrap();
    assert_eq!(progress.step, LoginStep::Waiting);
    stage
        .sim
        .add_fault(Fault::on(Endpoint::GetQrcodeStatus, Action::Html { status: 524, effect: false }))
        .unwrap();
    assert_eq!(within(stage.step(&mut state, None)).await, LoginStep::Waiting);
    stage.close_port().await;
    assert_eq!(within(stage.step(&mut state, None)).await, LoginStep::Waiting);
    stage.open_port().await;
    let account = stage.sim.confirm(&qr_text, None).unwrap();
    let LoginStep::Confirmed(credentials) = within(stage.step(&mut state, None)).await else {
        panic!("the login was confirmed");
    };
    assert_eq!((credentials.account_id, credentials.owner_user_id), (account.wx_id, account.owner_user_id));
    assert_eq!(stage.tap.requests("get_bot_qrcode").len(), 1, "no new code");
}

#[tokio::test]
async fn l6_a_wrong_pairing_code_is_asked_for_again() {
    let stage = Stage::quick().await;
    let (qr_text, mut state) = begin(&stage).await;
    stage.sim.qr(&qr_text, QrAction::RequireCode { code: "0042".into() }).unwrap();
    let mut step = async |code| within(stage.step(&mut state, code)).await;
    assert_eq!(step(None).await, LoginStep::NeedCode { wrong: false });
    assert_eq!(step(Some("1111")).await, LoginStep::NeedCode { wrong: true });
    assert_eq!(step(Some("0042")).await, LoginStep::Scanned);
    stage.sim.confirm(&qr_text, None).unwrap();
    assert!(matches!(step(None).await, LoginStep::Confirmed(_)));
    let polls = stage.tap.requests("get_qrcode_status");
    let codes: Vec<_> = polls.iter().map(|r| r.uri().query().unwrap().split_once("&verify_code=")).collect();
    let codes: Vec<_> = codes.into_iter().map(|found| found.map(|(_, code)| code)).collect();
    assert_eq!(codes, [None, Some("1111"), Some("0042"), None]);
}

#[tokio::test]
async fn l7_too_many_wrong_codes_block_the_login() {
    let stage = Stage::quick().await;
    let (qr_text, mut state) = begin(&stage).await;
    stage.sim.qr(&qr_text, QrAction::RequireCode { code: "0042".into() }).unwrap();
    for step in
        [LoginStep::NeedCode { wrong: true }, LoginStep::NeedCode { wrong: true }, LoginStep::CodeBlocked]
    {
        assert_eq!(within(stage.step(&mut state, Some("1"))).await, step);
    }
}

#[tokio::test]
async fn l8_a_redirect_is_followed_to_an_allowed_host_only() {
    let stage = Stage::quick().await;
    let (qr_text, mut state) = begin(&stage).await;
    let host = format!("localhost:{}", stage.address.port());
    stage.sim.qr(&qr_text, QrAction::Redirect { host: Some(host.clone()) }).unwrap();
    assert_eq!(within(stage.step(&mut state, None)).await, LoginStep::Scanned);
    stage.sim.confirm(&qr_text, None).unwrap();
    let LoginStep::Confirmed(credentials) = within(stage.step(&mut state, None)).await else {
        panic!("the login was confirmed");
    };
    assert_eq!(credentials.base_url, format!("http://{host}/"));
    let polls = stage.tap.requests("get_qrcode_status");
    assert_eq!(
        polls.iter().map(|r| r.headers()["host"].clone()).collect::<Vec<_>>(),
        [stage.address.to_string(), host]
    );
    assert_eq!(polls[0].uri().query(), polls[1].uri().query(), "the same code");

    for foreign in ["evil.example", "127.0.0.1:1"] {
        let (qr_text, mut state) = begin(&stage).await;
        stage.sim.qr(&qr_text, QrAction::Redirect { host: Some(foreign.into()) }).unwrap();
        assert!(matches!(within(stage.step(&mut state, None)).await, LoginStep::Refused(_)), "{foreign}");
    }
    let (qr_text, mut state) = begin(&stage).await;
    stage.sim.qr(&qr_text, QrAction::Redirect { host: None }).unwrap();
    assert_eq!(within(stage.step(&mut state, None)).await, LoginStep::Scanned, "no host: stay");
}

#[tokio::test]
async fn l9_a_known_token_is_recognised() {
    let stage = Stage::quick().await;
    let bot = stage.bind().await;
    let prompt = stage.network.begin_login(&[bot.credentials.token]).await.unwrap();
    stage.sim.confirm(prompt.qr_text.expose(), Some(&bot.account.owner_user_id)).unwrap();
    let mut state = prompt.state;
    assert_eq!(within(stage.step(&mut state, None)).await, LoginStep::AlreadyBound);
}

#[tokio::test]
async fn l10_a_confirmation_without_a_bot_id_is_a_failure() {
    let stage = Stage::quick().await;
    for missing in ["ilink_bot_id", "bot_token"] {
        let (qr_text, mut state) = begin(&stage).await;
        stage.sim.add_fault(patch_status(Map::new(), &[missing])).unwrap();
        stage.sim.confirm(&qr_text, None).unwrap();
        assert!(matches!(within(stage.step(&mut state, None)).await, LoginStep::Refused(_)), "{missing}");
    }
}

#[tokio::test]
async fn l11_an_unknown_status_is_waiting() {
    let stage = Stage::quick().await;
    let (qr_text, mut state) = begin(&stage).await;
    let foo = json!({ "status": "foo" }).as_object().unwrap().clone();
    stage.sim.add_fault(patch_status(foo, &[])).unwrap();
    let log = super::life::Log::start();
    assert_eq!(within(stage.step(&mut state, None)).await, LoginStep::Waiting);
    assert!(log.text().contains("foo"), "the raw value is logged");
    stage.sim.confirm(&qr_text, None).unwrap();
    assert!(matches!(within(stage.step(&mut state, None)).await, LoginStep::Confirmed(_)));
}
