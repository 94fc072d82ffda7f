//! Failures as pages: each code with its sentence, the id of the request and a next step, also in fragments.

use hub_core::ErrorCode;

use super::*;

/// Asserts that the page of a failure has its code, request id, sentence and a next step, in either language.
#[track_caller]
fn is_explained(reply: &Reply, code: ErrorCode, what: &str) {
    let page = text(reply);
    assert_eq!(reply.response.status(), crate::envelope::status(code), "{what}: {page}");
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"), "{what}");
    assert!(page.contains(&format!(">{}</code>", code.as_str())), "{what} has no code: {page}");
    assert!(page.contains(reply.header("x-request-id").unwrap()), "{what} has no request id: {page}");
    let words = [Language::English, Language::Chinese].map(super::super::words::of);
    let is_said = words.iter().any(|words| {
        let (_, said) = crate::console::refusals::sentence(words, code);
        let (_, of_page) = words.refusals.no_page;
        [said, of_page].iter().any(|said| page.contains(&html_text(said)))
    });
    assert!(is_said, "{what} has no sentence: {page}");
    assert!(page.contains("<a ") || page.contains("<form "), "{what} has no next step: {page}");
}

/// Escapes a text as the pages do.
fn html_text(text: &str) -> String {
    maud::html! { (text) }.into_string()
}

/// Sends a form, or asks for the page if there is none; as a page in English and as a fragment in Chinese.
async fn refused(caller: &Caller<'_>, path: &str, fields: &[(&str, &str)], code: ErrorCode) {
    let fragment = caller.clone().with("X-Fragment", "main").with("Accept-Language", "zh");
    for caller in [caller, &fragment] {
        let reply =
            if fields.is_empty() { caller.get(path).await } else { submit(caller, path, fields).await };
        is_explained(&reply, code, path);
    }
}

#[tokio::test]
async fn every_code_is_explained_on_pages_and_in_fragments() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let seen = messages::seen(&app, &ann, &simulator).await;
    let bot = format!("/console/bots/{}", seen.bot);
    let webhook = format!("{bot}/channels/{}/webhook", seen.channel);
    let visitor = app.stranger().with("Origin", "http://localhost:9800");
    let foreign = app.stranger().with("Origin", "https://evil.example");
    let trace = format!("/console/traces/{}/{}", seen.bot, seen.trace);
    let long = "x".repeat(1024 * 1024);
    for (caller, path, fields, code) in [
        (&visitor, &*bot, &[("do", "rename"), ("name", "x")][..], ErrorCode::Unauthorized),
        (&foreign, &bot, &[("do", "rename"), ("name", "x")], ErrorCode::Forbidden),
        (&ann, "/console/nowhere", &[], ErrorCode::NotFound),
        (&ann, "/console/bots/bot_01BX5ZZKBKACTAV9WEVGEMMVRZ", &[], ErrorCode::NotFound),
        (&ann, "/console/messages?limit=0", &[], ErrorCode::InvalidParams),
        (&ann, &trace, &[("do", "replay"), ("sink", "ai")], ErrorCode::Conflict),
        (&ann, &bot, &[("do", "send"), ("to_user_id", "ada"), ("content", "hi")], ErrorCode::WindowClosed),
        (&ann, &webhook, &[("do", "save"), ("url", &long)], ErrorCode::PayloadTooLarge),
    ] {
        refused(caller, path, fields, code).await;
    }
    let fragment = ann.clone().with("X-Fragment", "main");
    for caller in [&ann, &fragment] {
        let wrong = caller.send(Method::DELETE, &bot, |request| request).await;
        is_explained(&wrong, ErrorCode::MethodNotAllowed, "DELETE");
        let wrong = caller
            .send(Method::POST, &bot, |request| request.header("Content-Type", "text/plain").body("x"))
            .await;
        is_explained(&wrong, ErrorCode::UnsupportedMediaType, "text/plain");
    }
    // The fields that are wrong are named, and what was typed stays.
    let reply = submit(&ann, &bot, &[("do", "rename"), ("name", " ")]).await;
    assert_eq!(reply.response.status(), 400);
    assert!(text(&reply).contains("aria-invalid=\"true\""));

    sql(&app, "ALTER TABLE channels RENAME TO hidden").await;
    refused(&ann, &bot, &[], ErrorCode::Internal).await;
    app.hub.shutdown().await;
    refused(&ann, "/console/messages", &[], ErrorCode::Unavailable).await;
}

/// Also those that only another system can cause.
#[test]
fn every_code_has_a_page_in_both_languages() {
    for code in ErrorCode::ALL {
        for look in ["en.light", "zh.dark"] {
            let mut headers = poem::http::HeaderMap::new();
            headers.insert("cookie", format!("look={look}").parse().unwrap());
            let error = hub_core::Error::new(code, "a sentence <of> the API").with_hint("do this");
            let page = crate::console::refusals::page(
                crate::appearance::Appearance::of(&headers),
                &error,
                "req_1",
                true,
            );
            assert_eq!(page.status(), crate::envelope::status(code));
            let mut page = page;
            let page =
                futures_util::FutureExt::now_or_never(page.take_body().into_string()).unwrap().unwrap();
            for part in
                [code.as_str(), "req_1", "a sentence &lt;of&gt; the API. do this.", "href=\"/console\""]
            {
                assert!(page.contains(part), "{code} {look} lacks {part}: {page}");
            }
            let lang =
                if look.starts_with("en") { "lang=\"en\" data-theme" } else { "lang=\"zh-CN\" data-theme" };
            assert!(page.contains(lang), "{page}");
        }
    }
}

async fn sql(app: &App, sql: &'static str) {
    let store = &app.hub.context().store;
    store
        .write(move |tx| Box::pin(async move { tx.channels().execute(sql.to_owned()).await }))
        .await
        .unwrap();
}

#[tokio::test]
async fn too_many_requests_are_a_page_with_the_time_to_wait() {
    let app = App::with(|values| {
        values.rate_limits.default = std::num::NonZeroU32::MIN;
    })
    .await;
    let ann = app.user("ann").await;
    let mut reply = ann.get("/console").await;
    for _ in 0..300 {
        if reply.response.status() != 200 {
            break;
        }
        reply = ann.get("/console").await;
    }
    is_explained(&reply, ErrorCode::RateLimited, "too many");
    assert!(text(&reply).contains("Try again in "), "{}", text(&reply));
    refused(&ann, "/console", &[], ErrorCode::RateLimited).await;
}
