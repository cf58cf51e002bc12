//! A simulated segment on a real interface: other people's MainDevices find SubDevices there.

mod cables;
mod overload;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethercat::link::{End, MAXIMUM_FRAME_LENGTH, Segment};
use rustix::net::{SendFlags, send};
use thiserror::Error;

use crate::link::interface::Interface;
use crate::link::simulated::ADVANCE_EVERY;
use crate::link::{FaultChanges, FaultControl, Faulty, Link, OpenError};
use crate::sys::packet_socket::{PacketSocket, Stamp, wait_for_any};
use cables::Cables;
use ethercat::time::Instant;
use overload::Overload;
use rt::clock::{Clock, MonotonicClock, realtime_nanos};

/// Frames that passed through a segment on an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Served {
    /// Frames that came.
    pub received: u64,
    /// Frames sent back.
    pub returned: u64,
    /// Replies the interface would not take: its queue was full, or it was down.
    pub refused: u64,
}

/// Reason that serving ended.
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
        "interface {interface}: it was removed while SubDevices answered on it; create it again \
         and start again"
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
#[non_exhaustive]
pub struct Arrival {
    /// Its number among all frames that came, from 0.
    pub frame: u64,
    /// Time at which the kernel took it from the driver, ns of CLOCK_REALTIME (SO_TIMESTAMPNS). On
    /// a veth pair that is inside the sender's system call; behind a network card it is after the
    /// interrupt, in the receive softirq.
    pub stamp_ns: u64,
    /// Frames that the kernel had no space for so far, modulo 2^32.
    pub dropped: u32,
}

/// A segment that answers on an interface, or a ring on two.
#[derive(Debug)]
pub struct Server {
    ports: Vec<ServedPort>,
    /// Of a ring.
    cables: Option<Cables>,
    /// Changes of the faults at each port, if they may be set.
    changes: Vec<FaultChanges>,
    /// Called once the segment does not keep up.
    tell_overload: Option<fn()>,
}

/// One interface.
#[derive(Debug)]
struct ServedPort {
    socket: PacketSocket,
    interface: String,
}

/// The socket as a link, which never waits. Replies that the interface refuses are counted; they
/// are no error.
struct FarEnd<'s> {
    socket: &'s PacketSocket,
    is_stamped: bool,
    /// Arrival of the newest frame.
    stamp: Stamp,
    returned: u64,
    refused: u64,
}

impl Link for FarEnd<'_> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        match send(self.socket, frame, SendFlags::empty()) {
            Ok(_) => self.returned += 1,
            Err(_) => self.refused += 1,
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], _: Duration) -> io::Result<Option<usize>> {
        if !self.is_stamped {
            return self.socket.receive(buffer);
        }
        let received = self.socket.receive_stamped(buffer)?;
        Ok(received.map(|(length, stamp)| {
            self.stamp = stamp;
            length
        }))
    }
}

impl Server {
    /// Opens the interface; whether its far end is there does not matter yet.
    ///
    /// # Errors
    /// Every [`OpenError`] but a missing carrier.
    pub fn open(interface: &str) -> Result<Self, OpenError> {
        Ok(Self {
            ports: vec![ServedPort::open(interface)?],
            cables: None,
            changes: Vec::new(),
            tell_overload: None,
        })
    }

    /// The same for both ends of a ring. A second thread, of the caller's priority, checks the
    /// carrier of both interfaces every few milliseconds: the SubDevice at one without a carrier
    /// closes its port.
    ///
    /// # Errors
    /// As [`Server::open`].
    pub fn open_ring(first: &str, second: &str) -> Result<Self, OpenError> {
        let ports = vec![ServedPort::open(first)?, ServedPort::open(second)?];
        let refused = |source| OpenError::Refused { interface: first.to_owned(), source };
        let cables = Cables::watch([first, second].map(str::to_owned)).map_err(refused)?;
        Ok(Self { ports, cables: Some(cables), changes: Vec::new(), tell_overload: None })
    }

    /// Faults of the wire, as a MainDevice sees them: none until they are set. The next run has
    /// them; on a ring, at both ends.
    pub fn faults(&mut self) -> FaultControl {
        let (control, changes) = FaultControl::of(self.ports.len());
        self.changes = changes;
        control
    }

    /// Calls `tell` once a run's segment needs more time than there is: the thread had none left
    /// for a second. Replies are late from then on, and SubDevices lose their outputs.
    pub fn on_overload(&mut self, tell: fn()) {
        self.tell_overload = Some(tell);
    }

    /// Passes every frame through `segment` and sends it back, and advances the segment's time at
    /// least every 250 us, until `stop` is set. While frames are waiting each costs two system
    /// calls.
    ///
    /// Only frames of EtherCAT's EtherType come in, whatever DL control sets for others.
    ///
    /// # Errors
    /// [`ServeError::Gone`] if the interface is removed, [`ServeError::Receive`] if it fails. An
    /// interface that goes down and comes back is no error.
    pub fn run(&mut self, segment: &mut dyn Segment, stop: &AtomicBool) -> Result<Served, ServeError> {
        self.serve(segment, stop, false, &mut |_, _, _| ())
    }

