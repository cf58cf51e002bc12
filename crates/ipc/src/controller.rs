//! A controller in a separate process.
//!
//! In each cycle the cycle publishes a [`Request`] with the inputs of that cycle and wakes the
//! process, which answers with set-points and outputs ([`Answer`]). The cycle waits for the answer
//! until its deadline, and no longer.
//!
//! One process at a time holds this role, by its connection to the [`crate::service`], as with the
//! command lease. Each holder gets two separate regions: one that only the cycle writes, and one
//! that the holder writes. Either side sleeps on the number of the newest publication (futex(2));
//! nothing polls.
//!
//! ```no_run
//! use onbeat_ipc::command::AxisTarget;
//! use onbeat_ipc::units::Radians;
//! use onbeat_ipc::controller::DriveRequest;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ipc = onbeat_ipc::client::Client::find()?;
//! let mut controller = ipc.controller()?;
//! while let Some(turn) = controller.wait() {
//!     for (axis, answer) in turn.request.axes.iter().zip(&mut turn.answer.axes) {
//!         answer.request = Some(DriveRequest::Enable);
//!         answer.target = Some(AxisTarget::Position(Radians(axis.target_position)));
//!     }
//!     turn.send();
//! }
//! # Ok(())
//! # }
//! ```

mod client;
mod counters;
mod ends;
pub(crate) mod words;

use crate::command::AxisTarget;
use crate::state::{Axis, Base, Clamped, Refusal, Signal};
use types::{CyclicMode, codes};

pub use client::{Controller, Turn, Waited};
pub use counters::{ControllerCounters, Counters};
pub(crate) use ends::Role;
pub use ends::{CycleEnd, Received};
pub use types::ExternalCommand;
pub use types::state::DriveRequest;

/// Version of requests, answers and their order. A process of another version is refused.
pub const VERSION: u16 = 6;

/// Inputs of a cycle for the controller process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Number of the cycle; gaps are skipped releases, or cycles with a request that was not taken.
    pub cycle: u64,
    /// Scheduled release, CLOCK_MONOTONIC.
    pub release_ns: u64,
    /// Deadline of the answer, CLOCK_MONOTONIC.
    pub deadline_ns: u64,
    /// Time between two releases.
    pub period_ns: u64,
    /// Periods since the cycle before: 1, or more after an overrun.
    pub periods: u64,
    /// True once the axes are to stop: the cycle ends.
    pub stopping: bool,
    /// Axes, in the order of the description. While an axis is enabled and holding (phase 1)
    /// set-points begin at its target position; otherwise targets are the targets of the previous
    /// cycle.
    pub axes: Vec<Axis>,
    /// Signals, in the order of the description.
    pub signals: Vec<Signal>,
    /// Command from outside.
    pub command: ExternalCommand,
}

/// Answer to the request of a cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Number of the cycle.
    pub cycle: u64,
    /// The controller lives on the command from outside: when that goes stale, the axes stop as the
    /// robot file says.
    pub commanded: bool,
    /// Reason for a target of the command that it refuses, in the cycle in which it does.
    pub refused: Option<Refusal>,
    /// Target of the command that it follows and that is beyond a limit, and clamped.
    pub clamped: Option<Clamped>,
    /// Base by its odometry, shown in the state; all zero without one.
    pub base: Base,
    /// Axes, in the order of the description.
    pub axes: Vec<AxisAnswer>,
    /// Values of outputs, in the order of the signals of the description: 0 or 1, an integer, or
    /// the bits of a double, as its kind says. An output keeps its value until it gets another one.
    pub outputs: Vec<Option<u64>>,
}

/// Answer for an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AxisAnswer {
    /// Request to its drive; `None` leaves the one before.
    pub request: Option<DriveRequest>,
    /// Homes the axis; taken once.
    pub home: bool,
    /// Set-point of the kind that its mode follows; `None` leaves the one before.
    pub target: Option<AxisTarget>,
    /// Set-point of another kind that the controller gives instead: it does not move the axis, and
    /// an event reports it.
    pub ignored: Option<CyclicMode>,
}

codes! {
    /// Reason for an answer that is refused.
    Wrong: u8 {
        /// The region holds no whole answer.
        Torn = 1, "the region holds no whole answer";
        /// It is for a cycle without a request, or for one that was answered before.
        Cycle = 2, "it is for a cycle without a request, or with an answer already";
        /// The number of axes or signals is not the robot's.
        Rows = 3, "another number of axes or signals than the robot has";
        /// A code is unknown.
        Code = 4, "an unknown code";
        /// A number is NaN or infinite.
        NotFinite = 5, "a number is NaN or infinite";
        /// A set-point is of a kind that the axis's mode does not follow, or for an axis that the
        /// controller does not move.
        Axis = 6, "a set-point that the axis's mode does not follow, or for an axis of another controller";
        /// A value is for an input, or for an output that a part of the robot writes.
        Output = 7, "a value for an input, or for an output that a part of the robot writes";
    }
}
