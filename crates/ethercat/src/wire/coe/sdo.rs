//! SDO transfers: expedited, normal and segmented, complete access, abort (ETG.1000.6, 5.6.2).

use super::{CoeFormatError, CoeHeader, CoeService, SDO_LENGTH, expect, field, read_u16, read_u32, room};
use crate::sdo_abort::AbortCode;

/// Data of an expedited transfer: 1 to 4 bytes inside the SDO header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expedited {
    bytes: [u8; 4],
    /// `None`: the sender did not say how many of the four bytes count.
    length: Option<u8>,
}

impl Expedited {
    /// For `data` of 1 to 4 bytes; `None` for any other length.
    #[must_use]
    pub fn new(data: &[u8]) -> Option<Self> {
        if data.is_empty() {
            return None;
        }
        let mut bytes = [0; 4];
        bytes.get_mut(..data.len())?.copy_from_slice(data);
        Some(Self { bytes, length: Some(data.len() as u8) })
    }

    /// The bytes that count; all four if the sender did not say.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length.unwrap_or(4)).min(4)]
    }
}

/// Contents of an initiating message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdoPayload<'a> {
    /// All of it, 1 to 4 bytes.
    Expedited(Expedited),
    /// `data` is the first part of `total_size` bytes; if it is shorter, segments follow.
    Normal {
        /// Bytes of the whole transfer.
        total_size: u32,
        /// As many of them as the mailbox holds.
        data: &'a [u8],
    },
}

impl<'a> SdoPayload<'a> {
    /// Expedited if `data` has 1 to 4 bytes, otherwise normal with as much of it as `room` bytes of
    /// mailbox payload (behind the mailbox header) hold. The rest goes in segments.
    #[must_use]
    pub fn fitting(data: &'a [u8], room: usize) -> Self {
        match Expedited::new(data) {
            Some(expedited) => Self::Expedited(expedited),
            None => Self::Normal {
                total_size: data.len() as u32,
                data: &data[..data.len().min(room.saturating_sub(SDO_LENGTH))],
            },
        }
    }

    /// The data in this message.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        match self {
            Self::Expedited(expedited) => expedited.data(),
            Self::Normal { data, .. } => data,
        }
    }

    /// Bytes of the whole transfer.
    #[must_use]
    pub fn total_size(&self) -> usize {
        match self {
            Self::Expedited(expedited) => expedited.data().len(),
            Self::Normal { total_size, .. } => *total_size as usize,
        }
    }
}

/// Messages of an SDO client, and an abort of either side (ETG.1000.6, 5.6.2.1 to 5.6.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdoRequest<'a> {
    /// Write an object.
    InitiateDownload {
        /// Object index.
        index: u16,
        /// Sub-index; with complete access 0 or 1, the first one written.
        sub_index: u8,
        /// All sub-indices at once.
        complete_access: bool,
        /// The data, or its beginning.
        payload: SdoPayload<'a>,
    },
    /// The next part of a download.
    DownloadSegment {
        /// Alternates, starting with `false`.
        toggle: bool,
        /// No more follow.
        last: bool,
        /// The part.
        data: &'a [u8],
    },
    /// Read an object.
    InitiateUpload {
        /// Object index.
        index: u16,
        /// Sub-index; with complete access 0 or 1, the first one read.
        sub_index: u8,
        /// All sub-indices at once.
        complete_access: bool,
    },
    /// Ask for the next part of an upload.
    UploadSegment {
        /// Alternates, starting with `false`.
        toggle: bool,
    },
    /// End the transfer. Servers send it too, with this same service.
    Abort {
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// Reason.
        code: AbortCode,
    },
}

