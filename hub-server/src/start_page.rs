//! `/`: the link to the sign-in page and, in development, a tour of the demo. Server-rendered, without script.

use hub_core::{Hub, demo};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use poem::{
    IntoResponse, Request, Response, handler,
    http::header,
    web::{Data, Redirect},
};

use crate::{AppSettings, login_page::prefers_chinese};

/// A message of the demo bot and its outcome.
#[derive(Debug, Clone)]
pub struct RecentMessage {
    /// When, as text.
    pub at: String,
    /// Sender.
    pub from: String,
    /// Text.
    pub text: String,
    /// Outcome, for example `200 in 4 ms, replied`.
    pub outcome: String,
    /// Id of the trace.
    pub trace: Option<String>,
}

/// Maximum number of messages shown.
const SHOWN: u32 = 10;

/// The last messages of the demo, newest first.
async fn recent(hub: &Hub) -> Vec<RecentMessage> {
    let found = demo::recent(hub, SHOWN).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the demo's messages could not be read");
        Vec::new()
    });
    let view = |message: demo::Recent| RecentMessage {
        // The time of day in UTC, as in 16:13:20.
        at: message.at.to_string()[11..19].to_owned(),
        from: message.from,
        text: message.text,
        outcome: message.outcome,
        trace: message.trace_id.map(|id| id.to_string()),
    };
    found.into_iter().map(view).collect()
}

/// The page runs nothing; its one style sheet is inline.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = "*{box-sizing:border-box}\
body{font:16px/1.5 system-ui,'PingFang SC','Microsoft YaHei','Noto Sans CJK SC',sans-serif;max-width:46rem;\
margin:0 auto;padding:1.5rem 1rem;overflow-wrap:anywhere}\
pre{padding:.8rem;white-space:pre-wrap;background:#8881;border-radius:.4rem}\
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;\
overflow-wrap:break-word}th,td:first-child,td:nth-child(2){white-space:nowrap}\
a{color:#0a58ca}.button{display:inline-block;padding:.6rem 1.4rem;border:1px solid;border-radius:.4rem;\
font-weight:600;text-decoration:none}\
@media(max-width:40rem){thead{display:none}td{display:block;padding:0}td:first-child{padding-top:.8rem}}\
@media(prefers-color-scheme:dark){a{color:#8ab4ff}}\
:root{color-scheme:light dark}";

/// Two people with a hub between them.
const ICON: &str = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'>\
<rect width='32' height='32' rx='7' fill='#0a58ca'/>\
<path d='M8 16h16' stroke='#fff' stroke-width='3'/>\
<circle cx='8' cy='16' r='4' fill='#fff'/><circle cx='24' cy='16' r='4' fill='#fff'/>\
<circle cx='16' cy='16' r='5' fill='#fff'/></svg>";

/// `/favicon.ico` and `/favicon.svg`.
#[handler]
pub fn icon() -> Response {
    ICON.with_content_type("image/svg+xml")
        .with_header(header::CACHE_CONTROL, "public, max-age=86400")
        .into_response()
}

/// The page in development. In production `/` redirects to the sign-in page: a public hub reveals nothing else.
#[handler]
pub async fn start_page(hub: Data<&Hub>, settings: Data<&AppSettings>, request: &Request) -> Response {
    if !settings.development {
        return Redirect::see_other("/login").into_response();
    }
    let texts = if prefers_chinese(request.header(header::ACCEPT_LANGUAGE)) { &CHINESE } else { &ENGLISH };
    page(&settings, texts, &recent(&hub).await)
        .into_string()
        .with_content_type("text/html; charset=utf-8")
        .with_header(header::CONTENT_SECURITY_POLICY, POLICY)
        .with_header(header::CACHE_CONTROL, "no-store")
        .with_header(header::VARY, "Accept-Language")
        .into_response()
}

/// The texts of the page.
struct Texts {
    lang: &'static str,
    what: &'static str,
    sign_in: &'static str,
    docs: &'static str,
    health: &'static str,
    readiness: &'static str,
    try_it: &'static str,
    say: &'static str,
    control: &'static str,
    receiver: &'static str,
    last: &'static str,
    none: &'static str,
    columns: [&'static str; 5],
    step_by_step: &'static str,
}

const ENGLISH: Texts = Texts {
    lang: "en",
    what: "A hub between people's chat bot accounts and programs.",
    sign_in: "Sign in or create an account",
    docs: "API documentation",
    health: "Health",
    readiness: "readiness",
    try_it: "Try it",
    say: "Send a message as a person of the simulated chat network:",
    control: "or to the simulator's control address, which lists its bots at /_sim/accounts:",
    receiver: "The demo's channel posts to a receiver in this process, which checks the signature. Show what it received, \
        or make it fail twice to see the hub retry:",
    last: "Last messages",
    none: "None yet.",
    columns: ["At", "From", "Text", "Result", "Trace"],
    step_by_step: "One message step by step:",
};

const CHINESE: Texts = Texts {
    lang: "zh-CN",
    what: "连接聊天机器人账号与程序的消息中枢。",
    sign_in: "登录或创建账号",
    docs: "API 文档",
    health: "健康检查",
    readiness: "就绪状态",
    try_it: "试一试",
    say: "以模拟聊天网络中用户的身份发送一条消息：",
    control: "或发送到模拟器的控制地址；/_sim/accounts 会列出其中的机器人：",
    receiver: "演示通道把消息发送到本进程内的接收方，由它校验签名。查看它收到的内容，或让它失败两次以观察重试：",
    last: "最近的消息",
    none: "暂无消息。",
    columns: ["时间", "发送者", "内容", "结果", "跟踪"],
    step_by_step: "逐步查看一条消息：",
};

fn page(settings: &AppSettings, texts: &Texts, messages: &[RecentMessage]) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(texts.lang) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                // An animated tour: it needs no script.
                meta http-equiv="refresh" content="5";
                link rel="icon" href="/favicon.svg" type="image/svg+xml";
                title { "Message Hub" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Message Hub" }
                p { (texts.what) }
                p { a.button href="/login" { (texts.sign_in) } }
                (tour(settings, texts, messages))
                p {
                    a href="/docs" { (texts.docs) } " · " a href="/openapi.json" { "openapi.json" } " · "
                    a href="/healthz" { (texts.health) } " · " a href="/readyz" { (texts.readiness) }
                }
            }
        }
    }
}

