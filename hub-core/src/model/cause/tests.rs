use super::*;
use crate::network::{MediaError, NetworkError};

#[test]
fn every_sentence_is_read_as_its_cause() {
    for sentence in Cause::SENTENCES {
        let mut text = String::new();
        let mut rest = *sentence;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap();
            let value = match name {
                "at" | "until" | "next_at" => "2026-01-02T03:04:05.678Z",
                "attempt" | "attempts" | "status" | "kib" | "bytes" | "max_bytes" | "tokens" | "sends"
                | "overruns" | "network_code" => "410",
                "parts" => "sender, keyword",
                _ => "something",
            };
            text = text + before + value;
            rest = after;
        }
        text += rest;
        let cause = Cause::read(&text);
        assert_eq!(cause.to_string(), text);
        assert!(!matches!(cause, Cause::Other { .. }), "{text}");
        let again = serde_json::to_value(&cause).unwrap();
        assert!(again["code"].as_str().is_some_and(|code| code != "other"), "{again}");
    }
}

#[test]
fn causes_have_values_and_causes_in_them() {
    let closed = "the network refuses sends until this person writes again: prepare failed";
    let message = || Box::new(Cause::Other { text: "prepare failed".to_owned() });
    assert_eq!(Cause::read(closed), Cause::ClosedByNetwork { message: message() });
    let failed = Cause::read("failed after 3 attempt(s): status 410: the receiver accepts no more messages");
    let status = Box::new(Cause::Status { status: 410 });
    let refused = Box::new(Cause::Refused { cause: status });
    assert_eq!(failed, Cause::Failed { attempts: 3, cause: refused });
    let json = serde_json::to_value(&failed).unwrap();
    assert_eq!(json["cause"]["cause"]["status"], 410);
    assert_eq!(json["cause"]["code"], "refused");
    for other in ["", "status", "status x", "failed after many attempt(s): no", "something else"] {
        assert_eq!(Cause::read(other), Cause::Other { text: other.to_owned() });
    }
}

#[test]
fn a_cause_is_not_read_deeper_than_it_can_be() {
    let text = format!("dead{}", "; bind the bot again".repeat(10_000));
    assert_eq!(Cause::read(&text).to_string(), text);
}

#[test]
fn failures_of_the_network_are_causes() {
    let said = || "said".to_owned();
    for error in [
        NetworkError::LoginExpired(said()),
        NetworkError::Throttled { message: said(), retry_after: None },
        NetworkError::Refused { code: -9, message: said() },
        NetworkError::Unreachable(said()),
    ] {
        assert!(!matches!(Cause::read(&error.to_string()), Cause::Other { .. }), "{error}");
    }
}

#[test]
fn causes_around_causes_are_read_from_the_outside() {
    let status = || Box::new(Cause::Status { status: 200 });
    let no_group = || Box::new(Cause::NoGroups);
    let answered = || Box::new(Cause::Answered { model: "small".to_owned(), tokens: 7 });
    let next_at: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
    let expired = || Box::new(Cause::LoginExpired { message: Box::new(Cause::VerifyingLogin) });
    for cause in [
        Cause::ReplyNotSent { summary: status(), message: no_group() },
        Cause::ReplyNotSent { summary: answered(), message: no_group() },
        Cause::PluginFailedAfterwards {
            summary: status(),
            plugin: "tagger".to_owned(),
            kind: "timeout".to_owned(),
        },
        Cause::Failed { attempts: 2, cause: Box::new(Cause::Refused { cause: status() }) },
        Cause::Retrying { attempt: 1, cause: status(), next_at },
        Cause::BindAgain { cause: expired() },
        Cause::FileNotSent { cause: Box::new(Cause::FileTooLarge { max_bytes: 5 }) },
        Cause::Filtered { cause: Box::new(Cause::FilterFails { cause: no_group() }) },
    ] {
        assert_eq!(Cause::read(&cause.to_string()), cause, "{cause}");
        assert_eq!(serde_json::from_value::<Cause>(serde_json::json!(cause)).unwrap(), cause);
    }
}

#[test]
fn an_absent_or_empty_text_states_no_cause() {
    assert_eq!((None::<String>.cause(), String::new().cause()), (None, None));
    assert_eq!("disabled".to_owned().cause(), Some(Cause::Disabled));
    let other = Cause::Other { text: "no route to host".to_owned() };
    assert_eq!(Some("no route to host".to_owned()).cause(), Some(other));
}

#[test]
fn failures_of_files_are_causes() {
    for error in [MediaError::TooLarge(5), MediaError::LoginExpired("said".to_owned())] {
        assert!(!matches!(Cause::read(&error.to_string()), Cause::Other { .. }), "{error}");
    }
}
