//! Errors of the controllers of a robot file.

use std::array::TryFromSliceError;

use motion::OnlineError;
use motion::kinematics::{BaseError, LineError};
use thiserror::Error;

/// Reason for which a controller of the robot file cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// Limits that no motion keeps.
    #[error(transparent)]
    Motion(#[from] OnlineError),
    /// Lines that the arm does not follow.
    #[error(transparent)]
    Line(#[from] LineError),
    /// Base with a measure that it cannot have.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// Base with another number of wheels than its kind has.
    #[error(transparent)]
    Wheels(#[from] TryFromSliceError),
    /// Controller process without an interface to come by.
    #[error(
        "expected an IPC for its process, found none: leave out --no-ipc and --time fast, or see \
         why no IPC is open"
    )]
    NoIpc,
    /// Robot without a base to drive.
    #[error("expected a [base], found none")]
    NoBase,
    /// Robot without an arm to move.
    #[error("expected an [arm], found none")]
    NoArm,
    /// Joint of the arm that no axis of the controller moves.
    #[error(
        "joint \"{joint}\" is between base and tool, and has no axis: expected an axis for it in \
         [arm.joints]"
    )]
    NoAxis {
        /// Name of the joint.
        joint: String,
    },
    /// Axis of the controller that moves no joint of the arm.
    #[error(
        "axis \"{axis}\" moves no joint between link \"{base}\" and link \"{tool}\": name its axes, without this one"
    )]
    OtherAxis {
        /// Name of the axis.
        axis: String,
        /// Link at the arm's base.
        base: String,
        /// Link at its tool.
        tool: String,
    },
}
