//! Axes with a position that may have changed without Onbeat's knowledge: *unreferenced* axes.
//!
//! No controller moves such an axis. A reset lets its drive be enabled, and supervision then holds
//! it where it is; only a homing, or an operator with a measured position, ends the stop.

use super::{Braking, Hold, Intervention, Seen, StopReason, Supervisor};

impl Supervisor {
    /// The position of the axis may be another one than reported, for this reason. Its drive gets
    /// the quick-stop request.
    pub fn unreference(&mut self, reason: StopReason) {
        self.unreferenced = Some(reason);
        self.lose(reason, true);
        self.acknowledged = false;
        if let Hold::Stopped { reason: shown, .. } = &mut self.hold {
            // A fault and an interlock have to end first.
            if !matches!(shown, StopReason::Fault | StopReason::Interlock) {
                *shown = reason;
            }
        }
    }

    /// The position of the axis is known again. A reset ends the stop.
    pub fn reference(&mut self) {
        self.unreferenced = None;
    }

    /// Reason that its position may be another one than reported.
    #[must_use]
    pub const fn unreferenced(&self) -> Option<StopReason> {
        self.unreferenced
    }

    /// True if its drive may look for its home: no stop has the axis, or it is unreferenced, and
    /// was reset.
    #[must_use]
    pub fn may_home(&self) -> bool {
        !self.in_set_up && !self.jogging.after_set_up && self.yields()
    }

    /// True if another stop may take its place.
    pub(super) fn yields(&self) -> bool {
        match self.hold {
            Hold::Free => true,
            Hold::Stopped { reason, braking } if reason.is_unreferenced() => {
                !matches!(braking, Braking::Drive(Intervention::QuickStop | Intervention::Disable))
            }
            Hold::Stopped { reason, .. } => !reason.is_latched(),
        }
    }

    /// Ends a stop; an unreferenced axis stays held, and its drive may be enabled once it was
    /// reset. An axis that needs a start request waits for it.
    pub(super) fn release(&mut self, seen: &Seen) {
        // A jog moves an unreferenced axis only once it was reset.
        let was_reset = self.acknowledged || self.is_jogged();
        let Some(reason) = self.unreferenced else {
            if !self.awaits_start(seen) {
                self.hold = Hold::Free;
                self.hold_unready();
            }
            return;
        };
        self.stop(reason, None);
        if let (false, Hold::Stopped { braking, .. }) = (was_reset, &mut self.hold) {
            *braking = Braking::Drive(Intervention::QuickStop);
        }
    }
}
