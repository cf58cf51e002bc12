//! One CoE transfer to or from one SubDevice, message by message (ETG.1000.6, 5.6.2 and 5.6.3).
//!
//! Pure: a payload in, the next step out. [`super::mailbox`] passes payloads through the mailbox.

use crate::sdo_abort::AbortCode;
use crate::wire::coe::{
    CoeMessage, Emergency, SdoInformation, SdoInformationService, SdoPayload, SdoRequest, SdoResponse,
};

use super::request::{MailboxError, MailboxRequest, MailboxService};

/// Bytes before the data of a segment: CoE header and command byte.
const SEGMENT_OVERHEAD: usize = 3;

/// Result of a received payload.
#[derive(Debug)]
pub(super) enum Reaction {
    /// Send the message in the buffer, of this length, and wait for its answer.
    Send(usize),
    /// Wait for the next fragment.
    AwaitMore,
    /// Not an answer to the request: keep waiting.
    Ignore,
    /// Not an answer at all, but worth reporting.
    Emergency(Emergency),
    /// The transfer has ended.
    Done(Result<(), MailboxError>),
}

/// State of the transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SdoTransfer {
    /// Bytes sent of a download, or announced of an upload.
    progress: usize,
    toggle: bool,
    in_segments: bool,
}

impl SdoTransfer {
    /// Bytes of an object transferred so far.
    pub(super) fn transferred(&self, request: &MailboxRequest) -> usize {
        match request.service {
            MailboxService::Download { .. } => self.progress,
            _ => request.data.len(),
        }
    }

    /// Writes the first message into `out`, all of the mailbox behind its header, and returns its
    /// length.
    pub(super) fn start(
        &mut self,
        request: &mut MailboxRequest,
        out: &mut [u8],
    ) -> Result<usize, MailboxError> {
        *self = Self::default();
        let information = |service| CoeMessage::SdoInformation(SdoInformation::whole(service));
        let message = match request.service {
            MailboxService::Upload { index, sub_index, complete_access } => {
                request.data.clear();
                CoeMessage::SdoRequest(SdoRequest::InitiateUpload { index, sub_index, complete_access })
            }
            MailboxService::Download { index, sub_index, complete_access } => {
                let payload = SdoPayload::fitting(&request.data, out.len());
                self.progress = payload.data().len();
                CoeMessage::SdoRequest(SdoRequest::InitiateDownload {
                    index,
                    sub_index,
                    complete_access,
                    payload,
                })
            }
            MailboxService::ObjectList(list) => {
                request.data.clear();
                information(SdoInformationService::ListRequest(list))
            }
            MailboxService::DescribeObject { index } => {
                request.data.clear();
                information(SdoInformationService::ObjectRequest { index })
            }
            MailboxService::DescribeEntry { index, sub_index, value_info } => {
                request.data.clear();
                information(SdoInformationService::EntryRequest { index, sub_index, value_info })
            }
        };
        message.emit(out).map_err(MailboxError::Format)
    }

    /// Takes a received CoE payload.
    pub(super) fn receive(
        &mut self,
        request: &mut MailboxRequest,
        payload: &[u8],
        out: &mut [u8],
    ) -> Reaction {
        match CoeMessage::parse(payload) {
            Err(error) => Reaction::Done(Err(MailboxError::Format(error))),
            Ok(CoeMessage::Emergency(emergency)) => Reaction::Emergency(emergency),
            Ok(CoeMessage::SdoRequest(SdoRequest::Abort { index, sub_index, code })) => {
                aborted(request.service, (index, sub_index), code)
            }
            Ok(CoeMessage::SdoResponse(response)) => self.response(request, response, out),
            Ok(CoeMessage::SdoInformation(information)) => description(request, &information),
            Ok(_) => Reaction::Ignore,
        }
    }

