//! Controllers that a robot file can name.
//!
//! | module | contents |
//! |---|---|
//! | [`hold`] | every axis stays in place |
//! | [`sinusoid`] | axes that swing |
//! | [`joint`] | single axes by position, velocity or torque |
//! | [`cartesian`] | the tool of an arm along straight lines |
//! | [`base`] | bases that follow a twist, with odometry |
//! | [`trajectory`] | axes that follow trajectories through points |
//! | [`manager`] | several controllers, one of which is active; answers requests |
//! | [`port`] | messages to and from a manager |
//!
//! A controller moves its own axes and leaves the others alone.
#![forbid(unsafe_code)]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "`!(a <= b)` refuses NaN with the rest")]

mod axis;
pub mod base;
pub mod cartesian;
pub mod hold;
pub mod joint;
pub mod manager;
pub mod port;
mod queue;
pub mod sinusoid;
pub mod trajectory;

pub use axis::AxisSettings;
pub use base::BaseController;
pub use cartesian::Cartesian;
pub use hold::Hold;
pub use joint::{JointEffort, JointPosition, JointVelocity};
pub use manager::{ControllerManager, HomedBy, ManagedAxis, Member, MemberKind};
pub use port::Port;
pub use sinusoid::{Sinusoid, SwingSettings};
pub use trajectory::{JointTrajectory, TrajectorySettings};
