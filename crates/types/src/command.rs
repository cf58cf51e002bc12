//! Targets of a robot that commands from outside give.

use alloc::vec::Vec;
use core::fmt;

use crate::units::{Metres, MetresPerSecond, NewtonMetres, Radians, RadiansPerSecond};

/// Velocity of a base in its own frame: x ahead, y to the left, yaw counter-clockwise (REP 103).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twist {
    /// Ahead.
    pub x: MetresPerSecond,
    /// To the left.
    pub y: MetresPerSecond,
    /// Counter-clockwise.
    pub yaw: RadiansPerSecond,
}

impl Twist {
    /// From m/s, m/s and rad/s.
    #[must_use]
    pub const fn new(x: f64, y: f64, yaw: f64) -> Self {
        Self { x: MetresPerSecond(x), y: MetresPerSecond(y), yaw: RadiansPerSecond(yaw) }
    }

    /// All three are finite.
    #[must_use]
    pub const fn is_finite(self) -> bool {
        self.x.is_finite() && self.y.is_finite() && self.yaw.is_finite()
    }

    /// The same direction, slower or faster.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { x: self.x * factor, y: self.y * factor, yaw: self.yaw * factor }
    }
}

/// Pose of an arm's tool in the frame of its base link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToolPose {
    /// x, y, z.
    pub position: [Metres; 3],
    /// Unit quaternion: x, y, z, w.
    pub orientation: [f64; 4],
}

impl ToolPose {
    /// Largest difference of an orientation's length from 1: what six digits leave.
    pub const UNIT: f64 = 1e-3;
}

/// Target of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AxisTarget {
    /// Position.
    Position(Radians),
    /// Velocity.
    Velocity(RadiansPerSecond),
    /// Torque at the axis.
    Effort(NewtonMetres),
    /// Velocity of a jog: the cycle moves the axis, not a controller.
    Jog(RadiansPerSecond),
}

impl AxisTarget {
    /// Number in the unit of its kind: rad, rad/s or N m.
    #[must_use]
    pub const fn number(self) -> f64 {
        match self {
            Self::Position(position) => position.0,
            Self::Velocity(velocity) | Self::Jog(velocity) => velocity.0,
            Self::Effort(torque) => torque.0,
        }
    }
}

/// Kinds of targets of an axis that are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(default))]
pub struct Takes {
    /// Positions.
    pub position: bool,
    /// Velocities.
    pub velocity: bool,
    /// Torques.
    pub effort: bool,
}

impl Takes {
    /// True if a target is of one of these kinds. No controller takes a jog.
    #[must_use]
    pub const fn takes(self, target: AxisTarget) -> bool {
        match target {
            AxisTarget::Position(_) => self.position,
            AxisTarget::Velocity(_) => self.velocity,
            AxisTarget::Effort(_) => self.effort,
            AxisTarget::Jog(_) => false,
        }
    }
}

/// As in "positions and velocities"; "no targets" of none.
impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match (self.position, self.velocity, self.effort) {
            (false, false, false) => "no targets",
            (true, false, false) => "positions",
            (false, true, false) => "velocities",
            (false, false, true) => "torques",
            (true, true, false) => "positions and velocities",
            (true, false, true) => "positions and torques",
            (false, true, true) => "velocities and torques",
            (true, true, true) => "positions, velocities and torques",
        })
    }
}

/// Command from outside, as the cycle took it. Every number in it is finite; it may be beyond any
/// limit: the controller that follows it clamps it, and reports that.
#[derive(Debug, Default, PartialEq)]
pub struct ExternalCommand {
    /// Validity; only a fresh command is to move anything.
    pub freshness: Freshness,
    /// Velocity of the base.
    pub twist: Option<Twist>,
    /// Pose of the arm's tool.
    pub pose: Option<ToolPose>,
    /// Target of each axis, in their order; as many as there are axes.
    pub axes: Vec<Option<AxisTarget>>,
}

/// `clone_from` keeps the memory it has: on the real-time path it allocates nothing.
impl Clone for ExternalCommand {
    fn clone(&self) -> Self {
        let Self { freshness, twist, pose, axes } = self;
        Self { freshness: *freshness, twist: *twist, pose: *pose, axes: axes.clone() }
    }

    fn clone_from(&mut self, source: &Self) {
        let Self { freshness, twist, pose, axes } = source;
        self.freshness = *freshness;
        self.twist = *twist;
        self.pose = *pose;
        self.axes.clone_from(axes);
    }
}

/// Validity of the last command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// No command was ever given.
    #[default]
    Never,
    /// The last command holds.
    Fresh,
    /// The time-to-live of the last command has expired.
    Stale,
}

impl fmt::Display for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Never => "never",
            Self::Fresh => "fresh",
            Self::Stale => "stale",
        })
    }
}
