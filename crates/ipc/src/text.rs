//! Text requests to a running program: a packet with a line, and a packet with the answer.
//!
//! The sockets lie in the folders of cycles' sockets, with a suffix for each [`Kind`] of program.
//! Only the user that runs the program, and root, may connect. The server is an ordinary thread and
//! waits for no client: it disconnects a client that sends an invalid line, does not take its
//! answer, or stays without a request.

mod client;
mod serve;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::place::{self, Placed};
use crate::server::OpenError;
use crate::service::protocol::LONGEST_NAME;
use serve::Serve;

pub use client::{AskError, Client};

/// Kind of program that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Suffix of its sockets; that of cycles is `sock`.
    pub suffix: &'static str,
    /// Name for people, as in "no simulator runs".
    pub name: &'static str,
    /// Command that starts one.
    pub start: &'static str,
}

/// Answer to a request; an error is a refusal.
pub type Answer = Result<String, String>;

/// Bytes of a request at most.
pub const LONGEST_REQUEST: usize = 4096;

/// Bytes of an answer at most; a longer one is cut.
pub const LONGEST_ANSWER: usize = 64 << 10;

/// Before the text of an answer.
const DONE: u8 = b'+';

/// Before the text of a refusal.
const REFUSED: u8 = b'-';

/// A program that answers. Dropping it ends its thread and removes the socket.
#[derive(Debug)]
pub struct Server {
    placed: Placed,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers at the socket of this name, in the folder of cycles' sockets, from a thread that
    /// this one starts. Call it from an ordinary thread: threads inherit scheduling and affinity of
    /// the thread that starts them.
    ///
    /// # Errors
    /// The name cannot be that of a file, another program of its kind has it
    /// ([`PlaceError::Taken`](place::PlaceError)), or the system refuses folder, socket or thread.
    pub fn open(
        kind: &Kind,
        name: &str,
        answer: impl FnMut(&str) -> Answer + Send + 'static,
    ) -> Result<Self, OpenError> {
        Self::open_at(None, kind, name, answer)
    }

    /// The same in another folder.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(
        folder: &Path,
        kind: &Kind,
        name: &str,
        answer: impl FnMut(&str) -> Answer + Send + 'static,
    ) -> Result<Self, OpenError> {
        Self::open_at(Some(folder), kind, name, answer)
    }

    fn open_at(
        folder: Option<&Path>,
        kind: &Kind,
        name: &str,
        answer: impl FnMut(&str) -> Answer + Send + 'static,
    ) -> Result<Self, OpenError> {
        let is_file_name = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']);
        if !is_file_name || name.len() > LONGEST_NAME {
            return Err(OpenError::Name { name: name.to_owned() });
        }
        let listening = place::open(folder, name, kind.suffix, 0o600, None)?;
        let placed = Placed::at(listening.path)?;
        let serve = Serve::new(listening.socket, Box::new(answer))?;
        let wake = serve.wake();
        let thread = std::thread::Builder::new().name("onbeat-text".into()).spawn(move || serve.run())?;
        Ok(Self { placed, wake, thread: Some(thread) })
    }

    /// Path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.placed.path()
    }

    /// Name of the socket.
    #[must_use]
    pub fn name(&self) -> String {
        name_of(self.path())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Folders that were searched, for people.
fn listed(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// True if a program that has ended left its socket behind.
fn is_dead(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}
