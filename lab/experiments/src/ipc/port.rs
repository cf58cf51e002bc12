//! Our port as a mechanism between two threads: the caller has its real-time end, the callee the
//! other.

use std::io::{self, ErrorKind, Write};
use std::sync::Mutex;
use std::time::Duration;

use ipc::channel::{Channel, Kind, Port, Wake};
use ipc::client::Client;
use ipc::description::Description;
use ipc::server::{Builder, Endpoints, Server};

use super::mechanism::{MESSAGE, Parties, Party, Role};
use crate::Error;
use crate::socket_folder::SocketFolder;

/// A port with a send that wakes the other side.
pub(super) struct WakingPort {
    port: Mutex<Option<Port>>,
    channel: Mutex<Option<Channel>>,
    _open: Mutex<(Endpoints, Server, SocketFolder)>,
}

/// Longest wait for the other side.
const TIMEOUT: Duration = Duration::from_secs(30);

impl WakingPort {
    /// Opens a separate interface with the port.
    ///
    /// # Errors
    /// The interface cannot be opened.
    pub(super) fn open() -> Result<Self, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::other(format_args!("ipc, our port: {error}"));
        let folder = SocketFolder::new("port")?;
        let mut builder = Builder::new("port", &Description::default());
        builder.folder(&folder.0);
        let kind = Kind::Message { size: MESSAGE.len(), depth: 16 };
        let mut port = builder.port_waking("port", kind, Wake::Event).map_err(|error| failed(&error))?;
        port.bind();
        let (ends, server) = builder.open().map_err(|error| failed(&error))?;
        let client = Client::open(server.path()).map_err(|error| failed(&error))?;
        let channel = client.port("port").map_err(|error| failed(&error))?;
        let (port, channel) = (Mutex::new(Some(port)), Mutex::new(Some(channel)));
        Ok(Self { port, channel, _open: Mutex::new((ends, server, folder)) })
    }
}

impl Parties for WakingPort {
    fn party(&self, role: Role) -> io::Result<Box<dyn Party + '_>> {
        fn take<T>(of: &Mutex<Option<T>>) -> io::Result<T> {
            let mut end = of.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            end.take().ok_or_else(|| io::Error::other("this end of the port is in use"))
        }
        Ok(match role {
            Role::Caller => Box::new(take(&self.port)?),
            Role::Callee => Box::new(take(&self.channel)?),
        })
    }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "no message within 30 s")
}

impl Party for Port {
    fn give(&mut self) -> io::Result<()> {
        self.send(&MESSAGE).map_err(io::Error::other)
    }

    fn take(&mut self) -> io::Result<()> {
        self.wait(TIMEOUT);
        self.receive(&mut [0; MESSAGE.len()]).map(drop).ok_or_else(late)
    }
}

impl Party for Channel {
    fn give(&mut self) -> io::Result<()> {
        self.write_all(&MESSAGE)
    }

    fn take(&mut self) -> io::Result<()> {
        self.recv_timeout(&mut [0; MESSAGE.len()], TIMEOUT)?.map(drop).ok_or_else(late)
    }
}
