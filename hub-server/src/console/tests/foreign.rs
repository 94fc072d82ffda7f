//! Forms that another site posts: each is refused before the session is looked up, with a page that repeats nothing of
//! it, and whatever its visitor presses on that page changes nothing.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

/// A value of the other site in every field.
const MARK: &str = "stolen-7f3a";

/// Headers with which browsers send a form of another site: by age, from a frame, from a page without referrer.
const SENDERS: [&[(&str, &str)]; 7] = [
    &[("Sec-Fetch-Site", "cross-site"), ("Origin", "https://evil.example")],
    &[("Sec-Fetch-Site", "cross-site"), ("Origin", "null")],
    &[("Sec-Fetch-Site", "same-site"), ("Origin", "http://localhost:3000")],
    &[("Sec-Fetch-Site", "cross-site")],
    &[("Origin", "https://evil.example")],
    &[("Origin", "null")],
    &[],
];

/// The request of a browser when something on a page is pressed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Press {
    method: &'static str,
    address: String,
    fields: Vec<(String, String)>,
}

/// An attribute of a tag.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split_once(&format!(" {name}=\""))?.1.split('"').next()?;
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    Some(plain.iter().fold(value.to_owned(), |value, (escaped, plain)| value.replace(escaped, plain)))
}

/// The tags of a name, with their attributes.
fn tags(page: &str, name: &str) -> Vec<String> {
    let start = format!("<{name} ");
    page.split(&start).skip(1).map(|rest| format!(" {}", rest.split('>').next().unwrap())).collect()
}

/// Every link and every button of a page at an address.
fn presses(page: &str, address: &str) -> BTreeSet<Press> {
    let links = tags(page, "a").into_iter().filter_map(|tag| attribute(&tag, "href"));
    let own = links.filter(|link| link.starts_with('/'));
    let mut found: BTreeSet<_> =
        own.map(|address| Press { method: "get", address, fields: Vec::new() }).collect();
    for form in page.split("<form").skip(1).map(|rest| rest.split("</form>").next().unwrap()) {
        let tag = &form[..form.find('>').unwrap()];
        let method = if tag.contains("method=\"post\"") { "post" } else { "get" };
        let address = attribute(tag, "action").unwrap_or_else(|| address.to_owned());
        let pair =
            |tag: String| Some((attribute(&tag, "name")?, attribute(&tag, "value").unwrap_or_default()));
        let fields: Vec<_> = tags(form, "input").into_iter().filter_map(pair).collect();
        let buttons = tags(form, "button").into_iter().map(pair);
        found.extend(buttons.map(|button| Press {
            method,
            address: address.clone(),
            fields: fields.iter().cloned().chain(button).collect(),
        }));
    }
    found
}

/// Presses something as its visitor does, who is signed in.
async fn press(visitor: &Caller<'_>, press: &Press) {
    if press.method == "get" {
        visitor.get(&press.address).await;
        return;
    }
    let fields: Vec<_> = press.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    submit(visitor, &press.address, &fields).await;
}

/// The ways in which another site sends a request of a visitor: without and with the cookie of the session.
fn senders<'a>(app: &'a App, visitor: &Caller<'_>) -> Vec<Caller<'a>> {
    let cookie = &visitor.headers.iter().find(|(name, _)| name == "Cookie").unwrap().1;
    let bases = [app.stranger(), app.stranger().with("Cookie", cookie)];
    let with = |base: &Caller<'a>, headers: &[(&str, &str)]| {
        headers.iter().fold(base.clone(), |caller, (name, value)| caller.with(name, value))
    };
    bases.iter().flat_map(|base| SENDERS.iter().map(|headers| with(base, headers))).collect()
}

/// Sends a form as another site does, and presses everything on each page that comes back.
struct Attack<'a> {
    app: &'a App,
    visitor: &'a Caller<'a>,
    pressed: BTreeSet<Press>,
}

