//! The controllers a robot file names.
//!
//! | module | what it holds |
//! |---|---|
//! | [`hold`] | every axis stays where it is |
//! | [`sinusoid`] | axes that swing |
//! | [`joint`] | axes that are told one by one where to go, how fast to turn, how hard to push |
//! | [`drive`] | bases that follow a twist, and tell where they are |
//! | [`trajectory`] | axes that follow trajectories through points |
//! | [`switch`] | several controllers, one of which has the axes; answers what people ask |
//! | [`port`] | where a switch gets messages from |
//!
//! A controller moves the axes it was given and leaves the others alone.
#![forbid(unsafe_code)]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "`!(a <= b)` refuses NaN with the rest")]

mod axis;
pub mod drive;
pub mod hold;
pub mod joint;
pub mod port;
mod queue;
pub mod sinusoid;
pub mod switch;
pub mod trajectory;

pub use axis::AxisSettings;
pub use drive::Drive;
pub use hold::Hold;
pub use joint::{JointEffort, JointPosition, JointVelocity};
pub use port::Port;
pub use sinusoid::{Sinusoid, SwingSettings};
pub use switch::{HomedBy, Member, Mover, Switch, SwitchAxis};
pub use trajectory::{JointTrajectory, TrajectorySettings};
