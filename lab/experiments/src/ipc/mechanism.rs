//! Mechanisms of communication between threads, behind a common interface.

use std::io;
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ipc::channel::{Channel, Kind, Port, Wake};
use ipc::client::Client;
use ipc::description::Description;
use ipc::server::{Builder, Endpoints, Server};
use rustix::event::{EventfdFlags, eventfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::futex;

use crate::Error;
use crate::child::SocketFolder;
use crate::sys::message_queue::{MessageQueue, Semaphore};
use crate::sys::mutex::{Held, PosixMutex, Protocol};

/// Mechanism by which two threads take turns.
pub(super) trait Mechanism: Parties {
    /// Calls the mechanism `times` times, with no thread waiting and without having to wait.
    fn calls(&self, times: u32) -> io::Result<()>;
}

/// Its two sides.
pub(super) trait Parties: Sync {
    /// Creates a party, on the thread that uses it. The caller has the first turn.
    fn party(&self, role: Role) -> io::Result<Box<dyn Party + '_>>;
}

/// Role of a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Has the first turn.
    Caller,
    /// Answers.
    Callee,
}

/// Side of a mechanism: one of two threads that take turns.
pub(super) trait Party {
    /// Gives the turn away, and wakes the other thread if it sleeps.
    fn give(&mut self) -> io::Result<()>;

    /// Sleeps until the turn is given back.
    fn take(&mut self) -> io::Result<()>;
}

/// Direction of a mechanism: sending, and sleeping until something was sent.
trait Signal: Sync {
    fn send(&self) -> io::Result<()>;
    fn receive(&self) -> io::Result<()>;
}

/// Mechanism of one [`Signal`] in each direction.
pub(super) struct ThereAndBack<S> {
    there: S,
    back: S,
}

impl<S: Signal> Mechanism for ThereAndBack<S> {
    fn calls(&self, times: u32) -> io::Result<()> {
        for _ in 0..times {
            self.there.send()?;
            self.there.receive()?;
        }
        Ok(())
    }
}

impl<S: Signal> Parties for ThereAndBack<S> {
    fn party(&self, role: Role) -> io::Result<Box<dyn Party + '_>> {
        Ok(match role {
            Role::Caller => Box::new(Ends { gives: &self.there, takes: &self.back }),
            Role::Callee => Box::new(Ends { gives: &self.back, takes: &self.there }),
        })
    }
}

struct Ends<'a, S> {
    gives: &'a S,
    takes: &'a S,
}

impl<S: Signal> Party for Ends<'_, S> {
    fn give(&mut self) -> io::Result<()> {
        self.gives.send()
    }

    fn take(&mut self) -> io::Result<()> {
        self.takes.receive()
    }
}

/// `sem_post` and `sem_wait`.
pub(super) fn semaphore() -> io::Result<ThereAndBack<Semaphore>> {
    Ok(ThereAndBack { there: Semaphore::new()?, back: Semaphore::new()? })
}

impl Signal for Semaphore {
    fn send(&self) -> io::Result<()> {
        self.post()
    }

    fn receive(&self) -> io::Result<()> {
        self.wait()
    }
}

/// `mq_send` and `mq_receive` of eight bytes.
pub(super) fn message_queue() -> io::Result<ThereAndBack<MessageQueue>> {
    Ok(ThereAndBack { there: MessageQueue::new(MESSAGE.len())?, back: MessageQueue::new(MESSAGE.len())? })
}

/// Bytes sent through descriptors: as many as an eventfd takes.
pub(super) const MESSAGE: [u8; 8] = 1_u64.to_ne_bytes();

impl Signal for MessageQueue {
    fn send(&self) -> io::Result<()> {
        self.send(&MESSAGE)
    }

    fn receive(&self) -> io::Result<()> {
        self.receive(&mut [0; MESSAGE.len()])
    }
}

/// `write` and `read` of eight bytes of a pipe.
pub(super) fn pipe() -> io::Result<ThereAndBack<Descriptors>> {
    let one =
        || pipe_with(PipeFlags::CLOEXEC).map(|(read, write)| Descriptors { write: Some(write), read });
    Ok(ThereAndBack { there: one()?, back: one()? })
}

