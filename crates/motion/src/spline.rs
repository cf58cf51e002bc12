//! Polynomials in time between two points of an axis, and their extremes.

use crate::{Radians, RadiansPerSecond, RadiansPerSecondSquared, TrajectoryPoint};

/// An axis at a point of a trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Knot {
    /// Position, rad.
    pub position: f64,
    /// Velocity, rad/s.
    pub velocity: f64,
    /// Acceleration, rad/s²; given at both ends, the polynomial is of degree five, otherwise three.
    pub acceleration: Option<f64>,
}

impl From<TrajectoryPoint> for Knot {
    fn from(point: TrajectoryPoint) -> Self {
        let TrajectoryPoint { position, velocity, acceleration } = point;
        Self { position: position.0, velocity: velocity.0, acceleration: Some(acceleration.0) }
    }
}

/// A polynomial in the time since its start, lowest power first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Segment {
    coefficients: [f64; 6],
    /// Duration, s.
    duration: f64,
}

impl Segment {
    /// Segment from one knot to the other in `duration` seconds, above 0.
    #[must_use]
    pub fn between(from: Knot, to: Knot, duration: f64) -> Self {
        let (a, b, t) = (from, to, duration);
        let way = b.position - a.position;
        let coefficients = match (a.acceleration, b.acceleration) {
            (Some(begin), Some(end)) => {
                let (t2, t3) = (t * t, t * t * t);
                [
                    a.position,
                    a.velocity,
                    begin / 2.0,
                    (20.0 * way - (8.0 * b.velocity + 12.0 * a.velocity) * t - (3.0 * begin - end) * t2)
                        / (2.0 * t3),
                    (-30.0 * way
                        + (14.0 * b.velocity + 16.0 * a.velocity) * t
                        + (3.0 * begin - 2.0 * end) * t2)
                        / (2.0 * t3 * t),
                    (12.0 * way - 6.0 * (b.velocity + a.velocity) * t + (end - begin) * t2)
                        / (2.0 * t3 * t2),
                ]
            }
            _ => [
                a.position,
                a.velocity,
                (3.0 * way / t - 2.0 * a.velocity - b.velocity) / t,
                (-2.0 * way / t + a.velocity + b.velocity) / (t * t),
                0.0,
                0.0,
            ],
        };
        Self { coefficients, duration }
    }

    /// Position, velocity and acceleration `time` seconds after the start.
    #[must_use]
    pub fn at(&self, time: f64) -> TrajectoryPoint {
        let velocity = derivative(&self.coefficients);
        let acceleration = derivative(&velocity);
        TrajectoryPoint {
            position: Radians(value(&self.coefficients, time)),
            velocity: RadiansPerSecond(value(&velocity, time)),
            acceleration: RadiansPerSecondSquared(value(&acceleration, time)),
        }
    }

    /// Highest speed in either direction.
    #[must_use]
    pub fn fastest(&self) -> f64 {
        let velocity = derivative(&self.coefficients);
        let (lowest, highest) = extremes(&velocity[..5], self.duration);
        lowest.abs().max(highest.abs())
    }

    /// Lowest and highest position.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        extremes(&self.coefficients, self.duration)
    }
}

/// Velocity at a point between two others that gives none, so that the axis turns back only at
/// points: 0 where it turns back, otherwise the harmonic mean of the slopes to both sides, each
/// weighted with the time of the other (Fritsch and Butland, SIAM J. Sci. Stat. Comput. 5, 1984).
#[must_use]
pub fn velocity_between(before: (f64, f64), after: (f64, f64)) -> f64 {
    let ((way_in, time_in), (way_out, time_out)) = (before, after);
    let (slope_in, slope_out) = (way_in / time_in, way_out / time_out);
    if slope_in * slope_out <= 0.0 {
        return 0.0;
    }
    let (weight_in, weight_out) = (2.0 * time_out + time_in, time_out + 2.0 * time_in);
    (weight_in + weight_out) / (weight_in / slope_in + weight_out / slope_out)
}

fn value(polynomial: &[f64], at: f64) -> f64 {
    polynomial.iter().rev().fold(0.0, |sum, coefficient| sum * at + coefficient)
}

fn derivative(polynomial: &[f64; 6]) -> [f64; 6] {
    let mut derivative = [0.0; 6];
    for (power, coefficient) in polynomial.iter().enumerate().skip(1) {
        derivative[power - 1] = power as f64 * coefficient;
    }
    derivative
}

