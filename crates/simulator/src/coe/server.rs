//! SDO server (ETG.1000.6, 5.6.2) and emergencies of a SubDevice (5.6.4).
//!
//! One transfer at a time: a new initiating request ends the previous one, as a client that lost a
//! reply starts again. Segments are as long as the mailbox allows.

use std::collections::VecDeque;

use ethercat::al::AlState;
use ethercat::sdo_abort::AbortCode;
use ethercat::wire::coe::{
    CoeFormatError, CoeHeader, CoeService, Emergency, SdoInformation, SdoPayload, SdoRequest, SdoResponse,
};
use ethercat::wire::mailbox::MailboxError;
use ethercat::wire::read_u16;

use super::dictionary::ObjectDictionary;
use super::information::Fragments;
use crate::application::Replies;

/// Server of an object dictionary.
#[derive(Clone, Debug)]
pub struct CoeServer {
    dictionary: ObjectDictionary,
    state: AlState,
    transfer: Transfer,
    fragments: Option<Fragments>,
    emergencies: VecDeque<Emergency>,
    message: Vec<u8>,
}

/// Address of an SDO.
#[derive(Clone, Copy, Debug)]
struct TransferTarget {
    index: u16,
    sub_index: u8,
    complete_access: bool,
}

/// Transfer that waits for its next segment.
#[derive(Clone, Debug)]
enum Transfer {
    None,
    Upload { target: TransferTarget, bytes: Vec<u8>, sent: usize, toggle: bool },
    Download { target: TransferTarget, bytes: Vec<u8>, total: usize, toggle: bool },
}

/// Largest number of emergencies that wait; later ones are dropped.
const EMERGENCY_LIMIT: usize = 16;

/// Bytes of CoE and SDO header before the data of a segment.
const SEGMENT_OVERHEAD: usize = 3;

impl CoeServer {
    /// A server of `dictionary`, in Init.
    #[must_use]
    pub fn new(dictionary: ObjectDictionary) -> Self {
        Self {
            dictionary,
            state: AlState::Init,
            transfer: Transfer::None,
            fragments: None,
            emergencies: VecDeque::new(),
            message: Vec::new(),
        }
    }

    /// Object dictionary.
    #[must_use]
    pub fn dictionary(&self) -> &ObjectDictionary {
        &self.dictionary
    }

    /// Object dictionary, to change values from inside the SubDevice.
    pub fn dictionary_mut(&mut self) -> &mut ObjectDictionary {
        &mut self.dictionary
    }

    /// Follows the AL state: access rights depend on it, and in Init every transfer and message is
    /// dropped with the mailbox.
    pub fn enter(&mut self, state: AlState) {
        self.state = state;
        if state == AlState::Init {
            self.transfer = Transfer::None;
            self.fragments = None;
            self.emergencies.clear();
        }
    }

    /// Sends an emergency with the next [`poll`](Self::poll). It is dropped if `EMERGENCY_LIMIT`
    /// others wait, or in Init, where there is no mailbox.
    pub fn send(&mut self, emergency: Emergency) {
        if self.emergencies.len() < EMERGENCY_LIMIT && self.state != AlState::Init {
            self.emergencies.push_back(emergency);
        }
    }

    /// True if messages wait.
    pub fn has_messages(&self) -> bool {
        !self.emergencies.is_empty() || self.fragments.is_some()
    }

    /// Sends waiting messages: emergencies and fragments of SDO information.
    pub fn poll(&mut self, replies: &mut Replies<'_>) {
        while let Some(emergency) = self.emergencies.front() {
            let mut message = [0; EMERGENCY_LENGTH];
            let length = emergency.emit(&mut message).unwrap_or(0);
            if !replies.push(&message[..length]) {
                break;
            }
            self.emergencies.pop_front();
        }
        if let Some(fragments) = &mut self.fragments {
            if fragments.push(replies, &mut self.message) {
                self.fragments = None;
            }
        }
    }

