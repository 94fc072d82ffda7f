//! The story of clients/mod.rs, told by the client that progenitor made: `hub-client-story HUB SIMULATOR`.

use std::{collections::BTreeSet, env::args, error::Error, fmt::Debug, time::Duration};

use hub::{
    Client, ResponseValue,
    types::{
        BindStatus, Bot, ConfirmBind, CreateApiKey, CreateChannel, CreatedApiKeyResponse,
        CreatedChannelResponse, ErrorCode, ErrorResponse, LoginRequest, MeResponse, RegisterRequest,
        SendMessage, SentResponse, SetFilter, StartBind,
    },
};
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, ORIGIN, SET_COOKIE};
use serde_json::{Value, json};

#[allow(warnings, reason = "the code is the generator's")]
mod hub {
    include!(concat!(env!("OUT_DIR"), "/client.rs"));
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Answer<T> = std::result::Result<ResponseValue<T>, hub::Error<ErrorResponse>>;

const PASSWORD: &str = "correct horse battery";
const NOBODY: &str = "bot_01BX5ZZKBKACTAV9WEVGEMMVRZ";
const COUNT: usize = 250;

fn passed(step: &str) {
    println!("{step}");
}

fn refused<T: Debug>(answer: Answer<T>, status: u16, code: ErrorCode) -> Result<()> {
    match answer {
        Err(hub::Error::ErrorResponse(refusal))
            if refusal.status() == status && refusal.error.code == code =>
        {
            passed(&code.to_string());
            Ok(())
        }
        other => Err(format!("expected {code}, got {other:?}").into()),
    }
}

async fn until<T>(look: impl AsyncFn() -> Result<Option<T>>) -> Result<T> {
    for _ in 0..200 {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err("waited in vain".into())
}

fn client_with<const N: usize>(hub: &str, headers: [(HeaderName, &str); N]) -> Result<Client> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(name, value.parse()?);
    }
    let client = reqwest::Client::builder().default_headers(map).build()?;
    Ok(Client::new_with_client(hub, client))
}

async fn control(simulator: &str, path: &str, body: &Value) -> Result<()> {
    reqwest::Client::new().post(format!("{simulator}{path}")).json(body).send().await?.error_for_status()?;
    Ok(())
}

async fn register(client: &Client) -> Answer<MeResponse> {
    let ada = RegisterRequest::builder().username("ada").password(PASSWORD);
    client.register().body(ada).send().await
}

async fn login(client: &Client, password: &str) -> Answer<MeResponse> {
    let login = LoginRequest::builder().username("ada").password(password);
    client.login().body(login).send().await
}

async fn create_key(client: &Client, name: &str) -> Answer<CreatedApiKeyResponse> {
    client.create_api_key().body(CreateApiKey::builder().name(name)).send().await
}

async fn create_channel(
    client: &Client,
    bot: &Bot,
    name: &str,
    filter: Option<SetFilter>,
) -> Answer<CreatedChannelResponse> {
    let channel = CreateChannel::builder().name(name).filter(filter);
    client.create_channel().id(bot.id.as_str()).body(channel).send().await
}

async fn send(client: &Client, bot: &Bot, content: &str) -> Result<Answer<SentResponse>> {
    let message = SendMessage { content: Some(content.parse()?), ..SendMessage::default() };
    Ok(client.send_message().id(bot.id.as_str()).body(message).send().await)
}

/// Registers, logs in, and gets an API key.
async fn sign_up(hub: &str, stranger: &Client) -> Result<String> {
    register(stranger).await?;
    passed("registered");
    let signed_in = login(stranger, PASSWORD).await?;
    let cookie = signed_in.headers()[SET_COOKIE].to_str()?;
    let cookie = cookie.split(';').next().unwrap_or_default();
    passed("logged in");
    let browser = client_with(hub, [(ORIGIN, hub), (COOKIE, cookie)])?;
    let key = create_key(&browser, "story").await?.into_inner().data.key;
    passed("key created");
    Ok(key)
}

async fn bind(client: &Client, simulator: &str) -> Result<Bot> {
    let wanted = StartBind { network: Some("sim".parse()?), ..StartBind::default() };
    let started = client.start_bind().body(wanted).send().await?.into_inner().data;
    passed("bind started");
    control(simulator, "/_sim/confirm", &json!({ "qr_text": started.qr_text })).await?;
    let ask = ConfirmBind::builder().bind_id(started.bind_id.as_str()).wait_ms(Some(2000));
    let bot = until(async || {
        let step = client.confirm_bind().body(ask.clone()).send().await?.into_inner().data;
        Ok(step.bot.filter(|_| step.status == BindStatus::Confirmed))
    });
    let bot = bot.await?;
    passed("bind confirmed");
    Ok(bot)
}

