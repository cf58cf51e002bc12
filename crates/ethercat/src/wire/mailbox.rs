//! The mailbox: six bytes before every message, and the error reply (ETG.1000.4, 5.6).

use core::fmt;

use thiserror::Error;

use super::read_u16;

/// Bytes of a mailbox header.
pub const HEADER_LENGTH: usize = 6;

/// Bytes of an error reply behind the mailbox header.
pub const ERROR_LENGTH: usize = 4;

/// Highest counter; after it comes 1 again, as 0 means "no counter" (ETG.1000.4, 5.6, Table 29).
pub const MAXIMUM_COUNTER: u8 = 7;

/// Reason that bytes are not a mailbox message, or a message does not fit.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MailboxFormatError {
    /// The bytes end before a field does.
    #[error("mailbox ends at byte {found}, expected {expected} bytes")]
    Truncated {
        /// Bytes needed from the start of the mailbox header.
        expected: usize,
        /// Bytes there.
        found: usize,
    },
    /// The header promises more than the mailbox holds.
    #[error(
        "length field at byte 0 announces {announced} bytes behind the header, the mailbox has {found}"
    )]
    LengthBeyondMailbox {
        /// The length field.
        announced: usize,
        /// Bytes behind the header.
        found: usize,
    },
    /// An error reply with another type than 1.
    #[error("mailbox error reply: type {found:#06x} at byte 6, expected 0x0001")]
    WrongErrorType {
        /// Length of the message found.
        found: u16,
    },
    /// The buffer to emit into is too short.
    #[error("mailbox message of {expected} bytes does not fit into {found}")]
    NoRoom {
        /// Bytes needed.
        expected: usize,
        /// Bytes there.
        found: usize,
    },
}

/// The protocol of a mailbox message (ETG.1000.4, 5.6, Table 29).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MailboxType {
    /// Error reply: [`MailboxError`].
    Error,
    /// ADS over EtherCAT.
    Aoe,
    /// Ethernet over EtherCAT.
    Eoe,
    /// CAN application protocol over EtherCAT: [`super::coe`].
    Coe,
    /// File access over EtherCAT.
    Foe,
    /// Servo drive profile over EtherCAT.
    Soe,
    /// Vendor-specific (VoE).
    Vendor,
    /// A number the standard does not define, 6 to 14.
    Unknown(u8),
}

impl MailboxType {
    /// The four bits on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Error => 0,
            Self::Aoe => 1,
            Self::Eoe => 2,
            Self::Coe => 3,
            Self::Foe => 4,
            Self::Soe => 5,
            Self::Vendor => 15,
            Self::Unknown(number) => number & 0x0F,
        }
    }

    /// The type with this number, of which four bits count.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number & 0x0F {
            0 => Self::Error,
            1 => Self::Aoe,
            2 => Self::Eoe,
            3 => Self::Coe,
            4 => Self::Foe,
            5 => Self::Soe,
            15 => Self::Vendor,
            other => Self::Unknown(other),
        }
    }
}

impl fmt::Display for MailboxType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => f.pad("error reply"),
            Self::Aoe => f.pad("AoE"),
            Self::Eoe => f.pad("EoE"),
            Self::Coe => f.pad("CoE"),
            Self::Foe => f.pad("FoE"),
            Self::Soe => f.pad("SoE"),
            Self::Vendor => f.pad("VoE"),
            Self::Unknown(number) => write!(f, "mailbox type {number}"),
        }
    }
}

/// The mailbox header (ETG.1000.4, 5.6, Table 29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes behind the header.
    pub length: u16,
    /// Station address of the sender or receiver of forwarded messages; 0 to and from the
    /// MainDevice.
    pub address: u16,
    /// Reserved for channels, 0 to 63; 0.
    pub channel: u8,
    /// Priority, 0 (lowest) to 3.
    pub priority: u8,
    /// Protocol.
    pub kind: MailboxType,
    /// Sequence number 1 to 7, by which a repeated message is known; 0: not numbered.
    pub counter: u8,
    /// The last reserved bit, kept so that a message re-emits byte for byte.
    pub reserved: bool,
}

