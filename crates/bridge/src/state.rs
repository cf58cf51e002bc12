//! How a cycle stands at the end of a beat.

mod ends;
pub(crate) mod words;

pub use ends::{ReadError, Reader, Writer};

/// A cycle at the end of one beat. No number here is ever NaN for want of a value: `fresh`, `known` and counters say
/// what counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Number of the beat.
    pub beat: u64,
    /// Its ideal instant, CLOCK_MONOTONIC.
    pub release_ns: u64,
    /// The bus.
    pub bus: Bus,
    /// The timing of the cycle since the first beat in Op.
    pub timing: Timing,
    /// What became of commands.
    pub command: CommandState,
    /// What moves the axes.
    pub control: Control,
    /// The base; all zero if the robot has none.
    pub base: Base,
    /// The axes, in the order of the description.
    pub axes: Vec<Axis>,
}

/// The bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bus {
    /// 0 scan, 1 clocks, 2 configuration, 3 PreOp, 4 to SafeOp, 5 SafeOp, 6 to Op, 7 Op, 8 to Init, 9 down.
    pub stage: u8,
    /// All inputs are of this beat.
    pub all_fresh: bool,
    /// Datagrams of this beat with another working counter than expected.
    pub working_counter_errors: u16,
    /// Frames sent since the start.
    pub frames_sent: u64,
    /// Frames that came back and were taken.
    pub frames_accepted: u64,
    /// Frames that did not come back in time.
    pub frames_lost: u64,
    /// Frames that came back too late, twice, cut short, changed, or were not ours.
    pub frames_rejected: u64,
    /// Beats with a wrong working counter since Op.
    pub broken_beats: u64,
    /// Largest difference of a SubDevice's clock from the reference clock.
    pub clock_difference_ns: u64,
    /// Frames the operating system did not take or give.
    pub link_errors: u64,
}

/// The timing of the cycle since the first beat in Op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Beats measured.
    pub beats: u64,
    /// From the release to the start of a beat.
    pub wakeup_latency: Spread,
    /// |actual period - period|.
    pub period_jitter: Spread,
    /// From the start of a beat to its end, without waiting for the wire.
    pub execution: Spread,
    /// Beats that ran past the next release.
    pub overruns: u64,
    /// Releases that were skipped.
    pub skipped: u64,
    /// Beat of the last overrun.
    pub last_overrun: u64,
}

/// Last, smallest, largest and mean of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Of the last beat.
    pub last_ns: u64,
    /// The smallest.
    pub minimum_ns: u64,
    /// The largest.
    pub maximum_ns: u64,
    /// The mean.
    pub mean_ns: u64,
}

/// What became of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandState {
    /// Sequence number of the last command taken over.
    pub sequence: u64,
    /// When that was given.
    pub stamp_ns: u64,
    /// Whether one holds.
    pub freshness: Freshness,
    /// Commands taken over since the start.
    pub accepted: u64,
    /// Commands refused since the start.
    pub refused: u64,
    /// Why the last one was refused; 0 for none. The codes are [`Refusal`].
    pub last_refusal: u8,
    /// The axis it was refused for, in the description's order; `u16::MAX` for none.
    pub last_refused_axis: u16,
}

/// Whether a command holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// Nobody has given one.
    #[default]
    Never,
    /// The last one holds.
    Fresh,
    /// The last one's time-to-live is over.
    Stale,
}

/// Why a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// A number is NaN or infinite.
    NotFinite = 1,
    /// Its time stamp lies in the future, or its time-to-live is 0 or too long.
    Time = 2,
    /// Another number of axes than the robot has.
    Axes = 3,
    /// An axis is asked for what its mode cannot do.
    Mode = 4,
    /// Beyond the limits of position.
    PositionLimit = 5,
    /// Beyond the limit of velocity.
    VelocityLimit = 6,
    /// Beyond the limit of torque.
    EffortLimit = 7,
    /// The region holds no whole command.
    Torn = 8,
}

/// What moves the axes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Control {
    /// Index of the active controller in the description.
    pub active: u16,
    /// The drives are asked to be enabled.
    pub enabled: bool,
    /// Number of the last trajectory taken up; 0 for none.
    pub trajectory: u64,
    /// How far it is.
    pub trajectory_status: TrajectoryStatus,
    /// Since it began.
    pub trajectory_elapsed_ns: u64,
}

/// How far a trajectory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrajectoryStatus {
    /// There is none.
    #[default]
    None,
    /// The axes follow it.
    Executing,
    /// It was reached within its tolerance.
    Succeeded,
    /// It was given up: a tolerance, a limit, a drive.
    Aborted,
    /// It was called off; the axes came to rest.
    Canceled,
}

/// A base that moves about, by its odometry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Base {
    /// Place since the start, m and rad: x, y, yaw.
    pub pose: [f64; 3],
    /// Velocity in its own frame, m/s and rad/s: x, y, yaw.
    pub twist: [f64; 3],
}

/// One axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Axis {
    /// CiA 402 state of its drive in the order of the standard's table, from 1; 0 for none known.
    pub drive_state: u8,
    /// 0 not enabled, 1 enabled and holding, 2 following set-points.
    pub phase: u8,
    /// The numbers are of this beat.
    pub fresh: bool,
    /// It knows its absolute position.
    pub homed: bool,
    /// Why supervision stopped it; 0 for not stopped. The codes are [`Stop`].
    pub stop: u8,
    /// rad.
    pub position: f64,
    /// rad/s.
    pub velocity: f64,
    /// N m at the axis.
    pub effort: f64,
    /// rad: what the drive was sent.
    pub target_position: f64,
    /// rad/s: what the drive was sent.
    pub target_velocity: f64,
    /// N m: what the drive was sent.
    pub target_effort: f64,
}

/// Why supervision stopped an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stop {
    /// The command went stale.
    Stale = 1,
    /// The controller asked beyond the limits of position.
    PositionLimit = 2,
    /// Beyond the limit of velocity.
    VelocityLimit = 3,
    /// A set-point stepped farther than it may.
    Step = 4,
    /// The axis did not follow.
    FollowingError = 5,
    /// The drive is in fault.
    Fault = 6,
    /// A set-point was no number.
    NotFinite = 7,
    /// The drive did not find its home: it showed a homing error.
    HomingError = 8,
    /// The drive did not find its home in time.
    HomingTimedOut = 9,
    /// The axis was not heard of.
    Outage = 10,
    /// A stop signal.
    Interlock = 11,
    /// The permission to enable is missing.
    NotPermitted = 12,
    /// The cycle ends, and the controller did not bring the axis to rest.
    Ending = 13,
}
