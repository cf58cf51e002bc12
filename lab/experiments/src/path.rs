//! Paths on the floor, by their length, and bases that follow one.
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "`!(a > b)` refuses NaN with the rest")]

mod curve;
mod travel;

use thiserror::Error;

pub use self::travel::{Heading, PathMotion, Reference, velocity_for_wheels};

use self::curve::Curve;
use motion::base::Pose;
use motion::units::{Metres, Radians};

/// A place on the floor: x, y.
pub type Place = [Metres; 2];

/// Lines, arcs and curves, one after another.
///
/// A place on it is found by the length of the way from its begin, in bounded time and without
/// allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pieces: Vec<Piece>,
    length: f64,
}

/// A place on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Station {
    /// Its pose; yaw is the direction of the path.
    pub pose: Pose,
    /// One over the radius of the bend, 1/m; positive to the left.
    pub curvature: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct Piece {
    /// Length of the path before it.
    begin: f64,
    length: f64,
    shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// Curvature 0 is a line.
    Arc {
        from: Pose,
        curvature: f64,
    },
    Curve(Curve),
}

impl Path {
    /// A straight line.
    ///
    /// # Errors
    /// Places that are not finite, or the same.
    pub fn line(from: Place, to: Place) -> Result<Self, PathError> {
        Self::polyline(&[from, to], Metres::ZERO)
    }

    /// From `from` along an arc of `radius`, turning by `angle`: to the left if it is positive.
    ///
    /// # Errors
    /// Numbers that are not finite, a radius that is not above 0, an angle of 0.
    pub fn arc(from: Pose, radius: Metres, angle: Radians) -> Result<Self, PathError> {
        if !(from.x.is_finite() && from.y.is_finite() && from.yaw.is_finite() && angle.is_finite()) {
            return Err(PathError::NotFinite);
        }
        if !(radius.is_finite() && radius.0 > 0.0) {
            return Err(PathError::Radius(radius.0));
        }
        if angle == Radians::ZERO {
            return Err(PathError::Empty);
        }
        let mut path = Self { pieces: Vec::new(), length: 0.0 };
        path.push(radius.0 * angle.abs().0, Shape::Arc { from, curvature: angle.0.signum() / radius.0 });
        Ok(path)
    }

    /// Lines through `places`, with an arc of `radius` in each corner. A radius of 0 leaves the
    /// corners sharp: a base that keeps its speed through them jerks.
    ///
    /// # Errors
    /// Places that are not finite, fewer than two, two alike in a row; a radius that is not finite
    /// or below 0; a corner with no space for its arc.
    pub fn polyline(places: &[Place], radius: Metres) -> Result<Self, PathError> {
        let points = checked(places)?;
        if !(radius.is_finite() && radius.0 >= 0.0) {
            return Err(PathError::Radius(radius.0));
        }
        let mut path = Self { pieces: Vec::new(), length: 0.0 };
        let mut used = 0.0; // of the leg, by the corner before
        for leg in 0..points.len() - 1 {
            let ([ax, ay], [bx, by]) = (points[leg], points[leg + 1]);
            let (length, yaw) = ((bx - ax).hypot(by - ay), (by - ay).atan2(bx - ax));
            let turn = points.get(leg + 2).map_or(0.0, |&[cx, cy]| wrapped((cy - by).atan2(cx - bx) - yaw));
            let cut = if turn == 0.0 || radius == Metres::ZERO {
                0.0
            } else {
                radius.0 * (turn / 2.0).tan().abs()
            };
            let straight = length - used - cut;
            if !(straight >= -1e-9 * length) {
                return Err(PathError::NoRoom { corner: leg + 1, radius: radius.0 });
            }
            let straight = straight.max(0.0);
            let (sin, cos) = yaw.sin_cos();
            let at = |along: f64| Pose {
                x: Metres(ax + cos * along),
                y: Metres(ay + sin * along),
                yaw: Radians(yaw),
            };
            if straight > 0.0 {
                path.push(straight, Shape::Arc { from: at(used), curvature: 0.0 });
            }
            if cut > 0.0 {
                let curvature = turn.signum() / radius.0;
                path.push(radius.0 * turn.abs(), Shape::Arc { from: at(used + straight), curvature });
            }
            used = cut;
        }
        Ok(path)
    }

    /// The cubic Bezier curve of four control points: it begins at the first, towards the second,
    /// and ends at the fourth, away from the third.
    ///
    /// # Errors
    /// Places that are not finite, a curve with a cusp or without length.
    pub fn bezier(control: [Place; 4]) -> Result<Self, PathError> {
        let [a, b, c, d] = control.map(|[x, y]| [x.0, y.0]);
        if [a, b, c, d].iter().flatten().any(|number| !number.is_finite()) {
            return Err(PathError::NotFinite);
        }
        let power = |axis: usize| {
            [
                a[axis],
                3.0 * (b[axis] - a[axis]),
                3.0 * (a[axis] - 2.0 * b[axis] + c[axis]),
                d[axis] - a[axis] + 3.0 * (b[axis] - c[axis]),
            ]
        };
        let mut path = Self { pieces: Vec::new(), length: 0.0 };
        path.push_curve(Curve::new(power(0), power(1), 0)?);
        Ok(path)
    }

