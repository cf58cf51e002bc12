//! State of the running cycle, published at the end of every cycle.

pub(crate) mod region;

use types::codes;

pub use region::{AXIS, ReadError, Reader, Rows, Writer, decode, decode_axes, encode};
pub use types::state::{BringUpPhase, DrivePhase, DriveState, InputLevel, QuickStopStep, StopReason};
pub use types::{AxisMode, CyclicMode, Freshness, LockState, Spread, Value, ValueKind};

/// State at the end of one cycle. A missing value is never NaN: flags such as `fresh`, codes of 0,
/// and counters tell which values are valid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Number of the cycle.
    pub cycle: u64,
    /// Scheduled release, CLOCK_MONOTONIC.
    pub release_ns: u64,
    /// State of the bus.
    pub bus: Bus,
    /// Reference clock of the bus, and the cycle against it.
    pub clock: Clock,
    /// Timing since the first cycle in Op.
    pub timing: Timing,
    /// Outcome of commands.
    pub command: CommandState,
    /// Active controller and its trajectory.
    pub control: Control,
    /// Mobile base; all zero if the robot has none.
    pub base: Base,
    /// Axes, in the order of the description.
    pub axes: Vec<Axis>,
    /// Signals, in the order of the description.
    pub signals: Vec<Signal>,
    /// Values set to outputs that could not be.
    pub signal_counters: SignalCounters,
    /// Interlocks, in the order of the description.
    pub interlocks: Vec<Interlock>,
}

/// State of an interlock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interlock {
    /// Level of its input, a code of [`InputLevel`].
    pub level: u8,
    /// True if it permits.
    pub permits: bool,
}

/// Values set to outputs since the start that could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalCounters {
    /// Beyond the range: the nearest value within it was taken.
    pub clamped: u64,
    /// Not finite, of another kind, or of an output the controller does not set: the value before
    /// stayed.
    pub refused: u64,
}

/// State of the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bus {
    /// Bring-up phase, a code of [`BringUpPhase`].
    pub phase: u8,
    /// True if all inputs are of this cycle, absent SubDevices excepted.
    pub all_fresh: bool,
    /// Datagrams of this cycle with an unexpected working counter.
    pub working_counter_errors: u16,
    /// SubDevices that are not on the bus, and need not be.
    pub absent: u16,
    /// Frames sent since the start.
    pub frames_sent: u64,
    /// Frames that returned in time and were accepted.
    pub frames_accepted: u64,
    /// Frames that did not return in time.
    pub frames_lost: u64,
    /// Frames that returned too late, twice, truncated or changed, or were not ours.
    pub frames_rejected: u64,
    /// Cycles with a wrong working counter since Op.
    pub broken_cycles: u64,
    /// Largest difference of a SubDevice's clock from the reference clock.
    pub clock_difference_ns: u64,
    /// Frames the operating system failed to send or receive.
    pub link_errors: u64,
}

/// Reference clock of the bus, and the cycle against it; all zero on a bus without distributed
/// clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Lock of the cycle to the reference clock, a code of [`LockState`]: 0 where the cycle follows
    /// its own clock.
    pub lock: u8,
    /// True if a frame of this cycle had the reference clock's time; else the two after it are of
    /// an earlier one.
    pub fresh: bool,
    /// The reference clock's time less this host's, both since 2000-01-01, when that frame was
    /// sent.
    pub difference_ns: i64,
    /// Time from the last multiple of the period in the reference clock's time, at which SYNC0
    /// without a shift comes, to the frame's passage.
    pub frame_phase_ns: u64,
    /// Release against its place in the reference clock's period, with a lock; positive is late.
    pub phase_error_ns: i64,
    /// Rate of the reference clock against this host's, with a lock, in parts per billion.
    pub drift_ppb: i64,
    /// Times the lock was lost.
    pub losses: u64,
}

