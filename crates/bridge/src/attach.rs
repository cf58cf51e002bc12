//! The side of everybody else: another process, or another thread.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let seam = onbeat_bridge::attach::Attachment::find()?;
//! println!("{} with {} axes", seam.description().robot, seam.description().axes.len());
//! println!("{:?}", seam.state().read()?);
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

use crate::channel::{Channel, Kind};
use crate::description::Description;
use crate::door::protocol::{LONGEST_NAME, Reply, Request, Status};
use crate::state::ReadError;
use crate::{command, diagnostics, place, state};

pub use errors::{AttachError, FindError, LeaseError, PortError, Running};
pub(crate) use line::Line;

/// The seam of a running cycle, seen from outside.
///
/// Once attached, reading state and diagnostics takes no help from the cycle's process, and cannot be noticed by it.
#[derive(Debug)]
pub struct Attachment {
    path: PathBuf,
    name: String,
    process: u32,
    user: u32,
    line: Line,
    description: Description,
    state: state::Reader,
    diagnostics: diagnostics::Reader,
}

impl Attachment {
    /// The one running cycle: that at the path in the environment variable `ONBEAT_SEAM`, or else the only one whose socket
    /// answers in the usual folders; one of another user's ([`Attachment::user`]), if there is none of root's or this user's.
    ///
    /// # Errors
    /// There is none, or there are several, or it cannot be attached to.
    pub fn find() -> Result<Self, FindError> {
        if let Some(path) = std::env::var_os(VARIABLE) {
            return Ok(Self::open(Path::new(&path))?);
        }
        Self::search(None)
    }

    /// The running cycle of this name; one of another user's, if there is none of root's or this user's.
    ///
    /// # Errors
    /// There is none, or there are several, or it cannot be attached to.
    pub fn named(name: &str) -> Result<Self, FindError> {
        Self::search(Some(name))
    }

