//! trajectory_msgs, and of control_msgs the interfaces of joint_trajectory_controller.

use serde::{Deserialize, Serialize};

use super::basic::{Duration, Header, Time};
use super::geometry::{Transform, Twist};

/// trajectory_msgs/JointTrajectory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JointTrajectory {
    pub(crate) header: Header,
    pub(crate) joint_names: Vec<String>,
    pub(crate) points: Vec<JointTrajectoryPoint>,
}

/// trajectory_msgs/JointTrajectoryPoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JointTrajectoryPoint {
    pub(crate) positions: Vec<f64>,
    pub(crate) velocities: Vec<f64>,
    pub(crate) accelerations: Vec<f64>,
    pub(crate) effort: Vec<f64>,
    pub(crate) time_from_start: Duration,
}

/// trajectory_msgs/MultiDOFJointTrajectory: read, and refused unless it is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MultiDofJointTrajectory {
    pub(crate) header: Header,
    pub(crate) joint_names: Vec<String>,
    pub(crate) points: Vec<MultiDofJointTrajectoryPoint>,
}

/// trajectory_msgs/MultiDOFJointTrajectoryPoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MultiDofJointTrajectoryPoint {
    pub(crate) transforms: Vec<Transform>,
    pub(crate) velocities: Vec<Twist>,
    pub(crate) accelerations: Vec<Twist>,
    pub(crate) time_from_start: Duration,
}

/// control_msgs/JointTolerance: 0 for the robot's own, negative for none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JointTolerance {
    pub(crate) name: String,
    pub(crate) position: f64,
    pub(crate) velocity: f64,
    pub(crate) acceleration: f64,
}

/// control_msgs/JointComponentTolerance: for joints of many degrees of freedom, which no robot here
/// has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JointComponentTolerance {
    pub(crate) joint_name: String,
    pub(crate) component: u16,
    pub(crate) position: f64,
    pub(crate) velocity: f64,
    pub(crate) acceleration: f64,
}

/// control_msgs/FollowJointTrajectory, the goal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FollowGoal {
    pub(crate) trajectory: JointTrajectory,
    pub(crate) multi_dof_trajectory: MultiDofJointTrajectory,
    pub(crate) path_tolerance: Vec<JointTolerance>,
    pub(crate) component_path_tolerance: Vec<JointComponentTolerance>,
    pub(crate) goal_tolerance: Vec<JointTolerance>,
    pub(crate) component_goal_tolerance: Vec<JointComponentTolerance>,
    pub(crate) goal_time_tolerance: Duration,
}

/// control_msgs/FollowJointTrajectory, the result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FollowResult {
    /// One of [`error_code`].
    pub(crate) error_code: i32,
    pub(crate) error_string: String,
}

/// Error codes of a result; codes of failures during execution come from the cycle.
pub(crate) mod error_code {
    pub(crate) const SUCCESSFUL: i32 = 0;
    pub(crate) const INVALID_GOAL: i32 = -1;
    pub(crate) const INVALID_JOINTS: i32 = -2;
    pub(crate) const OLD_HEADER_TIMESTAMP: i32 = -3;
}

/// control_msgs/FollowJointTrajectory, the feedback.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FollowFeedback {
    pub(crate) header: Header,
    pub(crate) joint_names: Vec<String>,
    pub(crate) desired: JointTrajectoryPoint,
    pub(crate) actual: JointTrajectoryPoint,
    pub(crate) error: JointTrajectoryPoint,
    pub(crate) multi_dof_joint_names: Vec<String>,
    pub(crate) multi_dof_desired: MultiDofJointTrajectoryPoint,
    pub(crate) multi_dof_actual: MultiDofJointTrajectoryPoint,
    pub(crate) multi_dof_error: MultiDofJointTrajectoryPoint,
}

/// control_msgs/JointTrajectoryControllerState.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct JointTrajectoryControllerState {
    pub(crate) header: Header,
    pub(crate) joint_names: Vec<String>,
    pub(crate) reference: JointTrajectoryPoint,
    pub(crate) feedback: JointTrajectoryPoint,
    pub(crate) error: JointTrajectoryPoint,
    pub(crate) output: JointTrajectoryPoint,
    pub(crate) multi_dof_joint_names: Vec<String>,
    pub(crate) multi_dof_reference: MultiDofJointTrajectoryPoint,
    pub(crate) multi_dof_feedback: MultiDofJointTrajectoryPoint,
    pub(crate) multi_dof_error: MultiDofJointTrajectoryPoint,
    pub(crate) multi_dof_output: MultiDofJointTrajectoryPoint,
    pub(crate) speed_scaling_factor: f64,
}

/// control_msgs/QueryTrajectoryState, the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueryTrajectoryStateRequest {
    pub(crate) time: Time,
}

/// control_msgs/QueryTrajectoryState, the response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct QueryTrajectoryStateResponse {
    pub(crate) success: bool,
    pub(crate) message: String,
    pub(crate) name: Vec<String>,
    pub(crate) position: Vec<f64>,
    pub(crate) velocity: Vec<f64>,
    pub(crate) acceleration: Vec<f64>,
}
