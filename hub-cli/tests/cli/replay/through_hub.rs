//! Replays that the hub sends.

use hub_core::demo::Behaviour;
use serde_json::json;

use crate::{
    program::{documents, ends, fails},
    replay::sink::Sink,
    stage::Stage,
};

#[test]
fn a_bulk_replay_is_one_request_and_prints_what_was_not_delivered() {
    let stage = Stage::new();
    let traces = ["order 1", "order 2"].map(|text| stage.say(text).trace_id.to_string());
    let bulk = ["replay", &*traces[0], &*traces[1], "--bulk"];
    let before = stage.receiver.received().len();
    let (out, err) = ends(&stage.server(&[&bulk[..], &["--dry-run"]].concat()), 0);
    assert!(out.is_empty() && err.contains("ok 2") && err.contains("nothing was sent"), "{out} {err}");
    assert_eq!(stage.receiver.received().len(), before);
    let (out, err) = ends(&stage.server(&bulk), 0);
    assert!(out.is_empty() && err.contains("ok 2"), "{out} {err}");
    assert_eq!(stage.receiver.received().len(), before + 2);

    stage.receiver.behave(Behaviour::Fail, Some(1));
    let (out, err) = ends(&stage.server(&[&bulk[..], &["--json"]].concat()), 3);
    let report = &documents(&out)[0];
    assert_eq!(report["outcome"], "fail", "{err}");
    assert!(report["reason"].as_str().unwrap().contains("the hub tries again"), "{report}");
    assert!(report["new_trace_id"].as_str().unwrap().starts_with("tr_"), "{report}");
    for refused in [&["--compare"][..], &["--rate", "1"], &["--as-recorded"]] {
        assert_eq!(stage.server(&[&bulk[..], refused].concat()).status.code(), Some(2), "{refused:?}");
    }
}

#[test]
fn a_message_whose_delivery_waits_is_replayed_only_in_its_place() {
    let stage = Stage::new();
    let trace = stage.say("order 42").trace_id.to_string();
    stage.receiver.behave(Behaviour::Fail, None);
    ends(&stage.server(&["replay", &trace]), 1);
    for (more, exit, outcome) in [(&[][..], 1, "fail"), (&["--bulk"], 0, "skipped")] {
        let (out, err) = ends(&stage.server(&[&["replay", &trace, "--json"], more].concat()), exit);
        let report = &documents(&out)[0];
        assert_eq!((&report["outcome"], &report["new_trace_id"]), (&json!(outcome), &json!(null)), "{err}");
        assert!(report["reason"].as_str().unwrap().starts_with("the delivery of trace tr_"), "{report}");
    }
    stage.receiver.behave(Behaviour::Answer, None);
    let (out, err) = ends(&stage.server(&["replay", &trace, "--supersede", "--json"]), 0);
    assert_eq!(documents(&out)[0]["outcome"], "ok", "{err}");
    let here = ["replay", &trace, "--supersede", "--to", "http://127.0.0.1:9/"];
    fails(&stage.server(&here), 2, "INVALID_PARAMS");
}

#[test]
fn a_replay_through_the_hub_prints_the_new_trace() {
    let stage = Stage::new();
    let trace = stage.say("order 42").trace_id.to_string();
    for place in [Stage::files, Stage::server] {
        let before = stage.receiver.received().len();
        let (out, err) = ends(&place(&stage, &["replay", &trace, "--compare", "--json"]), 0);
        let report = &documents(&out)[0];
        assert_eq!(
            (&report["outcome"], &report["status"], &report["trace_id"]),
            (&json!("ok"), &json!(200), &json!(trace))
        );
        assert_eq!(report["differences"], json!({}), "{err}");
        let received = stage.receiver.received();
        assert_eq!(received.len(), before + 1);
        assert!(received.last().unwrap().verdict.verified, "signed by the hub");
        let made = report["new_trace_id"].as_str().unwrap();
        let shown = ends(&place(&stage, &["traces", "show", made, "--json=replay_of,status"]), 0).0;
        assert_eq!(documents(&shown)[0], json!({ "replay_of": trace, "status": "ok" }));
        let same =
            ends(&place(&stage, &["traces", "diff", &trace, made, "--json=request,response,status"]), 0).0;
        assert_eq!(documents(&same)[0], json!({ "request": null, "response": null, "status": ["ok", "ok"] }));
    }
    // A filter leaves replays out, and needs to be meant.
    fails(&stage.files(&["replay", "--bot", "demo"]), 2, "INVALID_PARAMS");
    let looked = ends(&stage.server(&["replay", "--bot", "demo", "--dry-run"]), 0).0;
    assert_eq!(looked.lines().count(), 1, "{looked}");
    assert!(looked.contains("the webhook of channel ch_"), "{looked}");
    let (out, _) = ends(&stage.server(&["replay", "--yes"]), 0);
    assert_eq!(out.lines().count(), 1, "the only bot is meant");

    stage.receiver.behave(Behaviour::Fail, Some(1));
    let (out, err) = ends(&stage.server(&["replay", &trace, "--json"]), 1);
    let report = &documents(&out)[0];
    assert_eq!((&report["outcome"], &report["status"]), (&json!("fail"), &json!(500)), "{err}");
    assert!(report["reason"].as_str().unwrap().contains("the hub tries again"), "{report}");
    // Another URL through the hub has to be one that the hub may call.
    let sink = Sink::kind();
    let (out, _) =
        ends(&stage.server(&["replay", &trace, "--to", &sink.url, "--through-plugins", "--json"]), 1);
    assert_eq!((documents(&out)[0]["outcome"].as_str(), sink.count()), (Some("fail"), 0));
}
