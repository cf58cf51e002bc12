//! The server's end of a port: between the rings and the client's socket.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rtrb::{Consumer, Producer};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

use super::counters::{Counters, add};
use super::{Kind, Wake, record};
use types::PortKind;

use crate::description::PortDescription;

/// The server's end of a port.
#[derive(Debug)]
pub(crate) struct Far {
    name: Box<str>,
    kind: Kind,
    wake: Wake,
    out: Consumer<u8>,
    back: Producer<u8>,
    counters: Arc<Counters>,
    client: Option<Client>,
    buffer: Box<[u8]>,
}

/// The client that has the port open.
#[derive(Debug)]
struct Client {
    socket: OwnedFd,
    process: u32,
    /// It reads nothing more: the server does not wait for space in its socket.
    deaf: bool,
}

/// Reason for a port that was not opened.
#[derive(Debug)]
pub(crate) enum NotOpened {
    /// Open already by this process.
    By(u32),
    /// Not bound yet by the real-time thread.
    NotBound,
    /// A system call failed.
    System(io::Error),
}

impl Far {
    pub(super) fn new(
        name: &str,
        kind: Kind,
        wake: Wake,
        (out, back): (Consumer<u8>, Producer<u8>),
        counters: Arc<Counters>,
    ) -> Self {
        let buffer = match kind {
            Kind::Message { size, .. } => vec![0; size],
            Kind::Stream { size } => vec![0; size.min(16 << 10)],
        };
        Self { name: name.into(), kind, wake, out, back, counters, client: None, buffer: buffer.into() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn wake(&self) -> Wake {
        self.wake
    }

    pub(crate) fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// True if the server has to poll it: the real-time side does not notify, or it may free space,
    /// which it never notifies.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.client.is_some() && (self.wake == Wake::Look || !self.has_room())
    }

    /// Opens the port for a process of a user; returns its end of the socket.
    pub(crate) fn open(&mut self, process: u32, user: u32) -> Result<OwnedFd, NotOpened> {
        if !self.counters.bound.load(Ordering::Relaxed) {
            return Err(NotOpened::NotBound);
        }
        if let Some(client) = &self.client {
            if !has_hung_up(&client.socket) {
                return Err(NotOpened::By(client.process));
            }
            self.leave_behind();
        }
        let kind = match self.kind {
            Kind::Message { .. } => SocketType::SEQPACKET,
            Kind::Stream { .. } => SocketType::STREAM,
        };
        let ends = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
        let (socket, theirs) = ends.map_err(|error| NotOpened::System(error.into()))?;
        self.client = Some(Client { socket, process, deaf: false });
        // Before any of its data is in the ring.
        self.counters.client.store(u64::from(user) << 32 | u64::from(process), Ordering::Release);
        self.counters.open.store(true, Ordering::Relaxed);
        add(&self.counters.opened, 1);
        Ok(theirs)
    }

    /// Events the server polls for at this port; none while its ring is full, because a client that
    /// has hung up would then wake it continually. Space in the client's socket is such an event if
    /// something waits for it and the port is not polled.
    pub(crate) fn wait(&self) -> Option<PollFd<'_>> {
        let client = self.client.as_ref().filter(|_| self.has_room())?;
        let waits = self.wake != Wake::Look && !self.out.is_empty() && !client.deaf;
        let room = if waits { PollFlags::OUT } else { PollFlags::empty() };
        Some(PollFd::new(&client.socket, PollFlags::IN | room))
    }

    /// Moves all data that can be moved without waiting, in both directions.
    pub(crate) fn pump(&mut self) {
        let alive = self.pump_out() && self.pump_back();
        if !alive {
            self.close();
        }
    }

    /// Moves data to the client; true if it may still be there.
    fn pump_out(&mut self) -> bool {
        loop {
            let Some(client) = &self.client else { return true };
            let mut failed = None;
            let mut send = |bytes: &[u8]| {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                send(&client.socket, bytes, flags).map_err(|error| failed = Some(error)).ok()
            };
            let moved = match self.kind {
                Kind::Message { size, .. } => {
                    let sent = |message: &[u8]| send(message).is_some();
                    record::take(&mut self.out, size, &mut self.buffer, sent).map(|_| 1)
                }
                Kind::Stream { .. } => {
                    let Ok(chunk) = self.out.read_chunk(self.out.slots()) else { return true };
                    let sent = match chunk.as_slices().0 {
                        [] => None,
                        bytes => send(bytes),
                    };
                    sent.inspect(|&count| chunk.commit(count))
                }
            };
            match (moved, failed) {
                (Some(count), _) => add(&self.counters.delivered, count),
                (None, Some(Errno::INTR)) => {}
                // Data without space in the socket stays in the ring. A client that takes no more
                // may still have written something: `pump_back` finds out.
                (None, failed) => {
                    let deaf = failed.is_some_and(|error| error != Errno::AGAIN);
                    self.client.iter_mut().for_each(|client| client.deaf |= deaf);
                    return true;
                }
            }
        }
    }

    /// Moves data from the client; true if it may still be there.
    fn pump_back(&mut self) -> bool {
        while self.has_room() {
            let Some(client) = &self.client else { return true };
            let room = match self.kind {
                Kind::Message { size, .. } => size,
                Kind::Stream { .. } => self.back.slots().min(self.buffer.len()),
            };
            let buffer = &mut self.buffer[..room];
            match recv(&client.socket, &mut *buffer, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                Ok((_, 0)) => return false,
                Ok((_, length)) if length > room => add(&self.counters.dropped, 1),
                Ok((_, length)) => {
                    let bytes = &buffer[..length];
                    let count = match self.kind {
                        Kind::Message { size, .. } => usize::from(record::put(&mut self.back, size, bytes)),
                        Kind::Stream { .. } => self.back.push_entire_slice(bytes).map_or(0, |()| length),
                    };
                    self.counters.written(count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    fn has_room(&self) -> bool {
        match self.kind {
            Kind::Message { size, .. } => self.back.slots() >= record::HEADER + size,
            Kind::Stream { .. } => self.back.slots() > 0,
        }
    }

    /// Takes in the data of a former client, as far as there is space; the rest is dropped and
    /// counted.
    fn leave_behind(&mut self) {
        self.pump();
        if let Some(client) = &self.client {
            while let Ok((_, length @ 1..)) =
                recv(&client.socket, &mut *self.buffer, RecvFlags::DONTWAIT | RecvFlags::TRUNC)
            {
                let count = match self.kind {
                    Kind::Message { .. } => 1,
                    Kind::Stream { .. } => length.min(self.buffer.len()),
                };
                add(&self.counters.dropped, count);
            }
        }
        self.close();
    }

    fn close(&mut self) {
        self.client = None;
        self.counters.open.store(false, Ordering::Relaxed);
    }

    pub(crate) fn description(&self) -> PortDescription {
        let (kind, size, depth) = match self.kind {
            Kind::Message { size, depth } => (PortKind::Message, size, depth),
            Kind::Stream { size } => (PortKind::Stream, size, 0),
        };
        PortDescription { name: self.name.to_string(), kind, size, depth }
    }
}

/// True if the other end of a socket is closed.
pub(crate) fn has_hung_up(socket: &impl AsFd) -> bool {
    let mut wait = [PollFd::new(socket, PollFlags::RDHUP)];
    let soon = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR;
    rustix::event::poll(&mut wait, Some(&soon)).is_ok() && wait[0].revents().intersects(gone)
}