impl Header {
    /// A header to or from the MainDevice for `length` bytes behind it.
    #[must_use]
    pub const fn new(kind: MailboxType, counter: u8, length: u16) -> Self {
        Self { length, address: 0, channel: 0, priority: 0, kind, counter, reserved: false }
    }

    /// The header of the message in `mailbox`, and the bytes behind it that belong to the message.
    ///
    /// # Errors
    /// [`MailboxFormatError::Truncated`], [`MailboxFormatError::LengthBeyondMailbox`].
    pub fn parse(mailbox: &[u8]) -> Result<(Self, &[u8]), MailboxFormatError> {
        let truncated = MailboxFormatError::Truncated { expected: HEADER_LENGTH, found: mailbox.len() };
        let [channel_and_priority, kind_and_counter] = *mailbox.get(4..6).ok_or(truncated)? else {
            return Err(truncated);
        };
        let header = Self {
            length: read_u16(mailbox, 0).ok_or(truncated)?,
            address: read_u16(mailbox, 2).ok_or(truncated)?,
            channel: channel_and_priority & 0x3F,
            priority: channel_and_priority >> 6,
            kind: MailboxType::from_number(kind_and_counter),
            counter: kind_and_counter >> 4 & 0x07,
            reserved: kind_and_counter & 0x80 != 0,
        };
        let payload = &mailbox[HEADER_LENGTH..];
        let announced = usize::from(header.length);
        let beyond = MailboxFormatError::LengthBeyondMailbox { announced, found: payload.len() };
        Ok((header, payload.get(..announced).ok_or(beyond)?))
    }

    /// The header's bytes on the wire.
    #[must_use]
    pub fn emit(&self) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        bytes[0..2].copy_from_slice(&self.length.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.address.to_le_bytes());
        bytes[4] = self.channel & 0x3F | self.priority << 6;
        bytes[5] = self.kind.number() | (self.counter & 0x07) << 4 | u8::from(self.reserved) << 7;
        bytes
    }
}

/// The counter that follows `counter`: 1 to 7 and round again, never 0.
#[must_use]
pub const fn next_counter(counter: u8) -> u8 {
    if counter >= MAXIMUM_COUNTER { 1 } else { counter + 1 }
}

/// Fault of a mailbox message, as the error reply says it (ETG.1000.4, 5.6, Table 30).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MailboxError(pub u16);

impl MailboxError {
    /// Syntax of the mailbox header is wrong.
    pub const SYNTAX: Self = Self(1);
    /// The protocol is not supported.
    pub const UNSUPPORTED_PROTOCOL: Self = Self(2);
    /// The channel field is wrong.
    pub const INVALID_CHANNEL: Self = Self(3);
    /// The service of the protocol is not supported.
    pub const SERVICE_NOT_SUPPORTED: Self = Self(4);
    /// The protocol's header is wrong.
    pub const INVALID_HEADER: Self = Self(5);
    /// The message is too short.
    pub const SIZE_TOO_SHORT: Self = Self(6);
    /// No memory left for the message.
    pub const NO_MORE_MEMORY: Self = Self(7);
    /// Lengths contradict each other.
    pub const INVALID_SIZE: Self = Self(8);
    /// The service is already in work.
    pub const SERVICE_IN_WORK: Self = Self(9);

