//! Order and fairness: which delivery runs next. Pure: events in, jobs out, no I/O and no clock of its own.
//!
//! A lane is a conversation within a channel's sink, which is what "channel" means in this file: one job at a time,
//! the rest in order behind it. A job is in flight until the sink has answered; then its slot is free, and the job
//! keeps only its lane until the outcome is stored. Channels take turns, each with its own cap, so that a slow one delays no other;
//! retries share a part of all slots, so that a dead receiver does not starve others. Jobs in memory are bounded by
//! the caller ([`Lanes::room`]); the store holds the rest.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use crate::{model::sinks::SinkKey, time::Instant};

/// Jobs of one channel in memory.
const MAX_PER_CHANNEL: usize = 2_000;
/// A channel with fewer jobs in memory runs out soon.
const LOW_WATERMARK: usize = MAX_PER_CHANNEL / 4;
/// A channel is fast if as many jobs as may be in flight start within this time.
const FAST_ROUND: Duration = Duration::from_millis(100);
/// A fast channel is crowded if it takes more than this many rounds to start the jobs that wait for slots.
const CROWDED_ROUNDS: usize = 2;
/// Lanes considered when the first ones may not run because all slots for retries are taken.
const MAX_LOOKAHEAD: usize = 32;

/// A job in a lane.
pub trait Queued {
    /// Whether an attempt was made before.
    fn is_retry(&self) -> bool;
}

/// Limits on running the jobs of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Jobs in flight.
    pub max_in_flight: usize,
    /// Time between two starts; zero for none.
    pub spacing: Duration,
}

/// The right to run one job; returned through [`Lanes::finish`] or [`Lanes::hold`], also after [`Lanes::answer`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Slot {
    channel: SinkKey,
    lane: Arc<str>,
    retry: bool,
    is_answered: bool,
}

/// All lanes of a node.
#[derive(Debug)]
pub struct Lanes<J> {
    channels: HashMap<SinkKey, Channel<J>>,
    /// Channels that may have something to run, in turn.
    ring: VecDeque<SinkKey>,
    timers: BTreeMap<(Instant, u64), Timer>,
    timer_count: u64,
    max_jobs: usize,
    max_in_flight: usize,
    max_retries: usize,
    jobs: usize,
    in_flight: usize,
    /// Jobs whose sink has answered and whose outcome is not stored yet. No further job begins while they are as
    /// many as may be in flight, because a crash repeats all of them.
    answered: usize,
    retries: usize,
    /// Lanes found ready while their head was in flight, for [`Lanes::take_doubled`].
    doubled: Vec<(SinkKey, Arc<str>)>,
}

#[derive(Debug)]
enum Timer {
    Lane(SinkKey, Arc<str>),
    Channel(SinkKey),
}

#[derive(Debug)]
struct Channel<J> {
    lanes: HashMap<Arc<str>, Lane<J>>,
    ready: VecDeque<Arc<str>>,
    pace: Pace,
    next_start: Instant,
    in_flight: usize,
    round: Round,
    jobs: usize,
    in_ring: bool,
}

/// Starts of jobs, counted up to as many as may be in flight.
#[derive(Debug)]
struct Round {
    begun: Instant,
    starts: usize,
    /// Duration of the previous round.
    last: Duration,
}

#[derive(Debug)]
struct Lane<J> {
    jobs: VecDeque<J>,
    state: LaneState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneState {
    Ready,
    /// Its head is in flight, or answered and not stored yet.
    Busy,
    /// Its head waits for a timer.
    Held,
}

impl<J: Queued> Lanes<J> {
    /// Empty lanes with caps on jobs in memory and jobs in flight. Half of the slots may go to retries.
    pub fn new(max_jobs: usize, max_in_flight: usize) -> Self {
        Self {
            channels: HashMap::new(),
            ring: VecDeque::new(),
            timers: BTreeMap::new(),
            timer_count: 0,
            max_jobs,
            max_in_flight,
            max_retries: (max_in_flight / 2).max(1),
            jobs: 0,
            in_flight: 0,
            answered: 0,
            retries: 0,
            doubled: Vec::new(),
        }
    }

    /// Whether a channel has room for another job in memory.
    pub fn room(&self, channel: SinkKey) -> bool {
        self.jobs < self.max_jobs
            && self.channels.get(&channel).is_none_or(|channel| channel.jobs < MAX_PER_CHANNEL)
    }

    /// Whether a channel's jobs in memory run out soon.
    pub fn is_low(&self, channel: SinkKey) -> bool {
        self.channels.get(&channel).is_none_or(|channel| channel.jobs < LOW_WATERMARK)
    }

    /// Whether a channel is fast and yet has more jobs than it can start soon. Never true of a slow channel or one
    /// whose jobs are held, because waiting for these would take long.
    pub fn is_crowded(&self, channel: SinkKey, now: Instant) -> bool {
        self.channels.get(&channel).is_some_and(|channel| {
            channel.round.is_fast(now)
                && channel.has_more_ready_than(channel.pace.max_in_flight * CROWDED_ROUNDS)
        })
    }