fn tour(settings: &AppSettings, texts: &Texts, messages: &[RecentMessage]) -> Markup {
    html! {
        h2 { (texts.last) }
        @if messages.is_empty() {
            p { (texts.none) }
        } @else {
            table {
                thead { tr { @for column in texts.columns { th { (column) } } } }
                tbody {
                    @for message in messages {
                        tr { td { (message.at) } td { (message.from) } td { (message.text) } td { (message.outcome) }
                            td { code { (message.trace.as_deref().unwrap_or_default()) } } }
                    }
                }
            }
            p { (texts.step_by_step) " " code { "hub-cli traces show TRACE" } }
        }
        @if let Some(control) = settings.sim_control {
            h2 { (texts.try_it) }
            p { (texts.say) }
            pre { "hub-cli sim say \"order 42\" --as Ada" }
            p { (texts.control) }
            pre {
                "curl http://" (control) "/_sim/accounts\n"
                "curl -H 'Content-Type: application/json' \\\n"
                "  -d '{\"wx_id\":\"WX_ID\",\"text\":\"order 42\"}' http://" (control) "/_sim/messages"
            }
            p { (texts.receiver) }
            pre {
                "curl http://" (control) "/receiver/requests\n"
                "curl -d '{\"mode\":\"fail\",\"times\":2}' http://" (control) "/receiver/behaviour"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{settings::Values, testing::App};

    #[test]
    fn what_people_wrote_is_text() {
        let settings = AppSettings::from(Values::new("http://localhost:9800".parse().unwrap()));
        let evil = RecentMessage {
            at: "now".into(),
            from: "<b>Ada</b>".into(),
            text: "<script>alert(1)</script>".into(),
            outcome: "\"><img src=x>".into(),
            trace: None,
        };
        let text = page(&settings, &ENGLISH, &[evil]).into_string();
        assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{text}");
        assert!(!text.contains("<script") && !text.contains("<img") && !text.contains("<b>"), "{text}");
    }

    #[tokio::test]
    async fn the_page_leads_to_the_sign_in_page_in_the_language_of_the_browser() {
        let app = App::new().await;
        assert!(app.text("/").await.contains("<a class=\"button\" href=\"/login\">Sign in"));
        let chinese = app.stranger().with("Accept-Language", "zh-CN,zh;q=0.9").get("/").await;
        let text = String::from_utf8(chinese.bytes).unwrap();
        assert!(text.contains("lang=\"zh-CN\"") && text.contains("登录或创建账号"), "{text}");
        for path in ["/favicon.ico", "/favicon.svg"] {
            let reply = app.stranger().get(path).await;
            assert_eq!(
                (reply.response.status().as_u16(), reply.header("content-type")),
                (200, Some("image/svg+xml"))
            );
        }
    }

    #[tokio::test]
    async fn a_public_hub_leads_strangers_to_the_sign_in_page_alone() {
        let app = App::with(|values| values.development = false).await;
        let reply = app.stranger().get("/").await;
        assert_eq!((reply.response.status().as_u16(), reply.header("location")), (303, Some("/login")));
        assert!(reply.bytes.is_empty());
    }
}
