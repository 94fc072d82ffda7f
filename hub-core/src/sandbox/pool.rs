//! Who runs next: a bounded number of seats, taken in turns by the tenants who wait.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::{SandboxFault, hook::Source, process::Worker};

/// Tenants whose standing is remembered.
const MAX_TRUSTED: usize = 4_096;

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
    waiting: HashMap<String, VecDeque<oneshot::Sender<Seat>>>,
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

/// The right to make one run. Given back when dropped.
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

    /// Waits for a seat.
    ///
    /// # Errors
    /// `Busy` when too many wait, of all or of this tenant; `Closed`.
    pub(super) async fn seat(self: &Arc<Self>, tenant: &str) -> Result<Seat, SandboxFault> {
        let given = {
            let mut state = self.lock();
            if state.closed {
                return Err(SandboxFault::Closed);
            }
            if state.admits(tenant, self.seats) {
                return Ok(state.take(self, tenant));
            }
            let share = (self.queue / 4).max(1);
            let mine = state.waiting.get(tenant).map_or(0, VecDeque::len);
            if state.waiting_in_all >= self.queue || mine >= share {
                return Err(SandboxFault::Busy);
            }
            state.enqueue(tenant)
        };
        given.await.map_err(|_| SandboxFault::Closed)
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
                waiting.send(seat).err()
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

    fn enqueue(&mut self, tenant: &str) -> oneshot::Receiver<Seat> {
        let (sender, receiver) = oneshot::channel();
        let line = self.waiting.entry(tenant.to_owned()).or_default();
        if line.is_empty() {
            self.turns.push_back(tenant.to_owned());
        }
        line.push_back(sender);
        self.waiting_in_all += 1;
        receiver
    }

    /// The next tenant in turn who may run now.
    fn next(&mut self, seats: usize) -> Option<(String, oneshot::Sender<Seat>)> {
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

    async fn trusted(pool: &Arc<Pool>, tenant: &str) -> Seat {
        let seat = pool.seat(tenant).await.unwrap();
        seat.judge(true);
        drop(seat);
        pool.seat(tenant).await.unwrap()
    }

    #[tokio::test]
    async fn tenants_take_turns() {
        let pool = Pool::new(1, 100);
        let held = trusted(&pool, "a").await;
        let mut order = Vec::new();
        let waits = ["a", "a", "a", "b", "c", "b"];
        let mut seats: Vec<_> = waits.iter().map(|tenant| (*tenant, Box::pin(pool.seat(tenant)))).collect();
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
        let _held = pool.seat("a").await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..2 {
            waiting.push(Box::pin(pool.seat("a")));
            assert!(poll!(waiting.last_mut().unwrap()).is_pending());
        }
        assert_eq!(pool.seat("a").await.unwrap_err(), SandboxFault::Busy);
        for tenant in ["b", "c", "d", "e", "f", "g"] {
            waiting.push(Box::pin(pool.seat(tenant)));
            assert!(poll!(waiting.last_mut().unwrap()).is_pending());
        }
        assert_eq!(pool.seat("h").await.unwrap_err(), SandboxFault::Busy);
        pool.close();
        for seat in waiting {
            assert_eq!(seat.await.unwrap_err(), SandboxFault::Closed);
        }
        assert_eq!(pool.seat("a").await.unwrap_err(), SandboxFault::Closed);
    }

    #[tokio::test]
    async fn tenants_with_hanging_plugins_leave_seats_to_the_others() {
        let pool = Pool::new(4, 100);
        let good = trusted(&pool, "good").await;
        let _one = pool.seat("bad").await.unwrap();
        let two = pool.seat("worse").await.unwrap();
        let mut three = Box::pin(pool.seat("worst"));
        assert!(poll!(&mut three).is_pending());
        let more = pool.seat("good").await.unwrap();
        good.judge(false);
        drop((good, more));
        assert!(poll!(Box::pin(pool.seat("good"))).is_pending());
        two.judge(false);
        drop(two);
        assert!(poll!(&mut three).is_ready());
    }

    #[tokio::test]
    async fn a_cancelled_wait_takes_no_seat() {
        let pool = Pool::new(1, 100);
        let held = trusted(&pool, "a").await;
        let mut gone = Box::pin(pool.seat("b"));
        assert!(poll!(&mut gone).is_pending());
        let mut next = Box::pin(pool.seat("c"));
        assert!(poll!(&mut next).is_pending());
        drop(gone);
        drop(held);
        assert!(poll!(&mut next).is_ready());
    }
}