impl<'a> SdoRequest<'a> {
    /// The request in a mailbox payload.
    ///
    /// # Errors
    /// A [`CoeFormatError`] that names the byte, the expected value and the one found.
    pub fn parse(payload: &'a [u8]) -> Result<Self, CoeFormatError> {
        expect(payload, CoeService::SdoRequest)?;
        let [command] = field(payload, 2)?;
        Ok(match command >> 5 {
            DOWNLOAD_SEGMENT_REQUEST => Self::DownloadSegment {
                toggle: command & TOGGLE != 0,
                last: command & LAST != 0,
                data: segment_data(payload, command)?,
            },
            INITIATE_DOWNLOAD_REQUEST => {
                let (index, sub_index) = address(payload)?;
                let complete_access = command & COMPLETE_ACCESS != 0;
                let payload = parse_payload(payload, command)?;
                Self::InitiateDownload { index, sub_index, complete_access, payload }
            }
            INITIATE_UPLOAD => {
                let (index, sub_index) = address(payload)?;
                let complete_access = command & COMPLETE_ACCESS != 0;
                Self::InitiateUpload { index, sub_index, complete_access }
            }
            UPLOAD_SEGMENT_REQUEST => Self::UploadSegment { toggle: command & TOGGLE != 0 },
            ABORT => {
                let (index, sub_index) = address(payload)?;
                Self::Abort { index, sub_index, code: abort_code(payload)? }
            }
            found => return Err(CoeFormatError::UnknownCommand { expected: "0 to 4", found }),
        })
    }

    /// Writes the message into `payload` and returns its bytes, at least [`SDO_LENGTH`].
    ///
    /// # Errors
    /// [`CoeFormatError::NoRoom`], [`CoeFormatError::MoreThanAnnounced`].
    pub fn emit(&self, payload: &mut [u8]) -> Result<usize, CoeFormatError> {
        let mut message = Message { service: CoeService::SdoRequest, payload };
        match *self {
            Self::InitiateDownload { index, sub_index, complete_access, payload: data } => {
                let command = INITIATE_DOWNLOAD_REQUEST << 5 | complete_access_bit(complete_access);
                message.initiate(command, index, sub_index, &data)
            }
            Self::DownloadSegment { toggle, last, data } => {
                message.segment(DOWNLOAD_SEGMENT_REQUEST << 5 | toggle_bit(toggle) | u8::from(last), data)
            }
            Self::InitiateUpload { index, sub_index, complete_access } => {
                let command = INITIATE_UPLOAD << 5 | complete_access_bit(complete_access);
                message.fixed(command, index, sub_index, [0; 4])
            }
            Self::UploadSegment { toggle } => {
                message.fixed(UPLOAD_SEGMENT_REQUEST << 5 | toggle_bit(toggle), 0, 0, [0; 4])
            }
            Self::Abort { index, sub_index, code } => {
                message.fixed(ABORT << 5, index, sub_index, code.0.to_le_bytes())
            }
        }
    }
}

/// Answers of an SDO server (ETG.1000.6, 5.6.2.1 to 5.6.2.7).
///
/// By the standard a server aborts with [`SdoRequest::Abort`]; some devices use the response
/// service for it, so a client accepts both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdoResponse<'a> {
    /// The object is written, or its first part taken.
    InitiateDownload {
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// As in the request.
        complete_access: bool,
    },
    /// The part is taken.
    DownloadSegment {
        /// As in the request.
        toggle: bool,
    },
    /// The object, or its first part.
    InitiateUpload {
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// As in the request.
        complete_access: bool,
        /// The data, or its beginning.
        payload: SdoPayload<'a>,
    },
    /// The next part.
    UploadSegment {
        /// As in the request.
        toggle: bool,
        /// No more follow.
        last: bool,
        /// The part.
        data: &'a [u8],
    },
    /// End of the transfer.
    Abort {
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// Reason.
        code: AbortCode,
    },
}