    fn response(
        &mut self,
        request: &mut MailboxRequest,
        response: SdoResponse<'_>,
        out: &mut [u8],
    ) -> Reaction {
        match (request.service, response) {
            (service, SdoResponse::Abort { index, sub_index, code }) => {
                aborted(service, (index, sub_index), code)
            }
            (
                MailboxService::Upload { index, sub_index, .. },
                SdoResponse::InitiateUpload { index: found, sub_index: found_sub, payload, .. },
            ) if (index, sub_index) == (found, found_sub) && !self.in_segments => {
                self.progress = payload.total_size();
                self.in_segments = true;
                match append(request, payload.data(), self.progress) {
                    Err(error) => Reaction::Done(Err(error)),
                    Ok(()) if request.data.len() >= self.progress => Reaction::Done(Ok(())),
                    Ok(()) => send(&SdoRequest::UploadSegment { toggle: self.toggle }, out),
                }
            }
            (MailboxService::Upload { .. }, SdoResponse::UploadSegment { toggle, last, data })
                if self.in_segments =>
            {
                if toggle != self.toggle {
                    return Reaction::Ignore;
                }
                self.toggle = !self.toggle;
                match append(request, data, usize::MAX) {
                    Err(error) => Reaction::Done(Err(error)),
                    Ok(()) if last => Reaction::Done(Ok(())),
                    Ok(()) => send(&SdoRequest::UploadSegment { toggle: self.toggle }, out),
                }
            }
            (
                MailboxService::Download { index, sub_index, .. },
                SdoResponse::InitiateDownload { index: found, sub_index: found_sub, .. },
            ) if (index, sub_index) == (found, found_sub) && !self.in_segments => {
                self.in_segments = true;
                self.send_segment(request, out)
            }
            (MailboxService::Download { .. }, SdoResponse::DownloadSegment { toggle })
                if self.in_segments =>
            {
                if toggle != self.toggle {
                    return Reaction::Ignore;
                }
                self.toggle = !self.toggle;
                self.send_segment(request, out)
            }
            _ => Reaction::Ignore,
        }
    }

    fn send_segment(&mut self, request: &MailboxRequest, out: &mut [u8]) -> Reaction {
        let rest = &request.data[self.progress..];
        if rest.is_empty() {
            return Reaction::Done(Ok(()));
        }
        let data = &rest[..rest.len().min(out.len().saturating_sub(SEGMENT_OVERHEAD))];
        self.progress += data.len();
        let last = data.len() == rest.len();
        send(&SdoRequest::DownloadSegment { toggle: self.toggle, last, data }, out)
    }
}

fn send(request: &SdoRequest<'_>, out: &mut [u8]) -> Reaction {
    match request.emit(out) {
        Ok(length) => Reaction::Send(length),
        Err(error) => Reaction::Done(Err(MailboxError::Format(error))),
    }
}

/// An abort of a transfer long past, or of a message that came twice, does not end this one.
fn aborted(service: MailboxService, (index, sub_index): (u16, u8), code: AbortCode) -> Reaction {
    let ours = match service {
        MailboxService::Upload { index: asked, sub_index: entry, complete_access: false }
        | MailboxService::Download { index: asked, sub_index: entry, complete_access: false } => {
            (asked, entry) == (index, sub_index)
        }
        _ => service.index().is_none_or(|asked| asked == index),
    };
    if ours { Reaction::Done(Err(MailboxError::Aborted(code))) } else { Reaction::Ignore }
}

/// A fragment of an answer of the SDO information service.
fn description(request: &mut MailboxRequest, information: &SdoInformation<'_>) -> Reaction {
    let fragment = match (request.service, information.service) {
        (_, SdoInformationService::Error(code)) => return Reaction::Done(Err(MailboxError::Aborted(code))),
        (MailboxService::ObjectList(_), SdoInformationService::ListResponse(fragment))
        | (MailboxService::DescribeObject { .. }, SdoInformationService::ObjectResponse(fragment))
        | (MailboxService::DescribeEntry { .. }, SdoInformationService::EntryResponse(fragment)) => {
            fragment
        }
        _ => return Reaction::Ignore,
    };
    match append(request, fragment, usize::MAX) {
        Err(error) => Reaction::Done(Err(error)),
        Ok(()) if information.fragments_left == 0 => Reaction::Done(Ok(())),
        Ok(()) => Reaction::AwaitMore,
    }
}

/// Appends received data without allocating: the buffer was sized by the caller.
fn append(request: &mut MailboxRequest, data: &[u8], announced: usize) -> Result<(), MailboxError> {
    let capacity = request.data.capacity();
    let wanted = request.data.len() + data.len();
    if wanted > capacity || (announced != usize::MAX && announced > capacity) {
        let needed = if announced == usize::MAX { wanted } else { announced };
        return Err(MailboxError::BufferTooSmall { needed, capacity });
    }
    request.data.extend_from_slice(&data[..data.len().min(announced)]);
    Ok(())
}
