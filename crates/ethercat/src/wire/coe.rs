//! CoE: the CAN application protocol in the mailbox (ETG.1000.6, 5.6).
//!
//! Client and server share this codec: every message parses from, and emits to, the *payload* of a
//! mailbox message, the bytes behind the mailbox header, starting with the CoE header. Nothing
//! allocates: data is borrowed. Offsets in errors count from the start of the payload.

mod emergency;
mod information;
mod sdo;

use core::fmt;

use thiserror::Error;

pub use emergency::Emergency;
pub use information::{
    AccessRights, EntryDescription, EntryValues, INFORMATION_HEADER_LENGTH, ListType, ObjectCode,
    ObjectDescription, SdoInformation, SdoInformationService, ValueInfo,
};
pub use sdo::{Expedited, SdoPayload, SdoRequest, SdoResponse};

use super::{read_u16, read_u32};

/// Bytes of a CoE header.
pub const HEADER_LENGTH: usize = 2;

/// Bytes of CoE and SDO header: every SDO message is at least this long (ETG.1000.6, 5.6.2).
pub const SDO_LENGTH: usize = 10;

/// Reason that a mailbox payload is not a CoE message, or a message does not fit.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CoeFormatError {
    /// The payload ends before the message does.
    #[error("CoE message ends at byte {found}, expected at least {expected} bytes")]
    Truncated {
        /// Bytes needed.
        expected: usize,
        /// Bytes there.
        found: usize,
    },
    /// Another service than the requested one.
    #[error("CoE service {found} at byte 1, expected {expected}")]
    WrongService {
        /// Requested service.
        expected: CoeService,
        /// Service found.
        found: CoeService,
    },
    /// An SDO command specifier that the service does not have.
    #[error("SDO command specifier {found} at byte 2, expected {expected}")]
    UnknownCommand {
        /// The specifiers that would have been right.
        expected: &'static str,
        /// The three bits that were there.
        found: u8,
    },
    /// An operation code of the SDO information service that is none.
    #[error("SDO information operation code {found} at byte 2, expected 1 to 7")]
    UnknownOperation {
        /// The seven bits that were there.
        found: u8,
    },
    /// A first segment longer than the whole.
    #[error("{found} bytes of data, but only {expected} were announced")]
    MoreThanAnnounced {
        /// The complete size.
        expected: usize,
        /// Bytes of data.
        found: usize,
    },
    /// The buffer to emit into is too short.
    #[error("CoE message of {expected} bytes does not fit into {found}")]
    NoRoom {
        /// Bytes needed.
        expected: usize,
        /// Bytes there.
        found: usize,
    },
}

/// The service of a CoE message (ETG.1000.6, 5.6.1, Table 29).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoeService {
    /// Emergency.
    Emergency,
    /// SDO request; also carries aborts of either side.
    SdoRequest,
    /// SDO response.
    SdoResponse,
    /// TxPDO through the mailbox.
    TxPdo,
    /// RxPDO through the mailbox.
    RxPdo,
    /// Remote request for a TxPDO.
    TxPdoRemoteRequest,
    /// Remote request for an RxPDO.
    RxPdoRemoteRequest,
    /// SDO information, both ways.
    SdoInformation,
    /// A number the standard does not define: 0, 9 to 15.
    Unknown(u8),
}

impl CoeService {
    /// The four bits on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Emergency => 1,
            Self::SdoRequest => 2,
            Self::SdoResponse => 3,
            Self::TxPdo => 4,
            Self::RxPdo => 5,
            Self::TxPdoRemoteRequest => 6,
            Self::RxPdoRemoteRequest => 7,
            Self::SdoInformation => 8,
            Self::Unknown(number) => number & 0x0F,
        }
    }

    /// The service with this number, of which four bits count.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number & 0x0F {
            1 => Self::Emergency,
            2 => Self::SdoRequest,
            3 => Self::SdoResponse,
            4 => Self::TxPdo,
            5 => Self::RxPdo,
            6 => Self::TxPdoRemoteRequest,
            7 => Self::RxPdoRemoteRequest,
            8 => Self::SdoInformation,
            other => Self::Unknown(other),
        }
    }
}

impl fmt::Display for CoeService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Emergency => "emergency",
            Self::SdoRequest => "SDO request",
            Self::SdoResponse => "SDO response",
            Self::TxPdo => "TxPDO",
            Self::RxPdo => "RxPDO",
            Self::TxPdoRemoteRequest => "TxPDO remote request",
            Self::RxPdoRemoteRequest => "RxPDO remote request",
            Self::SdoInformation => "SDO information",
            Self::Unknown(number) => return write!(f, "{number} (not defined)"),
        };
        write!(f, "{} ({name})", self.number())
    }
}

/// The CoE header (ETG.1000.6, 5.6.1, Table 29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoeHeader {
    /// PDO number, 0 to 511; 0 in all SDO services.
    pub number: u16,
    /// The three reserved bits between, kept so that a message re-emits byte for byte.
    pub reserved: u8,
    /// Service that follows.
    pub service: CoeService,
}

impl CoeHeader {
    /// The header of a message with number 0.
    #[must_use]
    pub const fn new(service: CoeService) -> Self {
        Self { number: 0, reserved: 0, service }
    }

