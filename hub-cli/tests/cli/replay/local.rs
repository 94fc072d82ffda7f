//! Replays that are sent from this machine, not by the hub.

use hub_core::demo::ADA;
use serde_json::{Value, json};

use crate::{
    program::{documents, ends, fails, run},
    replay::sink::Sink,
    stage::Stage,
};

#[test]
fn an_export_contains_the_delivered_requests_without_secrets() {
    let stage = Stage::new();
    stage.say("order 1");
    let second = stage.say("order 2");
    let file = stage.path().join("traces.jsonl").display().to_string();
    let (out, err) = ends(&stage.files(&["traces", "export", "--bot", "demo", "--out", &file]), 0);
    assert_eq!((out.trim(), err.contains("2 traces in ")), (&*file, true), "{err}");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = documents(&text);
    assert_eq!([&lines[0]["message"]["content"], &lines[1]["message"]["content"]], ["order 1", "order 2"]);
    assert_eq!(lines[1]["trace_id"], json!(second.trace_id));
    assert_eq!(lines[0]["message"]["sender"]["user_id"], ADA);
    assert!(!text.contains("AARz") && !text.contains("sha256=") && !text.contains("whsec_"), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0, "for its owner alone");
    }
    fails(&stage.files(&["traces", "export", "--bot", "demo", "--out", &file]), 6, "CONFLICT");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "what is there stays");

    // The server tells the same, and what came of the replies meanwhile.
    let (out, _) = ends(&stage.server(&["traces", "export", "--bot", "demo"]), 0);
    let told: Vec<Value> = documents(&out).into_iter().map(|mut line| line["message"].take()).collect();
    assert_eq!(told, [lines[0]["message"].clone(), lines[1]["message"].clone()]);
    let (out, _) = ends(&stage.server(&["traces", "export", "--bot", "demo", "--json=status,message"]), 0);
    assert_eq!(documents(&out)[0].as_object().unwrap().len(), 2);
    for nothing in [&["--status", "error"][..], &["--until", "2020-01-01T00:00:00Z"], &["--since", "0s"]] {
        let arguments = [&["traces", "export", "--bot", "demo"], nothing].concat();
        let (out, err) = ends(&stage.files(&arguments), 0);
        assert_eq!((&*out, err.trim()), ("", "no such traces"), "{nothing:?}");
        let (out, err) = ends(&stage.server(&[&["traces", "list", "--bot", "demo"], nothing].concat()), 0);
        assert_eq!((&*out, err.trim()), ("", "no such traces"), "{nothing:?}");
    }
    let of_channel = ["traces", "list", "--bot", "demo", "--channel", "demo", "--since", "1h", "--json"];
    let (out, _) = ends(&stage.server(&of_channel), 0);
    assert_eq!(documents(&out)[0]["items"].as_array().unwrap().len(), 2);
    fails(&stage.files(&["traces", "list", "--bot", "demo", "--channel", "nobody"]), 5, "NOT_FOUND");
    fails(&stage.files(&["traces", "list", "--bot", "demo", "--since", "yesterday"]), 2, "INVALID_PARAMS");
}

#[test]
fn recordings_are_sent_to_a_local_url_as_recorded_or_signed_again() {
    let stage = Stage::new();
    for text in ["order 1", "order 2", "order 3"] {
        stage.say(text);
    }
    let file = stage.path().join("traces.jsonl").display().to_string();
    ends(&stage.files(&["traces", "export", "--bot", "demo", "--out", &file]), 0);
    let sink = Sink::kind();
    let to = ["replay", "--from", &file, "--to", &sink.url];
    let (out, err) = ends(&run(stage.path(), &to), 0);
    assert_eq!(out.lines().count(), 3);
    let row: Vec<&str> = out.lines().next().unwrap().split('\t').collect();
    assert_eq!((row.len(), row[1], row[2], row[4]), (7, "ok", "200", "status 200"), "{row:?}");
    // No terminal: a line at every quarter, and what came of it all.
    assert!(
        err.starts_with("replay 0/3 ok 0 fail 0\n") && err.contains("replay 3/3 ok 3 fail 0 · "),
        "{err}"
    );
    let contents = |from: usize| -> Vec<Value> {
        let bodies = sink.requests().into_iter().skip(from);
        bodies
            .map(|request| serde_json::from_str::<Value>(&request.body).unwrap()["content"].take())
            .collect()
    };
    assert_eq!(contents(0), ["order 1", "order 2", "order 3"]);
    assert!(sink.requests()[0].header("x-signature").is_none());

    // Only one state, one channel, a time: the same filters as those of lists.
    let (out, err) = ends(&run(stage.path(), &[&to[..], &["--status", "error"]].concat()), 0);
    assert_eq!((&*out, err.trim()), ("", "no such traces, nothing was sent"));

    let secret = stage.path().join("hook.secret").display().to_string();
    std::fs::write(&secret, "a secret of mine\n").unwrap();
    let signed =
        [&to[..], &["--resign", "--secret-file", &secret, "--concurrency", "3", "--rate", "1000"]].concat();
    ends(&run(stage.path(), &signed), 0);
    let request = &sink.requests()[4];
    let (head, body) = (
        stage.path().join("request.txt").display().to_string(),
        stage.path().join("body").display().to_string(),
    );
    std::fs::write(&head, &request.head).unwrap();
    std::fs::write(&body, &request.body).unwrap();
    let verify = ["signature", "verify", "--secret-file", &secret, "--headers", &head, "--body", &body];
    let (out, _) = ends(&run(stage.path(), &verify), 0);
    assert_eq!(out, "ok\tX-Signature\tmatches\nok\twebhook-signature\tmatches\n");

    // Traces of a hub, by a filter, from the server.
    let arguments = ["replay", "--bot", "demo", "--since", "1h", "--to", &sink.url, "--json"];
    let (out, err) = ends(&stage.server(&arguments), 0);
    assert_eq!(documents(&out).len(), 3);
    let summary = &documents(&err)[0];
    assert_eq!((&summary["ok"], &summary["total"], &summary["failed"]), (&json!(3), &json!(3), &json!(0)));
    let newest = stage.traces()[0].trace_id.to_string();
    let piped = stage.path().join("ids");
    std::fs::write(&piped, format!("{newest}\tmore\n\n{newest}\n")).unwrap();
    let mut command = crate::program::command(stage.path());
    command.args(["replay", "-", "--to", &sink.url]).stdin(std::fs::File::open(&piped).unwrap());
    let (out, _) = ends(&command.output().unwrap(), 0);
    assert_eq!((out.lines().count(), contents(9)), (2, vec![json!("order 3"), json!("order 3")]));
}

