//! The network interface of a run: why it carries no frames, in words.

use std::io;

use ethercat_linux::link::{OpenError, PacketLink};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, netdevice, socket};

/// Network interface of a run, examined when frames are missing. A simulated bus has none.
#[derive(Default)]
pub(super) struct Interface {
    name: Option<String>,
    /// Its index, which does not change with its name.
    index: Option<u32>,
    trouble: Option<String>,
}

impl Interface {
    pub(super) fn new(name: Option<String>) -> Self {
        let index = name.as_deref().and_then(|name| index(name).ok());
        Self { name, index, trouble: None }
    }

    /// Reason that it carries no frames now, with the remedy; kept until frames arrive. `code` is
    /// the error of the operating system for a frame that it did not send or receive.
    pub(super) fn look(&mut self, mut code: Option<i32>) -> Option<&str> {
        let name = self.name.as_mut()?;
        match self.index.map(name_of) {
            Some(Ok(now)) => *name = now,
            Some(Err(Errno::NODEV)) => code = Some(Errno::NODEV.raw_os_error()),
            _ => {}
        }
        if let Some(trouble) = trouble(name, code) {
            self.trouble = Some(trouble);
        }
        self.trouble.as_deref()
    }

    /// Frames come and go again.
    pub(super) fn works(&mut self) {
        self.trouble = None;
    }

    /// Result of the last look.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// As people call it.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

fn index(name: &str) -> Result<u32, Errno> {
    netdevice::name_to_index(socket(AddressFamily::UNIX, SocketType::DGRAM, None)?, name)
}

/// As it is called now.
fn name_of(index: u32) -> Result<String, Errno> {
    netdevice::index_to_name(socket(AddressFamily::UNIX, SocketType::DGRAM, None)?, index)
}

fn trouble(name: &str, code: Option<i32>) -> Option<String> {
    let gone = || format!("interface {name}: it was removed; plug it in again, or name another");
    // packet(7): of these an interface that was removed, even if another has its name by now.
    let removed = [Errno::NXIO, Errno::NODEV].map(Errno::raw_os_error);
    if code.is_some_and(|code| removed.contains(&code)) {
        return Some(gone());
    }
    match PacketLink::check(name) {
        Err(OpenError::NoSuchInterface { .. }) => Some(gone()),
        Err(error @ (OpenError::InterfaceDown { .. } | OpenError::NoCarrier { .. })) => {
            Some(error.to_string())
        }
        _ => code.map(|code| format!("interface {name}: {}", io::Error::from_raw_os_error(code))),
    }
}
