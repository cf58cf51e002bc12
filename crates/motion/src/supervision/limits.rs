//! Limits of an axis, and its reaction when it is stopped.

use thiserror::Error;
use types::{AfterOutage, AxisMode, OnStale};

use crate::online::OnlineError;
use crate::units::{
    NewtonMetres, Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds,
};

/// Limits of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Lowest and highest position; `None` for an axis that turns for ever.
    pub position: Option<(Radians, Radians)>,
    /// Highest speed either way; above 0.
    pub velocity: RadiansPerSecond,
    /// Highest acceleration; above 0. [`Limits::usual_acceleration`] where none is given.
    pub acceleration: RadiansPerSecondSquared,
    /// Deceleration of a stop; at least [`Limits::acceleration`], which is its default.
    pub deceleration: RadiansPerSecondSquared,
    /// Highest jerk; above 0. [`Limits::usual_jerk`] where none is given.
    pub jerk: RadiansPerSecondCubed,
    /// Limits that clamp the set-points of every source.
    pub written: Written,
    /// Highest torque either way at the axis; above 0.
    pub torque: NewtonMetres,
    /// Largest change of the target position from one cycle to the next; above 0.
    pub step: Radians,
}

/// Largest number of a limit, in its unit: squares and products of larger ones may be infinite.
pub const LARGEST_LIMIT: f64 = 1e14;

/// Limits that the robot file gives. Limits that are not given are usual values for planning: no
/// set-point is clamped to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// [`Limits::acceleration`].
    pub acceleration: bool,
    /// [`Limits::jerk`].
    pub jerk: bool,
}

impl Written {
    /// Both are given.
    pub const ALL: Self = Self { acceleration: true, jerk: true };
}

impl Limits {
    /// From full speed to standstill in a quarter of a second.
    #[must_use]
    pub fn usual_acceleration(velocity: RadiansPerSecond) -> RadiansPerSecondSquared {
        velocity / Seconds(0.25)
    }

    /// From none to full acceleration in a quarter of a second.
    #[must_use]
    pub fn usual_jerk(acceleration: RadiansPerSecondSquared) -> RadiansPerSecondCubed {
        acceleration / Seconds(0.25)
    }
}

/// Reaction to an outage of an axis: no trusted input arrives, its outputs are not taken, or the
/// host stalls.
///
/// For [`BLIND_CYCLES`](types::cycle::BLIND_CYCLES) its set-points continue. Then a position is
/// held, and a velocity or torque falls to zero, until the axis is back. Then set-points begin at
/// its position and speed, and stop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outage {
    /// After this its drive is sent a quick stop; above 0. `None`: [`OUTAGE_CYCLES`].
    pub time: Option<Seconds>,
    /// Reaction afterwards.
    pub after: AfterOutage,
}

/// Consecutive cycles without process data after which a drive is sent a quick stop.
pub const OUTAGE_CYCLES: u32 = 20;

/// Distance an axis may be away from its set-point, and for how long. Only where positions are
/// commanded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowingErrorLimit {
    /// Farther than this is too far; above 0.
    pub distance: Radians,
    /// It may be too far for less than this; 0 or above.
    pub timeout: Seconds,
}

/// All that supervision knows of an axis beforehand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Set-points that move it, and the side that makes the motion between them.
    pub mode: AxisMode,
    /// Limits it must not exceed.
    pub limits: Limits,
    /// Accuracy with which it has to follow; `None` leaves that to its drive.
    pub following_error: Option<FollowingErrorLimit>,
    /// Reaction when the command becomes stale.
    pub on_stale: OnStale,
    /// Reaction to an outage.
    pub outage: Outage,
}

impl Settings {
    /// Checks that every number is one a limit can have.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let Limits { position, velocity, acceleration, deceleration, jerk, torque, step, written: _ } =
            self.limits;
        let positive = |name, value: f64| {
            let fits = value > 0.0 && value <= LARGEST_LIMIT;
            if fits { Ok(()) } else { Err(SettingsError::NotPositive { name, value }) }
        };
        positive("velocity limit", velocity.0)?;
        positive("acceleration", acceleration.0)?;
        positive("deceleration", deceleration.0)?;
        if deceleration < acceleration {
            return Err(SettingsError::Deceleration { deceleration, acceleration });
        }
        positive("jerk", jerk.0)?;
        positive("torque limit", torque.0)?;
        positive("largest step", step.0)?;
        if let Some((lowest, highest)) = position {
            let fits = lowest.abs().0 <= LARGEST_LIMIT && highest.abs().0 <= LARGEST_LIMIT;
            if !(fits && lowest < highest) {
                return Err(SettingsError::Positions { lowest: lowest.0, highest: highest.0 });
            }
        }
        if let Some(time) = self.outage.time {
            positive("outage time", time.0)?;
        }
        if let Some(FollowingErrorLimit { distance, timeout }) = self.following_error {
            positive("following error", distance.0)?;
            if !(timeout.is_finite() && timeout.0 >= 0.0) {
                return Err(SettingsError::Timeout(timeout.0));
            }
        }
        Ok(())
    }
}

/// [`Settings`] that mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A number that has to be above 0, and at most [`LARGEST_LIMIT`].
    #[error("{name}: expected a number above 0, at most {LARGEST_LIMIT:e}, found {value:e}")]
    NotPositive {
        /// Name of the limit.
        name: &'static str,
        /// Value given.
        value: f64,
    },
    /// A stop that brakes less than a motion may.
    #[error(
        "deceleration of a stop: expected at least the acceleration ({acceleration}), found {deceleration}"
    )]
    Deceleration {
        /// Value given.
        deceleration: RadiansPerSecondSquared,
        /// Least value.
        acceleration: RadiansPerSecondSquared,
    },
    /// Position limits that hold no position.
    #[error(
        "position limits: expected a lowest and a highest position, each between -{LARGEST_LIMIT:e} and \
         {LARGEST_LIMIT:e} rad, found {lowest:e} to {highest:e} rad"
    )]
    Positions {
        /// rad.
        lowest: f64,
        /// rad.
        highest: f64,
    },
    /// Time an axis may be too far away.
    #[error("time for a following error: expected 0 s or more, found {0}")]
    Timeout(f64),
    /// Time between two cycles.
    #[error("period: expected a finite number of seconds above 0, found {0}")]
    Period(f64),
    /// A largest step too small for the period.
    #[error(transparent)]
    WayBack(#[from] OnlineError),
}
