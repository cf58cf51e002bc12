//! Signals by their place, for a controller in another process.

use types::signal::Flow;
use types::{Value, ValueKind};

use super::{Io, SignalState, Signals};

impl Signals {
    /// Kind of the value of each output that a controller may set; `None` of all other signals.
    pub(crate) fn output_kinds(&self) -> impl Iterator<Item = Option<ValueKind>> + '_ {
        self.signals.iter().map(|signal| {
            let settable = matches!(signal.flow, Flow::Output(_)) && !signal.is_commanded();
            settable.then(|| signal.kind())
        })
    }
}

impl Io<'_> {
    /// Values, in the order of the signals.
    pub(crate) fn signals(&self) -> impl Iterator<Item = SignalState> + '_ {
        self.signals.states()
    }

    /// Sets the output at this place, as [`Io::set`] does.
    pub(crate) fn set_at(&mut self, place: usize, value: Value) {
        self.signals.set(place, value);
    }
}
