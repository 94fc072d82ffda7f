//! A program that is logged in to the iLink sink of a channel. It survives the hub, with its token and its cursor in
//! memory, and answers now and then.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use hub_core::{
    testing::ledger::{Receipt, Repeats},
    time::Clock,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::sinks::{Books, ILINK, Sinks};
use crate::gateway::stage::{Program, reply};

/// The program, and the books that it writes into.
pub struct Follower {
    pub program: Program,
    pub books: Arc<Mutex<Books>>,
    pub url: watch::Receiver<Option<String>>,
    pub refusals: Arc<Mutex<Vec<String>>>,
}

impl Follower {
    /// Receives until it is dropped.
    pub async fn follow(mut self) {
        let mut cursor = String::new();
        while let Some(answer) = self.insist("getupdates", |_| json!({ "get_updates_buf": cursor })).await {
            let messages = answer["msgs"].as_array().cloned().unwrap_or_default();
            for message in &messages {
                self.note(message);
            }
            cursor = answer["get_updates_buf"].as_str().unwrap_or_default().to_owned();
            for message in &messages {
                let Some(text) = Sinks::program_answer_to(text(message)) else { continue };
                if self.insist("sendmessage", |_| reply(message, &text, &text)).await.is_none() {
                    return;
                }
                self.books.lock().unwrap().outbound.acknowledged(&text);
            }
        }
    }

    /// A message that came, and the answer to it that will be sent.
    fn note(&self, message: &Value) {
        let payload = text(message).to_owned();
        let mut books = self.books.lock().unwrap();
        books.inbound.received(Receipt {
            at: Clock::system().now(),
            sink: ILINK.to_owned(),
            id: message["message_id"].to_string(),
            payload: payload.clone(),
            taken: true,
        });
        if let Some(answer) = Sinks::program_answer_to(&payload) {
            let person = message["from_user_id"].as_str().unwrap_or_default();
            books.outbound.sent(&format!("{person} program"), &answer, &["people"], Repeats::Never);
        }
    }

    /// Calls until there is an answer of the protocol; `None` when it is a refusal, or the test is over.
    async fn insist(&mut self, name: &str, body: impl Fn(&Program) -> Value) -> Option<Value> {
        loop {
            let url = self.url.wait_for(Option::is_some).await.ok()?.clone()?;
            let program = self.program.at(&url);
            match program.attempt(name, body(&program)).await {
                Ok((status, answer)) if status.is_success() && answer["ret"] == 0 => return Some(answer),
                Ok((status, _)) if status.as_u16() == 503 => {}
                Ok((status, answer)) => {
                    let report = format!("{name} of a program: {status} {answer}");
                    self.refusals.lock().unwrap().push(report);
                    return None;
                }
                Err(_) => {} // No one there, or gone in the middle.
            }
            Clock::system().sleep(Duration::from_millis(50)).await;
        }
    }
}

fn text(message: &Value) -> &str {
    message["item_list"][0]["text_item"]["text"].as_str().unwrap_or_default()
}
