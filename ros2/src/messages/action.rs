//! action_msgs and unique_identifier_msgs, and the messages that are generated around goal, result
//! and feedback of an action.

use serde::{Deserialize, Serialize};

use super::basic::Time;

/// unique_identifier_msgs/UUID.
pub(crate) type GoalId = [u8; 16];

/// `ACTION_SendGoal_Request`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SendGoalRequest<G> {
    pub(crate) goal_id: GoalId,
    pub(crate) goal: G,
}

/// `ACTION_SendGoal_Response`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SendGoalResponse {
    pub(crate) accepted: bool,
    pub(crate) stamp: Time,
}

/// `ACTION_GetResult_Request`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GetResultRequest {
    pub(crate) goal_id: GoalId,
}

/// `ACTION_GetResult_Response`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct GetResultResponse<R> {
    /// [`Status`] as a byte.
    pub(crate) status: i8,
    pub(crate) result: R,
}

/// `ACTION_FeedbackMessage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FeedbackMessage<F> {
    pub(crate) goal_id: GoalId,
    pub(crate) feedback: F,
}

/// action_msgs/GoalInfo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GoalInfo {
    pub(crate) goal_id: GoalId,
    pub(crate) stamp: Time,
}

/// action_msgs/GoalStatus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GoalStatus {
    pub(crate) goal_info: GoalInfo,
    /// [`Status`] as a byte.
    pub(crate) status: i8,
}

/// action_msgs/GoalStatusArray.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GoalStatusArray {
    pub(crate) status_list: Vec<GoalStatus>,
}

/// Status of a goal, in the numbers of action_msgs/GoalStatus. 1, accepted, does not occur: a goal
/// is accepted when it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum Status {
    Unknown = 0,
    Executing = 2,
    Canceling = 3,
    Succeeded = 4,
    Canceled = 5,
    Aborted = 6,
}

impl Status {
    /// True if it will not change any more.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Canceled | Self::Aborted)
    }
}

/// action_msgs/CancelGoal, the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CancelGoalRequest {
    pub(crate) goal_info: GoalInfo,
}

/// action_msgs/CancelGoal, the response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CancelGoalResponse {
    /// [`CancelCode`] as a byte.
    pub(crate) return_code: i8,
    pub(crate) goals_canceling: Vec<GoalInfo>,
}

/// Result of a cancel request, in the numbers of action_msgs/CancelGoal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum CancelCode {
    None = 0,
    Rejected = 1,
    UnknownGoal = 2,
    GoalTerminated = 3,
}