/// Ids of all messages of a bot, read in pages.
async fn pages(client: &Client, bot: &Bot) -> Result<Vec<String>> {
    let request = client.list_messages().id(bot.id.as_str()).limit(100_u32);
    let (mut seen, mut next) = (Vec::new(), request.clone());
    loop {
        let page = next.send().await?.into_inner().data;
        seen.extend(page.items.into_iter().map(|message| String::from(message.id)));
        let Some(cursor) = page.next_cursor else { return Ok(seen) };
        next = request.clone().cursor(cursor);
    }
}

async fn converse(client: &Client, simulator: &str, bot: &Bot) -> Result<()> {
    refused(send(client, bot, "hello").await?, 409, ErrorCode::WindowClosed)?;
    let messages = (0..COUNT).map(|n| json!({ "wx_id": bot.wx_id, "text": format!("order {n}") }));
    control(simulator, "/_sim/messages", &json!({ "messages": messages.collect::<Vec<_>>() })).await?;
    let seen = until(async || Ok(Some(pages(client, bot).await?).filter(|seen| seen.len() >= COUNT))).await?;
    passed("messages received");
    if seen.len() != COUNT || seen.iter().collect::<BTreeSet<_>>().len() != COUNT {
        return Err(format!("{} messages", seen.len()).into());
    }
    passed("paged");
    if !send(client, bot, "hello").await??.data.message_id.starts_with("msg_") {
        return Err("no id".into());
    }
    passed("sent");
    let trace = until(async || {
        let traces = client.list_traces().id(bot.id.as_str()).send().await?;
        Ok(traces.into_inner().data.items.into_iter().next())
    });
    let trace =
        client.get_trace().id(bot.id.as_str()).trace_id(trace.await?.trace_id.as_str()).send().await?;
    if trace.data.steps.is_empty() {
        return Err("no steps".into());
    }
    passed("trace read");
    Ok(())
}

/// The refusals; texts that are too long for the hub cannot be made into its types, long lists can.
async fn break_rules(hub: &str, stranger: &Client, client: &Client, bot: &Bot) -> Result<()> {
    let broken = SetFilter { expression: Some("(".parse()?), ..SetFilter::default() };
    refused(create_channel(client, bot, "broken", Some(broken)).await, 400, ErrorCode::InvalidParams)?;
    refused(client_with(hub, [])?.get_me().send().await, 401, ErrorCode::Unauthorized)?;
    let wrong = client_with(hub, [(AUTHORIZATION, "Bearer hubu_unknown")])?;
    refused(wrong.get_me().send().await, 401, ErrorCode::InvalidToken)?;
    refused(create_key(client, "another").await, 403, ErrorCode::Forbidden)?;
    refused(client.get_bot().id(NOBODY).send().await, 404, ErrorCode::NotFound)?;
    refused(register(stranger).await, 409, ErrorCode::Conflict)?;
    let keywords = vec!["x".repeat(256).parse()?; 8192];
    let filter = SetFilter { keywords: Some(keywords), ..SetFilter::default() };
    refused(create_channel(client, bot, "large", Some(filter)).await, 413, ErrorCode::PayloadTooLarge)?;
    let guess = "wrong horse battery";
    let is_limited = async || {
        let status = login(stranger, guess).await.err().and_then(|refusal| refusal.status());
        Ok(status.filter(|status| *status == 429))
    };
    until(is_limited).await?;
    refused(login(stranger, guess).await, 429, ErrorCode::RateLimited)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let [hub, simulator] = args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "HUB SIMULATOR")?;
    let stranger = client_with(&hub, [(ORIGIN, hub.as_str())])?;
    let key = sign_up(&hub, &stranger).await?;
    let client = client_with(&hub, [(AUTHORIZATION, &format!("Bearer {key}"))])?;
    if client.get_me().send().await?.data.username != "ada" {
        return Err("not ada".into());
    }
    passed("me");
    let bot = bind(&client, &simulator).await?;
    let made = create_channel(&client, &bot, "story", None).await?;
    if !made.data.api_key.starts_with("hubc_") {
        return Err("no key".into());
    }
    passed("channel created");
    converse(&client, &simulator, &bot).await?;
    break_rules(&hub, &stranger, &client, &bot).await
}
