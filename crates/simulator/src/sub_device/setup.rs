//! Checks of the SyncManagers by the application controller, and process data through them
//! (ETG.1000.6, 6.4.1; ETG.1020, 5).

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::register::{self, SyncManagerDirection};
use ethercat::sii;

use super::mailbox;
use crate::application::{ProcessDataLengths, SYNC_MANAGERS};
use crate::esc::{Esc, FIRST_SHARED, Kind, SyncManagerUnit};

/// Shortest mailbox: header, CoE header and an expedited SDO.
const SHORTEST_MAILBOX: usize = 16;

/// True if the loaded SII has a mailbox.
pub(super) fn has_mailbox(esc: &Esc) -> bool {
    let header = sii::Header::parse(esc.sii().image());
    esc.sii_loaded() && header.is_ok_and(|header| header.mailbox().is_some())
}

/// Checks the mailbox SyncManagers that this SubDevice needs in `state`.
pub(super) fn check_mailbox(esc: &Esc, state: AlState) -> Result<(), AlStatusCode> {
    if !has_mailbox(esc) {
        return Ok(());
    }
    let fits = |number: usize, direction| {
        esc.sync_managers().get(number).is_some_and(|unit| {
            unit.kind() == Kind::Mailbox(direction)
                && unit.length() >= SHORTEST_MAILBOX
                && lies_in_memory(esc, unit)
        })
    };
    let apart = match esc.sync_managers() {
        [out, reply, ..] => are_apart(out, reply),
        _ => false,
    };
    let right = fits(mailbox::OUT, SyncManagerDirection::Write)
        && fits(mailbox::IN, SyncManagerDirection::Read)
        && apart;
    match (right, state) {
        (true, _) => Ok(()),
        (false, AlState::Bootstrap) => Err(AlStatusCode::INVALID_MAILBOX_BOOTSTRAP),
        (false, _) => Err(AlStatusCode::INVALID_MAILBOX_PRE_OP),
    }
}

fn lies_in_memory(esc: &Esc, unit: &SyncManagerUnit) -> bool {
    let memory = unit.memory();
    memory.start >= u32::from(register::PROCESS_DATA_MEMORY) && memory.end <= esc.memory_end()
}

fn are_apart(one: &SyncManagerUnit, other: &SyncManagerUnit) -> bool {
    let (one, other) = (one.memory(), other.memory());
    one.end <= other.start || other.end <= one.start
}

/// Lengths of process data in the SyncManagers, if they match the application and the SyncManagers
/// do not overlap.
pub(super) fn check_process_data(
    esc: &Esc,
    expected: ProcessDataLengths,
) -> Result<ProcessDataLengths, AlStatusCode> {
    let found = lengths(esc);
    if found.outputs != expected.outputs {
        Err(AlStatusCode::INVALID_OUTPUT_CONFIGURATION)
    } else if found.inputs != expected.inputs {
        Err(AlStatusCode::INVALID_INPUT_CONFIGURATION)
    } else if esc.sync_managers().iter().any(|unit| unit.is_undefined(esc.memory())) {
        Err(AlStatusCode::INVALID_SYNC_MANAGER)
    } else {
        check_places(esc)?;
        Ok(found)
    }
}

fn check_places(esc: &Esc) -> Result<(), AlStatusCode> {
    // One over registers of the ESC holds nothing of the application.
    let is_used = |unit: &&SyncManagerUnit| unit.is_active() && unit.start() >= FIRST_SHARED;
    let active: Vec<_> = esc.sync_managers().iter().filter(is_used).collect();
    for (place, unit) in active.iter().enumerate() {
        let code = match unit.kind() {
            Kind::Buffered(SyncManagerDirection::Write) => AlStatusCode::INVALID_OUTPUT_CONFIGURATION,
            Kind::Buffered(SyncManagerDirection::Read) => AlStatusCode::INVALID_INPUT_CONFIGURATION,
            _ => continue,
        };
        let alone = active.iter().enumerate().all(|(other, it)| other == place || are_apart(unit, it));
        if !alone || !lies_in_memory(esc, unit) {
            return Err(code);
        }
    }
    Ok(())
}

