//! Axis settings that controllers need in advance.

use control::controller::CycleInfo;
use ipc::state::{Clamped, Limit};
use motion::{
    AxisLimits, Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds,
};

/// An axis that a controller moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisSettings {
    /// Index of the axis.
    pub axis: usize,
    /// Its drive makes its own way to a set-point.
    pub profile: bool,
    /// Lowest and highest position; `None` for an axis that turns without limit.
    pub position_limits: Option<(Radians, Radians)>,
    /// Highest speed in either direction; above 0.
    pub velocity_limit: RadiansPerSecond,
    /// Highest acceleration in either direction; above 0.
    pub acceleration_limit: RadiansPerSecondSquared,
    /// Highest jerk in either direction; above 0.
    pub jerk_limit: RadiansPerSecondCubed,
}

impl AxisSettings {
    pub(crate) fn online(&self) -> AxisLimits {
        AxisLimits {
            velocity: self.velocity_limit,
            acceleration: self.acceleration_limit,
            jerk: self.jerk_limit,
        }
    }

    /// Clamps `position` to the limits; from `here`, an axis outside its limits goes no farther
    /// out.
    pub(crate) fn within(&self, position: Radians, here: Radians) -> Radians {
        self.position_limits.map_or(position, |(lowest, highest)| {
            Radians(position.0.clamp(lowest.0.min(here.0), highest.0.max(here.0)))
        })
    }
}

/// Compares the `asked` value of the axis with this index with the `possible` one. Differences by
/// rounding only do not count as clamped, such as a speed of exactly the limit that was converted
/// from other units.
pub(crate) fn clamped(limit: Limit, axis: Option<usize>, asked: f64, possible: f64) -> Option<Clamped> {
    ((asked - possible).abs() > asked.abs() * ROUNDED).then_some(Clamped { limit, axis })
}

/// Time since the previous cycle.
pub(crate) fn elapsed(info: &CycleInfo) -> Seconds {
    Seconds(info.period.as_secs_f64() * info.periods as f64)
}

/// Relative difference of two numbers that are the same but for rounding.
const ROUNDED: f64 = 1e-9;
