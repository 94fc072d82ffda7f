//! The secret state of a login in progress, sealed in its row.

use serde::Deserialize;
use serde_json::json;

use crate::{
    error::{Error, Result},
    id::{BindId, BotId},
    model::bot::StoredBind,
    network::LoginPrompt,
    secret::{Sealed, Sealer, Secret},
};

/// The private part of a login in progress.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Notes {
    /// The code to scan.
    pub qr_text: Secret,
    /// The network's own notes.
    pub state: Secret,
    /// The bots whose tokens were sent to the network, newest first.
    pub known: Vec<BotId>,
    /// Shown with the status.
    pub reason: Option<String>,
}

impl Notes {
    /// State of a new code.
    pub fn new(prompt: &LoginPrompt, known: Vec<BotId>) -> Self {
        Self { qr_text: prompt.qr_text.clone(), state: prompt.state.0.clone(), known, reason: None }
    }

    /// State of an ended login, without secrets.
    pub fn ended(reason: Option<String>) -> Self {
        Self { qr_text: Secret::new(""), state: Secret::new(""), known: Vec::new(), reason }
    }

    pub fn seal(&self, sealer: &Sealer, id: BindId) -> Sealed {
        let text = json!({
            "qr_text": self.qr_text.expose(),
            "state": self.state.expose(),
            "known": self.known,
            "reason": self.reason,
        });
        sealer.seal(&place(id), &Secret::new(text.to_string()))
    }

    pub fn open(sealer: &Sealer, bind: &StoredBind) -> Result<Self> {
        let text = sealer.open(&place(bind.id), &bind.private)?;
        // The error is dropped, because it may quote the text.
        serde_json::from_str(text.expose())
            .map_err(|_| Error::internal(format!("the notes of {} do not parse", bind.id)))
    }
}

fn place(id: BindId) -> String {
    format!("binds.private:{id}")
}
