//! Recorded deliveries, sent again: one or ten thousand, through the hub or straight to a URL.
//!
//! A [`Recording`] is a trace with its message, as `hub-cli traces export` writes it. Recordings are read as a stream
//! and not collected. A [`Carrier`] sends one of them again; [`Replay`] drives the carrier at the requested rate and
//! concurrency, and reports each recording when it is complete.
//!
//! ```
//! # use hub_core::{egress::{Egress, EgressConfig}, replay::*, time::Clock};
//! # async fn again(recordings: Vec<Recording>) -> hub_core::Result<()> {
//! let egress = Egress::new(EgressConfig::default())?;
//! let target = egress.check_url("https://example.com/hook")?;
//! let (clock, stop) = (Clock::system(), Stop::default());
//! let carrier = ToUrl::new(egress, Some(target), Mode::AsRecorded, clock.clone());
//! let source = futures_util::stream::iter(recordings.into_iter().map(Ok::<_, std::convert::Infallible>));
//! let replay = Replay { concurrency: 4, compare: true, ..Replay::default() };
//! let summary = replay.run(source, &carrier, &clock, &stop, |report, _| {
//!     println!("{} {:?}", report.trace_id, report.outcome);
//! });
//! assert_eq!(summary.await.totals.failed, 0);
//! # Ok(())
//! # }
//! ```

mod carrier;
pub mod case;
mod compare;
mod fakes;
mod message;
mod plugins;
mod recording;
mod report;
mod run;
#[cfg(test)]
mod tests;
mod through_hub;
mod to_url;

pub use carrier::{Carried, Carrier, NotSent};
pub use compare::Differences;
pub use fakes::Fakes;
pub use message::RecordedMessage;
pub use plugins::Script;
pub use recording::{RecordedRequest, RecordedResponse, Recording};
pub use report::{Outcome, Report, Totals};
pub use run::{End, Replay, Stop, Summary};
pub use through_hub::{AsActor, ReplayingHub, ThroughHub};
pub use to_url::{Mode, ToUrl};
