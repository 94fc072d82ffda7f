//! Requirements on a chat network.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{Broken, Findings};
use crate::{
    network::{
        Connection, Credentials, InboundMessage, LoginProgress, LoginState, LoginStep, Network, NetworkError,
        Outgoing, SendOutcome, TextFormat,
    },
    secret::Secret,
};

/// The longest that any call may take; a hub gives up on a poll after about this long.
const TEST_TIMEOUT: Duration = Duration::from_secs(90);
/// Wait that one step of a login is called with.
const STEP: Duration = Duration::from_millis(500);
/// Polls in which a message has to come.
const POLLS: usize = 20;

/// A network under test, and its people, as far as the suite needs them.
#[async_trait]
pub trait NetworkHarness: Send + Sync {
    /// The network. Every call returns one with the same accounts.
    fn network(&self) -> Arc<dyn Network>;

    /// A person scans the code of a login and confirms.
    async fn confirm(&self, qr_text: &Secret);

    /// A person writes a text to the account.
    async fn say(&self, account: &Credentials, text: &str);

    /// Everything that people were sent by the account so far, oldest first.
    async fn heard(&self, account: &Credentials) -> Vec<String>;
}

/// Runs every check of a chat network.
///
/// # Errors
/// Every rule that is broken, in the order in which they were found. A rule without which the rest cannot be
/// checked ends the run.
pub async fn check_network(harness: &dyn NetworkHarness) -> Result<(), Vec<Broken>> {
    let mut suite = Suite { harness, network: harness.network(), found: Findings::default() };
    suite.names();
    suite.texts();
    if let Some(account) = suite.login().await {
        suite.conversation(&account).await;
        suite.secrets(&account);
    }
    suite.foreign_notes().await;
    if suite.found.0.is_empty() { Ok(()) } else { Err(suite.found.0) }
}

struct Suite<'h> {
    harness: &'h dyn NetworkHarness,
    network: Arc<dyn Network>,
    found: Findings,
}

