//! A cubic curve, found by the length of the way along it.

use super::{PathError, Station};
use motion::base::Pose;
use motion::units::{Metres, Radians};

/// x and y as cubic polynomials of a parameter from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    x: [f64; 4],
    y: [f64; 4],
    /// Length up to each of `KNOTS` even parameters, from 0 to the whole length.
    lengths: Vec<f64>,
}

impl Curve {
    /// `piece` is its number, for the error.
    pub(super) fn new(x: [f64; 4], y: [f64; 4], piece: usize) -> Result<Self, PathError> {
        let mut curve = Self { x, y, lengths: vec![0.0] };
        let mut length = 0.0;
        for knot in 0..KNOTS {
            length += curve.length_between(knot as f64 / KNOTS as f64, (knot + 1) as f64 / KNOTS as f64);
            curve.lengths.push(length);
        }
        let slowest = samples().map(|at| curve.speed(at)).fold(f64::INFINITY, f64::min);
        if !(length.is_finite() && length > 0.0 && slowest > CUSP * length) {
            return Err(PathError::Cusp { piece });
        }
        Ok(curve)
    }

    pub(super) fn length(&self) -> f64 {
        self.lengths[KNOTS]
    }

    pub(super) fn at(&self, along: f64) -> Station {
        self.station(self.parameter(along))
    }

    pub(super) fn tightest(&self) -> f64 {
        samples().map(|at| self.station(at).curvature.abs()).fold(0.0, f64::max)
    }

    /// The parameter at a length: its interval by the table, within it by Newton's method.
    fn parameter(&self, along: f64) -> f64 {
        let knot = self.lengths.partition_point(|length| *length <= along).clamp(1, KNOTS) - 1;
        let (begin, end) = (knot as f64 / KNOTS as f64, (knot + 1) as f64 / KNOTS as f64);
        let (before, after) = (self.lengths[knot], self.lengths[knot + 1]);
        let mut at = begin + (end - begin) * ((along - before) / (after - before)).clamp(0.0, 1.0);
        for _ in 0..NEWTON_STEPS {
            let off = before + self.length_between(begin, at) - along;
            at = (at - off / self.speed(at)).clamp(begin, end);
        }
        at
    }

    fn station(&self, at: f64) -> Station {
        let ([dx, dy], [ddx, ddy]) =
            ([first(&self.x, at), first(&self.y, at)], [second(&self.x, at), second(&self.y, at)]);
        let speed = dx.hypot(dy);
        Station {
            pose: Pose {
                x: Metres(value(&self.x, at)),
                y: Metres(value(&self.y, at)),
                yaw: Radians(dy.atan2(dx)),
            },
            curvature: (dx * ddy - dy * ddx) / (speed * speed * speed),
        }
    }

    fn speed(&self, at: f64) -> f64 {
        first(&self.x, at).hypot(first(&self.y, at))
    }

    /// By Gauss and Legendre's rule of five points.
    fn length_between(&self, begin: f64, end: f64) -> f64 {
        let (middle, half) = ((begin + end) / 2.0, (end - begin) / 2.0);
        half * GAUSS.iter().map(|(place, weight)| weight * self.speed(middle + half * place)).sum::<f64>()
    }
}

/// Coefficients of each piece of the natural cubic spline through `values`, `steps` apart, over a
/// parameter from 0 to 1.
pub(super) fn natural_spline(values: &[f64], steps: &[f64]) -> Vec<[f64; 4]> {
    // Second derivatives at the values, by elimination: a tridiagonal system with a strong
    // diagonal.
    let count = values.len();
    let mut second = vec![0.0; count];
    let mut upper = vec![0.0; count];
    for at in 1..count - 1 {
        let (before, after) = (steps[at - 1], steps[at]);
        let slope = (values[at + 1] - values[at]) / after - (values[at] - values[at - 1]) / before;
        let pivot = 2.0 * (before + after) - before * upper[at - 1];
        upper[at] = after / pivot;
        second[at] = (6.0 * slope - before * second[at - 1]) / pivot;
    }
    for at in (1..count - 1).rev() {
        second[at] -= upper[at] * second[at + 1];
    }
    let piece = |at: usize| {
        let square = steps[at] * steps[at];
        let (from, to) = (square * second[at], square * second[at + 1]);
        [values[at], values[at + 1] - values[at] - from / 3.0 - to / 6.0, from / 2.0, (to - from) / 6.0]
    };
    (0..count - 1).map(piece).collect()
}

fn samples() -> impl Iterator<Item = f64> {
    (0..=SAMPLES).map(|sample| sample as f64 / SAMPLES as f64)
}

fn value([a, b, c, d]: &[f64; 4], at: f64) -> f64 {
    a + at * (b + at * (c + at * d))
}

fn first([_, b, c, d]: &[f64; 4], at: f64) -> f64 {
    b + at * (2.0 * c + at * 3.0 * d)
}

fn second([_, _, c, d]: &[f64; 4], at: f64) -> f64 {
    2.0 * c + at * 6.0 * d
}

/// Intervals of the table.
const KNOTS: usize = 64;

/// Newton's method doubles its right digits with every step; the table's interpolation gives the
/// first three.
const NEWTON_STEPS: usize = 4;

/// Samples for what has no closed form.
const SAMPLES: usize = 1024;

/// Slowest parametric speed over the length of a curve without a cusp.
const CUSP: f64 = 1e-3;

/// Places and weights on -1 to 1.
const GAUSS: [(f64, f64); 5] = [
    (0.0, 128.0 / 225.0),
    (0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
    (-0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
    (0.906_179_845_938_664, 0.236_926_885_056_189_08),
    (-0.906_179_845_938_664, 0.236_926_885_056_189_08),
];
