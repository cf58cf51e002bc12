//! The EtherCAT frame (ETG.1000.4, 5.3): Ethernet header, two bytes of EtherCAT header, datagrams.
//!
//! [`Frame`] is the checked view of received bytes; [`FrameBuilder`] lays datagrams into a buffer.
//! A [`DatagramPlace`] is the offset of a datagram, for changes of a frame in place.

use core::ops::Range;

use thiserror::Error;

use super::datagram::{self, DatagramHeader, WORKING_COUNTER_LENGTH};
use super::ethernet::{self, ETHERCAT_ETHERTYPE, ETHERTYPE_OFFSET, MacAddress, SOURCE_OFFSET};
use super::read_u16;
use crate::link::MINIMUM_FRAME_LENGTH;

/// Offset of the first datagram: behind Ethernet header and EtherCAT header.
pub const DATAGRAMS_OFFSET: usize = ethernet::HEADER_LENGTH + 2;

/// Bytes a datagram takes besides its data: header and working counter.
pub const DATAGRAM_OVERHEAD: usize = datagram::HEADER_LENGTH + WORKING_COUNTER_LENGTH;

/// Type of EtherCAT frames that carry datagrams (ETG.1000.4, 5.3.3: type 1).
pub const TYPE_DATAGRAMS: u8 = 1;

/// "More follows" in byte 7 of a datagram header.
const MORE_FOLLOWS: u8 = 0x80;

/// Reason that bytes are not an EtherCAT frame of datagrams.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Another protocol's frame.
    #[error("EtherType {found:#06x} at byte 12, expected 0x88a4 (EtherCAT)")]
    NotEtherCat {
        /// The EtherType that was there.
        found: u16,
    },
    /// The frame ends before the two headers do.
    #[error("frame of {found} bytes, expected at least {expected}")]
    TooShort {
        /// Bytes needed.
        expected: usize,
        /// Bytes there.
        found: usize,
    },
    /// Not a frame of datagrams: network variables or mailbox gateway.
    #[error("EtherCAT frame type {found}, expected 1 (datagrams)")]
    WrongType {
        /// The type that was there.
        found: u8,
    },
    /// The EtherCAT header promises more bytes than there are.
    #[error("EtherCAT header announces {announced} bytes of datagrams, the frame has {found}")]
    Truncated {
        /// Length field of the EtherCAT header.
        announced: usize,
        /// Bytes behind the header.
        found: usize,
    },
    /// A datagram reaches past the announced length.
    #[error("datagram at byte {offset} ends at byte {end}, but datagrams end at byte {limit}")]
    DatagramOverrun {
        /// Offset of its header in the frame.
        offset: usize,
        /// Offset at which it would end.
        end: usize,
        /// Offset at which the announced datagrams end.
        limit: usize,
    },
}

/// A frame whose datagrams were all checked to lie inside it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    end: usize,
}

impl<'a> Frame<'a> {
    /// Checks `bytes`, which start at the destination MAC address; padding behind is allowed.
    ///
    /// # Errors
    /// A [`FrameError`] that names the expected value and the one found.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let end = checked_end(bytes)?;
        let mut places = Places { bytes, offset: DATAGRAMS_OFFSET, end, done: end == DATAGRAMS_OFFSET };
        places.try_for_each(|place| place.map(drop))?;
        Ok(Self { bytes, end })
    }

    /// Destination MAC address.
    #[must_use]
    pub fn destination(&self) -> MacAddress {
        mac_address(self.bytes, 0)
    }

    /// Source MAC address.
    #[must_use]
    pub fn source(&self) -> MacAddress {
        mac_address(self.bytes, SOURCE_OFFSET)
    }

    /// The reserved bit of the EtherCAT header, kept so that a frame re-emits byte for byte.
    #[must_use]
    pub fn reserved(&self) -> bool {
        self.bytes[ethernet::HEADER_LENGTH + 1] & 0x08 != 0
    }

    /// Bytes behind the last datagram: padding, or nothing.
    #[must_use]
    pub fn padding(&self) -> &'a [u8] {
        let end = self.places().last().map_or(DATAGRAMS_OFFSET, |place| place.end());
        &self.bytes[end..]
    }

    /// Bytes of datagrams the EtherCAT header announces.
    #[must_use]
    pub fn announced_length(&self) -> usize {
        self.end - DATAGRAMS_OFFSET
    }

    /// The datagrams, in the order they stand in the frame.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'a>> + use<'a> {
        let bytes = self.bytes;
        self.places().map(move |place| Datagram {
            header: place.header,
            data: &bytes[place.data()],
            working_counter: read_u16(bytes, place.working_counter()).unwrap_or(0),
        })
    }

    /// Extent of the datagrams.
    pub fn places(&self) -> impl Iterator<Item = DatagramPlace> + use<'a> {
        places(self.bytes)
    }
}

