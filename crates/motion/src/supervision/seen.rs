//! Input of supervision in a cycle, and its outcome.

use crate::axis::{AxisFeedback, AxisSetpoint};
use crate::units::{Radians, RadiansPerSecond, Seconds};
pub use types::state::StopReason;

/// Request to an axis's drive in place of the controller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intervention {
    /// Stand still with torque.
    Halt,
    /// Brake along its own ramp, then no torque.
    QuickStop,
    /// No torque.
    Disable,
    /// Stay enabled and follow supervision's set-points.
    Follow,
    /// No torque at once, without the steps in between, and the brake with it.
    CutOff,
}

/// Input of supervision in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Feedback of the axis.
    pub feedback: AxisFeedback,
    /// Following error as its drive counts it (0x60F4); `None` where the drive does not show it.
    pub following_error: Option<Radians>,
    /// The drive is in fault, or on its way there.
    pub fault: bool,
    /// The command that drives the controller is stale: the longest
    /// [`Supervisor::ramp_time`](super::Supervisor::ramp_time) of all axes when it became stale.
    /// `None` while it is fresh, and for a controller without a command.
    pub stale: Option<Seconds>,
    /// Consecutive cycles of an outage up to this one: no trusted input arrived, its outputs were
    /// not taken, or the host stalled. With a fresh [`Seen::feedback`] the outage has just ended.
    pub missed: u64,
    /// Consecutive replies up to this cycle with a position that the axis cannot have reached; each
    /// counts in [`Seen::missed`].
    pub implausible: u64,
    /// The last consecutive ones of these that each lie farther in one direction than the axis
    /// moves between them; 0 without a reply.
    pub leaps: u64,
    /// The drive has the axis, to find its home.
    pub homing: bool,
    /// Permission of the machine around it.
    pub interlock: InterlockState,
    /// True if the cycle ends.
    pub ending: Ending,
    /// The controller requests braking by its drive: a halt or a quick stop.
    pub braking: bool,
    /// The controller requests a quick stop.
    pub quick_stop: bool,
    /// The controller requests no torque.
    pub disables: bool,
    /// The controller requests its drive to be enabled.
    pub asks: bool,
    /// The reply of this cycle shows Operation enabled, trusted or not.
    pub enabled: bool,
    /// The reply of this cycle shows Quick stop active, trusted or not: the drive brakes by itself.
    pub brakes: bool,
    /// The reply of this cycle shows Switched on, or a state beyond it.
    pub switched_on: bool,
    /// The reply of this cycle shows main power (statusword bit 4); `None` without a reply.
    pub has_power: Option<bool>,
    /// It has to be homed before a controller moves it, and is not.
    pub not_homed: bool,
    /// Set-up mode: automatic motion is not permitted.
    pub set_up: bool,
    /// Fault that the feedback of its brake shows ([`StopReason::is_of_brake_feedback`]).
    pub brake: Option<StopReason>,
    /// Jog that is requested.
    pub jog: Option<Jog>,
}

/// True if the cycle ends or a request stops the axes, and how long its controller may take to stop
/// the axis by its own profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The cycle continues.
    #[default]
    No,
    /// A controller that has not slowed the axis down within [`super::HEED_TIME`], or not stopped
    /// it within [`super::END_TIME`], loses it.
    Asked,
    /// Supervision brakes at once.
    Hurried,
}

/// Permission of the machine around an axis, from the most to the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterlockState {
    /// Anything.
    #[default]
    Clear,
    /// No torque: the input has not been read yet, or the brake has not been served yet. It ends by
    /// itself.
    NotYet,
    /// No torque: the permission to enable is missing, or its input is not fresh. Its return needs
    /// a start request.
    NotPermitted,
    /// Stop, then no torque: a stop signal is on, or its input is not fresh. Stays until it is
    /// acknowledged.
    Stop,
}

/// Request of a jog, for one cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jog {
    /// Commanded velocity, clamped to the limit of a jog; NaN counts as 0.
    pub velocity: RadiansPerSecond,
    /// The machine around the axis permits it: its enabling switch is pressed, or it has none.
    pub permitted: bool,
}

/// Outcome of supervision for a set-point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Supervised {
    /// Set-point for the drive.
    pub setpoint: AxisSetpoint,
    /// Request in place of the controller's, if any.
    pub intervention: Option<Intervention>,
    /// Reason that the axis is stopped or held back.
    pub reason: Option<StopReason>,
}
