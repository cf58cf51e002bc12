//! geometry_msgs, nav_msgs and tf2_msgs.

use serde::{Deserialize, Serialize};

use super::basic::Header;

/// geometry_msgs/Vector3, and Point, which has the same fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Vector3 {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) z: f64,
}

/// geometry_msgs/Quaternion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quaternion {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) z: f64,
    pub(crate) w: f64,
}

impl Quaternion {
    /// Rotation about z, rad counter-clockwise.
    pub(crate) fn from_yaw(yaw: f64) -> Self {
        Self { x: 0.0, y: 0.0, z: (yaw / 2.0).sin(), w: (yaw / 2.0).cos() }
    }
}

impl Default for Quaternion {
    fn default() -> Self {
        Self { x: 0.0, y: 0.0, z: 0.0, w: 1.0 }
    }
}

/// geometry_msgs/Twist: m/s and rad/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Twist {
    pub(crate) linear: Vector3,
    pub(crate) angular: Vector3,
}

/// geometry_msgs/TwistStamped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TwistStamped {
    pub(crate) header: Header,
    pub(crate) twist: Twist,
}

/// geometry_msgs/Wrench: N and N m.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wrench {
    pub(crate) force: Vector3,
    pub(crate) torque: Vector3,
}

/// geometry_msgs/WrenchStamped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WrenchStamped {
    pub(crate) header: Header,
    pub(crate) wrench: Wrench,
}

/// geometry_msgs/Pose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pose {
    pub(crate) position: Vector3,
    pub(crate) orientation: Quaternion,
}

/// geometry_msgs/PoseStamped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PoseStamped {
    pub(crate) header: Header,
    pub(crate) pose: Pose,
}

/// A covariance of six by six, row by row.
pub(crate) type Covariance = [[f64; 6]; 6];

/// geometry_msgs/PoseWithCovariance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PoseWithCovariance {
    pub(crate) pose: Pose,
    pub(crate) covariance: Covariance,
}

/// geometry_msgs/TwistWithCovariance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TwistWithCovariance {
    pub(crate) twist: Twist,
    pub(crate) covariance: Covariance,
}

/// nav_msgs/Odometry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Odometry {
    pub(crate) header: Header,
    pub(crate) child_frame_id: String,
    pub(crate) pose: PoseWithCovariance,
    pub(crate) twist: TwistWithCovariance,
}

/// geometry_msgs/Transform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transform {
    pub(crate) translation: Vector3,
    pub(crate) rotation: Quaternion,
}

/// geometry_msgs/TransformStamped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TransformStamped {
    pub(crate) header: Header,
    pub(crate) child_frame_id: String,
    pub(crate) transform: Transform,
}

/// tf2_msgs/TFMessage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TfMessage {
    pub(crate) transforms: Vec<TransformStamped>,
}
