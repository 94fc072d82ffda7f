use std::thread;

use super::*;

fn input(content: &str) -> FilterInput<'_> {
    FilterInput {
        content,
        user_id: "u1",
        user_name: "小明",
        session_id: "s1",
        kind: MessageKind::Text,
        timestamp: 1_790_000_000,
        bot_id: "bot_1",
        channel_id: "ch_1",
    }
}

fn decide(filter: &str, content: &str) -> (bool, String) {
    let filter: Filter = serde_json::from_str(filter).unwrap();
    let Decision { passed, reason } = filter.compile().unwrap().matches(&input(content));
    (passed, reason.into_owned())
}

#[test]
fn lists_combine_by_the_mode() {
    for (filter, content, reason) in [
        ("{}", "x", "passed"),
        (r#"{"match":"any"}"#, "x", "passed"),
        (r#"{"user_ids":["u0","u1"]}"#, "x", "passed"),
        (r#"{"user_ids":["U1"]}"#, "x", "sender"),
        (r#"{"keywords":["help","Preis"]}"#, "der PREIS?", "passed"),
        (r#"{"keywords":["ＡＢＣ"]}"#, "xabcx", "passed"),
        (r#"{"keywords":["abc"]}"#, "ＡＢＣ", "passed"),
        (r#"{"keywords":["ﬁn"]}"#, "FINE", "passed"),
        (r#"{"keywords":["价格"]}"#, "请问价格多少", "passed"),
        (r#"{"keywords":["ÄRGER"]}"#, "a\u{308}rger", "passed"),
        (r#"{"keywords":["a.c"]}"#, "abc", "keyword"),
        (r#"{"message_types":["image","text"]}"#, "x", "passed"),
        (r#"{"message_types":["image"]}"#, "x", "type"),
        (r#"{"user_ids":["u1"],"keywords":["a"],"message_types":["text"]}"#, "cat", "passed"),
        (r#"{"user_ids":["u0"],"keywords":["a"],"message_types":["image"]}"#, "cat", "sender, type"),
        (r#"{"match":"any","user_ids":["u0"],"keywords":["a"]}"#, "cat", "passed"),
        (r#"{"match":"any","user_ids":["u0"],"keywords":["a"]}"#, "dog", "sender, keyword"),
        (r#"{"expression":"content == 'x'"}"#, "x", "passed"),
        (r#"{"expression":"content == 'x'"}"#, "y", "expression"),
        (r#"{"match":"any","user_ids":["u1"],"expression":"false"}"#, "x", "expression"),
        (r#"{"match":"any","user_ids":["u0"],"expression":"true"}"#, "x", "sender"),
        (r#"{"match":"any","expression":"true"}"#, "x", "passed"),
    ] {
        assert_eq!(decide(filter, content), (reason == "passed", reason.to_owned()), "{filter} {content}");
    }
}

#[test]
fn every_bad_field_is_named() {
    let fields = |filter: &Filter| -> Vec<String> {
        let error = filter.validate().unwrap_err();
        error.details().iter().map(|detail| detail.field.to_string()).collect()
    };
    let bad = Filter {
        user_ids: vec!["ok".into(), String::new(), "u".repeat(257)],
        keywords: vec![" \u{3000}".into(), "k".repeat(257)],
        message_types: vec!["text".into(), "Text".into()],
        expression: Some("1 +".into()),
        ..Filter::default()
    };
    assert_eq!(
        fields(&bad),
        ["user_ids[1]", "user_ids[2]", "keywords[1]", "keywords[0]", "message_types[1]", "expression"]
    );
    let long = Filter { keywords: vec!["k".into(); 101], ..Filter::default() };
    assert_eq!(fields(&long), ["keywords"]);
    assert!(Filter { keywords: vec!["k".into(); 100], ..Filter::default() }.validate().is_ok());
    for unknown in [r#"{"keyword":["a"]}"#, r#"{"match":"none"}"#, r#"{"keywords":"a"}"#] {
        assert!(serde_json::from_str::<Filter>(unknown).is_err(), "{unknown}");
    }
}

#[test]
fn expressions_see_the_payload() {
    for text in [
        "type == 'message' && msg_type == 1 && message_type == 'text'",
        "content.contains('ell') && content.startsWith('h') && content.endsWith('o') && size(content) == 5",
        "sender.user_id == 'u1' && sender.user_name == '小明'",
        "sessionID == 's1' && bot_id == 'bot_1' && channel_id == 'ch_1' && timestamp > 1700000000",
        "['a', 'hello'].exists(k, content == k) && [1, 2].all(n, n > 0)",
        "size(['a', 'b'].filter(k, k == 'a').map(k, k + content)) == 1",
        "sender.user_id in ['u0', 'u1', 'u2']",
        "!(content.size() > 100) ? true : false",
        "has(sender.user_id) && !has(sender.other)",
        "string(msg_type) + '!' == '1!' && int('3') % 2 == 1 && double(1) * 2.0 == 2.0",
        "[content].exists(content, content == 'hello')",
        "-msg_type == -1 && msg_type - 1 == 0 && msg_type / 1 == 1",
        "[1, 2][1] == 2 && [1].exists_one(n, n == 1) && 1 != 2 && 1 <= 1 && 1 >= 1 && 1 < 2",
    ] {
        let expression = Expression::compile(text).unwrap_or_else(|reason| panic!("{text}: {reason}"));
        assert_eq!(expression.matches(&input("hello")), Ok(true), "{text}");
    }
}

#[test]
fn bad_expressions_are_refused_when_saved() {
    for (text, reason) in [
        ("", "1 to 1024 characters"),
        ("  ", "1 to 1024 characters"),
        ("content ==", "does not compile"),
        ("'\\u00'", "does not compile"),
        ("content", "must be true or false, and is a string"),
        ("1 + 1", "must be true or false, and is a int"),
        ("other == 'x'", "refers to `other`; a message has type, content"),
        ("content.matches('(a+)+')", "calls `matches`, which does not exist"),
        ("true || nothing(1)", "calls `nothing`"),
        ("true || nothing", "refers to `nothing`"),
        ("[1].exists(x, x == 1) && x == 1", "refers to `x`"),
        ("sender.phone == 'x'", "does not fit a message"),
        ("content > 1", "does not fit a message"),
        ("content && true", "does not fit a message"),
        ("Message{content: 'a'} == 1", "structures"),
        ("{'a': 1}.a == 1", "maps"),
    ] {
        let refused = Expression::compile(text).expect_err(text);
        assert!(refused.contains(reason), "{text}: {refused}");
    }
    let long = format!("content == '{}'", "x".repeat(1024));
    assert!(Expression::compile(&long).unwrap_err().contains("1024"));
}

#[test]
fn errors_at_run_time_do_not_pass() {
    // True for the sample, whose content has 5 characters.
    let (passed, reason) = decide(r#"{"expression":"10 / (size(content) - 3) == 5"}"#, "abc");
    assert!(!passed);
    assert!(reason.starts_with("expression error: ") && reason.chars().count() < 250, "{reason}");
    let big = "z".repeat(60_000);
    let (passed, reason) = decide(r#"{"expression":"int(content.size() > 9 ? content : '1') == 1"}"#, &big);
    assert!(!passed && reason.chars().count() < 250, "{}", reason.len());
}

#[test]
fn expensive_expressions_are_refused() {
    let hundred = format!("[{}]", ["'k'"; 100].join(","));
    let numbers = format!("[{}0]", "0,".repeat(150));
    for text in [
        format!("{numbers}.all(a, {numbers}.all(b, content.contains('x')))"),
        format!(
            "{numbers}.all(a, [{}0].all(b, [{}0].all(c, a == b && b == c)))",
            "0,".repeat(80),
            "0,".repeat(80)
        ),
        // Doubles 30 times.
        format!("size([content]{}) == 1", ".map(x, x + x)".repeat(30)),
        format!("{numbers}.all(a, {} == 'x')", ["content"; 30].join("+")),
        format!("size({numbers}.map(a, content).map(a, a + content)) == 1"),
    ] {
        let refused = Expression::compile(&text).expect_err(&text);
        assert!(refused.contains("too long") || refused.contains("too deeply"), "{refused}");
    }
    for text in [
        format!("{hundred}.exists(k, content.contains(k))"),
        format!("sender.user_id in {hundred}"),
        "['a','b'].exists(a, ['c','d'].exists(b, content.contains(a + b)))".to_owned(),
    ] {
        assert!(Expression::compile(&text).is_ok(), "{text}: {:?}", Expression::compile(&text));
    }
}

/// Accepted expressions run on a small stack, and expressions that would overflow even a large one are refused: an
/// overflow would end the process.
#[test]
fn deep_expressions_are_refused_before_they_hurt() {
    let shapes: [fn(usize) -> String; 8] = [
        |n| format!("{}true{}", "(".repeat(n), ")".repeat(n)),
        |n| format!("{}true", "!".repeat(n)),
        |n| format!("size({}1{}) == 1", "[".repeat(n), "]".repeat(n)),
        |n| format!("1{} > 0", "+1".repeat(n)),
        |n| format!("true{}", "?true:true".repeat(n)),
        |n| format!("{}'1'{} == '1'", "string(".repeat(n), ")".repeat(n)),
        |n| format!("{}true{}", "[1].exists(x,".repeat(n), ")".repeat(n)),
        |n| format!("size('a'{}) > 0", "+'a'".repeat(n)),
    ];
    for shape in shapes {
        let mut deepest = None;
        for n in [1, 2, 4, 6, 8, 10, 12, 14, 15, 16, 17, 18, 19, 20, 40, 90, 120, 200, 300, 400] {
            if let Ok(expression) = Expression::compile(&shape(n)) {
                deepest = Some(expression);
            }
        }
        let deepest = deepest.expect("the shallow form is fine");
        let small = thread::Builder::new().stack_size(1024 * 1024);
        let run = small.spawn(move || deepest.matches(&input("hello"))).unwrap();
        assert!(run.join().unwrap().is_ok());
    }
    for text in
        ["[".repeat(400) + &"]".repeat(400), "(')'+".repeat(150) + "'a'" + &")".repeat(150), "{".repeat(1024)]
    {
        assert!(Expression::compile(&text).is_err());
    }
}