    /// Serves a CoE message, starting with its CoE header.
    ///
    /// # Errors
    /// The mailbox error to answer with (ETG.1000.4, 5.6, Table 29): "service not supported" for
    /// services of a MainDevice, "invalid header" for numbers that are not defined, "size too
    /// short" for a message that ends in a header.
    pub fn handle(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        let Ok((header, _)) = CoeHeader::parse(request) else { return Err(MailboxError::SIZE_TOO_SHORT) };
        match header.service {
            CoeService::SdoRequest => match SdoRequest::parse(request) {
                Ok(sdo) => self.serve(&sdo, request, replies),
                Err(error) => self.refuse(request, error, replies),
            },
            CoeService::SdoInformation => {
                self.fragments = match SdoInformation::parse(request) {
                    Ok(information) => Fragments::answering(&self.dictionary, &information.service),
                    Err(CoeFormatError::UnknownOperation { .. }) => {
                        Some(Fragments::error(AbortCode::UNKNOWN_COMMAND))
                    }
                    Err(_) => return Err(MailboxError::SIZE_TOO_SHORT),
                };
                self.poll(replies);
            }
            CoeService::Unknown(_) => return Err(MailboxError::INVALID_HEADER),
            _ => return Err(MailboxError::SERVICE_NOT_SUPPORTED),
        }
        Ok(())
    }

    fn serve(&mut self, sdo: &SdoRequest<'_>, request: &[u8], replies: &mut Replies<'_>) {
        match *sdo {
            SdoRequest::InitiateUpload { index, sub_index, complete_access } => {
                let target = TransferTarget { index, sub_index, complete_access };
                match self.initiate_upload(target, replies) {
                    Ok(transfer) => self.transfer = transfer,
                    Err(code) => self.abort(target, code, replies),
                }
            }
            SdoRequest::UploadSegment { toggle } => self.upload_segment(toggle, replies),
            SdoRequest::InitiateDownload { index, sub_index, complete_access, payload } => {
                let target = TransferTarget { index, sub_index, complete_access };
                match self.initiate_download(target, &payload, size_is_indicated(request)) {
                    Ok(transfer) => {
                        self.transfer = transfer;
                        let response = SdoResponse::InitiateDownload { index, sub_index, complete_access };
                        self.respond(&response, replies);
                    }
                    Err(code) => self.abort(target, code, replies),
                }
            }
            SdoRequest::DownloadSegment { toggle, last, data } => {
                self.download_segment(toggle, last, data, replies);
            }
            SdoRequest::Abort { .. } => self.transfer = Transfer::None,
        }
    }

    fn initiate_upload(
        &mut self,
        target: TransferTarget,
        replies: &mut Replies<'_>,
    ) -> Result<Transfer, AbortCode> {
        let TransferTarget { index, sub_index, complete_access } = target;
        let bytes = if complete_access {
            self.dictionary.upload_complete(index, sub_index, self.state)?
        } else {
            self.dictionary.upload(index, sub_index, self.state)?.to_vec()
        };
        let payload = SdoPayload::fitting(&bytes, replies.payload_limit());
        let sent = payload.data().len();
        self.respond(&SdoResponse::InitiateUpload { index, sub_index, complete_access, payload }, replies);
        if sent == bytes.len() {
            return Ok(Transfer::None);
        }
        Ok(Transfer::Upload { target, bytes, sent, toggle: false })
    }

    fn upload_segment(&mut self, toggle: bool, replies: &mut Replies<'_>) {
        match core::mem::replace(&mut self.transfer, Transfer::None) {
            Transfer::Upload { target, bytes, sent, toggle: expected } if toggle == expected => {
                let end = bytes.len().min(sent + replies.payload_limit().saturating_sub(SEGMENT_OVERHEAD));
                let last = end == bytes.len();
                let response = SdoResponse::UploadSegment { toggle, last, data: &bytes[sent..end] };
                self.respond(&response, replies);
                if !last {
                    self.transfer = Transfer::Upload { target, bytes, sent: end, toggle: !toggle };
                }
            }
            Transfer::Upload { target, .. } => {
                self.abort(target, AbortCode::TOGGLE_NOT_ALTERNATED, replies)
            }
            Transfer::Download { target, .. } => self.abort(target, AbortCode::UNKNOWN_COMMAND, replies),
            Transfer::None => self.abort(NO_TARGET, AbortCode::UNKNOWN_COMMAND, replies),
        }
    }

