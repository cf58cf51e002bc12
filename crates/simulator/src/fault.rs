//! Faults of a simulated bus as text: one per line, read for the SubDevices that it can name.
//!
//! | module | contents |
//! |---|---|
//! | this one | [`Fault`]: each of them, and what ends it |
//! | `forms` | the forms of a fault, for help texts |
//! | `grammar` | a line as a [`Timed`] fault |
//! | `line` | words of a line, and what is wrong with one |
//! | `words` | a fault as a line again |
//! | `share` | shares of frames, and other numbers with decimals |
//! | `script` | faults with their times, checked whole |
//! | `targets` | SubDevices that a line can name |

mod forms;
mod grammar;
mod line;
mod script;
mod share;
mod targets;
#[cfg(test)]
mod tests;
mod words;

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;

use crate::application::brake::Sticking;

pub use forms::GRAMMAR;
pub use line::FaultError;
pub use script::Script;
pub use share::Share;
pub use targets::Targets;

/// Port of a SubDevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Position of the SubDevice.
    pub position: usize,
    /// Its port, 0 to 3.
    pub port: usize,
}

/// Identity in an SII, as far as it is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherIdentity {
    /// Vendor id.
    pub vendor: Option<u32>,
    /// Product code.
    pub product: Option<u32>,
    /// Revision number.
    pub revision: Option<u32>,
    /// Serial number.
    pub serial: Option<u32>,
}

/// Fault of a simulated bus, or the end of one. SubDevices by position. Exhaustive: the compiler
/// finds each place that must apply a new fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Power of a SubDevice, on or off.
    Power {
        /// Position.
        position: usize,
        /// On or off.
        on: bool,
    },
    /// Power off and on at once.
    PowerCycle(usize),
    /// Cable at a port, plugged or pulled.
    Cable {
        /// Either of its ends.
        at: Port,
        /// Plugged or pulled.
        plugged: bool,
    },
    /// Invalid frames that a port counts, with a wrong frame check sequence.
    InvalidFrames {
        /// The port that receives.
        at: Port,
        /// Number of them.
        count: u8,
    },
    /// Mailbox of a SubDevice: while it does not run it keeps a request and does not answer.
    Mailbox {
        /// Position.
        position: usize,
        /// False while it is stuck.
        runs: bool,
    },
    /// Application of a SubDevice: while it does not run it is a crashed microcontroller.
    Application {
        /// Position.
        position: usize,
        /// False while it is stopped.
        runs: bool,
    },
    /// A state that a SubDevice refuses, with its AL status code.
    RefuseState {
        /// Position.
        position: usize,
        /// Any but Init.
        state: AlState,
        /// AL status code.
        code: AlStatusCode,
    },
    /// All states are allowed again.
    AllowStates(usize),
    /// The process data watchdog expires, with or without outputs.
    Watchdog(usize),
    /// Another identity in the SII: another SubDevice in its place. Its object 0x1018 stays as it
    /// is.
    Identity {
        /// Position.
        position: usize,
        /// The identity.
        identity: OtherIdentity,
    },
    /// An erased SII.
    BlankSii(usize),
    /// An SII with a wrong checksum.
    SpoilSii(usize),
    /// An SII that ends early.
    CutSii {
        /// Position.
        position: usize,
        /// Bytes that are left.
        length: u32,
    },
    /// The SII as it was.
    RestoreSii(usize),
    /// The local clock jumps.
    ClockJump {
        /// Position.
        position: usize,
        /// Nanoseconds, forward or back.
        by: i64,
    },
    /// Receive time of a port: a port that does not latch keeps the time that it holds.
    ReceiveTime {
        /// The port.
        at: Port,
        /// False while its time is stale.
        latches: bool,
    },
    /// Level of a latch input.
    Latch {
        /// Position.
        position: usize,
        /// 0 or 1.
        input: usize,
        /// High or low.
        high: bool,
    },
    /// Level of an input of a terminal with digital inputs.
    Input {
        /// Position.
        position: usize,
        /// The input, from 0.
        input: u8,
        /// High or low; `None` for its level from the start, or the level of the output with its
        /// number.
        level: Option<bool>,
    },
    /// An axis of a servo drive has a fault.
    DriveFault {
        /// Position.
        position: usize,
        /// Axis of the drive, from 0.
        axis: usize,
        /// Error code (CiA 402, 0x603F), not 0.
        code: u16,
    },
    /// Main power of a servo drive: without it the ESC continues to run.
    DrivePower {
        /// Position.
        position: usize,
        /// On or off.
        on: bool,
    },
    /// Load on the shaft of an axis of a servo drive.
    DriveLoad {
        /// Position.
        position: usize,
        /// Axis of the drive, from 0.
        axis: usize,
        /// Torque in mN m.
        torque: i32,
    },
    /// Direction in which the motor of an axis of a servo drive turns.
    DriveMotor {
        /// Position.
        position: usize,
        /// Axis of the drive, from 0.
        axis: usize,
        /// Two of its phases are exchanged: it turns against its torque.
        reversed: bool,
    },
    /// Brake of an axis of a servo drive.
    Brake {
        /// Position of the drive.
        position: usize,
        /// Axis of the drive, from 0.
        axis: usize,
        /// Place in which it sticks.
        sticking: Sticking,
    },
    /// An axis of a servo drive counts from elsewhere, with or without power.
    Encoder {
        /// Position.
        position: usize,
        /// Axis of the drive, from 0.
        axis: usize,
        /// Thousandths of a turn of its motor.
        by: i32,
        /// The shaft turns so far, and the count stays; else the count changes, and the shaft
        /// stays.
        turned: bool,
    },
    /// Share of frames that are lost, on the way to the SubDevices or back.
    LoseFrames(Share),
    /// The next frames on their way to the SubDevices are lost, this many.
    LoseNext(u32),
    /// Replies that come late.
    DelayFrames {
        /// Time by which it is late.
        by: Duration,
        /// Share of them.
        share: Share,
    },
    /// Replies that come twice.
    DuplicateFrames(Share),
    /// Replies that are overtaken by the next.
    ReorderFrames(Share),
    /// Replies with one bit that is another.
    CorruptFrames(Share),
    /// Seed of the chance that decides on frames; the same seed and frames, the same fates.
    Seed(u64),
    /// The end of all that lasts.
    Clear,
}