    /// All running cycles whose sockets answer in the usual folders. What dead ones left is passed over.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Self::answering(&[place::all(), place::of_others()].concat(), None).0
    }

    /// Nobody else's cycle can stand beside one of root's or this user's.
    fn search(name: Option<&str>) -> Result<Self, FindError> {
        let mut looked = Vec::new();
        for folders in [place::all(), place::of_others()] {
            match Self::only(&folders, name) {
                Err(FindError::Nobody { folders, .. }) => looked.extend(folders),
                found => return found,
            }
        }
        Err(FindError::Nobody { name: name.map(str::to_owned), folders: looked })
    }

    fn only(folders: &[PathBuf], name: Option<&str>) -> Result<Self, FindError> {
        let (mut found, mut failed) = Self::answering(folders, name);
        match (found.len(), failed.len()) {
            (1, _) => Ok(found.remove(0)),
            (0, 1..) => Err(failed.remove(0).into()),
            (0, 0) => Err(FindError::Nobody { name: name.map(str::to_owned), folders: folders.into() }),
            _ => Err(FindError::Several {
                found: found
                    .into_iter()
                    .map(|Self { name, process, user, path, .. }| Running { name, process, user, path })
                    .collect(),
            }),
        }
    }

    /// Those that answer, and those that are there but cannot be attached to.
    fn answering(folders: &[PathBuf], name: Option<&str>) -> (Vec<Self>, Vec<AttachError>) {
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for path in folders.iter().flat_map(|folder| place::sockets(folder)) {
            if name.is_some_and(|name| path.file_stem().is_none_or(|stem| stem != name)) {
                continue;
            }
            match Self::open(&path) {
                Ok(seam) => found.push(seam),
                Err(AttachError::Nobody { .. }) => {}
                Err(error) => failed.push(error),
            }
        }
        (found, failed)
    }

    /// The cycle whose socket this is.
    ///
    /// # Errors
    /// Nobody answers, it speaks another version, or what it hands out is of another make.
    pub fn open(path: &Path) -> Result<Self, AttachError> {
        let line = Line::to(path)?;
        let (reply, files) = line.ask(Request::Attach)?;
        let refuse = |why: String| AttachError::Refused { path: path.into(), why };
        if reply.status != Status::Done {
            return Err(refuse(line.why(&reply)));
        }
        let [document, state, diagnostics] = files.try_into().map_err(|files: Vec<_>| {
            refuse(format!("3 descriptors were expected, {} came", files.len()))
        })?;
        let region = |error| AttachError::Region { path: path.into(), error };
        // Only of a memory file; reading another one might never end.
        if !fcntl_get_seals(&document)
            .is_ok_and(|seals| seals.contains(SealFlags::WRITE | SealFlags::SHRINK))
        {
            return Err(refuse("its description is no sealed memory file".to_owned()));
        }
        let description = read_all(&File::from(document))
            .and_then(|document| Ok(serde_json::from_slice(&document)?))
            .map_err(|error| refuse(format!("its description cannot be read: {error}")))?;
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

    /// What it is.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// How it stands: a reader to keep, to clone, to send to other threads.
    #[must_use]
    pub fn state(&self) -> state::Reader {
        self.state.clone()
    }

    /// What it tells of itself: a JSON document, refreshed a few times a second.
    ///
    /// # Errors
    /// That there is none.
    pub fn diagnostics(&self) -> Result<String, ReadError> {
        self.diagnostics.read()
    }

    /// Takes the command lease: it is one process's at a time, and given back when the writer is dropped, or its process
    /// ends however it may.
    ///
    /// # Errors
    /// Somebody else has it, this user may not, or the cycle has ended.
    pub fn command(&self) -> Result<command::Writer, LeaseError> {
        let (line, reply, files) = self.ask_until_ready(Request::Lease).map_err(LeaseError::Attach)?;
        match (reply.status, files.first()) {
            (Status::Done, Some(file)) => Ok(command::Writer::open(file.as_fd(), line)?),
            (Status::Taken, _) => Err(LeaseError::Taken { process: reply.numbers[0] }),
            (Status::NotPermitted, _) => Err(LeaseError::NotPermitted { why: reply.text }),
            _ => Err(LeaseError::Refused { why: line.why(&reply) }),
        }
    }

    /// Opens a port: it is one client's at a time, and closed when the channel is dropped, or its process ends however it
    /// may. One whose real-time thread has not bound it yet is waited for, for two seconds at most.
    ///
    /// # Errors
    /// There is no such port, somebody else has it open, this user may not, or the cycle has ended.
    pub fn port(&self, name: &str) -> Result<Channel, PortError> {
        let port = name.to_owned();
        let known = || self.description.ports.iter().map(|port| port.name.clone()).collect();
        if !(1..=LONGEST_NAME).contains(&name.len()) {
            return Err(PortError::NoSuchPort { port, known: known() });
        }
        let (line, reply, files) = self.ask_until_ready(Request::Port(name)).map_err(PortError::Attach)?;
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
            _ => Err(PortError::Refused { port, why: line.why(&reply) }),
        }
    }

    /// Asks on a line of its own, again while the real-time side is not ready. What a process had that is no more, the
    /// kernel gives back a moment after its death.
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

    /// Whether the process that ran it is gone, or has closed its seam. The last state stays readable.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.line.has_ended()
    }

    /// Name of the seam: the robot's, unless told.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process that runs it.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process
    }

    /// The user who runs it, as the kernel says.
    #[must_use]
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Its socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// All bytes of a file; its place for reading is shared with others, and left alone.
fn read_all(file: &File) -> std::io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > LONGEST_DESCRIPTION {
        return Err(std::io::Error::other(format!("{length} bytes, more than {LONGEST_DESCRIPTION}")));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Path of the seam's socket; overrides the search.
pub const VARIABLE: &str = "ONBEAT_SEAM";

const LONGEST_DESCRIPTION: u64 = 64 << 20;

#[cfg(test)]
mod tests;
