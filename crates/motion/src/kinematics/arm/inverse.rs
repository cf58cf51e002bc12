//! Joint positions for a pose of the tip, by damped least squares.
//!
//! The damping follows the error (Sugihara, IEEE Trans. Robotics 27, 2011): strong far away and
//! near poses that cannot be reached, vanishing near the solution, so that a singular arm neither
//! shakes nor stalls.

use thiserror::Error;

use super::transform::Squares;
use super::{SerialArm, SpatialVector, Transform};
use crate::units::{Metres, Radians};

/// When to be content, and when to give up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InverseSettings {
    /// Content within this distance; above 0.
    pub distance: Metres,
    /// Content within this angle; above 0.
    pub angle: Radians,
    /// Most steps.
    pub steps: u32,
    /// Farthest any joint moves in one step, rad or m.
    pub longest_step: f64,
}

impl Default for InverseSettings {
    /// A micrometre, a microradian, 100 steps of 0.5 rad at most.
    fn default() -> Self {
        Self { distance: Metres(1e-6), angle: Radians(1e-6), steps: 100, longest_step: 0.5 }
    }
}

/// Work space, so that [`SerialArm::inverse`] does not allocate.
#[derive(Clone, Debug)]
pub struct Workspace {
    columns: Vec<SpatialVector>,
    blocked: Vec<bool>,
    best: Vec<f64>,
}

/// Accuracy with which a pose was reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Steps it took.
    pub steps: u32,
    /// Distance left.
    pub distance: Metres,
    /// Angle left.
    pub angle: Radians,
}

impl SerialArm {
    /// Work space of [`SerialArm::inverse`] for this arm.
    #[must_use]
    pub fn workspace(&self) -> Workspace {
        let joints = self.joints.len();
        Workspace {
            columns: vec![SpatialVector::default(); joints],
            blocked: vec![false; joints],
            best: vec![0.0; joints],
        }
    }

    /// Joint positions within their limits that bring the tip to `target`, found from `positions`
    /// on and left there: the solution, or where the tip comes nearest. Allocates nothing, and ends
    /// after [`InverseSettings::steps`].
    ///
    /// # Errors
    /// Numbers that are not finite, another number of positions than joints, a pose that was not
    /// reached.
    pub fn inverse(
        &self,
        target: &Transform,
        positions: &mut [f64],
        settings: &InverseSettings,
        workspace: &mut Workspace,
    ) -> Result<Reached, InverseError> {
        let joints = self.joints.len();
        if positions.len() != joints || workspace.best.len() != joints {
            return Err(InverseError::Positions { expected: joints, found: positions.len() });
        }
        let finite = target.position.is_finite() && target.rotation.is_finite();
        if !(finite && positions.iter().all(|number| number.is_finite())) {
            return Err(InverseError::NotFinite);
        }
        for (position, joint) in positions.iter_mut().zip(&self.joints) {
            *position = position.clamp(joint.limits.0, joint.limits.1);
        }
        let mut nearest: Option<Reached> = None;
        for step in 0..=settings.steps {
            let error = difference(target, &self.jacobian(positions, &mut workspace.columns));
            let reached = Reached {
                steps: step,
                distance: Metres(error.linear.length()),
                angle: Radians(error.angular.length()),
            };
            if reached.distance <= settings.distance && reached.angle <= settings.angle {
                return Ok(reached);
            }
            if nearest.is_none_or(|nearest| reached.cost() < nearest.cost()) {
                nearest = Some(reached);
                workspace.best.copy_from_slice(positions);
            }
            self.step(&error, positions, settings, workspace);
        }
        positions.copy_from_slice(&workspace.best);
        let nearest = nearest.unwrap_or(Reached { steps: 0, distance: Metres::ZERO, angle: Radians::ZERO });
        Err(InverseError::NotReached { distance: nearest.distance, angle: nearest.angle })
    }

    /// One step towards less `error`; the workspace holds the Jacobian.
    fn step(
        &self,
        error: &SpatialVector,
        positions: &mut [f64],
        settings: &InverseSettings,
        workspace: &mut Workspace,
    ) {
        let Workspace { columns, blocked, .. } = workspace;
        blocked.fill(false);
        let damping = error.dot(error) / 2.0 + LEAST_DAMPING;
        // A joint that is pushed against its limit is left out, and the others make up for it.
        for _ in 0..=self.joints.len() {
            let mut squares = Squares::diagonal(damping);
            for (column, _) in columns.iter().zip(blocked.iter()).filter(|(_, blocked)| !**blocked) {
                squares.add(column);
            }
            let Some(pull) = squares.solve(error) else { return };
            let change = |number: usize| columns[number].dot(&pull);
            let mut newly = false;
            let mut farthest = 0.0_f64;
            for (number, joint) in self.joints.iter().enumerate() {
                let (position, change) = (positions[number], change(number));
                let outwards = position <= joint.limits.0 && change < 0.0
                    || position >= joint.limits.1 && change > 0.0;
                if !blocked[number] {
                    (blocked[number], newly) = (outwards, newly || outwards);
                    farthest = farthest.max(change.abs());
                }
            }
            if newly {
                continue;
            }
            let scale =
                if farthest > settings.longest_step { settings.longest_step / farthest } else { 1.0 };
            for (number, joint) in self.joints.iter().enumerate() {
                if !blocked[number] {
                    let (lower, upper) = joint.limits;
                    positions[number] = (positions[number] + scale * change(number)).clamp(lower, upper);
                }
            }
            return;
        }
    }
}

impl Reached {
    fn cost(&self) -> f64 {
        self.distance.0.powi(2) + self.angle.0.powi(2)
    }
}

/// Remaining displacement: m, then the turn as axis times angle, in the frame of the base.
fn difference(target: &Transform, tip: &Transform) -> SpatialVector {
    SpatialVector { linear: target.position - tip.position, angular: target.turn_since(tip) }
}

/// Reason that a pose was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InverseError {
    /// Another number of positions than joints.
    #[error("expected {expected} joint positions and a workspace of this arm, found {found}")]
    Positions {
        /// Joints of the arm.
        expected: usize,
        /// Positions given.
        found: usize,
    },
    /// NaN or infinite.
    #[error("expected finite numbers in the pose and the joint positions")]
    NotFinite,
    /// The steps are used up.
    #[error("the pose was not reached: {distance:.6} and {angle:.6} are left where the tip comes nearest")]
    NotReached {
        /// Distance left.
        distance: Metres,
        /// Angle left.
        angle: Radians,
    },
}

/// Keeps the squares positive where the arm is singular and the error small.
const LEAST_DAMPING: f64 = 1e-9;