    /// A smooth curve through `places`: cubic pieces with continuous direction and curvature
    /// (natural cubic spline over the chords).
    ///
    /// # Errors
    /// Places that are not finite, fewer than two, two alike in a row; a curve with a cusp.
    pub fn spline(places: &[Place]) -> Result<Self, PathError> {
        let points = checked(places)?;
        let mut path = Self { pieces: Vec::new(), length: 0.0 };
        let chords: Vec<f64> = points
            .windows(2)
            .map(|pair| (pair[1][0] - pair[0][0]).hypot(pair[1][1] - pair[0][1]))
            .collect();
        let axes = [0, 1].map(|axis| {
            let values: Vec<f64> = points.iter().map(|point| point[axis]).collect();
            curve::natural_spline(&values, &chords)
        });
        for (number, (x, y)) in axes[0].iter().zip(&axes[1]).enumerate() {
            path.push_curve(Curve::new(*x, *y, number)?);
        }
        Ok(path)
    }

    /// Both, one after the other. The second must begin where the first ends.
    ///
    /// # Errors
    /// A gap of more than a micrometre.
    pub fn then(mut self, next: Self) -> Result<Self, PathError> {
        let (end, begin) = (self.at(self.length()).pose, next.at(Metres::ZERO).pose);
        let gap = end.distance_to(begin);
        if !(gap.0 <= 1e-6) {
            return Err(PathError::Gap(gap.0));
        }
        for piece in next.pieces {
            self.push(piece.length, piece.shape);
        }
        Ok(self)
    }

    /// From begin to end along the way.
    #[must_use]
    pub const fn length(&self) -> Metres {
        Metres(self.length)
    }

    /// The place `distance` along the way; before its begin and beyond its end the begin and the
    /// end.
    #[must_use]
    pub fn at(&self, distance: Metres) -> Station {
        let distance = if distance.0 > 0.0 { distance.0.min(self.length) } else { 0.0 };
        let after = self.pieces.partition_point(|piece| piece.begin <= distance);
        let Some(piece) = self.pieces.get(after.saturating_sub(1)) else { return Station::default() };
        let along = (distance - piece.begin).min(piece.length);
        match &piece.shape {
            Shape::Arc { from, curvature } => {
                let by = motion::base::Displacement {
                    x: Metres(along),
                    y: Metres::ZERO,
                    yaw: Radians(along * curvature),
                };
                Station { pose: from.moved(by), curvature: *curvature }
            }
            Shape::Curve(curve) => curve.at(along),
        }
    }

    /// The tightest bend, 1/m, without sign; of curves by many samples.
    #[must_use]
    pub fn tightest(&self) -> f64 {
        let of = |piece: &Piece| match &piece.shape {
            Shape::Arc { curvature, .. } => curvature.abs(),
            Shape::Curve(curve) => curve.tightest(),
        };
        self.pieces.iter().map(of).fold(0.0, f64::max)
    }

    fn push_curve(&mut self, curve: Curve) {
        self.push(curve.length(), Shape::Curve(curve));
    }

    fn push(&mut self, length: f64, shape: Shape) {
        self.pieces.push(Piece { begin: self.length, length, shape });
        self.length += length;
    }
}

fn checked(places: &[Place]) -> Result<Vec<[f64; 2]>, PathError> {
    let points: Vec<[f64; 2]> = places.iter().map(|[x, y]| [x.0, y.0]).collect();
    if points.iter().flatten().any(|number| !number.is_finite()) {
        return Err(PathError::NotFinite);
    }
    if points.len() < 2 {
        return Err(PathError::Empty);
    }
    match points.windows(2).position(|pair| pair[0] == pair[1]) {
        Some(place) => Err(PathError::Twice { place }),
        None => Ok(points),
    }
}

/// Within half a turn either way.
fn wrapped(angle: f64) -> f64 {
    use core::f64::consts::{PI, TAU};
    let angle = angle.rem_euclid(TAU);
    if angle > PI { angle - TAU } else { angle }
}

/// A path that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// NaN or infinite.
    #[error("path: expected finite numbers")]
    NotFinite,
    /// Nowhere to go.
    #[error("path: expected at least two places, or an angle other than 0")]
    Empty,
    /// A radius that means nothing.
    #[error(
        "path: expected a radius in metres that is finite and not below 0 (above 0 for an arc), found {0}"
    )]
    Radius(f64),
    /// The same place twice in a row.
    #[error("path: place {place} and the next are the same (counted from 0)")]
    Twice {
        /// The first of them.
        place: usize,
    },
    /// The arc of a corner is longer than the adjacent lines.
    #[error("path: corner {corner} has no room for an arc of {radius} m: give a smaller radius")]
    NoRoom {
        /// Place of the corner, counted from 0.
        corner: usize,
        /// Requested value.
        radius: f64,
    },
    /// A curve with zero speed, or one that turns on the spot.
    #[error("path: piece {piece} has a cusp or no length: a base cannot follow it (counted from 0)")]
    Cusp {
        /// Number of the piece, from 0.
        piece: usize,
    },
    /// Two paths that do not meet.
    #[error("path: the second begins {0} m from where the first ends")]
    Gap(f64),
    /// The limits along it mean nothing.
    #[error("{0}")]
    Limits(#[from] crate::convolution::ConvolutionError),
}