    /// As [`Server::run`], with a kernel time stamp for each frame, which is its time of arrival at
    /// the segment: after sending the reply, `watch` gets the segment, the arrival and the reply.
    /// It must not block.
    ///
    /// # Errors
    /// As [`Server::run`], and if the kernel cannot stamp.
    pub fn run_watched<S: Segment>(
        &mut self,
        segment: &mut S,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(&S, Arrival, &[u8]),
    ) -> Result<Served, ServeError> {
        for ServedPort { socket, interface } in &self.ports {
            let fail = |source| ServeError::Stamp { interface: interface.clone(), source };
            socket.stamp_arrivals().map_err(fail)?;
        }
        self.serve(segment, stop, true, watch)
    }

    fn serve<S: Segment + ?Sized>(
        &mut self,
        segment: &mut S,
        stop: &AtomicBool,
        is_stamped: bool,
        watch: &mut dyn FnMut(&S, Arrival, &[u8]),
    ) -> Result<Served, ServeError> {
        let clock = MonotonicClock;
        let mut changes = std::mem::take(&mut self.changes).into_iter();
        let mut ends = Vec::with_capacity(End::ALL.len());
        for ServedPort { socket, .. } in &self.ports {
            let far_end = FarEnd { socket, is_stamped, stamp: Stamp::default(), returned: 0, refused: 0 };
            ends.push(Faulty::at_far_end(far_end, changes.next()));
        }
        let mut frames = 0;
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        let mut advanced = clock.now();
        let mut overload = Overload::new(advanced);
        let mut down = [false; 2];
        // Relaxed: nothing but the flag itself is passed through it.
        while !stop.load(Ordering::Relaxed) {
            let mut idle = true;
            if let Some(cables) = &mut self.cables {
                cables.tell(segment);
            }
            for (end, port) in End::ALL.into_iter().zip(&self.ports) {
                let received =
                    ends[end as usize].receive(&mut buffer, Duration::ZERO).or_else(|error| {
                        down[end as usize] = true;
                        port.survive(error).map(|()| None)
                    })?;
                let Some(length) = received else { continue };
                (idle, down[end as usize]) = (false, false);
                let frame = frames;
                frames += 1;
                let came = came(&clock, ends[end as usize].inner().stamp.realtime_ns);
                let out = segment.process_frame_at(end, came, &mut buffer[..length]);
                if let Some(out) = out.and_then(|out| ends.get_mut(out as usize)) {
                    // No longer than a frame: it cannot be refused.
                    let _ = out.transmit(&buffer[..length]);
                }
                let stamp = ends[end as usize].inner().stamp;
                let arrival = Arrival { frame, stamp_ns: stamp.realtime_ns, dropped: stamp.dropped };
                watch(segment, arrival, &buffer[..length]);
            }
            let now = clock.now();
            // Also between two frames of a long burst.
            if now.since(advanced) >= ADVANCE_EVERY {
                segment.advance(now);
                advanced = now;
            }
            if overload.begins(now) {
                self.tell_overload.iter().for_each(|tell| tell());
            }
            if idle {
                let mut fallen = self.ports.iter().zip(down).filter(|(_, down)| *down);
                fallen.try_for_each(|(port, _)| port.survive_gone())?;
                let now = clock.now();
                let left = ADVANCE_EVERY.saturating_sub(now.since(advanced));
                if !left.is_zero() {
                    overload.has_time_left(now);
                }
                let due = ends.iter().filter_map(Faulty::next_due).min();
                self.wait(due.map_or(left, |due| left.min(due.since(now))))?;
            }
        }
        let sum = |count: fn(&FarEnd<'_>) -> u64| ends.iter().map(|end| count(end.inner())).sum();
        Ok(Served { received: frames, returned: sum(|it| it.returned), refused: sum(|it| it.refused) })
    }

    /// Waits for a frame at any interface.
    fn wait(&self, timeout: Duration) -> Result<(), ServeError> {
        let outcome = match &self.ports[..] {
            [only] => only.socket.wait(timeout),
            ports => wait_for_any(ports.iter().map(|port| &port.socket), timeout),
        };
        outcome.or_else(|error| self.ports.first().map_or(Ok(()), |port| port.survive(error)))
    }
}

/// Time of arrival of a frame taken just now: its stamp, ns of CLOCK_REALTIME, or now without one.
fn came(clock: &MonotonicClock, stamp_ns: u64) -> Instant {
    let now = clock.now();
    if stamp_ns == 0 {
        return now;
    }
    let ago = realtime_nanos().saturating_sub(stamp_ns);
    // One older than that is of a clock that was set.
    if ago > OLDEST_STAMP_NS { now } else { Instant::from_nanos(now.as_nanos().saturating_sub(ago)) }
}

/// Longest time that a frame waits in the socket's queue: a second, ns.
const OLDEST_STAMP_NS: u64 = 1_000_000_000;

impl ServedPort {
    fn open(interface: &str) -> Result<Self, OpenError> {
        Ok(Self { socket: Interface::open(interface)?.socket, interface: interface.into() })
    }

    /// An interface that went down may come up again, a removed one will not. Both report this
    /// once, and the second goes down first.
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
