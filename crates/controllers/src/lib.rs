//! Controllers that a robot file can name.
//!
//! A controller gets reports of its axes and returns commands, in each cycle. It needs no bus, so
//! it can be tested alone:
//!
//! ```
//! use std::time::Duration;
//!
//! use control::controller::{AxisCommand, AxisReport, Controller, CycleInfo, Io}; // onbeat-control
//! use control::signal::Signals;
//! use ethercat::cia402::Request; // onbeat-ethercat
//! use ethercat::time::Instant;
//! use motion::{AxisPhase, Radians}; // onbeat-motion
//! use onbeat_controllers::Hold;
//!
//! let mut report = AxisReport::default();
//! report.feedback.phase = AxisPhase::HoldingAt(Radians(0.5));
//! let mut commands = [AxisCommand::default()];
//! let cycle = CycleInfo {
//!     cycle: 0,
//!     release: Instant::EPOCH,
//!     bus_time: Instant::EPOCH,
//!     period: Duration::from_millis(1),
//!     periods: 1,
//!     stopping: false,
//! };
//! Hold.update(cycle, &mut Io::new(&mut Signals::default(), &[report], &mut commands));
//!
//! assert_eq!(commands[0].request, Request::Enable);
//! assert_eq!(commands[0].setpoint.position, Radians(0.5)); // the axis stays in place
//! ```
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