/// A fault, and how long it lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// The fault.
    pub fault: Fault,
    /// Time after which it ends by itself, for one that lasts.
    pub lasting: Option<Duration>,
}

impl Fault {
    /// End of a lasting fault; `None` for an instantaneous one.
    #[must_use]
    pub fn end(self) -> Option<Self> {
        let end = self.settled();
        (end != self && !matches!(self, Self::PowerCycle(_))).then_some(end)
    }

    /// The same thing without a fault: where two faults have the same, the later one takes the
    /// place of the other.
    #[must_use]
    pub fn settled(self) -> Self {
        match self {
            Self::Power { position, .. } | Self::PowerCycle(position) => Self::Power { position, on: true },
            Self::Cable { at, .. } => Self::Cable { at, plugged: true },
            Self::Mailbox { position, .. } => Self::Mailbox { position, runs: true },
            Self::Application { position, .. } => Self::Application { position, runs: true },
            Self::RefuseState { position, .. } => Self::AllowStates(position),
            Self::Identity { position, .. }
            | Self::BlankSii(position)
            | Self::SpoilSii(position)
            | Self::CutSii { position, .. } => Self::RestoreSii(position),
            Self::ReceiveTime { at, .. } => Self::ReceiveTime { at, latches: true },
            Self::Latch { position, input, .. } => Self::Latch { position, input, high: false },
            Self::Input { position, input, .. } => Self::Input { position, input, level: None },
            Self::DrivePower { position, .. } => Self::DrivePower { position, on: true },
            Self::DriveLoad { position, axis, .. } => Self::DriveLoad { position, axis, torque: 0 },
            Self::DriveMotor { position, axis, .. } => Self::DriveMotor { position, axis, reversed: false },
            Self::Brake { position, axis, .. } => Self::Brake { position, axis, sticking: Sticking::Free },
            Self::LoseFrames(_) => Self::LoseFrames(Share::NONE),
            Self::DelayFrames { .. } => Self::DelayFrames { by: Duration::ZERO, share: Share::NONE },
            Self::DuplicateFrames(_) => Self::DuplicateFrames(Share::NONE),
            Self::ReorderFrames(_) => Self::ReorderFrames(Share::NONE),
            Self::CorruptFrames(_) => Self::CorruptFrames(Share::NONE),
            it @ (Self::InvalidFrames { .. }
            | Self::AllowStates(_)
            | Self::Watchdog(_)
            | Self::RestoreSii(_)
            | Self::ClockJump { .. }
            | Self::DriveFault { .. }
            | Self::Encoder { .. }
            | Self::LoseNext(_)
            | Self::Seed(_)
            | Self::Clear) => it,
        }
    }
}
