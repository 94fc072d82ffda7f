//! The page of a trace: actions for a delivery that has not ended, and for one that has.

use hub_core::id::{DeliveryId, Id};
use serde_json::json;

use super::{
    messages::{Seen, seen, sql},
    *,
};

/// The delivery of the trace failed and is parked.
async fn park(app: &App, seen: &Seen) {
    let id: DeliveryId = Id::from_u128(7);
    let Seen { bot, message, trace, channel, .. } = seen;
    sql(
        app,
        format!(
            "INSERT OR REPLACE INTO deliveries (id, message_id, bot_id, channel_id, trace_id, sink, lane, seq, state, attempts, due_at,
                claim, created_at)
             VALUES ('{id}', '{message}', '{bot}', '{channel}', '{trace}', 'webhook', '{id}', 1, 'parked', 2,
                9000000000000, 0, 0)"
        ),
    )
    .await;
    let parked = "json_set(steps, '$[6].detail.parked', json('true'))";
    sql(
        app,
        format!(
            "UPDATE traces SET status = 'pending', open_sinks = 1, steps = {parked} WHERE id = '{trace}'"
        ),
    )
    .await;
}

/// Whether a page offers a replay, an attempt now, and giving up.
fn offered(page: &str) -> [bool; 3] {
    ["replay", "attempt", "give_up"].map(|action| page.contains(&format!("name=\"do\" value=\"{action}\"")))
}

#[tokio::test]
async fn a_pending_trace_offers_an_attempt_or_giving_up_in_place_of_a_replay() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let seen = seen(&app, &ann, &simulator).await;
    let address = format!("/console/traces/{}/{}", seen.bot, seen.trace);
    assert_eq!(offered(&text(&ann.get(&address).await)), [true, false, false]);
    park(&app, &seen).await;
    let page = text(&ann.get(&address).await);
    assert_eq!(offered(&page), [false, true, true], "{page}");
    assert!(page.contains("Try now") && page.contains("Give up"), "{page}");
    let chinese = text(&ann.clone().with("Accept-Language", "zh").get(&address).await);
    assert!(chinese.contains("立即重试") && chinese.contains("放弃投递"), "{chinese}");

    for (action, operation) in [("attempt", "attemptTrace"), ("give_up", "cancelTrace")] {
        park(&app, &seen).await;
        assert_eq!(submit(&bob, &address, &[("do", action)]).await.response.status(), 404);
        let reply = submit(&ann, &address, &[("do", action)]).await;
        assert_eq!(
            reply.header("location"),
            Some(&*format!("{address}?done={operation}")),
            "{}",
            text(&reply)
        );
    }
    let page = text(&ann.get(&address).await);
    assert_eq!(offered(&page), [true, false, false], "{page}");
    assert!(page.contains("cancelled"), "{page}");
    let again = submit(&ann, &address, &[("do", "attempt")]).await;
    assert_eq!(again.response.status(), 409, "nothing is parked any more");
}

#[tokio::test]
async fn a_delivery_that_is_not_parked_offers_nothing() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let seen = seen(&app, &ann, &simulator).await;
    sql(&app, format!("UPDATE traces SET status = 'pending' WHERE id = '{}'", seen.trace)).await;
    let page = text(&ann.get(&format!("/console/traces/{}/{}", seen.bot, seen.trace)).await);
    assert_eq!(offered(&page), [false, false, false], "{page}");
    assert!(page.contains("This delivery has not ended"), "{page}");
}

#[tokio::test]
async fn a_replay_takes_the_place_of_one_that_waits_only_if_the_form_says_so() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let seen = seen(&app, &ann, &simulator).await;
    let webhook = json!({ "url": "https://receiver.example/hook" });
    let path = format!("/api/bots/{}/channels/{}/webhook", seen.bot, seen.channel);
    ann.send(Method::PUT, &path, |request| request.body_json(&webhook)).await.data();
    let address = format!("/console/traces/{}/{}", seen.bot, seen.trace);
    let replay = [("do", "replay"), ("sink", "webhook"), ("url", ""), ("supersede", "false")];
    let first = submit(&ann, &address, &replay).await;
    assert_eq!(first.response.status(), 303, "{}", text(&first));
    // No node works here, so that it waits.
    let second = submit(&ann, &address, &replay).await;
    let page = text(&second);
    assert_eq!(second.response.status(), 409, "{page}");
    assert!(page.contains("still waits; attempt it now, cancel it, or set supersede"), "{page}");
    let third = submit(&ann, &address, &[&replay[..3], &[("supersede", "true")]].concat()).await;
    assert_eq!(third.response.status(), 303, "{}", text(&third));

    let one = ("trace_ids", seen.trace.as_str());
    let preview = [("do", "start_replay"), ("dry_run", "true"), ("scope", "selected"), one];
    let page = text(&submit(&ann, "/console/messages", &preview).await);
    assert!(
        !page.contains("None of these deliveries") && page.contains("Cancel 1 delivery that still waits"),
        "{page}"
    );
    let once = hidden(&page, "once").to_owned();
    let start =
        [("do", "start_replay"), ("dry_run", "false"), ("once", once.as_str()), one, ("supersede", "true")];
    let started = submit(&ann, "/console/messages", &start).await;
    let location = started.header("location").unwrap_or_else(|| panic!("{}", text(&started))).to_owned();
    assert!(text(&ann.get(&location).await).contains("0 of 1 finished"));
    let traces = ann.get(&format!("/api/traces?replay_of={}&status=error", seen.trace)).await;
    assert_eq!(
        traces.data()["items"].as_array().unwrap().len(),
        2,
        "two of the three replays were superseded"
    );
}
