//! `sendmessage`: the request, and the outcome that its answer shows (`docs/ilink.md#sending`).

use serde_json::{Value, json};

use super::{
    reply::{Refusal, Reply},
    text::MAX_BYTES,
};
use crate::{
    egress::{EgressError, EgressFault},
    network::{NetworkError, Outgoing, SendOutcome},
};

/// `message_type` of a bot's message, and `message_state` of a finished one.
const FROM_BOT: i64 = 2;
const FINISHED: i64 = 2;
/// `type` of a text item.
const TEXT: i64 = 1;

/// The body: this shape and nothing else, since unknown fields have made sends fail.
pub(super) fn body(outgoing: &Outgoing, base_info: &Value) -> Value {
    json!({
        "msg": {
            "from_user_id": "",
            "to_user_id": outgoing.to_user_id,
            "client_id": outgoing.client_id,
            "message_type": FROM_BOT,
            "message_state": FINISHED,
            "context_token": outgoing.context_token.expose(),
            "item_list": [item(outgoing)],
        },
        "base_info": base_info,
    })
}

fn item(outgoing: &Outgoing) -> Value {
    let file = outgoing.media.as_ref().and_then(|media| serde_json::from_str(media.0.expose()).ok());
    file.unwrap_or_else(|| json!({ "type": TEXT, "text_item": { "text": outgoing.text } }))
}

/// Returns the outcome of a message that is rejected without a request. The network would answer some of these like
/// a closed window.
pub(super) fn refuse(outgoing: &Outgoing) -> Option<SendOutcome> {
    if outgoing.context_token.expose().is_empty() {
        return Some(SendOutcome::WindowClosed("the person has to write first".into()));
    }
    let reason = if outgoing.to_user_id.is_empty() {
        "there is no receiver"
    } else if outgoing.media.is_some() {
        return None;
    } else if outgoing.text.is_empty() {
        "the text is empty"
    } else if outgoing.text.len() > MAX_BYTES {
        "the text is too long for one message"
    } else {
        return None;
    };
    Some(SendOutcome::Rejected(reason.into()))
}

/// Returns the outcome of a send from its answer or its failure.
pub(super) fn outcome(exchange: Result<Reply, EgressError>) -> SendOutcome {
    match exchange {
        Ok(reply) => answered(&reply),
        Err(error) => unanswered(&error),
    }
}

fn unanswered(error: &EgressError) -> SendOutcome {
    let before_the_request = matches!(
        error.fault,
        EgressFault::BlockedAddress | EgressFault::Dns | EgressFault::Connect | EgressFault::Tls
    );
    if before_the_request || !error.written {
        SendOutcome::NotSent(error.to_string())
    } else {
        SendOutcome::Unknown(error.to_string())
    }
}

fn answered(reply: &Reply) -> SendOutcome {
    if let Err(error) = reply.accept_status() {
        return error.into();
    }
    if reply.is_empty() {
        return SendOutcome::AcceptedUnconfirmed;
    }
    let Some(fields) = reply.fields() else {
        return SendOutcome::Unknown("the response is not JSON".into());
    };
    match reply.refusal(&fields) {
        Some(refusal) => refused(refusal),
        None => fields
            .id("message_id")
            .map_or(SendOutcome::AcceptedUnconfirmed, |network_id| SendOutcome::Sent { network_id }),
    }
}

/// -2 means "too fast", "window closed" or "stale token". Each of them has been seen with each text, so that the text
/// decides nothing.
fn refused(refusal: Refusal) -> SendOutcome {
    match refusal.code {
        -2 => SendOutcome::Throttled { message: refusal.to_string(), retry_after: None },
        _ => NetworkError::from(refusal).into(),
    }
}

