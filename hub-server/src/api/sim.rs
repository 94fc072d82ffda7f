//! The simulated network of this process: users write to their own bots as people do, see what their bots sent, and
//! configure the receiver of the demo.

use hub_core::{
    Error, ErrorCode, Hub,
    demo::{Behaviour, MAX_TEXT, Playground, ReceiverState},
    id::{BindId, BotId},
    network::sim::Outbound,
    openapi::Api,
};
use poem::web::Data;
use poem_openapi::{OpenApi, param::Path};

use super::Tag;
use crate::{
    AppSettings,
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    wire::{Body, Text},
};

/// The simulated network.
#[derive(Debug, Clone, Copy)]
pub struct SimApi;

// The limit of the schema below.
const _: () = assert!(MAX_TEXT == 4_000);

/// A message to a bot of the simulated network.
#[derive(Debug, Api)]
#[api(input, example = {
    "from": "ann",
    "text": "order 42"
})]
pub struct SimWrite {
    /// Text of the message.
    pub text: Text<1, 4000>,
    /// The sender: a name or an id; the owner of the bot's account if absent.
    pub from: Option<Text<1, 100>>,
}

/// A scan of the code of a bind.
#[derive(Debug, Api)]
#[api(input, example = {
    "from": "cleo"
})]
pub struct SimScan {
    /// Who scans: a name or an id; a new person if absent.
    pub from: Option<Text<1, 100>>,
}

/// A message that a person of the simulated network wrote.
#[derive(Debug, Api)]
#[api(example = {
    "network_id": "7001"
})]
pub struct SimWritten {
    /// Id of the message on the simulated network.
    pub network_id: String,
}

/// What a bot sent on the simulated network.
#[derive(Debug, Api)]
pub struct SimOutbox {
    /// The newest 100 messages, oldest first.
    pub messages: Vec<Outbound>,
}

/// A new behaviour of the receiver.
#[derive(Debug, Api)]
#[api(input, example = {
    "mode": "fail",
    "times": 3
})]
pub struct SetSimReceiver {
    /// The behaviour.
    pub mode: Behaviour,
    /// Number of requests after which the receiver responds normally again; until the next change if absent.
    #[api(range = 1..=1000)]
    pub times: Option<u32>,
}

/// The simulator of this process.
pub(crate) fn playground(settings: &AppSettings) -> hub_core::Result<&Playground> {
    settings.playground.as_ref().ok_or_else(|| {
        Error::new(ErrorCode::NotFound, "this process does not run the simulated network")
            .with_hint("start hub-server in development, without another address of the simulator")
    })
}

#[OpenApi(tag = "Tag::Bots")]
impl SimApi {
    /// Writes to a bot as a person of the simulated network
    ///
    /// Only for bots of the network `sim`, in a process that runs the simulator; otherwise 404.
    #[oai(path = "/api/bots/:id/sim/messages", method = "post", operation_id = "sendSimMessage")]
    async fn write(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        user: User,
        id: Path<BotId>,
        body: Body<SimWrite>,
    ) -> ApiResult<SimWritten> {
        let SimWrite { text, from } = body.0;
        let playground = playground(&settings)?;
        let network_id = playground.write(&hub, &user.0, id.0, from.as_deref(), &text).await?;
        ok(SimWritten { network_id })
    }

    /// Scans the code of a bind as a person of the simulated network
    ///
    /// Does what the phone does: it scans the code and confirms the login. The bind continues with its next confirm.
    /// Only for binds of the network `sim`, in a process that runs the simulator; otherwise 404. `CONFLICT` if the bind
    /// does not wait for a scan.
    #[oai(path = "/api/binds/:id/sim/scan", method = "post", operation_id = "scanSimBind")]
    async fn scan(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        user: User,
        id: Path<BindId>,
        body: Body<SimScan>,
    ) -> ApiResult<Empty> {
        playground(&settings)?.scan(&hub, &user.0, id.0, body.0.from.as_deref()).await?;
        ok(Empty {})
    }

