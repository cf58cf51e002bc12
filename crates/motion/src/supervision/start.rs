//! Start requests: nothing that returns moves an axis.
//!
//! Power, safe torque off (STO), main power or a permission may take the torque of an axis, and
//! return. A controller, a command or a ROS node may still request motion. Such a request does not
//! count. The axis stays disabled ([`StopReason::AwaitsStart`]) until a *start request*
//! after the return:
//!
//! * an acknowledgement ([`Supervisor::acknowledge`]): `control enable` or `control reset`; or
//! * a rising request: the controller requests no torque ([`Seen::disables`]), and later for
//!   torque.
//!
//! A start request that the drive does not carry out within [`START_TIME`] has lapsed, also if it
//! was held back from the drive.

use core::mem;

use super::{BLIND_CYCLES, Braking, Hold, Intervention, Seen, StopReason, Supervisor};
use crate::units::Seconds;

/// Time within which a drive carries out a request to enable it.
pub const START_TIME: Seconds = Seconds(10.0);

/// State of the start requests of an axis.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Start {
    /// Cause for which a start request is needed.
    required: Option<Cause>,
    /// The drive was last sent a request to be enabled.
    sent_enable: bool,
    /// A request to enable it was held back.
    held_back: bool,
    /// The last reply showed Operation enabled.
    was_enabled: bool,
    /// Time for which a drive may still leave Operation enabled because of a request.
    excused: Seconds,
    /// It has shown main power while enabled: its statusword knows bit 4.
    has_shown_power: bool,
    /// Replies in a row without main power, while enabled.
    without_power: u64,
    /// Time for which the drive was requested to be enabled, and was not.
    waited: Seconds,
    /// Of this, the time without main power before Switched on.
    waited_for_power: Seconds,
}

/// Cause for which a start request is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A permission was missing.
    Permission,
    /// The drive had no torque: its power, its main power, or safe torque off.
    Drive,
}

impl Supervisor {
    /// The drive was without power. Back there, it is not enabled without a start request.
    pub fn lose_power(&mut self) {
        self.lose_drive();
        self.start.required = Some(Cause::Drive);
    }

    /// The axis is disabled until a start request. If a fault stopped it, the fault has ended.
    pub fn require_start(&mut self) {
        if self.stopped() == Some(StopReason::Fault) {
            self.hold = Hold::Free;
        }
        self.hold_for_start(Cause::Drive, Intervention::Disable);
    }

    /// True while its drive should be in Operation enabled: it was there, and no request made it
    /// leave.
    #[must_use]
    pub fn expects_enabled(&self) -> bool {
        self.start.was_enabled && self.start.sent_enable && self.start.excused.0 <= 0.0
    }

    /// The drive is not sent its request in this cycle. If it `lapses`, it does so after
    /// [`START_TIME`], like a sent request.
    pub const fn hold_back(&mut self, lapses: bool) {
        (self.start.sent_enable, self.start.held_back) = (false, lapses);
    }

    /// A permission is missing: its return enables nothing.
    pub(super) fn note_forbidden(&mut self) {
        self.start.required.get_or_insert(Cause::Permission);
    }

    /// True if the drive lost its torque, and not for want of a permission.
    pub(super) fn lost_torque(&self) -> bool {
        self.start.required == Some(Cause::Drive)
    }

    /// True if the stop that waits for a start ends.
    pub(super) const fn is_started(&self, seen: &Seen) -> bool {
        self.acknowledged || seen.disables
    }

    /// Ends a stop of an axis that needs a start request; false if it needs none any more.
    pub(super) fn awaits_start(&mut self, seen: &Seen) -> bool {
        if self.is_started(seen) {
            self.start.required = None;
        }
        let Some(cause) = self.start.required else { return false };
        self.hold = Hold::Free;
        self.hold_for_start(cause, Intervention::Disable);
        true
    }