impl From<NetworkError> for SendOutcome {
    /// For an answer that was received: an unusable one leaves the outcome unknown.
    fn from(error: NetworkError) -> Self {
        match error {
            NetworkError::LoginExpired(message) => Self::LoginExpired(message),
            NetworkError::Throttled { message, retry_after } => Self::Throttled { message, retry_after },
            NetworkError::Refused { .. } => Self::Rejected(error.to_string()),
            NetworkError::Unreachable(message) => Self::Unknown(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{reply::reply, transport::Endpoint},
        *,
    };

    fn fate(status: u16, body: &str) -> SendOutcome {
        outcome(Ok(reply(Endpoint::SendMessage, status, body)))
    }

    #[test]
    fn responses_are_mapped_to_the_outcome_of_a_send() {
        use SendOutcome::{AcceptedUnconfirmed, LoginExpired, Sent, Throttled};
        let sent = Sent { network_id: "7497484083968569736".into() };
        let slow = |message: &str| Throttled { message: message.into(), retry_after: None };
        for (body, expected) in [
            (r#"{"ret":0,"message_id":"7497484083968569736"}"#, sent.clone()),
            (r#"{"message_id":7497484083968569736}"#, sent),
            (r#"{"ret":0}"#, AcceptedUnconfirmed),
            ("{}", AcceptedUnconfirmed),
            (" ", AcceptedUnconfirmed),
            (r#"{"ret":-2,"errmsg":"rate limited"}"#, slow("rate limited (code -2)")),
            (r#"{"ret":-2,"errmsg":"Frequency"}"#, slow("Frequency (code -2)")),
            (r#"{"ret":-12}"#, slow("code -12")),
            (r#"{"ret":-2,"errmsg":"prepare failed"}"#, slow("prepare failed (code -2)")),
            (r#"{"ret":-2,"errmsg":"unknown error"}"#, slow("unknown error (code -2)")),
            (r#"{"ret":-2,"errmsg":""}"#, slow("code -2")),
            (r#"{"ret":-2}"#, slow("code -2")),
            (r#"{"errcode":-2,"errmsg":"prepare failed"}"#, slow("prepare failed (code -2)")),
            (r#"{"ret":0,"errcode":"-2"}"#, slow("code -2")),
            (
                r#"{"errcode":-14,"errmsg":"session timeout"}"#,
                LoginExpired("session timeout (code -14)".into()),
            ),
            (r#"{"errcode":-13}"#, LoginExpired("code -13".into())),
        ] {
            assert_eq!(fate(200, body), expected, "{body}");
        }
        for body in [r#"{"ret":-3,"errmsg":"invalid arguments"}"#, r#"{"ret":-1}"#, r#"{"errcode":77}"#] {
            assert!(matches!(fate(200, body), SendOutcome::Rejected(_)), "{body}");
        }
        for body in ["<html>", r#"{"ret":0,"#, "[]"] {
            assert!(matches!(fate(200, body), SendOutcome::Unknown(_)), "{body}");
        }
    }

    #[test]
    fn http_statuses_are_mapped_to_the_outcome_of_a_send() {
        for status in [500, 502, 524] {
            assert!(
                matches!(fate(status, r#"{"ret":0,"message_id":"1"}"#), SendOutcome::Unknown(_)),
                "{status}"
            );
        }
        for status in [400, 404, 413] {
            assert!(matches!(fate(status, ""), SendOutcome::Rejected(_)), "{status}");
        }
        for status in [401, 403] {
            assert!(matches!(fate(status, ""), SendOutcome::LoginExpired(_)), "{status}");
        }
        assert!(matches!(fate(429, ""), SendOutcome::Throttled { .. }));
    }

    #[test]
    fn only_what_was_never_written_is_surely_not_sent() {
        for (fault, written, certain) in [
            (EgressFault::Connect, false, true),
            (EgressFault::Dns, false, true),
            (EgressFault::Tls, true, true),
            (EgressFault::BlockedAddress, false, true),
            (EgressFault::Timeout, false, true),
            (EgressFault::Timeout, true, false),
            (EgressFault::Broken, true, false),
            (EgressFault::TooLarge, true, false),
        ] {
            let fate = outcome(Err(EgressError { fault, written, message: "m".into() }));
            assert_eq!(matches!(fate, SendOutcome::NotSent(_)), certain, "{fault:?} {written}");
            assert_eq!(matches!(fate, SendOutcome::Unknown(_)), !certain, "{fault:?} {written}");
        }
    }

    #[test]
    fn bad_content_is_refused_before_it_can_look_like_a_closed_window() {
        let good = Outgoing {
            to_user_id: "a".into(),
            context_token: "AARz".into(),
            client_id: "c".into(),
            text: "x".repeat(MAX_BYTES),
            media: None,
        };
        assert_eq!(refuse(&good), None);
        let closed = refuse(&Outgoing { context_token: "".into(), ..good.clone() });
        assert!(matches!(closed, Some(SendOutcome::WindowClosed(_))));
        for bad in [
            Outgoing { text: String::new(), ..good.clone() },
            Outgoing { text: "x".repeat(MAX_BYTES + 1), ..good.clone() },
            Outgoing { to_user_id: String::new(), ..good.clone() },
        ] {
            assert!(matches!(refuse(&bad), Some(SendOutcome::Rejected(_))));
        }
    }
}