/// `write` and `read` of an eventfd.
pub(super) fn event() -> io::Result<ThereAndBack<Descriptors>> {
    let one = || eventfd(0, EventfdFlags::CLOEXEC).map(|read| Descriptors { write: None, read });
    Ok(ThereAndBack { there: one()?, back: one()? })
}

/// Descriptors to write and read eight bytes.
pub(super) struct Descriptors {
    /// Write end; `None` if one descriptor serves both.
    write: Option<OwnedFd>,
    read: OwnedFd,
}

impl Signal for Descriptors {
    fn send(&self) -> io::Result<()> {
        again(|| rustix::io::write(self.write.as_ref().unwrap_or(&self.read), &MESSAGE))
    }

    fn receive(&self) -> io::Result<()> {
        let mut bytes = MESSAGE;
        again(|| rustix::io::read(&self.read, &mut bytes))
    }
}

/// Repeats an interrupted call: eight bytes are read and written whole or not at all, so only
/// signals interrupt.
fn again(mut work: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<()> {
    loop {
        match work() {
            Ok(length) if length == MESSAGE.len() => return Ok(()),
            Ok(length) => {
                let message = format!("moved {length} bytes, expected {}", MESSAGE.len());
                return Err(io::Error::new(ErrorKind::UnexpectedEof, message));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Word that is set and cleared, with a futex to sleep on.
pub(super) fn bare_futex() -> ThereAndBack<Word> {
    ThereAndBack { there: Word::default(), back: Word::default() }
}

/// Word that is 1 while there is something to take.
#[derive(Default)]
pub(super) struct Word(AtomicU32);

impl Signal for Word {
    /// Always makes the system call to wake: its cost is what is measured.
    fn send(&self) -> io::Result<()> {
        // Partner: the Acquire in `receive`.
        self.0.store(1, Ordering::Release);
        futex::wake(&self.0, futex::Flags::PRIVATE, 1)?;
        Ok(())
    }

    fn receive(&self) -> io::Result<()> {
        loop {
            // Partner: the Release in `send`.
            if self.0.swap(0, Ordering::Acquire) == 1 {
                return Ok(());
            }
            match futex::wait(&self.0, futex::Flags::PRIVATE, 0, None) {
                Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Three mutexes for two parties: each party holds one to release, and waits for one that the other
/// holds.
///
/// The caller starts with 0 and 1, the callee with 2. The party with the turn holds two; it gives
/// the turn away by releasing the one the other waits for, then waits for the third. Every
/// hand-over is of a mutex with a sleeping waiter.
pub(super) struct Mutexes([PosixMutex; 3]);

/// `pthread_mutex_lock` and `_unlock`.
pub(super) fn mutex(protocol: Protocol) -> io::Result<Mutexes> {
    let new = || PosixMutex::new(protocol);
    Ok(Mutexes([new()?, new()?, new()?]))
}

impl Mechanism for Mutexes {
    fn calls(&self, times: u32) -> io::Result<()> {
        for _ in 0..times {
            drop(self.0[0].lock()?);
        }
        Ok(())
    }
}

impl Parties for Mutexes {
    fn party(&self, role: Role) -> io::Result<Box<dyn Party + '_>> {
        let mut held = [None, None, None];
        let (holds, gives, takes): (&[usize], _, _) = match role {
            Role::Caller => (&[0, 1], 1, 2),
            Role::Callee => (&[2], 2, 1),
        };
        for &mutex in holds {
            held[mutex] = Some(self.0[mutex].lock()?);
        }
        Ok(Box::new(Holder { mutexes: &self.0, held, gives, takes }))
    }
}

struct Holder<'a> {
    mutexes: &'a [PosixMutex; 3],
    held: [Option<Held<'a>>; 3],
    gives: usize,
    takes: usize,
}

impl Party for Holder<'_> {
    fn give(&mut self) -> io::Result<()> {
        self.held[self.gives] = None;
        self.gives = before(self.gives);
        Ok(())
    }

    fn take(&mut self) -> io::Result<()> {
        let next = self.takes;
        self.held[next] = Some(self.mutexes[next].lock()?);
        self.takes = before(next);
        Ok(())
    }
}

fn before(mutex: usize) -> usize {
    (mutex + 2) % 3
}

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
