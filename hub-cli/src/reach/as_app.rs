//! Sending as an app on a bot, as the app would through the bot API (spec §4).

use hub_core::{
    Hub,
    access::Actor,
    apps::{NewAppCall, token_prefix},
    bots::{NewSend, Sent},
    secret::Secret,
    time::Stopwatch,
};
use serde_json::{Value, json};

use super::{AppPlace, Reach};
use crate::exit::Failure;

/// The call that the log tells of.
const PATH: &str = "/bot/v1/messages/send";
/// Where the token comes from: arguments can be read by everybody on the machine.
const TOKEN: &str = "HUB_APP_TOKEN";

impl Reach {
    /// Accepts a text of an app into the outbox: `message_id`, `trace_id`, `status`.
    ///
    /// # Errors
    /// `NOT_FOUND` for an app that is not on the bot, `FORBIDDEN` for one that may not send; on a server also a missing
    /// token, or one of another app.
    pub async fn send_as_app(&self, place: AppPlace, to: String, content: String) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => by_operator(hub, place, to, content).await,
            Self::Remote(remote) => {
                let installation = self.installation(place).await?;
                let token = token(&installation["app_token_prefix"])?;
                let body = json!({ "to_user_id": to, "content": content });
                let mut sent = remote.as_app(token)?.bot_api(PATH, &body).await?;
                sent["status"] = "queued".into();
                Ok(sent)
            }
        }
    }
}

/// The token in the environment, when it is the one that the bot's list shows.
fn token(shown: &Value) -> Result<Secret, Failure> {
    let rotate = "a lost one is replaced by hub-cli apps rotate-token";
    let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty()).ok_or_else(|| {
        Failure::usage(format!("--via-app: a server wants the app's token in {TOKEN}")).with_hint(rotate)
    })?;
    let token = Secret::new(token);
    if *shown != token_prefix(&token.last4()) {
        return Err(Failure::usage(format!("--via-app: {TOKEN} is not the app's token on this bot"))
            .with_hint(rotate));
    }
    Ok(token)
}

/// On files the operator acts for the app; the call stands in the app's log as if it had come over the bot API.
async fn by_operator(hub: &Hub, place: AppPlace, to: String, content: String) -> Result<Value, Failure> {
    let app = hub.apps().acting(&Actor::Operator, place.bot, place.app).await?;
    let watch = Stopwatch::start();
    let request_body = json!({ "to_user_id": to, "content": content }).to_string();
    let new = NewSend { to_user_id: Some(to), content, ..NewSend::default() };
    let Sent { message_id, trace_id, status, .. } = hub.bots().send(&app, place.bot, new, None).await?;
    let answer = json!({ "message_id": message_id, "trace_id": trace_id });
    hub.apps().note_call(NewAppCall {
        installation_id: app.app()?.installation_id,
        trace_id: Some(trace_id),
        method: "POST".to_owned(),
        path: PATH.to_owned(),
        request_body,
        status: 200,
        response_body: answer.to_string(),
        duration_ms: u64::try_from(watch.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    Ok(json!({ "message_id": message_id, "trace_id": trace_id, "status": status }))
}
