//! Files, with the whole hub: what the connector cannot decide of cases M and U.

use hub_core::{
    bots::{Attachment, NewSend},
    error::ErrorCode,
    media::{MediaState, MediaView},
    network::sim::{Action, Endpoint, Fault, SimConfig},
    traces::Expand,
};
use serde_json::json;

use super::stage::{SECOND, World, refusal};

const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\nnot really a picture";

fn failing(endpoint: Endpoint, status: u16, count: Option<u32>) -> Fault {
    let action = Action::Status { status, body: String::new(), headers: [].into(), effect: false };
    Fault { count, ..Fault::on(endpoint, action) }
}

fn file(name: &str, content: &str) -> NewSend {
    let media = Attachment::Bytes { file_name: name.to_owned(), content_type: None, bytes: IMAGE.into() };
    NewSend { content: content.to_owned(), media: Some(media), ..NewSend::default() }
}

impl World {
    /// The person sends a picture.
    fn shows(&self, bytes: &[u8]) {
        let image = self.stage.sim.store_file(&self.bot.wx_id, bytes).unwrap().image();
        self.stage.sim.inject(json!({ "wx_id": self.bot.wx_id, "items": [image] })).unwrap();
    }

    /// The file of the newest message.
    async fn newest(&self) -> Option<MediaView> {
        self.messages().await.pop()?.media.into_iter().next()
    }

    async fn becomes_file(&self, status: MediaState) -> MediaView {
        let what = format!("the file is {}", status.as_str());
        self.until(&what, async || self.newest().await.is_some_and(|file| file.status == status)).await;
        self.newest().await.unwrap()
    }

    /// Traces of the bot with their steps, in debug format.
    async fn traces(&self) -> String {
        let traces = self.hub.hub().traces();
        let (query, page, expand) = Default::default();
        let expand = Expand { steps: true, ..expand };
        let page = traces.expanded(&self.ada, self.bot.id, &query, &page, expand).await.unwrap();
        format!("{:?}", page.items)
    }

    async fn post(&self, new: NewSend) -> hub_core::Result<hub_core::bots::Sent> {
        self.hub.hub().bots().send(&self.ada, self.bot.id, new, None).await
    }
}

/// The bytes behind a file's link.
async fn read(world: &World, file: &MediaView) -> hub_core::Result<Vec<u8>> {
    use futures_util::TryStreamExt;
    let link = url::Url::parse(&format!("http://hub{}", file.url.as_ref().unwrap().as_str())).unwrap();
    let value = |name: &str| link.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    let media = world.hub.hub().media();
    let id = link.path().rsplit('/').next().unwrap().to_owned();
    let found = media.open_link(&id, &value("expires"), &value("sig")).await?;
    let pieces: Vec<_> = media.stream(found.id, 0..found.size).await?.try_collect().await?;
    Ok(pieces.concat())
}

#[tokio::test]
async fn m1_a_picture_is_in_the_payload_with_a_link_to_its_bytes() {
    let world = World::greeted().await;
    world.shows(IMAGE);
    world.until("the receiver gets it", async || world.receiver.bodies().len() == 2).await;
    let body = world.receiver.bodies().pop().unwrap();
    let told = &body["media"][0];
    assert_eq!((&body["msg_type"], &told["status"]), (&json!(3), &json!("ready")));
    assert_eq!((&told["type"], &told["content_type"]), (&json!("image"), &json!("image/png")));
    assert_eq!((&told["size"], &told["file_name"]), (&json!(IMAGE.len()), &json!("image.png")));
    let file = world.becomes_file(MediaState::Ready).await;
    assert_eq!(told["url"], file.url.as_ref().unwrap().as_str());
    assert_eq!(read(&world, &file).await.unwrap(), IMAGE);
    // Nothing that opens the file elsewhere is shown anywhere, nor is the link's signature in the trace.
    let shown = body.to_string() + &format!("{:?}", world.messages().await);
    let raw = world.tap().requests("/c2c/download").pop().unwrap().uri().to_string();
    let param = raw.split("encrypted_query_param=").nth(1).unwrap().to_owned();
    assert!(!shown.contains(&param));
    let told_of = async || world.traces().await.contains("/api/media/");
    world.until("the trace tells of the link", told_of).await;
    let traces = world.traces().await;
    let signature = told["url"].as_str().unwrap().rsplit_once("sig=").unwrap().1.to_owned();
    assert!(!traces.contains(&signature), "{traces}");
    let stored = world.texts("SELECT source FROM media").await.concat();
    assert!(!stored.contains(&param), "the reference is sealed");
}

