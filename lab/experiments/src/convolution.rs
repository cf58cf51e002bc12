//! The convolution-based generator: a rectangle of velocity, smoothed by a box for bounded
//! acceleration and by a second box for bounded jerk (Lee, Kim and Choi, J. Dyn. Sys. Meas. Control
//! 135, 2013; for the central velocity of a mobile robot: Yang and Choi, Int. J. Adv. Robotic
//! Systems 13, 2016).
//!
//! A box of unit area keeps the area of what it smooths, so the distance is met exactly, and the
//! duration is the sum of the three widths. The papers sum samples; here the convolution is carried
//! out once, on paper, so that a trajectory is a function of time: nothing drifts, and the period
//! plays no part.
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "`!(a > b)` refuses NaN with the rest")]

use thiserror::Error;

use motion::units::{Metres, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, Seconds};

/// Limits of speed of the centre of a base along its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathLimits {
    /// Above 0.
    pub velocity: MetresPerSecond,
    /// Above 0.
    pub acceleration: MetresPerSecondSquared,
    /// Above 0; infinity leaves out the second box.
    pub jerk: MetresPerSecondCubed,
}

/// Central velocity over time, from rest to rest.
///
/// A distance too short for the limits lowers the rectangle, and the first box with it, until the
/// pieces just fit: velocity first, then acceleration. The result is the fastest motion within the
/// limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvolutionProfile {
    distance: f64,
    /// Height of the rectangle, signed as the distance is.
    height: f64,
    rectangle: f64,
    first: f64,
    second: f64,
}

/// A motion along a path at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathPoint {
    /// Distance along the path.
    pub distance: Metres,
    /// Its derivative: the central velocity.
    pub velocity: MetresPerSecond,
    /// The derivative of that.
    pub acceleration: MetresPerSecondSquared,
    /// The derivative of that; at a jump, what follows.
    pub jerk: MetresPerSecondCubed,
}

impl ConvolutionProfile {
    /// Over `distance`, backwards if it is negative.
    ///
    /// # Errors
    /// A number that is not finite, a limit that is not above 0.
    pub fn new(distance: Metres, limits: PathLimits) -> Result<Self, ConvolutionError> {
        if !distance.is_finite() {
            return Err(ConvolutionError::Distance(distance.0));
        }
        let PathLimits { velocity, acceleration, jerk } = limits;
        for (name, limit, ends) in [
            ("velocity", velocity.0, velocity.is_finite()),
            ("acceleration", acceleration.0, acceleration.is_finite()),
            ("jerk", jerk.0, true),
        ] {
            if !(ends && limit > 0.0) {
                return Err(ConvolutionError::Limit { name, found: limit });
            }
        }
        if distance == Metres::ZERO {
            return Ok(Self { distance: 0.0, height: 0.0, rectangle: 0.0, first: 0.0, second: 0.0 });
        }
        let length = distance.abs().0;
        let velocity = velocity.0.min(fastest(length, acceleration.0, jerk.0));
        let acceleration = acceleration.0.min((velocity * jerk.0).sqrt());
        let (first, second) = (velocity / acceleration, acceleration / jerk.0);
        // Where all three just touch, rounding must not leave the rectangle shorter than the boxes.
        let rectangle = (length / velocity).max(first + second);
        let height = (length / rectangle).copysign(distance.0);
        let profile = Self { distance: distance.0, height, rectangle, first, second };
        if !profile.duration().is_finite() {
            return Err(ConvolutionError::TooSlow);
        }
        Ok(profile)
    }

    /// From its begin to rest: the sum of the three widths.
    #[must_use]
    pub fn duration(&self) -> Seconds {
        Seconds(self.rectangle + self.first + self.second)
    }

    /// Widths of the rectangle, of the first box and of the second.
    #[must_use]
    pub const fn windows(&self) -> [Seconds; 3] {
        [Seconds(self.rectangle), Seconds(self.first), Seconds(self.second)]
    }

    /// Distance it covers.
    #[must_use]
    pub const fn distance(&self) -> Metres {
        Metres(self.distance)
    }

