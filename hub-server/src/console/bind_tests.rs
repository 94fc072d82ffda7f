//! Binding an account in a browser, and writing to contacts.

use hub_core::network::sim::Simulator;
use poem::http::Method;

use super::tests::{hidden, submit, text};
use crate::testing::{App, Caller, Reply, bind};

const NEW: &str = "/console/bots/new";

/// Starts a login; gives its address and the link in its code.
async fn started(caller: &Caller<'_>) -> (String, String) {
    let reply = submit(caller, NEW, &[("do", "start"), ("network", "sim"), ("name", "Shop & Co")]).await;
    assert_eq!(reply.response.status(), 303, "{}", text(&reply));
    let address = reply.header("location").unwrap().to_owned();
    let page = text(&caller.get(&address).await);
    let link = page.split("<code data-computed>").nth(1).unwrap().split('<').next().unwrap();
    (address, link.replace("&amp;", "&"))
}

#[tokio::test]
async fn a_login_is_shown_through_its_states_and_resumed_by_its_address() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await.with("Accept-Encoding", "gzip");
    let (address, link) = started(&ann).await;
    let waiting = ann.get(&address).await;
    let page = text(&waiting);
    assert_eq!(waiting.header("content-encoding"), None, "the page contains the code");
    assert!(page.contains("Scan the code") && page.contains("<svg class=\"qr\""), "{page}");
    assert!(page.contains("data-poll=\"2000\"") && page.contains("hub-cli sim scan"), "{page}");
    assert!(!page.contains("value=\"scan_as\""), "this process runs no simulator: {page}");
    let bind = hidden(&page, "bind_id").to_owned();
    let fields = [("do", "confirm"), ("bind_id", &*bind), ("wait_ms", "0")];
    let check = || submit(&ann, &address, &fields);
    assert!(!address.contains(&link) && !page.contains("Shop &amp; Co</title>"));

    simulator.scan(&link).unwrap();
    assert!(text(&ann.get(&address).await).contains("Scan the code"), "a GET asks the network nothing");
    assert_eq!(check().await.header("location"), Some(&*address));
    assert!(text(&ann.get(&address).await).contains("Confirm on the phone"));
    let account = simulator.confirm(&link, None).unwrap();
    check().await;
    let page = text(&ann.get(&address).await);
    assert!(page.contains("No message yet.") && page.contains("<bdi>Shop &amp; Co</bdi>"), "{page}");
    assert!(page.contains("data-poll"), "it waits for the first message");
    drop(account);

    let again = text(&ann.get(&address).await);
    assert!(again.contains("Open the bot"), "the final state is shown again: {again}");
}

