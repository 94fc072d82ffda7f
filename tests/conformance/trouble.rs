//! A network in trouble.

use std::time::Duration;

use hub_core::{
    bots::BotStatus,
    network::sim::{Action, Endpoint, Fault, SimConfig},
};

use super::stage::{SECOND, World};

fn failing(times: u32) -> Fault {
    let action = Action::Status { status: 500, body: String::new(), headers: [].into(), effect: false };
    Fault::on(Endpoint::GetUpdates, action).times(times)
}

#[tokio::test]
async fn r9_pauses_grow_after_three_errors_and_start_over() {
    let world = World::new().await;
    world.fault(failing(5));
    world.hub.say(&world.bot, "ends the poll that is held");
    for (n, millis) in [1_600..=2_400, 1_600..=2_400, 24_000..=36_000, 1_600..=2_400].into_iter().enumerate()
    {
        let polls = world.count("getupdates");
        let pause = world.pause(millis).await;
        assert_eq!(world.count("getupdates"), polls.max(n + 2));
        world.hub.clock().advance(pause);
        world.until("the next poll", async || world.count("getupdates") > polls).await;
    }
    // The fifth failure, then a success: the count starts again.
    let pause = world.pause(1_600..=2_400).await;
    world.hub.clock().advance(pause);
    world.hear("fine again").await;
    world.polling().await;
    world.fault(failing(2));
    world.hub.say(&world.bot, "ends the next");
    for _ in 0..2 {
        let pause = world.pause(1_600..=2_400).await;
        world.hub.clock().advance(pause);
    }
    world.hear("and again").await;
}

#[tokio::test]
async fn r12_a_silent_network_degrades_the_bot_and_heals() {
    // The network responds to polls at once, and the client's timeout is short in real time.
    let sim = SimConfig { hold: Duration::ZERO, ..SimConfig::default() };
    let world =
        World::with(sim, |hub| hub.ilink(|ilink| ilink.timeouts.hold_max = Duration::from_millis(200))).await;
    world.hear("hello").await;
    let silent_from = world.hub.clock().now();
    world.fault(Fault::on(Endpoint::GetUpdates, Action::Pass).after(Duration::from_secs(24 * 3600)).always());
    let bots = world.hub.hub().bots();
    let health = world
        .hub
        .advance_until("the bot degrades", SECOND, async || {
            let health = bots.status(&world.ada, world.bot.id).await.unwrap();
            (health.bot.status == BotStatus::Degraded).then_some(health)
        })
        .await;
    assert!(health.since.since(silent_from) >= Duration::from_secs(180), "{:?}", health.since);
    assert!(health.bot.status_reason.unwrap().contains("does not respond"));
    world.stage.sim.clear_faults(None);
    world.hub.say(&world.bot, "are you there");
    world.advance_until("it heals", SECOND, async || world.receiver.texts().len() == 2).await;
    world.online().await;
}

#[tokio::test]
async fn e4_polling_begins_although_it_could_not_be_announced() {
    let action = Action::Status { status: 500, body: String::new(), headers: [].into(), effect: false };
    let (stage, hub) = super::stage::network(SimConfig::default()).await;
    stage.sim.add_fault(Fault::on(Endpoint::NotifyStart, action).times(2)).unwrap();
    let hub = hub.start().await;
    let ada = hub.register("ada").await;
    let bot = hub.bind(&ada).await;
    hub.say(&bot, "hello");
    hub.bot_status(&ada, bot.id, BotStatus::Online).await;
    assert_eq!(stage.tap.requests("notifystart").len(), 1);
    let announced = |count: usize| {
        let tap = &stage.tap;
        async move || (tap.requests("notifystart").len() >= count).then_some(())
    };
    // Back-off: ten seconds at first, then twenty; a poll that ends is when it is looked at.
    let begun = hub.clock().now();
    hub.advance_until("a second announcement", SECOND, announced(2)).await;
    let second = hub.clock().now();
    assert!(second.since(begun) >= 10 * SECOND);
    hub.advance_until("a third announcement", SECOND, announced(3)).await;
    assert!(hub.clock().now().since(second) >= 19 * SECOND);
    hub.until("the network knows", async || stage.sim.accounts()[0].started.then_some(())).await;
}
