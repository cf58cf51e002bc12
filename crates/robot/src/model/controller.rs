use std::time::Duration;

use motion::{Hertz, MetresPerSecond, Radians, RadiansPerSecond, Seconds, SinusoidError, SmoothSinusoid};

/// A controller of axes; a robot may switch between several.
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// Name; unique in the robot.
    pub name: String,
    /// Kind.
    pub kind: ControllerKind,
    /// Indices of its axes, rising; it holds the others. For a base controller those of the wheels.
    pub axes: Vec<usize>,
}

/// Kind of a controller.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerKind {
    /// Enables every axis and keeps it in place.
    Hold,
    /// Swings every axis about its position at the start; in the order of [`Controller::axes`].
    Sinusoid(Vec<Sinusoid>),
    /// Follows trajectories.
    JointTrajectory(JointTrajectory),
    /// Moves the axes to commanded positions, within their limits.
    JointPosition,
    /// Turns the axes at commanded velocities, within their limits.
    JointVelocity,
    /// Gives the axes commanded torques.
    JointEffort,
    /// Drives a base of two driven wheels by a twist.
    DiffDrive,
    /// Drives a base that can move in any direction by a twist.
    OmniDrive,
    /// Moves the tool of the arm to poses, on straight lines.
    Cartesian(Cartesian),
    /// Runs in a process of its own.
    External(External),
}

impl ControllerKind {
    /// Name in the robot file.
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
            Self::Cartesian(_) => "cartesian",
            Self::External(_) => "external",
        }
    }
}

/// Highest speeds of an arm's tool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cartesian {
    /// Along a line.
    pub linear_velocity: MetresPerSecond,
    /// Of its turn.
    pub angular_velocity: RadiansPerSecond,
}

/// A controller process, and how long it is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct External {
    /// Time from the release of a cycle to the deadline of the answer; at most three quarters of the period.
    pub deadline: Duration,
    /// Cycles in a row without an answer in time, after which the axes are stopped.
    pub max_late: u32,
}

impl External {
    /// Answers within half of this period, and the usual number of late ones.
    #[must_use]
    pub fn usual(period: Duration) -> Self {
        Self { deadline: period / 2, max_late: 3 }
    }
}

/// Defaults for trajectories without tolerances of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointTrajectory {
    /// Path tolerance, in rad; `None` for no limit.
    pub path_tolerance: Option<f64>,
    /// Goal tolerance, in rad; `None` for no limit.
    pub goal_tolerance: Option<f64>,
    /// Time after the last point within which the goal must be reached; `None` for no limit.
    pub goal_time: Option<Duration>,
    /// Largest number of points of a trajectory.
    pub points: usize,
}

/// Swing of one axis about its start: `amplitude * sin(2 pi frequency t - phase)`, from rest and growing
/// over the first swing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sinusoid {
    /// Swing about the position 0.
    trajectory: SmoothSinusoid,
    /// Delay of its start after the others.
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

    /// Swing about the position 0, from its start.
    #[must_use]
    pub fn trajectory(&self) -> SmoothSinusoid {
        self.trajectory
    }

    /// Delay of its start after the others.
    #[must_use]
    pub fn delay(&self) -> Seconds {
        self.delay
    }
}
