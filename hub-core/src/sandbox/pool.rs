//! Who runs next: a bounded number of seats, taken in turns by the tenants who wait.

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

/// Tenants whose standing is remembered.
const MAX_TRUSTED: usize = 4_096;
/// Most runs that are made together.
const MAX_TOGETHER: usize = 16;

/// The seats, and the workers that wait for work.
#[derive(Debug)]
pub(super) struct Pool {
    seats: usize,
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
    /// Seats taken by tenants who are not trusted.
    taken_on_trial: usize,
    /// Tenants whose last run ended in time. The others share half of the seats, so that plugins that hang leave
    /// room for plugins that do not.
    trusted: HashSet<String>,
    idle: Vec<Worker>,
    /// Whether a spare worker is being started.
    starting: bool,
    closed: bool,
}

/// What a run that waits is given.
#[derive(Debug)]
pub(super) enum Turn {
    /// The right to be made.
    Seat(Seat),
    /// Its outcome: another run of the same source and tenant took it along, from this time.
    Ran(Box<HookOutcome>, Timestamp),
    /// Nothing: it was to be made together with others, and that failed. It waits again.
    Alone,
}

/// A run that another one may take along.
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

/// Runs that are made together with another one. Those that get no outcome wait again.
#[derive(Debug, Default)]
pub(super) struct Joined(VecDeque<Waiting>);

impl Joined {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn inputs(&self) -> impl Iterator<Item = &HookInput> {
        self.0.iter().filter_map(|waiting| Some(&*waiting.offer.as_ref()?.input))
    }

