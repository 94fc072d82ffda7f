//! How to test a program that embeds a hub: its clock moves only when the test moves it, so that a day of retries
//! passes at once. Run it: `cargo run -p hub-examples --example 06_virtual_time`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use hub_core::{
    channels::sinks::WebhookUpdate,
    testing::{Receiver, TestHub},
    traces::{TraceQuery, TraceStatus},
};

#[tokio::main]
async fn main() {
    let shop = Receiver::new();
    let hub = TestHub::builder().receiver("shop.test", &shop).start().await;
    let ada = hub.register("ada").await;
    let bot = hub.bind(&ada).await;
    let webhook = WebhookUpdate { url: "http://shop.test/orders".to_owned(), ..WebhookUpdate::default() };
    hub.webhook_channel(&ada, bot.id, "orders", webhook).await;

    for _ in 0..8 {
        shop.answer(500, "{}"); // the shop is down, for a day and a half
    }
    let begun = hub.clock().now();
    hub.say(&bot, "order 42");
    let query = TraceQuery { status: Some(TraceStatus::Error), ..TraceQuery::default() };
    let trace = hub
        .advance_until("the last try", Duration::from_secs(3600), async || {
            hub.traces(&ada, bot.id, &query).await.into_iter().next()
        })
        .await;
    println!("after {} attempts the delivery is {:?}", trace.attempts, trace.status);
    println!("for the hub {} hours passed", hub.clock().now().since(begun).as_secs() / 3600);
}
