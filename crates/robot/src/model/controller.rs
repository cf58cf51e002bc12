use std::collections::BTreeMap;
use std::time::Duration;

use motion::{Hertz, MetresPerSecond, Radians, RadiansPerSecond, Seconds, SinusoidError, SmoothSinusoid};
use serde::Deserialize;
use types::{AxisMode, ControllerKind};

use super::{Axis, usual};
use crate::field::{not_negative, positive, readable, time, whole};

/// `[controller]`, or several `[[controller]]`: a controller of axes; a robot may switch between
/// several.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Name; unique in the robot; its kind by default.
    #[serde(default, deserialize_with = "readable")]
    pub name: String,
    /// Kind.
    pub kind: ControllerKind,
    #[serde(rename = "axes")]
    pub(crate) axis_names: Option<Vec<String>>,
    /// Mode of operation in which it moves its axes, unless their own.
    pub mode: Option<AxisMode>,
    #[serde(default, deserialize_with = "not_negative")]
    pub(crate) amplitude: Option<f64>,
    #[serde(default, deserialize_with = "not_negative")]
    pub(crate) frequency: Option<f64>,
    #[serde(default, deserialize_with = "not_negative")]
    pub(crate) phase: f64,
    #[serde(default, deserialize_with = "not_negative")]
    pub(crate) phase_step: f64,
    #[serde(default, rename = "axis")]
    pub(crate) swing_of: BTreeMap<String, AxisSwing>,
    /// Path tolerance of trajectories without one of their own; `None` for no limit.
    #[serde(default, deserialize_with = "positive")]
    pub path_tolerance: Option<Radians>,
    /// Goal tolerance of trajectories without one of their own; `None` for no limit.
    #[serde(default, deserialize_with = "positive")]
    pub goal_tolerance: Option<Radians>,
    /// Time after the last point within which the goal must be reached; `None` for no limit.
    #[serde(default, deserialize_with = "time")]
    pub goal_time: Option<Seconds>,
    /// Largest number of points of a trajectory: memory is reserved for twice as many.
    #[serde(default = "usual_points", deserialize_with = "whole::<_, _, 2, 100_000>")]
    pub points: usize,
    /// Highest speed of an arm's tool along a line. The default is a speed at which people may work
    /// next to an arm.
    #[serde(default = "usual_linear_velocity", deserialize_with = "positive")]
    pub linear_velocity: MetresPerSecond,
    /// Highest speed of its turn.
    #[serde(default = "usual_angular_velocity", deserialize_with = "positive")]
    pub angular_velocity: RadiansPerSecond,
    /// Time from the release of a cycle to the deadline of a controller process's answer; at most
    /// three quarters of the period, by default half of it.
    #[serde(default, deserialize_with = "time")]
    pub deadline: Duration,
    /// Cycles in a row without an answer in time, after which the axes are stopped.
    #[serde(default = "usual_max_late", deserialize_with = "whole::<_, _, 1, 1000>")]
    pub max_late: u32,
    /// Indices of its axes, rising; it holds the others. For a base controller, indices of the
    /// wheels.
    #[serde(skip)]
    pub axes: Vec<usize>,
    /// Swings of a sinusoid, in the order of the axes.
    #[serde(skip)]
    pub swings: Vec<Sinusoid>,
}

/// `[controller.axis.NAME]`: differing values of one axis.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AxisSwing {
    #[serde(default, deserialize_with = "not_negative")]
    pub(crate) amplitude: Option<f64>,
    #[serde(default, deserialize_with = "not_negative")]
    pub(crate) frequency: Option<f64>,
    #[serde(default, deserialize_with = "not_negative")]
    pub(crate) phase: Option<f64>,
}

usual! {
    usual_points: usize = 1000;
    usual_linear_velocity: MetresPerSecond = MetresPerSecond(0.25);
    usual_angular_velocity: RadiansPerSecond = RadiansPerSecond(1.0);
    usual_max_late: u32 = 3;
}

impl Controller {
    /// Mode of operation in which it moves this axis.
    #[must_use]
    pub fn mode_of(&self, axis: &Axis) -> AxisMode {
        self.mode.unwrap_or(axis.mode)
    }

    /// One of this kind for these axes, with usual values for cycles of this period.
    #[must_use]
    pub fn of_kind(kind: ControllerKind, axes: Vec<usize>, period: Duration) -> Self {
        Self {
            name: kind.name().to_owned(),
            kind,
            axis_names: None,
            mode: None,
            amplitude: None,
            frequency: None,
            phase: 0.0,
            phase_step: 0.0,
            swing_of: BTreeMap::new(),
            path_tolerance: None,
            goal_tolerance: None,
            goal_time: None,
            points: usual_points(),
            linear_velocity: usual_linear_velocity(),
            angular_velocity: usual_angular_velocity(),
            deadline: period / 2,
            max_late: usual_max_late(),
            axes,
            swings: Vec::new(),
        }
    }
}

/// Swing of one axis about its start: `amplitude * sin(2 pi frequency t - phase)`, from standstill
/// and growing over the first swing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sinusoid {
    /// Swing about the position 0.
    trajectory: SmoothSinusoid,
    /// Delay of its start after the others.
    delay: Seconds,
}

impl Sinusoid {
    /// A swing of `amplitude` rad, `frequency` Hz (0: none), that begins `phase` rad after the
    /// others.
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
