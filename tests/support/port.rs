//! A receiver of webhooks on a real port, which can be closed and opened again.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use hub_core::{
    local_http::{self, Limits},
    tasks::Tasks,
    time::Clock,
};
use tokio::net::TcpListener;

use super::receiver::Receiver;

/// The receiver and its port.
#[derive(Debug)]
pub struct ReceiverPort {
    pub receiver: Receiver,
    pub address: SocketAddr,
    server: Option<Tasks>,
}

impl ReceiverPort {
    /// Opens a port.
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut port = Self { receiver: Receiver::new(Clock::system()), address, server: None };
        port.serve(listener);
        port
    }

    fn serve(&mut self, listener: TcpListener) {
        let tasks = Tasks::new();
        let limits = Limits { drain: Duration::from_millis(1), ..Limits::default() };
        let service = Arc::new(self.receiver.clone());
        tasks.spawn("receiver", local_http::serve(listener, service, limits, tasks.clone()));
        self.server = Some(tasks);
    }

    /// Closes the port: connections are refused.
    pub async fn close(&mut self) {
        if let Some(tasks) = self.server.take() {
            tasks.stop();
            assert!(tasks.wait(&Clock::system(), Duration::from_secs(10)).await);
        }
    }

    /// Opens the same port again.
    pub async fn reopen(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.serve(listener);
    }

    /// The contents of the messages that came.
    pub fn contents(&self) -> Vec<String> {
        let text = |body: serde_json::Value| body["content"].as_str().unwrap_or_default().to_owned();
        self.receiver.received().iter().map(|one| text(one.json())).collect()
    }
}
