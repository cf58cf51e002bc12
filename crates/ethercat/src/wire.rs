//! The wire: checked bytes, and their meaning.
//!
//! All EtherCAT fields are little-endian (ETG.1000.4, 5.2); Ethernet's are big-endian.

pub mod coe;
pub mod datagram;
pub mod ethernet;
pub mod frame;
pub mod mailbox;

pub use datagram::{Address, Command, DatagramHeader};
pub use ethernet::MacAddress;
pub use frame::{Frame, FrameBuilder, FrameError};

/// Reads a little-endian `u16` at `offset`, or `None` past the end.
#[must_use]
pub fn read_u16(bytes: &[u8], offset: usize) -> Option<u16> {
    let field = bytes.get(offset..offset.checked_add(2)?)?;
    Some(u16::from_le_bytes(field.try_into().ok()?))
}

/// Reads a little-endian `u32` at `offset`, or `None` past the end.
#[must_use]
pub fn read_u32(bytes: &[u8], offset: usize) -> Option<u32> {
    let field = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_le_bytes(field.try_into().ok()?))
}

/// Reads a little-endian `u64` at `offset`, or `None` past the end.
#[must_use]
pub fn read_u64(bytes: &[u8], offset: usize) -> Option<u64> {
    let field = bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_le_bytes(field.try_into().ok()?))
}
