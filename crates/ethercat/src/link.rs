//! The cable: how long its frames are, and the SubDevices at its far end.

use alloc::boxed::Box;

use crate::time::Instant;

/// Longest Ethernet frame a link carries, without the frame check sequence (IEEE 802.3, 3.2.7).
pub const MAXIMUM_FRAME_LENGTH: usize = 1514;

/// Shortest Ethernet frame on the wire, without the frame check sequence; shorter ones are padded.
pub const MINIMUM_FRAME_LENGTH: usize = 60;

/// End of a segment, with a MainDevice's interface: a line has the first one only, a ring both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Where frames go in that are processed by every SubDevice.
    First,
    /// The far end of a ring.
    Second,
}

impl End {
    /// Both, by number.
    pub const ALL: [Self; 2] = [Self::First, Self::Second];

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// The far end of the cable: SubDevices that answer frames.
///
/// A real segment is silicon; the simulator implements this, and a simulated link or a process on a
/// real interface drives it.
pub trait Segment: Send {
    /// Passes one Ethernet frame through the SubDevices, changing it in place. True if it comes
    /// back to the sender: over a broken cable it does not, nor does another protocol's frame where
    /// a SubDevice destroys such frames.
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool;

    /// The same at one end of a ring: the end at which the frame comes out, if it does. Without a
    /// second end, a frame that enters there is lost.
    fn process_frame_at(&mut self, end: End, now: Instant, frame: &mut [u8]) -> Option<End> {
        (end == End::First && self.process_frame(now, frame)).then_some(End::First)
    }

    /// Sets the link of the cable at an end of a ring. Without a link the SubDevice there closes
    /// its port.
    fn set_link(&mut self, _end: End, _linked: bool) {}

    /// Lets time pass up to `now` with no frame: plants move, watchdogs expire, mailboxes are
    /// served.
    fn advance(&mut self, now: Instant);
}

impl<S: Segment + ?Sized> Segment for Box<S> {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        (**self).process_frame(now, frame)
    }

    fn process_frame_at(&mut self, end: End, now: Instant, frame: &mut [u8]) -> Option<End> {
        (**self).process_frame_at(end, now, frame)
    }

    fn set_link(&mut self, end: End, linked: bool) {
        (**self).set_link(end, linked);
    }

    fn advance(&mut self, now: Instant) {
        (**self).advance(now);
    }
}
