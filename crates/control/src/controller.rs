//! The controller of the axes and outputs: called once a cycle with their reports, answers with
//! commands for them, in SI units.

mod io;

use std::time::Duration;

use ethercat::cia402::{AxisMode, CyclicMode, ModeOfOperation, Request, State, Statusword};
use ethercat::time::Instant;
use ipc::state::Clamped;
use motion::base::{Pose, Twist};
use motion::supervision::{QuickStopStep, StopReason};
use motion::{AxisFeedback, AxisSetpoint, Radians};
use types::state::InputLevel;

pub use types::{AxisTarget, ExternalCommand, Freshness};

use crate::signal::{SignalError, Signals};

pub use io::Io;

/// Decides where the axes go.
///
/// `update` runs on the real-time path: it neither allocates, locks, waits nor logs.
pub trait Controller: Send {
    /// Finds the signals it works with, by name and type; called once, before the first cycle.
    ///
    /// # Errors
    /// A signal that is not there, or not of that type: the cycle does not start.
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        let _ = signals;
        Ok(())
    }

    /// One cycle: reads and sets signals, and moves the axes. The commands of the axes start as in
    /// the previous cycle; at the start every axis is commanded to stay disabled.
    ///
    /// While an axis reports [`motion::AxisPhase::HoldingAt`] its set-points start from that
    /// position. Once [`CycleInfo::stopping`] is set the controller brings its set-points to
    /// standstill by its own profile; after a time at standstill the drives are disabled.
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let _ = (info, io);
    }

    /// Command from outside, once a cycle before `update`; a controller that needs none ignores it.
    fn command(&mut self, command: &ExternalCommand) {
        let _ = command;
    }

    /// Report in addition to its set-points, once a cycle after `update`.
    fn output(&self) -> ControllerOutput {
        ControllerOutput::default()
    }
}

impl<T: Controller + ?Sized> Controller for Box<T> {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        (**self).init(signals)
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        (**self).update(info, io);
    }

    fn command(&mut self, command: &ExternalCommand) {
        (**self).command(command);
    }

    fn output(&self) -> ControllerOutput {
        (**self).output()
    }
}

/// Report of a controller to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ControllerOutput {
    /// The active controller, and the trajectory it follows.
    pub control: ipc::state::Control,
    /// Pose of the base, by its odometry.
    pub pose: Pose,
    /// Its velocity.
    pub twist: Twist,
    /// It lives on the command from outside: when that goes stale, the axes stop as the robot file
    /// says.
    pub commanded: bool,
    /// Reason for a target of the command that it refuses, in the cycle in which it does.
    pub refused: Option<ipc::state::Refusal>,
    /// A target, of the command or its own, is beyond a limit, and clamped.
    pub clamped: Option<Clamped>,
    /// The controller process no longer responds: outputs get the values of the robot file, as
    /// under a stale command.
    pub lost: bool,
    /// A request brings all axes to rest: a jog ends, too.
    pub rests: bool,
    /// That process did not disable its axes before, or has none: the axes stop, too.
    pub left_in_use: bool,
    /// Request of a client that was accepted or refused in this cycle, to be reported.
    pub request: Option<ClientRequest>,
}

/// Request of a client, with the decision on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRequest {
    /// The request.
    pub what: ipc::message::control::Action,
    /// The client, where it is known.
    pub by: Option<ipc::force::Client>,
    /// Reason of a refusal.
    pub refused: Option<ipc::message::control::Refusal>,
    /// Interlock that does not permit it.
    pub interlock: Option<InterlockCause>,
}

/// The cycle a controller is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleInfo {
    /// Number of the cycle: its place on the grid, with gaps where releases were skipped.
    pub cycle: u64,
    /// The ideal instant of the cycle.
    pub release: Instant,
    /// Time of the bus, by which set-points move: the release. If the SubDevices are in this
    /// process, it is one period after the last cycle's, whatever time the host took.
    pub bus_time: Instant,
    /// Time between two releases.
    pub period: Duration,
    /// Periods since the last cycle: 1, or more after an overrun.
    pub periods: u64,
    /// The axes are to stop.
    pub stopping: bool,
}

