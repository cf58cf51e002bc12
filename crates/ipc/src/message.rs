//! Messages of the ports [`control`] and [`trajectory`]: little-endian, of known length, encoded
//! and decoded without allocation, so that the real-time side can read them itself.
//!
//! Every message begins with the same sixteen bytes:
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | kind, u16 |
//! | 2..4 | [`VERSION`] of the layout, u16 |
//! | 4..8 | number, u32, with a meaning for each kind; 0 for a kind without one |
//! | 8..16 | id, u64: chosen by the client, repeated in the answers |
//!
//! Each message has a table of the bytes that follow. A message must end where its table ends; any
//! other length is refused, and so is every number that its field cannot hold. The controller
//! checks the *meaning* of a message, for example for an unknown axis or a point beyond the limits.

mod codec;
pub mod control;
pub mod trajectory;

use std::fmt;

pub use codec::{Rows, TooLong};
use thiserror::Error;

/// Version of the layout of all messages.
pub const VERSION: u16 = 1;

/// Most axes in one message.
pub const MOST_AXES: usize = 64;

/// Reason for bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("message's {field}: expected {expected}, found {found}")]
pub struct DecodeError {
    /// Name of the field that could not be read.
    pub field: &'static str,
    /// Values the field may have.
    pub expected: &'static str,
    /// Value found.
    pub found: Found,
}

/// Value found in place of the expected one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// Number of bytes.
    Bytes(usize),
    /// Integer.
    Number(u64),
    /// Floating-point number.
    Real(f64),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes} bytes"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number}"),
        }
    }
}

/// Buffer too short for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("message's buffer: expected room for {needed} bytes, found {found}")]
pub struct NoRoom {
    /// Bytes the message takes.
    pub needed: usize,
    /// Bytes of the buffer.
    pub found: usize,
}
