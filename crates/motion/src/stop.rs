//! A stop with bounded deceleration.

use thiserror::Error;

use crate::axis::TrajectoryPoint;
use crate::units::{Radians, RadiansPerSecond, RadiansPerSecondSquared, Seconds};

/// From a position and a velocity to standstill: the velocity falls as `1 - 3 u^2 + 2 u^3`, so the
/// deceleration rises from zero to its bound half-way and returns to zero. It never turns back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopProfile {
    position: Radians,
    velocity: RadiansPerSecond,
    duration: Seconds,
}

impl StopProfile {
    /// From `position` and `velocity`, never decelerating harder than `maximum_deceleration` (above
    /// 0).
    ///
    /// # Errors
    /// A number that is not finite or out of its range.
    pub fn new(
        position: Radians,
        velocity: RadiansPerSecond,
        maximum_deceleration: RadiansPerSecondSquared,
    ) -> Result<Self, StopError> {
        if !position.is_finite() {
            return Err(StopError::Position(position.0));
        }
        if !velocity.is_finite() {
            return Err(StopError::Velocity(velocity.0));
        }
        let duration = Seconds(PEAK_OVER_MEAN * velocity.0.abs() / maximum_deceleration.0);
        if !(maximum_deceleration.is_finite() && maximum_deceleration.0 > 0.0 && duration.is_finite()) {
            return Err(StopError::Deceleration(maximum_deceleration.0));
        }
        Ok(Self { position, velocity, duration })
    }

    /// From its begin to standstill.
    #[must_use]
    pub const fn duration(&self) -> Seconds {
        self.duration
    }

    /// Position where it stops.
    #[must_use]
    pub fn rest_position(&self) -> Radians {
        self.position + self.velocity * (self.duration / 2.0)
    }

    /// True at standstill, `elapsed` after its begin.
    #[must_use]
    pub fn is_at_rest(&self, elapsed: Seconds) -> bool {
        elapsed >= self.duration
    }

    /// Place `elapsed` after its begin.
    #[must_use]
    pub fn at(&self, elapsed: Seconds) -> TrajectoryPoint {
        if self.is_at_rest(elapsed) {
            return TrajectoryPoint { position: self.rest_position(), ..TrajectoryPoint::default() };
        }
        let u = (elapsed / self.duration).max(0.0);
        TrajectoryPoint {
            position: self.position + self.velocity * (self.duration * (u - u * u * u * (1.0 - u / 2.0))),
            velocity: self.velocity * (1.0 - u * u * (3.0 - 2.0 * u)),
            acceleration: self.velocity * (-6.0 * u * (1.0 - u)) / self.duration,
        }
    }
}

/// A [`StopProfile`] that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum StopError {
    /// Place where it begins.
    #[error("stop's position: expected a finite number of radians, found {0}")]
    Position(f64),
    /// Speed at which it begins.
    #[error("stop's velocity: expected a finite number of radians per second, found {0}")]
    Velocity(f64),
    /// Deceleration.
    #[error("stop's deceleration: expected a finite number of rad/s^2, enough to stop by, found {0}")]
    Deceleration(f64),
}

/// The largest deceleration over the mean one, of `1 - 3 u^2 + 2 u^3`.
const PEAK_OVER_MEAN: f64 = 1.5;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stop(position: f64, velocity: f64, deceleration: f64) -> Result<StopProfile, StopError> {
        StopProfile::new(
            Radians(position),
            RadiansPerSecond(velocity),
            RadiansPerSecondSquared(deceleration),
        )
    }

    #[test]
    fn known_numbers() {
        let profile = stop(1.0, -2.0, 3.0).unwrap();
        assert_eq!((profile.duration(), profile.rest_position()), (Seconds(1.0), Radians(0.0)));
        let half = profile.at(Seconds(0.5));
        assert_eq!(
            (half.velocity, half.acceleration),
            (RadiansPerSecond(-1.0), RadiansPerSecondSquared(3.0))
        );
    }

    #[test]
    fn standstill_is_kept() {
        let profile = stop(1.0, 0.0, 3.0).unwrap();
        assert!(profile.is_at_rest(Seconds::ZERO));
        assert_eq!(
            profile.at(Seconds::ZERO),
            TrajectoryPoint { position: Radians(1.0), ..Default::default() }
        );
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused() {
        assert!(matches!(stop(f64::NAN, 1.0, 1.0), Err(StopError::Position(_))));
        assert!(matches!(stop(0.0, f64::INFINITY, 1.0), Err(StopError::Velocity(_))));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE] {
            assert!(matches!(stop(0.0, 10.0, bad), Err(StopError::Deceleration(_))), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn continues_the_motion_and_ends_at_standstill(
            position in -10.0..10.0, velocity in -20.0..20.0, deceleration in 0.1..100.0,
        ) {
            let profile = stop(position, velocity, deceleration).unwrap();
            let begin = profile.at(Seconds::ZERO);
            prop_assert_eq!((begin.position.0, begin.velocity.0), (position, velocity));
            let near = profile.at(profile.duration() * (1.0 - 1e-9));
            let end = profile.at(profile.duration());
            prop_assert!((near.position - end.position).abs().0 < 1e-6 && near.velocity.abs().0 < 1e-6);
            prop_assert!((end.velocity.0, end.acceleration.0) == (0.0, 0.0));
            prop_assert_eq!(profile.at(profile.duration() * 2.0), end);
        }

        #[test]
        fn it_brakes_within_its_bound_and_never_turns_back(
            velocity in -20.0..20.0, deceleration in 0.1..100.0, at in 0.0..1.2, later in 0.0..0.2,
        ) {
            let profile = stop(0.0, velocity, deceleration).unwrap();
            let (here, next) = (profile.at(profile.duration() * at), profile.at(profile.duration() * (at + later)));
            prop_assert!(here.acceleration.abs().0 <= deceleration * (1.0 + 1e-12));
            prop_assert!(here.velocity.0 * velocity >= -1e-9);
            prop_assert!(next.velocity.abs().0 <= here.velocity.abs().0 + 1e-9);
            prop_assert!((next.position - here.position).0 * velocity >= -1e-9);
        }

        #[test]
        fn velocity_and_acceleration_are_derivatives(
            velocity in -20.0..20.0, deceleration in 0.1..100.0, at in 0.01..0.99,
        ) {
            let profile = stop(0.0, velocity, deceleration).unwrap();
            let duration = profile.duration().0;
            let step = 1e-5 * duration;
            prop_assume!(step > 0.0);
            let [before, here, after] =
                [-step, 0.0, step].map(|away| profile.at(Seconds(at * duration + away)));
            let slope = (after.position.0 - before.position.0) / (2.0 * step);
            prop_assert!((slope - here.velocity.0).abs() < 1e-6 * (1.0 + velocity.abs()));
            let slope = (after.velocity.0 - before.velocity.0) / (2.0 * step);
            prop_assert!((slope - here.acceleration.0).abs() < 1e-5 * (1.0 + deceleration));
        }
    }
}
