//! What a running cycle is. Written once as JSON, before the first beat.

use serde::{Deserialize, Serialize};

/// A cycle and its robot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Version of the program that runs it.
    pub version: String,
    /// Name of the robot.
    pub robot: String,
    /// Time between two releases.
    pub period_ns: u64,
    /// The axes, in the order of the robot file.
    pub axes: Vec<AxisDescription>,
    /// Controllers that can be switched to; the first one is active at the start.
    pub controllers: Vec<ControllerDescription>,
    /// What drives it about, if it moves about.
    pub base: Option<BaseDescription>,
    /// URDF of its arm, if it has one: the text of the file.
    pub urdf: Option<String>,
    /// Names of the SubDevices, in the order a frame passes them.
    pub sub_devices: Vec<String>,
    /// Ports that can be opened.
    pub ports: Vec<PortDescription>,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisDescription {
    /// Its name; unique.
    pub name: String,
    /// `"csp"`, `"csv"` or `"cst"`.
    pub mode: String,
    /// Lowest and highest position, rad; none for an axis that turns for ever.
    pub position_limits: Option<(f64, f64)>,
    /// Highest speed either way, rad/s.
    pub velocity_limit: f64,
    /// Highest torque either way at the axis, N m.
    pub effort_limit: f64,
}

/// One controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControllerDescription {
    /// Its name; unique.
    pub name: String,
    /// `"joint_trajectory"`, `"diff_drive"`, ... as in the robot file.
    pub kind: String,
    /// Indices of the axes it moves.
    pub axes: Vec<usize>,
}

/// A base that moves about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaseDescription {
    /// `"differential"`, `"mecanum"` or `"omni"`.
    pub kind: String,
    /// Highest speed, m/s.
    pub velocity_limit: f64,
    /// Highest yaw rate, rad/s.
    pub yaw_limit: f64,
    /// Name of the frame odometry counts in.
    pub odometry_frame: String,
    /// Name of the frame that moves.
    pub base_frame: String,
}

/// One port of a datagram channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortDescription {
    /// Its name; unique.
    pub name: String,
    /// `"message"` or `"stream"`.
    pub kind: String,
    /// Longest message, or bytes that find room in the stream.
    pub size: usize,
    /// Messages that find room each way; 0 for a stream.
    pub depth: usize,
}