/// Timing of the cycle since the first cycle in Op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Cycles measured.
    pub cycles: u64,
    /// Wake-up latency: from the release to the start of a cycle.
    pub wakeup_latency: Spread,
    /// Period jitter: |actual period - period|.
    pub period_jitter: Spread,
    /// Execution time: from the start of a cycle to its end, without the wait for the wire.
    pub execution: Spread,
    /// Cycles that ran past the next release.
    pub overruns: u64,
    /// Releases that were skipped.
    pub skipped: u64,
    /// Number of the last cycle that overran.
    pub last_overrun: u64,
}

/// Outcome of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandState {
    /// Sequence number of the last command taken over.
    pub sequence: u64,
    /// Time stamp of that command.
    pub stamp_ns: u64,
    /// Validity of the last command.
    pub freshness: Freshness,
    /// Commands taken over since the start.
    pub accepted: u64,
    /// Commands refused since the start.
    pub refused: u64,
    /// Reason for the last refusal, a code of [`Refusal`]; 0 for none.
    pub last_refusal: u8,
    /// Axis of the last refusal, by its index in the description; `u16::MAX` for none.
    pub last_refused_axis: u16,
    /// Signal of the last refusal, by its index in the description; `u16::MAX` for none.
    pub last_refused_signal: u16,
    /// Commands since the start of which a target was beyond a limit, and was clamped.
    pub clamped: u64,
    /// Limit of the last clamp, a code of [`Limit`]; 0 for none.
    pub last_clamp: u8,
    /// Axis of the last clamp, by its index in the description; `u16::MAX` for none.
    pub last_clamped_axis: u16,
}

/// Target of a command that a controller clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamped {
    /// Limit that it is clamped to.
    pub limit: Limit,
    /// Index of the axis of this target; `None` for a twist.
    pub axis: Option<usize>,
}

codes! {
    /// Limit that a target of a command was beyond: it was clamped to it.
    Limit: u8 {
        /// Limits of position.
        Position = 1, "beyond the limits of position";
        /// Limit of velocity; of a base: of its velocity, its yaw rate or its wheels.
        Velocity = 2, "beyond the limit of velocity";
        /// Limit of torque.
        Effort = 3, "beyond the limit of torque";
    }
}

codes! {
    /// Reason for a refused command.
    Refusal: u8 {
        /// A number is NaN or infinite.
        NotFinite = 1, "a number is NaN or infinite";
        /// Its time stamp lies in the future, or its time-to-live is 0 or too long.
        Time = 2, "its time stamp lies in the future, or its time-to-live is 0 or too long";
        /// The number of axes is not the robot's.
        Axes = 3, "another number of axes than the robot has";
        /// A target is of a kind that no controller of the robot follows.
        Mode = 4, "no controller takes this kind of target";
        /// The region holds no whole command.
        Torn = 5, "the region holds no whole command";
        /// The number of signals is not that of the outputs set from outside.
        Signals = 6, "another number of signals than are set from outside";
        /// A value is of another kind than the signal: a number for a bit, or the other way round.
        SignalType = 7, "a value of another kind than its signal: a number for a bit, or a bit for a number";
        /// A value is outside the range of its signal.
        SignalRange = 8, "beyond the range of a signal";
        /// The orientation of a pose is no unit quaternion.
        Orientation = 9, "an orientation that is no unit quaternion";
        /// The tool cannot get to the pose on a straight line within the limits of its joints.
        OutOfReach = 10, "a pose that the tool cannot reach on a straight line within the limits \
            of its joints";
        /// The straight line leads through a singular pose, where a joint would have to jump.
        Singular = 11, "a straight line through a singular pose, where a joint would have to jump";
        /// Others follow its targets, and the active controller follows none of them.
        Inactive = 12, "no target that the active controller follows";
        /// A jog moves one axis, and comes without other targets.
        JogAlone = 13, "a jog moves one axis, and its command has no other target";
        /// A jog holds for at most [`JOG_TIME_TO_LIVE`](crate::command::JOG_TIME_TO_LIVE).
        JogTime = 14, "a jog holds for 0.3 s at most";
        /// The axis is in a mode in which it is not jogged.
        JogMode = 15, "a jog moves axes in csp and csv only";
        /// An interlock of kind `jog` does not permit it.
        JogNotPermitted = 16, "its enabling switch (interlock of kind jog) does not permit a jog";
        /// The drive is not enabled, or a stop holds the axis.
        JogHeld = 17, "its drive is not enabled, or it is stopped: the state of the axis has the reason";
        /// The axis moves, or another one is jogged.
        JogMoving = 18, "a controller moves it, or another axis is jogged: stop that first";
        /// An axis of the command is in set-up mode.
        SetUp = 19, "set-up mode: only a jog moves it";
        /// An axis of the command has to be homed first.
        NotHomed = 20, "not homed: no controller moves it before it is homed";
        /// An axis of the command is unreferenced.
        Unreferenced = 21, "unreferenced: no controller moves it before its position is known again";
        /// An axis of the command is too far outside its position limits.
        OutsideLimits = 22, "too far outside its position limits: jog it inwards";
    }
}

