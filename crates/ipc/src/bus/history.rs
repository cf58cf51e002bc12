//! Events kept for readers; each reader has its own position.

use std::collections::VecDeque;

use super::message::Event;

/// Events kept for readers that come later, or read slowly.
pub const EVENTS_KEPT: usize = 1024;

/// The newest events.
#[derive(Debug, Default)]
pub(super) struct History {
    events: VecDeque<Event>,
    /// Number of the first of them.
    first: u64,
}

/// Next thing for a reader.
#[derive(Debug, PartialEq)]
pub(super) enum Next<'a> {
    Event(&'a Event),
    /// So many were dropped before it read them.
    Missed(u64),
    /// Nothing yet.
    Nothing,
}

impl History {
    /// Keeps an event; the oldest one makes space.
    pub(super) fn push(&mut self, event: Event) {
        if self.events.len() == EVENTS_KEPT {
            self.events.pop_front();
            self.first += 1;
        }
        self.events.push_back(event);
    }

    /// Place of the oldest event.
    pub(super) fn oldest(&self) -> u64 {
        self.first
    }

    /// Reads on at `place`.
    pub(super) fn next(&self, place: &mut u64) -> Next<'_> {
        if *place < self.first {
            let missed = self.first - *place;
            *place = self.first;
            return Next::Missed(missed);
        }
        let found = usize::try_from(*place - self.first).ok().and_then(|index| self.events.get(index));
        *place += u64::from(found.is_some());
        found.map_or(Next::Nothing, Next::Event)
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Happening, Severity};
    use super::*;

    // feature(running-bus): events with the numbers of their cycles; missed events are counted
    #[test]
    fn slow_reader_learns_how_many_it_missed() {
        let event = |cycle| Event {
            cycle,
            at_ns: 0,
            severity: Severity::Warning,
            sentence: String::new(),
            between: None,
            what: Happening::Stalled { cycles: 1 },
        };
        let mut history = History::default();
        let mut place = history.oldest();
        assert_eq!(history.next(&mut place), Next::Nothing);
        (0..10).for_each(|cycle| history.push(event(cycle)));
        assert_eq!(history.next(&mut place), Next::Event(&event(0)));
        (10..EVENTS_KEPT as u64 + 20).for_each(|cycle| history.push(event(cycle)));
        assert_eq!(history.next(&mut place), Next::Missed(19));
        assert_eq!(history.next(&mut place), Next::Event(&event(20)));
        let rest = std::iter::from_fn(|| match history.next(&mut place) {
            Next::Event(event) => Some(event.cycle),
            _ => None,
        });
        assert_eq!(rest.last(), Some(EVENTS_KEPT as u64 + 19));
        assert_eq!(history.next(&mut place), Next::Nothing);
    }
}