    /// The largest velocity on the way, without sign.
    #[must_use]
    pub const fn peak_velocity(&self) -> MetresPerSecond {
        MetresPerSecond(self.height.abs())
    }

    /// Place `elapsed` after its begin.
    #[must_use]
    pub fn at(&self, elapsed: Seconds) -> PathPoint {
        let duration = self.duration().0;
        if !(elapsed.0 > 0.0) || duration == 0.0 {
            return PathPoint::default();
        }
        if elapsed.0 >= duration {
            return PathPoint { distance: Metres(self.distance), ..PathPoint::default() };
        }
        // The second half mirrors the first: no small difference of large numbers near the end.
        let mirrored = elapsed.0 > duration / 2.0;
        let time = if mirrored { duration - elapsed.0 } else { elapsed.0 };
        let (up, down) = (self.rise(time), self.rise(time - self.rectangle));
        let [distance, velocity, acceleration, jerk] =
            core::array::from_fn(|order| self.height * (up[order] - down[order]));
        if mirrored {
            return PathPoint {
                distance: Metres(self.distance - distance),
                velocity: MetresPerSecond(velocity),
                acceleration: MetresPerSecondSquared(-acceleration),
                jerk: MetresPerSecondCubed(jerk),
            };
        }
        PathPoint {
            distance: Metres(distance),
            velocity: MetresPerSecond(velocity),
            acceleration: MetresPerSecondSquared(acceleration),
            jerk: MetresPerSecondCubed(jerk),
        }
    }

    /// A unit step at time 0, smoothed by both boxes: its integral, itself, and its first two
    /// derivatives.
    fn rise(&self, time: f64) -> [f64; 4] {
        let (wide, narrow) = (self.first.max(self.second), self.first.min(self.second));
        let whole = wide + narrow;
        if time <= 0.0 {
            return [0.0; 4];
        }
        if time >= whole {
            return [time - whole / 2.0, 1.0, 0.0, 0.0];
        }
        // Two boxes make a trapezoid: it rises for `narrow`, is level, and falls for `narrow`.
        let (level, slope) = (1.0 / wide, 1.0 / (wide * narrow));
        if time < narrow {
            let rate = slope * time;
            [rate * time * time / 6.0, rate * time / 2.0, rate, slope]
        } else if time <= wide {
            let since = time - narrow / 2.0;
            [level * (since * since / 2.0 + narrow * narrow / 24.0), level * since, level, 0.0]
        } else {
            let left = whole - time;
            let rate = slope * left;
            [time - whole / 2.0 + rate * left * left / 6.0, 1.0 - rate * left / 2.0, rate, -slope]
        }
    }
}

/// The velocity from which a rectangle over `length` is just as long as both boxes.
fn fastest(length: f64, acceleration: f64, jerk: f64) -> f64 {
    // Boxes of the same width: v = (l^2 j / 4)^(1/3), a = sqrt(v j).
    let velocity = (length * length / 4.0 * jerk).cbrt();
    if (velocity * jerk).sqrt() <= acceleration {
        return velocity;
    }
    // The acceleration at its limit: v^2 / a + v a / j = l.
    let half = acceleration * acceleration / jerk / 2.0;
    length * acceleration / (half + (half * half + length * acceleration).sqrt())
}

