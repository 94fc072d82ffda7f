//! Compression dictionary of stored steps. Stored steps can only be read with the dictionary that they were
//! compressed with.

use crate::id::TraceId;

/// Fragments of steps, the most frequent ones last. The compression refers to them by the distance from the end, so
/// lines may be added at the beginning, and none may change.
macro_rules! common {
    () => {
        r#"
{"name":"response","kind":"app","status":"error","at":17,"attempt":1,"detail":{"error":{"message":"
{"name":"received","kind":"replay","at":17,"detail":{"replay_of":"tr_01","to":"https://
{"name":"ilink","kind":"ilink","at":17,"detail":{"ilink_client":"
{"name":"ai","kind":"tool_call","at":17,"duration_ms":1,"attempt":1,"detail":{"answer":"","tool":"","arguments":"{\"
{"name":"ai","kind":"ai","at":17,"duration_ms":1,"attempt":1,"detail":{"source":"global","model":"","round":1,"messages":1,"images":0,"tools":0,"finish_reason":"stop","usage":{"input_tokens":1,"output_tokens":1},"answer":"
{"name":"plugin.on_response","kind":"plugin","at":17,"attempt":1,"detail":{"plugin_id":"plg_01","plugin":"","version":"1.0.0","hook":false}},
{"name":"plugin.on_request","kind":"plugin","at":17,"duration_ms":1,"attempt":1,"detail":{"plugin_id":"plg_01","plugin":"","version":"1.0.0","hook":true,"duration_us":1,"wait_ms":0,"memory_bytes":1,"skipped":true,"replies":1,"changes":{"headers":["+ "],"body":"@@ -1 +1 @@\n-{\"},"logs":[{"at_ms":0,"level":"info","text":"
{"name":"websocket","kind":"log","at":17,"detail":{"clients":1}},
{"name":"reply","kind":"webhook","at":17,"detail":{"to":"@im.wechat","message_id":"msg_01","state":"queued","parts":1}},
{"name":"reply","kind":"outbox","at":17,"duration_ms":1,"attempt":1,"detail":{"message_id":"msg_01","state":"sent","part":1,"parts":1,"network_id":"
,"next_attempt_at":"2026-01-01T00:00:00.000Z","parked":true}},
,"status":"skipped","at":17,"detail":{"reason":"
,"status":"error","at":17,"duration_ms":1,"attempt":1,"detail":{"error":{"message":"timeout","class":"connect"},"method":"POST","url":"
["authorization","***"],["server","nginx"],["connection","keep-alive"],["content-type","text/plain; charset=utf-8"],["content-type","application/json; charset=utf-8"],["date","Mon, Tue, Wed, Thu, Fri, Sat, Sun, Jan 2026 Feb 2026 Mar 2026 Apr 2026 May 2026 Jun 2026 Jul 2026 Aug 2026 Sep 2026 Oct 2026 Nov 2026 Dec 2026 00:00:00 GMT"]],"body":"{\"ok\":true}"}},
"#
    };
}

/// The dictionary for the steps of a trace: at its end what most messages have, with the ids and times that the trace's own
/// id tells.
pub(super) fn of_trace(trace: TraceId) -> String {
    let at = trace.made_at();
    let (ms, seconds, date, id) = (at.as_millis(), at.as_seconds(), at.http_date(), trace.text());
    let id = id.as_str().trim_start_matches("tr_");
    // Order and empty lines are those of the shortest result: LZ4 looks up every third place of a dictionary, and of equal
    // ones the last.
    format!(
        concat!(
            "{}\n\n",
            r#"{{"name":"request","kind":"webhook","at":{ms},"duration_ms":1,"attempt":1,"detail":{{"method":"POST","#,
            r#""url":"https://","headers":[["content-type","application/json"],["user-agent","message-hub/0.1.0"],"#,
            r#"["x-signature","***"],["webhook-signature","***"],["webhook-id","dlv_{id}"],"#,
            r#"["webhook-timestamp","{seconds}"],["x-hub-attempt","1"]],"payload_crc":1}}}}"#,
            r#"{{"name":"received","kind":"inbox","at":{ms},"detail":{{"msg_type":"text","items":1}}}},"#,
            r#"{{"name":"filter","kind":"filter","at":{ms},"duration_ms":1}}"#,
            r#",{{"name":"response","kind":"webhook","at":{ms},"attempt":1,"detail":{{"status":200,"#,
            r#""headers":[["content-length","0"],["date","{date}"]],"body":""}}}}"#,
        ),
        common!(),
        ms = ms,
        id = id,
        seconds = seconds,
        date = date,
    )
}

/// The dictionary of the first texts that version 0.1.0 compressed.
pub(super) const FIRST: &str = concat!(
    common!(),
    r#"{"name":"received","kind":"inbox","at":17,"detail":{"msg_type":"text","items":1}},{"name":"filter","kind":"filter","at":17
},{"name":"request","kind":"webhook","at":17,"duration_ms":1,"attempt":1,"detail":{"method":"POST","url":"https://","headers":[["content-type","application/json"],["user-agent","message-hub/0.1.0"],["x-signature","***"],["webhook-signature","***"],["webhook-id","dlv_01M","webhook-timestamp","17"],["x-hub-attempt","1"]],"payload_crc":1}},{"name":"response","kind":"webhook","at":17,"attempt":1,"detail":{"status":200,"headers":[["content-length","0"],["date","Mon, 01 GMT"]],"body":""}}
"#
);
