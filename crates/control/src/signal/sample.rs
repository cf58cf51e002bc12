//! Signals by their place, for a recording.

use types::Signal;

use super::Signals;

impl Signals {
    /// The signal at this place, if there is one.
    pub(crate) fn at(&self, place: usize) -> Option<&Signal> {
        self.signals.get(place)
    }

    /// Bits of its value in this cycle, and [`FRESH`] and [`FORCED`] where they hold.
    pub(crate) fn sample(&self, place: usize) -> [u64; 2] {
        self.states.get(place).map_or([0; 2], |state| {
            let forced = if state.forced.is_some() { FORCED } else { 0 };
            [state.shown(), if state.fresh { FRESH | forced } else { forced }]
        })
    }
}

/// An input came in with this cycle; an output was taken by its SubDevice.
pub(crate) const FRESH: u64 = 1;

/// The value is a forced one.
pub(crate) const FORCED: u64 = 2;