impl Attack<'_> {
    async fn post(&mut self, address: &str, fields: &[(&str, &str)]) {
        for sender in senders(self.app, self.visitor) {
            let reply = submit(&sender, address, fields).await;
            let (status, page) = (reply.response.status().as_u16(), text(&reply));
            assert_eq!(status, 403, "{address} {fields:?} {:?}: {page}", sender.headers);
            for (name, value) in fields.iter().filter(|(_, value)| value.len() > 6) {
                assert!(!page.contains(value), "{name} of {address}: {page}");
            }
            for one in presses(&page, address) {
                if self.pressed.insert(one.clone()) {
                    press(self.visitor, &one).await;
                }
            }
        }
    }
}

/// Fields with which the actions of the pages do something, besides their marked values.
fn fields<'f>(action: &'f str, login: &'f Value) -> Vec<(&'f str, &'f str)> {
    let marked = ["name", "display_name", "content", "text", "remark", "user", "keywords", "password", "id"];
    let marked = marked.into_iter().chain(["new_password", "login_id", "channel_id", "plugin_id", "client"]);
    let known = [
        ("do", action),
        ("url", "https://stolen-7f3a.example/"),
        ("to_user_id", "ada@im.wechat"),
        ("enabled", "false"),
        ("qr_id", login["qr_id"].as_str().unwrap()),
        ("user_code", login["user_code"].as_str().unwrap()),
        ("approve", "true"),
    ];
    known.into_iter().chain(marked.map(|name| (name, MARK))).collect()
}

#[tokio::test]
async fn no_form_of_another_site_changes_anything_whatever_is_pressed_afterwards() {
    let (app, simulator) = App::with_playground().await;
    let ann = app.user("ann").await;
    let addresses = addresses(&app, &ann, &simulator).await;
    let login = app.stranger().post("/api/auth/qr/generate", &json!({})).await.data().clone();
    let before = app.contents().await;
    let mut attack = Attack { app: &app, visitor: &ann, pressed: BTreeSet::new() };
    let mut count = 0;
    for (page, address) in PAGES.iter().zip(&addresses) {
        let all = page.actions.iter().map(|action| action.name).chain(["look", "sign_out", "nothing"]);
        for action in all {
            attack.post(address, &fields(action, &login)).await;
            count += 1;
        }
    }
    assert!(count > 100 && !attack.pressed.is_empty(), "{count} {:?}", attack.pressed);
    assert_eq!(app.contents().await, before);
    assert_eq!(ann.get("/console").await.response.status(), 200, "her session goes on");
}

#[tokio::test]
async fn the_forms_of_sign_in_and_of_consent_are_refused_alike() {
    let (app, simulator) = App::with_playground().await;
    let ann = app.user("ann").await;
    let bot = bind(&ann, &simulator, None).await;
    let new =
        json!({ "name": "Weather", "redirect_uris": ["https://app.example/cb"], "scopes": ["message:read"] });
    let made = ann.post("/api/apps", &new).await;
    let query = [
        ("client_id", made.data()["id"].as_str().unwrap()),
        ("bot_id", bot["id"].as_str().unwrap()),
        ("response_type", "code"),
        ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
        ("code_challenge_method", "S256"),
    ];
    let parameters = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let authorization = ann.get(&format!("/api/auth/oauth/authorize?{parameters}")).await;
    let consent = authorization.data()["consent"].as_str().unwrap();
    let allow: Vec<_> = query.into_iter().chain([("consent", consent), ("decision", "allow")]).collect();
    let sign_in = [("do", "sign_in"), ("username", "bob-7f3a"), ("password", MARK)];
    let register = [("do", "register"), ("username", "bob-7f3a"), ("password", MARK), ("ticket", "")];
    let before = app.contents().await;
    let mut attack = Attack { app: &app, visitor: &ann, pressed: BTreeSet::new() };
    attack.post("/login", &sign_in).await;
    attack.post("/login", &register).await;
    // The endpoint is also for programs: without anything of a browser, a credential is missing.
    for sender in senders(&app, &ann) {
        let reply = submit(&sender, "/api/auth/oauth/authorize", &allow).await;
        let is_of_program = sender.headers.is_empty();
        assert_eq!(
            reply.response.status().as_u16(),
            if is_of_program { 401 } else { 403 },
            "{:?}",
            sender.headers
        );
        for (name, value) in allow.iter().filter(|(_, value)| value.len() > 6) {
            assert!(!text(&reply).contains(value), "{name}: {}", text(&reply));
        }
    }
    // The login page of the gateway has links alone; what they lead to is opened, and its buttons are not pressed yet.
    let leads = text(&app.stranger().get(&format!("/ilink/login?login={MARK}")).await);
    assert!(!leads.contains("<form") && leads.contains("console/ilink?login="), "{leads}");
    ann.get(&format!("/console/ilink?login={MARK}")).await;
    for sender in senders(&app, &ann) {
        let reply = submit(&sender, "/ilink/login", &[("login", MARK)]).await;
        assert!(!text(&reply).contains(MARK) && !text(&reply).contains("<form"), "{}", text(&reply));
    }
    assert_eq!(app.contents().await, before);
    assert!(submit(&ann, "/api/auth/oauth/authorize", &allow).await.response.status().is_redirection());
}