impl<'a> SdoResponse<'a> {
    /// The response in a mailbox payload.
    ///
    /// # Errors
    /// A [`CoeFormatError`] that names the byte, the expected value and the one found.
    pub fn parse(payload: &'a [u8]) -> Result<Self, CoeFormatError> {
        expect(payload, CoeService::SdoResponse)?;
        let [command] = field(payload, 2)?;
        Ok(match command >> 5 {
            UPLOAD_SEGMENT_RESPONSE => Self::UploadSegment {
                toggle: command & TOGGLE != 0,
                last: command & LAST != 0,
                data: segment_data(payload, command)?,
            },
            DOWNLOAD_SEGMENT_RESPONSE => Self::DownloadSegment { toggle: command & TOGGLE != 0 },
            INITIATE_UPLOAD => {
                let (index, sub_index) = address(payload)?;
                let complete_access = command & COMPLETE_ACCESS != 0;
                let payload = parse_payload(payload, command)?;
                Self::InitiateUpload { index, sub_index, complete_access, payload }
            }
            INITIATE_DOWNLOAD_RESPONSE => {
                let (index, sub_index) = address(payload)?;
                let complete_access = command & COMPLETE_ACCESS != 0;
                Self::InitiateDownload { index, sub_index, complete_access }
            }
            ABORT => {
                let (index, sub_index) = address(payload)?;
                Self::Abort { index, sub_index, code: abort_code(payload)? }
            }
            found => return Err(CoeFormatError::UnknownCommand { expected: "0 to 4", found }),
        })
    }

    /// Writes the message into `payload` and returns its bytes, at least [`SDO_LENGTH`].
    ///
    /// # Errors
    /// [`CoeFormatError::NoRoom`], [`CoeFormatError::MoreThanAnnounced`].
    pub fn emit(&self, payload: &mut [u8]) -> Result<usize, CoeFormatError> {
        let mut message = Message { service: CoeService::SdoResponse, payload };
        match *self {
            Self::InitiateDownload { index, sub_index, complete_access } => {
                let command = INITIATE_DOWNLOAD_RESPONSE << 5 | complete_access_bit(complete_access);
                message.fixed(command, index, sub_index, [0; 4])
            }
            Self::DownloadSegment { toggle } => {
                message.fixed(DOWNLOAD_SEGMENT_RESPONSE << 5 | toggle_bit(toggle), 0, 0, [0; 4])
            }
            Self::InitiateUpload { index, sub_index, complete_access, payload: data } => {
                let command = INITIATE_UPLOAD << 5 | complete_access_bit(complete_access);
                message.initiate(command, index, sub_index, &data)
            }
            Self::UploadSegment { toggle, last, data } => {
                message.segment(UPLOAD_SEGMENT_RESPONSE << 5 | toggle_bit(toggle) | u8::from(last), data)
            }
            Self::Abort { index, sub_index, code } => {
                message.fixed(ABORT << 5, index, sub_index, code.0.to_le_bytes())
            }
        }
    }
}

/// Lays out the three shapes of SDO message.
struct Message<'m> {
    service: CoeService,
    payload: &'m mut [u8],
}

impl Message<'_> {
    fn fixed(
        &mut self,
        command: u8,
        index: u16,
        sub_index: u8,
        data: [u8; 4],
    ) -> Result<usize, CoeFormatError> {
        let message = room(self.payload, SDO_LENGTH)?;
        message[0..2].copy_from_slice(&CoeHeader::new(self.service).emit());
        message[2] = command;
        message[3..5].copy_from_slice(&index.to_le_bytes());
        message[5] = sub_index;
        message[6..10].copy_from_slice(&data);
        Ok(SDO_LENGTH)
    }

    fn initiate(
        &mut self,
        command: u8,
        index: u16,
        sub_index: u8,
        payload: &SdoPayload<'_>,
    ) -> Result<usize, CoeFormatError> {
        match *payload {
            SdoPayload::Expedited(Expedited { bytes, length }) => {
                // Two bits hold how many of the four bytes do NOT count.
                let size = length.map_or(0, |length| SIZE_INDICATED | (4 - length.clamp(1, 4)) << 2);
                self.fixed(command | EXPEDITED | size, index, sub_index, bytes)
            }
            SdoPayload::Normal { total_size, data } => {
                if data.len() > total_size as usize {
                    let (expected, found) = (total_size as usize, data.len());
                    return Err(CoeFormatError::MoreThanAnnounced { expected, found });
                }
                let end = SDO_LENGTH + data.len();
                room(self.payload, end)?[SDO_LENGTH..].copy_from_slice(data);
                self.fixed(command | SIZE_INDICATED, index, sub_index, total_size.to_le_bytes())?;
                Ok(end)
            }
        }
    }

    fn segment(&mut self, command: u8, data: &[u8]) -> Result<usize, CoeFormatError> {
        let unused = SHORTEST_SEGMENT.saturating_sub(data.len());
        let message = room(self.payload, SEGMENT_OFFSET + data.len() + unused)?;
        message[0..2].copy_from_slice(&CoeHeader::new(self.service).emit());
        message[2] = command | (unused as u8) << 1;
        let (part, padding) = message[SEGMENT_OFFSET..].split_at_mut(data.len());
        part.copy_from_slice(data);
        padding.fill(0);
        Ok(message.len())
    }
}

