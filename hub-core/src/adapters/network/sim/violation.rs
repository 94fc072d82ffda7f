//! Breaches of the protocol by a client that the real service lets pass: noted, so that a test can insist on
//! none.

use std::collections::VecDeque;

use data_encoding::BASE64;
use serde::Serialize;

use super::world::Env;
use crate::{network::server::Call, time::Timestamp};

/// Kind of a protocol violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationKind {
    /// `X-WECHAT-UIN` is not base64 of a decimal uint32.
    BadUin,
    /// `X-WECHAT-UIN` is the one of the account's previous request.
    RepeatedUin,
    /// `iLink-App-Id` or `iLink-App-ClientVersion` is missing or malformed.
    BadAppHeaders,
    /// An authenticated call without `base_info`.
    NoBaseInfo,
    /// A cursor this simulator never handed out to this account.
    ChangedCursor,
    /// Two polls of one account at a time.
    SecondPoller,
    /// A message without `client_id`.
    NoClientId,
    /// A media key that is base64 of the raw bytes.
    RawMediaKey,
}

/// One breach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Time of the call.
    pub at: Timestamp,
    /// The account, where the call had a valid token.
    pub wx_id: Option<String>,
    /// Kind of the violation.
    pub kind: ViolationKind,
    /// Place of the violation, without secrets.
    pub detail: String,
}

/// The breaches so far, the newest [`SimCaps::records`](super::SimCaps::records) of them.
#[derive(Default)]
pub(super) struct Violations(VecDeque<Violation>);

impl Violations {
    pub(super) fn record(&mut self, env: &Env<'_>, wx_id: Option<&str>, kind: ViolationKind, detail: &str) {
        if self.0.len() >= env.config.caps.records {
            self.0.pop_front();
        }
        let wx_id = wx_id.map(str::to_owned);
        self.0.push_back(Violation { at: env.now, wx_id, kind, detail: detail.to_owned() });
    }

    pub(super) fn list(&self, wx_id: Option<&str>) -> Vec<Violation> {
        let wanted = |v: &&Violation| wx_id.is_none() || v.wx_id.as_deref() == wx_id;
        self.0.iter().filter(wanted).cloned().collect()
    }
}

/// Whether `X-WECHAT-UIN` is base64 of the decimal digits of a uint32, in the one form a number has.
pub(super) fn uin_is_valid(call: &Call) -> bool {
    let digits = call.header("x-wechat-uin").and_then(|uin| BASE64.decode(uin.as_bytes()).ok());
    digits
        .and_then(|digits| String::from_utf8(digits).ok())
        .is_some_and(|digits| digits.parse::<u32>().is_ok_and(|number| number.to_string() == digits))
}

/// Whether both `iLink-App-*` headers are there.
pub(super) fn app_headers_are_valid(call: &Call) -> bool {
    let id = call.header("ilink-app-id").is_some_and(|id| !id.is_empty());
    let version = call.header("ilink-app-clientversion");
    id && version.is_some_and(|version| version.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderValue, Request};
    use serde_json::Value;

    use super::*;
    use crate::network::sim::{
        SimConfig,
        testing::{Bot, Rig, read},
    };

    async fn start(rig: &Rig, bot: &Bot, change: impl FnOnce(&mut Request<Bytes>)) -> Value {
        let body = r#"{"base_info":{}}"#.into();
        let mut request = rig.request("POST", "/ilink/bot/msg/notifystart", &bot.token, body);
        change(&mut request);
        read(&rig.http(request).await.unwrap())
    }

    fn set(name: &'static str, value: &str) -> impl FnOnce(&mut Request<Bytes>) {
        let value = HeaderValue::from_str(value).unwrap();
        move |request| drop(request.headers_mut().insert(name, value))
    }

    #[tokio::test]
    async fn malformed_headers_are_recorded_and_refused_only_when_strict() {
        for (uin, valid) in [
            ("MzA1NDE5ODk2", true),
            ("MA==", true),
            ("NDI5NDk2NzI5NQ==", true),
            ("NDI5NDk2NzI5Ng==", false), // 4294967296
            ("MDE=", false),             // 01
            ("KzE=", false),             // +1
            ("305419896", false),
            ("", false),
        ] {
            let lenient = Rig::new(SimConfig::default());
            let bot = lenient.login(None).await;
            assert_eq!(start(&lenient, &bot, set("x-wechat-uin", uin)).await["ret"], 0);
            let kinds: Vec<_> = lenient.sim.violations(Some(bot.wx_id())).iter().map(|v| v.kind).collect();
            assert_eq!(kinds, if valid { vec![] } else { vec![ViolationKind::BadUin] }, "{uin}");
            let strict = Rig::new(SimConfig { strict_headers: true, ..SimConfig::default() });
            let bot = strict.login(None).await;
            let answer = start(&strict, &bot, set("x-wechat-uin", uin)).await;
            assert_eq!(answer["errcode"] == -14, !valid, "{uin} {answer}");
        }
    }

    #[tokio::test]
    async fn every_other_slip_is_recorded_under_its_name() {
        let rig = Rig::new(SimConfig::default());
        let bot = rig.login(None).await;
        start(&rig, &bot, |_| {}).await;
        assert_eq!(rig.sim.violations(None), []);
        start(&rig, &bot, set("x-wechat-uin", "MA==")).await;
        start(&rig, &bot, set("x-wechat-uin", "MA==")).await;
        start(&rig, &bot, set("ilink-app-clientversion", "1.0")).await;
        start(&rig, &bot, |request| drop(request.headers_mut().remove("ilink-app-id"))).await;
        start(&rig, &bot, |request| *request.body_mut() = "{}".into()).await;
        let kinds: Vec<_> = rig.sim.violations(Some(bot.wx_id())).iter().map(|v| v.kind).collect();
        assert_eq!(
            kinds,
            [
                ViolationKind::RepeatedUin,
                ViolationKind::BadAppHeaders,
                ViolationKind::BadAppHeaders,
                ViolationKind::NoBaseInfo
            ]
        );
    }

    #[tokio::test]
    async fn the_oldest_record_is_dropped_at_the_cap() {
        let mut config = SimConfig::default();
        config.caps.records = 2;
        let rig = Rig::new(config);
        let bot = rig.login(None).await;
        start(&rig, &bot, |request| *request.body_mut() = "{}".into()).await;
        start(&rig, &bot, set("x-wechat-uin", "")).await;
        start(&rig, &bot, set("x-wechat-uin", "")).await;
        assert!(rig.sim.violations(None).iter().all(|v| v.kind == ViolationKind::BadUin));
        assert_eq!(rig.sim.violations(None).len(), 2);
    }
}
