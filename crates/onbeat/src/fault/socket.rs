//! The socket on which a simulator takes faults from other programs.

use std::path::PathBuf;

use ipc::server::{OpenError, PlaceError};
use ipc::text::{Answer, Kind, Server};
use robot::RobotConfig;
use thiserror::Error;

use super::{FaultHandle, Listing, Targets, Timed, seconds};
use crate::run::{Name, name};

/// Simulators, among the programs that answer text requests.
pub const SIMULATOR: Kind = Kind {
    suffix: "faults",
    name: "simulator",
    start: "`onbeat run ROBOT.toml --control NAME` or `onbeat simulate ROBOT.toml --iface NIC`",
};

/// Request for the lasting and the planned faults.
pub const LIST: &str = "list";

/// Simulators of one robot that get names of their own.
const MOST_OF_A_NAME: u32 = 32;

/// Reason for no socket that takes faults.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ControlError {
    /// Another simulator has the name.
    #[error("a simulator answers at {} already: end it, or give this one another name (--control NAME)", path.display())]
    Taken {
        /// Path of its socket.
        path: PathBuf,
    },
    /// The name cannot be, or the system refuses.
    #[error(transparent)]
    Open(OpenError),
}

impl From<OpenError> for ControlError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Place(PlaceError::Taken { path }) => Self::Taken { path },
            error => Self::Open(error),
        }
    }
}

/// Opens the socket of `robot`'s simulator: a thread that takes a fault a request, and answers when
/// it has taken place. `asked` is a name for it; without one it is the robot's, with a number where
/// others have that.
///
/// # Errors
/// The name is taken or impossible, or the system refuses the socket.
pub fn open(
    robot: &RobotConfig,
    asked: Option<&str>,
    handle: &FaultHandle,
    targets: &Targets,
) -> Result<Server, ControlError> {
    let wished = match asked {
        None => name(robot, None),
        Some(asked) => Name { name: asked.to_owned(), folder: None, may_be_another: false },
    };
    let mut attempt = 1;
    loop {
        let Some(name) = wished.attempt(attempt) else { unreachable!("the first attempt has a name") };
        let (handle, targets) = (handle.clone(), targets.clone());
        match Server::open(&SIMULATOR, &name.name, move |line| answer(line, &handle, &targets)) {
            Err(OpenError::Place(PlaceError::Taken { .. }))
                if wished.may_be_another && attempt < MOST_OF_A_NAME =>
            {
                attempt += 1;
            }
            opened => return Ok(opened?),
        }
    }
}

fn answer(line: &str, handle: &FaultHandle, targets: &Targets) -> Answer {
    if line.trim() == LIST {
        let listing = handle.list().map_err(|error| error.to_string())?;
        return Ok(listed(&listing, targets));
    }
    let timed = Timed::parse(line, targets).map_err(|error| error.to_string())?;
    let at = handle.take(timed).map_err(|error| error.to_string())?;
    Ok(format!("{} {}", seconds(at), timed.named(targets)))
}

fn listed(listing: &Listing, targets: &Targets) -> String {
    let active = listing.active.iter().map(|fault| format!("lasts    {}", fault.named(targets)));
    let coming = listing.coming.iter();
    let coming = coming.map(|(at, fault)| format!("to come  {} {}", seconds(*at), fault.named(targets)));
    let lines: Vec<String> = active.chain(coming).collect();
    match &lines[..] {
        [] => format!("no fault is active or scheduled, {} after the start", seconds(listing.now)),
        lines => lines.join("\n"),
    }
}
