//! Report of an axis to a controller on every cycle, and the controller's answer, in SI units.

use crate::units::{NewtonMetres, Radians, RadiansPerSecond, RadiansPerSecondSquared};

/// Phase of an axis: set-points move it or not, and where they have to begin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AxisPhase {
    /// The drive is not enabled: set-points have no effect.
    #[default]
    NotEnabled,
    /// The drive is enabled and at standstill: set-points begin at this position, with no velocity.
    HoldingAt(Radians),
    /// The drive follows the set-points.
    Following,
}

/// Report of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AxisFeedback {
    /// Actual position.
    pub position: Radians,
    /// Actual velocity.
    pub velocity: RadiansPerSecond,
    /// Actual torque at the axis.
    pub torque: NewtonMetres,
    /// True if set-points move it.
    pub phase: AxisPhase,
    /// These are this cycle's numbers; otherwise the last that could be trusted.
    pub fresh: bool,
}

/// Command for an axis; the drive's mode says which of the three counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AxisSetpoint {
    /// Target position (CSP).
    pub position: Radians,
    /// Target velocity (CSV).
    pub velocity: RadiansPerSecond,
    /// Target torque at the axis (CST).
    pub torque: NewtonMetres,
}

/// A trajectory at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrajectoryPoint {
    /// Position.
    pub position: Radians,
    /// Its derivative.
    pub velocity: RadiansPerSecond,
    /// The derivative of that.
    pub acceleration: RadiansPerSecondSquared,
}

/// Position and velocity of the point; no torque.
impl From<TrajectoryPoint> for AxisSetpoint {
    fn from(point: TrajectoryPoint) -> Self {
        Self { position: point.position, velocity: point.velocity, torque: NewtonMetres::ZERO }
    }
}
