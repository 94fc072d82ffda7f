//! The faults in force, and their match with requests.

use std::time::Duration;

use serde::Serialize;

use super::{Action, Fault};
use crate::{
    error::{Error, Result},
    network::server::Endpoint,
    time::Timestamp,
};

/// A fault in force.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultStatus {
    /// Number, by which it can be deleted.
    pub id: u64,
    /// Requests it hit.
    pub hits: u32,
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
}

/// Stage at which faults are matched with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::adapters::network::sim) enum Stage {
    Early,
    /// With its answer ready, which carries so many messages.
    Late {
        messages: usize,
    },
}

/// Properties of a request that faults are matched with.
pub(in crate::adapters::network::sim) struct Subject<'a> {
    pub endpoint: Endpoint,
    pub wx_id: Option<&'a str>,
    pub user: Option<&'a str>,
}

/// The faults in force, in the order in which they were added.
#[derive(Default)]
pub(in crate::adapters::network::sim) struct Faults {
    armed: Vec<Armed>,
    last_id: u64,
}

struct Armed {
    status: FaultStatus,
    skipped: u32,
    /// End of the refusal of sends, and length of the last penalty.
    penalty: Option<(Timestamp, Duration)>,
}

impl Faults {
    /// Adds faults, all or none, and answers their numbers.
    pub(in crate::adapters::network::sim) fn add(
        &mut self,
        faults: Vec<Fault>,
        cap: usize,
    ) -> Result<Vec<u64>> {
        let faults = faults.into_iter().map(Fault::checked).collect::<Result<Vec<_>>>()?;
        if self.armed.len() + faults.len() > cap {
            return Err(Error::conflict("too many active faults"));
        }
        let add = |fault| {
            self.last_id += 1;
            let status = FaultStatus { id: self.last_id, hits: 0, fault };
            self.armed.push(Armed { status, skipped: 0, penalty: None });
            self.last_id
        };
        Ok(faults.into_iter().map(add).collect())
    }

    /// Deletes one fault, or all.
    pub(in crate::adapters::network::sim) fn remove(&mut self, id: Option<u64>) {
        self.armed.retain(|armed| id.is_some_and(|id| armed.status.id != id));
    }

    pub(in crate::adapters::network::sim) fn list(&self) -> Vec<FaultStatus> {
        self.armed.iter().map(|armed| armed.status.clone()).collect()
    }

    /// Whether an answer needs to be checked for [`Stage::Late`].
    pub(in crate::adapters::network::sim) fn any_late(&self) -> bool {
        self.armed.iter().any(|armed| armed.status.fault.action.is_late())
    }

    /// The fault that hits a request, counted as such.
    pub(in crate::adapters::network::sim) fn take(
        &mut self,
        stage: Stage,
        subject: &Subject<'_>,
        now: Timestamp,
    ) -> Option<Fault> {
        let mut index = 0;
        while let Some(armed) = self.armed.get_mut(index) {
            if !armed.matches(stage, subject) {
                index += 1;
            } else if armed.skipped < armed.status.fault.skip {
                armed.skipped += 1;
                index += 1;
            } else if armed.penalty.is_some_and(|(until, _)| until <= now) {
                // The penalty was waited for.
                self.armed.remove(index);
            } else {
                let fault = armed.hit(now);
                if armed.is_used_up() {
                    self.armed.remove(index);
                }
                return Some(fault);
            }
        }
        None
    }
}

impl Armed {
    fn matches(&self, stage: Stage, subject: &Subject<'_>) -> bool {
        let fault = &self.status.fault;
        let in_stage = match stage {
            Stage::Early => !fault.action.is_late(),
            Stage::Late { messages } => {
                let least = fault.action.least_messages().max(usize::from(fault.only_with_messages));
                let polls = subject.endpoint == Endpoint::GetUpdates;
                fault.action.is_late() && (!polls || messages >= least)
            }
        };
        in_stage
            && fault.endpoint.is_none_or(|endpoint| endpoint == subject.endpoint)
            && fault.wx_id.as_deref().is_none_or(|wx_id| subject.wx_id == Some(wx_id))
            && fault.user.as_deref().is_none_or(|user| subject.user == Some(user))
    }

    fn hit(&mut self, now: Timestamp) -> Fault {
        self.status.hits = self.status.hits.saturating_add(1);
        if let Action::RateLimit { penalty_ms } = self.status.fault.action {
            let first = Duration::from_millis(penalty_ms);
            let length = self.penalty.map_or(first, |(_, length)| length.saturating_mul(2));
            self.penalty = Some((now + length, length));
        }
        self.status.fault.clone()
    }

    fn is_used_up(&self) -> bool {
        self.penalty.is_none() && self.status.fault.count.is_some_and(|count| self.status.hits >= count)
    }
}