    /// Hands over the outcomes of the first ones, which began at this time.
    pub(super) fn ran(mut self, outcomes: impl IntoIterator<Item = HookOutcome>, began: Timestamp) {
        for outcome in outcomes {
            let Some(first) = self.0.pop_front() else { return };
            // Who gave up waiting needs no outcome.
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

/// The right to make runs at a time. Given back when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    pool: Arc<Pool>,
    tenant: String,
    on_trial: bool,
}

impl Pool {
    pub(super) fn new(seats: usize, queue: usize) -> Arc<Self> {
        Arc::new(Self { seats: seats.max(1), queue, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a seat, or until a run that has one takes this one along.
    ///
    /// # Errors
    /// `Busy` when too many wait, of all or of this tenant; `Closed`.
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
            if state.admits(tenant, self.seats) {
                return Ok(Turn::Seat(state.take(self, tenant)));
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

    /// Takes along waiting runs of a seat's tenant and of this source: as many as come to each seat, since what waits could
    /// be made on the others too. None while the tenant is not trusted.
    pub(super) fn join(&self, seat: &Seat, source: &[u8; 32]) -> Joined {
        let mut state = self.lock();
        let Some(line) = state.waiting.get_mut(&seat.tenant).filter(|_| !seat.on_trial) else {
            return Joined::default();
        };
        let matching = line.iter().filter(|waiting| waiting.may_join(source)).count();
        let room = matching.div_ceil(self.seats).min(MAX_TOGETHER - 1);
        let (mut joined, mut others) = (VecDeque::new(), VecDeque::new());
        for waiting in line.drain(..) {
            let joins = joined.len() < room && waiting.may_join(source);
            if joins { &mut joined } else { &mut others }.push_back(waiting);
        }
        *line = others;
        if line.is_empty() {
            state.waiting.remove(&seat.tenant);
            state.turns.retain(|tenant| *tenant != seat.tenant);
        }
        state.waiting_in_all -= joined.len();
        Joined(joined)
    }

    /// An idle worker for a source: the one that was last at work, whose memory is warm.
    pub(super) fn idle(&self, source: &Source) -> Option<Worker> {
        let mut state = self.lock();
        let at = state.idle.iter().rposition(|worker| worker.suits(source));
        // A worker that no run can use is replaced.
        at.map(|at| state.idle.remove(at)).or_else(|| {
            state.idle.pop();
            None
        })
    }

    /// Keeps a worker for the next run, unless it is of no more use; says whether it did.
    pub(super) fn keep(&self, worker: Worker) -> bool {
        let mut state = self.lock();
        let keeps = !state.closed && worker.is_sound() && state.idle.len() < self.seats;
        if keeps {
            state.idle.push(worker);
        }
        keeps
    }

    /// The right to start a worker in advance; `None` while there is one, or one is being started.
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

    /// Turns away who waits and ends the idle workers; the others end after their run.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.idle.clear();
        state.waiting.clear();
        state.turns.clear();
        state.waiting_in_all = 0;
    }

    /// Gives free seats to those who wait.
    fn give(self: &Arc<Self>) {
        loop {
            // An untaken seat releases itself, which must not happen under the lock.
            let _refused = {
                let mut state = self.lock();
                let Some((tenant, waiting)) = state.next(self.seats) else { return };
                let seat = state.take(self, &tenant);
                waiting.turn.send(Turn::Seat(seat)).err()
            };
        }
    }
}

/// A spare worker that is being started.
pub(super) struct Spare(Arc<Pool>);

impl Spare {
    /// It is there.
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
    fn admits(&self, tenant: &str, seats: usize) -> bool {
        let room_on_trial = self.taken_on_trial < (seats / 2).max(1);
        self.taken < seats && (self.trusted.contains(tenant) || room_on_trial)
    }

    fn take(&mut self, pool: &Arc<Pool>, tenant: &str) -> Seat {
        let on_trial = !self.trusted.contains(tenant);
        self.taken += 1;
        self.taken_on_trial += usize::from(on_trial);
        Seat { pool: Arc::clone(pool), tenant: tenant.to_owned(), on_trial }
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

    /// The next tenant in turn who may run now.
    fn next(&mut self, seats: usize) -> Option<(String, Waiting)> {
        let at = self.turns.iter().position(|tenant| self.admits(tenant, seats))?;
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

impl Seat {
    /// Notes whether the tenant's run ended in time and left its worker sound.
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

impl Drop for Seat {
    fn drop(&mut self) {
        {
            let mut state = self.pool.lock();
            state.taken -= 1;
            state.taken_on_trial -= usize::from(self.on_trial);
        }
        self.pool.give();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    async fn seat(pool: &Arc<Pool>, tenant: &str) -> Result<Seat, SandboxFault> {
        match pool.turn(tenant, None).await? {
            Turn::Seat(seat) => Ok(seat),
            other => panic!("{other:?}"),
        }
    }

    async fn trusted(pool: &Arc<Pool>, tenant: &str) -> Seat {
        seat(pool, tenant).await.unwrap().judge(true);
        seat(pool, tenant).await.unwrap()
    }

    fn offer(source: u8) -> Offer {
        let message = serde_json::value::to_raw_value("").unwrap();
        let request = crate::sandbox::PluginRequest {
            url: String::new(),
            method: String::new(),
            headers: std::collections::BTreeMap::new(),
            body: crate::sandbox::Body::Empty,
        };
        let input = Arc::new(HookInput::on_request(message, request));
        Offer { source: [source; 32], input }
    }

    #[tokio::test]
    async fn waiting_runs_of_one_tenant_and_source_are_made_together() {
        let pool = Pool::new(1, 100);
        let held = trusted(&pool, "a").await;
        let offers = [Some(1), Some(2), None, Some(1), Some(1)];
        let mut runs: Vec<_> =
            offers.into_iter().map(|source| Box::pin(pool.turn("a", source.map(offer)))).collect();
        runs.push(Box::pin(pool.turn("b", Some(offer(1)))));
        for run in &mut runs {
            assert!(poll!(run).is_pending());
        }
        let joined = pool.join(&held, &[1; 32]);
        assert_eq!(joined.inputs().count(), 3);
        assert!(pool.join(&held, &[1; 32]).is_empty());
        let outcome = HookOutcome { memory_bytes: 7, ..HookOutcome::default() };
        joined.ran([outcome], Timestamp::MIN);
        let mut turns = Vec::new();
        for run in &mut runs {
            turns.push(match poll!(run) {
                std::task::Poll::Ready(Ok(Turn::Ran(outcome, _))) => outcome.memory_bytes.to_string(),
                std::task::Poll::Ready(Ok(Turn::Alone)) => "alone".to_owned(),
                other => format!("{other:?}"),
            });
        }
        assert_eq!(turns, ["7", "Pending", "Pending", "alone", "alone", "Pending"]);
    }

    #[tokio::test]
    async fn a_tenant_on_trial_takes_no_runs_along_and_seats_share_them() {
        let pool = Pool::new(2, 400);
        let _held = trusted(&pool, "b").await;
        let trial = seat(&pool, "a").await.unwrap();
        let mut runs: Vec<_> = (0..40).map(|_| Box::pin(pool.turn("a", Some(offer(1))))).collect();
        for run in &mut runs {
            assert!(poll!(run).is_pending());
        }
        assert!(pool.join(&trial, &[1; 32]).is_empty());
        trial.judge(true);
        drop(trial);
        let mut seats = Vec::new();
        for run in &mut runs {
            if let std::task::Poll::Ready(Ok(Turn::Seat(seat))) = poll!(run) {
                seats.push(seat);
            }
        }
        assert_eq!(seats.len(), 1);
        let counts = [(); 4].map(|()| {
            let joined = pool.join(&seats[0], &[1; 32]);
            let count = joined.inputs().count();
            std::mem::forget(joined);
            count
        });
        assert_eq!(counts, [15, 12, 6, 3]);
    }

    #[tokio::test]
    async fn tenants_take_turns() {
        let pool = Pool::new(1, 100);
        let held = trusted(&pool, "a").await;
        let mut order = Vec::new();
        let waits = ["a", "a", "a", "b", "c", "b"];
        let mut seats: Vec<_> = waits.iter().map(|tenant| (*tenant, Box::pin(seat(&pool, tenant)))).collect();
        for (_, seat) in &mut seats {
            assert!(poll!(seat).is_pending());
        }
        drop(held);
        while !seats.is_empty() {
            for at in 0..seats.len() {
                if let std::task::Poll::Ready(seat) = poll!(&mut seats[at].1) {
                    order.push(seats.remove(at).0);
                    drop(seat.unwrap());
                    break;
                }
            }
        }
        assert_eq!(order.concat(), "abcaba");
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_one_tenant_does_not_fill_it() {
        let pool = Pool::new(1, 8);
        let _held = seat(&pool, "a").await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..2 {
            waiting.push(Box::pin(seat(&pool, "a")));
            assert!(poll!(waiting.last_mut().unwrap()).is_pending());
        }
        assert_eq!(seat(&pool, "a").await.unwrap_err(), SandboxFault::Busy);
        for tenant in ["b", "c", "d", "e", "f", "g"] {
            waiting.push(Box::pin(seat(&pool, tenant)));
            assert!(poll!(waiting.last_mut().unwrap()).is_pending());
        }
        assert_eq!(seat(&pool, "h").await.unwrap_err(), SandboxFault::Busy);
        pool.close();
        for seat in waiting {
            assert_eq!(seat.await.unwrap_err(), SandboxFault::Closed);
        }
        assert_eq!(seat(&pool, "a").await.unwrap_err(), SandboxFault::Closed);
    }

    #[tokio::test]
    async fn tenants_with_hanging_plugins_leave_seats_to_the_others() {
        let pool = Pool::new(4, 100);
        let good = trusted(&pool, "good").await;
        let _one = seat(&pool, "bad").await.unwrap();
        let two = seat(&pool, "worse").await.unwrap();
        let mut three = Box::pin(seat(&pool, "worst"));
        assert!(poll!(&mut three).is_pending());
        let more = seat(&pool, "good").await.unwrap();
        good.judge(false);
        drop((good, more));
        assert!(poll!(Box::pin(seat(&pool, "good"))).is_pending());
        two.judge(false);
        drop(two);
        assert!(poll!(&mut three).is_ready());
    }

    #[tokio::test]
    async fn a_cancelled_wait_takes_no_seat() {
        let pool = Pool::new(1, 100);
        let held = trusted(&pool, "a").await;
        let mut gone = Box::pin(seat(&pool, "b"));
        assert!(poll!(&mut gone).is_pending());
        let mut next = Box::pin(seat(&pool, "c"));
        assert!(poll!(&mut next).is_pending());
        drop(gone);
        drop(held);
        assert!(poll!(&mut next).is_ready());
    }
}
