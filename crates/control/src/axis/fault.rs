//! Error codes of drives in fault: asked for by SDO while the cycle runs.

use ethercat::cia402::State;
use ethercat::cia402::object::ERROR_CODE;
use ethercat::main_device::{MailboxOutcome, MailboxRequest, MailboxService, MainDevice};

use super::Axes;

/// Asks each drive once for object 0x603F when it goes into fault. Its buffers are made beforehand: nothing is
/// allocated or freed in the cycle.
#[derive(Debug, Default)]
pub(crate) struct FaultCodes {
    drives: Vec<FaultCode>,
}

#[derive(Debug)]
struct FaultCode {
    /// Place of the drive, from 0.
    position: u16,
    /// Room for the answer; away while it is asked.
    buffer: Option<Vec<u8>>,
    /// It was asked for in this fault.
    asked: bool,
}

impl FaultCodes {
    /// For the drives of `axes` that do not map the object.
    pub(crate) fn of(axes: &Axes) -> Self {
        let unmapped = axes.axes.iter().map(|axis| (!axis.maps_error_code()).then(|| axis.sub_device()));
        let code = |position: Option<usize>| FaultCode {
            position: position.and_then(|it| u16::try_from(it).ok()).unwrap_or(u16::MAX),
            buffer: position.map(|_| Vec::with_capacity(LENGTH)),
            asked: false,
        };
        Self { drives: unmapped.map(code).collect() }
    }

    /// Asks the drives that have gone into fault.
    pub(crate) fn ask(&mut self, axes: &Axes, main_device: &mut MainDevice) {
        for (drive, report) in self.drives.iter_mut().zip(axes.reports()) {
            let fault = report.state == Some(State::Fault);
            drive.asked &= fault;
            if !fault || drive.asked || !report.feedback.fresh {
                continue;
            }
            let Some(data) = drive.buffer.take() else { continue };
            drive.asked = true;
            let request = MailboxRequest { position: drive.position, service: SERVICE, data };
            if let Err(refused) = main_device.submit(request) {
                drive.buffer = Some(refused.request.data);
            }
        }
    }

    /// The answer to one of these questions: the place of the drive and its error code. Any other outcome comes back.
    pub(crate) fn take(&mut self, outcome: MailboxOutcome) -> Result<Option<(usize, u16)>, MailboxOutcome> {
        let MailboxRequest { position, service, .. } = outcome.request;
        let ours = |drive: &&mut FaultCode| {
            drive.position == position && drive.buffer.is_none() && service == SERVICE
        };
        let Some(drive) = self.drives.iter_mut().find(ours) else { return Err(outcome) };
        let mut data = outcome.request.data;
        let code = match (&outcome.result, data.as_slice()) {
            (Ok(()), &[low, high, ..]) => Some((usize::from(position), u16::from_le_bytes([low, high]))),
            _ => None,
        };
        data.clear();
        drive.buffer = Some(data);
        Ok(code)
    }
}

const SERVICE: MailboxService =
    MailboxService::Upload { index: ERROR_CODE, sub_index: 0, complete_access: false };

/// Bytes of the answer; the object has two.
const LENGTH: usize = 16;