    /// Meaning of the code.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::SYNTAX => "syntax of the mailbox header is wrong",
            Self::UNSUPPORTED_PROTOCOL => "mailbox protocol not supported",
            Self::INVALID_CHANNEL => "invalid channel",
            Self::SERVICE_NOT_SUPPORTED => "service of the mailbox protocol not supported",
            Self::INVALID_HEADER => "header of the mailbox protocol is wrong",
            Self::SIZE_TOO_SHORT => "message too short",
            Self::NO_MORE_MEMORY => "no memory left for the message",
            Self::INVALID_SIZE => "lengths in the message contradict each other",
            Self::SERVICE_IN_WORK => "service already in work",
            _ => "code not defined by the standard",
        }
    }

    /// The error reply behind a mailbox header of type [`MailboxType::Error`].
    #[must_use]
    pub fn emit(self) -> [u8; ERROR_LENGTH] {
        let [low, high] = self.0.to_le_bytes();
        [ERROR_TYPE as u8, 0, low, high]
    }

    /// The error reply in `payload`, the bytes behind a mailbox header of type
    /// [`MailboxType::Error`].
    ///
    /// # Errors
    /// [`MailboxFormatError::Truncated`], [`MailboxFormatError::WrongErrorType`].
    pub fn parse(payload: &[u8]) -> Result<Self, MailboxFormatError> {
        let truncated = MailboxFormatError::Truncated {
            expected: HEADER_LENGTH + ERROR_LENGTH,
            found: HEADER_LENGTH + payload.len(),
        };
        match read_u16(payload, 0).ok_or(truncated)? {
            ERROR_TYPE => Ok(Self(read_u16(payload, 2).ok_or(truncated)?)),
            found => Err(MailboxFormatError::WrongErrorType { found }),
        }
    }
}

impl fmt::Display for MailboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mailbox error {:#06x}: {}", self.0, self.text())
    }
}

/// Writes a whole message, header and `payload`, into `mailbox`, and returns its bytes.
///
/// # Errors
/// [`MailboxFormatError::NoRoom`].
pub fn emit(
    kind: MailboxType,
    counter: u8,
    payload: &[u8],
    mailbox: &mut [u8],
) -> Result<usize, MailboxFormatError> {
    let end = HEADER_LENGTH + payload.len();
    let no_room = MailboxFormatError::NoRoom { expected: end, found: mailbox.len() };
    let length = u16::try_from(payload.len()).map_err(|_| no_room)?;
    let message = mailbox.get_mut(..end).ok_or(no_room)?;
    message[..HEADER_LENGTH].copy_from_slice(&Header::new(kind, counter, length).emit());
    message[HEADER_LENGTH..].copy_from_slice(payload);
    Ok(end)
}

const ERROR_TYPE: u16 = 0x0001;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_re_emit_bit_for_bit() {
        for byte in 0..=u8::MAX {
            let bytes = [0, 0, 0xE9, 0x03, byte, byte.rotate_left(3)];
            assert_eq!(Header::parse(&bytes).unwrap().0.emit(), bytes);
        }
    }

    #[test]
    fn payload_ends_where_the_length_field_says() {
        let mut mailbox = [0xEE; 32];
        let end = emit(MailboxType::Coe, 5, &[1, 2, 3], &mut mailbox).unwrap();
        let (header, payload) = Header::parse(&mailbox).unwrap();
        assert_eq!((end, payload), (9, &[1, 2, 3][..]));
        assert_eq!(header, Header::new(MailboxType::Coe, 5, 3));
    }

    #[test]
    fn cut_and_overlong_messages_are_errors_that_name_the_place() {
        use MailboxFormatError::{LengthBeyondMailbox, NoRoom, Truncated};
        assert_eq!(Header::parse(&[0; 5]).unwrap_err(), Truncated { expected: 6, found: 5 });
        let cut = Header::parse(&[10, 0, 0, 0, 0, 3, 0]).unwrap_err();
        assert_eq!(cut, LengthBeyondMailbox { announced: 10, found: 1 });
        let no_room = emit(MailboxType::Coe, 1, &[0; 10], &mut [0; 15]).unwrap_err();
        assert_eq!(no_room, NoRoom { expected: 16, found: 15 });
    }

    #[test]
    fn error_replies_parse_back() {
        assert_eq!(MailboxError::parse(&MailboxError::INVALID_SIZE.emit()), Ok(MailboxError::INVALID_SIZE));
        let wrong = MailboxFormatError::WrongErrorType { found: 2 };
        assert_eq!(MailboxError::parse(&[2, 0, 1, 0]), Err(wrong));
    }

    #[test]
    fn counters_go_round_without_zero() {
        let seen: Vec<_> = core::iter::successors(Some(0), |&c| Some(next_counter(c))).take(9).collect();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7, 1]);
    }
}