#[tokio::test]
async fn m6_a_failing_cdn_delays_neither_the_message_nor_the_polls() {
    let world = World::greeted().await;
    world.fault(failing(Endpoint::CdnDownload, 500, None));
    world.shows(IMAGE);
    world.until("it is listed", async || world.newest().await.is_some()).await;
    assert_eq!(world.newest().await.unwrap().status, MediaState::Downloading);
    world.polling().await;
    // The webhook of a message without a text waits for its files for five seconds, and not longer.
    assert_eq!(world.receiver.bodies().len(), 1);
    world.advance_until("the receiver gets it", SECOND, async || world.receiver.bodies().len() == 2).await;
    let told = world.receiver.bodies().pop().unwrap()["media"][0].clone();
    assert_eq!(told["status"], "downloading");
    assert!(told["url"].is_string() && told.get("size").is_none(), "{told}");
    world.hear("and this is text").await;
    world
        .advance_until("it is given up", 10 * SECOND, async || {
            world
                .messages()
                .await
                .iter()
                .any(|message| message.media.first().is_some_and(|file| file.status == MediaState::Failed))
        })
        .await;
    assert_eq!(world.count("/c2c/download"), 4, "once, and three times more");
    let failed = world.messages().await.into_iter().find(|message| !message.media.is_empty()).unwrap();
    assert_eq!(failed.media[0].error.as_deref(), Some("the CDN answered HTTP 500"));
    assert!(failed.media[0].url.is_none());
    // Someone asks for it again.
    world.stage.sim.clear_faults(None);
    let media = world.hub.hub().media();
    assert_eq!(media.retry(&world.ada, world.bot.id, failed.id).await.unwrap(), 1);
    world
        .until("it is there", async || {
            let all = world.messages().await;
            all.iter()
                .any(|message| message.media.first().is_some_and(|file| file.status == MediaState::Ready))
        })
        .await;
    assert_eq!(media.retry(&world.ada, world.bot.id, failed.id).await.unwrap(), 0);
}

#[tokio::test]
async fn m6_a_file_over_the_limit_fails_alone() {
    let world =
        World::with(SimConfig::default(), |hub| hub.config(|config| config.media.max_inbound = 1_000)).await;
    world.hear("hello").await;
    world.shows(&[IMAGE, &[0; 2_000]].concat());
    let failed = world.becomes_file(MediaState::Failed).await;
    assert_eq!(failed.error.as_deref(), Some("it is larger than 1000 bytes"));
    world.shows(IMAGE);
    world.becomes_file(MediaState::Ready).await;
}

#[tokio::test]
async fn a_full_storage_rejects_uploads_with_a_reason() {
    let world =
        World::with(SimConfig::default(), |hub| hub.config(|config| config.media.max_per_owner = 20)).await;
    world.hear("hello").await;
    world.shows(IMAGE);
    world.becomes_file(MediaState::Ready).await;
    world.shows(IMAGE);
    let failed = world.becomes_file(MediaState::Failed).await;
    assert!(failed.error.unwrap().contains("storage"), "the second one finds it full");
    let refused = world.post(file("a.png", "")).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict);
}

#[tokio::test]
async fn m5_a_file_that_is_sent_again_is_opened_with_the_key_of_the_first() {
    let world = World::greeted().await;
    let stored = world.stage.sim.store_file(&world.bot.wx_id, b"the same").unwrap();
    let inject = |item| world.stage.sim.inject(json!({ "wx_id": world.bot.wx_id, "items": [item] })).unwrap();
    inject(stored.file("a.txt"));
    world.becomes_file(MediaState::Ready).await;
    let mut again = stored.file("b.txt");
    again["file_item"]["media"]["aes_key"] = json!("MDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmY=");
    inject(again);
    world.until("both are there", async || world.messages().await.len() == 3).await;
    let file = world.becomes_file(MediaState::Ready).await;
    assert_eq!((file.file_name.as_str(), file.content_type.as_deref()), ("b.txt", Some("text/plain")));
    assert_eq!(read(&world, &file).await.unwrap(), b"the same");
}

#[tokio::test]
async fn a_restart_goes_on_fetching() {
    let mut world = World::greeted().await;
    world.fault(failing(Endpoint::CdnDownload, 503, None));
    world.shows(IMAGE);
    world.until("it was tried", async || world.count("/c2c/download") > 0).await;
    world.hub.kill().await;
    world.stage.sim.clear_faults(None);
    world.hub.restart().await;
    world
        .advance_until("it is there", SECOND, async || {
            world.newest().await.is_some_and(|file| file.status == MediaState::Ready)
        })
        .await;
}