/// One datagram of a [`Frame`].
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Command, address, flags.
    pub header: DatagramHeader,
    /// The data, `header.length` bytes.
    pub data: &'a [u8],
    /// Number of reads and writes by SubDevices.
    pub working_counter: u16,
}

/// Offset of a datagram in its frame, and its header.
#[derive(Clone, Copy, Debug)]
pub struct DatagramPlace {
    /// Byte of the frame where the header starts.
    pub offset: usize,
    /// Header of the datagram.
    pub header: DatagramHeader,
}

impl DatagramPlace {
    /// Bytes of the frame that hold the data.
    #[must_use]
    pub fn data(&self) -> Range<usize> {
        let start = self.offset + datagram::HEADER_LENGTH;
        start..start + usize::from(self.header.length)
    }

    /// Byte of the frame where the working counter starts.
    #[must_use]
    pub fn working_counter(&self) -> usize {
        self.data().end
    }

    /// The byte behind the datagram.
    #[must_use]
    pub fn end(&self) -> usize {
        self.working_counter() + WORKING_COUNTER_LENGTH
    }
}

/// The datagrams of `bytes` up to the first that is out of bounds; none if it is no EtherCAT frame.
///
/// An ESC does the same: it processes on the fly and cannot look ahead.
pub fn places(bytes: &[u8]) -> impl Iterator<Item = DatagramPlace> + use<'_> {
    let end = checked_end(bytes).unwrap_or(DATAGRAMS_OFFSET);
    let done = end == DATAGRAMS_OFFSET;
    Places { bytes, offset: DATAGRAMS_OFFSET, end, done }.map_while(Result::ok)
}

/// The datagram at `offset` of `bytes`, which end at `end`; the next one starts where this one
/// ends, if its header says that more follow. For walking a frame that changes on the way.
///
/// # Errors
/// [`FrameError::DatagramOverrun`] if it reaches past `end`.
pub fn place_at(bytes: &[u8], offset: usize, end: usize) -> Result<DatagramPlace, FrameError> {
    let overrun = |datagram_end| FrameError::DatagramOverrun { offset, end: datagram_end, limit: end };
    let shortest_end = offset + DATAGRAM_OVERHEAD;
    if shortest_end > end {
        return Err(overrun(shortest_end));
    }
    let header =
        bytes.get(offset..end).and_then(DatagramHeader::parse).ok_or_else(|| overrun(shortest_end))?;
    let place = DatagramPlace { offset, header };
    if place.end() > end { Err(overrun(place.end())) } else { Ok(place) }
}

/// Checks both headers of `bytes` and returns the byte behind the announced datagrams.
///
/// # Errors
/// As [`Frame::parse`], except for datagrams out of bounds.
pub fn checked_end(bytes: &[u8]) -> Result<usize, FrameError> {
    let too_short = FrameError::TooShort { expected: DATAGRAMS_OFFSET, found: bytes.len() };
    let ethertype = bytes.get(ETHERTYPE_OFFSET..ETHERTYPE_OFFSET + 2).ok_or(too_short)?;
    let ethertype = u16::from_be_bytes([ethertype[0], ethertype[1]]);
    if ethertype != ETHERCAT_ETHERTYPE {
        return Err(FrameError::NotEtherCat { found: ethertype });
    }
    let header = read_u16(bytes, ethernet::HEADER_LENGTH).ok_or(too_short)?;
    let frame_type = (header >> 12) as u8;
    if frame_type != TYPE_DATAGRAMS {
        return Err(FrameError::WrongType { found: frame_type });
    }
    let announced = usize::from(header & 0x07FF);
    let found = bytes.len() - DATAGRAMS_OFFSET;
    if announced > found {
        return Err(FrameError::Truncated { announced, found });
    }
    Ok(DATAGRAMS_OFFSET + announced)
}

/// Lays datagrams one behind the other into a buffer.
///
/// ```
/// use onbeat_ethercat::wire::{Address, Command, DatagramHeader, Frame, FrameBuilder, MacAddress};
///
/// let mut buffer = [0; 1514];
/// let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
/// let address = Address::Broadcast { register: 0x0130 };
/// builder.push(DatagramHeader::new(Command::Brd, 1, address, 2)).unwrap();
/// let length = builder.finish();
/// assert_eq!(length, 60); // padded to the shortest Ethernet frame
/// assert_eq!(Frame::parse(&buffer[..length]).unwrap().datagrams().count(), 1);
/// ```
#[derive(Debug)]
pub struct FrameBuilder<'a> {
    buffer: &'a mut [u8],
    length: usize,
    last: Option<usize>,
}