    /// Shows what a bot sent on the simulated network
    ///
    /// Only for bots of the network `sim`, in a process that runs the simulator; otherwise 404.
    #[oai(path = "/api/bots/:id/sim/outbound", method = "get", operation_id = "getSimOutbound")]
    async fn outbound(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        user: User,
        id: Path<BotId>,
    ) -> ApiResult<SimOutbox> {
        let sent = playground(&settings)?.outbound(&hub, &user.0, id.0).await?;
        ok(SimOutbox { messages: sent })
    }

    /// Shows the receiver of the demo
    ///
    /// What it does, and the last requests with the result of the signature check. For administrators and the owner of
    /// the demo's bot, in a process that runs the simulator; otherwise 404.
    #[oai(path = "/api/sim/receiver", method = "get", operation_id = "getSimReceiver")]
    async fn receiver(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        user: User,
    ) -> ApiResult<ReceiverState> {
        ok(playground(&settings)?.receiver(&hub, &user.0).await?)
    }

    /// Configures the receiver of the demo
    ///
    /// For administrators and the owner of the demo's bot, in a process that runs the simulator; otherwise 404.
    #[oai(path = "/api/sim/receiver", method = "put", operation_id = "setSimReceiver")]
    async fn set_receiver(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        user: User,
        body: Body<SetSimReceiver>,
    ) -> ApiResult<ReceiverState> {
        let SetSimReceiver { mode, times } = body.0;
        ok(playground(&settings)?.behave(&hub, &user.0, mode, times).await?)
    }
}

#[cfg(test)]
mod tests {
    use poem::http::Method;
    use serde_json::json;

    use crate::testing::App;

    #[tokio::test]
    async fn a_process_without_the_simulator_reports_that() {
        let app = App::new().await;
        let ada = app.user("ada").await;
        let bot = hub_core::id::BotId::from_u128(1);
        for reply in [
            ada.post(&format!("/api/bots/{bot}/sim/messages"), &json!({ "text": "hello" })).await,
            ada.get(&format!("/api/bots/{bot}/sim/outbound")).await,
            ada.get("/api/sim/receiver").await,
        ] {
            let error = reply.error(404, "NOT_FOUND");
            assert_eq!(error["message"], "this process does not run the simulated network");
        }
    }

    #[tokio::test]
    async fn the_owner_of_a_simulated_bot_writes_as_a_person_and_configures_the_receiver() {
        let (app, simulator) = App::with_playground().await;
        let ada = app.user("ada").await;
        let eve = app.user("eve").await;
        let started = ada.post("/api/bots/bind/start", &json!({ "network": "sim" })).await;
        let code = started.data()["qr_text"].as_str().unwrap();
        simulator.scan(code).unwrap();
        simulator.confirm(code, Some("ada@im.wechat")).unwrap();
        let bind = json!({ "bind_id": started.data()["bind_id"], "wait_ms": 1000 });
        let bound = ada.post("/api/bots/bind/confirm", &bind).await;
        let path = format!("/api/bots/{}/sim", bound.data()["bot"]["id"].as_str().unwrap());

        let written = ada.post(&format!("{path}/messages"), &json!({ "text": "hi", "from": "ann" })).await;
        assert!(!written.data()["network_id"].as_str().unwrap().is_empty());
        let contacts = simulator.contacts(None);
        assert!(
            contacts.iter().any(|contact| format!("{contact:?}").contains("ann@im.wechat")),
            "{contacts:?}"
        );
        assert_eq!(*ada.get(&format!("{path}/outbound")).await.data(), json!({ "messages": [] }));
        eve.get(&format!("{path}/outbound")).await.error(404, "NOT_FOUND");

        let set = json!({ "mode": "fail", "times": 2 });
        let put = async |caller: &crate::testing::Caller<'_>| {
            caller.send(Method::PUT, "/api/sim/receiver", |request| request.body_json(&set)).await
        };
        assert_eq!(*put(&ada).await.data(), json!({ "mode": "fail", "times": 2, "requests": [] }));
        assert_eq!(ada.get("/api/sim/receiver").await.data()["mode"], "fail");
        put(&eve).await.error(404, "NOT_FOUND");
    }
}
