//! Links: the wire, the simulated wire, and what can be wrapped around either.

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

    /// State of the ring, once frames have shown it; `None` for a link without one.
    fn ring(&self) -> Option<Ring> {
        None
    }
}

impl<L: Link + ?Sized> Link for Box<L> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        (**self).transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        (**self).receive(buffer, timeout)
    }

    fn ring(&self) -> Option<Ring> {
        (**self).ring()
    }
}

impl<L: Link + ?Sized> Link for &mut L {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        (**self).transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        (**self).receive(buffer, timeout)
    }

    fn ring(&self) -> Option<Ring> {
        (**self).ring()
    }
}
