//! Feedback of a brake: digital inputs that show whether it is open or closed.
//!
//! The feedback is evaluated once the brake had the time to follow its command, until the next
//! command. A contradiction that lasts for [`FEEDBACK_TIME`] is a fault, which stays until it is
//! acknowledged. A lost input shows nothing, and counts as a contradiction, too.

use types::state::{BrakeInput, InputLevel, StopReason};

use super::BrakeTimes;
use crate::units::Seconds;

/// Reading of one input of the feedback in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputReading {
    /// Level of the input.
    pub level: InputLevel,
    /// True if it is on low.
    pub inverted: bool,
}

impl InputReading {
    /// True if it is on; `None` for one without a trusted level.
    const fn is_on(self) -> Option<bool> {
        match self.level {
            InputLevel::High => Some(!self.inverted),
            InputLevel::Low => Some(self.inverted),
            _ => None,
        }
    }
}

/// Reading of the feedback in a cycle; both inputs are `None` of a brake without feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrakeReading {
    /// Input that is on while the brake is open.
    pub released: Option<InputReading>,
    /// Input that is on while the brake is closed.
    pub closed: Option<InputReading>,
}

/// Input of the feedback that contradicts the command to a brake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrakeCause {
    /// The input.
    pub input: BrakeInput,
    /// Its level.
    pub level: InputLevel,
}

/// Contradiction of the feedback that has lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrakeFault {
    /// [`StopReason::BrakeNotOpen`] or [`StopReason::BrakeNotClosed`].
    pub reason: StopReason,
    /// Input that showed it.
    pub cause: BrakeCause,
}

impl BrakeReading {
    /// True once all its inputs have been read.
    #[must_use]
    pub fn is_read(&self) -> bool {
        let inputs = [self.released, self.closed];
        inputs.into_iter().flatten().all(|it| it.level != InputLevel::Unknown)
    }

    /// True if it has an input, and all its inputs have been read.
    #[must_use]
    pub fn shows(&self) -> bool {
        (self.released.is_some() || self.closed.is_some()) && self.is_read()
    }

    /// Input that does not show an open brake.
    pub(super) fn not_open(&self) -> Option<BrakeCause> {
        self.other_than(true)
    }

    /// Input that does not show a closed brake.
    pub(super) fn not_closed(&self) -> Option<BrakeCause> {
        self.other_than(false)
    }

    /// Input that shows another state than `open`; first the input that should be on.
    fn other_than(&self, open: bool) -> Option<BrakeCause> {
        let released = (BrakeInput::Released, self.released, open);
        let closed = (BrakeInput::Closed, self.closed, !open);
        let inputs = if open { [released, closed] } else { [closed, released] };
        inputs.into_iter().find_map(|(input, reading, expected)| {
            let reading = reading.filter(|it| it.is_on() != Some(expected))?;
            Some(BrakeCause { input, level: reading.level })
        })
    }
}

/// Watch over the feedback of a brake.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FeedbackWatch {
    /// True if the brake was commanded to open; `None` while neither is expected.
    commanded: Option<bool>,
    /// Time since that command.
    since: Seconds,
    /// Time and cycles for which the feedback has contradicted it.
    contradicts_for: Seconds,
    cycles: u32,
    /// Time for which the feedback has shown what was commanded.
    agrees_for: Seconds,
    /// True while it is unknown whether the brake closes without torque.
    is_pending: bool,
    /// It has shown a brake that is closed as commanded.
    was_closed: bool,
    fault: Option<BrakeFault>,
}

impl FeedbackWatch {
    /// One cycle. `is_reached`: the drive exchanges process data, so that a lost input does not
    /// belong to an outage of the whole bus.
    pub(super) fn look(
        &mut self,
        elapsed: Seconds,
        commanded: Option<bool>,
        reading: &BrakeReading,
        times: BrakeTimes,
        is_reached: bool,
    ) {
        self.since = if commanded == self.commanded { self.since + elapsed } else { Seconds::ZERO };
        self.commanded = commanded;
        let due = |open| self.since >= if open { times.release } else { times.engage };
        let expected = commanded.filter(|&open| due(open));
        let cause = expected.and_then(|open| reading.other_than(open));
        let agrees = expected.is_some() && cause.is_none();
        self.agrees_for = if agrees { self.agrees_for + elapsed } else { Seconds::ZERO };
        let cause = cause.filter(|it| match it.level {
            InputLevel::Unknown => false,
            InputLevel::Lost => is_reached,
            _ => true,
        });
        let is_closed = expected == Some(false) && cause.is_none();
        self.is_pending = reading.shows() && !is_closed;
        self.was_closed |= commanded == Some(false) && reading.not_closed().is_none();
        let Some((open, cause)) = expected.zip(cause) else {
            (self.contradicts_for, self.cycles) = (Seconds::ZERO, 0);
            return;
        };
        self.contradicts_for += elapsed;
        self.cycles = self.cycles.saturating_add(1);
        let lasts = self.contradicts_for >= FEEDBACK_TIME && self.cycles >= FEEDBACK_CYCLES;
        let reason = if open { StopReason::BrakeNotOpen } else { StopReason::BrakeNotClosed };
        // The first input that showed it is named.
        if lasts && self.fault.is_none_or(|it| it.reason != reason) {
            self.fault = Some(BrakeFault { reason, cause });
        }
    }

    /// Ends a fault, unless the feedback still contradicts the command.
    pub(super) fn acknowledge(&mut self) {
        if self.has_agreed() {
            self.fault = None;
        }
    }

    /// True once the feedback has shown for [`FEEDBACK_TIME`] what was commanded.
    pub(super) fn has_agreed(&self) -> bool {
        self.agrees_for >= FEEDBACK_TIME
    }

    /// True while the feedback may still show that the brake does not close without torque.
    pub(super) fn is_pending(&self) -> bool {
        self.is_pending && self.fault.is_none_or(|it| it.reason != StopReason::BrakeNotClosed)
    }

    /// True once it has shown that the brake closes, or that something is wrong.
    pub(super) const fn has_shown(&self) -> bool {
        self.was_closed || self.fault.is_some()
    }

    pub(super) const fn fault(&self) -> Option<BrakeFault> {
        self.fault
    }
}

/// Time that a contradiction lasts before it is a fault, and an agreement before it ends one:
/// contacts bounce.
pub const FEEDBACK_TIME: Seconds = Seconds(0.02);

/// The least cycles of a contradiction: from an output to the input that shows its effect.
pub(super) const FEEDBACK_CYCLES: u32 = 5;

#[cfg(test)]
mod tests;
