//! lifecycle_msgs.

use serde::{Deserialize, Serialize};

/// lifecycle_msgs/State, and Transition, which has the same fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) id: u8,
    pub(crate) label: String,
}

impl State {
    pub(crate) fn new(id: u8, label: &str) -> Self {
        Self { id, label: label.to_owned() }
    }
}

/// lifecycle_msgs/TransitionDescription.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TransitionDescription {
    pub(crate) transition: State,
    pub(crate) start_state: State,
    pub(crate) goal_state: State,
}

/// lifecycle_msgs/TransitionEvent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TransitionEvent {
    /// Nanoseconds since 1970.
    pub(crate) timestamp: u64,
    pub(crate) transition: State,
    pub(crate) start_state: State,
    pub(crate) goal_state: State,
}

/// lifecycle_msgs/ChangeState, the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeStateRequest {
    pub(crate) transition: State,
}

/// lifecycle_msgs/ChangeState, the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeStateResponse {
    pub(crate) success: bool,
}
