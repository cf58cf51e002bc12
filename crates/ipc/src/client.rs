//! Client side of the shared-memory interface, for any other process or thread.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ipc = onbeat_ipc::client::Client::find()?;
//! println!("{} with {} axes", ipc.description().robot, ipc.description().axes.len());
//! println!("{:?}", ipc.state().read()?);
//! # Ok(())
//! # }
//! ```

mod errors;
mod line;

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{SealFlags, fcntl_get_seals};

use crate::bus::BusClient;
use crate::channel::{Channel, Kind};
use crate::controller::{self, Controller};
use crate::description::Description;
use crate::force::Force;
#[cfg(feature = "person")]
use crate::reference::Given;
use crate::service::protocol::{LONGEST_NAME, Reply, Request, Status};
use crate::state::ReadError;
use crate::{command, diagnostics, place, state};

pub use errors::{
    AttachError, ControllerError, FindError, ForceError, LeaseError, PortError, PositionError, Refusal,
    Running,
};
pub(crate) use line::Line;

/// Connection of a client to a running cycle.
///
/// Once attached, reading state and diagnostics needs no help from the cycle's process and cannot
/// be noticed by it.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    name: String,
    process: u32,
    user: u32,
    line: Line,
    description: Description,
    state: state::Reader,
    diagnostics: diagnostics::Reader,
}

impl Client {
    /// Attaches to the running cycle: the one at the path in the environment variable `ONBEAT_IPC`,
    /// otherwise the only one that answers in the usual folders. A cycle of another user
    /// ([`Client::user`]) is taken only if neither root nor this user has one.
    ///
    /// # Errors
    /// There is no such cycle, there are several, or attaching fails.
    pub fn find() -> Result<Self, FindError> {
        if let Some(path) = std::env::var_os(VARIABLE) {
            return Ok(Self::open(Path::new(&path))?);
        }
        Self::search(None)
    }

    /// Attaches to the running cycle of this name; to one of another user only if there is none of
    /// root's or this user's.
    ///
    /// # Errors
    /// There is no such cycle, there are several, or attaching fails.
    pub fn named(name: &str) -> Result<Self, FindError> {
        Self::search(Some(name))
    }

