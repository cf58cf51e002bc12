//! Reports on a run in progress.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use control::bus::other_main_device;
use control::observer::CycleEvent;
use control::status::Status;
use ethercat::time::Instant;
use ethercat::wire::MacAddress;
use ipc::controller::Wrong;
use ipc::diagnostics::BusDiagnosis;
use onbeat_ethercat_linux::link::Owner;
use record::RunSummary;
use types::AxisMode;

use crate::fault::seconds;

/// Follows a run from the thread that runs it; every method may be left out. A method that waits
/// holds up neither the cycle nor its end, but records and events that find no space meanwhile are
/// counted and dropped.
pub trait Reporter {
    /// Takes a notice.
    fn notice(&mut self, notice: &Notice) {
        let _ = notice;
    }

    /// Takes the events of the cycle, oldest first.
    fn events(&mut self, events: Vec<CycleEvent>) {
        let _ = events;
    }

    /// Takes the progress, some 50 times a second.
    fn progress(&mut self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// Takes a late cycle with its causes that is worse than all before it, if late cycles are
    /// explained.
    #[cfg(feature = "diagnosis")]
    fn late(&mut self, late: &crate::LateCycle) {
        let _ = late;
    }

    /// The measurement has ended: the stop follows.
    fn stopping(&mut self) {}

    /// Learns that the cycle has ended.
    fn ended(&mut self) {}
}

/// Reporter that ignores all.
impl Reporter for () {}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Phase of the run.
    pub phase: Phase,
    /// Axes, SubDevices and bus in the newest cycle.
    pub status: &'a Status,
    /// Timing of the cycles in Op so far.
    pub timing: &'a RunSummary,
    /// The bus, once a second; `None` before its first answer.
    pub bus: Option<&'a BusDiagnosis>,
    /// Time of this progress.
    pub at: Instant,
}

/// Phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The bus is on its way to Op.
    BringUp,
    /// The cycles count.
    Measuring,
    /// The axes stop, and the bus goes to Init.
    Stopping,
}

/// Notice on a run; displays as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Link to the interface, where it is not the usual packet socket.
    Link {
        /// The interface.
        interface: String,
        /// Words for the way its frames go.
        link: String,
    },
    /// Changes that prepare the interface for the cycle.
    Prepared(String),
    /// Process that keeps the name of the interface's lock without using the interface.
    Squatter {
        /// The interface.
        interface: String,
        /// The process.
        owner: Owner,
    },
    /// Another MainDevice on the wire.
    OtherMainDevice {
        /// Source address of its frames.
        source: MacAddress,
        /// Frames so far.
        frames: u64,
    },
    /// SubDevice that keeps its outputs when the bus fails.
    NoWatchdog {
        /// Position in the segment, from 0.
        position: u16,
        /// Name of the SubDevice.
        name: String,
    },
    /// Remark on a SubDevice that works even so.
    Remark(String),
    /// Object of a drive that bounds its axis less than its limits do, or prevents a stop.
    WeakDrive(String),
    /// Detail that `run -v` shows.
    Detail(String),
    /// Path of the shared-memory interface that is open.
    IpcOpen(PathBuf),
    /// Reason that the shared-memory interface is not in the first of the usual folders.
    IpcElsewhere(String),
    /// Reason for no shared-memory interface.
    NoIpc(String),
    /// Reason for explanations without the kernel's trace.
    NoTrace(String),
    /// Recording that does not open yet, or takes no more cycles.
    Recording(String),
    /// Sentence on the state directory: a file that cannot be read or written.
    State(String),
    /// Line of a device outside the bus.
    Device(String),
    /// Fault of the simulated bus that took place on demand, or the end of a fault.
    Fault {
        /// Time since the start of the simulation.
        at: Duration,
        /// The line that says it.
        fault: String,
    },
    /// First answer of the controller process that was refused for this reason.
    WrongAnswer {
        /// Number of the cycle.
        cycle: u64,
        /// Reason.
        why: Wrong,
        /// Name and mode of the axis that it was for, if it was for one.
        axis: Option<(String, AxisMode)>,
    },
    /// Axis that keeps the run from its end: its load falls once its drive is disabled.
    HoldsLoad(String, HeldBy),
    /// Setting of the machine that could not be put back.
    NotPutBack(String),
}

/// Reason that only the torque of its drive holds the load of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeldBy {
    /// Its brake does not close.
    OpenBrake,
    /// Its drive did not carry out a quick stop, and it has no brake.
    IgnoredQuickStop,
}

impl HeldBy {
    const fn words(self) -> &'static str {
        match self {
            Self::OpenBrake => "its brake is not closed",
            Self::IgnoredQuickStop => "its drive did not carry out a quick stop",
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link { interface, link } => write!(f, "interface {interface}: {link}"),
            Self::Squatter { interface, owner } => write!(
                f,
                "interface {interface}: {owner} keeps the name of its lock without using the interface: end that process"
            ),
            Self::OtherMainDevice { source, frames } => f.write_str(&other_main_device(*source, *frames)),
            Self::NoWatchdog { position, name } => write!(
                f,
                "SubDevice {position} \"{name}\" has no process data watchdog: its outputs stay as they are when this \
                 machine or the cable fails; set process_data_watchdog"
            ),
            Self::Fault { at, fault } => write!(f, "fault at {}: {fault}", seconds(*at)),
            Self::WrongAnswer { cycle, why, axis } => {
                write!(
                    f,
                    "cycle {cycle}: an answer of the controller process is refused: {}",
                    why.words()
                )?;
                if let Some((name, mode)) = axis {
                    let takes = mode.cyclic().setpoint();
                    write!(f, ": axis \"{name}\" is in {}, in which it takes {takes}", mode.name())?;
                }
                f.write_str("; its axes stop, or stay disabled, while it answers this")
            }
            Self::IpcOpen(path) => write!(f, "ipc {}", path.display()),
            Self::IpcElsewhere(why) => {
                write!(f, "{why}; clients of this user find the interface in another folder")
            }
            Self::NoIpc(why) => write!(f, "no other program can attach: {why}"),
            Self::NoTrace(why) => write!(f, "late cycles are explained by counters only: {why}"),
            Self::HoldsLoad(axis, why) => write!(
                f,
                "{axis} stays enabled: {}, and its load falls without torque; secure the load, then stop again \
                 (a second Ctrl-C)",
                why.words()
            ),
            Self::Prepared(sentence)
            | Self::Remark(sentence)
            | Self::WeakDrive(sentence)
            | Self::Detail(sentence)
            | Self::Recording(sentence)
            | Self::State(sentence)
            | Self::Device(sentence)
            | Self::NotPutBack(sentence) => f.write_str(sentence),
        }
    }
}
