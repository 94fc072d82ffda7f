use std::time::Duration;

use hub_core::{
    access::Actor,
    bots::{MessageFilter, NewBind},
    channels::NewChannel,
    media::{MediaState, NewUpload},
    network::sim::Simulator,
    page::PageRequest,
    time::Clock,
};
use poem::http::HeaderName;

use super::*;
use crate::testing::{App, Reply};

/// Starts like a PNG, and is ten bytes long.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\nab";

#[test]
fn ranges_follow_the_standard() {
    for (text, expected) in [
        ("bytes=0-0", Ranged::Part(0..1)),
        ("bytes=2-4", Ranged::Part(2..5)),
        ("bytes=2-400", Ranged::Part(2..10)),
        ("bytes=7-", Ranged::Part(7..10)),
        ("bytes=-3", Ranged::Part(7..10)),
        ("bytes=-30", Ranged::Part(0..10)),
        ("bytes=10-", Ranged::Outside),
        ("bytes=10-12", Ranged::Outside),
        ("bytes=-0", Ranged::Outside),
        ("bytes=18446744073709551615-", Ranged::Outside),
        ("bytes=0-18446744073709551615", Ranged::Part(0..10)),
        ("bytes=4-2", Ranged::Whole),
        ("bytes=0-1,3-4", Ranged::Whole),
        ("bytes=-", Ranged::Whole),
        ("bytes=a-b", Ranged::Whole),
        ("items=0-1", Ranged::Whole),
        ("", Ranged::Whole),
    ] {
        assert_eq!(read_range(text, 10), expected, "{text}");
    }
    assert_eq!(read_range("bytes=0-", 0), Ranged::Outside);
}

#[test]
fn names_are_written_so_that_no_header_breaks() {
    assert_eq!(disposition("a b.pdf"), "attachment; filename=\"a b.pdf\"; filename*=UTF-8''a%20b.pdf");
    let hostile = disposition("\"x\\;\r\n报价%2f.pdf");
    assert_eq!(
        hostile,
        "attachment; filename=\"_x_______2f.pdf\"; filename*=UTF-8''%22x%5C%3B%0D%0A%E6%8A%A5%E4%BB%B7%252f.pdf"
    );
    assert!(hostile.parse::<HeaderValue>().is_ok());
}

#[test]
fn only_what_brings_a_file_may_be_long() {
    let form = Some("multipart/form-data; boundary=x");
    assert!(brings_file(&Method::PUT, "/api/uploads/med_1", None));
    assert!(brings_file(&Method::POST, "/api/v1/channels/send", form));
    assert!(brings_file(&Method::POST, "/bot/v1/messages/send", form));
    assert!(brings_file(&Method::POST, "/bot/v1/message/send", form));
    assert!(!brings_file(&Method::POST, "/api/v1/channels/send", Some("application/json")));
    assert!(!brings_file(&Method::POST, "/api/auth/login", form));
    assert!(brings_file(&Method::POST, "/api/bots/bot_1/send", form));
    assert!(brings_file(&Method::POST, "/console/bots/bot_1", form));
    assert!(brings_file(&Method::POST, "/console/bots/bot_1/contacts/ada@im.wechat", form));
    assert!(!brings_file(&Method::POST, "/console/bots/bot_1/channels/ch_1/webhook", form));
    assert!(!brings_file(&Method::POST, "/api/bots/bot_1/reconnect", form));
    assert!(!brings_file(&Method::POST, "/api/uploads/med_1", None));
}

/// A bot of ann's that is at work, and the client of a channel.
async fn at_work(app: &App, simulator: &Simulator) -> (Actor, hub_core::id::BotId, String, Actor) {
    let ann = app.user("ann").await;
    let session = ann.headers[0].1.split_once('=').unwrap().1.to_owned();
    let ann = app.hub.accounts().authenticate_session(&session).await.unwrap();
    let bind = app.hub.bots().start_bind(&ann, NewBind::default()).await.unwrap();
    let account = simulator.confirm(bind.qr_text.expose(), None).unwrap();
    let step = app.hub.bots().confirm_bind(&ann, bind.bind_id, None, Duration::ZERO).await.unwrap();
    let bot = step.bot.unwrap().id;
    let made = app.hub.channels().create(&ann, bot, NewChannel::named("files"), None).await.unwrap();
    let client = app.hub.channels().authenticate_key(made.api_key.expose()).await.unwrap();
    (ann, bot, account.wx_id, client)
}

async fn get(app: &App, url: &str, headers: &[(HeaderName, &str)]) -> Reply {
    let headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| (name.to_string(), (*value).to_owned())).collect();
    let stranger = app.stranger();
    let ask = stranger.send(Method::GET, url, |request| {
        headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    });
    ask.await
}

async fn put_file(app: &App, url: &str, content_type: &str, body: &[u8]) -> Reply {
    let (content_type, body) = (content_type.to_owned(), body.to_vec());
    let stranger = app.stranger();
    let ask =
        stranger.send(Method::PUT, url, |request| request.header("Content-Type", content_type).body(body));
    ask.await
}

