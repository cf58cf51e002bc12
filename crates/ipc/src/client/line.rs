//! A client's connection to the server.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::{Errno, fcntl_dupfd_cloexec, retry_on_intr};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, Shutdown, recvmsg, send,
    shutdown,
};

use super::{AttachError, Refusal};
use crate::channel::far::has_hung_up;
use crate::place;
use crate::service::protocol::{LONGEST_REPLY, Malformed, Reply, Request, VERSION};

/// Connection to the server; it ends with the cycle, and whatever was granted on it ends with it.
#[derive(Debug)]
pub(crate) struct Line {
    socket: OwnedFd,
    path: PathBuf,
    user: u32,
    /// Process that owns the connection: a forked child inherits the descriptor but does not end
    /// the connection.
    process: u32,
}

impl Line {
    pub(super) fn to(path: &Path) -> Result<Self, AttachError> {
        let socket = place::connect_to(path).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
                AttachError::NoServer { path: path.into() }
            }
            io::ErrorKind::WouldBlock => AttachError::Silent { path: path.into() },
            _ => AttachError::System { path: path.into(), source: explained(error) },
        })?;
        let user = socket_peercred(&socket)
            .map_err(|error| AttachError::System { path: path.into(), source: error.into() });
        let user = user?.uid.as_raw();
        Ok(Self { socket, path: path.into(), user, process: std::process::id() })
    }

    /// Sends a request and waits for the reply, for a few seconds at most.
    pub(super) fn ask(&self, request: Request<'_>) -> Result<(Reply, Vec<OwnedFd>), AttachError> {
        let failed = |error: Errno| match error {
            Errno::AGAIN => AttachError::Silent { path: self.path.clone() },
            Errno::PIPE | Errno::CONNRESET => AttachError::NoServer { path: self.path.clone() },
            error => AttachError::System { path: self.path.clone(), source: error.into() },
        };
        match retry_on_intr(|| send(&self.socket, &request.emit(), SendFlags::NOSIGNAL)) {
            // A server that turns a client away sends the reason and closes before it reads the
            // request: the reason is still to be received.
            Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => {}
            Err(error) => return Err(failed(error)),
        }
        let mut bytes = vec![0; LONGEST_REPLY];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut receive = || {
            retry_on_intr(|| {
                let mut slices = [IoSliceMut::new(&mut bytes)];
                recvmsg(&self.socket, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)
            })
        };
        let received = match receive() {
            // The server closed before it had read the request: the kernel reports that once, and
            // then delivers the server's data.
            Err(Errno::CONNRESET) => receive(),
            other => other,
        };
        let received = received.map_err(failed)?;
        let files = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let files: Vec<OwnedFd> = files.flatten().collect();
        // Descriptors that this process has no space for are left out by the kernel, without an
        // error.
        if received.flags.contains(ReturnFlags::CTRUNC)
            && let Err(error) = fcntl_dupfd_cloexec(&self.socket, 0)
        {
            let source = place::limited(error.into());
            return Err(AttachError::System { path: self.path.clone(), source });
        }
        if received.bytes == 0 {
            return Err(AttachError::NoServer { path: self.path.clone() });
        }
        match Reply::parse(&bytes[..received.bytes]) {
            Ok(reply) => Ok((reply, files)),
            Err(Malformed::Version(found)) => {
                Err(AttachError::Version { path: self.path.clone(), expected: VERSION, found })
            }
            Err(Malformed::Magic | Malformed::Content) => {
                Err(AttachError::Refused { path: self.path.clone(), source: Refusal::NoIpc })
            }
        }
    }

    /// Id of the user that listens at the other end.
    pub(super) fn user(&self) -> u32 {
        self.user
    }

    /// True if the other end is closed.
    pub(crate) fn has_ended(&self) -> bool {
        has_hung_up(&self.socket)
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The same error, with its meaning for a client that attaches.
fn explained(error: io::Error) -> io::Error {
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "only the cycle's user, root and the group of its robot file's [ipc] may enter"
        }
        _ if Errno::from_io_error(&error) == Some(Errno::PROTOTYPE) => {
            "expected the socket of a cycle, found that of another program"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{error}; {why}"))
}

impl Drop for Line {
    fn drop(&mut self) {
        // Closing the descriptor alone would leave the connection open as long as a child has it.
        if self.process == std::process::id() {
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
    }
}
