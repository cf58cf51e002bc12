//! A row of joints from a base to a tip, as URDF describes it.
//!
//! Joint positions are plain numbers here, as URDF counts them: rad for a joint that turns, m for one that slides;
//! [`ArmJoint::kind`] says which. Poses are of the tip in the frame of the base link, m.

mod inverse;
mod line;
mod load;
mod spline;
mod urdf;

use nalgebra::{Isometry3, Translation3, Unit, UnitQuaternion, Vector3, Vector6};

pub use self::inverse::{InverseError, InverseSettings, Reached, Workspace};
pub use self::line::{JointLimits, Line, LineError, LineSpeed};
pub use self::load::ArmError;

/// Joints in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct SerialArm {
    joints: Vec<ArmJoint>,
    /// From the last joint to the tip.
    tip: Isometry3<f64>,
    base_link: String,
    tip_link: String,
}

/// A joint that moves.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmJoint {
    /// Its name; unique.
    pub name: String,
    /// Its motion.
    pub kind: JointKind,
    /// From the joint before to this one, at its zero.
    pub origin: Isometry3<f64>,
    /// About or along which it moves, in its own frame.
    pub axis: Unit<Vector3<f64>>,
    /// Lowest and highest position, rad or m; infinite for one that turns for ever.
    pub limits: (f64, f64),
    /// Highest speed, rad/s or m/s; 0 if the file does not say.
    pub velocity: f64,
    /// Highest torque or force, N m or N; 0 if the file does not say.
    pub effort: f64,
}

/// Motion of a joint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JointKind {
    /// About its axis, rad.
    Turns,
    /// Along its axis, m.
    Slides,
}

impl SerialArm {
    /// From the text of a URDF file. Without names, from the root to the only link that carries no other.
    ///
    /// # Errors
    /// A file that is no URDF, no way from `base` to `tip`, a joint of a kind that a serial arm cannot have.
    pub fn from_urdf(urdf: &str, base: Option<&str>, tip: Option<&str>) -> Result<Self, ArmError> {
        load::arm(urdf, base, tip)
    }

    /// The joints that move, from base to tip.
    #[must_use]
    pub fn joints(&self) -> &[ArmJoint] {
        &self.joints
    }

    /// Name of the link whose frame poses are in.
    #[must_use]
    pub fn base_link(&self) -> &str {
        &self.base_link
    }

    /// Name of the link at the tip.
    #[must_use]
    pub fn tip_link(&self) -> &str {
        &self.tip_link
    }

    /// Pose of the tip. Joints that `positions` does not name stand at zero.
    #[must_use]
    pub fn forward(&self, positions: &[f64]) -> Isometry3<f64> {
        let mut pose = Isometry3::identity();
        for (joint, position) in self.joints.iter().zip(filled(positions)) {
            pose = pose * joint.origin * joint.moved(position);
        }
        pose * self.tip
    }

    /// Velocity of the tip for each joint's velocity, one column a joint: linear (m/s), then angular (rad/s), in the frame
    /// of the base. Returns the pose of the tip.
    pub fn jacobian(&self, positions: &[f64], columns: &mut [Vector6<f64>]) -> Isometry3<f64> {
        let mut pose = Isometry3::identity();
        // First the axes and where they are; the tip is known after the last one.
        for ((joint, position), column) in self.joints.iter().zip(filled(positions)).zip(columns.iter_mut())
        {
            pose *= joint.origin;
            let (axis, place) = (pose.rotation * joint.axis.into_inner(), pose.translation.vector);
            *column = stacked(place, axis);
            pose *= joint.moved(position);
        }
        let tip = pose * self.tip;
        for (joint, column) in self.joints.iter().zip(columns.iter_mut()) {
            let (place, axis) = parts(column);
            *column = match joint.kind {
                JointKind::Turns => stacked(axis.cross(&(tip.translation.vector - place)), axis),
                JointKind::Slides => stacked(axis, Vector3::zeros()),
            };
        }
        tip
    }
}

impl ArmJoint {
    /// Effect on the links beyond it.
    fn moved(&self, position: f64) -> Isometry3<f64> {
        match self.kind {
            JointKind::Turns => Isometry3::from_parts(
                Translation3::identity(),
                UnitQuaternion::from_axis_angle(&self.axis, position),
            ),
            JointKind::Slides => Isometry3::from_parts(
                Translation3::from(self.axis.into_inner() * position),
                UnitQuaternion::identity(),
            ),
        }
    }
}

fn filled(positions: &[f64]) -> impl Iterator<Item = f64> {
    positions.iter().copied().chain(core::iter::repeat(0.0))
}

fn stacked(upper: Vector3<f64>, lower: Vector3<f64>) -> Vector6<f64> {
    Vector6::new(upper.x, upper.y, upper.z, lower.x, lower.y, lower.z)
}

fn parts(column: &Vector6<f64>) -> (Vector3<f64>, Vector3<f64>) {
    (Vector3::new(column[0], column[1], column[2]), Vector3::new(column[3], column[4], column[5]))
}
