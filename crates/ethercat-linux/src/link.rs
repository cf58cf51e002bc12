//! Links: the wire, the simulated wire, and what can be wrapped around either.

mod capture;
mod direct;
mod faulty;
mod lock;
pub(crate) mod packet;
mod pcapng;
mod simulated;

pub use capture::{Capture, CaptureError, CaptureSummary};
pub use direct::DirectLink;
pub use faulty::{FaultCounts, FaultRates, Faults, Faulty};
pub use lock::Owner;
pub use packet::{OpenError, PacketLink};
pub use simulated::{SIMULATED_SYSTEM_CALLS, SegmentControl, SimulatedLink};

use std::io;
use std::time::Duration;

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
}

impl<L: Link + ?Sized> Link for Box<L> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        (**self).transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        (**self).receive(buffer, timeout)
    }
}

impl<L: Link + ?Sized> Link for &mut L {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        (**self).transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        (**self).receive(buffer, timeout)
    }
}
