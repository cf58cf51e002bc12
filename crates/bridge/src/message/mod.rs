//! Messages of the ports [`control`] and [`trajectory`]: little-endian, of a known length, encoded and decoded without
//! allocation, so that the real-time side reads them itself.
//!
//! Every message begins with the same sixteen bytes:
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | kind, u16 |
//! | 2..4 | [`VERSION`] of the layout, u16 |
//! | 4..8 | a number whose meaning the kind gives, u32; 0 where it gives none |
//! | 8..16 | id, u64: chosen by who asks, repeated by who answers |
//!
//! Tables of what follows stand at each message. A message ends where its table ends: a shorter or longer one is
//! refused, and so is every number that is not one its field can hold. What a message *means* - an axis there is none of,
//! a point behind the limits - is for the controller to judge.

mod codec;
pub mod control;
pub mod trajectory;

use std::fmt;

pub use codec::{Rows, TooLong};
use thiserror::Error;

/// Version of the layout of all messages.
pub const VERSION: u16 = 1;

/// Axes one message can speak of.
pub const MOST_AXES: usize = 64;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("message's {field}: expected {expected}, found {found}")]
pub struct DecodeError {
    /// What could not be read.
    pub field: &'static str,
    /// What it may be.
    pub expected: &'static str,
    /// What it is.
    pub found: Found,
}

/// What was found where something else was expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// So many bytes.
    Bytes(usize),
    /// A whole number.
    Number(u64),
    /// Another number.
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

/// The buffer has no room for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("message's buffer: expected room for {needed} bytes, found {found}")]
pub struct NoRoom {
    /// Bytes the message takes.
    pub needed: usize,
    /// Bytes there are.
    pub found: usize,
}
