//! The official libraries of Standard Webhooks take the secret that the hub generates, and verify what it signs.

use std::{io::Write, process::Stdio};

use hub_core::{
    channels::{NewChannel, sinks::Change},
    delivery::signing::{self, Method, Signing},
    secret::Secret,
    time::Clock,
};
use serde_json::{Value, json};

use super::installed;
use crate::support::world::World;

const BODY: &str = r#"{"type":"message","content":"grüß dich 你好"}"#;

/// A delivery that is signed now, as a library gets it.
fn delivery(secret: &Secret, body: &str) -> Value {
    let signing = Signing {
        method: &Method::Hmac,
        secret: Some(&secret.into()),
        previous: None,
        id: "dlv_01K9ZC3V5T8QK4X7M2N6P0RSWA",
        at: Clock::system().now(),
        attempt: 1,
        body: BODY.as_bytes(),
    };
    let headers = signing::headers(&signing).unwrap();
    let headers = headers.iter().map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())));
    json!({ "secret": secret.expose(), "headers": headers.collect::<serde_json::Map<_, _>>(), "body": body })
}

#[tokio::test]
async fn the_libraries_of_standard_webhooks_verify_with_a_generated_secret() {
    let hub = World::builder().open().await;
    let bot = hub.bind(None).await;
    let mut webhook = World::webhook("/hook");
    webhook.auth.secret = Change::Keep;
    let new = NewChannel { webhook: Some(webhook), ..NewChannel::named("signed") };
    let made = hub.hub.channels().create(&hub.owner, bot.id, new, None).await.unwrap();
    let secret = made.channel.webhook.auth.secret.unwrap();
    let lines = [delivery(&secret, BODY), delivery(&secret, "{}")];
    for command in [installed::standard_webhooks_npm(), installed::standard_webhooks_python()] {
        let Some(mut command) = command else { continue };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        for line in &lines {
            writeln!(input, "{line}").unwrap();
        }
        drop(input);
        let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let answers: Vec<_> = out.lines().collect();
        assert_eq!(answers.first(), Some(&"verified"), "{command:?}: {out}");
        assert!(answers.len() == 2 && answers[1] != "verified", "{command:?}: another body: {out}");
    }
}
