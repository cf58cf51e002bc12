//! Poses in space and how they change: what six numbers of an arm's tip are.

use core::ops::{Add, Mul};

use glam::{DQuat, DVec3};

/// Place and orientation of a frame in another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transform {
    /// Where its origin is, m.
    pub position: DVec3,
    /// Rotation; of length 1.
    pub rotation: DQuat,
}

impl Transform {
    /// The frame itself.
    pub const IDENTITY: Self = Self { position: DVec3::ZERO, rotation: DQuat::IDENTITY };

    /// Turn from `from` to here as axis times angle, rad: the shorter way round.
    ///
    /// Exact for small turns too, where an arc cosine, or a least angle that counts, is not.
    #[must_use]
    pub fn turn_since(&self, from: &Self) -> DVec3 {
        let turn = self.rotation * from.rotation.conjugate();
        let turn = if turn.w < 0.0 { -turn } else { turn };
        let (sine, axis) = (turn.xyz().length(), turn.xyz());
        if sine > 0.0 { axis * (2.0 * sine.atan2(turn.w) / sine) } else { DVec3::ZERO }
    }
}

/// The second frame in that which the first one is in.
impl Mul for Transform {
    type Output = Self;

    fn mul(self, inner: Self) -> Self {
        Self {
            position: self.position + self.rotation * inner.position,
            rotation: (self.rotation * inner.rotation).normalize(),
        }
    }
}

/// Velocity of a frame, or a small displacement: a column of a Jacobian.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpatialVector {
    /// Of its origin: m/s, or m.
    pub linear: DVec3,
    /// About its origin, as axis times angle: rad/s, or rad.
    pub angular: DVec3,
}

impl SpatialVector {
    /// Sum of the products of the six numbers.
    #[must_use]
    pub fn dot(&self, other: &Self) -> f64 {
        self.linear.dot(other.linear) + self.angular.dot(other.angular)
    }

    pub(super) fn numbers(&self) -> [f64; 6] {
        let ([a, b, c], [d, e, f]) = (self.linear.to_array(), self.angular.to_array());
        [a, b, c, d, e, f]
    }

    fn of(numbers: [f64; 6]) -> Self {
        let [a, b, c, d, e, f] = numbers;
        Self { linear: DVec3::new(a, b, c), angular: DVec3::new(d, e, f) }
    }
}

impl Add for SpatialVector {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { linear: self.linear + other.linear, angular: self.angular + other.angular }
    }
}

/// Symmetric matrix of six by six: sums of squares of motions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Squares([[f64; 6]; 6]);

impl Squares {
    /// `number` along the diagonal.
    pub(super) fn diagonal(number: f64) -> Self {
        Self(core::array::from_fn(|row| {
            core::array::from_fn(|column| if row == column { number } else { 0.0 })
        }))
    }

    /// Adds a motion times its transpose.
    pub(super) fn add(&mut self, motion: &SpatialVector) {
        let numbers = motion.numbers();
        for (row, left) in self.0.iter_mut().zip(numbers) {
            row.iter_mut().zip(numbers).for_each(|(sum, right)| *sum += left * right);
        }
    }

    /// The motion that this matrix turns into `motion`, by Cholesky's factors; `None` unless it is
    /// positive.
    pub(super) fn solve(mut self, motion: &SpatialVector) -> Option<SpatialVector> {
        let Self(matrix) = &mut self;
        for column in 0..6 {
            for row in column..6 {
                let known: f64 = (0..column).map(|it| matrix[row][it] * matrix[column][it]).sum();
                let left = matrix[row][column] - known;
                matrix[row][column] = if row > column {
                    left / matrix[column][column]
                } else if left > 0.0 {
                    left.sqrt()
                } else {
                    return None;
                };
            }
        }
        let mut solution = motion.numbers();
        for row in 0..6 {
            let known: f64 = (0..row).map(|it| matrix[row][it] * solution[it]).sum();
            solution[row] = (solution[row] - known) / matrix[row][row];
        }
        for row in (0..6).rev() {
            let known: f64 = (row + 1..6).map(|it| matrix[it][row] * solution[it]).sum();
            solution[row] = (solution[row] - known) / matrix[row][row];
        }
        Some(SpatialVector::of(solution))
    }
}

#[cfg(test)]
mod tests {
    use super::{SpatialVector, Squares};

    #[test]
    fn what_is_solved_is_what_went_in() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut any = || SpatialVector::of(core::array::from_fn(|_| rng.f64() * 2.0 - 1.0));
        for _ in 0..100 {
            let (columns, wanted) = ([0; 7].map(|_| any()), any());
            let mut squares = Squares::diagonal(1e-6);
            columns.iter().for_each(|column| squares.add(column));
            let product = wanted.numbers().map(|number| number * 1e-6);
            let product = columns.iter().fold(SpatialVector::of(product), |sum, column| {
                sum + SpatialVector::of(column.numbers().map(|number| number * column.dot(&wanted)))
            });
            let found = squares.solve(&product).expect("positive");
            let off = found.numbers().into_iter().zip(wanted.numbers()).map(|(is, was)| (is - was).abs());
            assert!(off.fold(0.0, f64::max) < 1e-6, "{found:?} {wanted:?}");
        }
        assert_eq!(Squares::diagonal(0.0).solve(&any()), None);
        assert_eq!(Squares::diagonal(f64::NAN).solve(&any()), None);
    }
}