    /// Attaches to all running cycles that answer in the usual folders; sockets of dead cycles are
    /// skipped.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Self::answering(&[place::all(), place::of_others()].concat(), None).0
    }

    /// Searches the folders of root and this user first, so that a cycle of another user never
    /// makes the choice ambiguous.
    fn search(name: Option<&str>) -> Result<Self, FindError> {
        let mut looked = Vec::new();
        for folders in [place::all(), place::of_others()] {
            match Self::only(&folders, name) {
                Err(FindError::NoServer { folders, .. }) => looked.extend(folders),
                found => return found,
            }
        }
        Err(FindError::NoServer { name: name.map(str::to_owned), folders: looked })
    }

    fn only(folders: &[PathBuf], name: Option<&str>) -> Result<Self, FindError> {
        let (mut found, mut failed) = Self::answering(folders, name);
        match (found.len(), failed.len()) {
            (1, _) => Ok(found.remove(0)),
            (0, 1..) => Err(failed.remove(0).into()),
            (0, 0) => Err(match place::unseen(folders) {
                Some((path, source)) => AttachError::System { path, source }.into(),
                None => FindError::NoServer { name: name.map(str::to_owned), folders: folders.into() },
            }),
            _ => Err(FindError::Several {
                found: found
                    .into_iter()
                    .map(|Self { name, process, user, path, .. }| Running { name, process, user, path })
                    .collect(),
            }),
        }
    }

    /// Attachments to the cycles that answer, and the errors of cycles that exist but cannot be
    /// attached to. Another user may have many sockets that never answer: the wait for sockets of
    /// other users together is no longer than the wait for one.
    fn answering(folders: &[PathBuf], name: Option<&str>) -> (Vec<Self>, Vec<AttachError>) {
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        let mut waited_for_others = Duration::ZERO;
        for path in folders.iter().flat_map(|folder| place::sockets(folder, place::CYCLE)) {
            if name.is_some_and(|name| path.file_stem().is_none_or(|stem| stem != name)) {
                continue;
            }
            let is_own = place::is_own(&path);
            if !is_own && waited_for_others >= place::TIMEOUT {
                break;
            }
            let begin = Instant::now();
            match Self::open(&path) {
                Ok(ipc) => found.push(ipc),
                Err(AttachError::NoServer { .. }) => {}
                Err(error) => failed.push(error),
            }
            waited_for_others += if is_own { Duration::ZERO } else { begin.elapsed() };
        }
        (found, failed)
    }

    /// Attaches to the cycle that listens at this socket.
    ///
    /// # Errors
    /// No process answers, it has another version, or its regions have another layout.
    pub fn open(path: &Path) -> Result<Self, AttachError> {
        let line = Line::to(path)?;
        let (reply, files) = line.ask(Request::Attach)?;
        let refuse = |source| AttachError::Refused { path: path.into(), source };
        if reply.status != Status::Done {
            return Err(refuse(reply.into()));
        }
        let [document, state, diagnostics] = files
            .try_into()
            .map_err(|files: Vec<_>| refuse(Refusal::Descriptors { found: files.len() }))?;
        let region = |source| AttachError::Region { path: path.into(), source };
        // Only a sealed memory file is read: reading any other descriptor might never end.
        if !fcntl_get_seals(&document)
            .is_ok_and(|seals| seals.contains(SealFlags::WRITE | SealFlags::SHRINK))
        {
            return Err(refuse(Refusal::NotSealed));
        }
        let description = read_all(&File::from(document))
            .and_then(|document| Ok(serde_json::from_slice(&document)?))
            .map_err(|error| refuse(Refusal::Description(error)))?;
        Ok(Self {
            path: path.into(),
            name: reply.text,
            process: reply.numbers[0],
            user: line.user(),
            line,
            description,
            state: state::Reader::open(state.as_fd()).map_err(region)?,
            diagnostics: diagnostics::Reader::open(diagnostics.as_fd()).map_err(region)?,
        })
    }

    /// Description of the cycle and its robot.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// A reader of the state, to keep, clone and send to other threads.
    #[must_use]
    pub fn state(&self) -> state::Reader {
        self.state.clone()
    }

    /// Diagnostics of the cycle: a JSON document, refreshed a few times a second.
    ///
    /// # Errors
    /// No whole document could be read.
    pub fn diagnostics(&self) -> Result<String, ReadError> {
        self.diagnostics.read()
    }

    /// Takes the command lease. One process holds it at a time; it is returned when the writer is
    /// dropped or its process ends, for whatever reason.
    ///
    /// # Errors
    /// Another process holds it, this user may not command, or the cycle has ended.
    pub fn command(&self) -> Result<command::Writer, LeaseError> {
        let (line, reply, files) = self.ask_until_ready(Request::Lease).map_err(LeaseError::Attach)?;
        match (reply.status, files.first()) {
            (Status::Done, Some(file)) => {
                Ok(command::Writer::open(file.as_fd(), line, self.description.commanded_rows())?)
            }
            (Status::Taken, _) => Err(LeaseError::Taken { process: reply.numbers[0] }),
            (Status::NotPermitted, _) => Err(LeaseError::NotPermitted { why: reply.text }),
            _ => Err(LeaseError::Refused(reply.into())),
        }
    }

    /// Holds the signal with this index in the description at a value, over all other writers,
    /// until the time has expired or it is released. Needs no lease, and continues without this
    /// process.
    ///
    /// # Errors
    /// The value, the time or the signal cannot be, this user may not command, or the cycle has
    /// ended.
    pub fn force(&self, signal: usize, value: types::Value, time: Duration) -> Result<(), ForceError> {
        self.ask_for(Force::Hold { signal, value, time })
    }

    /// Releases the signal with this index in the description, or all that are forced.
    ///
    /// # Errors
    /// As [`Client::force`].
    pub fn release(&self, signal: Option<usize>) -> Result<(), ForceError> {
        self.ask_for(signal.map_or(Force::ReleaseAll, Force::Release))
    }

    fn ask_for(&self, force: Force) -> Result<(), ForceError> {
        let (_, reply, _) = self.ask_until_ready(Request::Force(force)).map_err(ForceError::Attach)?;
        match reply.status {
            Status::Done => Ok(()),
            Status::NotPermitted => Err(ForceError::NotPermitted { why: reply.text }),
            _ => Err(ForceError::Refused(reply.into())),
        }
    }

    /// Accepts or sets the position of an axis; returns the position before, rad. For
    /// `onbeat control`, where a person has typed it.
    ///
    /// # Errors
    /// The cycle refuses it, this user may not command, or the cycle has ended.
    #[cfg(feature = "person")]
    #[doc(hidden)]
    pub fn give_position(&self, given: Given) -> Result<f64, PositionError> {
        let (_, reply, _) =
            self.ask_until_ready(Request::Position(given)).map_err(PositionError::Attach)?;
        match reply.status {
            Status::Done => {
                let [low, high, _] = reply.numbers;
                Ok(f64::from_bits(u64::from(high) << 32 | u64::from(low)))
            }
            Status::NotPermitted | Status::Impossible => Err(PositionError::Refused { why: reply.text }),
            _ => Err(PositionError::Failed(reply.into())),
        }
    }

    /// Becomes the controller process of the cycle. One process is it at a time, until the
    /// controller is dropped or its process ends, for whatever reason.
    ///
    /// # Errors
    /// Another process is it, this user may not command, the cycle has no controller of that kind
    /// or has another version with it, or the cycle has ended.
    pub fn controller(&self) -> Result<Controller, ControllerError> {
        let request = Request::Controller(controller::VERSION);
        let (line, reply, files) = self.ask_until_ready(request).map_err(ControllerError::Attach)?;
        let Description { axes, signals, .. } = &self.description;
        match (reply.status, &files[..]) {
            (Status::Done, [requests, answers]) => {
                Ok(Controller::open(requests.as_fd(), answers.as_fd(), line, axes.len(), signals.len())?)
            }
            (Status::Taken, _) => Err(ControllerError::Taken { process: reply.numbers[0] }),
            (Status::NotPermitted, _) => Err(ControllerError::NotPermitted { why: reply.text }),
            _ => Err(ControllerError::Refused(reply.into())),
        }
    }

    /// Opens a port. One client has it open at a time; it is closed when the channel is dropped or
    /// its process ends, for whatever reason. A port that its real-time thread has not bound yet is
    /// waited for, for at most two seconds.
    ///
    /// # Errors
    /// There is no such port, another process has it open, this user may not open it, or the cycle
    /// has ended.
    pub fn port(&self, name: &str) -> Result<Channel, PortError> {
        let port = name.to_owned();
        let known = || self.description.ports.iter().map(|port| port.name.clone()).collect();
        if !(1..=LONGEST_NAME).contains(&name.len()) {
            return Err(PortError::NoSuchPort { port, known: known() });
        }
        let (_, reply, files) = self.ask_until_ready(Request::Port(name)).map_err(PortError::Attach)?;
        let [kind, size, depth] = reply.numbers;
        let (size, depth) = (size as usize, depth as usize);
        match (reply.status, files.into_iter().next()) {
            (Status::Done, Some(file)) => {
                let kind = if kind == 0 { Kind::Message { size, depth } } else { Kind::Stream { size } };
                Ok(Channel::new(file, kind))
            }
            (Status::NoSuchPort, _) => Err(PortError::NoSuchPort { port, known: known() }),
            (Status::Taken, _) => Err(PortError::Taken { port, process: reply.numbers[0] }),
            (Status::NotPermitted, _) => Err(PortError::NotPermitted { port, why: reply.text }),
            _ => Err(PortError::Refused { port, source: reply.into() }),
        }
    }

    /// Opens a connection to the bus: SDOs, the state of the SubDevices, events.
    ///
    /// # Errors
    /// The program that runs the cycle takes no requests for its bus, too many programs ask it, or
    /// the cycle has ended.
    pub fn bus(&self) -> Result<BusClient, AttachError> {
        let (_, reply, files) = self.ask_until_ready(Request::Bus)?;
        match (reply.status, files.into_iter().next()) {
            (Status::Done, Some(file)) => Ok(BusClient::new(file)),
            _ => Err(AttachError::Refused { path: self.path.clone(), source: reply.into() }),
        }
    }

    /// Sends a request on a new connection, repeated for up to 2 s while the real-time side is not
    /// ready or while a dead process still holds the requested thing: the kernel releases it
    /// shortly after the death.
    fn ask_until_ready(
        &self,
        request: Request<'_>,
    ) -> Result<(Line, Reply, Vec<std::os::fd::OwnedFd>), AttachError> {
        let line = Line::to(&self.path)?;
        let deadline = Instant::now() + Duration::from_secs(2);
        loop {
            let (reply, files) = line.ask(request)?;
            let soon = match reply.status {
                Status::NotReady => true,
                Status::Taken => !Path::new(&format!("/proc/{}", reply.numbers[0])).exists(),
                _ => false,
            };
            if !soon || Instant::now() > deadline {
                return Ok((line, reply, files));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// True if the process that ran the cycle is gone or has closed the interface. The last state
    /// stays readable.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.line.has_ended()
    }

    /// Name of the interface: the robot's, unless another one was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Id of the process that runs the cycle.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Id of the user that runs the cycle, as the kernel reports it.
    #[must_use]
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Path of the server's socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Reads all bytes of a file; its file offset is shared with other processes and is not changed.
fn read_all(file: &File) -> std::io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > LONGEST_DESCRIPTION {
        return Err(std::io::Error::other(format!("{length} bytes, more than {LONGEST_DESCRIPTION}")));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Environment variable with the path of the server's socket; overrides the search.
pub const VARIABLE: &str = "ONBEAT_IPC";

const LONGEST_DESCRIPTION: u64 = 64 << 20;

#[cfg(test)]
mod tests;