    fn initiate_download(
        &mut self,
        target: TransferTarget,
        payload: &SdoPayload<'_>,
        size_is_indicated: bool,
    ) -> Result<Transfer, AbortCode> {
        let TransferTarget { index, sub_index, complete_access } = target;
        let limit = if complete_access {
            self.dictionary.download_complete_limit(index, sub_index, self.state)?
        } else {
            self.dictionary.download_limit(index, sub_index, self.state)?
        };
        let mut bytes = payload.data();
        let mut total = payload.total_size();
        if !size_is_indicated {
            // All four bytes are present, and the object gives the number that counts.
            bytes = &bytes[..bytes.len().min(limit)];
            total = bytes.len();
        }
        if total > limit {
            return Err(AbortCode::TOO_LONG);
        }
        if bytes.len() < total {
            return Ok(Transfer::Download { target, bytes: bytes.to_vec(), total, toggle: false });
        }
        self.write(target, bytes)?;
        Ok(Transfer::None)
    }

    fn download_segment(&mut self, toggle: bool, last: bool, data: &[u8], replies: &mut Replies<'_>) {
        match core::mem::replace(&mut self.transfer, Transfer::None) {
            Transfer::Download { target, mut bytes, total, toggle: expected } if toggle == expected => {
                bytes.extend_from_slice(data);
                let result = match bytes.len() {
                    length if length > total => Err(AbortCode::TOO_LONG),
                    length if last && length < total => Err(AbortCode::TOO_SHORT),
                    _ if last => self.write(target, &bytes),
                    _ => {
                        self.transfer = Transfer::Download { target, bytes, total, toggle: !toggle };
                        Ok(())
                    }
                };
                match result {
                    Ok(()) => self.respond(&SdoResponse::DownloadSegment { toggle }, replies),
                    Err(code) => self.abort(target, code, replies),
                }
            }
            Transfer::Download { target, .. } => {
                self.abort(target, AbortCode::TOGGLE_NOT_ALTERNATED, replies);
            }
            Transfer::Upload { target, .. } => self.abort(target, AbortCode::UNKNOWN_COMMAND, replies),
            Transfer::None => self.abort(NO_TARGET, AbortCode::UNKNOWN_COMMAND, replies),
        }
    }

    fn write(&mut self, target: TransferTarget, bytes: &[u8]) -> Result<(), AbortCode> {
        let TransferTarget { index, sub_index, complete_access } = target;
        if complete_access {
            self.dictionary.download_complete(index, sub_index, bytes, self.state)
        } else {
            self.dictionary.download(index, sub_index, bytes, self.state)
        }
    }

    /// Answers a malformed SDO request.
    fn refuse(&mut self, request: &[u8], error: CoeFormatError, replies: &mut Replies<'_>) {
        let target = TransferTarget {
            index: read_u16(request, 3).unwrap_or(0),
            sub_index: request.get(5).copied().unwrap_or(0),
            complete_access: false,
        };
        let code = match error {
            CoeFormatError::UnknownCommand { .. } => AbortCode::UNKNOWN_COMMAND,
            _ => AbortCode::GENERAL,
        };
        self.abort(target, code, replies);
    }

    /// Ends the transfer. By the standard a server aborts with the request service (ETG.1000.6,
    /// 5.6.2.7).
    fn abort(&mut self, target: TransferTarget, code: AbortCode, replies: &mut Replies<'_>) {
        self.transfer = Transfer::None;
        let abort = SdoRequest::Abort { index: target.index, sub_index: target.sub_index, code };
        self.message.resize(replies.payload_limit(), 0);
        if let Ok(length) = abort.emit(&mut self.message) {
            replies.push(&self.message[..length]);
        }
    }

    fn respond(&mut self, response: &SdoResponse<'_>, replies: &mut Replies<'_>) {
        self.message.resize(replies.payload_limit(), 0);
        if let Ok(length) = response.emit(&mut self.message) {
            replies.push(&self.message[..length]);
        }
    }
}

const NO_TARGET: TransferTarget = TransferTarget { index: 0, sub_index: 0, complete_access: false };

/// Bytes of an emergency with its CoE header.
const EMERGENCY_LENGTH: usize = 10;

/// True if an initiate download gives its number of bytes; only an expedited one may omit it
/// (ETG.1000.6, 5.6.2.1, size indicator).
fn size_is_indicated(request: &[u8]) -> bool {
    request.get(2).is_none_or(|command| command & 0b11 != 0b10)
}

#[cfg(test)]
mod tests;
