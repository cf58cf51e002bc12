use std::path::PathBuf;

use motion::TwistLimits;

/// Mobile base of a robot.
#[derive(Clone, Debug, PartialEq)]
pub struct Base {
    /// Wheels, and their arrangement.
    pub kind: BaseKind,
    /// Radius of the wheels, in m.
    pub wheel_radius: f64,
    /// Distance between the middles of the left and the right wheels, in m.
    pub track: f64,
    /// Limits of the base.
    pub limits: TwistLimits,
    /// Fixed frame of odometry.
    pub odometry_frame: String,
    /// Frame of the base, which moves.
    pub base_frame: String,
}

/// Wheels of a base, by the indices of their axes. A wheel's axis turns forward when the base moves ahead:
/// a drive mounted in the opposite direction has a negative gear ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BaseKind {
    /// Two driven wheels on one axle.
    Differential {
        /// Left wheel.
        left: usize,
        /// Right wheel.
        right: usize,
    },
    /// Four wheels with rollers at an angle, and axles across.
    Mecanum {
        /// Front left, front right, rear left, rear right.
        wheels: [usize; 4],
        /// Distance from the front axle to the rear one, in m.
        wheelbase: f64,
        /// Angle between a roller's axle and the wheel's, in rad.
        roller_angle: f64,
    },
    /// Four wheels with rollers across, at the corners, rolling along the sides' diagonals.
    Omni {
        /// Front left, front right, rear left, rear right.
        wheels: [usize; 4],
        /// Distance from the front wheels to the rear ones, in m.
        wheelbase: f64,
    },
}

impl Base {
    /// Indices of the wheels' axes: left, right; or front left, front right, rear left, rear right.
    #[must_use]
    pub fn wheels(&self) -> Vec<usize> {
        match self.kind {
            BaseKind::Differential { left, right } => vec![left, right],
            BaseKind::Mecanum { wheels, .. } | BaseKind::Omni { wheels, .. } => wheels.to_vec(),
        }
    }

    /// Name of its kind in the robot file.
    #[must_use]
    pub const fn kind_name(&self) -> &'static str {
        match self.kind {
            BaseKind::Differential { .. } => "differential",
            BaseKind::Mecanum { .. } => "mecanum",
            BaseKind::Omni { .. } => "omni",
        }
    }
}

/// An arm, described by a URDF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Path of the URDF file.
    pub urdf: PathBuf,
    /// Link in whose frame poses are; `None` for the one that hangs on no other.
    pub base: Option<String>,
    /// Link that is brought to poses; `None` for the only one that carries no other.
    pub tool: Option<String>,
    /// Joint name of each axis, in the order of the axes; `None` for an axis that is not part of the arm.
    pub joints: Vec<Option<String>>,
}
