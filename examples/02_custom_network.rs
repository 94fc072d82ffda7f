//! A chat network of one's own, in which Eve writes one letter. `cargo run -p hub-examples --example 02_custom_network`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]
use hub_core::network::{
    Batch, Connection, Credentials, InboundMessage, LoginProgress, LoginPrompt, LoginState, LoginStep,
    Network, NetworkError, Outgoing, SendOutcome,
};
use hub_core::{events::Event, secret::Secret, time::Clock};
use std::{error::Error, sync::Arc, time::Duration};
type NetworkResult<T> = Result<T, NetworkError>;

#[derive(Debug)]
struct Paper;

#[async_trait::async_trait]
impl Network for Paper {
    fn name(&self) -> &'static str {
        "paper"
    }
    async fn begin_login(&self, _: &[Secret]) -> NetworkResult<LoginPrompt> {
        let state = LoginState("nothing to remember".into());
        Ok(LoginPrompt { qr_text: "sign here".into(), state, lives: Duration::from_secs(60) })
    }
    async fn login_step(
        &self,
        at: &LoginState,
        _: Option<&str>,
        _: Duration,
    ) -> NetworkResult<LoginProgress> {
        let step = LoginStep::Confirmed(Credentials::new("ink", "bot", "eve"));
        Ok(LoginProgress { step, state: at.clone() })
    }
    fn connect(&self, _: &Credentials) -> Arc<dyn Connection> {
        Arc::new(Paper)
    }
}

#[async_trait::async_trait]
impl Connection for Paper {
    async fn receive(&self, cursor: &str) -> NetworkResult<Batch> {
        if cursor == "1" {
            Clock::system().sleep(Duration::from_millis(500)).await;
            return Ok(Batch { answered: true, ..Batch::default() });
        }
        let mut letter = InboundMessage::text("1", "eve", "bot", "hello", Clock::system().now());
        letter.context_token = Some("stamp".into());
        Ok(Batch { messages: vec![letter], cursor: Some("1".to_owned()), answered: true })
    }
    async fn send(&self, letter: &Outgoing) -> SendOutcome {
        println!("{} reads: {}", letter.to_user_id, letter.text);
        SendOutcome::Sent { network_id: letter.client_id.clone() }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (_folder, hub) = support::open(Paper).await?;
    let mut events = hub.events();
    let (actor, bot) = support::bind(&hub).await?;
    while !matches!(events.recv().await?, Event::Message { .. }) {}
    hub.bots().send(&actor, bot.id, support::text("hello, Eve"), None).await?;
    while !matches!(events.recv().await?, Event::Sent { .. }) {}
    hub.shutdown().await;
    Ok(())
}
