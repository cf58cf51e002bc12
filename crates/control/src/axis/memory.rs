//! Position memory of an axis: how the cycle and the thread that writes the memory work together.
//!
//! The memory on the disk has the flag `at_rest` (standstill, disabled) only while the drive is
//! disabled. So the cycle does not enable the drive before the writer has removed that flag, and
//! does not wait for it either: it requests the removal, and checks again in the next cycle. Both
//! sides use atomic operations only.
//!
//! | state | the disk | the drive |
//! |---|---|---|
//! | open | no flag | disabled; the cycle may enable it |
//! | in use | no flag | may be enabled |
//! | stored | the flag, or it is being written | disabled |
//! | wanted | the flag is being removed | disabled; the cycle asks for it |

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering};

use motion::supervision::StopReason;

/// Position memory of an axis at the start of a run.
#[derive(Clone, Debug)]
pub struct PositionMemory {
    /// Counts of the drive when the axis was last at standstill with its drive disabled. Else the
    /// reason that it is unreferenced: the memory is missing, or belongs to another drive, encoder
    /// or scale ([`StopReason::UnreferencedMemory`]), or the axis was in use
    /// ([`StopReason::UnreferencedInUse`]).
    pub last: Result<i32, StopReason>,
    /// To the thread that writes the memory.
    pub gate: Arc<MemoryGate>,
}

/// Two are the same if they lead to the same writer.
impl PartialEq for PositionMemory {
    fn eq(&self, other: &Self) -> bool {
        self.last == other.last && Arc::ptr_eq(&self.gate, &other.gate)
    }
}

/// Gate between the cycle and the thread that writes the memory of an axis.
#[derive(Debug)]
pub struct MemoryGate {
    state: AtomicU8,
    place: AtomicU64,
    /// System error of the last write; 0 after one that succeeded.
    error: AtomicI32,
}

impl Default for MemoryGate {
    /// At the start of a run there may be a flag on the disk.
    fn default() -> Self {
        Self { state: AtomicU8::new(STORED), place: AtomicU64::new(0), error: AtomicI32::new(0) }
    }
}

impl MemoryGate {
    /// For an axis without a writer: its drive may be enabled, and nothing is kept.
    #[must_use]
    pub fn without_writer() -> Self {
        Self { state: AtomicU8::new(IN_USE), place: AtomicU64::new(0), error: AtomicI32::new(0) }
    }
}

/// Place of an axis, as the cycle has seen it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Position actual value of its drive.
    pub counts: i32,
    /// It is at standstill, its drive is disabled, and its position is known.
    pub rests: bool,
}

impl MemoryGate {
    /// The cycle wants the drive enabled; true once it may be.
    pub(crate) fn enter(&self) -> bool {
        // Acquire, partner: the Release store in `removed`: the flag is gone from the disk.
        match self.state.load(Ordering::Acquire) {
            IN_USE => true,
            OPEN => self.exchange(OPEN, IN_USE),
            STORED => {
                self.exchange(STORED, WANTED);
                false
            }
            _ => false,
        }
    }

    /// The drive is disabled, and is not to be enabled.
    pub(crate) fn leave(&self) {
        if self.state.load(Ordering::Relaxed) == IN_USE {
            self.state.store(OPEN, Ordering::Release);
        }
    }

    /// Shows where the axis is.
    pub(crate) fn show(&self, place: Place) {
        let bits = u64::from(place.counts as u32) | u64::from(place.rests) << 32 | SHOWN;
        self.place.store(bits, Ordering::Release);
    }

    /// System error of the last write; 0 after one that succeeded, 127 for one without a number or
    /// with a larger one.
    pub(crate) fn error(&self) -> u8 {
        let error = self.error.load(Ordering::Relaxed);
        u8::try_from(error).map_or(OTHER_ERROR, |it| it.min(OTHER_ERROR))
    }

    /// For the writer: result of its last write, by the number of the system error, -1 for one
    /// without a number.
    pub fn note(&self, written: Result<(), i32>) {
        self.error.store(written.err().unwrap_or(0), Ordering::Relaxed);
    }

    /// For the writer: the place that was shown last.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        let bits = self.place.load(Ordering::Acquire);
        (bits & SHOWN != 0).then_some(Place { counts: bits as u32 as i32, rests: bits >> 32 & 1 != 0 })
    }

    /// For the writer: true if the flag may be written from now on. The cycle asks before it
    /// enables the drive again.
    #[must_use]
    pub fn store(&self) -> bool {
        self.state.load(Ordering::Acquire) == STORED || self.exchange(OPEN, STORED)
    }

    /// For the writer: true if the cycle waits for the flag to be removed.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.state.load(Ordering::Acquire) == WANTED
    }

    /// For the writer: the flag is removed from the disk.
    pub fn removed(&self) {
        self.exchange(WANTED, OPEN);
    }

    fn exchange(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// System error without a number in the state.
const OTHER_ERROR: u8 = 127;

const OPEN: u8 = 0;
const IN_USE: u8 = 1;
const STORED: u8 = 2;
const WANTED: u8 = 3;

/// A place was shown.
const SHOWN: u64 = 1 << 33;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cycle_enters_only_without_a_flag() {
        let gate = MemoryGate::default();
        assert!(!gate.enter() && gate.is_wanted(), "a flag of the run before");
        assert!(!gate.store(), "it is wanted");
        assert!(!gate.enter());
        gate.removed();
        assert!(gate.enter() && gate.enter());
        assert!(!gate.store(), "it is in use");
        gate.leave();
        assert!(gate.store() && gate.store());
        gate.leave();
        assert!(!gate.enter(), "there is a flag");
    }

    #[test]
    fn a_place_comes_through_whole() {
        let gate = MemoryGate::default();
        assert_eq!(gate.place(), None);
        for counts in [0, -1, i32::MIN, i32::MAX] {
            for rests in [false, true] {
                let place = Place { counts, rests };
                gate.show(place);
                assert_eq!(gate.place(), Some(place));
            }
        }
    }

    /// Both sides at full speed: never is the drive enabled while there is a flag.
    #[test]
    fn no_flag_while_in_use() {
        use std::sync::atomic::AtomicBool;
        let (gate, flag) = (MemoryGate::default(), AtomicBool::new(true));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if gate.is_wanted() {
                        flag.store(false, Ordering::Release);
                        gate.removed();
                    } else if gate.store() {
                        flag.store(true, Ordering::Release);
                    }
                }
            });
            let mut entered = 0;
            while entered < 20_000 {
                if gate.enter() {
                    assert!(!flag.load(Ordering::Acquire), "enabled with a flag on the disk");
                    entered += 1;
                    gate.leave();
                }
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
