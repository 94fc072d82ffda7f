//! The bodies of requests that are not stored with their steps, as they are the payload of the message.

use std::collections::HashMap;

use super::Traces;
use crate::{
    error::Result, id::MessageId, model::trace::Trace, payload, redact::Redactor, secret::Sealer,
    store::deliveries::JobMessage,
};

impl Traces<'_> {
    /// Makes the bodies of requests as they were sent, with what is secret masked. A body of which this version of the
    /// program makes another one is left out.
    pub(super) async fn make_bodies(&self, traces: &mut [Trace]) -> Result<()> {
        let needs_body =
            |trace: &&mut Trace| trace.steps.iter().any(|step| step.detail.payload_crc.is_some());
        let mut traces: Vec<&mut Trace> = traces.iter_mut().filter(needs_body).collect();
        if traces.is_empty() {
            return Ok(());
        }
        let ids: Vec<MessageId> = traces.iter().map(|trace| trace.message_id).collect();
        let messages = self.ctx.store.read().await?.messages().for_sinks(&ids).await?;
        let messages: HashMap<MessageId, JobMessage> =
            messages.into_iter().map(|message| (message.message_id, message)).collect();
        for trace in &mut traces {
            make_body(&self.ctx.sealer, trace, messages.get(&trace.message_id));
        }
        Ok(())
    }
}

fn make_body(sealer: &Sealer, trace: &mut Trace, message: Option<&JobMessage>) {
    let place = trace.channel_id.map(|channel| (trace.bot_id, channel));
    let made = message.zip(place).and_then(|(message, place)| {
        let (text, token) = payload::of_stored(message.clone(), place, sealer).ok()?;
        let body = Redactor::new(&token, None).body(text.as_bytes());
        Some((crc32fast::hash(text.as_bytes()), body))
    });
    for detail in trace.steps.iter_mut().map(|step| &mut step.detail) {
        if let Some(crc) = detail.payload_crc.take() {
            detail.body = made.as_ref().filter(|(made, _)| *made == crc).map(|(_, body)| body.clone());
        }
    }
}