    /// The header in the first two bytes of `payload`, and the bytes behind it.
    ///
    /// # Errors
    /// [`CoeFormatError::Truncated`].
    pub fn parse(payload: &[u8]) -> Result<(Self, &[u8]), CoeFormatError> {
        let truncated = CoeFormatError::Truncated { expected: HEADER_LENGTH, found: payload.len() };
        let bits = read_u16(payload, 0).ok_or(truncated)?;
        let header = Self {
            number: bits & 0x01FF,
            reserved: (bits >> 9 & 0x07) as u8,
            service: CoeService::from_number((bits >> 12) as u8),
        };
        Ok((header, &payload[HEADER_LENGTH..]))
    }

    /// The header's bytes on the wire.
    #[must_use]
    pub fn emit(&self) -> [u8; HEADER_LENGTH] {
        let bits = self.number & 0x01FF
            | u16::from(self.reserved & 0x07) << 9
            | u16::from(self.service.number()) << 12;
        bits.to_le_bytes()
    }
}

/// Any CoE message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoeMessage<'a> {
    /// SDO request, or an abort of either side.
    SdoRequest(SdoRequest<'a>),
    /// SDO response.
    SdoResponse(SdoResponse<'a>),
    /// SDO information, request or response.
    SdoInformation(SdoInformation<'a>),
    /// Emergency.
    Emergency(Emergency),
    /// PDOs through the mailbox, and services the standard does not define: header and the bytes
    /// behind it.
    Other(CoeHeader, &'a [u8]),
}

impl<'a> CoeMessage<'a> {
    /// The message in `payload`.
    ///
    /// # Errors
    /// A [`CoeFormatError`] that names the byte, the expected value and the one found.
    pub fn parse(payload: &'a [u8]) -> Result<Self, CoeFormatError> {
        let (header, body) = CoeHeader::parse(payload)?;
        Ok(match header.service {
            CoeService::SdoRequest => Self::SdoRequest(SdoRequest::parse(payload)?),
            CoeService::SdoResponse => Self::SdoResponse(SdoResponse::parse(payload)?),
            CoeService::SdoInformation => Self::SdoInformation(SdoInformation::parse(payload)?),
            CoeService::Emergency => Self::Emergency(Emergency::parse(payload)?),
            _ => Self::Other(header, body),
        })
    }

    /// Writes the message with its CoE header into `payload` and returns its bytes.
    ///
    /// # Errors
    /// [`CoeFormatError::NoRoom`], [`CoeFormatError::MoreThanAnnounced`].
    pub fn emit(&self, payload: &mut [u8]) -> Result<usize, CoeFormatError> {
        match self {
            Self::SdoRequest(request) => request.emit(payload),
            Self::SdoResponse(response) => response.emit(payload),
            Self::SdoInformation(information) => information.emit(payload),
            Self::Emergency(emergency) => emergency.emit(payload),
            Self::Other(header, body) => {
                let message = room(payload, HEADER_LENGTH + body.len())?;
                message[..HEADER_LENGTH].copy_from_slice(&header.emit());
                message[HEADER_LENGTH..].copy_from_slice(body);
                Ok(message.len())
            }
        }
    }
}

/// Checks that `payload` carries `service`.
fn expect(payload: &[u8], expected: CoeService) -> Result<(), CoeFormatError> {
    match CoeHeader::parse(payload)?.0.service {
        found if found == expected => Ok(()),
        found => Err(CoeFormatError::WrongService { expected, found }),
    }
}

/// `N` bytes of `payload` at `offset`.
fn field<const N: usize>(payload: &[u8], offset: usize) -> Result<[u8; N], CoeFormatError> {
    payload
        .get(offset..offset + N)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(CoeFormatError::Truncated { expected: offset + N, found: payload.len() })
}

/// The first `length` bytes of `payload`.
fn room(payload: &mut [u8], length: usize) -> Result<&mut [u8], CoeFormatError> {
    let found = payload.len();
    payload.get_mut(..length).ok_or(CoeFormatError::NoRoom { expected: length, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_re_emit_bit_for_bit() {
        for bits in (0..16).map(|bit| 1_u16 << bit).chain([0, 0xFFFF, 0x2000]) {
            let bytes = bits.to_le_bytes();
            assert_eq!(CoeHeader::parse(&bytes).unwrap().0.emit(), bytes);
        }
    }

    #[test]
    fn another_service_is_named() {
        let emergency = [0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0];
        let error = SdoRequest::parse(&emergency).unwrap_err();
        assert_eq!(error.to_string(), "CoE service 1 (emergency) at byte 1, expected 2 (SDO request)");
    }

    #[test]
    fn pdos_through_the_mailbox_survive() {
        let bytes = [0x01, 0x50, 1, 2, 3];
        let message = CoeMessage::parse(&bytes).unwrap();
        let mut out = [0; 8];
        assert_eq!(message.emit(&mut out), Ok(5));
        assert_eq!(out[..5], bytes);
        assert_eq!(message.emit(&mut out[..4]), Err(CoeFormatError::NoRoom { expected: 5, found: 4 }));
    }
}
