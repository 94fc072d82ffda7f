//! The bind flow against a scripted network; names such as L4 are those of `docs/ilink.md#conformance-cases`.

use std::{sync::Arc, time::Duration};

use tokio::sync::Barrier;

use super::*;
use crate::{
    bots::{BotStatus, testing::*},
    config::HubConfig,
    network::LoginStep::{self, Confirmed, Expired, NeedCode, Scanned, Waiting},
    wake::Hint,
};

const NOW: Duration = Duration::ZERO;

impl World {
    async fn start(&self, actor: &Actor) -> BindId {
        self.hub.bots().start_bind(actor, NewBind::default()).await.unwrap().bind_id
    }

    async fn confirm(&self, actor: &Actor, id: BindId, code: Option<&str>) -> BindStep {
        self.hub.bots().confirm_bind(actor, id, code, NOW).await.unwrap()
    }

    /// Binds an account in one go.
    async fn bind(&self, actor: &Actor, person: &str, token: &str) -> BindStep {
        let id = self.start(actor).await;
        self.network.then([Confirmed(login(person, token))]);
        self.confirm(actor, id, None).await
    }

    async fn token(&self, bot: BotId) -> String {
        let ctx = self.hub.context();
        let stored = ctx.store.read().await.unwrap().bots().login(bot).await.unwrap().unwrap();
        let login = credentials::open(&ctx.sealer, bot, &stored.credentials).unwrap();
        login.token.expose().to_owned()
    }
}

#[tokio::test]
async fn l2_a_scan_becomes_a_bot_with_its_login_stored() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let mut hints = world.hub.context().node.wake.listen();
    let new = NewBind { name: Some(" Shop ".into()), ..NewBind::default() };
    let view = world.hub.bots().start_bind(&ann, new).await.unwrap();
    assert_eq!(view.qr_text.expose(), "https://scan/code-1");
    assert!(view.qr_svg.expose().contains("<svg"));
    assert_eq!(view.expires_at, world.clock.now() + LIFETIME);
    assert!(!format!("{view:?}").contains("scan"));

    world.network.then([Waiting, Scanned, Confirmed(login("wx-a", "t1"))]);
    let step = world.confirm(&ann, view.bind_id, None).await;
    assert_eq!((step.status, step.qr_text), (BindStatus::Waiting, Some(view.qr_text)));
    let step = world.confirm(&ann, view.bind_id, None).await;
    assert_eq!((step.status, step.qr_text, step.bot), (BindStatus::Scanned, None, None));
    let step = world.confirm(&ann, view.bind_id, None).await;
    let bot = step.bot.unwrap();
    assert_eq!(step.status, BindStatus::Confirmed);
    assert_eq!((bot.name.as_str(), bot.wx_id.as_str()), ("Shop", "wx-a@bot"));
    assert_eq!(bot.status, BotStatus::Pending);
    assert!(!bot.can_send, "no one wrote yet");
    assert_eq!(world.token(bot.id).await, "t1");
    assert_eq!(hints.try_recv().unwrap().hint, Hint::Bot(bot.id));

    let again = world.confirm(&ann, view.bind_id, None).await;
    assert_eq!((again.status, again.bot.unwrap().id), (BindStatus::Confirmed, bot.id));
    assert_eq!(world.network.script().polls.len(), 3, "the end is not asked about again");
}

#[tokio::test]
async fn a_login_belongs_to_the_user_who_started_it() {
    let world = World::open().await;
    let (ann, bob) = (world.user("ann").await, world.user("bob").await);
    let bot = world.bot(&ann, "wx-a").await;
    let id = world.start(&ann).await;
    let bots = world.hub.bots();
    for stranger in [&bob, &world.channel_actor(&ann, bot).await] {
        let refused = bots.confirm_bind(stranger, id, None, NOW).await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::NotFound);
    }
    let refused = bots.start_bind(&Actor::Operator, NewBind::default()).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Forbidden);
    assert!(world.network.script().polls.is_empty());
}

#[tokio::test]
async fn bad_input_is_rejected_before_any_request_to_the_network() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let bots = world.hub.bots();
    let id = world.start(&ann).await;
    for code in ["", " ", "12a", "12345678901234567", "１２"] {
        let refused = bots.confirm_bind(&ann, id, Some(code), NOW).await.unwrap_err();
        assert_eq!(refused.details()[0].field, "verify_code", "{code:?}");
    }
    let refused = bots.confirm_bind(&ann, id, None, Duration::from_millis(30_001)).await.unwrap_err();
    assert_eq!(refused.details()[0].field, "wait_ms");
    for (new, field) in [
        (NewBind { network: Some("pigeon".into()), ..NewBind::default() }, "network"),
        (NewBind { name: Some("a\nb".into()), ..NewBind::default() }, "name"),
    ] {
        assert_eq!(bots.start_bind(&ann, new).await.unwrap_err().details()[0].field, field);
    }
    world.network.script().no_code = Some(NetworkError::Unreachable("connection refused".into()));
    let failed = bots.start_bind(&ann, NewBind::default()).await.unwrap_err();
    assert_eq!(failed.code(), ErrorCode::UpstreamError);
    assert!(world.network.script().polls.is_empty());
}

