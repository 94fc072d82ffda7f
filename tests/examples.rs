//! The examples do what they say: they run to their end, and the receivers believe a hub and no one else.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use hub_core::{
    Hub,
    access::Actor,
    channels::sinks::{AuthMethod, AuthUpdate, Change, WebhookUpdate},
    demo::{ADA, Demo, DemoReceiver, RECEIVER_HOST, connector, seed},
    egress::EgressConfig,
    network::sim::{SimConfig, Simulator},
    random::Random,
    secret::Secret,
    store::StoreConfig,
    time::Clock,
};

use crate::support::binaries::cargo;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// Builds an example, which was built with the tests if these are the workspace's, and says where it is. The same
/// selection of packages as theirs: another one chooses other features, and compiles everything again.
fn build(name: &str) -> PathBuf {
    let mut command = cargo();
    command.args(["build", "--quiet", "--locked", "--workspace", "--example", name]);
    assert!(command.status().unwrap().success(), "{name} does not build");
    // Next to the folder of this test's own binary.
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(2).unwrap().join("examples").join(name)
}

#[test]
fn a_hub_can_be_embedded() {
    let output = Command::new(build("01_embed")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains(r#""content":"hello""#) && text.contains("name: Request"), "{text}");
    assert!(text.contains(r#"the chat shows Some("thank you")"#), "{text}");
}

#[test]
fn a_network_can_be_added() {
    let output = Command::new(build("02_custom_network")).output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "eve reads: hello, Eve\n");
}

/// Runs an example and returns its output.
fn run(name: &str) -> String {
    let output = Command::new(build(name)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn a_plugin_runs_in_a_channel() {
    let text = run("04_plugin");
    assert!(text.contains(r#""order":42"#) && text.contains(r#"x-kind: "order""#), "{text}");
    assert!(text.contains("tagger") && text.contains("order seen: 42"), "{text}");
}

#[test]
fn a_delivery_is_sent_again() {
    let text = run("05_replay");
    assert!(
        text.contains("http://first.example/ got") && text.contains("http://second.example/ got"),
        "{text}"
    );
    assert_eq!(text.matches(r#""content":"order 42""#).count(), 2, "{text}");
}

#[test]
fn a_day_of_retries_passes_at_once() {
    assert!(run("06_virtual_time").contains("after 8 attempts the delivery is Error"));
}

#[test]
fn the_api_is_served_by_another_program() {
    assert!(run("07_serve_the_api").contains(r#""success":true"#));
}

#[test]
fn examples_are_short() {
    for entry in examples().read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let lines = std::fs::read_to_string(&path).unwrap().lines().count();
            assert!(lines <= 65, "{} has {lines} lines", path.display());
        }
    }
}

/// Lines of a process, read next to the test so that a wait for one can end.
type Receives = std::sync::mpsc::Receiver<String>;

fn read_lines(output: ChildStdout) -> Receives {
    let (send, lines) = std::sync::mpsc::sync_channel(100);
    std::thread::spawn(move || {
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.try_for_each(|line| send.send(line))
    });
    lines
}

/// A receiver that runs.
struct Receiver {
    process: Child,
    lines: Receives,
    url: String,
}

impl Receiver {
    fn start(command: &mut Command) -> Self {
        let command = command.env("WEBHOOK_SECRET", SECRET).env("LISTEN", "127.0.0.1:0");
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = read_lines(process.stdout.take().unwrap());
        let ready = lines.recv_timeout(TEST_TIMEOUT).unwrap();
        let url = ready.strip_prefix("ready ").unwrap().to_owned();
        Self { process, lines, url }
    }

    /// The receiver's word for the next request.
    fn word(&self) -> String {
        let line = self.lines.recv_timeout(TEST_TIMEOUT).unwrap();
        line.split(' ').next().unwrap_or_default().to_owned()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A hub whose demo channel posts to a receiver on this machine.
struct Sender {
    hub: Hub,
    simulator: Simulator,
    demo: Demo,
    _folder: tempfile::TempDir,
}

impl Sender {
    async fn to(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (clock, random) = (Clock::system(), Random::system());
        let simulator = Simulator::new(SimConfig::quick(), clock.clone(), random.clone());
        let built_in = DemoReceiver::new(clock.clone());
        let allowed = url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap();
        let mut egress = EgressConfig { allow: vec![allowed], ..EgressConfig::default() };
        egress.in_process.insert(RECEIVER_HOST.to_owned(), std::sync::Arc::new(built_in.clone()));
        let hub = Hub::builder()
            .store(StoreConfig::Sqlite(folder.path().join("hub.db")))
            .secret_key(random.bytes())
            .network(connector(&simulator, clock, random).unwrap())
            .egress(egress);
        let hub = hub.open().await.unwrap();
        let demo = seed(&hub, &simulator, &built_in).await.unwrap().unwrap();
        hub.start().await.unwrap();
        Self { hub, simulator, demo, _folder: folder }
    }

    async fn configure(&self, url: &str, method: AuthMethod, secret: &str) {
        let auth = AuthUpdate { method, header_name: None, secret: Change::Set(Secret::new(secret)) };
        let webhook =
            WebhookUpdate { url: url.to_owned(), auth, auto_reply: true, ..WebhookUpdate::default() };
        let Demo { bot_id, channel_id, .. } = self.demo;
        self.hub.channels().set_webhook(&Actor::Operator, bot_id, channel_id, webhook).await.unwrap();
    }

    fn say(&self, text: &str) {
        self.simulator.say(&self.demo.wx_id, Some(ADA), text).unwrap();
    }

    async fn replies(&self, after: u64) -> Vec<String> {
        let sent = self.simulator.wait_outbound(None, after, TEST_TIMEOUT).await;
        sent.into_iter().map(|sent| sent.text).collect()
    }
}

async fn accepts_events_of_the_hub_only(mut command: Command) {
    let receiver = Receiver::start(&mut command);
    let url = receiver.url.clone();
    let sender = Sender::to(&url).await;
    sender.configure(&url, AuthMethod::Hmac, SECRET).await;
    sender.say("with X-Signature");
    assert_eq!(receiver.word(), "verified");
    assert_eq!(sender.replies(0).await, ["thank you"]);
    // Without a method of its own, the Standard Webhooks headers go with every secret.
    sender.configure(&url, AuthMethod::None, SECRET).await;
    sender.say("with webhook-signature");
    assert_eq!(receiver.word(), "verified");
    assert_eq!(sender.replies(1).await, ["thank you"]);
    // A hub that knows another secret; nothing signs with the old one next to it.
    for method in [AuthMethod::Hmac, AuthMethod::None] {
        let stranger = Sender::to(&url).await;
        stranger.configure(&url, method, "another secret of 24 by.").await;
        stranger.say("not yours");
        assert_eq!(receiver.word(), "refused", "{method:?}");
        stranger.hub.shutdown().await;
    }
    sender.hub.shutdown().await;
}

/// An interpreter with a script; `None` where it is not installed, which CI does not accept.
fn script(interpreter: &str, name: &str) -> Option<Command> {
    let present = Command::new(interpreter).arg("--version").output().is_ok_and(|out| out.status.success());
    assert!(present || std::env::var_os("CI").is_none(), "{interpreter} is not installed");
    present.then(|| {
        let mut command = Command::new(interpreter);
        command.arg(examples().join(name));
        command
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receiver_in_rust_verifies() {
    accepts_events_of_the_hub_only(Command::new(build("03_webhook_receiver"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receiver_in_python_verifies() {
    if let Some(command) = script("python3", "webhook_receiver.py") {
        accepts_events_of_the_hub_only(command).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receiver_in_node_verifies() {
    if let Some(command) = script("node", "webhook_receiver.mjs") {
        accepts_events_of_the_hub_only(command).await;
    }
}
