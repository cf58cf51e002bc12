//! Online motion: the target may change on every cycle, and jerk stays bounded.
//!
//! The mathematics is Ruckig's (Berscheid and Kröger, RSS 2021), from crate `rsruckig`. Each
//! coordinate has its own calculator of fixed size. So one coordinate can get a new target while
//! the others continue, and their number may be known only at run time. Their durations synchronise
//! them. The library's `update` is not used, because it reads the clock. Its `calculate` does not
//! allocate (`tests/allocations.rs`), except for its message when it finds no motion. Numbers are
//! checked before they reach it; with them it found a motion in millions of trials
//! (`tests/online.rs`).

mod plan;
mod progress;
mod twist;

use thiserror::Error;

pub use self::progress::{Place, Progress, ProgressLimits};
pub use self::twist::{OnlineTwist, TwistLimits};

use self::plan::{Aim, Bounds, Moment, NoPlan, Plan};
use crate::axis::TrajectoryPoint;
use crate::units::{Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds};

/// Jerk-limited motion of some axes to targets that may change at any time.
///
/// ```
/// use onbeat_motion::online::{AxisLimits, OnlineMotion, Synchronisation, Target};
/// use onbeat_motion::{Radians, RadiansPerSecond, Seconds};
/// use onbeat_motion::{RadiansPerSecondCubed, RadiansPerSecondSquared};
///
/// let limits = AxisLimits {
///     velocity: RadiansPerSecond(2.0),
///     acceleration: RadiansPerSecondSquared(10.0),
///     jerk: RadiansPerSecondCubed(100.0),
/// };
/// let mut motion = OnlineMotion::new(&[limits; 2], Synchronisation::Together)?;
/// motion.aim(&[Target::rest_at(Radians(1.0)), Target::rest_at(Radians(-0.2))])?;
/// while !motion.arrived() {
///     motion.advance(Seconds(0.001));
/// }
/// assert_eq!(motion.points()[1].position, Radians(-0.2));
/// # Ok::<(), onbeat_motion::online::OnlineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct OnlineMotion {
    plans: Vec<Plan>,
    points: Vec<TrajectoryPoint>,
    synchronisation: Synchronisation,
}

/// Limits of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisLimits {
    /// Above 0.
    pub velocity: RadiansPerSecond,
    /// Above 0.
    pub acceleration: RadiansPerSecondSquared,
    /// Above 0.
    pub jerk: RadiansPerSecondCubed,
}

/// Synchronisation: axes wait for each other, or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronisation {
    /// Each axis arrives as soon as it can.
    #[default]
    Independent,
    /// All axes reach their positions at the same instant. A velocity target is reached as soon as
    /// possible: to reach a velocity later, the library exceeds the jerk (3.0.1).
    Together,
}

/// Target of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// To a position, to be passed with a velocity; afterwards it continues with that velocity.
    Position {
        /// Position at which it is.
        position: Radians,
        /// Velocity there.
        velocity: RadiansPerSecond,
    },
    /// At a velocity, wherever that leads.
    Velocity(RadiansPerSecond),
}

impl Target {
    /// To standstill at `position`.
    #[must_use]
    pub const fn rest_at(position: Radians) -> Self {
        Self::Position { position, velocity: RadiansPerSecond::ZERO }
    }
}

impl OnlineMotion {
    /// All axes stand at zero until [`OnlineMotion::begin`] says otherwise.
    ///
    /// # Errors
    /// A limit that is not finite and above 0.
    pub fn new(limits: &[AxisLimits], synchronisation: Synchronisation) -> Result<Self, OnlineError> {
        let plan = |(axis, limits): (usize, &AxisLimits)| {
            let bounds = Bounds {
                velocity: limits.velocity.0,
                acceleration: limits.acceleration.0,
                jerk: limits.jerk.0,
            };
            match bounds.wrong() {
                None => Ok(Plan::new(bounds)),
                Some((name, found)) => Err(OnlineError::Limit { axis, name, found }),
            }
        };
        let plans = limits.iter().enumerate().map(plan).collect::<Result<Vec<_>, _>>()?;
        let points = vec![TrajectoryPoint::default(); plans.len()];
        Ok(Self { plans, points, synchronisation })
    }

