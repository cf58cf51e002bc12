//! A check of two interfaces before the first frame of a MainDevice: are they the ends of one ring?

use std::io;
use std::time::Duration;

use ethercat::link::{End, MAXIMUM_FRAME_LENGTH};
use ethercat::redundancy::{self, Ring, SECOND_BIT};
use ethercat::wire::ethernet::{PROCESSED_BIT, SOURCE_OFFSET};
use ethercat::wire::{Address, Command, DatagramHeader, Frame, FrameBuilder, MacAddress};
use thiserror::Error;

use super::{Redundant, SILENT};
use crate::link::Link;
use rt::clock::Clock;

/// Reason that two interfaces are no ring.
#[non_exhaustive]
#[derive(Error)]
pub enum RingError {
    /// Both ends are one interface.
    #[error("interface {interface}: it is named as both ends of the ring, expected two interfaces")]
    SameInterface {
        /// The interface.
        interface: String,
    },
    /// A robot with a ring as its bus, and one interface.
    #[error(
        "interface {interface}: the bus of this robot is a ring (`ring = true`), expected its second end, too: name it with \
         --second-iface"
    )]
    OneInterface {
        /// The interface.
        interface: String,
    },
    /// No frame comes back.
    #[error(
        "interfaces {first} and {second}: no frame comes back on either, expected the ends of a ring of SubDevices; check power \
         and cables"
    )]
    Silent {
        /// The first interface.
        first: String,
        /// The second one.
        second: String,
    },
    /// One interface reaches no SubDevice, and the SubDevice next to it is the wrong way round.
    #[error(
        "interface {silent}: no frame comes back on it, and SubDevice {position}, next to it, has its port 0 towards {wrong}, expected \
         towards {right}: its IN and OUT are swapped, or the ring is named from its end; swap its cables, or the interfaces"
    )]
    Swapped {
        /// The one that is silent.
        silent: String,
        /// Position of that SubDevice from the first interface, from 0.
        position: u16,
        /// Interface that its port 0 is on the side of.
        wrong: String,
        /// Interface that it belongs to.
        right: String,
    },
    /// Each interface has a separate bus.
    #[error(
        "interfaces {first} and {second}: each has a separate bus, of {before} and {behind} \
         SubDevices, expected the two ends of one ring; if they are, it is open behind SubDevice \
         {}, and IN and OUT of the next one are swapped",
        before.saturating_sub(1)
    )]
    TwoBuses {
        /// The first interface.
        first: String,
        /// The second one.
        second: String,
        /// SubDevices at the first.
        before: u16,
        /// SubDevices at the second.
        behind: u16,
    },
    /// The ring is entered at its end.
    #[error(
        "interfaces {first} and {second}: the ring begins at {second} and ends at {first}; name \
         them in the other order, or swap the cables"
    )]
    Reversed {
        /// The first interface.
        first: String,
        /// The second one.
        second: String,
    },
    /// Frames come through unprocessed.
    #[error(
        "interfaces {first} and {second}: there is no SubDevice between them, expected a ring of SubDevices"
    )]
    NobodyBetween {
        /// The first interface.
        first: String,
        /// The second one.
        second: String,
    },
    /// The system's refusal.
    #[error("interfaces {first} and {second}: a frame to find out whether they are a ring: {source}")]
    System {
        /// The first interface.
        first: String,
        /// The second one.
        second: String,
        /// The operating system's error.
        source: io::Error,
    },
}

ethercat::debug_is_sentence!(RingError);

/// Fate of one copy of the frame that looks.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: End,
    processed: bool,
    count: u16,
    /// It went round behind a port 0 without a link.
    circulating: bool,
}

impl<A: Link, B: Link, C: Clock> Redundant<A, B, C> {
    /// Sends a frame that reads the type of all SubDevices from both ends, and checks where it
    /// comes out. Changes nothing on the bus. `names`: of the interfaces, for the error. The ring
    /// may be open anywhere, at either interface too: the bus then comes up from the SubDevices
    /// that are reached.
    ///
    /// # Errors
    /// [`RingError`]: anything but a ring that begins at the first interface.
    pub fn check(&mut self, names: [&str; 2]) -> Result<Ring, RingError> {
        let [first, second] = names.map(str::to_owned);
        let mut seen = [None; 2];
        for _ in 0..TRIES {
            seen = match self.look() {
                Ok(seen) => seen,
                Err(source) => return Err(RingError::System { first, second, source }),
            };
            if seen.iter().all(Option::is_some) {
                break;
            }
        }
        let ring = judge(seen, first, second)?;
        self.ring = Some(ring);
        // An end that does not answer is not waited for until it does.
        self.silent = seen.map(|seen| if seen.is_none() { SILENT } else { 0 });
        // The first copy passes some in the wrong direction: as a line, all are reached and can be
        // reported.
        self.is_line = ring == Ring::Turned;
        Ok(ring)
    }