fn address(payload: &[u8]) -> Result<(u16, u8), CoeFormatError> {
    let bytes: [u8; 3] = field(payload, 3)?;
    Ok((read_u16(&bytes, 0).unwrap_or(0), bytes[2]))
}

fn abort_code(payload: &[u8]) -> Result<AbortCode, CoeFormatError> {
    Ok(AbortCode(u32::from_le_bytes(field(payload, 6)?)))
}

fn parse_payload(payload: &[u8], command: u8) -> Result<SdoPayload<'_>, CoeFormatError> {
    let bytes: [u8; 4] = field(payload, 6)?;
    if command & EXPEDITED != 0 {
        let length = (command & SIZE_INDICATED != 0).then_some(4 - (command >> 2 & 0x03));
        return Ok(SdoPayload::Expedited(Expedited { bytes, length }));
    }
    let total_size = read_u32(&bytes, 0).unwrap_or(0);
    let behind = payload.get(SDO_LENGTH..).unwrap_or(&[]);
    // Bytes behind the announced length are padding.
    let length = behind.len().min(total_size as usize);
    Ok(SdoPayload::Normal { total_size, data: &behind[..length] })
}

/// A segment shorter than seven bytes is padded to seven, and three bits say how many are padding.
fn segment_data(payload: &[u8], command: u8) -> Result<&[u8], CoeFormatError> {
    let behind = payload.get(SEGMENT_OFFSET..).unwrap_or(&[]);
    if behind.len() > SHORTEST_SEGMENT {
        return Ok(behind);
    }
    let length = SHORTEST_SEGMENT - usize::from(command >> 1 & 0x07);
    let truncated = CoeFormatError::Truncated { expected: SEGMENT_OFFSET + length, found: payload.len() };
    behind.get(..length).ok_or(truncated)
}

const fn toggle_bit(toggle: bool) -> u8 {
    if toggle { TOGGLE } else { 0 }
}

const fn complete_access_bit(complete_access: bool) -> u8 {
    if complete_access { COMPLETE_ACCESS } else { 0 }
}

// Command specifiers, the top three bits (ETG.1000.6, Tables 30 to 40).
const DOWNLOAD_SEGMENT_REQUEST: u8 = 0;
const INITIATE_DOWNLOAD_REQUEST: u8 = 1;
const UPLOAD_SEGMENT_REQUEST: u8 = 3;
const UPLOAD_SEGMENT_RESPONSE: u8 = 0;
const DOWNLOAD_SEGMENT_RESPONSE: u8 = 1;
const INITIATE_DOWNLOAD_RESPONSE: u8 = 3;
/// Both request and response.
const INITIATE_UPLOAD: u8 = 2;
const ABORT: u8 = 4;

// Initiating messages.
const SIZE_INDICATED: u8 = 0x01;
const EXPEDITED: u8 = 0x02;
const COMPLETE_ACCESS: u8 = 0x10;

// Segments.
const LAST: u8 = 0x01;
const TOGGLE: u8 = 0x10;
const SEGMENT_OFFSET: usize = 3;
const SHORTEST_SEGMENT: usize = 7;

#[cfg(test)]
mod tests;