    /// Sets the present motion of the axis; without a target it stops from here.
    ///
    /// # Errors
    /// A number that is not finite, an axis that is not there.
    pub fn begin(&mut self, axis: usize, point: TrajectoryPoint) -> Result<(), OnlineError> {
        let axes = self.plans.len();
        let plan = self.plans.get_mut(axis).ok_or(OnlineError::Axis { axis, axes })?;
        let from = Moment {
            position: point.position.0,
            velocity: point.velocity.0,
            acceleration: point.acceleration.0,
        };
        check(axis, from.position)?;
        check(axis, from.velocity)?;
        check(axis, from.acceleration)?;
        if from.velocity == 0.0 && from.acceleration == 0.0 {
            plan.stand_at(from.position);
        } else {
            plan.prepare(from, Aim::Velocity(0.0), None).map_err(|why| why.of(axis))?;
            plan.take_up();
        }
        self.points[axis] = point;
        Ok(())
    }

    /// Gives every axis a target, in their order. If one target is refused, all continue to their
    /// old ones.
    ///
    /// # Errors
    /// A number that is not finite, a velocity beyond the axis's limit, a target that takes more
    /// than two hours, another number of targets than axes.
    pub fn aim(&mut self, targets: &[Target]) -> Result<(), OnlineError> {
        if targets.len() != self.plans.len() {
            return Err(OnlineError::Targets { found: targets.len(), axes: self.plans.len() });
        }
        let mut longest = 0.0_f64;
        for (axis, (plan, target)) in self.plans.iter_mut().zip(targets).enumerate() {
            let aim = checked(axis, &plan.bounds, *target)?;
            let taken = plan.prepare(plan.moment(), aim, None).map_err(|why| why.of(axis))?;
            if matches!(aim, Aim::Position { .. }) {
                longest = longest.max(taken);
            }
        }
        if self.synchronisation == Synchronisation::Together && self.plans.len() > 1 {
            self.bring_together(targets, longest)?;
        }
        for plan in &mut self.plans {
            plan.take_up();
        }
        Ok(())
    }

    /// Gives one axis a target; the others continue to theirs.
    ///
    /// # Errors
    /// As [`OnlineMotion::aim`]; an axis that is not there.
    pub fn aim_axis(&mut self, axis: usize, target: Target) -> Result<(), OnlineError> {
        let axes = self.plans.len();
        let plan = self.plans.get_mut(axis).ok_or(OnlineError::Axis { axis, axes })?;
        let aim = checked(axis, &plan.bounds, target)?;
        plan.prepare(plan.moment(), aim, None).map_err(|why| why.of(axis))?;
        plan.take_up();
        Ok(())
    }

    /// Stops one axis at `position`, no faster than `speed` on the way; the others continue to
    /// their targets.
    ///
    /// # Errors
    /// As [`OnlineMotion::aim`]; an axis that is not there, a speed that is not above 0.
    pub fn approach(
        &mut self,
        axis: usize,
        position: Radians,
        speed: RadiansPerSecond,
    ) -> Result<(), OnlineError> {
        let axes = self.plans.len();
        let plan = self.plans.get_mut(axis).ok_or(OnlineError::Axis { axis, axes })?;
        checked(axis, &plan.bounds, Target::Velocity(speed))?;
        let aim = checked(axis, &plan.bounds, Target::rest_at(position))?;
        let bounds = Bounds { velocity: speed.0, ..plan.bounds };
        if let Some((name, found)) = bounds.wrong() {
            return Err(OnlineError::Limit { axis, name, found });
        }
        plan.prepare_within(bounds, plan.moment(), aim, None).map_err(|why| why.of(axis))?;
        plan.take_up();
        Ok(())
    }

    /// True if an axis has reached its target.
    #[must_use]
    pub fn is_there(&self, axis: usize) -> bool {
        self.plans.get(axis).is_some_and(|plan| plan.remaining() == 0.0)
    }

    /// Time passes: where the axes are then.
    pub fn advance(&mut self, period: Seconds) -> &[TrajectoryPoint] {
        for (plan, point) in self.plans.iter_mut().zip(&mut self.points) {
            plan.advance(period.0);
            *point = plan.moment().into();
        }
        &self.points
    }

    /// State of the axes.
    #[must_use]
    pub fn points(&self) -> &[TrajectoryPoint] {
        &self.points
    }

    /// Until the last axis has reached its target.
    #[must_use]
    pub fn remaining(&self) -> Seconds {
        Seconds(self.plans.iter().map(Plan::remaining).fold(0.0, f64::max))
    }