impl Suite<'_> {
    fn names(&mut self) {
        let name = self.network.name().to_owned();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        self.found.check(
            (1..=32).contains(&name.len()) && name.chars().all(plain),
            "a name has 1 to 32 of the characters a-z, 0-9, - and _",
            || format!("{name:?}"),
        );
        let again = self.harness.network().name().to_owned();
        self.found
            .check(name == again, "the name is always the same", || format!("{name:?}, then {again:?}"));
    }

    fn texts(&mut self) {
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        for text in ["hello".to_owned(), "é世界🙂 ".repeat(3_000), "word ".repeat(5_000), "x".repeat(50_000)]
        {
            let parts = self.network.split_text(&text, TextFormat::Plain);
            let glued: String = parts.iter().map(|part| letters(part)).collect();
            self.found.check(
                glued == letters(&text),
                "a text that is cut into parts keeps all of its letters, in order",
                || format!("{} bytes became {} parts of {} letters", text.len(), parts.len(), glued.len()),
            );
            let empty = parts.iter().filter(|part| part.trim().is_empty()).count();
            self.found.check(empty == 0, "no part of a text is empty", || format!("{empty} are"));
        }
    }

    async fn login(&mut self) -> Option<Credentials> {
        let first = self.found.need(self.network.begin_login(&[]).await, "a login can begin")?;
        let second = self.found.need(self.network.begin_login(&[]).await, "two logins can run at a time")?;
        self.found.check(
            first.qr_text.expose() != second.qr_text.expose(),
            "every login has a code of its own",
            || "two are equal".to_owned(),
        );
        self.found.check(!first.lives.is_zero(), "a code lives for a while", || "its life is 0".to_owned());
        let waiting = self.step(&first.state).await?;
        let waiting = self.found.need(waiting, "a login that no one confirmed can be asked")?;
        self.found.check(
            matches!(waiting.step, LoginStep::Waiting),
            "a login that no one scanned is waiting",
            || step_name(&waiting.step),
        );
        self.harness.confirm(&first.qr_text).await;
        let mut state = waiting.state;
        for _ in 0..POLLS {
            let step = self.step(&state).await?;
            let step = self.found.need(step, "a confirmed login can be asked")?;
            match step.step {
                LoginStep::Confirmed(account) => {
                    self.check_account(&account);
                    return Some(account);
                }
                LoginStep::Waiting | LoginStep::Scanned => state = step.state,
                other => {
                    self.found.check(false, "a confirmed login ends well", || step_name(&other));
                    return None;
                }
            }
        }
        self.found.check(false, "a confirmed login ends", || format!("not within {POLLS} steps"));
        None
    }

    fn check_account(&mut self, account: &Credentials) {
        let all = [account.token.expose(), &account.account_id, &account.owner_user_id];
        self.found.check(
            all.iter().all(|part| !part.is_empty()),
            "a login yields a token, the account's id and its owner's",
            || format!("account {:?} of {:?}", account.account_id, account.owner_user_id),
        );
    }

    async fn conversation(&mut self, account: &Credentials) {
        let connection = self.network.connect(account);
        if self.found.need(connection.start().await, "a connection can start").is_none() {
            return;
        }
        for text in ["first", "second", "second"] {
            self.harness.say(account, text).await;
        }
        let Some((messages, cursor)) = self.receive(&*connection, "", 3).await else { return };
        let texts: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        self.found.check(
            texts == ["first", "second", "second"],
            "messages come complete, oldest first",
            || format!("{texts:?}"),
        );
        self.check_keys(&messages);
        self.check_repeats(&*connection, &messages).await;
        self.check_resuming(account, &*connection, &cursor).await;
        if let Some(last) = messages.last() {
            self.check_sending(account, &*connection, last).await;
        }
        let stopped = self.within("stop", connection.stop()).await;
        self.found.check(stopped.is_some(), "a connection stops", || "it does not".to_owned());
    }

    fn check_keys(&mut self, messages: &[InboundMessage]) {
        let mut keys: Vec<&str> = messages.iter().map(|message| message.dedupe_key.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        self.found.check(
            keys.len() == messages.len() && !keys.contains(&""),
            "every message has a key of its own, equal texts too",
            || format!("{} messages have {keys:?}", messages.len()),
        );
        let nameless = messages.iter().filter(|message| message.from_user_id.is_empty()).count();
        self.found.check(nameless == 0, "every message names its sender", || format!("{nameless} do not"));
    }

    /// Checks that messages repeat: after a crash before the commit, the old cursor is requested again.
    async fn check_repeats(&mut self, connection: &dyn Connection, messages: &[InboundMessage]) {
        let Some((again, _)) = self.receive(connection, "", messages.len()).await else { return };
        let keys = |messages: &[InboundMessage]| {
            messages.iter().map(|message| message.dedupe_key.clone()).collect::<Vec<_>>()
        };
        self.found.check(
            keys(&again) == keys(messages),
            "what is asked again from an old cursor comes again, under the same keys",
            || format!("{:?}, then {:?}", keys(messages), keys(&again)),
        );
    }

    async fn check_resuming(&mut self, account: &Credentials, connection: &dyn Connection, cursor: &str) {
        // A poll that is cut off while it waits takes nothing with it.
        drop(tokio::time::timeout(Duration::from_millis(20), connection.receive(cursor)).await);
        self.harness.say(account, "third").await;
        // As after a restart: from the stored cursor, on a new connection.
        let fresh = self.network.connect(account);
        if self.found.need(fresh.start().await, "a connection can start again").is_none() {
            return;
        }
        let Some((messages, _)) = self.receive(&*fresh, cursor, 1).await else { return };
        let texts: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        self.found.check(
            texts == ["third"],
            "behind a cursor comes what is new, and all of it, on a new connection too",
            || format!("{texts:?}"),
        );
    }

    async fn check_sending(
        &mut self,
        account: &Credentials,
        connection: &dyn Connection,
        last: &InboundMessage,
    ) {
        let rules = self.network.window_rules();
        self.found.check(
            rules.sends != Some(0) && rules.burst != Some(0),
            "a window lets at least one message through",
            || format!("{rules:?}"),
        );
        let outgoing = Outgoing {
            to_user_id: last.from_user_id.clone(),
            context_token: last.context_token.clone().unwrap_or_else(|| Secret::new(String::new())),
            client_id: "conformance-1".to_owned(),
            text: "an answer, 你好 🙂".to_owned(),
            media: None,
        };
        let Some(outcome) = self.within("send", connection.send(&outgoing)).await else { return };
        let sent = matches!(&outcome, SendOutcome::Sent { network_id } if !network_id.is_empty());
        self.found.check(sent, "an answer to someone who just wrote is sent, under an id", || {
            format!("{outcome:?}")
        });
        let heard = self.harness.heard(account).await;
        self.found.check(
            heard == [outgoing.text.as_str()],
            "what is sent is heard once, letter for letter",
            || format!("{heard:?}"),
        );
        let nobody = Outgoing { to_user_id: "nobody-of-this-name".to_owned(), ..outgoing };
        if let Some(outcome) = self.within("send", connection.send(&nobody)).await {
            let taken = matches!(outcome, SendOutcome::Sent { .. });
            self.found.check(!taken, "a message to no one is not sent", || format!("{outcome:?}"));
        }
        // Answers or says why not; neither may panic or hang.
        let typing = connection.typing(&last.from_user_id, last.context_token.as_ref(), true);
        drop(self.within("typing", typing).await);
    }

    /// Checks that no token is printed, since printed text ends up in logs.
    fn secrets(&mut self, account: &Credentials) {
        let printed = format!("{:?} {:?}", self.network, self.network.connect(account));
        self.found.check(
            !printed.contains(account.token.expose()),
            "neither a network nor a connection prints its token",
            || "the token is in its Debug form".to_owned(),
        );
    }

    /// Checks a login state of another version of the network, as a store may hold it after an upgrade.
    async fn foreign_notes(&mut self) {
        let foreign = LoginState(Secret::new("{\"of\":\"another version\"}"));
        let Some(step) = self.step(&foreign).await else {
            return;
        };
        let confirmed = step.is_ok_and(|progress| matches!(progress.step, LoginStep::Confirmed(_)));
        self.found.check(!confirmed, "no one logs in with notes that the network did not make", || {
            "it did".to_owned()
        });
    }

    /// Polls until so many messages came, moving the cursor.
    async fn receive(
        &mut self,
        connection: &dyn Connection,
        from: &str,
        count: usize,
    ) -> Option<(Vec<InboundMessage>, String)> {
        let (mut messages, mut cursor) = (Vec::new(), from.to_owned());
        for _ in 0..POLLS {
            let batch = self.within("a poll", connection.receive(&cursor)).await?;
            let batch = match batch {
                Err(NetworkError::Unreachable(_)) => continue,
                batch => self.found.need(batch, "messages can be polled")?,
            };
            messages.extend(batch.messages);
            cursor = batch.cursor.unwrap_or(cursor);
            if messages.len() >= count {
                return Some((messages, cursor));
            }
        }
        let came = messages.len();
        self.found
            .check(false, "what people write comes", || format!("{came} of {count} within {POLLS} polls"));
        None
    }

    async fn step(&mut self, state: &LoginState) -> Option<Result<LoginProgress, NetworkError>> {
        let network = Arc::clone(&self.network);
        self.within("a step of a login", network.login_step(state, None, STEP)).await
    }

    async fn within<T>(&mut self, what: &str, call: impl Future<Output = T>) -> Option<T> {
        let came = tokio::time::timeout(TEST_TIMEOUT, call).await.ok();
        self.found
            .check(came.is_some(), "every call ends", || format!("{what} did not, within {TEST_TIMEOUT:?}"));
        came
    }
}

fn step_name(step: &LoginStep) -> String {
    match step {
        LoginStep::Confirmed(_) => "it is confirmed".to_owned(),
        other => format!("{other:?}"),
    }
}