    /// Looks whether the drive lost its torque by itself, or does not carry out a start request.
    pub(super) fn watch_drive(&mut self, elapsed: Seconds, seen: &Seen) {
        let Some(has_power) = seen.has_power else { return };
        let enabled = seen.enabled;
        if enabled && !self.start.was_enabled {
            self.start.excused = Seconds::ZERO;
        }
        let dropped = self.start.was_enabled && !enabled && self.start.excused.0 <= 0.0;
        self.start.was_enabled = enabled;
        if self.start.sent_enable {
            self.start.excused = Seconds(self.start.excused.0 - elapsed.0);
        } else {
            self.start.excused = ANSWER_TIME;
        }
        let lost_power = self.loses_power(enabled, has_power);
        let lapsed = self.lapses(elapsed, seen, has_power);
        if seen.fault {
            // A fault is latched anyway.
            return;
        }
        if dropped && seen.switched_on {
            // It brakes by itself: its torque is left to it.
            self.hold_for_start(Cause::Drive, Intervention::QuickStop);
        } else if dropped || lapsed {
            self.hold_for_start(Cause::Drive, Intervention::Disable);
        } else if lost_power {
            self.hold_for_start(Cause::Drive, Intervention::QuickStop);
        }
    }

    /// Notes what the drive is sent.
    pub(super) fn note_sent(&mut self, intervention: Option<Intervention>, seen: &Seen) {
        self.start.sent_enable = match intervention {
            None => seen.asks || (seen.braking && !seen.quick_stop && self.halts_enabled()),
            Some(Intervention::Follow) => true,
            Some(Intervention::Halt) => self.halts_enabled(),
            Some(Intervention::QuickStop | Intervention::Disable | Intervention::CutOff) => false,
        };
    }

    /// True if a halt leaves the drive enabled. It enables none.
    fn halts_enabled(&self) -> bool {
        self.means.halts && self.start.was_enabled
    }

    /// True once an enabled drive that has shown main power shows none (statusword bit 4).
    fn loses_power(&mut self, enabled: bool, has_power: bool) -> bool {
        let start = &mut self.start;
        start.without_power = match (enabled, has_power) {
            (true, false) if start.has_shown_power => start.without_power.saturating_add(1),
            _ => 0,
        };
        start.has_shown_power |= enabled && has_power;
        start.without_power > BLIND_CYCLES
    }

    /// True once a start request has lapsed: the drive does not carry it out, or its main power was
    /// later.
    fn lapses(&mut self, elapsed: Seconds, seen: &Seen, has_power: bool) -> bool {
        let start = &mut self.start;
        let held_back = mem::take(&mut start.held_back);
        if seen.enabled || seen.fault || !(start.sent_enable || held_back) {
            (start.waited, start.waited_for_power) = (Seconds::ZERO, Seconds::ZERO);
            return false;
        }
        start.waited += elapsed;
        // A drive that gets no request shows no main power.
        let has_power = has_power || held_back;
        let returned = has_power && start.waited_for_power > CHARGE_TIME;
        match has_power || seen.switched_on {
            true => start.waited_for_power = Seconds::ZERO,
            false => start.waited_for_power += elapsed,
        }
        returned || start.waited > START_TIME
    }

    fn hold_for_start(&mut self, cause: Cause, intervention: Intervention) {
        self.start.required = Some(cause);
        self.start.without_power = 0;
        let reason = self.stopped().filter(|it| it.is_latched()).unwrap_or(StopReason::AwaitsStart);
        let braking = match self.hold {
            Hold::Stopped {
                braking:
                    braking @ Braking::Drive(
                        Intervention::QuickStop | Intervention::Disable | Intervention::CutOff,
                    ),
                ..
            } => braking,
            _ => Braking::Drive(intervention),
        };
        self.hold = Hold::Stopped { reason, braking };
        (self.acknowledged, self.asked) = (false, None);
    }
}

/// Time within which a drive leaves Operation enabled after the request.
const ANSWER_TIME: Seconds = Seconds(0.5);

/// Time within which a drive charges its DC link after the request to switch on: later main power
/// has returned.
const CHARGE_TIME: Seconds = Seconds(3.0);
