//! Connections between the parts of the demo.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, request::Parts};

use super::{AppMock, Behaviour, DemoReceiver, MOCK_PATH, NETWORK, Playground, renew_logins};
use crate::{
    egress::{Egress, EgressConfig},
    error::{Error, Result},
    hub::Hub,
    local_http::{Cut, LocalService},
    network::{
        ilink::{IlinkConfig, IlinkNetwork},
        sim::{SIM_HOST, Simulator},
    },
    random::Random,
    time::Clock,
};

/// The connector of the network `sim` for a simulator in this process. Nothing else of the hub reaches the
/// simulator this way: its control API is no target for a webhook.
///
/// # Errors
/// `INTERNAL_ERROR` when no HTTP client can be made.
pub fn connector(simulator: &Simulator, clock: Clock, random: Random) -> Result<IlinkNetwork> {
    connector_with(simulator, IlinkConfig::default(), clock, random)
}

/// As [`connector`], with other settings than the default; its addresses are the simulator's in any case.
///
/// # Errors
/// As [`connector`].
pub fn connector_with(
    simulator: &Simulator,
    settings: IlinkConfig,
    clock: Clock,
    random: Random,
) -> Result<IlinkNetwork> {
    let mut egress = EgressConfig::default();
    egress.in_process.insert(SIM_HOST.to_owned(), std::sync::Arc::new(simulator.clone()));
    let url = |path: &str| format!("http://{SIM_HOST}/{path}").parse().map_err(Error::internal);
    let config = IlinkConfig { login_base_url: url("")?, cdn_base_url: url("c2c")?, ..settings };
    IlinkNetwork::new(NETWORK, config, &Egress::new(egress)?, clock, random)
}

impl DemoListener {
    /// Returns the parts that the users of the hub can use.
    pub fn playground(&self) -> Playground {
        Playground { simulator: self.simulator.clone(), receiver: self.receiver.clone() }
    }
}

/// The second port of a development server: the simulator, the receiver under `/receiver/`, and the test bed for
/// apps under `/mock/`.
#[derive(Debug, Clone)]
pub struct DemoListener {
    /// The simulator.
    pub simulator: Simulator,
    /// The receiver.
    pub receiver: DemoReceiver,
    /// The hub whose bots live in this simulator. A reset forgets their accounts like everything else, and then they
    /// are bound again as after a restart, so that the demo works after a reset.
    pub hub: Option<Hub>,
    /// The test bed for apps, in development.
    pub mock: Option<AppMock>,
}

impl DemoListener {
    fn is_for_receiver(path: &str) -> bool {
        path.starts_with("/receiver/")
    }

    async fn start_over(&self) {
        self.receiver.behave(Behaviour::default(), None);
        if let Some(mock) = &self.mock {
            mock.start_over().await;
        }
        let Some(hub) = &self.hub else { return };
        if let Err(error) = renew_logins(hub, &self.simulator).await {
            tracing::warn!(%error, "not every simulated bot could be logged in again");
        }
    }
}

#[async_trait]
impl LocalService for DemoListener {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let path = request.uri().path();
        if Self::is_for_receiver(path) {
            self.receiver.call(request).await
        } else if let Some(mock) = self.mock.as_ref().filter(|_| path.starts_with(MOCK_PATH)) {
            mock.call(request).await
        } else {
            let resets = Simulator::is_reset(&request);
            let answer = self.simulator.call(request).await?;
            if resets {
                self.start_over().await;
            }
            Ok(answer)
        }
    }

    fn max_body(&self, head: &Parts) -> usize {
        if Self::is_for_receiver(head.uri.path()) {
            self.receiver.max_body(head)
        } else {
            self.simulator.max_body(head)
        }
    }
}
