use std::time::Duration;

use motion::{Hertz, Radians, Seconds, SinusoidError, SmoothSinusoid};

/// One way to move axes; a robot may have several to switch between.
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// What it is called; unique in the robot.
    pub name: String,
    /// What it does.
    pub kind: ControllerKind,
    /// Indices of the axes it moves, rising; it holds the others. Of a base its wheels.
    pub axes: Vec<usize>,
}

/// What a controller does.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerKind {
    /// Every axis is enabled and stays where it is.
    Hold,
    /// Every axis swings about the position it started from; in the order of [`Controller::axes`].
    Sinusoid(Vec<Sinusoid>),
    /// The axes follow trajectories.
    JointTrajectory(JointTrajectory),
    /// The axes go to positions that are asked, within their limits.
    JointPosition,
    /// The axes turn at velocities that are asked, within their limits.
    JointVelocity,
    /// The axes get torques that are asked.
    JointEffort,
    /// A base of two driven wheels follows a twist.
    DiffDrive,
    /// A base that can move any way follows a twist.
    OmniDrive,
}

impl ControllerKind {
    /// As the robot file writes it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Sinusoid(_) => "sinusoid",
            Self::JointTrajectory(_) => "joint_trajectory",
            Self::JointPosition => "joint_position",
            Self::JointVelocity => "joint_velocity",
            Self::JointEffort => "joint_effort",
            Self::DiffDrive => "diff_drive",
            Self::OmniDrive => "omni_drive",
        }
    }
}

/// How trajectories are followed where they do not say themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointTrajectory {
    /// How far an axis may be off on the way, in rad; `None`: no matter how far.
    pub path_tolerance: Option<f64>,
    /// How far an axis may be off at the goal, in rad; `None`: no matter how far.
    pub goal_tolerance: Option<f64>,
    /// How much later than its last point a goal may be reached; `None`: no matter how much.
    pub goal_time: Option<Duration>,
    /// Points that a trajectory may have.
    pub points: usize,
}

/// How one axis swings about its start: `amplitude * sin(2 pi frequency t - phase)`, from rest and growing
/// over the first swing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sinusoid {
    /// The swing about the position 0.
    trajectory: SmoothSinusoid,
    /// How much later than the others it begins.
    delay: Seconds,
}

impl Sinusoid {
    /// A swing of `amplitude` rad, `frequency` Hz (0: none), that begins `phase` rad behind the others.
    ///
    /// # Errors
    /// A number that is not finite, or below 0.
    pub fn new(amplitude: f64, frequency: f64, phase: f64) -> Result<Self, SinusoidError> {
        let moves = frequency > 0.0;
        let ramp = if moves { 1.0 / frequency } else { 1.0 };
        let trajectory =
            SmoothSinusoid::new(Radians(0.0), Radians(amplitude), Hertz(frequency), Seconds(ramp))?;
        let delay = if moves { phase / (std::f64::consts::TAU * frequency) } else { 0.0 };
        Ok(Self { trajectory, delay: Seconds(delay) })
    }

    /// The swing about the position 0, from its begin.
    #[must_use]
    pub fn trajectory(&self) -> SmoothSinusoid {
        self.trajectory
    }

    /// How much later than the others it begins.
    #[must_use]
    pub fn delay(&self) -> Seconds {
        self.delay
    }
}
