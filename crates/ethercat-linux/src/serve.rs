//! A simulated segment on a real interface: other people's MainDevices find SubDevices there.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment};
use thiserror::Error;

use crate::link::OpenError;
use crate::link::packet::open_socket;
use crate::sys::packet_socket::{PacketSocket, Stamp};
use rt::clock::{Clock, MonotonicClock};

/// The longest a segment goes without being told the time.
const ADVANCE_EVERY: Duration = Duration::from_micros(250);

/// Frames that passed through a segment on an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Frames that came.
    pub received: u64,
    /// Frames sent back.
    pub returned: u64,
    /// Replies the interface would not take: its queue was full, or it was down.
    pub refused: u64,
}

/// Why serving ended.
#[non_exhaustive]
#[derive(Debug, Error)]
pub enum ServeError {
    /// The interface could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Arrivals cannot be stamped.
    #[error("interface {interface}: the kernel does not stamp arriving frames: {source}")]
    Stamp {
        /// The interface.
        interface: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The interface was removed.
    #[error(
        "interface {interface}: it was removed while SubDevices answered on it; make it anew and start again"
    )]
    Gone {
        /// The interface.
        interface: String,
    },
    /// The interface fails.
    #[error("interface {interface}: it stopped receiving: {source}")]
    Receive {
        /// The interface.
        interface: String,
        /// The operating system's error.
        source: io::Error,
    },
}

/// A frame that has come, as the kernel saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Its number among all frames that came, from 0.
    pub frame: u64,
    /// When the kernel took it from the driver, ns of CLOCK_REALTIME (SO_TIMESTAMPNS). On a veth pair that is inside the
    /// sender's own system call; behind a network card it is after the interrupt, in the receive softirq.
    pub stamp_ns: u64,
    /// Frames the kernel has had no room for so far, modulo 2^32.
    pub dropped: u32,
}

/// Takes a frame that is there: its length, and what the kernel says of its arrival.
type Receive<'a> = dyn FnMut(&mut [u8]) -> io::Result<Option<(usize, Stamp)>> + 'a;

/// A segment that answers on an interface.
#[derive(Debug)]
pub struct Server {
    socket: PacketSocket,
    interface: String,
}

impl Server {
    /// Opens the interface; whether its far end is there does not matter yet.
    ///
    /// # Errors
    /// Every [`OpenError`] but a missing carrier.
    pub fn open(interface: &str) -> Result<Self, OpenError> {
        Ok(Self { socket: open_socket(interface)?, interface: interface.into() })
    }

    /// Passes every frame through `segment` and sends it back, and tells the segment the time at least
    /// every 250 us, until `stop` is set. While frames are waiting each costs two system calls.
    ///
    /// Only frames of EtherCAT's own EtherType come in, whatever DL control says of others.
    ///
    /// # Errors
    /// [`ServeError::Gone`] if the interface is removed, [`ServeError::Receive`] if it fails. One that goes down and
    /// comes back is no error.
    pub fn run(&self, segment: &mut dyn Segment, stop: &AtomicBool) -> Result<Served, ServeError> {
        let mut receive =
            |buffer: &mut [u8]| Ok(self.socket.receive(buffer)?.map(|length| (length, Stamp::default())));
        self.serve(segment, stop, &mut receive, &mut |_, _, _| ())
    }

    /// As [`Server::run`], with a kernel time stamp for each frame: `watch` sees the segment, the arrival, and the frame
    /// as it went back, after it went back. It must not block.
    ///
    /// # Errors
    /// As [`Server::run`], and if the kernel cannot stamp.
    pub fn run_watched<S: Segment>(
        &self,
        segment: &mut S,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(&S, Arrival, &[u8]),
    ) -> Result<Served, ServeError> {
        let fail = |source| ServeError::Stamp { interface: self.interface.clone(), source };
        self.socket.stamp_arrivals().map_err(fail)?;
        self.serve(segment, stop, &mut |buffer| self.socket.receive_stamped(buffer), watch)
    }

    fn serve<S: Segment + ?Sized>(
        &self,
        segment: &mut S,
        stop: &AtomicBool,
        receive: &mut Receive<'_>,
        watch: &mut dyn FnMut(&S, Arrival, &[u8]),
    ) -> Result<Served, ServeError> {
        let clock = MonotonicClock;
        let mut served = Served::default();
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        let mut advanced = clock.now();
        let mut down = false;
        // Relaxed: nothing but the flag itself is passed through it.
        while !stop.load(Ordering::Relaxed) {
            let received = receive(&mut buffer).or_else(|error| {
                down = true;
                self.survive(error).map(|()| None)
            })?;
            let now = clock.now();
            if let Some((length, stamp)) = received {
                down = false;
                let frame = served.received;
                served.received += 1;
                if segment.process_frame(now, &mut buffer[..length]) {
                    match self.socket.send(&buffer[..length]) {
                        Ok(()) => served.returned += 1,
                        Err(_) => served.refused += 1,
                    }
                }
                let arrival = Arrival { frame, stamp_ns: stamp.realtime_ns, dropped: stamp.dropped };
                watch(segment, arrival, &buffer[..length]);
            }
            // Also between two frames of a long burst.
            if now.since(advanced) >= ADVANCE_EVERY {
                segment.advance(now);
                advanced = now;
            }
            if received.is_none() {
                if down {
                    self.survive_gone()?;
                }
                let left = ADVANCE_EVERY.saturating_sub(clock.now().since(advanced));
                self.socket.wait(left).or_else(|error| {
                    down = true;
                    self.survive(error)
                })?;
            }
        }
        Ok(served)
    }

    /// An interface that went down may come up again, one that was removed will not; both say so once, and the second
    /// goes down first.
    fn survive_gone(&self) -> Result<(), ServeError> {
        let fail = |source| ServeError::Receive { interface: self.interface.clone(), source };
        match self.socket.interface_is_gone().map_err(fail)? {
            true => Err(ServeError::Gone { interface: self.interface.clone() }),
            false => Ok(()),
        }
    }

    /// An interface that went down says so once and may come up again.
    fn survive(&self, source: io::Error) -> Result<(), ServeError> {
        match source.raw_os_error() {
            Some(libc::ENETDOWN) => Ok(()),
            _ => Err(ServeError::Receive { interface: self.interface.clone(), source }),
        }
    }
}
