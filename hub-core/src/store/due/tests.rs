//! Steps of the clock, and what moves along with them.

use super::*;
use crate::time::ManualClock;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_step_moves_what_it_would_delay_or_hasten() {
    let back = Step { expected: NOW, now: NOW - HOUR, within: SECOND };
    assert_eq!(back.apply(NOW + HOUR), NOW);
    assert_eq!(back.apply(NOW), NOW - HOUR, "it was due, and still is");
    assert_eq!(back.apply(NOW - HOUR * 2), NOW - HOUR * 2);
    let forward = Step { expected: NOW, now: NOW + HOUR * 24, within: SECOND };
    assert_eq!(forward.apply(NOW + HOUR), NOW + HOUR * 25);
    assert_eq!(forward.apply(NOW), NOW, "it was due before");
    assert_eq!(forward.apply(NOW + HOUR * 25), NOW + HOUR * 25, "stored after the step");
    let since = NOW + HOUR * 24 - SECOND;
    assert_eq!(forward.apply(since), since, "stored between the step and its discovery");
    assert_eq!(forward.apply_to_expiry(since, NOW - HOUR), since + HOUR * 24, "created a day before");
    assert_eq!(back.apply_to_expiry(NOW + HOUR, NOW - HOUR), NOW + HOUR, "created between them");
}

#[test]
fn a_reading_tells_by_how_much_a_machine_is_ahead_of_the_shared_clock() {
    let manual = ManualClock::new(NOW);
    let machine = Clock::from(manual.clone());
    let reading = |wall| Reading { at: machine.instant(), wall };
    let (same, behind) = (reading(NOW), reading(NOW - HOUR));
    manual.advance(SECOND * 4);
    assert_eq!((same.ahead_ms(&machine), behind.ahead_ms(&machine)), (0, 3_600_000));
    manual.set(NOW - HOUR * 2);
    assert_eq!(same.ahead_ms(&machine), -7_204_000);
}

#[test]
fn a_step_that_several_nodes_measure_counts_once() {
    let at = Clock::from(ManualClock::new(NOW)).instant();
    let reading = |after: Duration, wall| Reading { at: at + after, wall };
    let noted = StoredClock { seen_at: NOW, moved_ms: 0 };
    let (one, step) = noted.follow(None, reading(Duration::ZERO, NOW));
    assert_eq!(step, None);
    let (other, _) = StoredClock::from(one).follow(None, reading(Duration::ZERO, NOW));
    for wall in [NOW - HOUR, NOW + HOUR] {
        let (one, step) = StoredClock::from(other).follow(Some(one), reading(SECOND, wall + SECOND));
        assert_eq!(step.map(Step::by), Some(wall.as_millis() - NOW.as_millis()));
        let (other, step) =
            StoredClock::from(one).follow(Some(other), reading(SECOND * 5, wall + SECOND * 5));
        assert_eq!(step, None, "the first node moved the due times");
        let (_, step) = StoredClock::from(other).follow(Some(one), reading(SECOND * 9, wall + SECOND * 9));
        assert_eq!(step, None, "one step is moved by once");
    }
}

#[test]
fn a_node_that_slept_through_a_step_and_its_reversal_finds_what_is_left_to_move() {
    let at = Clock::from(ManualClock::new(NOW)).instant();
    let reading = |after: Duration, wall: Timestamp| Reading { at: at + after, wall: wall + after };
    let noted = StoredClock { seen_at: NOW, moved_ms: 0 };
    let (first, _) = noted.follow(None, reading(Duration::ZERO, NOW));
    // Another node follows the step and dies; then the clock is set right.
    let (other, step) = StoredClock::from(first).follow(Some(first), reading(SECOND, NOW + HOUR));
    assert!(step.is_some());
    let (slept, step) = StoredClock::from(other).follow(Some(first), reading(SECOND * 60, NOW));
    assert_eq!(step.map(Step::by), Some(-3_600_000));
    let (_, step) = StoredClock::from(slept).follow(Some(slept), reading(SECOND * 64, NOW));
    assert_eq!(step, None);
}

