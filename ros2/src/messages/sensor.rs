//! sensor_msgs, diagnostic_msgs, and the signals of control_msgs.

use serde::{Deserialize, Serialize};

use super::basic::Header;
use super::geometry::{Quaternion, Vector3};

/// sensor_msgs/JointState: rad, rad/s, N m (m, m/s, N for a linear axis).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JointState {
    pub(crate) header: Header,
    pub(crate) name: Vec<String>,
    pub(crate) position: Vec<f64>,
    pub(crate) velocity: Vec<f64>,
    pub(crate) effort: Vec<f64>,
}

/// sensor_msgs/Imu. A covariance with -1 as its first number belongs to a value that is not
/// measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Imu {
    pub(crate) header: Header,
    pub(crate) orientation: Quaternion,
    pub(crate) orientation_covariance: [f64; 9],
    pub(crate) angular_velocity: Vector3,
    pub(crate) angular_velocity_covariance: [f64; 9],
    pub(crate) linear_acceleration: Vector3,
    pub(crate) linear_acceleration_covariance: [f64; 9],
}

/// sensor_msgs/Temperature: degrees Celsius; a variance of 0 is not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Temperature {
    pub(crate) header: Header,
    pub(crate) temperature: f64,
    pub(crate) variance: f64,
}

/// control_msgs/DynamicInterfaceGroupValues.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DynamicInterfaceGroupValues {
    pub(crate) header: Header,
    pub(crate) interface_groups: Vec<String>,
    /// Values of each group.
    pub(crate) interface_values: Vec<InterfaceValue>,
}

/// control_msgs/DynamicJointState.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DynamicJointState {
    pub(crate) header: Header,
    pub(crate) joint_names: Vec<String>,
    /// Values of each joint.
    pub(crate) interface_values: Vec<InterfaceValue>,
}

/// control_msgs/InterfaceValue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct InterfaceValue {
    pub(crate) interface_names: Vec<String>,
    pub(crate) values: Vec<f64>,
}

/// sensor_msgs/LaserScan: rad, s, m.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LaserScan {
    pub(crate) header: Header,
    pub(crate) angle_min: f32,
    pub(crate) angle_max: f32,
    pub(crate) angle_increment: f32,
    pub(crate) time_increment: f32,
    pub(crate) scan_time: f32,
    pub(crate) range_min: f32,
    pub(crate) range_max: f32,
    pub(crate) ranges: Vec<f32>,
    pub(crate) intensities: Vec<f32>,
}

/// diagnostic_msgs/DiagnosticArray.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DiagnosticArray {
    pub(crate) header: Header,
    pub(crate) status: Vec<DiagnosticStatus>,
}

/// diagnostic_msgs/DiagnosticStatus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DiagnosticStatus {
    /// [`Level`] as a byte.
    pub(crate) level: u8,
    pub(crate) name: String,
    pub(crate) message: String,
    pub(crate) hardware_id: String,
    pub(crate) values: Vec<KeyValue>,
}

/// Severity, in the numbers of diagnostic_msgs/DiagnosticStatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Level {
    Ok = 0,
    Warn = 1,
    Error = 2,
    Stale = 3,
}

/// diagnostic_msgs/KeyValue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyValue {
    pub(crate) key: String,
    pub(crate) value: String,
}