    /// Fates of the two copies of a frame.
    fn look(&mut self) -> io::Result<[Option<Seen>; 2]> {
        let mut frame = [0; MAXIMUM_FRAME_LENGTH];
        let number = self.clock.now().as_nanos() as u32;
        let length = probe(&mut frame, number);
        let sent = self.first.transmit(&frame[..length]);
        redundancy::second_copy(&mut frame[..length], None, None);
        // An interface without a carrier, or that is down, is a break there.
        sent.or(self.second.transmit(&frame[..length]))?;
        let mut seen = [None; 2];
        let mut failed = [false; 2];
        let end = self.clock.now() + TIMEOUT;
        let mut at = End::Second;
        while seen.iter().any(Option::is_none) && self.clock.now() < end {
            let received = match self.fetch(at, &mut frame, TURN) {
                Err(error) if failed[at.other() as usize] => return Err(error),
                received => {
                    failed[at as usize] = received.is_err();
                    received.unwrap_or(None)
                }
            };
            if let Some((copy, found)) =
                received.and_then(|length| recognised(&frame[..length], at, number))
            {
                seen[copy as usize] = Some(found);
            }
            at = at.other();
        }
        Ok(seen)
    }
}

/// A frame that reads the type of every SubDevice.
fn probe(buffer: &mut [u8], number: u32) -> usize {
    let mut builder = FrameBuilder::new(buffer, MacAddress::MAIN_DEVICE);
    let nop = DatagramHeader::new(Command::Nop, INDEX, Address::Logical(0), 4);
    // Both fit into any frame.
    builder.push_data(nop, &number.to_le_bytes());
    builder.push(DatagramHeader::new(Command::Brd, INDEX, Address::Broadcast { register: 0 }, 1));
    builder.finish()
}

/// Copy of the frame of this number that came in `at` an end, and its result.
fn recognised(bytes: &[u8], at: End, number: u32) -> Option<(End, Seen)> {
    if redundancy::identity(bytes) != Some((INDEX, number)) {
        return None;
    }
    let source = bytes[SOURCE_OFFSET] ^ MacAddress::MAIN_DEVICE.0[0];
    let copy = if source & SECOND_BIT == 0 { End::First } else { End::Second };
    let datagram = Frame::parse(bytes).ok()?.datagrams().nth(1)?;
    let (count, circulating) = (datagram.header.adp(), datagram.header.circulating);
    Some((copy, Seen { at, processed: source & PROCESSED_BIT != 0 || count > 0, count, circulating }))
}

fn judge(seen: [Option<Seen>; 2], first: String, second: String) -> Result<Ring, RingError> {
    let count = |seen: Seen| seen.count;
    Err(match seen {
        [Some(Seen { at: End::Second, processed: true, .. }), Some(Seen { processed: false, .. })] => {
            return Ok(Ring::Closed);
        }
        [Some(Seen { at: End::Second, processed: false, .. }), Some(Seen { processed: true, .. })] => {
            RingError::Reversed { first, second }
        }
        [Some(Seen { processed: false, .. }), Some(Seen { processed: false, .. })] => {
            RingError::NobodyBetween { first, second }
        }
        // Each SubDevice counts in one copy; in the second one if its IN and OUT are swapped. The
        // MainDevice names these SubDevices when it has seen all of them.
        [Some(Seen { at: End::Second, .. }), Some(Seen { at: End::First, .. })] => return Ok(Ring::Turned),
        [Some(one), Some(other)] if other.circulating => {
            return Ok(Ring::Open { before: count(one) });
        }
        [Some(one), Some(_)] if one.circulating => RingError::Reversed { first, second },
        [Some(one), Some(other)] => {
            RingError::TwoBuses { first, second, before: count(one), behind: count(other) }
        }
        // Port 0 of the SubDevice next to the silent end shows the direction of the ring.
        [Some(one), None] if one.circulating => {
            let position = count(one).saturating_sub(1);
            RingError::Swapped { silent: second.clone(), position, wrong: second, right: first }
        }
        [Some(one), None] => return Ok(Ring::Open { before: count(one) }),
        [None, Some(other)] if other.circulating => return Ok(Ring::Open { before: 0 }),
        [None, Some(_)] => {
            RingError::Swapped { silent: first.clone(), position: 0, wrong: second, right: first }
        }
        [None, None] => RingError::Silent { first, second },
    })
}

/// Index of the frame that looks: the last one.
const INDEX: u8 = 63;

/// Frames sent until both copies have come back.
const TRIES: usize = 3;

/// Time for the copies of one frame, and for one wait at one end.
const TIMEOUT: Duration = Duration::from_millis(50);
const TURN: Duration = Duration::from_millis(1);
