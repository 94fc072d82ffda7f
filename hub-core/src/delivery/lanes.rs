//! Order and fairness: which delivery runs next. Pure: events in, jobs out, no I/O and no clock of its own.
//!
//! A lane is a conversation within a channel: one job in flight, the rest in order behind it. Channels take
//! turns, each with its own cap, so that a slow one delays nobody; retries share a part of all slots, so that
//! a dead receiver does not starve the living. Jobs in memory are bounded by whoever pushes ([`Lanes::room`]);
//! the store holds the rest.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use crate::{id::ChannelId, time::Timestamp};

/// Jobs of one channel in memory.
const MAX_PER_CHANNEL: usize = 2_000;
/// Lanes looked at when the first ones may not run because all slots for retries are taken.
const LOOK_AHEAD: usize = 32;

/// What a lane holds.
pub trait Queued {
    /// Whether an attempt was made before.
    fn is_retry(&self) -> bool;
}

/// How much of a channel may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Jobs in flight.
    pub max_in_flight: usize,
    /// Time between two starts; zero for none.
    pub spacing: Duration,
}

/// The right to run one job; goes back through [`Lanes::finish`] or [`Lanes::hold`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Slot {
    channel: ChannelId,
    lane: Arc<str>,
    retry: bool,
}

/// All lanes of a node.
#[derive(Debug)]
pub struct Lanes<J> {
    channels: HashMap<ChannelId, Channel<J>>,
    /// Channels that may have something to run, in turn.
    ring: VecDeque<ChannelId>,
    timers: BTreeMap<(Timestamp, u64), Timer>,
    timer_count: u64,
    max_jobs: usize,
    max_in_flight: usize,
    max_retries: usize,
    jobs: usize,
    in_flight: usize,
    retries: usize,
}

#[derive(Debug)]
enum Timer {
    Lane(ChannelId, Arc<str>),
    Channel(ChannelId),
}

#[derive(Debug)]
struct Channel<J> {
    lanes: HashMap<Arc<str>, Lane<J>>,
    ready: VecDeque<Arc<str>>,
    pace: Pace,
    next_start: Timestamp,
    in_flight: usize,
    jobs: usize,
    in_ring: bool,
}

#[derive(Debug)]
struct Lane<J> {
    jobs: VecDeque<J>,
    state: LaneState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneState {
    /// Queued in `ready`.
    Ready,
    /// Its head is in flight.
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
            retries: 0,
        }
    }

    /// Whether a channel has room for another job in memory.
    pub fn room(&self, channel: ChannelId) -> bool {
        self.jobs < self.max_jobs
            && self.channels.get(&channel).is_none_or(|channel| channel.jobs < MAX_PER_CHANNEL)
    }

    /// Jobs in memory, those in flight included.
    pub fn len(&self) -> usize {
        self.jobs
    }

    /// Whether no job is in memory.
    pub fn is_empty(&self) -> bool {
        self.jobs == 0
    }

    /// Jobs in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Puts a job at the end of its lane. With `not_before`, a lane that is empty is held until then: the job
    /// was attempted before and still has to wait.
    pub fn push(
        &mut self,
        channel: ChannelId,
        lane: &Arc<str>,
        pace: Pace,
        job: J,
        not_before: Option<Timestamp>,
    ) {
        let entry = self.channels.entry(channel).or_insert_with(|| Channel {
            lanes: HashMap::new(),
            ready: VecDeque::new(),
            pace,
            next_start: Timestamp::MIN,
            in_flight: 0,
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
    pub fn pop(&mut self, now: Timestamp) -> Option<(Slot, J)> {
        self.fire_timers(now);
        if self.in_flight >= self.max_in_flight {
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
            let taken = channel.take(retries_left);
            let Some((lane, job)) = taken else {
                // Everything ready is a retry and those slots are taken: comes back when one is freed.
                self.enter_ring(id);
                continue;
            };
            channel.in_flight += 1;
            if !channel.pace.spacing.is_zero() {
                channel.next_start = now + channel.pace.spacing;
            }
            let retry = job.is_retry();
            self.in_flight += 1;
            self.retries += usize::from(retry);
            self.enter_ring(id);
            return Some((Slot { channel: id, lane, retry }, job));
        }
        None
    }

    /// The job is done with: its lane goes on.
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

    /// The job goes back to the head of its lane, which waits until `until`.
    pub fn hold(&mut self, slot: Slot, job: J, until: Timestamp) {
        let Some(channel) = self.leave_flight(&slot) else { return };
        let Some(lane) = channel.lanes.get_mut(&slot.lane) else { return };
        lane.jobs.push_front(job);
        lane.state = LaneState::Held;
        self.enter_ring(slot.channel);
        self.set_timer(until, Timer::Lane(slot.channel, slot.lane));
    }

    /// Forgets every waiting job that `gone` names; those in flight end by themselves.
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

    /// When [`Lanes::pop`] may have something that it has not now.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.timers.keys().next().map(|(at, _)| *at)
    }

    fn set_timer(&mut self, at: Timestamp, timer: Timer) {
        self.timer_count += 1;
        self.timers.insert((at, self.timer_count), timer);
    }

    fn fire_timers(&mut self, now: Timestamp) {
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Timer::Channel(id) => self.enter_ring(id),
                Timer::Lane(id, key) => {
                    let Some(channel) = self.channels.get_mut(&id) else { continue };
                    let Some(lane) = channel.lanes.get_mut(&key) else { continue };
                    // A timer of a lane that was forgotten and made anew finds it in another state.
                    if lane.state == LaneState::Held {
                        lane.state = LaneState::Ready;
                        channel.ready.push_back(key);
                        self.enter_ring(id);
                    }
                }
            }
        }
    }

    fn enter_ring(&mut self, id: ChannelId) {
        if let Some(channel) = self.channels.get_mut(&id)
            && !channel.in_ring
            && !channel.ready.is_empty()
        {
            channel.in_ring = true;
            self.ring.push_back(id);
        }
    }

    fn leave_flight(&mut self, slot: &Slot) -> Option<&mut Channel<J>> {
        self.in_flight -= 1;
        self.retries -= usize::from(slot.retry);
        let channel = self.channels.get_mut(&slot.channel)?;
        channel.in_flight -= 1;
        Some(channel)
    }
}