    /// Jobs in memory, those in flight and those answered included.
    pub fn len(&self) -> usize {
        self.jobs
    }

    /// Jobs in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Jobs whose sink has answered and whose outcome is not stored yet.
    pub fn answered(&self) -> usize {
        self.answered
    }

    /// Puts a job at the end of its lane. With `not_before`, a lane that is empty is held until then: the job
    /// was attempted before and still has to wait.
    pub fn push(
        &mut self,
        channel: SinkKey,
        lane: &Arc<str>,
        pace: Pace,
        job: J,
        not_before: Option<Instant>,
    ) {
        let entry = self.channels.entry(channel).or_insert_with(|| Channel {
            lanes: HashMap::new(),
            ready: VecDeque::new(),
            pace,
            next_start: Instant::MIN,
            in_flight: 0,
            round: Round { begun: Instant::MIN, starts: 0, last: Duration::MAX },
            jobs: 0,
            in_ring: false,
        });
        entry.pace = pace;
        entry.jobs += 1;
        self.jobs += 1;
        if let Some(existing) = entry.lanes.get_mut(lane) {
            existing.jobs.push_back(job);
            return;
        }
        let state = if not_before.is_some() { LaneState::Held } else { LaneState::Ready };
        entry.lanes.insert(Arc::clone(lane), Lane { jobs: VecDeque::from([job]), state });
        if let Some(at) = not_before {
            self.set_timer(at, Timer::Lane(channel, Arc::clone(lane)));
        } else {
            entry.ready.push_back(Arc::clone(lane));
            self.enter_ring(channel);
        }
    }

    /// The next job that may run now, with its slot.
    pub fn pop(&mut self, now: Instant) -> Option<(Slot, J)> {
        self.fire_timers(now);
        if self.in_flight >= self.max_in_flight || self.answered >= self.max_in_flight {
            return None;
        }
        for _ in 0..self.ring.len() {
            let id = self.ring.pop_front()?;
            let retries_left = self.retries < self.max_retries;
            let Some(channel) = self.channels.get_mut(&id) else { continue };
            channel.in_ring = false;
            if channel.ready.is_empty() || channel.in_flight >= channel.pace.max_in_flight {
                continue;
            }
            if channel.next_start > now {
                let at = channel.next_start;
                self.set_timer(at, Timer::Channel(id));
                continue;
            }
            let doubled = &mut self.doubled;
            let taken = channel.take(retries_left, |lane| doubled.push((id, lane)));
            let Some((lane, job)) = taken else {
                // Everything ready is a retry and those slots are taken: comes back when one is freed.
                self.enter_ring(id);
                continue;
            };
            channel.in_flight += 1;
            channel.round.note_start(now, channel.pace.max_in_flight);
            if !channel.pace.spacing.is_zero() {
                channel.next_start = now + channel.pace.spacing;
            }
            let retry = job.is_retry();
            self.in_flight += 1;
            self.retries += usize::from(retry);
            self.enter_ring(id);
            return Some((Slot { channel: id, lane, retry, is_answered: false }, job));
        }
        None
    }

    /// Returns the lanes that were about to get a second head since the last call. They continue when their head
    /// ends.
    pub fn take_doubled(&mut self) -> Vec<(SinkKey, Arc<str>)> {
        std::mem::take(&mut self.doubled)
    }

    /// Records that the sink has answered: another job may have the slot, and the lane waits for [`Lanes::finish`]
    /// or [`Lanes::hold`]. Returns whether another job waits in the lane.
    pub fn answer(&mut self, slot: &mut Slot) -> bool {
        if !slot.is_answered {
            self.leave_flight(slot);
            slot.is_answered = true;
            self.answered += 1;
            self.enter_ring(slot.channel);
        }
        let lane = self.channels.get(&slot.channel).and_then(|channel| channel.lanes.get(&slot.lane));
        lane.is_some_and(|lane| !lane.jobs.is_empty())
    }

    /// Removes a finished job; its lane continues.
    pub fn finish(&mut self, slot: Slot) {
        self.jobs -= 1;
        let Some(channel) = self.leave_flight(&slot) else { return };
        channel.jobs -= 1;
        let Some(lane) = channel.lanes.get_mut(&slot.lane) else { return };
        if lane.jobs.is_empty() {
            channel.lanes.remove(&slot.lane);
        } else {
            lane.state = LaneState::Ready;
            channel.ready.push_back(slot.lane);
        }
        if channel.jobs == 0 {
            self.channels.remove(&slot.channel);
        } else {
            self.enter_ring(slot.channel);
        }
    }

