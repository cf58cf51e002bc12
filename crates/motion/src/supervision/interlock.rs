//! Stop signals and permissions: an axis is stopped, then it is without torque.

use super::{
    BLIND_CYCLES, Braking, Hold, InterlockState, Intervention, STANDS, Seen, StopReason, Supervisor,
};
use crate::axis::AxisPhase;

impl Supervisor {
    /// True if an interlock has the axis. Only the end of that interlock releases it.
    pub(super) fn is_interlocked(&self, seen: &Seen) -> bool {
        let held = matches!(self.stopped(), Some(StopReason::Interlock | StopReason::NotPermitted));
        let heard = seen.feedback.fresh || seen.missed <= BLIND_CYCLES;
        held || (seen.interlock != InterlockState::Clear && heard)
    }

    /// Stops the axis, then removes its torque.
    pub(super) fn hold_interlocked(&mut self, seen: &Seen) {
        let reason = match (self.stopped(), seen.interlock) {
            (Some(StopReason::Interlock), _) | (_, InterlockState::Stop) => StopReason::Interlock,
            // What is latched needs a reset once the permission has returned.
            (Some(latched), _) if latched.is_latched() && !is_replaced(latched) => latched,
            _ => StopReason::NotPermitted,
        };
        if seen.interlock == InterlockState::NotPermitted {
            self.note_forbidden();
        }
        // A reset counts once the signal has ended, and a start request once the permission is
        // given.
        self.acknowledged &= seen.interlock < InterlockState::NotPermitted;
        self.rest_without_torque(reason, seen);
    }

    /// Stops, then without torque, because of the feedback of the brake. The drive gives its torque
    /// away only if its brake is closed.
    pub(super) fn hold_for_brake(&mut self, reason: StopReason, seen: &Seen) {
        // A reset counts once the feedback shows what it should.
        self.acknowledged = false;
        self.rest_without_torque(reason, seen);
    }

    fn rest_without_torque(&mut self, reason: StopReason, seen: &Seen) {
        let brakes = match self.hold {
            Hold::Stopped {
                braking:
                    Braking::Drive(Intervention::QuickStop | Intervention::Disable | Intervention::CutOff),
                ..
            } => true,
            Hold::Stopped { reason: before, .. } => before == reason,
            Hold::Free => false,
        };
        if !brakes {
            self.stop(reason, None);
        }
        // Without torque its load falls: it is held until a reset, even if its controller requests
        // otherwise.
        let holds_load = self.is_held_enabled();
        let stands = seen.feedback.velocity.abs() <= self.settings.limits.velocity * STANDS;
        if let Hold::Stopped { reason: before, braking } = &mut self.hold {
            *before = reason;
            if holds_load {
                *braking = Braking::Drive(Intervention::QuickStop);
            }
            // A drive that homes is halted first, and a quick stop in progress continues.
            let brakes = *braking == Braking::Drive(Intervention::QuickStop) && !stands;
            if seen.feedback.phase == AxisPhase::NotEnabled && !seen.homing && !brakes {
                *braking = Braking::Drive(Intervention::Disable);
            }
        }
        if stands && !holds_load && self.rests(&seen.feedback) {
            self.hold = Hold::Stopped { reason, braking: Braking::Drive(Intervention::Disable) };
        }
    }
}

/// True of a latched stop in the place of which a missing permission is shown.
const fn is_replaced(reason: StopReason) -> bool {
    matches!(
        reason,
        StopReason::AwaitsStart
            | StopReason::Outage
            | StopReason::OtherAxis
            | StopReason::Ending
            | StopReason::AfterSetUp
    )
}
