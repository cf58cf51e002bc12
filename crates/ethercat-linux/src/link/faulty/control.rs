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

/// Changes the faults of a [`Faulty`](super::Faulty) link while it runs, from one other thread: without a lock, and
/// without an allocation at the link. The link takes changes with the next frame.
pub struct FaultControl {
    changes: Producer<Change>,
    /// Changes for which there was no room.
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
    /// Both ends: this one, and that of the link ([`Faulty::changed_by`](super::Faulty::changed_by)).
    #[must_use]
    pub fn pair() -> (Self, FaultChanges) {
        let (sender, changes) = RingBuffer::new(CHANGES);
        (Self { changes: sender, waiting: VecDeque::new() }, FaultChanges(changes))
    }

    /// Replaces the rates of both directions; chance goes on as it is.
    pub fn set_rates(&mut self, faults: Faults) {
        self.send(Change::Rates(faults));
    }

    /// Loses the next requests, this many; 0 for no more.
    pub fn lose_next(&mut self, count: u32) {
        self.send(Change::LoseNext(count));
    }

    /// Begins chance anew: with the same seed and the same frames the same faults follow.
    pub fn set_seed(&mut self, seed: u64) {
        self.send(Change::Seed(seed));
    }

    /// Sends changes for which there was no room before; to be called now and then.
    pub fn flush(&mut self) {
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
        f.debug_struct("FaultControl").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for FaultChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultChanges").finish_non_exhaustive()
    }
}