impl<'a> FrameBuilder<'a> {
    /// Starts a broadcast frame in `buffer`, which should hold
    /// [`crate::link::MAXIMUM_FRAME_LENGTH`].
    ///
    /// # Panics
    /// If `buffer` holds fewer bytes than the shortest Ethernet frame, 60.
    #[must_use]
    pub fn new(buffer: &'a mut [u8], source: MacAddress) -> Self {
        assert!(buffer.len() >= MINIMUM_FRAME_LENGTH, "a frame buffer holds at least 60 bytes");
        buffer[..SOURCE_OFFSET].copy_from_slice(&MacAddress::BROADCAST.0);
        buffer[SOURCE_OFFSET..ETHERTYPE_OFFSET].copy_from_slice(&source.0);
        buffer[ETHERTYPE_OFFSET..ETHERTYPE_OFFSET + 2].copy_from_slice(&ETHERCAT_ETHERTYPE.to_be_bytes());
        Self { buffer, length: DATAGRAMS_OFFSET, last: None }
    }

    /// Continues a frame of this builder behind its datagram from `last.start` to `last.end`; later
    /// ones are dropped. `None` if the buffer ends before.
    pub(crate) fn resume(buffer: &'a mut [u8], last: Range<usize>) -> Option<Self> {
        let flags = buffer.get_mut(last.clone())?.get_mut(7)?;
        *flags &= !MORE_FOLLOWS;
        Some(Self { buffer, length: last.end, last: Some(last.start) })
    }

    /// Bytes of data that still fit into one more datagram, or `None` if no datagram fits.
    #[must_use]
    pub fn room(&self) -> Option<usize> {
        self.buffer.len().checked_sub(self.length + DATAGRAM_OVERHEAD)
    }

    /// True if there is no datagram yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Appends a datagram with zeroed data and working counter, and returns its place; `None`, with
    /// nothing changed, if it does not fit. Sets `more_follows`.
    pub fn push(&mut self, mut header: DatagramHeader) -> Option<DatagramPlace> {
        if usize::from(header.length) > self.room()? {
            return None;
        }
        header.more_follows = false;
        if let Some(last) = self.last {
            self.buffer[last + 7] |= MORE_FOLLOWS;
        }
        let place = DatagramPlace { offset: self.length, header };
        self.buffer[place.offset..place.data().start].copy_from_slice(&header.emit());
        self.buffer[place.data().start..place.end()].fill(0);
        self.last = Some(place.offset);
        self.length = place.end();
        Some(place)
    }

    /// Appends a datagram that carries `data`.
    pub fn push_data(&mut self, header: DatagramHeader, data: &[u8]) -> Option<DatagramPlace> {
        debug_assert_eq!(usize::from(header.length), data.len());
        let place = self.push(header)?;
        self.data_mut(&place).copy_from_slice(data);
        Some(place)
    }

    /// The data of a datagram pushed before.
    pub fn data_mut(&mut self, place: &DatagramPlace) -> &mut [u8] {
        &mut self.buffer[place.data()]
    }

    /// Sets the working counter of a datagram pushed before, as a SubDevice would.
    pub fn set_working_counter(&mut self, place: &DatagramPlace, working_counter: u16) {
        let start = place.working_counter();
        let field = start..start + WORKING_COUNTER_LENGTH;
        self.buffer[field].copy_from_slice(&working_counter.to_le_bytes());
    }

    /// Writes the EtherCAT header, pads to the shortest Ethernet frame and returns the frame's
    /// length.
    #[must_use]
    pub fn finish(mut self) -> usize {
        self.write_header(self.length - DATAGRAMS_OFFSET, false);
        let length = self.length.max(MINIMUM_FRAME_LENGTH);
        self.buffer[self.length..length].fill(0);
        length
    }

    fn write_header(&mut self, announced: usize, reserved: bool) {
        let header =
            announced as u16 & 0x07FF | u16::from(reserved) << 11 | u16::from(TYPE_DATAGRAMS) << 12;
        self.buffer[ethernet::HEADER_LENGTH..DATAGRAMS_OFFSET].copy_from_slice(&header.to_le_bytes());
    }
}

