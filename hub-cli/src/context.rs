//! The context of a command: its output, and the hubs that it opens.

use std::sync::{Mutex, PoisonError};

use hub_core::Hub;

use crate::{args::HubArgs, client::Client, exit::Failure, printer::Printer};

/// The context of a command.
#[derive(Debug)]
pub struct Context {
    pub printer: Printer,
    /// Whether the files are used although a server is named.
    pub local: bool,
    /// Hubs whose files are open.
    open: Mutex<Vec<Hub>>,
}

impl Context {
    pub fn new(printer: Printer, local: bool) -> Self {
        Self { printer, local, open: Mutex::default() }
    }

    /// Opens the hub of these arguments, until the command ends.
    pub async fn hub(&self, args: &HubArgs) -> Result<Client, Failure> {
        let client = Client::open(args, self.local).await?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.extend(client.hub().cloned());
        drop(open);
        Ok(client)
    }

    /// Closes the files of the hubs.
    pub async fn close(self) {
        for hub in self.open.into_inner().unwrap_or_else(PoisonError::into_inner) {
            hub.shutdown().await;
        }
    }
}
