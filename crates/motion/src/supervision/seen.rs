//! Input of supervision in a cycle, and its outcome.

use super::{Ending, InterlockState};
use crate::axis::{AxisFeedback, AxisSetpoint};
use crate::units::Seconds;

/// The reasons, and all of them, from one list.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Why an axis was stopped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StopReason {
            $($(#[$doc])* $name,)*
        }

        impl StopReason {
            /// All of them.
            pub const ALL: [Self; [$(Self::$name),*].len()] = [$(Self::$name),*];
        }
    };
}

reasons! {
    /// The command went stale, or the controller process answers no more.
    Stale,
    /// The controller asked beyond the limits of position; in torque mode the axis is too fast to stop before one.
    PositionLimit,
    /// Beyond the limit of velocity; in torque mode the axis moves that fast.
    VelocityLimit,
    /// A set-point stepped farther than it may.
    Step,
    /// The axis did not follow.
    FollowingError,
    /// The drive is in fault.
    Fault,
    /// A set-point, or what the axis reports, is no finite number.
    NotFinite,
    /// The drive did not find its home: it showed a homing error.
    HomingError,
    /// The drive did not find its home in time.
    HomingTimedOut,
    /// The axis was not heard of.
    Outage,
    /// A stop signal.
    Interlock,
    /// The permission to enable is missing.
    NotPermitted,
    /// The cycle ends, and the controller did not bring the axis to rest by itself.
    Ending,
}

impl StopReason {
    /// True if it stays until it is acknowledged; an outage does unless [`AfterOutage::Resume`](super::AfterOutage::Resume) says otherwise.
    #[must_use]
    pub const fn is_latched(self) -> bool {
        !matches!(self, Self::Stale | Self::NotPermitted)
    }
}

/// Request to an axis's drive in place of the controller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intervention {
    /// Stand still with torque.
    Halt,
    /// Brake along its own ramp, then no torque.
    QuickStop,
    /// No torque.
    Disable,
}

/// Input of supervision in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Feedback of the axis.
    pub feedback: AxisFeedback,
    /// The drive is in fault, or on its way there.
    pub fault: bool,
    /// The command the controller lives on is stale: the longest [`Supervisor::ramp_time`](super::Supervisor::ramp_time) of all axes when it became
    /// so. `None` while it is fresh, and for a controller that lives on no command.
    pub stale: Option<Seconds>,
    /// Cycles in a row up to this one in which the axis was not heard of: no trusted input came, its outputs were not taken, or the host
    /// stood still. With a fresh [`Seen::feedback`] they have just ended.
    pub missed: u64,
    /// The drive has the axis, to find its home.
    pub homing: bool,
    /// Permission of the machine around it.
    pub interlock: InterlockState,
    /// True if the cycle ends.
    pub ending: Ending,
    /// The controller asks its drive to brake by itself: a halt or a quick stop.
    pub braking: bool,
}

/// Outcome of supervision for a set-point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Supervised {
    /// Set-point for the drive.
    pub setpoint: AxisSetpoint,
    /// Request in place of the controller's, if any.
    pub intervention: Option<Intervention>,
    /// Why the axis is stopped or held back.
    pub reason: Option<StopReason>,
}