#[test]
fn replays_with_failures_and_differences_can_be_resumed() {
    let stage = Stage::new();
    let traces: Vec<String> =
        (1..=4).map(|n| stage.say(&format!("order {n}")).trace_id.to_string()).collect();
    let file = stage.path().join("traces.jsonl").display().to_string();
    ends(&stage.files(&["traces", "export", "--bot", "demo", "--out", &file]), 0);
    let sink = Sink::new(|number| match number {
        1 | 2 => (500, "{}".to_owned()),
        _ => (200, format!("{{\"reply\":\"{} is on its way\"}}", number + 1)),
    });
    let to = ["replay", "--from", &file, "--to", &sink.url];
    let (out, err) = ends(&run(stage.path(), &to), 3);
    let outcomes: Vec<&str> = out.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    assert_eq!(outcomes, ["ok", "fail", "fail", "ok"], "{err}");

    // The answers of this one are those of the recording for none of the four.
    let compare = [&to[..], &["--compare", "--json"]].concat();
    let (out, _) = ends(&run(stage.path(), &compare), 9);
    let reports = documents(&out);
    assert!(
        reports[0]["differences"]["body"].as_str().unwrap().contains("+  \"reply\": \"5 is on its way\"")
    );
    let rows = ends(&run(stage.path(), &[&to[..], &["--compare"]].concat()), 9).0;
    assert_eq!(rows.lines().next().unwrap().split('\t').nth(5), Some("body"));

    let failing = Sink::new(|number| (if number == 1 { 503 } else { 200 }, "{}".to_owned()));
    let careful = ["replay", "--from", &file, "--to", &failing.url, "--stop-on-fail"];
    let (out, err) = ends(&run(stage.path(), &careful), 3);
    assert_eq!((out.lines().count(), failing.count()), (2, 2));
    let token = format!("--resume-from {}", traces[0]);
    assert!(err.contains(&format!("continue with {token}")), "{err}");
    let go_on = ["replay", "--from", &file, "--to", &failing.url, "--resume-from", &traces[0]];
    let (out, err) = ends(&run(stage.path(), &go_on), 0);
    assert_eq!((out.lines().count(), err.contains("replay 3/3 ok 3")), (3, true), "{err}");
    let from_hub = ["replay", "--bot", "demo", "--to", &failing.url, "--resume-from", &traces[1]];
    let (out, _) = ends(&stage.files(&from_hub), 0);
    let ids: Vec<&str> = out.lines().map(|line| &line[..29]).collect();
    assert_eq!(ids, traces[2..]);

    let nobody = Sink::new(|_| (404, "nobody".to_owned()));
    ends(&run(stage.path(), &["replay", "--from", &file, "--to", &nobody.url]), 1);
    let (out, err) =
        ends(&run(stage.path(), &["replay", "--from", &file, "--to", &nobody.url, "--dry-run"]), 0);
    assert!(
        out.contains(&format!("POST {}", nobody.url)) && err.contains("nothing was sent (--dry-run)"),
        "{out}{err}"
    );
    assert_eq!(nobody.count(), 4);
}

#[test]
fn a_replay_runs_local_plugins_on_recorded_messages() {
    let stage = Stage::new();
    stage.say("order 7");
    stage.say("hello");
    let script = stage.path().join("tagger.js").display().to_string();
    std::fs::write(&script, include_str!("../../../../examples/plugins/tagger.js")).unwrap();
    let skip = stage.path().join("skip.js").display().to_string();
    std::fs::write(&skip, "function onRequest(ctx) { if (ctx.msg.content === 'hello') ctx.skip(); }")
        .unwrap();
    let sink = Sink::new(|_| (200, "{\"status\":\"shipped\"}".to_owned()));
    let through = ["replay", "--bot", "demo", "--to", &sink.url, "--through-plugins"];
    let arguments = [&through[..], &["--script", &script, "--script", &skip, "--json"]].concat();
    let (out, _) = ends(&stage.files(&arguments), 0);
    let reports = documents(&out);
    assert_eq!(
        (&reports[0]["outcome"], &reports[0]["replies"]),
        (&json!("ok"), &json!(["Order 7: shipped"]))
    );
    assert_eq!(
        (&reports[1]["outcome"], &reports[1]["reason"]),
        (&json!("skipped"), &json!("skip.js skips it"))
    );
    let requests = sink.requests();
    assert_eq!((requests.len(), requests[0].header("x-kind")), (1, Some("order")));
    assert_eq!(serde_json::from_str::<Value>(&requests[0].body).unwrap()["order"], 7);
}
