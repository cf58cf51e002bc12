//! The program and the sockets of an interface, or one sentence for each reason that they fail.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use super::XdpMode;
use crate::link::OpenError;
use crate::link::interface::Interface;
use crate::sys::bpf::{Place, Redirect, Step};
use crate::sys::xdp_socket::XdpSocket;
use rt::clock::{Clock, MonotonicClock};

/// Demands on the way of a link's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// None but a driver that runs the program itself.
    pub(crate) native: bool,
    pub(crate) polled: bool,
}

/// Queues that are served: one more is refused.
const MOST_QUEUES: u32 = 64;

/// Time for the kernel to release the program and the queue of a dropped link: that waits for the
/// lock of all interfaces, and for processes that were being started meanwhile.
const TIMEOUT: Duration = Duration::from_secs(3);

/// An interface's program and sockets.
pub(crate) struct Attached {
    pub(super) redirect: Redirect,
    pub(super) sockets: Vec<XdpSocket>,
    pub(super) mode: XdpMode,
}

impl Attached {
    /// Attaches the program, gives it a socket for each queue, and waits for the carrier.
    pub(crate) fn to(
        interface: &Interface,
        timeout: Option<Duration>,
        demand: Demand,
    ) -> Result<Self, OpenError> {
        let (redirect, native) = redirect(interface, demand.native)?;
        let sockets = sockets(interface, !native)?;
        for (queue, socket) in (0..).zip(&sockets) {
            if demand.polled {
                socket.prefer_polling().map_err(|source| match source.raw_os_error() {
                    Some(libc::ENOPROTOOPT) => {
                        OpenError::XdpNoPolling { interface: interface.name.clone() }
                    }
                    _ => explained(interface, source),
                })?;
            }
            redirect.give(queue, socket.as_fd()).map_err(|source| explained(interface, source))?;
        }
        interface.await_carrier(timeout)?;
        let zero_copy = sockets.iter().all(XdpSocket::is_zero_copy);
        let mode = XdpMode { native, zero_copy, polled: demand.polled, queues: sockets.len() };
        Ok(Self { redirect, sockets, mode })
    }
}

/// The program in the driver if that takes it, else behind it.
fn redirect(interface: &Interface, native_only: bool) -> Result<(Redirect, bool), OpenError> {
    let is_taken = |step: &Step| matches!(step, Step::Attach(source) if is_taken(source));
    let attach = |place| once_free(|| Redirect::attach(interface.index, MOST_QUEUES, place), is_taken);
    match attach(Place::Driver) {
        Ok(redirect) => return Ok((redirect, true)),
        Err(Step::Attach(source)) if is_drivers_own(&source) => {
            if native_only {
                return Err(OpenError::XdpNotInDriver { interface: interface.name.clone(), source });
            }
        }
        Err(Step::Load(source) | Step::Attach(source)) => return Err(explained(interface, source)),
    }
    match attach(Place::Generic) {
        Ok(redirect) => Ok((redirect, false)),
        Err(Step::Load(source) | Step::Attach(source)) => Err(explained(interface, source)),
    }
}

/// True if it is the driver that refuses, and not the kernel before it.
fn is_drivers_own(source: &io::Error) -> bool {
    let kernels = [libc::EPERM, libc::EACCES, libc::EBUSY, libc::EEXIST, libc::ENODEV];
    source.raw_os_error().is_some_and(|code| !kernels.contains(&code))
}

/// A socket for each queue. No call returns the number of queues on every kernel: the first queue
/// that does not exist is refused.
fn sockets(interface: &Interface, copied: bool) -> Result<Vec<XdpSocket>, OpenError> {
    let mut sockets = Vec::new();
    for queue in 0..=MOST_QUEUES {
        match bind(interface.index, queue, copied) {
            Ok(_) if queue == MOST_QUEUES => break,
            Ok(socket) => sockets.push(socket),
            Err(error) if queue > 0 && error.raw_os_error() == Some(libc::EINVAL) => return Ok(sockets),
            Err(error) => return Err(explained(interface, error)),
        }
    }
    Err(OpenError::XdpQueues { interface: interface.name.clone(), most: MOST_QUEUES })
}

/// Binds a socket to a queue, the first to send, too.
fn bind(index: u32, queue: u32, copied: bool) -> io::Result<XdpSocket> {
    once_free(|| XdpSocket::bind(index, queue, queue == 0, copied), is_taken)
}

/// Tries again while it is taken: the kernel releases a link's resources a moment after the link is
/// dropped.
fn once_free<T, E>(attempt: impl Fn() -> Result<T, E>, is_taken: impl Fn(&E) -> bool) -> Result<T, E> {
    let clock = MonotonicClock;
    let end = clock.now() + TIMEOUT;
    loop {
        match attempt() {
            Err(error) if is_taken(&error) && clock.now() < end => {
                clock.sleep_until(clock.now() + Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

/// True if another has it, or had it a moment ago.
fn is_taken(source: &io::Error) -> bool {
    matches!(source.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// The error of a call for AF_XDP, with a remedy.
fn explained(interface: &Interface, source: io::Error) -> OpenError {
    let interface = interface.name.clone();
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => OpenError::XdpNotPermitted { interface },
        _ if is_taken(&source) => OpenError::XdpTaken { interface },
        Some(libc::ENETDOWN) => OpenError::InterfaceDown { interface },
        Some(libc::ENOBUFS | libc::ENOMEM) => OpenError::XdpMemory { interface },
        Some(libc::EAFNOSUPPORT | libc::EINVAL | libc::ENOSYS) => {
            OpenError::XdpUnsupported { interface, source }
        }
        _ if source.kind() == io::ErrorKind::Unsupported => OpenError::XdpUnsupported { interface, source },
        _ => OpenError::XdpRefused { interface, source },
    }
}
