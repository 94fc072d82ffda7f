//! "Is typing".

use std::time::Duration;

use hub_core::{
    network::{
        NetworkError, SendOutcome,
        ilink::IlinkConfig,
        sim::{Action, Endpoint, Fault, SimConfig},
        typing::TypingIndicator,
    },
    tasks::Tasks,
    time::{ManualClock, Timestamp},
};

use super::stage::{Stage, reply_to};

async fn stage() -> (Stage, ManualClock) {
    let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
    let stage = Stage::start(SimConfig::default(), IlinkConfig::default(), clock.clone().into()).await;
    (stage, clock)
}

#[tokio::test]
async fn t1_the_sign_is_renewed_while_work_goes_on_and_taken_away_at_the_end() {
    let (stage, clock) = stage().await;
    let (bot, message) = stage.bind_and_greet().await;
    let start = clock.now();
    let indicator = TypingIndicator::start(
        bot.connection.clone(),
        message.from_user_id.as_str(),
        message.context_token.clone(),
        stage.clock.clone(),
        &Tasks::new(),
    );
    for shown in 1..=3 {
        stage.tap.wait_answered("sendtyping", shown).await;
        clock.advance(Duration::from_secs(if shown == 3 { 2 } else { 5 }));
    }
    drop(indicator);
    stage.tap.wait_answered("sendtyping", 4).await;
    let seen: Vec<_> =
        stage.sim.typing(None).iter().map(|sign| (sign.at.since(start).as_secs(), sign.on)).collect();
    assert_eq!(seen, [(0, true), (5, true), (10, true), (12, false)]);
    assert_eq!(stage.tap.requests("getconfig").len(), 1);
}

#[tokio::test]
async fn t2_an_old_ticket_is_renewed_before_the_stop() {
    let (stage, clock) = stage().await;
    let (bot, message) = stage.bind_and_greet().await;
    let (user, token) = (message.from_user_id.as_str(), message.context_token.as_ref());
    bot.connection.typing(user, token, true).await.unwrap();
    clock.advance(Duration::from_secs(660));
    bot.connection.typing(user, token, false).await.unwrap();
    assert_eq!(stage.sim.typing(None).iter().map(|sign| sign.on).collect::<Vec<_>>(), [true, false]);
    assert_eq!(stage.tap.requests("getconfig").len(), 2);
}

#[tokio::test]
async fn t3_refusals_cost_the_sign_and_nothing_else() {
    let (stage, _clock) = stage().await;
    let bot = stage.bind().await;
    let owner = bot.account.owner_user_id.clone();
    // No one wrote yet: -4.
    let refused = bot.connection.typing(&owner, None, true).await;
    assert!(matches!(refused, Err(NetworkError::Refused { code: -4, .. })));

    let (bot, message) = stage.bind_and_greet().await;
    let error = Action::Error { ret: Some(-2), errcode: None, errmsg: None, effect: false };
    stage.sim.add_fault(Fault::on(Endpoint::SendTyping, error)).unwrap();
    let (user, token) = (message.from_user_id.as_str(), message.context_token.as_ref());
    assert!(bot.connection.typing(user, token, true).await.is_err());
    assert!(stage.sim.typing(None).is_empty());
    let sent = bot.connection.send(&reply_to(&message, "hub-1", "hi")).await;
    assert!(matches!(sent, SendOutcome::Sent { .. }), "the message is unaffected");
    bot.connection.typing(user, token, true).await.unwrap();
    assert_eq!(stage.tap.requests("getconfig").len(), 3, "a refused ticket is dropped");
}