/// The story of the attack that this closes: another site knows the id and the code of its own device.
#[tokio::test]
async fn a_device_of_another_site_is_not_let_in() {
    let (app, _) = App::with_playground().await;
    let ann = app.user("ann").await;
    let device = app.stranger().post("/api/auth/qr/generate", &json!({})).await.data().clone();
    let fields = fields("decide", &device);
    let mut attack = Attack { app: &app, visitor: &ann, pressed: BTreeSet::new() };
    attack.post("/console/account/devices", &fields).await;
    let body = json!({ "qr_id": device["qr_id"], "user_code": device["user_code"], "approve": true });
    for sender in senders(&app, &ann) {
        for path in ["/api/auth/qr/confirm", "/api/auth/qr/open"] {
            let status = sender.post(path, &body).await.response.status().as_u16();
            assert!([401, 403].contains(&status), "{path} {:?}: {status}", sender.headers);
        }
    }
    let (id, secret) = (device["qr_id"].as_str().unwrap(), device["poll_secret"].as_str().unwrap());
    let seen = app.stranger().get(&format!("/api/auth/qr/status?qr_id={id}&poll_secret={secret}")).await;
    assert_eq!(seen.data()["status"], "waiting");
    // And nothing that her own browser sends without the page that she opened.
    let reply = submit(&ann, "/console/account/devices", &fields).await;
    assert_eq!(reply.response.status(), 403, "{}", text(&reply));
    assert!(!text(&reply).contains(id) && !text(&reply).contains("<form"), "{}", text(&reply));
}

#[tokio::test]
async fn devices_and_programs_are_let_in_on_a_page_that_the_session_opened() {
    let (app, simulator) = App::with_playground().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    bind(&ann, &simulator, None).await;
    let device = app.stranger().post("/api/auth/qr/generate", &json!({})).await.data().clone();
    let (id, code) = (device["qr_id"].as_str().unwrap(), device["user_code"].as_str().unwrap());
    let program = app.stranger().get("/ilink/bot/get_bot_qrcode?bot_type=3").await.json;
    let login = program["qrcode"].as_str().unwrap();
    for (path, field, value) in
        [("/console/account/devices", "qr_id", id), ("/console/ilink", "login_id", login)]
    {
        let of_bob = text(&bob.get(path).await);
        let other = if path == "/console/ilink" { "/console/account/devices" } else { "/console/ilink" };
        let of_other_page = text(&ann.get(other).await);
        for wrong in ["", "00", hidden(&of_bob, "page_token"), hidden(&of_other_page, "page_token")] {
            let fields = [("do", "open"), (field, value), ("page_token", wrong)];
            let reply = submit(&ann, path, &fields).await;
            assert_eq!(reply.response.status(), 403, "{wrong}: {}", text(&reply));
            assert!(!text(&reply).contains(value), "{}", text(&reply));
        }
    }
    // A link fills in which device it is, and never its code.
    let linked = text(&ann.get(&format!("/console/account/devices?qr={id}&user_code={code}")).await);
    assert!(linked.contains(id) && !linked.contains(code), "{linked}");
    let token = hidden(&linked, "page_token");
    let path = "/console/account/devices";
    let opened = submit(&ann, path, &[("do", "open"), ("qr_id", id), ("page_token", token)]).await;
    let opened = text(&opened);
    assert!(opened.contains("name=\"user_code\"") && !opened.contains(code), "{opened}");
    let decide = [("do", "decide"), ("qr_id", id), ("user_code", code), ("approve", "true")];
    let decide: Vec<_> = decide.into_iter().chain([("page_token", hidden(&opened, "page_token"))]).collect();
    assert_eq!(
        submit(&ann, path, &decide).await.header("location"),
        Some("/console/account/devices?done=confirmQrLogin")
    );
}

