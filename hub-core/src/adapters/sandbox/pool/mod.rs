//! Queue of runs. A bounded number of slots, which waiting tenants take in turns.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::{
    SandboxFault,
    hook::{HookInput, HookOutcome, Source},
    process::Worker,
};
use crate::time::Timestamp;

#[cfg(test)]
mod tests;

/// Maximum number of trusted tenants that are remembered.
const MAX_TRUSTED: usize = 4_096;
/// Maximum number of runs that are made together.
const MAX_TOGETHER: usize = 16;

/// The slots and the idle workers.
#[derive(Debug)]
pub(super) struct Pool {
    slots: usize,
    queue: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Waiting runs by tenant; a waiting tenant occurs once in `turns`.
    waiting: HashMap<String, VecDeque<Waiting>>,
    turns: VecDeque<String>,
    waiting_in_all: usize,
    taken: usize,
    /// Slots taken by tenants who are not trusted.
    taken_on_trial: usize,
    /// Tenants whose last run ended in time. The others share half of the slots, so that plugins that hang leave
    /// room for plugins that do not.
    trusted: HashSet<String>,
    idle: Vec<Worker>,
    /// Whether a spare worker is being started.
    starting: bool,
    closed: bool,
}

/// Result of waiting in the queue.
#[derive(Debug)]
pub(super) enum Turn {
    /// The right to run.
    Slot(Slot),
    /// Its outcome and the time it began: another run of the same source and tenant included it.
    Ran(Box<HookOutcome>, Timestamp),
    /// No outcome: the run was to be made together with others, which failed. It has to wait again.
    Alone,
}

/// A waiting run that another run may include.
#[derive(Debug, Clone)]
pub(super) struct Offer {
    /// Hash of its source.
    pub(super) source: [u8; 32],
    pub(super) input: Arc<HookInput>,
}

#[derive(Debug)]
struct Waiting {
    turn: oneshot::Sender<Turn>,
    offer: Option<Offer>,
}

impl Waiting {
    fn may_join(&self, source: &[u8; 32]) -> bool {
        self.offer.as_ref().is_some_and(|offer| offer.source == *source)
    }
}

/// Waiting runs that are made together with another one. Runs without an outcome wait again.
#[derive(Debug, Default)]
pub(super) struct Joined(VecDeque<Waiting>);

impl Joined {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn inputs(&self) -> impl Iterator<Item = &HookInput> {
        self.0.iter().filter_map(|waiting| Some(&*waiting.offer.as_ref()?.input))
    }

    /// Hands the outcomes to the first runs. All of them began at this time.
    pub(super) fn ran(mut self, outcomes: impl IntoIterator<Item = HookOutcome>, began: Timestamp) {
        for outcome in outcomes {
            let Some(first) = self.0.pop_front() else { return };
            // The receiver is gone when the caller stopped waiting.
            let _ = first.turn.send(Turn::Ran(Box::new(outcome), began));
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        for waiting in self.0.drain(..) {
            let _ = waiting.turn.send(Turn::Alone);
        }
    }
}

/// The right to run on one worker at a time. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct Slot {
    pool: Arc<Pool>,
    tenant: String,
    on_trial: bool,
}