    /// Puts the job back at the head of its lane, which waits until `until`.
    pub fn hold(&mut self, slot: Slot, job: J, until: Instant) {
        let Some(channel) = self.leave_flight(&slot) else { return };
        let Some(lane) = channel.lanes.get_mut(&slot.lane) else { return };
        lane.jobs.push_front(job);
        lane.state = LaneState::Held;
        self.enter_ring(slot.channel);
        self.set_timer(until, Timer::Lane(slot.channel, slot.lane));
    }

    /// Continues, at once, the lanes whose held head `may` matches. Returns whether there was one.
    pub fn release(&mut self, may: impl Fn(&J) -> bool) -> bool {
        let mut released = Vec::new();
        for (id, channel) in &mut self.channels {
            for (key, lane) in &mut channel.lanes {
                if lane.state == LaneState::Held && lane.jobs.front().is_some_and(&may) {
                    lane.state = LaneState::Ready;
                    channel.ready.push_back(Arc::clone(key));
                    released.push(*id);
                }
            }
        }
        for id in &released {
            self.enter_ring(*id);
        }
        !released.is_empty()
    }

    /// Removes every waiting job that `gone` matches; those in flight end by themselves.
    pub fn forget(&mut self, gone: impl Fn(&J) -> bool) {
        for channel in self.channels.values_mut() {
            for lane in channel.lanes.values_mut() {
                let before = lane.jobs.len();
                lane.jobs.retain(|job| !gone(job));
                let removed = before - lane.jobs.len();
                channel.jobs -= removed;
                self.jobs -= removed;
            }
            channel.lanes.retain(|_, lane| !lane.jobs.is_empty() || lane.state == LaneState::Busy);
            let lanes = &channel.lanes;
            channel.ready.retain(|lane| lanes.contains_key(lane));
        }
        self.channels.retain(|_, channel| channel.jobs > 0);
    }

    /// Returns the next time at which [`Lanes::pop`] may return a job that it does not return now.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.keys().next().map(|(at, _)| *at)
    }

    fn set_timer(&mut self, at: Instant, timer: Timer) {
        self.timer_count += 1;
        self.timers.insert((at, self.timer_count), timer);
    }

    fn fire_timers(&mut self, now: Instant) {
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Timer::Channel(id) => self.enter_ring(id),
                Timer::Lane(id, key) => {
                    let Some(channel) = self.channels.get_mut(&id) else { continue };
                    let Some(lane) = channel.lanes.get_mut(&key) else { continue };
                    // A timer of a lane that was forgotten and created again finds it in another state.
                    if lane.state == LaneState::Held {
                        lane.state = LaneState::Ready;
                        channel.ready.push_back(key);
                        self.enter_ring(id);
                    }
                }
            }
        }
    }

    fn enter_ring(&mut self, id: SinkKey) {
        if let Some(channel) = self.channels.get_mut(&id)
            && !channel.in_ring
            && !channel.ready.is_empty()
        {
            channel.in_ring = true;
            self.ring.push_back(id);
        }
    }

    fn leave_flight(&mut self, slot: &Slot) -> Option<&mut Channel<J>> {
        let channel = self.channels.get_mut(&slot.channel);
        if slot.is_answered {
            self.answered -= 1;
            return channel;
        }
        self.in_flight -= 1;
        self.retries -= usize::from(slot.retry);
        let channel = channel?;
        channel.in_flight -= 1;
        Some(channel)
    }
}

impl Round {
    fn is_fast(&self, now: Instant) -> bool {
        // A clock that does not move, as in some tests, measures nothing.
        !self.last.is_zero() && self.last.max(now.since(self.begun)) < FAST_ROUND
    }

    fn note_start(&mut self, now: Instant, length: usize) {
        self.starts += 1;
        if self.starts >= length {
            *self = Self { begun: now, starts: 0, last: now.since(self.begun) };
        }
    }
}

impl<J: Queued> Channel<J> {
    /// Whether lanes that wait for nothing but a slot have more than `many` jobs.
    fn has_more_ready_than(&self, many: usize) -> bool {
        // Each of them has at least one.
        let ready = self.ready.iter().take(many + 1).filter_map(|lane| self.lanes.get(lane));
        ready.map(|lane| lane.jobs.len()).sum::<usize>() > many
    }

    /// Takes the head of the first ready lane that may run.
    fn take(&mut self, retries_left: bool, mut doubled: impl FnMut(Arc<str>)) -> Option<(Arc<str>, J)> {
        for _ in 0..self.ready.len().min(MAX_LOOKAHEAD) {
            let key = self.ready.pop_front()?;
            let Some(lane) = self.lanes.get_mut(&key) else { continue };
            if lane.state != LaneState::Ready {
                doubled(key);
                continue;
            }
            if !retries_left && lane.jobs.front().is_some_and(Queued::is_retry) {
                self.ready.push_back(key);
                continue;
            }
            let Some(job) = lane.jobs.pop_front() else { continue };
            lane.state = LaneState::Busy;
            return Some((key, job));
        }
        None
    }
}

#[cfg(test)]
mod tests;