#[tokio::test]
async fn l4_two_codes_may_run_out() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let id = world.start(&ann).await;
    world.network.then([Expired, LoginStep::CodeBlocked, Confirmed(login("wx-a", "t"))]);
    let step = world.confirm(&ann, id, None).await;
    assert_eq!(step.status, BindStatus::Waiting);
    assert_eq!(step.qr_text.unwrap().expose(), "https://scan/code-2");
    assert!(step.qr_svg.is_some());
    let step = world.confirm(&ann, id, Some("1234")).await;
    assert_eq!(step.qr_text.unwrap().expose(), "https://scan/code-3");
    assert_eq!(world.confirm(&ann, id, None).await.status, BindStatus::Confirmed);
    let codes: Vec<_> = world.network.script().polls.iter().map(|(code, _)| code.clone()).collect();
    assert_eq!(codes, ["code-1", "code-2", "code-3"]);
}

#[tokio::test]
async fn l5_the_third_code_is_the_last() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let id = world.start(&ann).await;
    world.network.then([Expired, Expired, Expired]);
    world.confirm(&ann, id, None).await;
    world.confirm(&ann, id, None).await;
    let step = world.confirm(&ann, id, None).await;
    assert_eq!((step.status, step.qr_text), (BindStatus::Expired, None));
    assert!(step.reason.is_some());
    assert_eq!(world.confirm(&ann, id, None).await.status, BindStatus::Expired);
    assert_eq!(world.network.script().starts.len(), 3);
}

#[tokio::test]
async fn a_refresh_that_fails_leaves_the_login_open() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let id = world.start(&ann).await;
    world.network.then([Expired]);
    world.network.script().no_code = Some(NetworkError::Unreachable("502".into()));
    let failed = world.hub.bots().confirm_bind(&ann, id, None, NOW).await.unwrap_err();
    assert_eq!(failed.code(), ErrorCode::UpstreamError);
    world.network.then([Expired]);
    let step = world.confirm(&ann, id, None).await;
    assert_eq!(step.qr_text.unwrap().expose(), "https://scan/code-2");
}

#[tokio::test]
async fn l6_numbers_are_asked_for_until_one_is_right() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let id = world.start(&ann).await;
    world.network.then([
        NeedCode { wrong: false },
        NeedCode { wrong: true },
        Scanned,
        Confirmed(login("wx-a", "t")),
    ]);
    let step = world.confirm(&ann, id, None).await;
    assert_eq!((step.status, step.reason), (BindStatus::NeedCode, None));
    let step = world.confirm(&ann, id, Some("1111")).await;
    assert_eq!(step.status, BindStatus::NeedCode);
    assert_eq!(step.reason.as_deref(), Some("the number is wrong"));
    let step = world.confirm(&ann, id, Some(" 2222 ")).await;
    assert_eq!((step.status, step.reason), (BindStatus::Scanned, None));
    assert_eq!(world.confirm(&ann, id, None).await.status, BindStatus::Confirmed);
    let numbers: Vec<_> = world.network.script().polls.iter().map(|(_, number)| number.clone()).collect();
    assert_eq!(numbers, [None, Some("1111".to_owned()), Some("2222".to_owned()), None]);
}

#[tokio::test]
async fn l3_a_network_out_of_reach_means_still_waiting() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let id = world.start(&ann).await;
    world.network.script().steps.extend([
        Err(NetworkError::Unreachable("524".into())),
        Err(NetworkError::Throttled { message: "slow".into(), retry_after: None }),
        Ok(Confirmed(login("wx-a", "t"))),
    ]);
    assert_eq!(world.confirm(&ann, id, None).await.status, BindStatus::Waiting);
    assert_eq!(world.confirm(&ann, id, None).await.status, BindStatus::Waiting);
    assert_eq!(world.confirm(&ann, id, None).await.status, BindStatus::Confirmed);
    assert_eq!(world.network.script().starts.len(), 1);
}