impl Frame<'_> {
    /// Builds the same frame again in `buffer` from the parsed one, with addresses, reserved bits,
    /// working counters and padding, and returns its length; `None` if `buffer` is too short, or
    /// shorter than the shortest Ethernet frame.
    #[must_use]
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        if buffer.len() < MINIMUM_FRAME_LENGTH {
            return None;
        }
        let mut builder = FrameBuilder::new(buffer, self.source());
        builder.buffer[..SOURCE_OFFSET].copy_from_slice(&self.destination().0);
        for datagram in self.datagrams() {
            let place = builder.push_data(datagram.header, datagram.data)?;
            builder.set_working_counter(&place, datagram.working_counter);
        }
        let padding = self.padding();
        let length = builder.length + padding.len();
        builder.buffer.get_mut(builder.length..length)?.copy_from_slice(padding);
        builder.write_header(self.announced_length(), self.reserved());
        Some(length)
    }
}

struct Places<'a> {
    bytes: &'a [u8],
    offset: usize,
    end: usize,
    done: bool,
}

impl Iterator for Places<'_> {
    type Item = Result<DatagramPlace, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let place = place_at(self.bytes, self.offset, self.end);
        match &place {
            Ok(found) => {
                self.done = !found.header.more_follows;
                self.offset = found.end();
            }
            Err(_) => self.done = true,
        }
        Some(place)
    }
}

/// Source MAC address of a frame that [`checked_end`] has checked.
pub(crate) fn source(bytes: &[u8]) -> MacAddress {
    mac_address(bytes, SOURCE_OFFSET)
}

fn mac_address(bytes: &[u8], offset: usize) -> MacAddress {
    let mut address = [0; 6];
    address.copy_from_slice(&bytes[offset..offset + 6]);
    MacAddress(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Address, Command};

    fn two_datagrams(buffer: &mut [u8]) -> usize {
        let mut builder = FrameBuilder::new(buffer, MacAddress::MAIN_DEVICE);
        let brd = DatagramHeader::new(Command::Brd, 3, Address::Broadcast { register: 0x130 }, 2);
        builder.push(brd).unwrap();
        let lrw = DatagramHeader::new(Command::Lrw, 4, Address::Logical(0x1000), 4);
        builder.push_data(lrw, &[1, 2, 3, 4]).unwrap();
        builder.finish()
    }

    #[test]
    fn built_frame_parses_back() {
        let mut buffer = [0xEE; 100];
        let length = two_datagrams(&mut buffer);
        let frame = Frame::parse(&buffer[..length]).unwrap();
        let datagrams: Vec<_> = frame.datagrams().collect();
        assert_eq!(length, 60);
        assert_eq!(datagrams.len(), 2);
        assert!(datagrams[0].header.more_follows && !datagrams[1].header.more_follows);
        assert_eq!(datagrams[1].data, [1, 2, 3, 4]);
        assert!(frame.padding().iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_datagram_that_does_not_fit_changes_nothing() {
        let mut buffer = [0; 60];
        let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
        assert_eq!(builder.room(), Some(60 - 16 - 12));
        let too_long = DatagramHeader::new(Command::Lrw, 0, Address::Logical(0), 33);
        assert!(builder.push(too_long).is_none());
        assert!(builder.is_empty());
    }

    #[test]
    fn every_cut_of_a_frame_is_an_error_that_names_the_place() {
        let mut buffer = [0; 100];
        two_datagrams(&mut buffer);
        let unpadded = DATAGRAMS_OFFSET + 14 + 16;
        for length in 0..unpadded {
            assert!(Frame::parse(&buffer[..length]).is_err(), "cut at {length}");
        }
        assert!(Frame::parse(&buffer[..unpadded]).is_ok());
    }

    #[test]
    fn a_datagram_past_the_announced_length_is_refused() {
        let mut buffer = [0; 100];
        let length = two_datagrams(&mut buffer);
        buffer[DATAGRAMS_OFFSET + 14 + 6] = 50;
        let error = Frame::parse(&buffer[..length]).unwrap_err();
        assert_eq!(error, FrameError::DatagramOverrun { offset: 30, end: 92, limit: 46 });
    }

    #[test]
    fn foreign_frames_are_named() {
        let mut buffer = [0; 60];
        assert_eq!(Frame::parse(&buffer).unwrap_err(), FrameError::NotEtherCat { found: 0 });
        buffer[12..16].copy_from_slice(&[0x88, 0xA4, 0, 0x40]);
        assert_eq!(Frame::parse(&buffer).unwrap_err(), FrameError::WrongType { found: 4 });
    }
}