/// Lowest and highest value between 0 and `end`.
fn extremes(polynomial: &[f64], end: f64) -> (f64, f64) {
    let mut whole = [0.0; 6];
    whole[..polynomial.len()].copy_from_slice(polynomial);
    let mut turns = [0.0; 5];
    let found = roots(&derivative(&whole)[..polynomial.len().max(2) - 1], end, &mut turns);
    let places = [0.0, end].into_iter().chain(turns[..found].iter().copied());
    places
        .map(|at| value(polynomial, at))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// Finds the places between 0 and `end` where the polynomial changes its sign, and returns their
/// number. Between two neighbouring sign changes of its derivative there is at most one.
fn roots(polynomial: &[f64], end: f64, into: &mut [f64; 5]) -> usize {
    if polynomial.len() < 2 {
        return 0;
    }
    let mut whole = [0.0; 6];
    whole[..polynomial.len()].copy_from_slice(polynomial);
    let mut turns = [0.0; 5];
    let turning = roots(&derivative(&whole)[..polynomial.len() - 1], end, &mut turns);
    let mut found = 0;
    let mut begin = 0.0;
    for stop in turns[..turning].iter().copied().chain([end]) {
        if let (Some(root), true) = (between(polynomial, begin, stop), found < into.len()) {
            into[found] = root;
            found += 1;
        }
        begin = stop;
    }
    found
}

/// Place where the polynomial, monotonic in between, changes its sign.
fn between(polynomial: &[f64], mut low: f64, mut high: f64) -> Option<f64> {
    let rising = value(polynomial, high) > 0.0;
    if (value(polynomial, low) > 0.0) == rising {
        return None;
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if (value(polynomial, middle) > 0.0) == rising { high = middle } else { low = middle }
    }
    Some((low + high) / 2.0)
}

/// Bisections: an extreme value errs by the square of its place's error, so 2^-24 of the segment is
/// plenty.
const HALVINGS: usize = 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_knot() -> impl Strategy<Value = Knot> {
        (-3.0..3.0, -2.0..2.0, prop::option::of(-5.0..5.0))
            .prop_map(|(position, velocity, acceleration)| Knot { position, velocity, acceleration })
    }

    proptest! {
        #[test]
        fn it_begins_and_ends_as_its_knots_say(from in any_knot(), to in any_knot(), duration in 0.05..5.0) {
            let segment = Segment::between(from, to, duration);
            for (knot, at) in [(from, 0.0), (to, duration)] {
                let point = segment.at(at);
                let close = |found: f64, wanted: f64| (found - wanted).abs() < 1e-8 / duration.min(1.0).powi(3);
                prop_assert!(close(point.position.0, knot.position), "{point:?} {knot:?}");
                prop_assert!(close(point.velocity.0, knot.velocity), "{point:?} {knot:?}");
                if let (Some(_), Some(acceleration), Some(_)) = (from.acceleration, knot.acceleration, to.acceleration) {
                    prop_assert!(close(point.acceleration.0, acceleration), "{point:?} {knot:?}");
                }
            }
        }

        #[test]
        fn its_extremes_are_never_exceeded_and_are_reached(
            from in any_knot(), to in any_knot(), duration in 0.05..5.0,
        ) {
            let segment = Segment::between(from, to, duration);
            let (fastest, (lowest, highest)) = (segment.fastest(), segment.range());
            let points: Vec<_> = (0..=2000).map(|step| segment.at(duration * f64::from(step) / 2000.0)).collect();
            let most = |number: &dyn Fn(&TrajectoryPoint) -> f64| points.iter().map(number).fold(f64::MIN, f64::max);
            let (speed, high, low) =
                (most(&|it| it.velocity.0.abs()), most(&|it| it.position.0), -most(&|it| -it.position.0));
            let size = 1.0 + fastest * (1.0 + duration);
            prop_assert!(speed <= fastest + 1e-9 * size && speed >= fastest - 1e-3 * size, "{speed} {fastest}");
            prop_assert!(high <= highest + 1e-9 * size && high >= highest - 1e-3 * size, "{high} {highest}");
            prop_assert!(low >= lowest - 1e-9 * size && low <= lowest + 1e-3 * size, "{low} {lowest}");
        }

        #[test]
        fn points_without_velocities_are_not_overshot(
            ways in (-2.0..2.0, -2.0..2.0, -2.0..2.0), times in (0.1..2.0, 0.1..2.0, 0.1..2.0),
        ) {
            let first = velocity_between((ways.0, times.0), (ways.1, times.1));
            let second = velocity_between((ways.1, times.1), (ways.2, times.2));
            let knot = |position, velocity| Knot { position, velocity, acceleration: None };
            let (low, high) = Segment::between(knot(0.0, first), knot(ways.1, second), times.1).range();
            prop_assert!(low >= ways.1.min(0.0) - 1e-9 && high <= ways.1.max(0.0) + 1e-9, "{low} {high} {}", ways.1);
        }
    }

    #[test]
    fn from_rest_to_rest_a_cubic_is_half_again_as_fast_as_a_line() {
        let knot = |position| Knot { position, ..Knot::default() };
        let segment = Segment::between(knot(0.0), knot(2.0), 4.0);
        assert!((segment.fastest() - 0.75).abs() < 1e-9, "{}", segment.fastest());
        assert_eq!(segment.range(), (0.0, 2.0));
    }
}
