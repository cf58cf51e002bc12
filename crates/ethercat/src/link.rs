//! The seam to the wire, and the other end of it.

use core::time::Duration;
use std::io;

use crate::time::Instant;

/// Longest Ethernet frame a link carries, without the frame check sequence (IEEE 802.3, 3.2.7).
pub const MAXIMUM_FRAME_LENGTH: usize = 1514;

/// Shortest Ethernet frame on the wire, without the frame check sequence; shorter ones are padded.
pub const MINIMUM_FRAME_LENGTH: usize = 60;

/// Carries whole Ethernet frames between a MainDevice and its segment.
///
/// Both calls run on the real-time path: an implementation neither allocates nor logs.
pub trait Link {
    /// Sends one frame.
    ///
    /// # Errors
    /// What the operating system says; the frame is then not on the wire.
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()>;

    /// Takes the next received frame into `buffer` and returns its length, or `None` if none came
    /// within `timeout`. [`Duration::ZERO`] never waits.
    ///
    /// # Errors
    /// What the operating system says; an expired timeout is not an error.
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

/// The far end of the cable: SubDevices that answer frames.
///
/// A real segment is silicon; the simulator implements this, and a simulated link or a process on a
/// real interface drives it.
pub trait Segment: Send {
    /// Passes one Ethernet frame through the SubDevices, changing it in place, and says whether it
    /// comes back to the sender: over a broken cable it does not, and one of another protocol where a SubDevice
    /// destroys those.
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool;

    /// Lets time pass up to `now` with no frame: plants move, watchdogs expire, mailboxes are served.
    fn advance(&mut self, now: Instant);
}

impl<S: Segment + ?Sized> Segment for Box<S> {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        (**self).process_frame(now, frame)
    }

    fn advance(&mut self, now: Instant) {
        (**self).advance(now);
    }
}