impl Pool {
    pub(super) fn new(slots: usize, queue: usize) -> Arc<Self> {
        Arc::new(Self { slots: slots.max(1), queue, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot, or until a run with a slot includes this one.
    ///
    /// # Errors
    /// `Busy` when too many runs wait, in total or of this tenant; `Closed`.
    pub(super) async fn turn(
        self: &Arc<Self>,
        tenant: &str,
        offer: Option<Offer>,
    ) -> Result<Turn, SandboxFault> {
        let given = {
            let mut state = self.lock();
            if state.closed {
                return Err(SandboxFault::Closed);
            }
            if state.admits(tenant, self.slots) {
                return Ok(Turn::Slot(state.take(self, tenant)));
            }
            let share = (self.queue / 4).max(1);
            let mine = state.waiting.get(tenant).map_or(0, VecDeque::len);
            if state.waiting_in_all >= self.queue || mine >= share {
                return Err(SandboxFault::Busy);
            }
            state.enqueue(tenant, offer)
        };
        given.await.map_err(|_| SandboxFault::Closed)
    }

    /// Takes waiting runs of the slot's tenant and this source, at most an equal share per slot, because the other
    /// slots can make the rest. Takes none while the tenant is not trusted.
    pub(super) fn join(&self, slot: &Slot, source: &[u8; 32]) -> Joined {
        let mut state = self.lock();
        let Some(line) = state.waiting.get_mut(&slot.tenant).filter(|_| !slot.on_trial) else {
            return Joined::default();
        };
        let matching = line.iter().filter(|waiting| waiting.may_join(source)).count();
        let room = matching.div_ceil(self.slots).min(MAX_TOGETHER - 1);
        let (mut joined, mut others) = (VecDeque::new(), VecDeque::new());
        for waiting in line.drain(..) {
            let joins = joined.len() < room && waiting.may_join(source);
            if joins { &mut joined } else { &mut others }.push_back(waiting);
        }
        *line = others;
        if line.is_empty() {
            state.waiting.remove(&slot.tenant);
            state.turns.retain(|tenant| *tenant != slot.tenant);
        }
        state.waiting_in_all -= joined.len();
        Joined(joined)
    }

    /// Takes an idle worker for a source: the one used last, whose memory is warm.
    pub(super) fn idle(&self, source: &Source) -> Option<Worker> {
        let mut state = self.lock();
        let at = state.idle.iter().rposition(|worker| worker.suits(source));
        // Without a match, one idle worker is dropped to make room for a new one.
        at.map(|at| state.idle.remove(at)).or_else(|| {
            state.idle.pop();
            None
        })
    }

    /// Keeps a worker for the next run if it can be used again. Returns whether it was kept.
    pub(super) fn keep(&self, worker: Worker) -> bool {
        let mut state = self.lock();
        let keeps = !state.closed && worker.is_sound() && state.idle.len() < self.slots;
        if keeps {
            state.idle.push(worker);
        }
        keeps
    }

    /// Reserves the start of a spare worker. `None` while a worker is idle or another spare one is starting.
    pub(super) fn spare(self: &Arc<Self>) -> Option<Spare> {
        let mut state = self.lock();
        if state.closed || state.starting || !state.idle.is_empty() {
            return None;
        }
        state.starting = true;
        Some(Spare(Arc::clone(self)))
    }

    pub(super) fn idle_workers(&self) -> Vec<u32> {
        self.lock().idle.iter().filter_map(Worker::id).collect()
    }

    /// Rejects waiting runs and ends the idle workers. The other workers end after their run.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.idle.clear();
        state.waiting.clear();
        state.turns.clear();
        state.waiting_in_all = 0;
    }

    /// Hands free slots to waiting runs.
    fn give(self: &Arc<Self>) {
        loop {
            // A slot whose receiver is gone is dropped here and locks the state again, so the lock must be free.
            let _refused = {
                let mut state = self.lock();
                let Some((tenant, waiting)) = state.next(self.slots) else { return };
                let slot = state.take(self, &tenant);
                waiting.turn.send(Turn::Slot(slot)).err()
            };
        }
    }
}

pub(super) struct Spare(Arc<Pool>);

impl Spare {
    /// Adds the started worker to the idle ones.
    pub(super) fn done(self, worker: Worker) {
        self.0.keep(worker);
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.0.lock().starting = false;
    }
}

impl State {
    fn admits(&self, tenant: &str, slots: usize) -> bool {
        let room_on_trial = self.taken_on_trial < (slots / 2).max(1);
        self.taken < slots && (self.trusted.contains(tenant) || room_on_trial)
    }

    fn take(&mut self, pool: &Arc<Pool>, tenant: &str) -> Slot {
        let on_trial = !self.trusted.contains(tenant);
        self.taken += 1;
        self.taken_on_trial += usize::from(on_trial);
        Slot { pool: Arc::clone(pool), tenant: tenant.to_owned(), on_trial }
    }

    fn enqueue(&mut self, tenant: &str, offer: Option<Offer>) -> oneshot::Receiver<Turn> {
        let (turn, receiver) = oneshot::channel();
        let line = self.waiting.entry(tenant.to_owned()).or_default();
        if line.is_empty() {
            self.turns.push_back(tenant.to_owned());
        }
        line.push_back(Waiting { turn, offer });
        self.waiting_in_all += 1;
        receiver
    }

    /// Removes and returns the first waiting run of the next tenant that may run now.
    fn next(&mut self, slots: usize) -> Option<(String, Waiting)> {
        let at = self.turns.iter().position(|tenant| self.admits(tenant, slots))?;
        let tenant = self.turns.remove(at)?;
        let line = self.waiting.get_mut(&tenant)?;
        let waiting = line.pop_front()?;
        self.waiting_in_all -= 1;
        if line.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.turns.push_back(tenant.clone());
        }
        Some((tenant, waiting))
    }
}

impl Slot {
    /// Records whether the tenant's run ended in time and left its worker usable.
    pub(super) fn judge(&self, well: bool) {
        let mut state = self.pool.lock();
        if !well {
            state.trusted.remove(&self.tenant);
        } else if !state.trusted.contains(&self.tenant) {
            if state.trusted.len() >= MAX_TRUSTED {
                state.trusted.clear();
            }
            state.trusted.insert(self.tenant.clone());
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        {
            let mut state = self.pool.lock();
            state.taken -= 1;
            state.taken_on_trial -= usize::from(self.on_trial);
        }
        self.pool.give();
    }
}