#[tokio::test]
async fn a_file_is_read_at_its_link_whole_and_in_parts() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bot, wx_id, _) = at_work(&app, &simulator).await;
    app.hub.start().await.unwrap();
    let file = simulator.store_file(&wx_id, IMAGE).unwrap().file("..\u{5c}报\"价.png");
    simulator.inject(json!({ "wx_id": wx_id, "items": [file] })).unwrap();
    let request = PageRequest::parse("messages", Some(1), None).unwrap();
    let mut url = None;
    for _ in 0..3_000 {
        let page = app.hub.bots().messages(&ann, bot, &MessageFilter::default(), &request).await.unwrap();
        let found = page.items.into_iter().find_map(|message| message.media.into_iter().next());
        url = found.filter(|file| file.status == MediaState::Ready).and_then(|file| file.url);
        if url.is_some() {
            break;
        }
        Clock::system().sleep(Duration::from_millis(10)).await;
    }
    let url = url.expect("the file is there").as_str().to_owned();
    let url = url.strip_prefix("http://localhost:9800").expect("links lead to the hub").to_owned();
    assert!(url.starts_with("/api/media/med_"), "{url}");

    let whole = get(&app, &url, &[]).await;
    assert_eq!((whole.response.status().as_u16(), whole.bytes.as_slice()), (200, IMAGE));
    for (name, value) in [
        ("content-type", "image/png"),
        ("content-length", "10"),
        ("accept-ranges", "bytes"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", POLICY),
    ] {
        assert_eq!(whole.header(name), Some(value), "{name}");
    }
    let name = "attachment; filename=\"___.png\"; filename*=UTF-8''%E6%8A%A5%22%E4%BB%B7.png";
    assert_eq!(whole.header("content-disposition"), Some(name));
    let head = app.stranger().send(Method::HEAD, &url, |request| request).await;
    assert_eq!((head.response.status().as_u16(), head.header("content-length")), (200, Some("10")));

    let part = get(&app, &url, &[(header::RANGE, "bytes=1-3")]).await;
    assert_eq!((part.response.status().as_u16(), part.bytes.as_slice()), (206, &b"PNG"[..]));
    assert_eq!(
        (part.header("content-range"), part.header("content-length")),
        (Some("bytes 1-3/10"), Some("3"))
    );
    let tag = whole.header("etag").unwrap().to_owned();
    let fresh = get(&app, &url, &[(header::IF_NONE_MATCH, tag.as_str())]).await;
    assert_eq!((fresh.response.status().as_u16(), fresh.bytes.len()), (304, 0));
    let other = get(&app, &url, &[(header::RANGE, "bytes=1-3"), (header::IF_RANGE, "\"other\"")]).await;
    assert_eq!(other.response.status().as_u16(), 200);
    let outside = get(&app, &url, &[(header::RANGE, "bytes=10-")]).await;
    outside.error(416, "INVALID_PARAMS");
    assert_eq!(outside.header("content-range"), Some("bytes */10"));

    let (path, query) = url.split_once('?').unwrap();
    for wrong in [
        path.to_owned(),
        format!("{path}?{}", query.replace("expires=1", "expires=2")),
        format!("{url}0"),
        format!("/api/media/med_01K9ZC3V5T8QK4X7M2N6P0RSWA?{query}"),
        format!("/api/media/..%2f..%2fetc%2fpasswd?{query}"),
        format!("/api/media/%00?{query}"),
        url.replace("/api/media/", "/api/uploads/"),
    ] {
        let refused = get(&app, &wrong, &[]).await;
        assert!(matches!(refused.response.status().as_u16(), 401 | 404 | 405), "{wrong}: {}", refused.json);
        assert_ne!(refused.bytes, IMAGE);
    }
    app.clock.advance(Duration::from_secs(26 * 3600));
    get(&app, &url, &[]).await.error(401, "INVALID_TOKEN");
    app.hub.shutdown().await;
}

#[tokio::test]
async fn an_upload_is_taken_once_and_only_as_announced() {
    let (app, simulator) = App::with_simulator().await;
    let (_, _, _, client) = at_work(&app, &simulator).await;
    let announce = async || {
        let new = NewUpload {
            file_name: "a.png".to_owned(),
            content_type: "image/png".to_owned(),
            size: IMAGE.len() as u64,
        };
        app.hub.media().start_upload(&client, new).await.unwrap().url.as_str().to_owned()
    };
    let url = announce().await;
    put_file(&app, &url, "image/jpeg", IMAGE).await.error(415, "UNSUPPORTED_MEDIA_TYPE");
    let sig = url.replace("sig=", "sig=0");
    put_file(&app, &sig, "image/png", IMAGE).await.error(401, "INVALID_TOKEN");
    let elsewhere = url.replace("/api/uploads/med_0", "/api/uploads/med_1");
    put_file(&app, &elsewhere, "image/png", IMAGE).await.error(401, "INVALID_TOKEN");
    let done = put_file(&app, &url, "image/png; charset=x", IMAGE).await;
    assert!(done.data()["upload_id"].as_str().unwrap().starts_with("med_"));
    put_file(&app, &url, "image/png", IMAGE).await.error(401, "INVALID_TOKEN");

    // Lengths and bytes are counted, not believed; what was begun is used up.
    for (body, status, code) in [
        ([IMAGE, b"x"].concat(), 413, "PAYLOAD_TOO_LARGE"),
        (IMAGE[..9].to_vec(), 400, "INVALID_PARAMS"),
        (b"<script>ab".to_vec(), 415, "UNSUPPORTED_MEDIA_TYPE"),
    ] {
        let url = announce().await;
        let stranger = app.stranger();
        let streamed = stranger.send(Method::PUT, &url, |request| {
            let pieces =
                body.chunks(4).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>();
            let stream = Body::from_bytes_stream(futures_util::stream::iter(pieces));
            request.header("Content-Type", "image/png").body(stream)
        });
        streamed.await.error(status, code);
        put_file(&app, &url, "image/png", IMAGE).await.error(401, "INVALID_TOKEN");
    }
    let late = announce().await;
    app.clock.advance(Duration::from_secs(15 * 60));
    put_file(&app, &late, "image/png", IMAGE).await.error(401, "INVALID_TOKEN");
    app.hub.shutdown().await;
}
