//! Invalid frames: the hub closes the connection with the right code, and no other client is affected.

use hub_core::random::Random;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;

use super::stage::Stage;
use futures_util::SinkExt;

/// A client's frame, masked with zeroes, which leaves the payload as it is.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(0x80 | u8::try_from(length).unwrap()),
        length @ 126..=0xffff => {
            bytes.push(0xfe);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        length => {
            bytes.push(0xff);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

const TEXT: u8 = 0x81;

#[tokio::test]
async fn each_kind_of_bad_frame_ends_with_its_code() {
    let stage = Stage::new().await;
    let huge = frame(TEXT, &vec![b'x'; 64 * 1024 + 1]);
    // Twenty frames of one message that is too long as a whole.
    let part = vec![b'x'; 60_000];
    let mut pieces = frame(0x01, &part);
    (0..20).for_each(|_| pieces.extend(frame(0x00, &part)));
    let mut announced = vec![TEXT, 0xff];
    announced.extend(u64::MAX.to_be_bytes());
    announced.extend([0; 4]);
    for (bytes, code) in [
        (huge, 1009),
        (pieces, 1009),
        (announced, 1009),
        (frame(TEXT, b"{\"type\":\"\xff\xfe\"}"), 1007),
        (vec![TEXT, 0x02, b'h', b'i'], 1002),
        (frame(0x83, b"reserved opcode"), 1002),
        (frame(0xc1, b"reserved bit"), 1002),
        (frame(0x80, b"continues nothing"), 1002),
        (frame(0x89, &[b'x'; 126]), 1002),
    ] {
        let (mut client, _) = stage.connect("").await;
        client.0.get_mut().write_all(&bytes).await.unwrap();
        assert_eq!(client.closed().await.0, code, "{:?}", &bytes[..bytes.len().min(20)]);
    }
    stage.wait_sockets(0).await;
    stage.stop().await;
}

#[tokio::test]
async fn frames_that_say_nothing_are_answered_fifty_times() {
    let stage = Stage::new().await;
    let (mut client, _) = stage.connect("").await;
    client.say(&json!({ "type": "fly", "reqID": "r" })).await;
    let error = client.hear("error").await;
    assert_eq!((&error["data"]["code"], &error["reqID"]), (&json!("unknown_type"), &json!("r")));
    for text in [
        "",
        "no json",
        "[]",
        "{}",
        r#"{"type":"ack","data":{"seq":-1}}"#,
        r#"{"type":"ack","data":{"seq":9}}"#,
    ] {
        client.0.send(Message::text(text)).await.unwrap();
        assert_eq!(client.hear("error").await["data"]["code"], "INVALID_PARAMS", "{text}");
    }
    client.0.send(Message::binary(vec![0, 1, 2])).await.unwrap();
    assert_eq!(client.hear("error").await["data"]["code"], "INVALID_PARAMS");
    for _ in 8..49 {
        client.say(&json!({ "type": "fly" })).await;
        client.hear("error").await;
    }
    client.say(&json!({ "type": "fly" })).await;
    assert_eq!(client.closed().await.0, 1008);
    stage.stop().await;
}

#[tokio::test]
async fn ten_thousand_random_frames_leave_the_hub_as_it_was() {
    const FRAMES: u32 = 10_000;
    let stage = Stage::new().await;
    stage.say("one");
    let random = Random::seeded(7);
    let words = [
        "{\"type\":\"",
        "ack",
        "send_text",
        "send_typing",
        "get_config",
        "ping",
        "\",\"data\":{",
        "\"seq\":",
        "}}",
        "\\u",
        "\0",
        "9e999",
    ];
    let mut made = 0;
    while made < FRAMES {
        let (mut client, _) = stage.connect("").await;
        let mut bytes = Vec::new();
        for _ in 0..100 {
            made += 1;
            let length = usize::try_from(random.below(60)).unwrap();
            match random.below(4) {
                // A well-formed frame of words.
                0 | 1 => {
                    let pick = |_| words[usize::try_from(random.below(words.len() as u64)).unwrap()];
                    bytes.extend(frame(TEXT, (0..length % 9).map(pick).collect::<String>().as_bytes()));
                }
                // A well-formed frame of bytes.
                2 => {
                    let first = u8::try_from(random.below(256)).unwrap();
                    let payload: Vec<u8> =
                        (0..length).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
                    bytes.extend(frame(first, &payload));
                }
                _ => bytes.extend((0..length % 12).map(|_| u8::try_from(random.below(256)).unwrap())),
            }
        }
        let (mut read, mut write) = tokio::io::split(client.0.get_mut());
        let sink = async {
            let mut sink = Vec::new();
            let _ = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut sink).await;
        };
        let say = async {
            // The hub may have closed already.
            let _ = write.write_all(&bytes).await;
            let _ = write.shutdown().await;
        };
        tokio::time::timeout(super::client::TEST_TIMEOUT, async { futures_util::join!(sink, say) })
            .await
            .expect("it ends");
    }
    stage.wait_sockets(0).await;
    let (mut client, _) = stage.connect("since=0").await;
    assert_eq!(client.message().await, (1, "one".to_owned()));
    assert_eq!(stage.world.hub.load().panics, 0);
    stage.stop().await;
}