/// Report of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AxisReport {
    /// State of its drive; `None` before the first statusword, or if that shows none.
    pub state: Option<State>,
    /// Its position and motion. The velocity is the drive's own, or else made from the positions;
    /// the torque is 0 where the drive does not map it.
    pub feedback: AxisFeedback,
    /// Its drive maps its torque (0x6077).
    pub measures_torque: bool,
    /// It knows its absolute position.
    pub homed: bool,
    /// Number of times in this run that its place was taken as its home ([`AxisCommand::home`]).
    pub homed_by_hand: u32,
    /// Its drive is looking for its home: it has the axis, set-points are ignored, and the phase is
    /// [`motion::AxisPhase::HoldingAt`] wherever the axis is.
    pub homing: bool,
    /// Reason that supervision stopped it or holds it back. While it is stopped, its phase is
    /// [`motion::AxisPhase::HoldingAt`] and its set-points are ignored.
    pub stop: Option<StopReason>,
    /// Place of the axis that it was stopped with ([`StopReason::OtherAxis`]).
    pub stopped_with: Option<usize>,
    /// Consecutive cycles in which it was stopped though it exchanged process data.
    pub held: u32,
    /// Step that stopped it because its drive did not carry out a quick stop, until it is its
    /// controller's again.
    pub quick_stop: Option<QuickStopStep>,
    /// Distance beyond a position limit at which it stopped, in a torque mode, until it is back.
    pub overshoot: Option<Radians>,
    /// Interlock that stopped it, or keeps it from being enabled ([`StopReason::Interlock`],
    /// [`StopReason::NotPermitted`]).
    pub interlock: Option<InterlockCause>,
    /// Input that shows the fault of its brake ([`StopReason::BrakeNotOpen`],
    /// [`StopReason::BrakeNotClosed`]).
    pub brake: Option<BrakeInputCause>,
    /// Cycles for which the host stalled, where an outage stopped it because of that
    /// ([`StopReason::Outage`], and [`StopReason::Fault`] if its drive is in fault since); 0 for
    /// another cause.
    pub stalled: u32,
    /// The last command ended with all axes at standstill, as at the end of a jog: then a stop for
    /// [`StopReason::Stale`] is no failure.
    pub ended: bool,
    /// Positions at the end of the last run and at the start of this one, where their difference is
    /// the reason of its stop ([`StopReason::UnreferencedMoved`]).
    pub moved: Option<[Radians; 2]>,
    /// System error that keeps its position memory from being written, while that holds its drive
    /// back from being enabled; 0 for none.
    pub memory_error: u8,
    /// Statusword 0x6041 as it came in last.
    pub statusword: Statusword,
    /// Mode of operation in effect (0x6061), or requested if its drive does not map that; `None`
    /// before its first inputs.
    pub mode: Option<ModeOfOperation>,
    /// Error code 0x603F of a drive in fault, from its process data, its object, or its emergency
    /// message; 0 for none known.
    pub error_code: u16,
    /// Consecutive cycles of an outage up to this one; 0 without an outage.
    pub missed: u32,
    /// Consecutive cycles, in Op, in which its controller has requested to enable it and its drive
    /// was not enabled.
    pub waits: u32,
    /// Its drive was enabled before.
    pub was_enabled: bool,
    /// Position as the drive counts it, and counts in a radian of the axis; `None` before its first
    /// inputs.
    pub counts: Option<(i32, f64)>,
    /// Its drive is not on the bus, and need not be: the axis stays stopped until the drive has
    /// joined and a client requests the axis.
    pub absent: bool,
    /// Set-point that its controller has given it for some time instead of the one its mode takes:
    /// it does not move.
    pub ignored: Option<IgnoredSetpoint>,
}

/// Interlock that stopped an axis, or keeps it from being enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterlockCause {
    /// Place among the interlocks, from 0.
    pub interlock: usize,
    /// Level of its input while it did not permit.
    pub level: InputLevel,
    /// True if it permits again; a stop stays until a reset.
    pub permits: bool,
}

/// Input of the feedback of a brake that contradicts the command to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrakeInputCause {
    /// Place among the inputs of all brakes, from 0: in the order of the axes, `released` before
    /// `closed`.
    pub place: usize,
    /// Level of it when that was found.
    pub level: InputLevel,
}

/// Set-point that an axis is given and its mode does not take, where it is given no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredSetpoint {
    /// Mode of the axis.
    pub mode: AxisMode,
    /// Mode of the given set-point.
    pub given: CyclicMode,
}

impl AxisReport {
    /// Position of the axis at the drive's count `counts`, for example one that a touch probe has
    /// stored ([`TouchProbe`]); `None` if its counts are not known.
    ///
    /// [`TouchProbe`]: ethercat::cia402::TouchProbe
    #[must_use]
    pub fn position_at(&self, counts: i32) -> Option<Radians> {
        let (here, per_radian) = self.counts?;
        // Of two ways round the 32 bits, the shorter one.
        let away = f64::from(counts.wrapping_sub(here)) / per_radian;
        Some(self.feedback.position + Radians(away))
    }
}

/// Command for an axis.
///
/// In profile position mode its position is a destination, clamped to the limits, and the drive
/// generates the profile; the first one after [`motion::AxisPhase::HoldingAt`] is the position it
/// is held at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AxisCommand {
    /// Request to its drive. [`Request::FaultReset`] also acknowledges a stop of supervision; a
    /// drive that is enabled stays so.
    pub request: Request,
    /// Its target: only the number of its mode counts, and one that is not finite changes nothing.
    /// If only the others command a motion, [`AxisReport::ignored`] and an event report it.
    pub setpoint: AxisSetpoint,
    /// Sets the current position as home, see [`motion::homing`]. Taken once, and only while its
    /// set-points are constant or its drive is not enabled. Its position jumps, and
    /// [`AxisReport::homed`] shows it; enabled, it reports [`motion::AxisPhase::HoldingAt`] for a
    /// cycle. If the drive homes the axis, homing begins if it is enabled and may be moved:
    /// [`AxisReport::homing`] shows it, and any request but [`Request::Enable`] ends it.
    ///
    /// An axis with position limits that is homed already ignores a homing that takes its actual
    /// position (by hand, or methods 35 and 37 of its drive): its limits would move with it. One
    /// without [`Homing`] ignores every homing.
    ///
    /// [`Homing`]: motion::homing::Homing
    pub home: bool,
    /// With `home`: the operator requests it, of an axis that is homed already as well. The
    /// controllers crate sets it for `onbeat control home` only; a controller process cannot set
    /// it.
    pub home_again: bool,
    /// Another mode, from this cycle on: the set-point is already one of that mode, and a position
    /// is within a step of the actual one. Taken once, if its drive maps 0x6060, 0x6061 and the
    /// target of that mode. Cyclic modes are also taken while the axis moves and supervision has
    /// not stopped it, other modes only at standstill. Profile modes must be in
    /// [`AxisConfiguration::modes`](crate::axis::AxisConfiguration::modes). [`AxisReport::mode`]
    /// shows it. A drive that does not show it within 0.1 s is commanded back to the previous mode.
    pub mode: Option<AxisMode>,
    /// Kind of a set-point that another process has given it instead of the one its mode takes, and
    /// that did not come with it.
    pub ignored: Option<CyclicMode>,
}
