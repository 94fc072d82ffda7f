use super::*;
use crate::{id::ChannelId, model::sinks::SinkId, random::Random};

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

fn at(millis: u64) -> Instant {
    Instant::MIN + Duration::from_millis(millis)
}

fn channel(n: u128) -> SinkKey {
    SinkKey::Channel(ChannelId::from_u128(n), SinkId::Webhook)
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
fn an_answered_job_keeps_its_lane_and_frees_its_slot() {
    let mut lanes = Lanes::new(100, 3);
    for (lane, n) in [("a", 1), ("a", 2), ("b", 3), ("c", 4), ("d", 5), ("e", 6), ("f", 7)] {
        push(&mut lanes, 1, lane, n);
    }
    let (mut first, _) = lanes.pop(at(0)).unwrap();
    let (mut second, _) = lanes.pop(at(0)).unwrap();
    assert!(lanes.pop(at(0)).is_none(), "the channel's cap is two");
    assert!(lanes.answer(&mut first), "a second job waits in its lane");
    assert!(lanes.answer(&mut first));
    assert_eq!((lanes.in_flight(), lanes.answered(), lanes.len()), (1, 1, 7), "counted once");
    let (mut third, job) = lanes.pop(at(0)).unwrap();
    assert_eq!(job.n, 4, "lane a waits for its outcome");
    assert!(!lanes.answer(&mut second) && !lanes.answer(&mut third));
    assert!(lanes.pop(at(0)).is_none(), "as many are answered as may be in flight");
    lanes.hold(second, Note { lane: "b", n: 3, retry: true }, at(500));
    assert_eq!(lanes.pop(at(0)).unwrap().1.n, 5);
    lanes.finish(first);
    assert_eq!(lanes.pop(at(0)).unwrap().1.n, 6, "lane a is behind those that waited");
    lanes.finish(third);
    assert_eq!((lanes.in_flight(), lanes.answered(), lanes.len()), (2, 0, 5));
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
    assert_eq!(lanes.pop(at(500)).unwrap().1.n, 1, "the head comes first, then what was after it");
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
    let order: Vec<u32> = std::iter::from_fn(|| lanes.pop(at(0)).map(|(_slot, job)| job.n)).take(3).collect();
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
        let mut flying: Vec<(Slot, SinkKey, Note)> = Vec::new();
        let mut done: HashMap<(SinkKey, &str), Vec<u32>> = HashMap::new();
        let (mut pushed, mut now) = (0, 0);
        for _ in 0..400 {
            now += random.below(50);
            match random.below(5) {
                0 => {
                    pushed += 1;
                    let lane = NAMES[usize::try_from(random.below(4)).unwrap()];
                    push(&mut lanes, u128::from(random.below(3)), lane, pushed);
                }
                1 | 2 => {
                    if let Some((slot, job)) = lanes.pop(at(now)) {
                        let id = slot.channel;
                        assert!(
                            !flying.iter().any(|(_, c, j)| (*c, j.lane) == (id, job.lane)),
                            "seed {seed}"
                        );
                        flying.push((slot, id, job));
                    }
                }
                3 if !flying.is_empty() => {
                    let pick = usize::try_from(random.below(flying.len() as u64)).unwrap();
                    lanes.answer(&mut flying[pick].0);
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
            assert!(lanes.in_flight() <= 5 && lanes.answered() <= 5 + 5, "seed {seed}");
            assert_eq!(lanes.in_flight() + lanes.answered(), flying.len(), "seed {seed}");
        }
        now += 1_000_000;
        loop {
            for (slot, id, job) in flying.drain(..) {
                done.entry((id, job.lane)).or_default().push(job.n);
                lanes.finish(slot);
            }
            while let Some((slot, job)) = lanes.pop(at(now)) {
                let id = slot.channel;
                flying.push((slot, id, job));
            }
            if flying.is_empty() {
                break;
            }
        }
        assert_eq!(lanes.len(), 0, "seed {seed}");
        assert_eq!(done.values().map(Vec::len).sum::<usize>(), pushed as usize, "seed {seed}");
        assert!(done.values().all(|order| order.is_sorted()), "seed {seed}: {done:?}");
    }
}

#[test]
fn a_lane_never_gets_a_second_head_and_says_so() {
    let mut lanes = Lanes::new(100, 10);
    push(&mut lanes, 1, "a", 1);
    push(&mut lanes, 1, "a", 2);
    let (slot, _) = lanes.pop(at(0)).unwrap();
    assert_eq!(lanes.take_doubled(), []);
    // As a bug would leave it: in line again while its head is in flight.
    lanes.channels.get_mut(&channel(1)).unwrap().ready.push_back("a".into());
    lanes.enter_ring(channel(1));
    assert!(lanes.pop(at(0)).is_none());
    assert_eq!(lanes.take_doubled(), [(channel(1), "a".into())]);
    assert_eq!(lanes.take_doubled(), [], "reported once");
    lanes.finish(slot);
    assert_eq!(lanes.pop(at(0)).unwrap().1.n, 2, "nothing is lost");
}

#[test]
fn a_channel_is_low_until_a_quarter_of_its_room_is_used() {
    let mut lanes = Lanes::new(10_000, 10);
    assert!(lanes.is_low(channel(1)));
    for n in 0..500 {
        assert!(lanes.is_low(channel(1)), "with {n} jobs");
        push(&mut lanes, 1, "a", n);
    }
    assert!(!lanes.is_low(channel(1)));
    assert!(lanes.is_low(channel(2)), "every channel for itself");
    let (slot, _) = lanes.pop(at(0)).unwrap();
    lanes.finish(slot);
    assert!(lanes.is_low(channel(1)));
}

/// Starts a round every `millis` and ends it at once; returns the time.
fn run_rounds(lanes: &mut Lanes<Note>, rounds: u64, millis: u64) -> u64 {
    for round in 1..=rounds {
        let slots: Vec<_> = std::iter::from_fn(|| lanes.pop(at(round * millis))).collect();
        for (slot, _) in slots {
            lanes.finish(slot);
        }
    }
    rounds * millis
}

#[test]
fn a_fast_channel_is_crowded_when_more_jobs_than_two_rounds_wait() {
    let mut lanes = Lanes::new(100, 10);
    for n in 0..11 {
        push(&mut lanes, 1, if n % 2 == 0 { "a" } else { "b" }, n);
    }
    assert!(!lanes.is_crowded(channel(1), at(0)), "not known to be fast yet");
    let now = run_rounds(&mut lanes, 3, 99);
    assert_eq!(lanes.len(), 5);
    assert!(lanes.is_crowded(channel(1), at(now)));
    assert!(!lanes.is_crowded(channel(1), at(now + 100)), "nothing started for 100 ms");
    assert!(!lanes.is_crowded(channel(2), at(now)), "every channel for itself");
    let (slot, _) = lanes.pop(at(now)).unwrap();
    assert!(!lanes.is_crowded(channel(1), at(now)), "the rest of that lane does not wait for a slot");
    lanes.finish(slot);
    assert!(!lanes.is_crowded(channel(1), at(now)), "four jobs are two rounds");
}

#[test]
fn on_a_clock_that_does_not_move_no_channel_is_crowded() {
    let mut lanes = Lanes::new(100, 10);
    for n in 0..40 {
        push(&mut lanes, 1, if n % 2 == 0 { "a" } else { "b" }, n);
    }
    run_rounds(&mut lanes, 3, 0);
    assert!(lanes.len() > 30 && !lanes.is_crowded(channel(1), at(0)));
}

#[test]
fn a_slow_channel_and_held_jobs_are_not_crowded() {
    let mut lanes = Lanes::new(100, 10);
    for n in 0..40 {
        push(&mut lanes, 1, "a", n);
        push(&mut lanes, 2, if n < 20 { "a" } else { "b" }, n);
    }
    let now = run_rounds(&mut lanes, 3, 200);
    assert!(!lanes.is_crowded(channel(2), at(now)), "a round took 200 ms");
    for round in 0..3 {
        let slots: Vec<_> = std::iter::from_fn(|| lanes.pop(at(now + round))).collect();
        for (slot, job) in slots {
            lanes.hold(slot, job, at(10_000));
        }
    }
    assert!(
        !lanes.is_crowded(channel(1), at(now)) && !lanes.is_crowded(channel(2), at(now)),
        "the sink is down"
    );
}