/// [`Control::active`] where no controller is.
pub const NO_CONTROLLER: u16 = u16::MAX;

/// Active controller and its trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Control {
    /// Index of the active controller in the description; [`NO_CONTROLLER`] for none.
    pub active: u16,
    /// True if the drives are commanded to be enabled.
    pub enabled: bool,
    /// Process of the active controller.
    pub process: ProcessState,
    /// Number of the last trajectory accepted; 0 for none.
    pub trajectory: u64,
    /// Status of that trajectory.
    pub trajectory_status: TrajectoryStatus,
    /// Time since its start.
    pub trajectory_elapsed_ns: u64,
}

/// Process of the active controller ([`Control::process`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessState {
    /// The controller runs in the cycle.
    #[default]
    InCycle,
    /// No process is attached.
    Absent,
    /// A process is attached, and has not answered yet.
    Attached,
    /// The axes follow its answers.
    Answering,
    /// Its answers are missing or wrong.
    Failing,
}

/// Status of a trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrajectoryStatus {
    /// No trajectory.
    #[default]
    None,
    /// The axes follow it.
    Executing,
    /// The goal was reached within its tolerances.
    Succeeded,
    /// Aborted: a tolerance, a limit, or a drive.
    Aborted,
    /// Canceled; the axes stopped.
    Canceled,
}

/// Pose and velocity of a mobile base by its odometry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Base {
    /// Pose since the start, m and rad: x, y, yaw.
    pub pose: [f64; 3],
    /// Velocity in its own frame, m/s and rad/s: x, y, yaw.
    pub twist: [f64; 3],
}

/// State of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Axis {
    /// CiA 402 state of its drive, a code of [`DriveState`]; 0 if unknown.
    pub drive_state: u8,
    /// Source of its drive's target, a code of [`DrivePhase`].
    pub phase: u8,
    /// True if the numbers are of this cycle.
    pub fresh: bool,
    /// True if its absolute position is known.
    pub homed: bool,
    /// True if the last command ended with all axes at standstill, as at the end of a jog: then a
    /// stop for [`StopReason::Stale`] is no failure.
    pub ended: bool,
    /// System error (errno) that keeps its position memory from being written, while that holds its
    /// drive back from being enabled; 0 for none, 127 for another one.
    pub memory_error: u8,
    /// Reason for a stop by supervision, a code of [`StopReason`]; 0 if it is not stopped.
    pub stop: u8,
    /// Step that stopped it because its drive did not carry out a quick stop, a code of
    /// [`QuickStopStep`]; 0 for none. It stays until the axis is its controller's again.
    pub quick_stop: u8,
    /// Place of the axis that it was stopped with ([`StopReason::OtherAxis`]).
    pub stopped_with: Option<u16>,
    /// Index of the interlock that stopped the axis, or keeps it from being enabled
    /// ([`StopReason::Interlock`], [`StopReason::NotPermitted`]).
    pub interlock: Option<u16>,
    /// Index of the input that shows the fault of its brake, among the inputs of all brakes
    /// ([`StopReason::BrakeNotOpen`], [`StopReason::BrakeNotClosed`]).
    pub brake_input: Option<u16>,
    /// Level of that input when it showed the fault, a code of [`InputLevel`].
    pub brake_level: u8,
    /// Error code 0x603F of a drive in fault; 0 for none known.
    pub error_code: u16,
    /// Cycles for which the host stalled, of an axis that an outage stopped because of that, or
    /// with a drive in fault since ([`StopReason::Outage`]); 0 for another cause.
    pub stalled: u32,
    /// Mode of operation in effect, as CiA 402 numbers it in 0x6061; 0 if unknown.
    pub mode: i8,
    /// Position, rad.
    pub position: f64,
    /// Velocity, rad/s.
    pub velocity: f64,
    /// Torque at the axis, N m.
    pub effort: f64,
    /// Target position sent to the drive, rad.
    pub target_position: f64,
    /// Target velocity sent to the drive, rad/s.
    pub target_velocity: f64,
    /// Target torque sent to the drive, N m.
    pub target_effort: f64,
    /// Rest of its report, which a controller process needs.
    pub details: AxisDetails,
}

