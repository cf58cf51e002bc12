//! Cable redundancy: two copies of every frame, one into each end of a ring of SubDevices, and one
//! reply from both.
//!
//! Where the ring is closed, the first copy passes all SubDevices in the direction of processing
//! and comes out at the second end; the second copy goes the other way, from port 1 to port 0 of
//! each, which processes nothing. Where it is open, each copy turns back at the break and is
//! processed by its own part of the ring, so that each SubDevice is reached by one of them:
//!
//! ```text
//! closed  first >- 0|SubDevice|1 - 0|SubDevice|1 - 0|SubDevice|1 -< second      processed by all | by none
//! open    first >- 0|SubDevice|1 x 0|SubDevice|1 - 0|SubDevice|1 -< second      processed by one | by two
//! ```
//!
//! [`splice`] puts the two replies together, datagram by datagram: working counters and positions
//! add up, and so do the bits that SubDevices changed. Two kinds of datagram cannot be sent twice
//! unchanged, and [`second_copy`] changes them:
//!
//! * Auto-increment addresses count the SubDevices a datagram passes. In the second copy they
//!   continue from the number of SubDevices that the first one passes, if that is known; otherwise,
//!   and while the ring is closed, they address no SubDevice.
//! * The datagram that distributes the reference clock's time (FRMW to 0x0910) finds no reference
//!   clock in the second part, which would take the sent data as the time. So it carries an
//!   estimate of the reference clock's time: the last reading plus the host's time since. Delays
//!   behind the reference clock (0x0928) are left as they are, although that copy takes another
//!   way: the clocks of the second part agree with each other, and are off from the clocks of the
//!   first by a constant of at most the delay round the ring. Any other command of this kind (ARMW,
//!   FRMW) is sent at the first end only.
//!
//! In a closed ring a frame that latches receive times (a write to 0x0900) is sent at the first end
//! alone, and is to be sent back from the second, as if the last SubDevice had nothing behind it:
//! that makes the ring a line for the measurement of delays.

use crate::register::dc;
use crate::wire::datagram::{HEADER_LENGTH, WORKING_COUNTER_LENGTH};
use crate::wire::ethernet::{PROCESSED_BIT, SOURCE_OFFSET};
use crate::wire::frame::{DATAGRAMS_OFFSET, DatagramPlace, checked_end, place_at, places};
use crate::wire::{Command, DatagramHeader, read_u16, read_u32, read_u64};

/// Bit of the source address's first byte that distinguishes the second copy of a frame from the
/// first; SubDevices set [`PROCESSED_BIT`].
pub const SECOND_BIT: u8 = 0x04;

/// State of a ring, as the frames show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// Frames come out at the other end.
    Closed,
    /// Frames leave at the other end, and SubDevices process the second copy too: IN and OUT of
    /// some SubDevices are swapped.
    Turned,
    /// Frames come back at the end at which they were sent.
    Open {
        /// SubDevices in front of the break, as the first end reaches them.
        before: u16,
    },
}

/// Datagrams of a frame that matter for the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// It latches receive times.
    pub latches: bool,
    /// Place of the reference clock's time.
    time: Option<u16>,
    /// Place of a position that SubDevices count up.
    counted: Option<u16>,
}

impl Contents {
    /// SubDevices that processed `sent` on its way to `reply`, where they can be counted.
    #[must_use]
    pub fn passed(&self, sent: &[u8], reply: &[u8]) -> Option<u16> {
        let at = usize::from(self.counted?) + POSITION;
        Some(read_u16(reply, at)?.wrapping_sub(read_u16(sent, at)?))
    }

    /// The reference clock's time, if it is in `reply`; of a clock of 32 bits its low ones.
    #[must_use]
    pub fn time(&self, sent: &[u8], reply: &[u8]) -> Option<u64> {
        let offset = usize::from(self.time?);
        let is_whole = DatagramHeader::parse(sent.get(offset..)?)?.length == 8;
        let read = |frame| match is_whole {
            true => read_u64(frame, offset + HEADER_LENGTH),
            false => read_u32(frame, offset + HEADER_LENGTH).map(u64::from),
        };
        let time = read(reply)?;
        (read(sent)? != time).then_some(time)
    }
}

/// Identifies a frame among all of a MainDevice: the index of its first datagram, a NOP, and the
/// number in it.
#[must_use]
pub fn identity(frame: &[u8]) -> Option<(u8, u32)> {
    let end = checked_end(frame).ok()?;
    let DatagramPlace { header, .. } = place_at(frame, DATAGRAMS_OFFSET, end).ok()?;
    let is_number = header.command == Command::Nop && header.length == 4;
    let number = read_u32(frame, DATAGRAMS_OFFSET + HEADER_LENGTH)?;
    is_number.then_some((header.index, number))
}

/// True if a SubDevice has processed the frame: it marked the source address, or a working counter
/// counts where the segment leaves that address as it is.
#[must_use]
pub fn is_processed(frame: &[u8]) -> bool {
    let counts = |place: DatagramPlace| read_u16(frame, place.working_counter()) != Some(0);
    frame.get(SOURCE_OFFSET).is_some_and(|byte| byte & PROCESSED_BIT != 0) || places(frame).any(counts)
}

/// Makes a frame its second copy. `before`: SubDevices that the first copy passes, where that is
/// known; `time`: the reference clock's.
pub fn second_copy(frame: &mut [u8], before: Option<u16>, time: Option<u64>) -> Contents {
    let mut contents = Contents::default();
    let Ok(end) = checked_end(frame) else { return contents };
    frame[SOURCE_OFFSET] ^= SECOND_BIT;
    let mut offset = DATAGRAMS_OFFSET;
    while let Ok(place) = place_at(frame, offset, end) {
        contents.note(&place);
        let header = second_header(place.header, before, time);
        if let (Command::Frmw, Some(time), 1..) = (header.command, time, before.unwrap_or(1)) {
            let data = &mut frame[place.data()];
            data.copy_from_slice(&time.to_le_bytes()[..data.len()]);
        }
        frame[offset..offset + HEADER_LENGTH].copy_from_slice(&header.emit());
        if !header.more_follows {
            break;
        }
        offset = place.end();
    }
    contents
}

