//! A row of joints from a base to a tip, as URDF describes it.
//!
//! Joint positions are plain numbers here, as URDF counts them: rad for a revolute joint, m for a
//! prismatic one; [`ArmJoint::kind`] gives the kind. Poses are of the tip in the frame of the base
//! link, m.

mod inverse;
mod line;
mod load;
mod spline;
mod transform;
mod urdf;

use glam::{DQuat, DVec3};
use thiserror::Error;

pub use self::inverse::{InverseError, InverseSettings, Reached, Workspace};
pub use self::line::{JointLimits, Line, LineError, LineSpeed};
pub use self::transform::{SpatialVector, Transform};

/// Joints in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct SerialArm {
    joints: Vec<ArmJoint>,
    /// From the last joint to the tip.
    tip: Transform,
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
    pub origin: Transform,
    /// About or along which it moves, in its own frame; of length 1.
    pub axis: DVec3,
    /// Lowest and highest position, rad or m; infinite for a continuous joint.
    pub limits: (f64, f64),
    /// Highest speed, rad/s or m/s; 0 if the file does not say.
    pub velocity: f64,
    /// Highest torque or force, N m or N; 0 if the file does not say.
    pub effort: f64,
}

/// SpatialVector of a joint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JointKind {
    /// About its axis, rad.
    Turns,
    /// Along its axis, m.
    Slides,
}

impl SerialArm {
    /// From the text of a URDF file. Without names, from the root to the only link that carries no
    /// other.
    ///
    /// # Errors
    /// A file that is no URDF, no way from `base` to `tip`, a joint of a kind that a serial arm
    /// cannot have.
    pub fn from_urdf(urdf: &str, base: Option<&str>, tip: Option<&str>) -> Result<Self, ArmError> {
        load::arm(urdf, base, tip)
    }

    /// The joints that move, from base to tip.
    #[must_use]
    pub fn joints(&self) -> &[ArmJoint] {
        &self.joints
    }

    /// Name of the reference link of poses.
    #[must_use]
    pub fn base_link(&self) -> &str {
        &self.base_link
    }

    /// Name of the link at the tip.
    #[must_use]
    pub fn tip_link(&self) -> &str {
        &self.tip_link
    }

    /// Transform of the tip. Joints that `positions` does not name stand at zero.
    #[must_use]
    pub fn forward(&self, positions: &[f64]) -> Transform {
        let mut pose = Transform::IDENTITY;
        for (joint, position) in self.joints.iter().zip(filled(positions)) {
            pose = pose * joint.origin * joint.moved(position);
        }
        pose * self.tip
    }

    /// Velocity of the tip for each joint's velocity, one column a joint: linear (m/s), then
    /// angular (rad/s), in the frame of the base. Returns the pose of the tip.
    pub fn jacobian(&self, positions: &[f64], columns: &mut [SpatialVector]) -> Transform {
        let mut pose = Transform::IDENTITY;
        // First the axes and where they are; the tip is known after the last one.
        for ((joint, position), column) in self.joints.iter().zip(filled(positions)).zip(columns.iter_mut())
        {
            pose = pose * joint.origin;
            *column = SpatialVector { linear: pose.position, angular: pose.rotation * joint.axis };
            pose = pose * joint.moved(position);
        }
        let tip = pose * self.tip;
        for (joint, column) in self.joints.iter().zip(columns.iter_mut()) {
            let SpatialVector { linear: place, angular: axis } = *column;
            *column = match joint.kind {
                JointKind::Turns => {
                    SpatialVector { linear: axis.cross(tip.position - place), angular: axis }
                }
                JointKind::Slides => SpatialVector { linear: axis, angular: DVec3::ZERO },
            };
        }
        tip
    }
}

impl ArmJoint {
    /// Effect on the links beyond it.
    fn moved(&self, position: f64) -> Transform {
        match self.kind {
            JointKind::Turns => {
                Transform { position: DVec3::ZERO, rotation: DQuat::from_axis_angle(self.axis, position) }
            }
            JointKind::Slides => Transform { position: self.axis * position, rotation: DQuat::IDENTITY },
        }
    }
}

fn filled(positions: &[f64]) -> impl Iterator<Item = f64> {
    positions.iter().copied().chain(core::iter::repeat(0.0))
}

/// Reason that a URDF gives no serial arm.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ArmError {
    /// It is no URDF.
    #[error("this is no URDF: {0}")]
    NoUrdf(String),
    /// A name that no link has.
    #[error("the URDF has no link named \"{0}\"")]
    NoLink(String),
    /// There is no root link, or several.
    #[error("expected one link that hangs on no other, found {found}: name the base link", found = list(.0))]
    Roots(Vec<String>),
    /// None or several links carry no other.
    #[error("expected one link that carries no other, found {found}: name the tip link", found = list(.0))]
    Ends(Vec<String>),
    /// A link is the child of two joints.
    #[error("link \"{0}\" hangs on two joints: a serial arm is a tree without loops")]
    TwoParents(String),
    /// The two links are not in one row.
    #[error("no row of joints leads from link \"{base}\" to link \"{tip}\"")]
    NoWay {
        /// Place where it was to begin.
        base: String,
        /// Place where it was to end.
        tip: String,
    },
    /// Nothing moves between them.
    #[error("no joint moves between link \"{base}\" and link \"{tip}\"")]
    NoJoint {
        /// Place where it begins.
        base: String,
        /// Place where it ends.
        tip: String,
    },
    /// A joint that a serial arm cannot have.
    #[error("joint \"{joint}\": expected revolute, continuous, prismatic or fixed, found {kind}")]
    Kind {
        /// Its name.
        joint: String,
        /// Its kind.
        kind: String,
    },
    /// A number that is not finite, or an axis without a direction.
    #[error("joint \"{joint}\": its {what} is not made of finite numbers, or an axis without a direction")]
    Number {
        /// Its name.
        joint: String,
        /// Name of the number.
        what: &'static str,
    },
    /// Limits the wrong way round.
    #[error("joint \"{joint}\": expected limits with lower below upper, found {lower} to {upper}")]
    Limits {
        /// Its name.
        joint: String,
        /// The lower one.
        lower: f64,
        /// The upper one.
        upper: f64,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
