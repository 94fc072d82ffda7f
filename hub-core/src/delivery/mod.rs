//! The way of a message, in order:
//!
//! 1. [`poller`](self): a bot's network is asked for what is new.
//! 2. `inbox`: `routing` decides where each message goes; messages, their deliveries and the cursor are committed in one transaction.
//! 3. [`lanes`]: deliveries wait in order per conversation, channels take turns.
//! 4. `worker`: one attempt, through the typed stages of [`stage`] to a [`sink`], signed last; or by a model.
//! 5. `conclusion`: what follows from it is committed at once: state, [trace](crate::traces), replies.
//! 6. `outbox`: replies and sends go to the network, in order per person.
//!
//! In addition, `apps` delivers events to installed apps from the store, independently; sockets of apps [pull them
//! from there](crate::apps::sockets), and `tools` calls apps for models.
//!
//! What is not in memory is in the store: `backlog` loads it, whatever the reason it was left there.

pub use crate::signing;

mod apps;
mod backlog;
mod bot;
pub(crate) mod channels;
mod conclusion;
mod hints;
pub mod hooks;
mod inbox;
pub mod job;
pub mod lanes;
mod media;
pub mod node;
mod outbox;
pub mod payload;
pub mod ping;
pub(crate) mod plugins;
mod poller;
pub mod redact;
mod renewal;
mod replies;
pub mod retention;
pub mod retry;
mod routing;
pub mod sink;
pub mod stage;
pub(crate) mod tools;
pub mod work_store;
mod worker;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