#[tokio::test]
async fn a_confirm_waits_for_a_change_and_no_longer_than_asked() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let id = world.start(&ann).await;
    let bots = world.hub.bots();
    world.network.then([Waiting, Waiting, Scanned]);
    // The pauses between questions pass as soon as they are waited for.
    let step = drive(&world, bots.confirm_bind(&ann, id, None, MAX_WAIT)).await.unwrap();
    assert_eq!(step.status, BindStatus::Scanned);
    let before = world.clock.now();
    let step = drive(&world, bots.confirm_bind(&ann, id, None, Duration::from_secs(5))).await.unwrap();
    assert_eq!(step.status, BindStatus::Scanned);
    assert!(world.clock.now().since(before) >= Duration::from_secs(5));
    assert!(world.network.script().polls.len() > 4, "it kept asking meanwhile");
}

#[tokio::test]
async fn a_login_ends_after_eight_minutes() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let id = world.start(&ann).await;
    world.clock.advance(LIFETIME);
    let step = world.confirm(&ann, id, None).await;
    assert_eq!(step.status, BindStatus::Expired);
    assert!(world.network.script().polls.is_empty());
    world.clock.advance(RETENTION + Duration::from_secs(1));
    world.start(&ann).await;
    let forgotten = world.hub.bots().confirm_bind(&ann, id, None, NOW).await;
    assert_eq!(forgotten.unwrap_err().code(), ErrorCode::NotFound);
}

#[tokio::test]
async fn of_many_open_logins_the_newest_ten_are_kept() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let first = world.start(&ann).await;
    let second = world.start(&ann).await;
    for _ in 0..9 {
        world.start(&ann).await;
    }
    let forgotten = world.hub.bots().confirm_bind(&ann, first, None, NOW).await;
    assert_eq!(forgotten.unwrap_err().code(), ErrorCode::NotFound);
    assert_eq!(world.confirm(&ann, second, None).await.status, BindStatus::Waiting);
}

#[tokio::test]
async fn two_confirms_at_once_make_one_bot() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let id = world.start(&ann).await;
    world.network.then([Confirmed(login("wx-a", "t1")), Confirmed(login("wx-a", "t2"))]);
    world.network.script().together = Some(Arc::new(Barrier::new(2)));
    let (one, two) = tokio::join!(world.confirm(&ann, id, None), world.confirm(&ann, id, None));
    assert_eq!((one.status, two.status), (BindStatus::Confirmed, BindStatus::Confirmed));
    let bot = one.bot.unwrap();
    assert_eq!(two.bot.unwrap().id, bot.id);
    assert_eq!(world.network.script().polls.len(), 2, "both got an answer");
    assert_eq!(world.number("SELECT COUNT(*) FROM bots").await, 1);
    assert_eq!(world.number("SELECT credentials_rev FROM bots").await, 1, "one login was stored");
}

#[tokio::test]
async fn l12_a_second_login_takes_over_the_bot_and_forgets_the_first() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let bot = world.bind(&ann, "wx-a", "old").await.bot.unwrap();
    world.person_writes(bot.id, "wx-a").await;
    world.sql("UPDATE bots SET cursor = 'c9', lease_fence = 4, config_rev = 3".to_owned()).await;
    world.set_status(bot.id, BotStatus::Expired, Some("session timeout")).await;
    let fence = world.fence(bot.id).await;

    let again = world.bind(&ann, "wx-a", "new").await;
    assert_eq!(world.network.script().starts[1], ["old"], "the known token is shown to the network");
    let renewed = again.bot.unwrap();
    assert_eq!((renewed.id, renewed.name), (bot.id, bot.name), "the bot and its name stay");
    assert_eq!((renewed.status, renewed.status_reason), (BotStatus::Connecting, None));
    assert!(!renewed.can_send, "the old permissions are gone");
    let reason = format!(
        "this person has not written since the bot was bound again on {}; they have to write first",
        world.clock.now()
    );
    assert_eq!(renewed.send_disabled_reason.as_deref(), Some(&*reason));
    assert_eq!(world.token(bot.id).await, "new");
    assert_eq!(world.fence(bot.id).await, fence + 1);
    assert_eq!(world.number("SELECT COUNT(*) FROM bots WHERE cursor = '' AND config_rev = 3").await, 1);
    let open =
        "SELECT COUNT(*) FROM contacts WHERE context_token IS NOT NULL OR window_opened_at IS NOT NULL";
    assert_eq!(world.number(open).await, 0);

    let (id, now) = (bot.id, world.clock.now());
    let store = &world.hub.context().store;
    let late = store.write(move |tx| {
        Box::pin(async move {
            let status = tx.bots().set_status(id, fence, BotStatus::Online, None, now).await?;
            Ok((status, tx.bots().note_poll(id, fence, Some(now), Some("late")).await?))
        })
    });
    assert_eq!(late.await.unwrap(), (None, false), "the old poller writes nothing any more");
}