    /// All axes have reached their targets.
    #[must_use]
    pub fn arrived(&self) -> bool {
        self.plans.iter().all(|plan| plan.remaining() == 0.0)
    }

    /// Lengthens what was prepared until all axes take the same time.
    ///
    /// An axis in motion cannot take any time it likes: there may be gaps (it can be there before
    /// it would have to turn back, or after). So the common time grows until every axis can. Each
    /// axis has two gaps at most, so that this ends.
    fn bring_together(&mut self, targets: &[Target], mut longest: f64) -> Result<(), OnlineError> {
        for _ in 0..=2 * targets.len() {
            let common = longest;
            for (axis, (plan, target)) in self.plans.iter_mut().zip(targets).enumerate() {
                let aim = checked(axis, &plan.bounds, *target)?;
                if matches!(aim, Aim::Velocity(_)) {
                    continue;
                }
                let taken = plan.prepare(plan.moment(), aim, Some(common)).map_err(|why| why.of(axis))?;
                longest = longest.max(taken);
            }
            if longest <= common + SAME_TIME {
                break;
            }
        }
        Ok(())
    }
}

impl From<Moment> for TrajectoryPoint {
    fn from(moment: Moment) -> Self {
        Self {
            position: Radians(moment.position),
            velocity: RadiansPerSecond(moment.velocity),
            acceleration: RadiansPerSecondSquared(moment.acceleration),
        }
    }
}

fn checked(axis: usize, bounds: &Bounds, target: Target) -> Result<Aim, OnlineError> {
    let (aim, velocity) = match target {
        Target::Position { position, velocity } => {
            check(axis, position.0)?;
            (Aim::Position { position: position.0, velocity: velocity.0 }, velocity.0)
        }
        Target::Velocity(velocity) => (Aim::Velocity(velocity.0), velocity.0),
    };
    check(axis, velocity)?;
    if velocity.abs() > bounds.velocity {
        return Err(OnlineError::TooFast { axis, found: velocity, limit: bounds.velocity });
    }
    Ok(aim)
}

fn check(axis: usize, number: f64) -> Result<(), OnlineError> {
    if number.is_finite() { Ok(()) } else { Err(OnlineError::NotFinite { axis, found: number }) }
}

impl NoPlan {
    const fn of(self, axis: usize) -> OnlineError {
        match self {
            Self::TooLong => OnlineError::TooLong { axis },
            Self::NotFound => OnlineError::NotFound { axis },
        }
    }
}

/// Reason that a motion is refused. Building one does not allocate; its words do.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum OnlineError {
    /// A limit means nothing.
    #[error("axis {axis}: expected a {name} limit that is finite and above 0, found {found}")]
    Limit {
        /// Number of the axis, from 0.
        axis: usize,
        /// Name of the limit.
        name: &'static str,
        /// Value given.
        found: f64,
    },
    /// There is no such axis.
    #[error("expected an axis below {axes}, found {axis}")]
    Axis {
        /// The requested index.
        axis: usize,
        /// Number there are.
        axes: usize,
    },
    /// Another number of targets than axes.
    #[error("expected {axes} targets, one for each axis, found {found}")]
    Targets {
        /// Number given.
        found: usize,
        /// Number of axes.
        axes: usize,
    },
    /// NaN or infinite.
    #[error("axis {axis}: expected finite numbers, found {found}")]
    NotFinite {
        /// Number of the axis, from 0.
        axis: usize,
        /// Value found.
        found: f64,
    },
    /// Faster than the axis may be.
    #[error("axis {axis}: expected a velocity within {limit} rad/s (m/s for a base), found {found}")]
    TooFast {
        /// Number of the axis, from 0.
        axis: usize,
        /// Requested value.
        found: f64,
        /// Value allowed.
        limit: f64,
    },
    /// The target is too far away.
    #[error("axis {axis}: the target is more than two hours away: give a nearer one")]
    TooLong {
        /// Number of the axis, from 0.
        axis: usize,
    },
    /// No motion was found; the axis continues to its old target.
    #[error("axis {axis}: no jerk-limited motion to the target was found")]
    NotFound {
        /// Number of the axis, from 0.
        axis: usize,
    },
}

/// Axes that are there within this time of each other are there together, s.
const SAME_TIME: f64 = 1e-9;