#[test]
fn a_step_forward_that_a_new_node_took_for_a_downtime_counts_for_no_node() {
    let at = Clock::from(ManualClock::new(NOW)).instant();
    let reading = |after: Duration, wall: Timestamp| Reading { at: at + after, wall: wall + after };
    let (first, _) = StoredClock { seen_at: NOW, moved_ms: 7 }.follow(None, reading(Duration::ZERO, NOW));
    let ahead = NOW + HOUR;
    let (new, step) = StoredClock::from(first).follow(None, reading(SECOND, ahead));
    assert_eq!(step, None);
    let mut noted = StoredClock::from(new);
    let hidden = noted.hidden_step(Some(first), reading(SECOND * 4, ahead)).unwrap();
    let expiry = |at| hidden.apply_to_expiry(at, NOW);
    assert_eq!((hidden.by(), expiry(NOW + HOUR / 2)), (3_600_000, ahead + HOUR / 2));
    assert_eq!(expiry(ahead + HOUR / 2), ahead + HOUR / 2, "moved by another node, or stored since");
    assert_eq!(noted.hidden_step(Some(new), reading(SECOND * 4, ahead)).map(Step::by), None);
    let (mut first, mut new) = (first, new);
    for after in (4..20).step_by(4).map(|seconds| SECOND * seconds) {
        let step;
        (first, step) = noted.follow(Some(first), reading(after, ahead));
        assert_eq!((step, first.moved_ms), (None, 7));
        let step;
        (new, step) = StoredClock::from(first).follow(Some(new), reading(after + SECOND, ahead));
        assert_eq!((step, new.moved_ms), (None, 7));
        noted = new.into();
    }
    let (_, step) = noted.follow(Some(first), reading(SECOND * 24, ahead + HOUR));
    assert_eq!(step.map(Step::by), Some(3_600_000), "the next one is");
}

#[test]
fn a_step_back_after_one_forward_is_found_by_a_node_that_saw_neither() {
    let at = Clock::from(ManualClock::new(NOW)).instant();
    let reading = |after: Duration, wall: Timestamp| Reading { at: at + after, wall: wall + after };
    let (old, _) = StoredClock { seen_at: NOW, moved_ms: 0 }.follow(None, reading(Duration::ZERO, NOW));
    // A new node goes by the clock between the steps.
    let (new, step) = StoredClock::from(old).follow(None, reading(SECOND, NOW + HOUR * 26));
    assert_eq!(step, None);
    let (found, step) = StoredClock::from(new).follow(Some(old), reading(SECOND * 4, NOW + HOUR * 25));
    assert_eq!(step.map(Step::by), Some(-3_597_000), "by what was noted: it does not know how long ago");
    let (_, step) = StoredClock::from(found).follow(Some(new), reading(SECOND * 5, NOW + HOUR * 25));
    assert_eq!(step.map(Step::by), Some(-3_000), "the rest");
}

#[test]
fn an_outcome_is_stored_by_the_clock_that_due_times_go_by() {
    let at = Clock::from(ManualClock::new(NOW)).instant();
    let reading = |after: Duration, wall: Timestamp| Reading { at: at + after, wall: wall + after };
    let (first, _) = StoredClock { seen_at: NOW, moved_ms: 0 }.follow(None, reading(Duration::ZERO, NOW));
    let noted = StoredClock::from(first);
    let before = Stamp { read: reading(SECOND, NOW), followed: Some(first) };
    for wall in [NOW - HOUR, NOW + HOUR] {
        let by = |noted: StoredClock, stamp: Stamp, now| noted.step_for(stamp, now).map(Step::by);
        let step_ms = Some(wall.as_millis() - NOW.as_millis());
        let (found, _) = noted.follow(Some(first), reading(SECOND * 4, wall));
        assert_eq!(by(noted, before, reading(SECOND * 3, NOW)), None, "no step");
        assert_eq!(by(noted, before, reading(SECOND * 3, wall)), None, "moved when the step is found");
        assert_eq!(by(found.into(), before, reading(SECOND * 5, wall)), step_ms, "found before it is stored");
        let between = Stamp { read: reading(SECOND * 2, wall), followed: Some(first) };
        assert_eq!(by(found.into(), between, reading(SECOND * 5, wall)), None, "by the new clock already");
        let back_ms = step_ms.map(|ms| -ms);
        assert_eq!(by(noted, between, reading(SECOND * 3, wall)), back_ms, "moved when the step is found");
        let again = reading(SECOND * 6, wall + HOUR * 5);
        assert_eq!(by(found.into(), before, again), step_ms, "the second step is not found yet");
    }
}

#[test]
fn a_start_finds_a_step_back_and_takes_a_step_forward_for_a_downtime() {
    let at = Clock::from(ManualClock::new(NOW)).instant();
    let noted = StoredClock { seen_at: NOW, moved_ms: 5 };
    for (wall, by) in [(NOW - HOUR, Some(-3_600_000)), (NOW + HOUR, None), (NOW - SECOND, None)] {
        let (followed, step) = noted.follow(None, Reading { at, wall });
        assert_eq!(step.map(Step::by), by);
        assert_eq!(StoredClock::from(followed).moved_ms, 5 + by.unwrap_or(0));
    }
}

#[test]
fn a_due_time_beyond_every_schedule_is_due() {
    assert_eq!(wait(NOW + HOUR, NOW), HOUR);
    assert_eq!(wait(NOW + LONGEST_WAIT, NOW), LONGEST_WAIT);
    assert_eq!(wait(NOW - HOUR, NOW), Duration::ZERO);
    assert_eq!(wait(NOW + HOUR * 24 * 365 * 3, NOW), Duration::ZERO);
}