/// Details of an axis and its drive: with its [`Axis`] they are the report that a controller in the
/// cycle gets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AxisDetails {
    /// Statusword 0x6041 as it came in last.
    pub statusword: u16,
    /// True if the mode of operation in [`Axis::mode`] is known, which may be mode 0.
    pub is_mode_known: bool,
    /// True if the drive maps its torque (0x6077).
    pub measures_torque: bool,
    /// True if the drive is not on the bus, and need not be.
    pub is_absent: bool,
    /// True while the drive homes.
    pub is_homing: bool,
    /// True if the drive was enabled before.
    pub was_enabled: bool,
    /// Number of times in this run that the place of the axis was taken as its home.
    pub homed_by_hand: u32,
    /// Consecutive cycles without an exchange of process data.
    pub missed: u32,
    /// Consecutive cycles in which it was requested to be enabled and was not.
    pub waits: u32,
    /// Consecutive cycles in which it was stopped though it exchanged process data.
    pub held: u32,
    /// Position as the drive counts it, and counts in a radian of the axis; `None` before its first
    /// inputs.
    pub counts: Option<(i32, f64)>,
    /// Position at which it is held, rad, in [`DrivePhase::Holding`].
    pub holds_at: f64,
    /// Distance beyond a position limit at which it stopped, in a torque mode, rad.
    pub overshoot: Option<f64>,
    /// Positions at the end of the last run and at the start of this one, rad, where their
    /// difference is the reason of its stop.
    pub moved: Option<[f64; 2]>,
    /// Level of the input of the interlock [`Axis::interlock`] while that did not permit, a code of
    /// [`InputLevel`].
    pub interlock_level: u8,
    /// True if that interlock permits again.
    pub interlock_permits: bool,
    /// Mode of the axis, and of the set-point that its controller gives it for some time instead of
    /// one of that mode: the axis does not move.
    pub ignored: Option<(AxisMode, CyclicMode)>,
}

/// State of a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signal {
    /// Value as its kind in the description says: 0 or 1, an integer, or the bits of a double.
    pub word: u64,
    /// True of an input that came in with this cycle, of an output that its SubDevice took.
    pub fresh: bool,
    /// True while it is forced: the value is the forced one.
    pub forced: bool,
}

impl Signal {
    /// Value of a signal of this kind ([`crate::description::SignalDescription::kind`]).
    #[must_use]
    pub fn value(self, kind: ValueKind) -> Value {
        match kind {
            ValueKind::Bool => Value::Bool(self.word != 0),
            ValueKind::Unsigned => Value::Unsigned(self.word),
            ValueKind::Signed => Value::Signed(self.word as i64),
            ValueKind::Real => Value::Real(f64::from_bits(self.word)),
        }
    }
}
