//! Faults of drives that a crash has left: which of them are reset at the start of a run
//! (`reset_faults`).

use control::axis::AxisConfiguration;
use control::bus::error_code;
use ethercat::cia402::object::{ERROR_CODE, STATUSWORD, of_axis};
use ethercat::cia402::{State, Statusword};
use ethercat::main_device::{Event, MailboxRequest, MailboxService};
use onbeat_ethercat_linux::bring_up::{BringUpError, Pump};
use onbeat_ethercat_linux::link::Link;
use robot::{ResetFaults, RobotConfig};
use rt::clock::Clock;
use std::time::Duration;

use super::keeper::KeptState;
use crate::{Notice, Reporter};

/// A drive that is in fault in PreOp.
struct StartFault {
    axis: usize,
    code: u16,
    /// Object 0x1001; `None` where the drive has none.
    register: Option<u8>,
}

/// Has the faults that a crash has left reset once the bus is in Op. On a wire, all axes then wait
/// for a start request, even without a fault to reset: a service may have started the run.
///
/// # Errors
/// The bus fails.
pub(super) fn allow<L: Link + ?Sized, C: Clock>(
    robot: &RobotConfig,
    pump: &mut Pump<'_, L, C>,
    kept: Option<&mut KeptState>,
    is_real: bool,
    axes: &mut [AxisConfiguration],
    reporter: &mut dyn Reporter,
) -> Result<(), BringUpError> {
    if robot.cycle.reset_faults == ResetFaults::None {
        return Ok(());
    }
    mark(robot, pump, kept, axes, reporter)?;
    if is_real {
        axes.iter_mut().for_each(|it| it.start.waits = true);
        let sentence = "the axes wait for `onbeat control enable` (reset_faults in [cycle])";
        reporter.notice(&Notice::Remark(sentence.to_owned()));
    }
    Ok(())
}

/// Marks the axes with a fault that is to be reset.
fn mark<L: Link + ?Sized, C: Clock>(
    robot: &RobotConfig,
    pump: &mut Pump<'_, L, C>,
    kept: Option<&mut KeptState>,
    axes: &mut [AxisConfiguration],
    reporter: &mut dyn Reporter,
) -> Result<(), BringUpError> {
    let mut faults = Vec::new();
    for (axis, configuration) in axes.iter().enumerate() {
        faults.extend(look(pump, axis, configuration)?);
    }
    let mut tell = |sentence: String| reporter.notice(&Notice::Remark(sentence));
    let mut may = Vec::new();
    for fault in faults {
        match hindrance(&fault, &robot.cycle.reset_codes) {
            None => may.push(fault),
            Some(why) => tell(format!(
                "axis \"{}\": {} is not reset at the start: {why}",
                robot.axes[fault.axis].name,
                error_code(fault.code)
            )),
        }
    }
    if may.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = may.iter().map(|it| robot.axes[it.axis].name.as_str()).collect();
    let names = names.join(", ");
    match kept.map(|kept| kept.count_reset(&names)) {
        Some(Ok(())) => {}
        Some(Err(why)) => {
            tell(format!("{names}: faults are not reset at the start: {why}"));
            return Ok(());
        }
        None => {
            tell(format!(
                "{names}: faults are not reset at the start: there is no state directory to count resets in; give one by --state"
            ));
            return Ok(());
        }
    }
    for fault in &may {
        axes[fault.axis].start.reset = Some(fault.code);
    }
    tell(format!("{names}: communication faults from before the start are reset"));
    Ok(())
}

/// Reason that a fault is not reset.
fn hindrance(fault: &StartFault, codes: &[u16]) -> Option<String> {
    let of_communication = matches!(fault.code, 0x7500 | 0x8100..=0x81FF);
    if !of_communication && !codes.contains(&fault.code) {
        return Some("it is no communication fault, and not in reset_codes".to_owned());
    }
    match fault.register {
        None => Some("its drive has no error register (0x1001)".to_owned()),
        // Bit 0: generic error, bit 4: communication (CiA 301, 0x1001).
        Some(register) if register & !0x11 != 0 => {
            Some(format!("its error register (0x1001) is {register:#04x}, expected bits 0 and 4 only"))
        }
        Some(_) => None,
    }
}

/// The fault of an axis, if its drive is in fault.
fn look<L: Link + ?Sized, C: Clock>(
    pump: &mut Pump<'_, L, C>,
    axis: usize,
    configuration: &AxisConfiguration,
) -> Result<Option<StartFault>, BringUpError> {
    let AxisConfiguration { sub_device, drive_axis, .. } = configuration;
    let mut read = |index| read(pump, *sub_device as u16, index);
    let statusword = read(of_axis(STATUSWORD, *drive_axis))?.unwrap_or_default();
    let [low, high, ..] = statusword[..] else { return Ok(None) };
    if Statusword(u16::from_le_bytes([low, high])).state() != Some(State::Fault) {
        return Ok(None);
    }
    let code = match read(of_axis(ERROR_CODE, *drive_axis))?.as_deref() {
        Some(&[low, high, ..]) => u16::from_le_bytes([low, high]),
        _ => 0,
    };
    let register = read(ERROR_REGISTER)?.and_then(|it| it.first().copied());
    Ok(Some(StartFault { axis, code, register }))
}

/// An object of a SubDevice; `None` where it has none, or gives no answer.
fn read<L: Link + ?Sized, C: Clock>(
    pump: &mut Pump<'_, L, C>,
    position: u16,
    index: u16,
) -> Result<Option<Vec<u8>>, BringUpError> {
    let service = MailboxService::Upload { index, sub_index: 0, complete_access: false };
    let request = MailboxRequest { position, service, data: Vec::with_capacity(LENGTH) };
    let outcome = match pump.main_device.submit(request) {
        Err(refused) => refused,
        Ok(()) => pump.until(TIMEOUT, |_, event| match event {
            Some(Event::Mailbox(outcome)) => Some(Ok(outcome)),
            Some(Event::Failed(error)) => Some(Err(BringUpError::Bus(error))),
            _ => None,
        })??,
    };
    Ok(outcome.result.is_ok().then_some(outcome.request.data))
}

/// Error register (CiA 301).
const ERROR_REGISTER: u16 = 0x1001;

/// Bytes of the longest answer.
const LENGTH: usize = 16;

/// Backstop: the MainDevice ends each request in its own, shorter time.
const TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    // feature(axes): `reset_faults = "communication"`: which faults are reset at the start
    #[test]
    fn only_communication_faults_are_reset() {
        let may = |code, register: Option<u8>, codes: &[u16]| {
            hindrance(&StartFault { axis: 0, code, register }, codes).is_none()
        };
        for code in [0x7500, 0x8100, 0x8130, 0x81FF] {
            for register in [0x00, 0x01, 0x10, 0x11] {
                assert!(may(code, Some(register), &[]), "{code:#x} {register:#x}");
            }
            for register in [0x02, 0x04, 0x08, 0x20, 0x40, 0x80, 0x13] {
                assert!(!may(code, Some(register), &[]), "{code:#x} {register:#x}");
            }
            assert!(!may(code, None, &[]), "{code:#x} without 0x1001");
        }
        for code in [0, 0x2310, 0x3220, 0x7305, 0x7501, 0x80FF, 0x8200, 0x8611] {
            assert!(!may(code, Some(0x11), &[]), "{code:#x}");
            assert!(may(code, Some(0x11), &[code]), "{code:#x} is named");
        }
    }
}
