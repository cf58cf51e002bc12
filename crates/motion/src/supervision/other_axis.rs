//! Axes that are stopped with another one.

use super::{AfterOutage, Hold, StopReason, Supervisor};

/// Stop of another axis that this one is stopped with, from the least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OtherAxis {
    /// It is not stopped.
    #[default]
    Free,
    /// Stopped, and resumes by itself when its outage has ended ([`AfterOutage::Resume`]); so does
    /// this one.
    Resumes,
    /// Stopped until it is reset; so is this one.
    Stopped,
}

impl Supervisor {
    /// Stop of this axis, for axes that stop with it: by its own supervision, its drive's fault, or
    /// its SubDevice's loss. A stale command, a missing permission and the end of the cycle reach
    /// the affected axes directly.
    #[must_use]
    pub fn stop_for_others(&self) -> OtherAxis {
        match self.stopped() {
            _ if self.unreferenced.is_some() => OtherAxis::Stopped,
            None
            | Some(
                StopReason::Stale
                | StopReason::NotPermitted
                | StopReason::Ending
                | StopReason::OtherAxis
                | StopReason::Jog
                | StopReason::NotHomed
                | StopReason::OutsideLimits
                | StopReason::SetUp
                | StopReason::AfterSetUp
                | StopReason::Chain,
            ) => OtherAxis::Free,
            // As a missing permission.
            Some(StopReason::AwaitsStart) if !self.lost_torque() => OtherAxis::Free,
            Some(StopReason::Outage)
                if self.settings.outage.after == AfterOutage::Resume && !self.lost_torque() =>
            {
                OtherAxis::Resumes
            }
            Some(_) => OtherAxis::Stopped,
        }
    }

    /// Stops this axis while another one is stopped, unless it is stopped for its own reason. Call
    /// it between [`Self::judge`] and [`Self::send`] in every cycle. True if that stop has just
    /// begun.
    pub fn stop_with(&mut self, other: OtherAxis) -> bool {
        self.other = other;
        let begins = other != OtherAxis::Free
            && match &mut self.hold {
                Hold::Free
                | Hold::Stopped {
                    reason: StopReason::Jog | StopReason::NotHomed | StopReason::OutsideLimits,
                    ..
                } => {
                    self.stop(StopReason::OtherAxis, None);
                    true
                }
                // It is stopping; only the condition that ends the stop changes.
                Hold::Stopped { reason: reason @ (StopReason::Stale | StopReason::Chain), .. } => {
                    *reason = StopReason::OtherAxis;
                    self.acknowledged = false;
                    true
                }
                // An interlock removes the torque, too, and releases nothing while it has the axis.
                Hold::Stopped { .. } => false,
            };
        self.awaits_reset = other == OtherAxis::Stopped || self.awaits_reset && !begins;
        begins
    }
}