#[tokio::test]
async fn q8_an_account_of_another_user_is_refused_and_untouched() {
    let world = World::open().await;
    let (ann, bob) = (world.user("ann").await, world.user("bob").await);
    let bot = world.bind(&ann, "wx-a", "hers").await.bot.unwrap();
    let step = world.bind(&bob, "wx-a", "his").await;
    assert_eq!(world.network.script().starts[1], [""; 0], "her token is not shown for him");
    assert_eq!((step.status, step.bot), (BindStatus::Refused, None));
    assert!(step.reason.unwrap().contains("another user"));
    assert_eq!(world.token(bot.id).await, "hers");
    assert_eq!(world.number("SELECT COUNT(*) FROM bots").await, 1);
}

#[tokio::test]
async fn a_channel_client_renews_its_own_bot_only() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let bot = world.bot(&ann, "wx-a").await;
    let other = world.bot(&ann, "wx-b").await;
    let client = world.channel_actor(&ann, bot).await;
    let bots = world.hub.bots();
    let foreign = NewBind { for_bot: Some(other), ..NewBind::default() };
    assert_eq!(bots.start_bind(&client, foreign).await.unwrap_err().code(), ErrorCode::NotFound);

    let id = world.start(&client).await;
    assert_eq!(world.network.script().starts[0], ["token-of-wx-a"]);
    world.network.then([Confirmed(login("wx-b", "t"))]);
    let step = world.confirm(&client, id, None).await;
    assert_eq!((step.status, step.bot), (BindStatus::Refused, None));
    assert_eq!(world.token(other).await, "token-of-wx-b");

    let id = world.start(&client).await;
    world.network.then([Confirmed(login("wx-a", "fresh"))]);
    let step = world.confirm(&client, id, None).await;
    assert_eq!((step.status, step.bot.unwrap().id), (BindStatus::Confirmed, bot));
    assert_eq!(world.token(bot).await, "fresh");
}

#[tokio::test]
async fn l9_an_account_that_is_bound_already_keeps_its_login() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let id = world.start(&ann).await;
    world.network.then([LoginStep::AlreadyBound]);
    let step = world.confirm(&ann, id, None).await;
    assert_eq!((step.status, step.bot), (BindStatus::Refused, None), "no login is known");
    assert!(step.reason.is_some());

    let bot = world.bot(&ann, "wx-a").await;
    world.set_status(bot, BotStatus::Expired, None).await;
    let busy = world.bot(&ann, "wx-b").await;
    world.set_status(busy, BotStatus::Connecting, None).await;
    world.set_status(busy, BotStatus::Online, None).await;
    let id = world.start(&ann).await;
    world.network.then([LoginStep::AlreadyBound]);
    let step = world.confirm(&ann, id, None).await;
    let resumed = step.bot.unwrap();
    assert_eq!((step.status, resumed.id), (BindStatus::AlreadyBound, bot));
    assert_eq!(resumed.status, BotStatus::Connecting);
    assert_eq!(world.token(bot).await, "token-of-wx-a");
    assert_eq!(world.hub.bots().get(&ann, busy).await.unwrap().status, BotStatus::Online);
}

#[tokio::test]
async fn the_number_of_bots_is_limited_and_a_known_account_still_binds() {
    let world = World::with(HubConfig { max_bots_per_user: 1, ..HubConfig::default() }).await;
    let ann = world.user("ann").await;
    world.bind(&ann, "wx-a", "t1").await.bot.unwrap();
    let step = world.bind(&ann, "wx-b", "t2").await;
    assert_eq!(step.status, BindStatus::Refused);
    assert!(step.reason.unwrap().contains("limit"));
    assert_eq!(world.bind(&ann, "wx-a", "t3").await.status, BindStatus::Confirmed);
}

#[tokio::test]
async fn a_refusal_of_the_network_ends_the_login() {
    let world = World::open().await;
    let ann = world.user("ann").await;
    let id = world.start(&ann).await;
    world.network.then([LoginStep::Refused("the redirect leads nowhere we go".into())]);
    let step = world.confirm(&ann, id, None).await;
    assert_eq!(step.status, BindStatus::Refused);
    assert_eq!(step.reason.as_deref(), Some("the redirect leads nowhere we go"));
    assert_eq!(world.number("SELECT COUNT(*) FROM bots").await, 0);
}

/// Runs a future while the clock moves on next to it.
async fn drive<F: Future>(world: &World, future: F) -> F::Output {
    let ticking = async {
        loop {
            // A real moment, so that the store's threads get their turn; how long does not matter.
            tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(2))).await.unwrap();
            world.clock.advance(Duration::from_millis(100));
        }
    };
    tokio::select! {
        output = future => output,
        () = ticking => unreachable!("the clock never ends"),
    }
}
