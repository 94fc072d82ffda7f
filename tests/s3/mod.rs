//! Files in a bucket (`media_url = "s3://…"`), and backups in one, with a whole hub and moto, an S3 service of other authors, on
//! loopback. `.ci/run clients` installs it; where it is missing the tests are skipped, in CI they fail.

use std::{
    process::{Child, Stdio},
    time::Duration,
};

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::{HeaderMap, Method};
use hub_core::{
    ErrorCode,
    access::Actor,
    bots::{Attachment, MessageFilter, NewSend},
    channels::NewChannel,
    egress::{Call, Egress, EgressConfig},
    media::{MediaConfig, MediaState, MediaView, NewUpload, S3Config, UploadRequest, UploadTicket},
    page::PageRequest,
    testing::{TestBot, TestHub, until},
};
use serde_json::json;
use url::Url;

use crate::clients::installed;

mod backup;

/// The bucket that is there from the start.
pub const BUCKET: &str = "files";
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\nnot really a picture";
/// More than two of the parts in which a bucket takes large files.
const LARGE: usize = 12 << 20;

/// The service, as long as it is not dropped.
pub struct Moto {
    /// Its address.
    pub url: Url,
    process: Child,
}

impl Drop for Moto {
    fn drop(&mut self) {
        // Both fail for a process that has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Moto {
    /// With an empty bucket at a port, 0 for any; `None` when it is not installed.
    pub fn start(port: u16) -> Option<Self> {
        use std::io::BufRead;
        let mut command = installed::moto(BUCKET)?;
        command.arg(port.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        // It says where it is, or ends.
        std::io::BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        Some(Self { url: told["url"].as_str().unwrap().parse().unwrap(), process })
    }

    fn config(&self) -> MediaConfig {
        MediaConfig::S3(S3Config {
            bucket: BUCKET.to_owned(),
            prefix: "hub/one".to_owned(),
            endpoint: Some(self.url.clone()),
            region: "eu-central-1".to_owned(),
            access_key_id: "somebody".to_owned(),
            secret_access_key: "a secret".into(),
            proxy: None,
        })
    }

    /// Queries the service about its bucket directly, and returns the response.
    async fn says(&self, query: &str) -> String {
        let allowed = format!("127.0.0.1:{}", self.url.port().unwrap());
        let config = EgressConfig { allow: vec![allowed.parse().unwrap()], ..EgressConfig::default() };
        let egress = Egress::new(config).unwrap();
        let call = Call {
            method: Method::GET,
            url: egress.check_url(&format!("{}{BUCKET}?{query}", self.url)).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            deadline: Duration::from_secs(30),
            max_answer: 1 << 20,
        };
        String::from_utf8(egress.send(call).await.unwrap().body.to_vec()).unwrap()
    }

    /// The names of all objects.
    pub async fn objects(&self) -> Vec<String> {
        let listed = self.says("list-type=2").await;
        let names = listed.split("<Key>").skip(1);
        names.map(|rest| rest.split_once('<').unwrap().0.to_owned()).collect()
    }
}

struct Stage {
    moto: Moto,
    hub: TestHub,
    ada: Actor,
    bot: TestBot,
    client: Actor,
}

impl Stage {
    async fn new() -> Option<Self> {
        let moto = Moto::start(0)?;
        let hub = TestHub::builder().media(moto.config()).start().await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        let made = hub.hub().channels().create(&ada, bot.id, NewChannel::named("files"), None).await.unwrap();
        let client = hub.hub().channels().authenticate_key(made.api_key.expose()).await.unwrap();
        hub.say(&bot, "hello");
        let stage = Self { moto, hub, ada, bot, client };
        stage.hub.until("the greeting is there", async || stage.messages().await.then_some(())).await;
        Some(stage)
    }

    async fn messages(&self) -> bool {
        !self.list().await.is_empty()
    }

    async fn list(&self) -> Vec<hub_core::bots::Message> {
        let request = PageRequest::parse("messages", Some(10), None).unwrap();
        let bots = self.hub.hub().bots();
        bots.messages(&self.ada, self.bot.id, &MessageFilter::default(), &request).await.unwrap().items
    }

    /// The person sends a picture.
    fn show(&self, bytes: &[u8]) {
        let sim = self.hub.sim();
        let image = sim.store_file(&self.bot.wx_id, bytes).unwrap().image();
        sim.inject(json!({ "wx_id": self.bot.wx_id, "items": [image] })).unwrap();
    }

    /// The file of the newest message, if it looks like this.
    async fn newest(&self, status: MediaState) -> Option<MediaView> {
        let file = self.list().await.into_iter().next()?.media.into_iter().next()?;
        (file.status == status).then_some(file)
    }

    async fn arrived(&self) -> MediaView {
        let step = Duration::from_millis(100);
        self.hub.advance_until("the file is there", step, async || self.newest(MediaState::Ready).await).await
    }

    async fn read(&self, file: &MediaView, range: std::ops::Range<u64>) -> Vec<u8> {
        let pieces = self.hub.hub().media().stream(file.id, range).await.unwrap();
        pieces.try_collect::<Vec<_>>().await.unwrap().concat()
    }

    async fn announce(&self, size: usize) -> UploadTicket {
        let content_type = "application/x-large".to_owned();
        let new = NewUpload { file_name: "large.bin".to_owned(), content_type, size: size as u64 };
        self.hub.hub().media().start_upload(&self.client, new).await.unwrap()
    }

    /// The PUT to an announced upload, in small pieces.
    async fn put(&self, ticket: &UploadTicket, bytes: &[u8]) -> hub_core::Result<()> {
        let link: Url = ticket.url.as_str().parse().unwrap();
        let value = |name: &str| link.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
        let request = UploadRequest {
            id: &ticket.upload_id.to_string(),
            expires: &value("expires"),
            signature: &value("sig"),
            content_type: Some(&ticket.content_type),
            length: None,
        };
        let pieces: Vec<_> = bytes.chunks(100_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        self.hub.hub().media().receive_upload(request, futures_util::stream::iter(pieces)).await.map(drop)
    }
}

#[tokio::test]
async fn a_received_file_is_in_the_bucket_and_readable_in_ranges_until_it_is_deleted() {
    let Some(stage) = Stage::new().await else { return };
    stage.show(IMAGE);
    let file = stage.arrived().await;
    let name = file.id.to_string();
    let expected = format!("hub/one/{}/{name}", &name[name.len() - 2..]);
    assert_eq!(stage.moto.objects().await, [expected]);
    assert_eq!(stage.read(&file, 0..IMAGE.len() as u64).await, IMAGE);
    assert_eq!(stage.read(&file, 1..4).await, b"PNG");
    assert_eq!((file.content_type.as_deref(), file.size), (Some("image/png"), Some(IMAGE.len() as u64)));

    stage.hub.hub().bots().delete(&stage.ada, stage.bot.id).await.unwrap();
    let minute = Duration::from_secs(60);
    stage
        .hub
        .advance_until("the bytes are gone", minute, async || {
            stage.moto.objects().await.is_empty().then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_large_upload_goes_there_in_parts_and_to_the_person() {
    let Some(stage) = Stage::new().await else { return };
    let bytes: Vec<u8> = (0..LARGE).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let ticket = stage.announce(LARGE).await;
    stage.put(&ticket, &bytes).await.unwrap();
    assert_eq!(stage.moto.objects().await.len(), 1);
    let media = Some(Attachment::Upload(ticket.upload_id.to_string()));
    let new = NewSend { media, ..NewSend::default() };
    stage.hub.hub().bots().send(&stage.client, stage.bot.id, new, None).await.unwrap();
    let sent = stage.hub.sent(&stage.bot, 1).await;
    assert!(stage.hub.sim().opened(&sent[0]).unwrap() == bytes, "the person gets what was uploaded");
}

#[tokio::test]
async fn an_upload_that_differs_from_its_announcement_leaves_nothing_in_the_bucket() {
    let Some(stage) = Stage::new().await else { return };
    let bytes = vec![7; LARGE];
    for (announced, code) in [(LARGE - 1, ErrorCode::PayloadTooLarge), (LARGE + 1, ErrorCode::InvalidParams)]
    {
        let ticket = stage.announce(announced).await;
        assert_eq!(stage.put(&ticket, &bytes).await.unwrap_err().code(), code);
        let again = stage.put(&ticket, &bytes).await.unwrap_err();
        assert_eq!(again.code(), ErrorCode::InvalidToken, "a link is good for one try");
    }
    assert_eq!(stage.moto.objects().await, Vec::<String>::new());
    let open = stage.moto.says("uploads").await;
    assert!(!open.contains("<UploadId>"), "parts are left: {open}");
}

#[tokio::test]
async fn a_file_waits_for_a_bucket_that_is_away() {
    let Some(mut stage) = Stage::new().await else { return };
    let port = stage.moto.url.port().unwrap();
    drop(std::mem::replace(&mut stage.moto, Moto::start(0).unwrap()));
    stage.show(IMAGE);
    // Attempted at least once, and not abandoned.
    let counters = &stage.hub.hub().context().node.counters;
    let retried = || counters.media.counts().any(|(what, count)| what == "retried" && count > 0);
    until("it was tried", async || retried().then_some(())).await;
    assert!(stage.newest(MediaState::Downloading).await.is_some());
    stage.moto = Moto::start(port).unwrap();
    let file = stage.arrived().await;
    assert_eq!(stage.read(&file, 0..IMAGE.len() as u64).await, IMAGE);
}
