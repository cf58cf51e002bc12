//! Signals by their place, for a recording.

use types::Signal;

use super::Signals;

impl Signals {
    /// The signal at this place, if there is one.
    pub(crate) fn at(&self, place: usize) -> Option<&Signal> {
        self.signals.get(place)
    }

    /// Number of signals.
    pub(crate) fn count(&self) -> usize {
        self.signals.len()
    }
}
