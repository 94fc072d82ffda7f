//! weixin-agent 0.3.0 against the simulator: its own login calls and its own monitor loop.

use std::{
    path::{Path, PathBuf},
    process::exit,
    time::Duration,
};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio_util::sync::CancellationToken;
use weixin_agent::{
    LoginStatus, MediaInfo, MessageContext, MessageHandler, QrLoginSession, Result, StandaloneQrLogin,
    TokenStaleInfo, WeixinClient, WeixinConfig,
};

fn tell(event: &str, mut fields: Value) {
    fields["event"] = json!(event);
    println!("{fields}");
}

/// A client of the simulator; without a token for the login.
fn config(base_url: &str, token: &str) -> WeixinConfig {
    let cdn = format!("{}/c2c", base_url.trim_end_matches('/'));
    WeixinConfig::builder()
        .base_url(base_url)
        .cdn_base_url(cdn)
        .token(token)
        .build()
        .expect("a token is given")
}

struct Login {
    bot_token: String,
    base_url: String,
}

async fn log_in(base_url: &str) -> Result<Login> {
    let api = StandaloneQrLogin::new(&config(base_url, ""));
    let session = api.start(None, &[]).await?;
    tell("qr", json!({"text": session.qrcode_img_content}));
    let mut codes = BufReader::new(tokio::io::stdin()).lines();
    let mut code = None;
    loop {
        code = match step(&api, &session, code.as_deref()).await? {
            LoginStatus::Confirmed { bot_token, ilink_bot_id, base_url, ilink_user_id } => {
                tell(
                    "logged_in",
                    json!({"bot_id": ilink_bot_id, "user_id": ilink_user_id, "base_url": base_url}),
                );
                return Ok(Login { bot_token, base_url });
            }
            LoginStatus::NeedVerifyCode => {
                tell("code_wanted", json!({}));
                codes.next_line().await?
            }
            LoginStatus::Scanned => {
                tell("scanned", json!({}));
                None
            }
            LoginStatus::Wait => code,
            other => panic!("the login cannot go on: {other:?}"),
        };
    }
}

async fn step(api: &StandaloneQrLogin, session: &QrLoginSession, code: Option<&str>) -> Result<LoginStatus> {
    let status = api.poll_status(session, code).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    status
}

struct Handler {
    file: PathBuf,
    image: PathBuf,
    folder: PathBuf,
    stop: CancellationToken,
}

impl Handler {
    async fn handle(&self, ctx: &MessageContext) -> Result<()> {
        if let Some(media) = &ctx.media {
            return self.download(ctx, media).await;
        }
        let text = ctx.body.clone().unwrap_or_default();
        tell(
            "received",
            json!({
                "message_id": ctx.server_message_id.map(|id| id.to_string()),
                "user_id": ctx.from,
                "text": text,
                "context_token": ctx.context_token,
            }),
        );
        if text == "bye" {
            return Ok(());
        }
        ctx.send_typing().await?;
        let sent = ctx.reply_text(&format!("you said: {text}")).await?;
        tell("replied", json!({"client_id": sent.message_id}));
        ctx.cancel_typing().await?;
        ctx.reply_media(&self.file).await?;
        ctx.reply_media(&self.image).await?;
        tell("sent_media", json!({}));
        Ok(())
    }

    async fn download(&self, ctx: &MessageContext, media: &MediaInfo) -> Result<()> {
        let path = ctx.download_media(media, &self.folder.join(&ctx.message_id)).await?;
        let kind = format!("{:?}", media.media_type).to_lowercase();
        tell("downloaded", json!({"kind": kind, "path": path}));
        Ok(())
    }
}

#[async_trait]
impl MessageHandler for Handler {
    async fn on_message(&self, ctx: &MessageContext) -> Result<()> {
        // The monitor only logs what goes wrong here.
        if let Err(error) = self.handle(ctx).await {
            eprintln!("{error:?}");
            exit(1);
        }
        Ok(())
    }

    async fn on_token_stale(&self, info: &TokenStaleInfo) -> Result<()> {
        tell("expired", json!({"errcode": info.errcode}));
        self.stop.cancel();
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let given: Vec<_> = std::env::args().skip(1).collect();
    let [base_url, file, image, folder] = given.as_slice() else { panic!("four arguments, please") };
    let path = |text: &String| Path::new(text).to_owned();
    let login = log_in(&format!("{base_url}/")).await?;
    let stop = CancellationToken::new();
    let handler = Handler { file: path(file), image: path(image), folder: path(folder), stop: stop.clone() };
    let client = WeixinClient::builder(config(&format!("{}/", login.base_url), &login.bot_token))
        .on_message(handler)
        .with_cancel_token(stop)
        .build()?;
    client.start(None).await?;
    tell("stopped", json!({}));
    Ok(())
}
