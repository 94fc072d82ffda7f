//! Binding cases.

use std::time::Duration;

use hub_core::{
    bots::{BindStatus, BindStep, BindView, BotStatus, NewBind},
    network::sim::{QrAction, SimConfig},
    testing::TestHub,
};

use super::stage::{World, network};

/// One question about a login that has its answer ready.
async fn step(
    hub: &TestHub,
    actor: &hub_core::access::Actor,
    bind: &BindView,
    code: Option<&str>,
) -> BindStep {
    hub.hub().bots().confirm_bind(actor, bind.bind_id, code, Duration::ZERO).await.unwrap()
}

#[tokio::test]
async fn l2_the_login_is_stored_before_success_is_reported_and_polling_begins_with_an_empty_cursor() {
    let (stage, hub) = network(SimConfig::default()).await;
    // Not at work: whatever is there was stored by the confirm.
    let mut hub = hub.open().await;
    let ada = hub.register("ada").await;
    let bind = hub.hub().bots().start_bind(&ada, NewBind::default()).await.unwrap();
    stage.sim.scan(bind.qr_text.expose()).unwrap();
    assert_eq!(step(&hub, &ada, &bind, None).await.status, BindStatus::Scanned);
    stage.sim.confirm(bind.qr_text.expose(), None).unwrap();
    let done = step(&hub, &ada, &bind, None).await;
    assert_eq!(done.status, BindStatus::Confirmed);
    let bot = done.bot.unwrap().id;
    // The process dies before it could do anything with the login.
    hub.kill().await;
    hub.work(true);
    hub.restart().await;
    hub.until("a poll is held", async || (stage.sim.accounts()[0].pollers > 0).then_some(())).await;
    hub.bot_status(&ada, bot, BotStatus::Online).await;
    let calls: Vec<_> = stage.tap.all().iter().map(|request| request.uri().path().to_owned()).collect();
    let start = calls.iter().position(|path| path.ends_with("notifystart")).unwrap();
    let poll = calls.iter().position(|path| path.ends_with("getupdates")).unwrap();
    assert!(start < poll);
    assert_eq!(stage.tap.bodies("getupdates")[0]["get_updates_buf"], "");
    assert_eq!(stage.sim.violations(None), []);
}

#[tokio::test]
async fn l4_l5_a_code_that_runs_out_is_replaced_twice() {
    let (stage, hub) = network(SimConfig::default()).await;
    let hub = hub.open().await;
    let ada = hub.register("ada").await;
    for ends_well in [true, false] {
        let before = stage.tap.requests("get_bot_qrcode").len();
        let bind = hub.hub().bots().start_bind(&ada, NewBind::default()).await.unwrap();
        let mut codes = vec![bind.qr_text.expose().to_owned()];
        for _ in 0..2 {
            stage.sim.qr(codes.last().unwrap(), QrAction::Expire).unwrap();
            let fresh = step(&hub, &ada, &bind, None).await;
            assert_eq!(fresh.status, BindStatus::Waiting);
            assert!(fresh.qr_svg.is_some());
            codes.push(fresh.qr_text.unwrap().expose().to_owned());
        }
        codes.dedup();
        assert_eq!(codes.len(), 3);
        let end = if ends_well {
            stage.sim.confirm(&codes[2], None).unwrap();
            step(&hub, &ada, &bind, None).await
        } else {
            stage.sim.qr(&codes[2], QrAction::Expire).unwrap();
            let end = step(&hub, &ada, &bind, None).await;
            assert!(end.reason.is_some());
            end
        };
        assert_eq!(end.status, if ends_well { BindStatus::Confirmed } else { BindStatus::Expired });
        assert_eq!(step(&hub, &ada, &bind, None).await.status, end.status, "an end is an end");
        assert_eq!(stage.tap.requests("get_bot_qrcode").len() - before, 3);
    }
}

