//! The program that asks.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{Answer, DONE, Kind, LONGEST_ANSWER, LONGEST_REQUEST, is_dead, listed, name_of};
use crate::place;

/// Connection to a program that answers text requests.
#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
    path: PathBuf,
}

/// Reason for an answer that did not come.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No such program runs.
    #[error(
        "no {}{} runs: no process answers in {}; start one with {}",
        kind.name,
        name.as_ref().map_or(String::new(), |name| format!(" called `{name}`")),
        listed(folders),
        kind.start
    )]
    NoServer {
        /// Kind of program.
        kind: Kind,
        /// Name that was searched for.
        name: Option<String>,
        /// Folders that were searched.
        folders: Vec<PathBuf>,
    },
    /// Several run.
    #[error("several {}s run; name one of {}", kind.name, names.join(", "))]
    Several {
        /// Kind of program.
        kind: Kind,
        /// Their names.
        names: Vec<String>,
    },
    /// The request is longer than any.
    #[error("a request of {length} bytes, expected at most {LONGEST_REQUEST}")]
    Long {
        /// Its length.
        length: usize,
    },
    /// It does not answer.
    #[error("{}: no answer within 5 s, or the program has ended", path.display())]
    Silent {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("{}: {error}", path.display())]
    System {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
}

types::debug_is_sentence!(AskError);

impl Client {
    /// Connects to the program of this kind and name, of this user or of root; without a name to
    /// the only one.
    ///
    /// # Errors
    /// There is none, there are several, or the one there is cannot be reached.
    pub fn find(kind: &Kind, name: Option<&str>) -> Result<Self, AskError> {
        Self::find_in(place::all(), kind, name)
    }

    fn find_in(folders: Vec<PathBuf>, kind: &Kind, name: Option<&str>) -> Result<Self, AskError> {
        let (mut found, mut failed) = (Vec::new(), None);
        for path in folders.iter().flat_map(|folder| place::sockets(folder, kind.suffix)) {
            if name.is_some_and(|name| name != name_of(&path)) {
                continue;
            }
            match place::connect_to(&path) {
                Ok(socket) => found.push(Self { socket, path }),
                Err(error) if is_dead(&error) => {}
                Err(error) => failed = Some(AskError::System { path, error }),
            }
        }
        match (found.len(), failed) {
            (1, _) => Ok(found.remove(0)),
            (0, Some(error)) => Err(error),
            (0, None) => Err(match place::unseen(&folders) {
                Some((path, error)) => AskError::System { path, error },
                None => AskError::NoServer { kind: *kind, name: name.map(str::to_owned), folders },
            }),
            _ => {
                let names = found.iter().map(|it| name_of(&it.path)).collect();
                Err(AskError::Several { kind: *kind, names })
            }
        }
    }

    /// Connects to the socket at this path.
    ///
    /// # Errors
    /// The system's: no socket listens there, or this user may not connect.
    pub fn open(path: &Path) -> Result<Self, AskError> {
        match place::connect_to(path) {
            Ok(socket) => Ok(Self { socket, path: path.into() }),
            Err(error) => Err(AskError::System { path: path.into(), error }),
        }
    }

    /// Asks, and waits for the answer, for a few seconds at most.
    ///
    /// # Errors
    /// No answer comes. A refusal is an answer.
    pub fn ask(&self, text: &str) -> Result<Answer, AskError> {
        if text.len() > LONGEST_REQUEST {
            return Err(AskError::Long { length: text.len() });
        }
        let failed = |error: Errno| match error {
            Errno::AGAIN | Errno::PIPE | Errno::CONNRESET => AskError::Silent { path: self.path.clone() },
            error => AskError::System { path: self.path.clone(), error: error.into() },
        };
        retry_on_intr(|| send(&self.socket, text.as_bytes(), SendFlags::NOSIGNAL)).map_err(failed)?;
        let mut buffer = vec![0; LONGEST_ANSWER];
        let received = retry_on_intr(|| recv(&self.socket, &mut buffer[..], RecvFlags::empty()));
        let (length, _) = received.map_err(failed)?;
        let Some((kind, text)) = buffer[..length].split_first() else {
            return Err(AskError::Silent { path: self.path.clone() });
        };
        let text = String::from_utf8_lossy(text).into_owned();
        Ok(if *kind == DONE { Ok(text) } else { Err(text) })
    }
}