#[tokio::test]
async fn unreferenced_files_are_deleted_with_their_content() {
    let world = World::greeted().await;
    world.shows(IMAGE);
    let file = world.becomes_file(MediaState::Ready).await;
    world.post(file_to_forget()).await.unwrap();
    let objects = async || {
        let hub_core::store::StoreConfig::Sqlite(path) = world.hub.store() else {
            panic!("a test on SQLite")
        };
        let mut count = 0;
        for shard in std::fs::read_dir(path.with_file_name("media")).unwrap() {
            count += std::fs::read_dir(shard.unwrap().path()).unwrap().count();
        }
        count
    };
    assert_eq!(objects().await, 2);
    world.hub.hub().bots().delete(&world.ada, world.bot.id).await.unwrap();
    let told = read(&world, &file).await.unwrap_err();
    assert_eq!(told.code(), ErrorCode::NotFound, "the link ends with the message");
    // The rows go after the bytes.
    let gone = async || objects().await == 0 && world.number("SELECT COUNT(*) FROM media").await == 0;
    world.advance_until("the bytes and the rows are gone", 60 * SECOND, gone).await;
}

fn file_to_forget() -> NewSend {
    file("b.png", "")
}

#[tokio::test]
async fn u6_a_caption_goes_first_and_both_cost_a_send() {
    let world = World::greeted().await;
    let sent = world.post(file("a.png", "look at this")).await.unwrap();
    let shown = world.sent(2).await;
    assert_eq!((shown[0].text.as_str(), shown[0].media.is_none()), ("look at this", true));
    assert_eq!(world.stage.sim.opened(&shown[1]).unwrap(), IMAGE);
    world.becomes(&sent, "sent").await;
    let message = world.messages().await.pop().unwrap();
    assert_eq!((message.content.as_str(), message.kind.msg_type()), ("look at this", 3));
    assert_eq!((message.items.len(), message.media[0].status), (2, MediaState::Ready));
    assert_eq!(read(&world, &message.media[0]).await.unwrap(), IMAGE);
    assert_eq!(world.number("SELECT window_sends FROM contacts").await, 2);
}

#[tokio::test]
async fn u7_what_does_not_fit_the_window_is_refused_before_anything_is_uploaded() {
    let sim = SimConfig { window_sends: 3, ..SimConfig::default() };
    let world = World::with(sim, |hub| hub.ilink(|ilink| ilink.window.sends = Some(3))).await;
    world.hear("hello").await;
    world.send("one").await;
    world.send("two").await;
    world.sent(2).await;
    let refused = world.post(file("a.png", "caption")).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::WindowClosed);
    assert_eq!(world.number("SELECT COUNT(*) FROM media").await, 0);
    world.post(file("a.png", "")).await.unwrap();
    world.sent(3).await;
    assert_eq!(world.count("getuploadurl"), 1);
}

#[tokio::test]
async fn u3_a_file_without_a_place_fails_and_the_text_goes() {
    let world = World::greeted().await;
    world.fault(refusal(Endpoint::GetUploadUrl, -2, "account limit"));
    let sent = world.post(file("a.png", "caption")).await.unwrap();
    world.becomes(&sent, "failed").await;
    assert_eq!(world.shown().iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), ["caption"]);
    let message = world.messages().await.pop().unwrap();
    assert!(message.status_reason.unwrap().contains("account limit"));
    world.send("and on").await;
    world.sent(2).await;
}

#[tokio::test]
async fn u4_a_file_waits_for_a_cdn_that_is_down() {
    let world = World::greeted().await;
    world.fault(failing(Endpoint::CdnUpload, 503, Some(4)));
    let sent = world.post(file("a.png", "")).await.unwrap();
    world.advance_until("two rounds", SECOND, async || world.count("/c2c/upload") >= 5).await;
    world.becomes(&sent, "sent").await;
    assert_eq!(world.stage.sim.opened(&world.shown()[0]).unwrap(), IMAGE);
    assert_eq!(world.count("sendmessage"), 1);
}

#[tokio::test]
async fn a_crash_between_upload_and_send_uploads_again_and_sends_once() {
    let mut world = World::greeted().await;
    // The upload is taken and its answer lost with the process.
    let action = Action::Status { status: 500, body: String::new(), headers: [].into(), effect: true };
    world.fault(Fault { count: None, ..Fault::on(Endpoint::CdnUpload, action) });
    let sent = world.post(file("a.png", "")).await.unwrap();
    world.until("it was uploaded", async || world.count("/c2c/upload") > 0).await;
    world.hub.kill().await;
    world.stage.sim.clear_faults(None);
    world.hub.restart().await;
    world.becomes(&sent, "sent").await;
    let shown = world.shown();
    assert_eq!((shown.len(), shown[0].repeats), (1, 0));
    assert_eq!(world.stage.sim.opened(&shown[0]).unwrap(), IMAGE);
}

#[tokio::test]
async fn s9_a_lost_answer_repeats_the_same_file_under_the_same_id() {
    let world = World::greeted().await;
    world.fault(Fault::on(Endpoint::SendMessage, Action::Cut { effect: true }));
    let sent = world.post(file("a.png", "")).await.unwrap();
    world.becomes(&sent, "sent").await;
    let shown = world.shown();
    assert_eq!((shown.len(), shown[0].repeats), (1, 1));
    assert_eq!(world.count("/c2c/upload"), 1, "what was handed over a moment ago is not handed over again");
}
