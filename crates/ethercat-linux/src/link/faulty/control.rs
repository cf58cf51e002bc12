//! Changes of a link's faults while it runs.

use std::collections::VecDeque;
use std::fmt;

use rtrb::{Consumer, Producer, RingBuffer};

use super::Faults;

/// A change of faults.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// Rates of both directions; the seed is left.
    Rates(Faults),
    /// Requests that are lost next.
    LoseNext(u32),
    /// Seed of chance.
    Seed(u64),
}

/// Changes that wait for the link, which looks with every frame.
const CHANGES: usize = 64;

/// Changes the faults of a [`Faulty`](super::Faulty) link, or of both ends of a ring, while it
/// runs, from one other thread: without a lock, and without an allocation at the link. A link takes
/// changes with its next frame.
pub struct FaultControl(Vec<Sender>);

/// One link's end of it.
struct Sender {
    changes: Producer<Change>,
    /// Changes waiting for space in the queue.
    waiting: VecDeque<Change>,
}

/// The link's end of a [`FaultControl`].
pub struct FaultChanges(Consumer<Change>);

impl FaultChanges {
    pub(super) fn next(&mut self) -> Option<Change> {
        self.0.pop().ok()
    }
}

impl FaultControl {
    /// Both ends: this one, and the link's ([`Faulty::changed_by`](super::Faulty::changed_by)).
    #[must_use]
    pub fn pair() -> (Self, FaultChanges) {
        let (sender, changes) = Sender::pair();
        (Self(vec![sender]), changes)
    }

    /// This end, and the ends of so many links.
    pub(crate) fn of(links: usize) -> (Self, Vec<FaultChanges>) {
        let (senders, changes) = (0..links).map(|_| Sender::pair()).unzip();
        (Self(senders), changes)
    }

    /// Replaces the rates of both directions; the random numbers continue.
    pub fn set_rates(&mut self, faults: Faults) {
        self.0.iter_mut().for_each(|link| link.send(Change::Rates(faults)));
    }

    /// Loses the next requests, this many at each link; 0 for no more.
    pub fn lose_next(&mut self, count: u32) {
        self.0.iter_mut().for_each(|link| link.send(Change::LoseNext(count)));
    }

    /// Restarts the random numbers: with the same seed and the same frames the same faults follow.
    /// Each link has a separate sequence.
    pub fn set_seed(&mut self, seed: u64) {
        for (number, link) in (0..).zip(&mut self.0) {
            link.send(Change::Seed(seed.wrapping_add(number)));
        }
    }

    /// Sends changes that waited for space; to be called now and then.
    pub fn flush(&mut self) {
        self.0.iter_mut().for_each(Sender::flush);
    }
}

impl Sender {
    fn pair() -> (Self, FaultChanges) {
        let (changes, taken) = RingBuffer::new(CHANGES);
        (Self { changes, waiting: VecDeque::new() }, FaultChanges(taken))
    }

    fn flush(&mut self) {
        while let Some(change) = self.waiting.front() {
            if self.changes.push(*change).is_err() {
                return;
            }
            self.waiting.pop_front();
        }
    }

    fn send(&mut self, change: Change) {
        self.waiting.push_back(change);
        self.flush();
    }
}

impl fmt::Debug for FaultControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting: Vec<_> = self.0.iter().map(|link| link.waiting.len()).collect();
        f.debug_struct("FaultControl").field("waiting", &waiting).finish_non_exhaustive()
    }
}

impl fmt::Debug for FaultChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultChanges").finish_non_exhaustive()
    }
}
