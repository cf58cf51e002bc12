//! Description of a running cycle, written once as JSON before the first cycle.

use serde::{Deserialize, Serialize};

use crate::state::words::Rows;

/// Description of a cycle and its robot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Version of the program that runs the cycle.
    pub version: String,
    /// Name of the robot.
    pub robot: String,
    /// Time between two releases.
    pub period_ns: u64,
    /// Longest time-to-live of a command; 0 where it is not known.
    #[serde(default)]
    pub longest_time_to_live_ns: u64,
    /// Axes, in the order of the robot file.
    pub axes: Vec<AxisDescription>,
    /// Controllers that can be switched to; the first one is active at the start.
    pub controllers: Vec<ControllerDescription>,
    /// Mobile base, if the robot has one.
    pub base: Option<BaseDescription>,
    /// The arm whose tool follows poses; none without such a controller.
    #[serde(default)]
    pub arm: Option<ArmDescription>,
    /// URDF of the arm, if the robot has one: the text of the file.
    pub urdf: Option<String>,
    /// Names of the SubDevices, in the order a frame passes them.
    pub sub_devices: Vec<String>,
    /// Process data by name: the named signals, then every other entry.
    #[serde(default)]
    pub signals: Vec<SignalDescription>,
    /// Signals that together are a measurement.
    #[serde(default)]
    pub sensors: Vec<SensorDescription>,
    /// Ports that can be opened.
    pub ports: Vec<PortDescription>,
}

/// Description of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisDescription {
    /// Unique name.
    pub name: String,
    /// `"csp"`, `"csv"` or `"cst"`.
    pub mode: String,
    /// Lowest and highest position, rad; none for a continuous axis.
    pub position_limits: Option<(f64, f64)>,
    /// Highest speed in either direction, rad/s.
    pub velocity_limit: f64,
    /// Highest torque in either direction at the axis, N m.
    pub effort_limit: f64,
}

/// Description of a signal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SignalDescription {
    /// Unique name.
    pub name: String,
    /// Name of its SubDevice.
    pub sub_device: String,
    /// `"input"` or `"output"`.
    pub direction: String,
    /// Type of its entry: `"bool"`, `"uint16"`, `"int12"`, `"float"`, `"double"`.
    #[serde(rename = "type")]
    pub value_type: String,
    /// Kind of its value in a state: `"bool"`, `"unsigned"`, `"signed"` or `"real"`.
    pub kind: String,
    /// Unit, empty for none.
    pub unit: String,
    /// Lowest and highest value.
    pub range: Option<(f64, f64)>,
    /// Scale and offset that make its value of the entry's number; none for the number itself.
    #[serde(default)]
    pub scaling: Option<(f64, f64)>,
    /// Writer of an output: [`OUTSIDE`], `"controller"`, or a part of the robot, as `axis "spindle"`.
    pub writer: Option<String>,
    /// True if the robot file gives it its name.
    #[serde(default)]
    pub named: bool,
}

/// Description of signals that together are a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SensorDescription {
    /// Unique name.
    pub name: String,
    /// `"force_torque"`, `"imu"` or `"temperature"`.
    pub kind: String,
    /// Frame its values are in.
    pub frame: String,
    /// Indices of its signals: force and torque; acceleration, angular velocity and perhaps orientation; temperature.
    pub signals: Vec<usize>,
}

/// Writer of the outputs that whoever holds the lease commands.
pub const OUTSIDE: &str = "outside";

impl Description {
    /// Places of the outputs that are set from outside, in the order of [`crate::command::Command::signals`].
    pub fn commanded(&self) -> impl Iterator<Item = usize> + '_ {
        let outside = |it: &SignalDescription| it.writer.as_deref() == Some(OUTSIDE);
        let places = self.signals.iter().enumerate();
        places.filter(move |(_, it)| outside(it)).map(|(place, _)| place)
    }

    /// Rows of a command.
    pub(crate) fn commanded_rows(&self) -> Rows {
        Rows { axes: self.axes.len(), signals: self.commanded().count() }
    }
}

/// Description of a controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControllerDescription {
    /// Unique name.
    pub name: String,
    /// Kind as in the robot file: `"joint_trajectory"`, `"diff_drive"`, ...
    pub kind: String,
    /// Indices of the axes it moves.
    pub axes: Vec<usize>,
}

/// Description of a mobile base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaseDescription {
    /// `"differential"`, `"mecanum"` or `"omni"`.
    pub kind: String,
    /// Highest speed, m/s.
    pub velocity_limit: f64,
    /// Highest yaw rate, rad/s.
    pub yaw_limit: f64,
    /// Name of the fixed frame of odometry.
    pub odometry_frame: String,
    /// Name of the frame of the base.
    pub base_frame: String,
}

/// Description of an arm whose tool follows poses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmDescription {
    /// Link of the URDF in whose frame poses are.
    pub base: String,
    /// Link of the URDF that is brought to a pose.
    pub tool: String,
}

/// Description of a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortDescription {
    /// Unique name.
    pub name: String,
    /// `"message"` or `"stream"`.
    pub kind: String,
    /// Longest message, or size of the stream's buffer, bytes.
    pub size: usize,
    /// Messages the buffer holds in each direction; 0 for a stream.
    pub depth: usize,
}
