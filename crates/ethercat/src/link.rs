//! The cable: how long its frames are, and the SubDevices at its far end.

use alloc::boxed::Box;

use crate::time::Instant;

/// Longest Ethernet frame a link carries, without the frame check sequence (IEEE 802.3, 3.2.7).
pub const MAXIMUM_FRAME_LENGTH: usize = 1514;

/// Shortest Ethernet frame on the wire, without the frame check sequence; shorter ones are padded.
pub const MINIMUM_FRAME_LENGTH: usize = 60;

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