impl<J: Queued> Channel<J> {
    /// Takes the head of the first ready lane that may run.
    fn take(&mut self, retries_left: bool) -> Option<(Arc<str>, J)> {
        for _ in 0..self.ready.len().min(LOOK_AHEAD) {
            let key = self.ready.pop_front()?;
            let Some(lane) = self.lanes.get_mut(&key) else { continue };
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
mod tests {
    use super::*;
    use crate::random::Random;

    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Note {
        lane: &'static str,
        n: u32,
        retry: bool,
    }

    impl Queued for Note {
        fn is_retry(&self) -> bool {
            self.retry
        }
    }

    const PACE: Pace = Pace { max_in_flight: 2, spacing: Duration::ZERO };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn channel(n: u128) -> ChannelId {
        ChannelId::from_u128(n)
    }

    fn push(lanes: &mut Lanes<Note>, id: u128, lane: &'static str, n: u32) {
        lanes.push(channel(id), &lane.into(), PACE, Note { lane, n, retry: false }, None);
    }

    #[test]
    fn one_job_of_a_lane_at_a_time_and_in_order() {
        let mut lanes = Lanes::new(100, 10);
        push(&mut lanes, 1, "a", 1);
        push(&mut lanes, 1, "a", 2);
        push(&mut lanes, 1, "b", 3);
        push(&mut lanes, 1, "c", 4);
        let (first, job) = lanes.pop(at(0)).unwrap();
        assert_eq!(job.n, 1);
        let (_second, job) = lanes.pop(at(0)).unwrap();
        assert_eq!(job.n, 3, "the lane of the first is busy");
        assert!(lanes.pop(at(0)).is_none(), "the channel's cap is two");
        lanes.finish(first);
        assert_eq!(lanes.pop(at(0)).unwrap().1.n, 4, "the lane that waited longest");
        assert_eq!(lanes.len(), 3);
    }

    #[test]
    fn a_held_head_blocks_its_lane_and_no_other() {
        let mut lanes = Lanes::new(100, 10);
        push(&mut lanes, 1, "a", 1);
        push(&mut lanes, 1, "a", 2);
        let (slot, job) = lanes.pop(at(0)).unwrap();
        lanes.hold(slot, Note { retry: true, ..job }, at(500));
        push(&mut lanes, 1, "b", 3);
        assert_eq!(lanes.pop(at(0)).unwrap().1.n, 3);
        assert!(lanes.pop(at(499)).is_none());
        assert_eq!(lanes.next_timer(), Some(at(500)));
        assert_eq!(lanes.pop(at(500)).unwrap().1.n, 1, "the head comes first, then what was behind it");
    }

    #[test]
    fn channels_take_turns() {
        let mut lanes = Lanes::new(1000, 100);
        for n in 0..50 {
            lanes.push(
                channel(1),
                &format!("a{n}").into(),
                Pace { max_in_flight: 64, spacing: Duration::ZERO },
                Note { lane: "a", n, retry: false },
                None,
            );
        }
        push(&mut lanes, 2, "b", 100);
        let order: Vec<u32> =
            std::iter::from_fn(|| lanes.pop(at(0)).map(|(_slot, job)| job.n)).take(3).collect();
        assert!(order[..2].contains(&100), "{order:?}");
    }

    #[test]
    fn retries_leave_room_for_first_attempts() {
        let mut lanes = Lanes::new(100, 2);
        for n in 0..4 {
            let lane: Arc<str> = format!("r{n}").into();
            lanes.push(
                channel(1),
                &lane,
                Pace { max_in_flight: 8, spacing: Duration::ZERO },
                Note { lane: "r", n, retry: true },
                Some(at(0)),
            );
        }
        let (first, _) = lanes.pop(at(0)).unwrap();
        assert!(lanes.pop(at(0)).is_none(), "one of two slots is kept from retries");
        push(&mut lanes, 2, "b", 9);
        assert_eq!(lanes.pop(at(0)).unwrap().1.n, 9);
        lanes.finish(first);
        assert!(lanes.pop(at(0)).unwrap().1.retry);
    }

    #[test]
    fn a_paced_channel_waits_between_starts() {
        let mut lanes = Lanes::new(100, 10);
        let pace = Pace { max_in_flight: 8, spacing: Duration::from_millis(100) };
        for n in 0..2 {
            let lane: Arc<str> = format!("p{n}").into();
            lanes.push(channel(1), &lane, pace, Note { lane: "p", n, retry: false }, None);
        }
        assert!(lanes.pop(at(0)).is_some());
        assert!(lanes.pop(at(99)).is_none());
        assert_eq!(lanes.next_timer(), Some(at(100)));
        assert!(lanes.pop(at(100)).is_some());
    }

    /// Random histories keep the promises: order within a lane, one in flight per lane, caps, nothing lost.
    #[test]
    fn random_histories_keep_order_and_lose_nothing() {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        for seed in 0..200 {
            let random = Random::seeded(seed);
            let mut lanes = Lanes::new(10_000, 5);
            let mut flying: Vec<(Slot, u128, Note)> = Vec::new();
            let mut done: HashMap<(u128, &str), Vec<u32>> = HashMap::new();
            let (mut pushed, mut now) = (0, 0);
            for _ in 0..400 {
                now += i64::try_from(random.below(50)).unwrap();
                match random.below(4) {
                    0 => {
                        pushed += 1;
                        let lane = NAMES[usize::try_from(random.below(4)).unwrap()];
                        push(&mut lanes, u128::from(random.below(3)), lane, pushed);
                    }
                    1 | 2 => {
                        if let Some((slot, job)) = lanes.pop(at(now)) {
                            let id = slot.channel.as_u128();
                            assert!(
                                !flying.iter().any(|(_, c, j)| (*c, j.lane) == (id, job.lane)),
                                "seed {seed}"
                            );
                            flying.push((slot, id, job));
                        }
                    }
                    _ if !flying.is_empty() => {
                        let pick = usize::try_from(random.below(flying.len() as u64)).unwrap();
                        let (slot, id, job) = flying.swap_remove(pick);
                        if random.below(3) == 0 {
                            lanes.hold(slot, Note { retry: true, ..job }, at(now + 40));
                        } else {
                            done.entry((id, job.lane)).or_default().push(job.n);
                            lanes.finish(slot);
                        }
                    }
                    _ => {}
                }
                assert!(lanes.in_flight() <= 5);
            }
            now += 1_000_000;
            loop {
                for (slot, id, job) in flying.drain(..) {
                    done.entry((id, job.lane)).or_default().push(job.n);
                    lanes.finish(slot);
                }
                while let Some((slot, job)) = lanes.pop(at(now)) {
                    let id = slot.channel.as_u128();
                    flying.push((slot, id, job));
                }
                if flying.is_empty() {
                    break;
                }
            }
            assert!(lanes.is_empty(), "seed {seed}");
            assert_eq!(done.values().map(Vec::len).sum::<usize>(), pushed as usize, "seed {seed}");
            assert!(done.values().all(|order| order.is_sorted()), "seed {seed}: {done:?}");
        }
    }
}
