use std::path::PathBuf;

/// What drives a robot about on the floor.
#[derive(Clone, Debug, PartialEq)]
pub struct Base {
    /// Its wheels, and where they are.
    pub kind: BaseKind,
    /// Radius of the wheels, in m.
    pub wheel_radius: f64,
    /// From the middle of the left wheels to the middle of the right ones, in m.
    pub track: f64,
    /// What it must not exceed.
    pub limits: BaseLimits,
    /// Frame that odometry counts in.
    pub odometry_frame: String,
    /// Frame that moves.
    pub base_frame: String,
}

/// Wheels of a base, by the indices of their axes. A wheel's axis turns forward where the base moves ahead: a drive
/// mounted the other way round has a negative gear ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BaseKind {
    /// Two driven wheels on one axle.
    Differential {
        /// The wheel to the left.
        left: usize,
        /// The wheel to the right.
        right: usize,
    },
    /// Four wheels with rollers at an angle, axles across.
    Mecanum {
        /// Front left, front right, rear left, rear right.
        wheels: [usize; 4],
        /// From the front axle to the rear one, in m.
        wheelbase: f64,
        /// Between a roller's axle and the wheel's, in rad.
        roller_angle: f64,
    },
    /// Four wheels with rollers across, at the corners, rolling along the sides' diagonals.
    Omni {
        /// Front left, front right, rear left, rear right.
        wheels: [usize; 4],
        /// From the front wheels to the rear ones, in m.
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

    /// As the robot file writes its kind.
    #[must_use]
    pub const fn kind_name(&self) -> &'static str {
        match self.kind {
            BaseKind::Differential { .. } => "differential",
            BaseKind::Mecanum { .. } => "mecanum",
            BaseKind::Omni { .. } => "omni",
        }
    }
}

/// What a base must not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaseLimits {
    /// Highest speed ahead and to the side, in m/s.
    pub velocity: f64,
    /// Highest acceleration, in m/s^2.
    pub acceleration: f64,
    /// Highest jerk, in m/s^3.
    pub jerk: f64,
    /// Highest yaw rate, in rad/s.
    pub yaw: f64,
    /// Highest yaw acceleration, in rad/s^2.
    pub yaw_acceleration: f64,
    /// Highest yaw jerk, in rad/s^3.
    pub yaw_jerk: f64,
}

/// An arm, described by a URDF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// The file.
    pub urdf: PathBuf,
    /// Name of each axis's joint, in the order of the axes; `None` for an axis that is none of its joints.
    pub joints: Vec<Option<String>>,
}
