//! The newest events of a node, numbered.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use super::Event;

/// Events that are kept. A client that lags by more starts over.
pub(crate) const MAX_KEPT: usize = 4096;
/// Events that are read at a time.
const MAX_PAGE: usize = 256;

/// The events after a position.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// With their numbers, oldest first; empty at the newest.
    Events(Vec<(u64, Event)>),
    /// Some are not kept any more, or the position was never given out. The newest number.
    Gone(u64),
}

/// The events, and the signal of a new one.
#[derive(Debug)]
pub(super) struct Ring {
    kept: Mutex<Kept>,
    newest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    newest: u64,
    events: VecDeque<Event>,
}

impl Ring {
    pub(super) fn add(&self, event: Event) {
        let mut kept = self.kept();
        if kept.events.len() >= MAX_KEPT {
            kept.events.pop_front();
        }
        kept.events.push_back(event);
        self.advance(kept);
    }

    /// Removes all of them. The number that is left out shows every reader that something is missing.
    pub(super) fn forget(&self) {
        let mut kept = self.kept();
        kept.events.clear();
        self.advance(kept);
    }

    /// Announces the next number while the lock is held, so that numbers are announced in their order.
    fn advance(&self, mut kept: MutexGuard<'_, Kept>) {
        kept.newest += 1;
        self.newest.send_replace(kept.newest);
    }

    pub(super) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    pub(super) fn after(&self, position: u64) -> Page {
        let kept = self.kept();
        let before_oldest = kept.newest - kept.events.len() as u64;
        if position < before_oldest || position > kept.newest {
            return Page::Gone(kept.newest);
        }
        // At most the length of the ring.
        let passed = usize::try_from(position - before_oldest).unwrap_or(usize::MAX);
        let events = kept.events.iter().skip(passed).take(MAX_PAGE).cloned();
        Page::Events((position + 1..).zip(events).collect())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Ring {
    fn default() -> Self {
        Self { kept: Mutex::default(), newest: watch::Sender::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{BotId, MessageId};

    fn event(number: u64) -> Event {
        let message_id = MessageId::from_u128(u128::from(number));
        Event::Message { bot_id: BotId::from_u128(1), message_id }
    }

    fn filled(count: u64) -> Ring {
        let ring = Ring::default();
        (1..=count).for_each(|number| ring.add(event(number)));
        ring
    }

    #[test]
    fn pages_follow_each_other_without_a_gap() {
        let ring = filled(600);
        let (mut position, mut seen) = (0, Vec::new());
        loop {
            let Page::Events(events) = ring.after(position) else { panic!("{position} is kept") };
            let Some((last, _)) = events.last() else { break };
            position = *last;
            seen.extend(events);
        }
        assert_eq!(seen, (1..=600).map(|number| (number, event(number))).collect::<Vec<_>>());
        assert_eq!(*ring.newest().borrow(), 600);
    }

    #[test]
    fn the_oldest_event_is_dropped_when_the_ring_is_full() {
        let kept = MAX_KEPT as u64;
        let ring = filled(kept + 2);
        assert_eq!(ring.after(1), Page::Gone(kept + 2));
        let Page::Events(events) = ring.after(2) else { panic!("the oldest kept follows 2") };
        assert_eq!((events.len(), &events[0]), (MAX_PAGE, &(3, event(3))));
        assert_eq!(ring.after(kept + 3), Page::Gone(kept + 2), "a number that was never given out");
    }

    #[test]
    fn a_ring_that_forgot_has_a_gap_for_every_reader() {
        let ring = filled(3);
        ring.forget();
        assert_eq!(ring.after(3), Page::Gone(4));
        assert_eq!(ring.after(4), Page::Events(Vec::new()));
        ring.add(event(5));
        assert_eq!(ring.after(4), Page::Events(vec![(5, event(5))]));
    }
}
