//! The delivery pipeline, in order:
//!
//! 1. `poller`: requests what is new from a bot's network.
//! 2. `inbox`: `routing` decides where each message goes; messages, their deliveries and the cursor are committed in
//!    one transaction.
//! 3. `queue`: deliveries wait in `lanes`, in order per conversation; channels take turns.
//! 4. `worker`: one attempt, through the typed stages of `stage` to a `sink`, signed last; or by a model.
//! 5. `conclusion`: the outcome is committed at once: state, [trace](crate::traces), replies.
//! 6. `outbox`: replies and sends go to the network, in order per person.
//!
//! `supervisor` creates these parts, each with what it needs, and runs them for the `bots` whose leases the node
//! holds; `handover` gives these leases away. What is not in memory is in the store: `backlog` loads it, whatever the reason it was left there.
//!
//! An event for an app takes the same way as a message to a channel. In addition, sockets of apps [pull events from the
//! store](crate::apps::sockets), and `tools` calls apps for models.

pub use self::{response_reply::ResponseReply, stage::Outcome};
pub use crate::{redact, signing};

mod app_reply;
mod backlog;
mod bot;
mod bots;
pub(crate) mod channels;
mod conclusion;
mod handover;
mod hints;
mod hooks;
mod inbox;
mod job;
mod lanes;
mod media;
pub mod model_trial;
mod names;
mod outbox;
pub mod ping;
pub(crate) mod plugins;
mod poller;
mod queue;
mod replies;
mod response_reply;
pub mod retention;
pub mod retry;
mod routing;
mod shared_clock;
mod sink;
mod stage;
pub(crate) mod supervisor;
pub(crate) mod tools;
mod work_store;
mod worker;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