/// Switches SyncManagers on and off like slave stacks: mailboxes from PreOp on, inputs from SafeOp
/// on, outputs by `outputs`; all others off.
pub(super) fn switch_sync_managers(esc: &mut Esc, state: AlState, outputs: bool) {
    for number in 0..esc.sync_managers().len() {
        let Some((unit, memory)) = esc.sync_manager_mut(number) else { break };
        let enabled = match unit.kind() {
            Kind::Off => false,
            Kind::Mailbox(_) => state != AlState::Init,
            Kind::Buffered(SyncManagerDirection::Read) => matches!(state, AlState::SafeOp | AlState::Op),
            Kind::Buffered(SyncManagerDirection::Write) => outputs,
        };
        unit.set_enabled(memory, enabled);
    }
}

/// True if `unit` holds process data of `direction`, and does not lie over registers of the ESC.
fn carries(unit: &SyncManagerUnit, direction: SyncManagerDirection) -> bool {
    unit.kind() == Kind::Buffered(direction) && unit.start() >= FIRST_SHARED
}

/// Bytes in all buffered SyncManagers of each direction.
pub(super) fn lengths(esc: &Esc) -> ProcessDataLengths {
    let sum = |direction| {
        let units = esc.sync_managers().iter().filter(|unit| carries(unit, direction));
        units.map(SyncManagerUnit::length).sum()
    };
    ProcessDataLengths {
        outputs: sum(SyncManagerDirection::Write),
        inputs: sum(SyncManagerDirection::Read),
    }
}

/// Bytes of each SyncManager that holds process data, by its number.
pub(super) fn lengths_of_each(esc: &Esc) -> [usize; SYNC_MANAGERS] {
    let mut lengths = [0; SYNC_MANAGERS];
    for (length, unit) in lengths.iter_mut().zip(esc.sync_managers()) {
        let is_used =
            [SyncManagerDirection::Write, SyncManagerDirection::Read].iter().any(|it| carries(unit, *it));
        *length = if is_used { unit.length() } else { 0 };
    }
    lengths
}

/// True if the watchdog supervises any outputs.
pub(super) fn watches_outputs(esc: &Esc) -> bool {
    let outputs = |kind| kind == Kind::Buffered(SyncManagerDirection::Write);
    esc.sync_managers().iter().any(|unit| outputs(unit.kind()) && unit.triggers_watchdog())
}

/// True if every output SyncManager was written since it was switched on.
pub(super) fn outputs_came(esc: &Esc) -> bool {
    let outputs = |kind| kind == Kind::Buffered(SyncManagerDirection::Write);
    esc.sync_managers().iter().filter(|unit| outputs(unit.kind())).all(|unit| unit.is_full())
}

/// Copies the newest outputs, SyncManager by SyncManager; `false` if some never arrived.
pub(super) fn take_outputs(esc: &mut Esc, outputs: &mut [u8]) -> bool {
    let (mut offset, mut complete) = (0, true);
    for number in 0..esc.sync_managers().len() {
        let Some((unit, memory)) = esc.sync_manager_mut(number) else { break };
        if carries(unit, SyncManagerDirection::Write) {
            let end = offset + unit.length();
            let Some(part) = outputs.get_mut(offset..end) else { return false };
            complete &= unit.application_read(memory, part);
            offset = end;
        }
    }
    complete
}

/// Transfers the inputs, SyncManager by SyncManager.
pub(super) fn give_inputs(esc: &mut Esc, inputs: &[u8]) {
    let mut offset = 0;
    for number in 0..esc.sync_managers().len() {
        let Some((unit, memory)) = esc.sync_manager_mut(number) else { break };
        if carries(unit, SyncManagerDirection::Read) {
            let end = offset + unit.length();
            let Some(part) = inputs.get(offset..end) else { return };
            unit.application_write(memory, part);
            offset = end;
        }
    }
}
