//! Replays of the deliveries of selected messages.

use serde_json::json;

use super::{messages::seen, *};

#[tokio::test]
async fn selected_deliveries_are_previewed_and_then_replayed_once() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let seen = seen(&app, &ann, &simulator).await;
    let webhook = json!({ "url": "https://receiver.example/hook" });
    let path = format!("/api/bots/{}/channels/{}/webhook", seen.bot, seen.channel);
    ann.send(Method::PUT, &path, |request| request.body_json(&webhook)).await.data();
    let list = text(&ann.get("/console/messages").await);
    // One message was delivered to a channel, the other one to none.
    assert_eq!(list.matches("name=\"trace_ids\"").count(), 1, "{list}");
    assert!(list.contains(&format!("name=\"trace_ids\" value=\"{}\"", seen.trace)), "{list}");

    let selected = [("do", "start_replay"), ("dry_run", "true"), ("scope", "selected")];
    let preview = |more: &'static str| {
        let mut fields: Vec<(&str, &str)> = selected.to_vec();
        fields.extend((!more.is_empty()).then_some(("trace_ids", more)));
        fields
    };
    let none = submit(&ann, "/console/messages", &preview("")).await;
    assert_eq!(none.response.status(), 400);
    assert!(text(&none).contains("select at least one message"), "{}", text(&none));
    let bad = submit(&ann, "/console/messages", &preview("tr_x")).await;
    assert_eq!(bad.response.status(), 400);

    let chosen = [&selected[..], &[("trace_ids", &*seen.trace)]].concat();
    let page = text(&submit(&ann, "/console/messages", &chosen).await);
    for part in ["1 delivery will be sent again", "Replay 1 delivery", "people may receive replies again"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let traces = ann.get("/api/traces").await;
    assert_eq!(traces.data()["items"].as_array().unwrap().len(), 1, "a preview replays nothing");
    let matching = [("do", "start_replay"), ("dry_run", "true"), ("scope", "matching")];
    let all = text(&submit(&ann, "/console/messages?outcome=failed", &matching).await);
    assert!(all.contains("1 delivery will be sent again") && all.contains(&seen.trace), "{all}");
    let nothing = submit(&ann, "/console/messages?outcome=in_flight", &matching).await;
    assert_eq!(nothing.response.status(), 400);
    let theirs = text(&submit(&bob, "/console/messages", &chosen).await);
    assert!(theirs.contains("None of these deliveries can be replayed."), "{theirs}");
    assert!(theirs.contains("there is no such trace") && !theirs.contains("order 42"), "{theirs}");

    let once = hidden(&page, "once").to_owned();
    let start = |url| {
        let ids = ("trace_ids", seen.trace.as_str());
        [("do", "start_replay"), ("dry_run", "false"), ("once", once.as_str()), ids, ("url", url)]
    };
    let refused = submit(&ann, "/console/messages", &start("ftp://receiver.example/")).await;
    let refused_page = text(&refused);
    assert_eq!(refused.response.status(), 400);
    assert!(refused_page.contains("id=\"start_replay-url-problem\""), "{refused_page}");
    assert_eq!(hidden(&refused_page, "trace_ids"), seen.trace);
    assert_eq!(hidden(&refused_page, "once"), once);
    let started = submit(&ann, "/console/messages", &start("")).await;
    let location = started.header("location").unwrap_or_else(|| panic!("{}", text(&started))).to_owned();
    assert!(location.starts_with("/console/replays/rpl_"), "{location}");
    let again = submit(&ann, "/console/messages", &start("")).await;
    assert_eq!(again.header("location"), Some(&*location), "a repeated form has one effect");

    let page = text(&ann.get(&location).await);
    for part in
        ["The replay was started.", "of 1 finished", "<progress max=\"1\"", "order 42", "data-live=\"trace\""]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let path = location.split('?').next().unwrap();
    assert_eq!(bob.get(path).await.response.status(), 404);
    let id = path.rsplit('/').next().unwrap();
    let api = ann.get(&format!("/api/traces?replay_id={id}")).await;
    let new = &api.data()["items"][0];
    assert_eq!(new["replay_of"], *seen.trace);
    assert!(page.contains(&format!("/console/traces/{}/{}", seen.bot, new["trace_id"].as_str().unwrap())));
    assert!(
        page.contains(&format!("/api/replays/{id}")) && page.contains(&format!("/api/traces?replay_id={id}"))
    );
}
