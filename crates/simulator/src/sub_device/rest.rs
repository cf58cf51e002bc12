//! Rest of a SubDevice: steps without effect are omitted, and made up for before an access could
//! show the difference.

use core::time::Duration;

use ethercat::al::AlState;
use ethercat::register::{self, dc, sii_interface};
use ethercat::time::Instant;
use ethercat::wire::Command;

use super::{STEP, SubDevice, setup};
use crate::esc::{FIRST_SHARED, SyncSignal};

impl SubDevice {
    /// Time of its next advance, unless it is accessed before; `None` is never.
    pub(crate) fn due(&self) -> Option<Instant> {
        let sync = self.esc.sync_due().map(|(_, due)| due);
        if self.rests {
            let longest = self.makes_up.then(|| self.next_step + LONGEST_WAIT);
            let steps = [self.esc.watchdog_expiry(), self.sync0_lost_at(), longest].into_iter().flatten();
            return steps.map(|it| self.step_from(it)).chain(sync).min();
        }
        Some(sync.map_or(self.next_step, |due| due.min(self.next_step)))
    }

    /// Prepares for an access to registers or memory, in a frame that arrives at `now`: ends the
    /// rest if the access may have consequences, or could show it. True if it may change the next
    /// due time of this SubDevice, or its properties known to the segment.
    pub(crate) fn meet(&mut self, now: Instant, command: Command, register: u16, length: usize) -> bool {
        let (start, end) = (u32::from(register), u32::from(register) + length as u32);
        let lies_before = |first: u16| end <= u32::from(first);
        // A read of the EEPROM runs without the application; a write to it wakes the application
        // afterwards.
        let is_sii = start >= u32::from(sii_interface::CONTROL) && lies_before(register::MII_CONTROL);
        if is_sii {
            return command.writes();
        }
        let is_clock = start >= u32::from(dc::RECEIVE_TIME) && lies_before(dc::CYCLIC_UNIT_CONTROL);
        if is_clock {
            return command.writes() && self.esc.sync_due().is_some();
        }
        let shows_buffers = !lies_before(register::SYNC_MANAGER) && start < u32::from(dc::RECEIVE_TIME);
        let ends_rest =
            command.writes() || !lies_before(FIRST_SHARED) || shows_buffers && self.has_inputs();
        if ends_rest {
            self.wake(now);
        }
        ends_rest
    }

    /// Ends the rest if the access at `now` has given it something to do.
    pub(crate) fn met(&mut self, now: Instant) {
        if self.rests && !self.esc.is_at_rest(STEP) {
            self.wake(now);
        }
    }

    /// Ends the rest at `now`, after the steps until then.
    pub(crate) fn wake(&mut self, now: Instant) {
        if self.rests {
            let next = if now < self.next_step { self.next_step } else { self.step_from(now + NANOSECOND) };
            self.resume(next, false);
        }
    }

    /// Ends the rest if something is due at `now`. True if it does not rest then.
    pub(super) fn wake_if_due(&mut self, now: Instant) -> bool {
        if self.rests {
            if let Some(due) = self.due().filter(|due| *due <= now) {
                let step = self.step_from(due);
                let sync0 = self.esc.sync_due() == Some((SyncSignal::Sync0, due));
                self.resume(step, sync0 && due < step);
            }
        }
        !self.rests
    }

    /// Ends the rest before `step`, as if all earlier steps had been made. If SYNC0 is next, it
    /// makes up for its share itself.
    fn resume(&mut self, step: Instant, next_is_sync0: bool) {
        let skipped = step.since(self.next_step);
        let last = self.next_step + skipped.saturating_sub(STEP);
        (self.rests, self.next_step) = (false, step);
        if skipped.is_zero() {
            return;
        }
        self.esc.skip(skipped);
        if self.makes_up && !next_is_sync0 {
            let outputs = self.take_outputs().then_some(self.outputs.as_slice());
            self.application.step(last, outputs, &mut self.inputs);
        }
        if self.has_inputs() {
            // Each step transfers the same inputs, alternating between two buffers.
            let is_even = skipped.as_nanos() / STEP.as_nanos() % 2 == 0;
            (0..1 + u8::from(is_even)).for_each(|_| setup::give_inputs(&mut self.esc, &self.inputs));
        }
    }

    /// Rests from now on, if possible.
    pub(super) fn settle(&mut self) {
        let may_rest = self.may_rest();
        let rests = may_rest && self.application.rests();
        self.makes_up = may_rest && !rests && self.has_inputs() && self.application.waits_for_sync0();
        self.rests = rests || self.makes_up;
    }

    /// True if further steps would change nothing, in it or outside, but in its application, until
    /// a frame or the caller turns to it, SYNC0 or SYNC1 comes, or a watchdog expires.
    fn may_rest(&self) -> bool {
        self.application_runs
            && self.mailbox_runs
            && self.awaits_outputs.is_none()
            && self.setup_check.is_none()
            && self.esc.is_at_rest(STEP)
            && self.mailbox.is_at_rest(&self.esc)
    }

    /// True if a step of its application would change nothing: only mail has arrived since the
    /// last, and there is no process data.
    pub(super) fn steps_in_vain(&self) -> bool {
        self.was_stepped && !self.has_inputs() && self.application.rests()
    }

    fn has_inputs(&self) -> bool {
        matches!(self.state, AlState::SafeOp | AlState::Op)
    }

    /// First step at `time` or after it that was not made.
    fn step_from(&self, time: Instant) -> Instant {
        let steps = time.since(self.next_step).as_nanos().div_ceil(STEP.as_nanos());
        self.next_step + Duration::from_nanos((steps * STEP.as_nanos()) as u64)
    }
}

/// Longest time for which an application may leave steps out that it makes up for.
const LONGEST_WAIT: Duration = Duration::from_millis(10);

const NANOSECOND: Duration = Duration::from_nanos(1);
