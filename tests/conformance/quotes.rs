//! Quotes that only the store can resolve.

use serde_json::{Value, json};

use super::stage::World;

/// The quote of the next message, which names what it quotes by id alone.
async fn quoted(world: &World, id: &str, text: &str) -> Value {
    let item = json!({ "type": 1, "text_item": { "text": text }, "ref_msg": { "svr_id": id } });
    world.stage.sim.inject(json!({ "wx_id": world.bot.wx_id, "item_list": [item] })).unwrap();
    world.heard(text).await;
    let bodies = world.receiver.bodies();
    bodies.into_iter().find(|body| body["content"] == text).unwrap()["quoted"].clone()
}

#[tokio::test]
async fn q2_a_quote_by_id_is_resolved_from_either_direction() {
    let world = World::new().await;
    let asked = world.hub.say(&world.bot, "the first offer");
    world.heard("the first offer").await;
    let quote = quoted(&world, &asked, "that one").await;
    assert_eq!(quote["text"], "the first offer", "{quote}");
    let long = format!("{}\n\nthe end", "x".repeat(1_999));
    let sent = world.send(&long).await;
    let shown = world.sent(2).await;
    world.becomes(&sent, "sent").await;
    for (n, part) in shown.iter().enumerate() {
        let quote = quoted(&world, part.message_id.as_deref().unwrap(), &format!("part {n}")).await;
        assert_eq!(quote["text"], part.text.as_str(), "the part that was quoted, not the whole");
    }
    let quote = quoted(&world, "7497484083968569736", "what?").await;
    assert_eq!(quote["text"], Value::Null);
}