#[tokio::test]
async fn a_login_of_another_user_does_not_exist() {
    let (app, _simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let (address, _) = started(&ann).await;
    assert_eq!(bob.get(&address).await.response.status(), 404);
    assert_eq!(bob.get(&format!("{NEW}?bind=nonsense")).await.response.status(), 404);
}

#[tokio::test]
async fn refused_binds_keep_what_was_typed() {
    let (app, _simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let long = "<i>".repeat(30);
    let reply = submit(&ann, NEW, &[("do", "start"), ("network", "sim"), ("name", &long)]).await;
    let page = text(&reply);
    assert_eq!(reply.response.status(), 400);
    assert!(page.contains("id=\"start-name-problem\"") && page.contains("&lt;i&gt;&lt;i&gt;"), "{page}");
    assert!(!page.contains("<i>"));

    let reply = submit(&ann, NEW, &[("do", "start"), ("network", "pigeon"), ("name", "")]).await;
    assert_eq!(reply.response.status(), 400);
    assert!(text(&reply).contains("start-network-problem"));
}

#[tokio::test]
async fn an_expired_login_offers_a_new_code() {
    let (app, _simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let (address, _) = started(&ann).await;
    let bind = hidden(&text(&ann.get(&address).await), "bind_id").to_owned();
    app.clock.advance(std::time::Duration::from_secs(3600));
    submit(&ann, &address, &[("do", "confirm"), ("bind_id", &bind), ("wait_ms", "0")]).await;
    let page = text(&ann.get(&address).await);
    assert!(page.contains("The code expired") && page.contains("Show a new code"), "{page}");
    assert!(page.contains("value=\"Shop &amp; Co\"") && !page.contains("data-poll"), "{page}");
}

#[tokio::test]
async fn a_bot_of_the_simulated_network_is_bound_in_the_browser_alone() {
    let (app, _simulator) = App::with_playground().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let (address, _) = started(&ann).await;
    let page = text(&ann.get(&address).await);
    assert!(page.contains("value=\"scan_as\""), "{page}");
    let fields = [("do", "scan_as"), ("from", "Cleo")];
    assert_eq!(submit(&bob, &address, &fields).await.response.status(), 404);
    let long = "x".repeat(101);
    let refused = submit(&ann, &address, &[("do", "scan_as"), ("from", &long)]).await;
    assert_eq!(refused.response.status(), 400);
    assert!(text(&refused).contains("id=\"scan_as-from-problem\""), "{}", text(&refused));
    let scanned = submit(&ann, &address, &fields).await;
    assert_eq!(scanned.header("location"), Some(&*address), "{}", text(&scanned));
    let page = text(&ann.get(&address).await);
    assert!(
        page.contains("The account is a bot now.") && page.contains("<bdi>Shop &amp; Co</bdi>"),
        "{page}"
    );
    assert_eq!(submit(&ann, &address, &fields).await.response.status(), 409);
}

/// A bot of Ann's, to whom Ada wrote a text.
async fn written_to(ann: &Caller<'_>, simulator: &Simulator, said: &str) -> String {
    let bot = bind(ann, simulator, None).await;
    let id = bot["id"].as_str().unwrap().to_owned();
    simulator.say(bot["wx_id"].as_str().unwrap(), Some("ada@im.wechat"), said).unwrap();
    id
}

#[tokio::test]
async fn a_message_that_cannot_be_sent_is_kept_with_the_reason() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let bot = written_to(&ann, &simulator, "hello").await;
    let page = text(&ann.get(&format!("/console/bots/{bot}")).await);
    assert!(page.contains("Sending is not possible now:"), "{page}");
    assert!(page.contains("value=\"send\" disabled"), "{page}");

    let address = format!("/console/bots/{bot}/contacts/ada%40im.wechat");
    let page = text(&ann.get(&address).await);
    assert!(page.contains("name=\"to_user_id\" value=\"ada@im.wechat\""), "{page}");
    assert!(page.contains(&format!("hub-cli bots messages {bot} --user ada@im.wechat")), "{page}");
    let once = hidden(&page, "once").to_owned();
    let fields =
        [("do", "send"), ("to_user_id", "ada@im.wechat"), ("once", &once), ("content", "On its <b>way</b>")];
    let reply = submit(&ann, &address, &fields).await;
    let page = text(&reply);
    assert_eq!(reply.response.status(), 409, "{page}");
    assert!(page.contains("WINDOW_CLOSED") && page.contains("On its &lt;b&gt;way&lt;/b&gt;"), "{page}");
    assert!(page.contains(&format!("value=\"{once}\"")), "the repeated form has one effect");
}

/// A form with a file, as a browser sends it.
async fn upload(caller: &Caller<'_>, path: &str, fields: &[(&str, &str)], file: (&str, &[u8])) -> Reply {
    let mut body = Vec::new();
    for (name, value) in fields {
        let field = format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(field.as_bytes());
    }
    let head =
        format!("--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{}\"\r\n\r\n", file.0);
    body.extend_from_slice(&[head.as_bytes(), file.1, b"\r\n--XX--\r\n"].concat());
    let form = "multipart/form-data; boundary=XX";
    caller.send(Method::POST, path, |request| request.header("Content-Type", form).body(body)).await
}

#[tokio::test]
async fn the_file_of_a_message_has_its_problems_next_to_it() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let bot = written_to(&ann, &simulator, "hello").await;
    let address = format!("/console/bots/{bot}/contacts/ada%40im.wechat");
    let fields = [("content", "a <b>dot</b>"), ("to_user_id", "ada@im.wechat"), ("do", "send")];

    let empty = upload(&ann, &address, &fields, ("dot.png", b"")).await;
    let page = text(&empty);
    assert_eq!(empty.response.status(), 400, "{page}");
    assert!(page.contains("id=\"send-file-problem\"") && page.contains("is empty"), "{page}");
    assert!(page.contains("a &lt;b&gt;dot&lt;/b&gt;"), "what was typed stays: {page}");

    let both = [fields.as_slice(), &[("media.url", "https://files.example/a.png")]].concat();
    let page = text(&upload(&ann, &address, &both, ("dot.png", b"x")).await);
    assert!(page.contains("choose a file or enter a URL, not both"), "{page}");

    // Without a chosen file, the browser sends a file without name and bytes.
    let closed = upload(&ann, &address, &fields, ("", b"")).await;
    assert!(text(&closed).contains("WINDOW_CLOSED"), "{}", text(&closed));
    let api = upload(&ann, &format!("/api/bots/{bot}/send"), &fields[..2], ("dot.png", b"x")).await;
    api.error(409, "WINDOW_CLOSED");

    // Larger than what is read of strangers: they sign in first.
    let large = vec![b'x'; 100_000];
    let strange =
        upload(&app.stranger().with("Origin", "http://localhost:9800"), &address, &fields, ("x", &large))
            .await;
    let page = text(&strange);
    assert_eq!(strange.response.status(), 401, "{page}");
    assert!(page.contains("Sign in") && !page.contains("Send again"), "{page}");
}

#[tokio::test]
async fn contacts_of_another_owner_and_unknown_contacts_do_not_exist() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let bot = bind(&ann, &simulator, None).await["id"].as_str().unwrap().to_owned();
    for end in ["contacts", "contacts/x"] {
        assert_eq!(bob.get(&format!("/console/bots/{bot}/{end}")).await.response.status(), 404, "{end}");
    }
    let fields = [("do", "remark"), ("user", "nobody"), ("remark", "VIP")];
    let reply = submit(&ann, &format!("/console/bots/{bot}/contacts"), &fields).await;
    assert_eq!(reply.response.status(), 404);
    let hostile = text(&ann.get(&format!("/console/bots/{bot}/contacts/%27%3Bls%3Cb%3E")).await);
    assert!(
        hostile.contains("--user &#39;&#39;\\&#39;&#39;;ls&lt;b&gt;&#39;")
            || hostile.contains("--user ''\\'';ls&lt;b&gt;'"),
        "{hostile}"
    );
}