impl Contents {
    fn note(&mut self, place: &DatagramPlace) {
        let header = place.header;
        let (offset, start) = (place.offset as u16, u32::from(header.ado()));
        let touches = start < u32::from(dc::RECEIVE_TIME) + 4
            && start + u32::from(header.length) > u32::from(dc::RECEIVE_TIME);
        self.latches |= header.command.writes() && !header.command.is_logical() && touches;
        if is_counted(header.command) {
            self.counted.get_or_insert(offset);
        }
        if is_time(&header) {
            self.time.get_or_insert(offset);
        }
    }
}

fn second_header(mut header: DatagramHeader, before: Option<u16>, time: Option<u64>) -> DatagramHeader {
    use Command::{Aprd, Aprw, Apwr, Armw, Frmw, Nop};
    match (header.command, before) {
        (Aprd | Apwr | Aprw, Some(before)) => {
            header.address = u32::from(header.adp().wrapping_add(before)) | u32::from(header.ado()) << 16;
        }
        (Aprd | Apwr | Aprw, None) => header.command = Nop,
        // Behind a break at the first cable are all, the reference clock too: it puts its time in.
        (Frmw, Some(0)) if is_time(&header) => {}
        (Armw | Frmw, _) if time.is_none() || !is_time(&header) => header.command = Nop,
        _ => {}
    }
    header
}

/// Adds to `reply`, of the first copy, the changes that SubDevices made to the second one, which
/// was sent as `sent` and came back as `second`. If no first copy came back, `reply` is the frame
/// as it was sent. False, with nothing changed, if `second` is no reply to `sent`.
pub fn splice(reply: &mut [u8], sent: &[u8], second: &[u8]) -> bool {
    if reply.len() != second.len() || sent.len() != second.len() || !answers(sent, second) {
        return false;
    }
    let Ok(end) = checked_end(sent) else { return false };
    reply[SOURCE_OFFSET] |= second[SOURCE_OFFSET] & PROCESSED_BIT;
    let mut offset = DATAGRAMS_OFFSET;
    while let Ok(place) = place_at(sent, offset, end) {
        add_datagram(reply, sent, second, &place);
        if !place.header.more_follows {
            break;
        }
        offset = place.end();
    }
    true
}

fn add_datagram(reply: &mut [u8], sent: &[u8], second: &[u8], place: &DatagramPlace) {
    let command = place.header.command;
    let data = place.data();
    match command {
        Command::Brd | Command::Brw => data.for_each(|at| reply[at] |= second[at]),
        // The time differs from the first copy: it is the reference clock's, or as it was sent.
        Command::Frmw if second[data.clone()] == sent[data.clone()] => {}
        Command::Frmw => reply[data.clone()].copy_from_slice(&second[data]),
        _ => data.for_each(|at| reply[at] ^= second[at] ^ sent[at]),
    }
    add(reply, sent, second, place.working_counter());
    if is_counted(command) {
        add(reply, sent, second, place.offset + POSITION);
    }
    for at in place.offset + INTERRUPT..place.offset + HEADER_LENGTH {
        reply[at] |= second[at];
    }
}

/// Adds the growth of the second copy's number at `at`.
fn add(reply: &mut [u8], sent: &[u8], second: &[u8], at: usize) {
    let number = |bytes: &[u8]| read_u16(bytes, at).unwrap_or(0);
    let sum = number(reply).wrapping_add(number(second).wrapping_sub(number(sent)));
    reply[at..at + WORKING_COUNTER_LENGTH].copy_from_slice(&sum.to_le_bytes());
}

/// True if every datagram of `reply` is the one that was sent; it may have turned round at the
/// break.
fn answers(sent: &[u8], reply: &[u8]) -> bool {
    let Ok(end) = checked_end(sent) else { return false };
    let mut offset = DATAGRAMS_OFFSET;
    while let Ok(place) = place_at(sent, offset, end) {
        let Some(found) = reply.get(offset..).and_then(DatagramHeader::parse) else { return false };
        let header = place.header;
        let address = |it: &DatagramHeader| match is_counted(header.command) {
            true => it.address >> 16,
            false => it.address,
        };
        let is_same = found.command == header.command
            && (found.index, found.length) == (header.index, header.length)
            && (found.more_follows, address(&found)) == (header.more_follows, address(&header));
        if !is_same {
            return false;
        }
        if !header.more_follows {
            break;
        }
        offset = place.end();
    }
    true
}

/// True if SubDevices count the position up as they pass it on (ETG.1000.4, 5.4.1).
const fn is_counted(command: Command) -> bool {
    use Command::{Aprd, Aprw, Apwr, Armw, Brd, Brw, Bwr};
    matches!(command, Aprd | Apwr | Aprw | Armw | Brd | Bwr | Brw)
}

/// True of the datagram that hands on the reference clock's time.
const fn is_time(header: &DatagramHeader) -> bool {
    let is_length = header.length == 8 || header.length == 4;
    matches!(header.command, Command::Frmw) && header.ado() == dc::SYSTEM_TIME && is_length
}

/// Offset of the position in a datagram's header.
const POSITION: usize = 2;

/// Offset of the event request in a datagram's header.
const INTERRUPT: usize = 8;

#[cfg(test)]
mod tests;