/// A [`ConvolutionProfile`] that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ConvolutionError {
    /// Distance.
    #[error("distance along the path: expected a finite number of metres, found {0}")]
    Distance(f64),
    /// Speed.
    #[error("{name} limit along the path: expected a number above 0, found {found}")]
    Limit {
        /// Name of the limit.
        name: &'static str,
        /// Value given.
        found: f64,
    },
    /// It would never end.
    #[error("the limits along the path are too low for its length: the motion would never end")]
    TooSlow,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn profile(distance: f64, velocity: f64, acceleration: f64, jerk: f64) -> ConvolutionProfile {
        ConvolutionProfile::new(Metres(distance), limits(velocity, acceleration, jerk)).unwrap()
    }

    fn limits(velocity: f64, acceleration: f64, jerk: f64) -> PathLimits {
        PathLimits {
            velocity: MetresPerSecond(velocity),
            acceleration: MetresPerSecondSquared(acceleration),
            jerk: MetresPerSecondCubed(jerk),
        }
    }

    prop_compose! {
        fn any_limits()(velocity in 0.05..5.0, acceleration in 0.05..10.0, jerk in 0.1..100.0) -> (f64, f64, f64) {
            (velocity, acceleration, jerk)
        }
    }

    #[test]
    fn known_numbers() {
        // 2 m at 1 m/s, 1 m/s^2, 2 m/s^3: windows of 2 s, 1 s and 0.5 s.
        let profile = profile(2.0, 1.0, 1.0, 2.0);
        assert_eq!(profile.windows(), [Seconds(2.0), Seconds(1.0), Seconds(0.5)]);
        assert_eq!(profile.duration(), Seconds(3.5));
        let middle = profile.at(Seconds(1.75));
        assert!(
            (middle.distance.0 - 1.0).abs() < 1e-12 && (middle.velocity.0 - 1.0).abs() < 1e-12,
            "{middle:?}"
        );
        assert_eq!(profile.at(Seconds(0.25)).jerk, MetresPerSecondCubed(2.0));
        assert_eq!(profile.at(Seconds(0.75)).acceleration, MetresPerSecondSquared(1.0));
    }

    #[test]
    fn without_a_second_box_the_velocity_is_a_trapezoid() {
        let profile = profile(2.0, 1.0, 1.0, f64::INFINITY);
        assert_eq!(profile.duration(), Seconds(3.0));
        assert_eq!(profile.at(Seconds(0.5)).velocity, MetresPerSecond(0.5));
        assert_eq!(profile.at(Seconds(0.5)).acceleration, MetresPerSecondSquared(1.0));
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused() {
        let new = |distance, velocity, acceleration, jerk| {
            ConvolutionProfile::new(Metres(distance), limits(velocity, acceleration, jerk))
        };
        assert!(matches!(new(f64::NAN, 1.0, 1.0, 1.0), Err(ConvolutionError::Distance(_))));
        for bad in [0.0, -1.0, f64::NAN] {
            assert!(matches!(
                new(1.0, bad, 1.0, 1.0),
                Err(ConvolutionError::Limit { name: "velocity", .. })
            ));
            assert!(matches!(
                new(1.0, 1.0, bad, 1.0),
                Err(ConvolutionError::Limit { name: "acceleration", .. })
            ));
            assert!(matches!(new(1.0, 1.0, 1.0, bad), Err(ConvolutionError::Limit { name: "jerk", .. })));
        }
        assert!(new(1.0, f64::INFINITY, 1.0, 1.0).is_err());
        assert_eq!(new(1e300, 1e-300, 1.0, 1.0), Err(ConvolutionError::TooSlow));
        let still = new(0.0, 1.0, 1.0, 1.0).unwrap();
        assert_eq!((still.duration(), still.at(Seconds(1.0))), (Seconds::ZERO, PathPoint::default()));
        assert_eq!(still.at(Seconds(f64::NAN)), PathPoint::default());
    }

    proptest! {
        #[test]
        fn area_is_the_distance_and_windows_add_up_to_the_duration(
            distance in -50.0..50.0, (velocity, acceleration, jerk) in any_limits(),
        ) {
            let profile = profile(distance, velocity, acceleration, jerk);
            let [a, b, c] = profile.windows();
            prop_assert_eq!(profile.duration(), a + b + c);
            prop_assert_eq!(profile.at(profile.duration()).distance, Metres(distance));
            // Between the ends of the windows the velocity is a parabola, for which Simpson's rule
            // is exact.
            let mut corners: Vec<f64> = (0..8_u8)
                .map(|subset| [a.0, b.0, c.0].iter().enumerate().map(|(bit, width)| width * f64::from((subset >> bit) & 1)).sum())
                .collect();
            corners.sort_by(f64::total_cmp);
            let at = |time: f64| profile.at(Seconds(time)).velocity.0;
            let area: f64 = corners
                .windows(2)
                .map(|ends| (ends[1] - ends[0]) / 6.0 * (at(ends[0]) + 4.0 * at((ends[0] + ends[1]) / 2.0) + at(ends[1])))
                .sum();
            prop_assert!((area - distance).abs() < 1e-9 * (1.0 + distance.abs()), "{area}");
        }

        // feature(motion): convolution-based generator, paths
        #[test]
        fn its_bounds_hold(
            distance in -50.0..50.0, (velocity, acceleration, jerk) in any_limits(), at in 0.0..1.0,
        ) {
            let profile = profile(distance, velocity, acceleration, jerk);
            let point = profile.at(profile.duration() * at);
            let rounding = 1.0 + 1e-9;
            prop_assert!(point.velocity.abs().0 <= velocity * rounding);
            prop_assert!(point.velocity.abs() <= profile.peak_velocity() * rounding);
            prop_assert!(point.acceleration.abs().0 <= acceleration * rounding);
            prop_assert!(point.jerk.abs().0 <= jerk * rounding);
        }

        #[test]
        fn it_is_symmetric(
            distance in 0.01..50.0, (velocity, acceleration, jerk) in any_limits(), at in 0.0..0.5,
        ) {
            let profile = profile(distance, velocity, acceleration, jerk);
            let early = profile.at(profile.duration() * at);
            let late = profile.at(profile.duration() * (1.0 - at));
            prop_assert!((early.distance + late.distance - Metres(distance)).abs().0 < 1e-9 * distance);
            prop_assert!((early.velocity - late.velocity).abs().0 < 1e-9 * velocity);
            prop_assert!((early.acceleration + late.acceleration).abs().0 < 1e-9 * acceleration);
        }

        #[test]
        fn each_series_is_a_derivative_and_only_jerk_jumps(
            distance in 0.01..50.0, (velocity, acceleration, jerk) in any_limits(), at in 0.001..0.999,
        ) {
            let profile = profile(distance, velocity, acceleration, jerk);
            let step = profile.duration() * 1e-5;
            let [before, here, after] =
                [-1.0, 0.0, 1.0].map(|away| profile.at(profile.duration() * at + step * away));
            let slope = (after.distance - before.distance) / (step * 2.0);
            prop_assert!((slope - here.velocity).abs().0 < 1e-3 * velocity);
            let slope = (after.velocity - before.velocity) / (step * 2.0);
            // A corner of the acceleration within the step costs half a step of jerk.
            prop_assert!((slope - here.acceleration).abs().0 <= jerk * step.0 + 1e-6 * acceleration);
            prop_assert!((after.acceleration - here.acceleration).abs().0 <= jerk * step.0 * (1.0 + 1e-6) + 1e-9);
        }

        /// The papers' way: samples, and moving averages over them.
        #[test]
        fn it_is_what_the_recursive_sums_of_the_papers_give(
            distance in 0.5..20.0, (velocity, acceleration, jerk) in any_limits(), at in 0.0..1.0,
        ) {
            let profile = profile(distance, velocity, acceleration, jerk);
            let period = profile.duration() / 20_000.0;
            let samples = |window: Seconds| (window / period).round() as usize;
            let [rectangle, first, second] = profile.windows().map(samples);
            prop_assume!(second > 20 && rectangle > first);
            let mut velocities = vec![0.0; rectangle + first + second];
            velocities[..rectangle].fill(distance / (rectangle as f64 * period.0));
            for window in [first, second] {
                let before = velocities.clone();
                let mut sum = 0.0;
                for sample in 0..velocities.len() {
                    sum += (before[sample] - if sample < window { 0.0 } else { before[sample - window] }) / window as f64;
                    velocities[sample] = sum;
                }
            }
            let sample = ((velocities.len() - 1) as f64 * at) as usize;
            let here = profile.at(period * sample as f64).velocity.0;
            // Windows of whole samples, and a sum that lags by one: two samples' worth of
            // acceleration.
            let off = 0.01 * velocity + 2.0 * acceleration * period.0;
            prop_assert!((velocities[sample] - here).abs() < off, "{} {here}", velocities[sample]);
        }
    }
}
