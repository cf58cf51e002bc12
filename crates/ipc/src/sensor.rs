//! Messages of device tasks, on the ports `imu`, `scan`, `sonar`, `led` and `wheels`.
//!
//! One message is one datagram, little-endian, and begins with the same [`Head`]:
//!
//! | byte | what |
//! |---|---|
//! | 0 | kind: 1 IMU, 2 scan, 3 sonar, 4 LED strip, 5 request to it, 6 wheels, 7 request to them |
//! | 1 | layout version, 1 |
//! | 2 | flags, 16 bits: bit 0 stale |
//! | 4 | sequence number, 32 bits: one more with every message of a port, wraps |
//! | 8 | time of measurement, CLOCK_MONOTONIC ns, 64 bits |
//! | 16 | time of sending, the same |
//!
//! Each kind's struct documents the bytes that follow. All numbers are SI. Encoding allocates
//! nothing, for use on the real-time side. A *stale* message repeats the last measurement because
//! no newer one came; its time stamp is the old one.

mod imu;
mod led;
mod scan;
mod sonar;
mod wheels;

use thiserror::Error;

pub use imu::Imu;
pub use led::{Led, LedRequest, Pattern};
pub use scan::{MOST_POINTS, Scan, ScanHead};
pub use sonar::Sonar;
pub use wheels::{WheelRequest, Wheels};

use crate::bytes::{self, Writer};

/// Head of every message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Sequence number of the message on its port.
    pub sequence: u32,
    /// Time of measurement, CLOCK_MONOTONIC; 0 if nothing was measured yet.
    pub stamp_ns: u64,
    /// Time of sending, CLOCK_MONOTONIC.
    pub sent_ns: u64,
    /// True if it repeats an old measurement because the device gives no new one.
    pub stale: bool,
}

/// Reason for a message that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SensorError {
    /// The length is not that of its kind.
    #[error("found {found} bytes, expected {expected}: is it a message of another port or version?")]
    Length {
        /// Length by the kind, or by the message's own count.
        expected: usize,
        /// Length found.
        found: usize,
    },
    /// The kind is not the expected one.
    #[error("found a message of kind {found}, expected kind {expected}: it belongs to another port")]
    Kind {
        /// Kind of this struct.
        expected: u8,
        /// Kind of the message.
        found: u8,
    },
    /// The layout has another version.
    #[error(
        "found layout version {found}, expected {VERSION}: both sides must be of the same Onbeat version"
    )]
    Version {
        /// Version of the message.
        found: u8,
    },
    /// A field has a value it cannot have.
    #[error("found {value} as {field}: no such value is known")]
    Value {
        /// Name of the field.
        field: &'static str,
        /// Value found.
        value: u32,
    },
}

/// Version of all layouts in this module.
const VERSION: u8 = 1;

/// Bytes of a [`Head`].
const HEAD: usize = 24;

const STALE: u16 = 1;

impl Head {
    fn write(&self, kind: u8, writer: &mut Writer<'_>) {
        writer.u8(kind);
        writer.u8(VERSION);
        writer.u16(if self.stale { STALE } else { 0 });
        writer.u32(self.sequence);
        writer.u64(self.stamp_ns);
        writer.u64(self.sent_ns);
    }

    /// Reads the head of a message of `kind` that is at least `length` bytes long.
    fn read<'a>(bytes: &'a [u8], kind: u8, length: usize) -> Result<(Self, Reader<'a>), SensorError> {
        if bytes.len() < length.max(HEAD) {
            return Err(SensorError::Length { expected: length, found: bytes.len() });
        }
        let mut reader = Reader::new(bytes);
        let (found, version) = (reader.u8(), reader.u8());
        if found != kind {
            return Err(SensorError::Kind { expected: kind, found });
        }
        if version != VERSION {
            return Err(SensorError::Version { found: version });
        }
        let stale = reader.u16() & STALE != 0;
        let sequence = reader.u32();
        let head = Self { sequence, stamp_ns: reader.u64(), sent_ns: reader.u64(), stale };
        Ok((head, reader))
    }

    /// Reads the head of a message that is exactly `length` bytes long.
    fn read_exactly<'a>(
        bytes: &'a [u8],
        kind: u8,
        length: usize,
    ) -> Result<(Self, Reader<'a>), SensorError> {
        let read = Self::read(bytes, kind, length)?;
        if bytes.len() != length {
            return Err(SensorError::Length { expected: length, found: bytes.len() });
        }
        Ok(read)
    }
}

/// Reads a message of a length that was checked before; zeros beyond its end.
struct Reader<'a>(bytes::Reader<'a>);

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self(bytes::Reader::new(bytes))
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        self.0.take().unwrap_or([0; N])
    }

    fn u8(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn f32(&mut self) -> f32 {
        f32::from_le_bytes(self.take())
    }

    fn f64(&mut self) -> f64 {
        f64::from_le_bytes(self.take())
    }

    fn f64s<const N: usize>(&mut self) -> [f64; N] {
        std::array::from_fn(|_| self.f64())
    }
}

#[cfg(test)]
mod tests;
