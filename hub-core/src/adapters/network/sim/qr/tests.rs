use futures_util::poll;

use super::*;
use crate::{
    error::ErrorCode,
    network::sim::{SimConfig, testing::Rig},
};

fn rig() -> Rig {
    Rig::new(SimConfig::default())
}

async fn status(rig: &Rig, qrcode: &str) -> String {
    rig.status(qrcode).await["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn wait_scaned_confirmed_each_wakes_the_held_poll() {
    let rig = rig();
    let (qrcode, text) = rig.new_qr(&[]).await;
    assert_eq!(qrcode.len(), 32);
    assert!(text.contains(&qrcode) && text.starts_with("http://"));
    let mut idle = Box::pin(rig.status(&qrcode));
    assert!(poll!(&mut idle).is_pending());
    rig.advance(30);
    assert_eq!(idle.await["status"], "wait");
    let mut wait = Box::pin(rig.status(&qrcode));
    assert!(poll!(&mut wait).is_pending());
    rig.sim.scan(&text).unwrap();
    assert_eq!(wait.await["status"], "scaned");
    let mut scanned = Box::pin(rig.status(&qrcode));
    assert!(poll!(&mut scanned).is_pending());
    let account = rig.sim.confirm(&text, None).unwrap();
    let answer = scanned.await;
    assert_eq!(answer["status"], "confirmed");
    assert_eq!(answer["ilink_bot_id"], account.wx_id);
    assert_eq!(answer["ilink_user_id"], account.owner_user_id);
    assert_eq!(answer["baseurl"], "http://sim.test:9801");
    let (name, domain) = account.wx_id.split_once('@').unwrap();
    assert!(name.len() == 12 && name.bytes().all(|b| b.is_ascii_hexdigit()) && domain == "im.bot");
    let owner = account.owner_user_id;
    assert!(owner.starts_with("o9cq80") && owner.ends_with("@im.wechat"));
    assert!(owner != owner.to_lowercase() && owner != owner.to_uppercase());
}

#[tokio::test]
async fn confirmed_is_repeated_for_a_minute() {
    let rig = rig();
    let (qrcode, text) = rig.new_qr(&[]).await;
    rig.sim.confirm(&text, None).unwrap();
    let first = rig.status(&qrcode).await;
    rig.advance(59);
    assert_eq!(rig.status(&qrcode).await, first);
    rig.advance(1);
    assert_eq!(status(&rig, &qrcode).await, "expired");
}

#[tokio::test]
async fn a_code_lives_two_minutes_and_its_end_wakes_the_poll() {
    let rig = rig();
    let (qrcode, text) = rig.new_qr(&[]).await;
    rig.advance(119);
    let mut wait = Box::pin(rig.status(&qrcode));
    assert!(poll!(&mut wait).is_pending());
    rig.advance(1);
    assert_eq!(wait.await["status"], "expired");
    assert_eq!(status(&rig, "unknown").await, "expired");
    assert_eq!(rig.sim.scan(&text).unwrap_err().code(), ErrorCode::Conflict);
    assert_eq!(rig.sim.confirm(&text, None).unwrap_err().code(), ErrorCode::Conflict);
    assert_eq!(rig.sim.scan(&qrcode).unwrap_err().code(), ErrorCode::NotFound);
}

#[tokio::test]
async fn a_pairing_code_is_asked_for_until_it_is_right() {
    let rig = rig();
    let (qrcode, text) = rig.new_qr(&[]).await;
    rig.sim.scan(&text).unwrap();
    let require = |code: &str| rig.sim.qr(&text, QrAction::RequireCode { code: code.into() });
    assert_eq!(require("12a").unwrap_err().code(), ErrorCode::InvalidParams);
    require("4711").unwrap();
    assert_eq!(status(&rig, &qrcode).await, "need_verifycode");
    assert_eq!(rig.sim.confirm(&text, None).unwrap_err().code(), ErrorCode::Conflict);
    let with = |code: &str| format!("{qrcode}&verify_code={code}");
    assert_eq!(status(&rig, &with("1")).await, "need_verifycode");
    assert_eq!(status(&rig, &with("4711")).await, "scaned");
    rig.sim.confirm(&text, None).unwrap();
    assert_eq!(status(&rig, &qrcode).await, "confirmed");
}

#[tokio::test]
async fn too_many_wrong_pairing_codes_block() {
    let rig = rig();
    let (qrcode, text) = rig.new_qr(&[]).await;
    rig.sim.qr(&text, QrAction::RequireCode { code: "1".into() }).unwrap();
    let wrong = format!("{qrcode}&verify_code=2");
    assert_eq!(status(&rig, &wrong).await, "need_verifycode");
    assert_eq!(status(&rig, &wrong).await, "need_verifycode");
    assert_eq!(status(&rig, &wrong).await, "verify_code_blocked");
    assert_eq!(status(&rig, &format!("{qrcode}&verify_code=1")).await, "verify_code_blocked");
}

#[tokio::test]
async fn codes_are_moved_by_hand() {
    for (action, expected) in [
        (QrAction::Expire, "expired"),
        (QrAction::Block, "verify_code_blocked"),
        (QrAction::AlreadyBound, "binded_redirect"),
    ] {
        let rig = rig();
        let (qrcode, text) = rig.new_qr(&[]).await;
        let mut wait = Box::pin(rig.status(&qrcode));
        assert!(poll!(&mut wait).is_pending());
        rig.sim.qr(&text, action.clone()).unwrap();
        assert_eq!(wait.await["status"], expected);
        assert_eq!(rig.sim.qr(&text, action).unwrap_err().code(), ErrorCode::Conflict);
    }
}

#[tokio::test]
async fn a_redirect_ends_on_the_named_host() {
    let rig = rig();
    let (qrcode, text) = rig.new_qr(&[]).await;
    rig.sim.qr(&text, QrAction::Redirect { host: Some("other.test:1".into()) }).unwrap();
    let answer = rig.status(&qrcode).await;
    assert_eq!(answer["status"], "scaned_but_redirect");
    assert_eq!(answer["redirect_host"], "other.test:1");
    let mut stayed = Box::pin(rig.status(&qrcode));
    assert!(poll!(&mut stayed).is_pending());
    let there = format!("http://other.test:1/ilink/bot/get_qrcode_status?qrcode={qrcode}");
    assert_eq!(rig.get(&there).await["status"], "scaned");
    rig.sim.confirm(&text, None).unwrap();
    assert_eq!(rig.get(&there).await["status"], "confirmed");
}

#[tokio::test]
async fn a_redirect_without_a_host_is_reported_once() {
    let rig = rig();
    let (qrcode, text) = rig.new_qr(&[]).await;
    rig.sim.qr(&text, QrAction::Redirect { host: None }).unwrap();
    let answer = rig.status(&qrcode).await;
    assert_eq!(answer, json!({"ret": 0, "status": "scaned_but_redirect"}));
    assert_eq!(status(&rig, &qrcode).await, "scaned");
}

#[tokio::test]
async fn a_live_token_in_the_request_keeps_the_binding_and_any_other_replaces_it() {
    let rig = rig();
    let bot = rig.login(None).await;
    let (qrcode, text) = rig.new_qr(&["other", &bot.token]).await;
    assert_eq!(rig.sim.confirm(&text, Some(bot.owner())).unwrap(), bot.account);
    assert_eq!(status(&rig, &qrcode).await, "binded_redirect");
    assert_eq!(rig.call("msg/notifystart", &bot, json!({})).await["ret"], 0);
    // A dead token is no binding to keep: the client would be left without a login.
    rig.sim.expire(bot.wx_id()).unwrap();
    let (qrcode, text) = rig.new_qr(&[&bot.token]).await;
    assert_ne!(rig.sim.confirm(&text, Some(bot.owner())).unwrap().wx_id, bot.account.wx_id);
    assert_eq!(status(&rig, &qrcode).await, "confirmed");
}

#[tokio::test]
async fn another_bot_type_is_refused() {
    let rig = rig();
    for query in ["", "?bot_type=1"] {
        assert_eq!(rig.get(&format!("/ilink/bot/get_bot_qrcode{query}")).await["ret"], 2);
    }
}

#[tokio::test]
async fn the_caps_hold() {
    let mut config = SimConfig::default();
    (config.caps.accounts, config.caps.qr_codes) = (1, 1);
    let rig = Rig::new(config);
    let bot = rig.login(None).await;
    let (first, _) = rig.new_qr(&[]).await;
    let (_, text) = rig.new_qr(&[]).await;
    assert_eq!(status(&rig, &first).await, "expired");
    assert_eq!(rig.sim.confirm(&text, None).unwrap_err().code(), ErrorCode::Conflict);
    rig.sim.confirm(&text, Some(bot.owner())).unwrap();
}

#[tokio::test]
async fn the_text_of_a_code_can_be_opened_as_a_link() {
    let rig = rig();
    let (_, text) = rig.new_qr(&[]).await;
    assert_eq!(rig.get_status(&text).await, 200);
    assert_eq!(rig.get_status("http://sim.test:9801/q/unknown").await, 404);
}
