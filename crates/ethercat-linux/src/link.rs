//! Links: the wire, the simulated wire, and wrappers around either.

mod capture;
mod direct;
mod faulty;
pub(crate) mod interface;
mod interface_link;
mod lock;
mod open_error;
mod packet;
mod pcapng;
mod redundant;
pub(crate) mod simulated;
mod xdp;

pub use capture::{Capture, CaptureError, CaptureSummary};
pub use direct::{DirectEnd, DirectLink};
pub use faulty::{FaultChanges, FaultControl, FaultCounts, FaultRates, Faults, Faulty};
pub use interface_link::{InterfaceLink, LinkKind};
pub use lock::{Owner, owner};
pub use open_error::OpenError;
pub use packet::PacketLink;
pub use redundant::{Redundant, RingError};
pub use simulated::{SIMULATED_SYSTEM_CALLS, SegmentControl, SimulatedLink};
pub use xdp::{XdpLink, XdpMode};

use std::io;
use std::time::Duration;

use ethercat::redundancy::Ring;

/// Carries whole Ethernet frames between a MainDevice and its segment.
///
/// Both calls run on the real-time path: an implementation neither allocates nor logs.
pub trait Link {
    /// Sends one frame.
    ///
    /// # Errors
    /// The operating system's error; the frame is then not on the wire.
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()>;

    /// Takes the next received frame into `buffer` and returns its length, or `None` if none came
    /// within `timeout`. [`Duration::ZERO`] never waits.
    ///
    /// # Errors
    /// The operating system's error; an expired timeout is not an error.
    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>>;

    /// Takes the next received frame if one is waiting, and calls `take` with it: in `buffer`, or
    /// in the link's memory if it has some. True if there was one.
    ///
    /// # Errors
    /// As [`Link::receive`].
    fn receive_in_place(&mut self, buffer: &mut [u8], take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let received = self.receive(buffer, Duration::ZERO)?;
        received.inspect(|&length| take(&buffer[..length]));
        Ok(received.is_some())
    }

    /// State of the ring, once frames have shown it; `None` for a link without one.
    fn ring(&self) -> Option<Ring> {
        None
    }

    /// Time of the calling thread that went into SubDevices that are simulated in it, since this
    /// was last called; zero for others.
    fn take_simulation_time(&mut self) -> Duration {
        Duration::ZERO
    }
}

impl<L: Link + ?Sized> Link for Box<L> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        (**self).transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        (**self).receive(buffer, timeout)
    }

    fn receive_in_place(&mut self, buffer: &mut [u8], take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        (**self).receive_in_place(buffer, take)
    }

    fn ring(&self) -> Option<Ring> {
        (**self).ring()
    }

    fn take_simulation_time(&mut self) -> Duration {
        (**self).take_simulation_time()
    }
}

impl<L: Link + ?Sized> Link for &mut L {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        (**self).transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        (**self).receive(buffer, timeout)
    }

    fn receive_in_place(&mut self, buffer: &mut [u8], take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        (**self).receive_in_place(buffer, take)
    }

    fn ring(&self) -> Option<Ring> {
        (**self).ring()
    }

    fn take_simulation_time(&mut self) -> Duration {
        (**self).take_simulation_time()
    }
}

/// Copies a frame into `buffer`, cut where that ends; its length there.
fn copy(frame: &[u8], buffer: &mut [u8]) -> usize {
    let length = frame.len().min(buffer.len());
    buffer[..length].copy_from_slice(&frame[..length]);
    length
}
