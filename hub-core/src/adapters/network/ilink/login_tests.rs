use super::{super::reply::reply, *};

fn hosts() -> Hosts {
    Hosts::new(
        &"https://ilinkai.weixin.qq.com".parse().unwrap(),
        &"https://novac2c.cdn.weixin.qq.com/c2c".parse().unwrap(),
    )
}

fn notes(code: Option<&str>, wrong: bool) -> Notes {
    let base = "https://ilinkai.weixin.qq.com/".to_owned();
    Notes { qrcode: "q1".into(), base, code: code.map(ToOwned::to_owned), wrong }
}

fn status(body: &str, notes: &mut Notes) -> Result<LoginStep, NetworkError> {
    read_status(&reply(Endpoint::LoginStatus, 200, body), notes, &hosts())
}

#[test]
fn every_status_has_its_step() {
    for (name, step) in [
        ("wait", LoginStep::Waiting),
        ("scaned", LoginStep::Scanned),
        ("need_verifycode", LoginStep::NeedCode { wrong: false }),
        ("verify_code_blocked", LoginStep::CodeBlocked),
        ("scaned_but_redirect", LoginStep::Scanned),
        ("expired", LoginStep::Expired),
        ("binded_redirect", LoginStep::AlreadyBound),
        ("foo", LoginStep::Waiting),
    ] {
        let body = format!(r#"{{"ret":0,"status":"{name}"}}"#);
        assert_eq!(status(&body, &mut notes(None, false)), Ok(step), "{name}");
    }
}

#[test]
fn a_pairing_code_is_kept_until_it_is_judged() {
    let mut pending = notes(Some("1234"), false);
    assert_eq!(status(r#"{"status":"wait"}"#, &mut pending), Ok(LoginStep::Waiting));
    assert_eq!(pending.code.as_deref(), Some("1234"), "no one judged it yet");
    let wrong = Ok(LoginStep::NeedCode { wrong: true });
    assert_eq!(status(r#"{"status":"need_verifycode"}"#, &mut pending), wrong);
    assert_eq!(pending.code, None);
    assert_eq!(status(r#"{"status":"need_verifycode"}"#, &mut pending), wrong, "still the same question");
    pending.code = Some("5678".into());
    assert_eq!(status(r#"{"status":"scaned"}"#, &mut pending), Ok(LoginStep::Scanned));
    assert_eq!((pending.code, pending.wrong), (None, false));
}

#[test]
fn a_redirect_moves_the_login_to_an_allowed_host_only() {
    let mut moved = notes(None, false);
    let body = r#"{"status":"scaned_but_redirect","redirect_host":"ilinkai.wechat.com"}"#;
    assert_eq!(status(body, &mut moved), Ok(LoginStep::Scanned));
    assert_eq!((moved.base.as_str(), moved.qrcode.as_str()), ("https://ilinkai.wechat.com/", "q1"));
    let body = r#"{"status":"scaned_but_redirect","redirect_host":"evil.example"}"#;
    assert!(matches!(status(body, &mut moved), Ok(LoginStep::Refused(_))));
    assert_eq!(moved.base, "https://ilinkai.wechat.com/");
}

#[test]
fn a_confirmation_needs_its_credentials() {
    let confirm = |body: &str| status(body, &mut notes(None, false)).unwrap();
    let full = r#"{"ret":0,"status":"confirmed","bot_token":"b:1","ilink_bot_id":"b@im.bot",
        "ilink_user_id":"Ann@im.wechat","baseurl":"https://ilinkai.wechat.com"}"#;
    let LoginStep::Confirmed(credentials) = confirm(full) else { panic!("not confirmed") };
    assert_eq!(credentials.token.expose(), "b:1");
    assert_eq!(
        (credentials.account_id.as_str(), credentials.owner_user_id.as_str()),
        ("b@im.bot", "Ann@im.wechat")
    );
    assert_eq!(credentials.base_url, "https://ilinkai.wechat.com/");
    for body in
        [r#"{"status":"confirmed","bot_token":"b:1"}"#, r#"{"status":"confirmed","ilink_bot_id":"b@im.bot"}"#]
    {
        assert!(matches!(confirm(body), LoginStep::Refused(_)), "{body}");
    }
    for base in ["", "https://evil.example", "http://ilinkai.wechat.com", "https://ilinkai.weixin.qq.com"] {
        let LoginStep::Confirmed(credentials) = confirm(&full.replace("https://ilinkai.wechat.com", base))
        else {
            panic!("not confirmed")
        };
        assert_eq!(credentials.base_url, "", "{base}");
    }
}

#[test]
fn errors_of_this_side_and_of_gateways_mean_still_waiting() {
    for code in [502, 503, 504, 524] {
        assert!(is_gateway_error(StatusCode::from_u16(code).unwrap()));
    }
    assert!(!is_gateway_error(StatusCode::INTERNAL_SERVER_ERROR));
    for fault in [EgressFault::Timeout, EgressFault::Connect, EgressFault::Dns, EgressFault::Broken] {
        assert!(is_still_waiting(&EgressError { fault, written: false, message: String::new() }));
    }
}

#[test]
fn answers_without_a_status_are_errors() {
    let result = |status, body| {
        read_status(&reply(Endpoint::LoginStatus, status, body), &mut notes(None, false), &hosts())
            .unwrap_err()
    };
    assert!(matches!(result(200, "<html>"), NetworkError::Unreachable(_)));
    assert!(matches!(result(200, "{}"), NetworkError::Unreachable(_)));
    assert!(matches!(result(200, r#"{"ret":-1}"#), NetworkError::Refused { code: -1, .. }));
    assert!(matches!(result(500, r#"{"status":"wait"}"#), NetworkError::Unreachable(_)));
    assert!(matches!(result(401, ""), NetworkError::Refused { .. }));
}

#[test]
fn pairing_codes_are_a_few_digits() {
    assert_eq!(pairing_code(" 0042 ").as_deref(), Some("0042"));
    for wrong in ["", "12a4", "１２３４", "12345678901234567", "1 2"] {
        assert_eq!(pairing_code(wrong), None, "{wrong}");
    }
}

#[test]
fn the_first_answer_gives_what_to_show() {
    let read = |body| read_code(&reply(Endpoint::BeginLogin, 200, body));
    let (name, text) = read(r#"{"ret":0,"qrcode":"q1","qrcode_img_content":"https://x/q1"}"#).unwrap();
    assert_eq!((name.as_str(), text.expose()), ("q1", "https://x/q1"));
    assert!(matches!(read(r#"{"ret":0,"qrcode":"q1"}"#), Err(NetworkError::Unreachable(_))));
    assert!(matches!(read(r#"{"ret":2}"#), Err(NetworkError::Refused { code: 2, .. })));
}
