//! Requests to send, and the pairs of them to compare.

use std::time::Duration;

use hub_core::{random::Random, time::Stopwatch};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    Result,
    http_caller::Caller,
    hub::{Hub, PASSWORD},
    statistics::by_lot,
};

/// A request whose responses must be indistinguishable from those of others.
struct Question<'h> {
    what: &'static str,
    caller: &'h Caller,
    method: Method,
    path: String,
    body: Option<Value>,
}

/// The times of one request and of the request that it must be indistinguishable from, round by round.
#[derive(Debug, Clone)]
pub struct Compared {
    pub what: &'static str,
    pub other: &'static str,
    pub times: Vec<Duration>,
    pub others: Vec<Duration>,
    /// Maximum difference of the medians, in per cent.
    pub aim: f64,
}

/// Rounds before the first that counts.
const WARM_UP: usize = 5;

/// Sign-in by password.
pub async fn passwords(hub: &Hub, samples: usize) -> Result<Vec<Compared>> {
    let login = |what, name: &str, password: &str| Question {
        what,
        caller: &hub.stranger,
        method: Method::POST,
        path: "/api/auth/login".to_owned(),
        body: Some(json!({ "username": name, "password": password })),
    };
    let wrong = "another passphrase of that length";
    compare(
        samples,
        401,
        5.0,
        &[
            login("sign-in: unknown user", "eve", wrong),
            login("sign-in: wrong password", "bob", wrong),
            login("sign-in: right password, disabled user", "carol", PASSWORD),
            login("sign-in: user without a password", "dave", wrong),
        ],
    )
    .await
}

/// The beginning of a sign-in by passkey.
pub async fn passkeys(hub: &Hub, samples: usize) -> Result<Vec<Compared>> {
    let begin = |what, name: &str| Question {
        what,
        caller: &hub.stranger,
        method: Method::POST,
        path: "/api/auth/passkey/login/begin".to_owned(),
        body: Some(json!({ "username": name })),
    };
    compare(
        samples,
        200,
        5.0,
        &[
            begin("passkey: unknown user", "eve"),
            begin("passkey: user with one", "bob"),
            begin("passkey: user without one", "ada"),
        ],
    )
    .await
}

/// Objects of another user, compared with absent ones.
pub async fn ids(hub: &Hub, samples: usize) -> Result<Vec<Compared>> {
    let get = |what, path: String| Question { what, caller: &hub.bob, method: Method::GET, path, body: None };
    let (bot, channel) = (&hub.bot, &hub.channel);
    let absent = "bot_01BX5ZZKBKACTAV9WEVGEMMVRZ";
    let mut all = Vec::new();
    for (none, theirs, tail) in [
        ("bot: absent", "bot: another user's", String::new()),
        ("channels: of an absent bot", "channels: of another user's bot", "/channels".to_owned()),
        ("channel: of an absent bot", "channel: of another user's bot", format!("/channels/{channel}")),
    ] {
        let questions =
            [get(none, format!("/api/bots/{absent}{tail}")), get(theirs, format!("/api/bots/{bot}{tail}"))];
        all.extend(compare(samples, 404, 20.0, &questions).await?);
    }
    Ok(all)
}

/// Asks all questions in every round, in an order by lot; each is compared with the first.
async fn compare(samples: usize, status: u16, aim: f64, questions: &[Question<'_>]) -> Result<Vec<Compared>> {
    let random = Random::system();
    let mut times = vec![Vec::with_capacity(samples); questions.len()];
    for round in 0..samples + WARM_UP {
        for n in by_lot(questions.len(), &random) {
            let Question { what, caller, method, path, body } = &questions[n];
            let watch = Stopwatch::start();
            let (got, answer, _) = caller.call(method.clone(), path, body.clone()).await;
            let took = watch.elapsed();
            if got.as_u16() != status {
                return Err(format!("{what}: {got} {answer}").into());
            }
            if round >= WARM_UP {
                times[n].push(took);
            }
        }
    }
    let (other, others) = (questions[0].what, times[0].clone());
    let rest = questions.iter().zip(times).skip(1);
    Ok(rest
        .map(|(question, times)| Compared { what: question.what, other, times, others: others.clone(), aim })
        .collect())
}
