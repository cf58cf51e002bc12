//! Error codes of drives in fault, requested by SDO while the cycle runs.

use ethercat::cia402::State;
use ethercat::main_device::{MailboxOutcome, MailboxRequest, MailboxService, MainDevice};

use super::Axes;
use super::binding::Axis;

/// Asks each axis's drive for its object 0x603F when it goes into fault: once at the begin of its
/// fault reaction, which may last for seconds, and once at its end if there was no code before. Its
/// buffers are made beforehand: nothing is allocated or freed in the cycle.
#[derive(Debug, Default)]
pub(crate) struct FaultCodes {
    axes: Vec<FaultCode>,
}

#[derive(Debug)]
struct FaultCode {
    /// Place of the drive, from 0.
    position: u16,
    service: MailboxService,
    /// Buffer for the answer; `None` during the request.
    buffer: Option<Vec<u8>>,
    /// State of its drive in fault, as far as is known.
    fault: Option<State>,
    /// Its drive has named the code of this fault, or has been asked at the end of its reaction.
    is_known: bool,
    /// Not yet requested, or the request was refused.
    is_wanted: bool,
}

impl FaultCodes {
    /// For the axes that do not map the object.
    pub(crate) fn of(axes: &Axes) -> Self {
        let code = |axis: &Axis| FaultCode {
            // An axis that maps its error code needs no request. The position `u16::MAX` matches no
            // answer.
            position: if axis.maps_error_code() { u16::MAX } else { axis.sub_device() as u16 },
            service: MailboxService::Upload {
                index: axis.error_code(),
                sub_index: 0,
                complete_access: false,
            },
            buffer: (!axis.maps_error_code()).then(|| Vec::with_capacity(LENGTH)),
            fault: None,
            is_known: false,
            is_wanted: false,
        };
        Self { axes: axes.axes.iter().map(code).collect() }
    }

    /// Requests the error code of each drive that went into fault. A refused request is made again,
    /// also after the reset of the fault: it may have been a fault of the position sensor.
    pub(crate) fn ask(&mut self, axes: &Axes, main_device: &mut MainDevice) {
        for ((axis, report), bound) in self.axes.iter_mut().zip(axes.reports()).zip(&axes.axes) {
            let fault = report.state.filter(|it| it.is_faulted());
            axis.is_known &= axis.fault.is_some();
            axis.is_wanted |= fault.is_some() && fault != axis.fault && !axis.is_known;
            axis.fault = fault;
            if !axis.is_wanted || !bound.has_inputs() {
                continue;
            }
            let Some(data) = axis.buffer.take() else { continue };
            let request = MailboxRequest { position: axis.position, service: axis.service, data };
            match main_device.submit(request) {
                Ok(()) => axis.is_wanted = false,
                Err(refused) => axis.buffer = Some(refused.request.data),
            }
        }
    }

    /// The answer to one of these questions: the axis and its error code. Any other outcome comes
    /// back.
    pub(crate) fn take(&mut self, outcome: MailboxOutcome) -> Result<Option<(usize, u16)>, MailboxOutcome> {
        let MailboxRequest { position, service, .. } = outcome.request;
        let ours = |axis: &FaultCode| {
            axis.position == position && axis.buffer.is_none() && service == axis.service
        };
        let Some(place) = self.axes.iter().position(ours) else { return Err(outcome) };
        let mut data = outcome.request.data;
        let code = match (&outcome.result, data.as_slice()) {
            (Ok(()), &[low, high, ..]) => Some(u16::from_le_bytes([low, high])),
            _ => None,
        };
        data.clear();
        let axis = &mut self.axes[place];
        axis.buffer = Some(data);
        // A drive may name the code at the end of its reaction only.
        let code = code.filter(|&code| code != 0 || axis.fault != Some(State::FaultReactionActive));
        if code.is_some() {
            (axis.is_known, axis.is_wanted) = (true, false);
        }
        Ok(code.map(|code| (place, code)))
    }
}

/// Bytes of the answer; the object has two.
const LENGTH: usize = 16;
