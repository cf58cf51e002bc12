//! Reasons for a run that could not be.

mod controller;
mod parts;
mod recording;

use std::io;
use std::path::PathBuf;

use control::axis::AxisError;
use control::interlock::InterlockError;
use control::signal::{SignalError, SignalsError};
use control::status::Status;
use control::verdict::Finding;
#[cfg(feature = "devices")]
use devices::StartError;
use ethercat::main_device::{BusError, ConfigurationError};
use ipc::server::OpenError as IpcError;
use onbeat_ethercat_linux::bring_up::BringUpError;
use onbeat_ethercat_linux::link::{OpenError, RingError};
use robot::FileError;
use thiserror::Error;

pub use controller::ControllerError;
pub use parts::{CaptureError, SharedMemoryError, SimulationError, UrdfError, UrdfFileError};
pub use recording::{Incomplete, RecordingError};

use crate::fault::ScriptErrors;
use crate::fault::socket::ControlError;

/// Reason for a run that could not be. Each displays as one sentence: the place, the content
/// expected, the content found, and the remedy. `Debug` is the same sentence: a `main` that returns
/// an error prints that.
#[derive(Error)]
#[non_exhaustive]
pub enum Error {
    /// Robot file that cannot be read, or is not as expected.
    #[error(transparent)]
    RobotFile(#[from] FileError),
    /// URDF of the robot file.
    #[error(transparent)]
    Urdf(#[from] UrdfError),
    /// Controller of the robot file that cannot be made.
    #[error("controller \"{name}\": {source}")]
    Controller {
        /// Name of the controller.
        name: String,
        /// Reason.
        source: ControllerError,
    },
    /// Script of faults that cannot be read, or has lines that are wrong.
    #[error(transparent)]
    Script(#[from] ScriptErrors),
    /// Name that takes no faults for the simulated bus.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Robot that cannot be simulated.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// Network interface that is not there, not up, or taken.
    #[error(transparent)]
    Interface(#[from] OpenError),
    /// Two interfaces that are not the ends of a ring.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// Settings of the bus that no bus can have.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// Bus that does not come up, or is not as described.
    #[error(transparent)]
    BringUp(#[from] BringUpError),
    /// Axis that does not fit the process data of its drive.
    #[error(transparent)]
    Axis(#[from] AxisError),
    /// Interlock that does not fit its terminal.
    #[error(transparent)]
    Interlock(#[from] InterlockError),
    /// Signal that the controller requested, and that does not exist or has another type.
    #[error("the controller cannot start: {0}")]
    Signal(SignalError),
    /// Signals that do not fit the process data.
    #[error(transparent)]
    Signals(SignalsError),
    /// Name of the shared-memory interface that is taken or impossible.
    #[error(transparent)]
    Ipc(#[from] IpcError),
    /// Settings of the shared-memory interface that cannot be.
    #[error(transparent)]
    SharedMemory(#[from] SharedMemoryError),
    /// Device outside the bus that does not start.
    #[cfg(feature = "devices")]
    #[error(transparent)]
    Device(#[from] StartError),
    /// Devices in the robot file, for a program without them.
    #[cfg(not(feature = "devices"))]
    #[error(
        "the robot file has [[peripheral]], expected none in a program without devices: build it with the feature `devices` of onbeat"
    )]
    NoDevices,
    /// Recording that cannot be begun, or is not whole.
    #[error("{}: {source}", path.display())]
    Recording {
        /// Path of the recording.
        path: PathBuf,
        /// Reason.
        source: RecordingError,
    },
    /// Capture that cannot be begun, or is not whole.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// Limit of this process's processor time, at which the system would end it with its axes at
    /// speed.
    #[error(
        "this process may have {seconds} s of processor time, and the system would end it then, its axes at speed: lift the \
         limit with `ulimit -t unlimited`, as root if it is a hard one"
    )]
    ProcessorTime {
        /// The limit.
        seconds: u64,
    },
    /// Thread that the system did not start, or another refusal of the system.
    #[error(transparent)]
    System(#[from] io::Error),
    /// Panic of the controller: the axes were stopped as after the loss of a controller process,
    /// and the bus went to Init.
    #[error("the controller panicked, and its axes were stopped: {message}")]
    ControllerPanicked {
        /// The panic's own words.
        message: String,
    },
    /// Panic of the cycle's thread elsewhere.
    #[error("the cycle's thread panicked: {message}")]
    Panicked {
        /// The panic's own words.
        message: String,
    },
    /// Bus that failed before its first cycle in Op; its findings are with it. Files that are not
    /// complete follow, a line each.
    #[error("the bus did not reach Op{}{}", reason(&.0.failure), incomplete(&.0.files))]
    NotInOp(Box<FailedStart>),
}

/// Results of a run that ended because the bus failed before its first cycle in Op.
#[derive(Debug)]
#[non_exhaustive]
pub struct FailedStart {
    /// Failure of the bus.
    pub failure: Option<BusError>,
    /// Findings; a run that did not reach Op has some.
    pub findings: Vec<Finding>,
    /// A sentence on each finding, in the same order: place, cause and remedy.
    pub sentences: Vec<String>,
    /// Axes, SubDevices and bus in the last cycle.
    pub status: Status,
    /// Recording and capture, if requested: a sentence on each, or the reason why it is incomplete.
    pub files: Vec<Result<String, Error>>,
}

types::debug_is_sentence!(Error);

/// Failure of the bus, behind a sentence.
fn reason(failure: &Option<BusError>) -> String {
    failure.as_ref().map_or_else(String::new, |error| format!(": {error}"))
}

/// Lines of files that are not complete, each behind the line before.
pub(crate) fn incomplete(files: &[Result<String, Error>]) -> String {
    files.iter().filter_map(|file| file.as_ref().err()).map(|error| format!("\n{error}")).collect()
}

impl From<SignalsError> for Error {
    fn from(error: SignalsError) -> Self {
        match error {
            SignalsError::Controller(error) => Self::Signal(error),
            other => Self::Signals(other),
        }
    }
}