#[tokio::test]
async fn a_session_that_is_too_old_is_confirmed_before_a_device_is_let_in() {
    let app = App::new().await;
    let ann = app.user("ann").await;
    let path = "/console/account/devices?qr=hubq_x";
    let token = hidden(&text(&ann.get(path).await), "page_token").to_owned();
    app.clock.advance(std::time::Duration::from_secs(15 * 60));
    let device = app.stranger().post("/api/auth/qr/generate", &json!({})).await.data().clone();
    let fields = [("do", "open"), ("qr_id", device["qr_id"].as_str().unwrap()), ("page_token", &token)];
    let refused = submit(&ann, path, &fields).await;
    assert_eq!(refused.response.status(), 403);
    let back = "/console/confirm?back=%2Fconsole%2Faccount%2Fdevices%3Fqr%3Dhubq_x";
    for page in [text(&refused), text(&ann.get(path).await)] {
        assert!(page.contains(back) && !page.contains("name=\"qr_id\""), "{page}");
    }
    let open = ann.post("/api/auth/qr/open", &json!({ "qr_id": device["qr_id"] })).await;
    assert_eq!(open.error(403, "FORBIDDEN")["reason"], "session_too_old");
}

#[tokio::test]
async fn a_form_that_was_not_sent_says_what_it_would_do() {
    let app = App::new().await;
    let browser = app.stranger().with("Origin", "http://localhost:9800");
    let long = "é".repeat(300);
    let fields =
        [("do", "create"), ("name", "<i>nightly"), ("expires_in_days", "90"), ("x", &*long), ("once", "o1")];
    for (language, parts) in [
        (
            "en",
            ["Create an API key", "<dt>Name</dt>", "<dt>Lifetime in days</dt>", "<dt><code>x</code></dt>"],
        ),
        ("zh", ["创建 API 密钥", "<dt>名称</dt>", "<dt>有效天数</dt>", "<dt><code>x</code></dt>"]),
    ] {
        let caller = browser.clone().with("Accept-Language", language);
        let page = text(&submit(&caller, "/console/account/keys", &fields).await);
        for part in parts
            .iter()
            .chain(["<bdi>&lt;i&gt;nightly</bdi>", "<bdi>90</bdi>", "name=\"once\" value=\"o1\""].iter())
        {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(
            page.contains(&format!("<bdi>{}…</bdi>", "é".repeat(200))) && !page.contains("<dt>once"),
            "{page}"
        );
        // What lets others in is opened again; what no page has is not repeated.
        for (path, name) in [("/console/account/devices", "decide"), ("/console/account/keys", "nothing")] {
            let fields = [("do", name), ("qr_id", "hubq_x"), ("page_token", "00")];
            let page = text(&submit(&caller, path, &fields).await);
            assert!(!page.contains("<form") && page.contains(&format!("href=\"{path}\"")), "{page}");
        }
    }
}

#[test]
fn every_action_has_a_title_in_both_languages() {
    for action in PAGES.iter().flat_map(|page| page.actions) {
        for language in Language::ALL {
            let title = (super::super::words::of(language).actions.title)(action.operation);
            assert!(title.is_some(), "{} has no title in words/actions.rs", action.operation);
        }
    }
}
