//! Forces of signals: their begin and their end, each an event.

use std::sync::Arc;
use std::time::Duration;

use ethercat::time::Instant;
use ipc::force::{Client, Force};
use types::Value;
use types::signal::{Flow, Signal};

use super::{Governing, Signals, State};

/// Begin or end of a force.
#[derive(Debug)]
pub enum ForceEvent {
    /// A signal is forced: held at a value.
    Forced {
        /// Its name.
        signal: Arc<str>,
        /// The value, in its unit.
        value: Value,
        /// Time it lasts unless it is released.
        time: Duration,
        /// The client that requested it.
        by: Client,
    },
    /// A signal is forced no more.
    Released {
        /// Its name.
        signal: Arc<str>,
        /// Its value afterwards, in its unit.
        value: Value,
        /// Reason for the end.
        reason: ReleaseReason,
        /// Cycles it was forced for.
        after: u64,
    },
}

/// Reason for the end of a force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseReason {
    /// A client released the signal.
    Request(Client),
    /// Its time was over.
    TimeOver,
    /// The cycle stops.
    Stop,
    /// Its SubDevice was lost, and the output returns with the value of the robot file.
    Return,
}

impl ReleaseReason {
    /// The reason in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Request(_) => "released",
            Self::TimeOver => "its time has expired",
            Self::Stop => "the cycle stops",
            Self::Return => "its SubDevice was lost",
        }
    }
}

/// A value that takes the place of a signal's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forced {
    pub(super) raw: u64,
    until: Instant,
    /// Cycle in which it began.
    since: u64,
    by: Client,
}

impl Forced {
    /// One that the cycle of another process holds.
    pub(super) fn elsewhere(raw: u64) -> Self {
        Self { raw, until: Instant::EPOCH, since: 0, by: Client { user: 0, process: 0 } }
    }

    /// Reason that it ends in this cycle, if it does.
    pub(super) fn is_over(self, governing: &Governing) -> Option<ReleaseReason> {
        match governing {
            // The end decides over forces, of inputs too.
            Governing { stopping: true, .. } => Some(ReleaseReason::Stop),
            Governing { now, .. } => (*now >= self.until).then_some(ReleaseReason::TimeOver),
        }
    }
}

/// Ends the force of a signal, with an event that has its value afterwards; allocates nothing.
pub(super) fn end(
    signal: &Signal,
    state: &mut State,
    name: &Arc<str>,
    reason: ReleaseReason,
    cycle: u64,
    tell: &mut impl FnMut(ForceEvent),
) {
    if let Some(forced) = state.forced.take() {
        let after = cycle.saturating_sub(forced.since);
        let (name, value) = (Arc::clone(name), signal.value(state.raw));
        tell(ForceEvent::Released { signal: name, value, reason, after });
    }
}

impl Signals {
    /// Forces a signal, or releases it. The value was checked at the request; an invalid one
    /// becomes the nearest valid one. A signal forced to the same value again stays forced longer,
    /// without a further event of the same client.
    pub(crate) fn force(
        &mut self,
        force: Force,
        by: Client,
        governing: &Governing,
        tell: &mut impl FnMut(ForceEvent),
    ) {
        let reason = ReleaseReason::Request(by);
        match force {
            Force::ReleaseAll => {
                let states = self.states.iter_mut().zip(&self.names);
                for (signal, (state, name)) in self.signals.iter().zip(states) {
                    end(signal, state, name, reason, governing.cycle, tell);
                }
            }
            Force::Release(place) => {
                let found = (self.signals.get(place), self.states.get_mut(place), self.names.get(place));
                if let (Some(signal), Some(state), Some(name)) = found {
                    end(signal, state, name, reason, governing.cycle, tell);
                }
            }
            Force::Hold { signal: place, value, time } => {
                let (Some(signal), Some(state), Some(name)) =
                    (self.signals.get(place), self.states.get_mut(place), self.names.get(place))
                else {
                    return;
                };
                // Only supervision writes the outputs of an axis.
                let (Some((raw, _)), Flow::Input | Flow::Output(_)) = (signal.raw(value), &signal.flow)
                else {
                    return;
                };
                let before = state.forced;
                let since = before.map_or(governing.cycle, |before| before.since);
                state.forced = Some(Forced { raw, until: governing.now + time, since, by });
                if before.is_none_or(|before| (before.raw, before.by) != (raw, by)) {
                    let (signal, value) = (Arc::clone(name), signal.value(raw));
                    tell(ForceEvent::Forced { signal, value, time, by });
                }
            }
        }
    }
}