#[tokio::test]
async fn l7_a_blocked_code_is_replaced_and_its_number_forgotten() {
    let (stage, hub) = network(SimConfig::default()).await;
    let hub = hub.open().await;
    let ada = hub.register("ada").await;
    let bind = hub.hub().bots().start_bind(&ada, NewBind::default()).await.unwrap();
    let first = bind.qr_text.expose();
    stage.sim.qr(first, QrAction::RequireCode { code: "0042".into() }).unwrap();
    assert_eq!(step(&hub, &ada, &bind, None).await.status, BindStatus::NeedCode);
    for _ in 0..2 {
        let wrong = step(&hub, &ada, &bind, Some("1")).await;
        assert_eq!(
            (wrong.status, wrong.reason.as_deref()),
            (BindStatus::NeedCode, Some("the number is wrong"))
        );
    }
    let fresh = step(&hub, &ada, &bind, Some("1")).await;
    assert_eq!((fresh.status, fresh.reason), (BindStatus::Waiting, None));
    let second = fresh.qr_text.unwrap();
    assert_ne!(second.expose(), first);
    stage.sim.confirm(second.expose(), None).unwrap();
    assert_eq!(step(&hub, &ada, &bind, None).await.status, BindStatus::Confirmed);
    let last = stage.tap.requests("get_qrcode_status").pop().unwrap();
    assert!(!last.uri().query().unwrap().contains("verify_code"));
    assert_eq!(stage.tap.requests("get_bot_qrcode").len(), 2);
}

#[tokio::test]
async fn l9_a_bound_account_is_kept_or_its_loss_is_reported() {
    let world = World::new().await;
    let (hub, sim) = (&world.hub, &world.stage.sim);
    let bind = hub.hub().bots().start_bind(&world.ada, NewBind::default()).await.unwrap();
    sim.confirm(bind.qr_text.expose(), Some(&world.bot.person)).unwrap();
    let kept = step(hub, &world.ada, &bind, None).await;
    assert_eq!((kept.status, kept.bot.unwrap().id), (BindStatus::AlreadyBound, world.bot.id));
    world.hear("still here").await;
    assert_eq!(world.number("SELECT COUNT(*) FROM bots").await, 1);

    let bob = hub.register("bob").await;
    let bind = hub.hub().bots().start_bind(&bob, NewBind::default()).await.unwrap();
    sim.qr(bind.qr_text.expose(), QrAction::AlreadyBound).unwrap();
    let lost = step(hub, &bob, &bind, None).await;
    assert_eq!(lost.status, BindStatus::Refused);
    assert!(lost.reason.unwrap().contains("has no login for it") && lost.bot.is_none());
}

#[tokio::test]
async fn l12_a_new_login_ends_the_old_poller_and_is_not_overwritten_by_it() {
    let world = World::greeted().await;
    let token = |n: usize| {
        let polls = world.tap().requests("getupdates");
        polls[n].headers()["authorization"].to_str().unwrap().to_owned()
    };
    let old = token(0);
    world.stage.sim.expire(&world.bot.wx_id).unwrap();
    // The old poller is still there: it waits to make sure that the login is gone.
    world.hub.bot_status(&world.ada, world.bot.id, BotStatus::Degraded).await;
    let bot = world.hub.bind_person(&world.ada, Some(&world.bot.person)).await;
    assert_eq!(bot.id, world.bot.id, "the bot and its channels stay");
    assert_ne!(bot.wx_id, world.bot.wx_id);
    world.polling().await;
    assert_eq!(world.number("SELECT COUNT(*) FROM contacts WHERE context_token IS NOT NULL").await, 0);
    let mut polls = world.tap().bodies("getupdates");
    let new = world.count("getupdates") - 1;
    assert_eq!(polls.remove(new)["get_updates_buf"], "", "a new login starts again");
    assert_ne!(token(new), old);
    // Whatever the old poller still had in mind is over; the new login goes on.
    for _ in 0..20 {
        world.hub.clock().advance(Duration::from_secs(1));
        world.until("the hub looks", async || !world.hub.clock().waits().is_empty()).await;
    }
    world.hub.say(&bot, "to the new bot");
    world.heard("to the new bot").await;
    let late = world.tap().requests("getupdates").into_iter().skip(new);
    assert!(late.into_iter().all(|poll| poll.headers()["authorization"] != old.as_str()));
    world.hub.bot_status(&world.ada, bot.id, BotStatus::Online).await;
}
