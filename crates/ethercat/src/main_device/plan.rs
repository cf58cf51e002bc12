//! Bring-up as data: the actions for one SubDevice on the way to each state.
//!
//! A plan is a list of actions that a [`super::worker`] carries out one by one; building it is a
//! pure function. Between two plans all SubDevices wait for each other.

use alloc::vec;
use alloc::vec::Vec;

use crate::al::AlState;
use crate::pdo::{self, Pdo, PdoEntry, PdoMapping};
use crate::register::{self, SyncManager, Watchdogs, dc};

use super::clock::ClockSetting;
use super::coe_mapping::{Directions, Wanted};
use super::configuration::Barrier;
use super::configuration::{LatchMode, ProcessDataSource, StartupSdo, SubDeviceConfiguration};
use super::layout::Piece;
use super::sub_device::{Mailbox, SubDevice};
use super::sync0::Sync;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Give the SubDevice at this position its station address.
    AssignStationAddress,
    /// Read registers into the SubDevice's data.
    Read(Reading),
    /// Read the SII, up to its last category.
    ReadSii,
    /// Write registers.
    Write(u16, Vec<u8>),
    /// Write the start of SYNC0: a grid point of the reference clock, a little ahead.
    WriteSyncStart(Sync),
    /// Activate SYNC0, and SYNC1 if it is used. If its frame is lost, the start may have passed:
    /// back to the action that switches SYNC0 off.
    StartSync(Sync),
    /// Read back that the start was in time. If it was not, back to where SYNC0 is switched off.
    CheckSync(Sync),
    /// Ask for a state and wait until it is reached.
    RequestState(AlState),
    /// Download an object.
    Download(StartupSdo),
    /// Write an object that bounds an axis and read it back, or only read it; `place` is the index
    /// of its state. `again`: only if it was refused before.
    Bound { place: u16, barrier: Barrier, again: bool },
    /// Upload an object of a PDO mapping and compare it.
    Verify { index: u16, sub_index: u8, expected: u32 },
    /// Skip the next `actions`, which write and read back these objects, if the objects already
    /// have the expected values; a whole object is uploaded `at_once`, or value by value.
    SkipIfMapped { objects: Vec<Wanted>, at_once: bool, actions: usize },
    /// Read the PDO mapping of these directions by SDO.
    ReadMapping(Directions),
    /// Latch the receive times of all.
    Latch,
    /// Read the receive time latched by the processing unit of the reference clock or of this
    /// SubDevice.
    ReadLatch(Latched),
    /// Write the offset of its clock, from the latched times, and its delay.
    WriteOffset,
    /// Read these registers of the SubDevice before it, for the delay between the two.
    ReadBefore(Reading),
    /// Read the links of the possible upstream SubDevices, until the connected one and its port are
    /// known.
    FindPlace,
    /// Read its mailbox and SyncManagers from its SII.
    LearnSii,
    /// Write a value that follows from that.
    Part(Part),
}

/// Clock with the latched receive time that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Latched {
    /// The reference clock's.
    Reference,
    /// Its own.
    Own,
    /// The reference clock's once more: another latch between the two would show.
    ReferenceAgain,
}

/// Registers that are read, and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// 0x0000 to 0x0013: type of the ESC, its addresses.
    Information,
    /// 0x0110: links and loops.
    DlStatus,
    /// 0x0900 to 0x091F: latched receive times.
    LatchedTimes,
    /// 0x092C: difference from the reference clock.
    ClockDifference,
    /// 0x0400 to 0x0421: the watchdogs.
    Watchdogs,
    /// 0x0800 on: the given number of SyncManagers.
    SyncManagers(u8),
}

impl Reading {
    /// First register, and bytes.
    pub(super) const fn registers(self) -> (u16, usize) {
        match self {
            Self::Information => (register::TYPE, 0x14),
            Self::DlStatus => (register::DL_STATUS, 2),
            Self::LatchedTimes => (dc::RECEIVE_TIME, 0x20),
            Self::ClockDifference => (dc::SYSTEM_TIME_DIFFERENCE, 4),
            Self::Watchdogs => (register::WATCHDOG_DIVIDER, 0x22),
            Self::SyncManagers(count) => {
                (register::SYNC_MANAGER, count as usize * register::sync_manager::LENGTH as usize)
            }
        }
    }
}

/// Before anything is known.
pub(super) fn identify() -> Vec<Action> {
    vec![
        Action::AssignStationAddress,
        Action::Read(Reading::Information),
        Action::RequestState(AlState::Init),
        Action::Read(Reading::DlStatus),
        Action::ReadSii,
    ]
}

/// Another station address.
pub(super) fn address() -> Vec<Action> {
    vec![Action::AssignStationAddress]
}

/// After the latching broadcast.
pub(super) fn read_latched_times() -> Vec<Action> {
    vec![Action::Read(Reading::LatchedTimes)]
}

/// Sets the clock; writing the speed counter start resets the filters.
pub(super) fn set_clock(setting: ClockSetting) -> Vec<Action> {
    let mut offset_and_delay = setting.offset.to_le_bytes().to_vec();
    offset_and_delay.extend(setting.delay.to_le_bytes());
    vec![
        Action::Write(dc::SYSTEM_TIME_OFFSET, offset_and_delay),
        Action::Write(dc::SPEED_COUNTER_START, dc::SPEED_COUNTER_START_DEFAULT.to_le_bytes().to_vec()),
    ]
}

/// Init to PreOp: mailbox SyncManagers first; then start-up SDOs and the PDO mapping, which is
/// written unless it is there already or, if only the SubDevice knows it, read. Whole objects are
/// uploaded `at_once`.
pub(super) fn pre_op(
    mailbox: Option<&Mailbox>,
    configuration: &SubDeviceConfiguration,
    unknown: Option<Directions>,
    at_once: bool,
) -> Vec<Action> {
    let mut plan = Vec::new();
    if let Some(mailbox) = mailbox {
        plan.push(Action::Write(SyncManager::register(0), mailbox.sync_managers().concat()));
    }
    plan.push(Action::RequestState(AlState::PreOp));
    plan.extend(configuration.startup.iter().cloned().map(Action::Download));
    plan.extend(bounds(&configuration.barriers));
    if let ProcessDataSource::Explicit(mapping) = &configuration.process_data {
        plan.extend(write_mapping(mapping, at_once));
    }
    plan.extend(unknown.map(Action::ReadMapping));
    plan
}

/// Barriers in their order. The first of two limits may lie beyond the old value of the second one:
/// it is written again.
fn bounds(barriers: &[Barrier]) -> impl Iterator<Item = Action> + '_ {
    let all = (0..).zip(barriers);
    all.clone().map(|(place, &barrier)| Action::Bound { place, barrier, again: false }).chain(
        all.filter(|(_, it)| it.sub_index == 1).map(|(place, &barrier)| Action::Bound {
            place,
            barrier,
            again: true,
        }),
    )
}

/// The standard's procedure for a PDO mapping (ETG.1000.6, 5.6.7.4): empty the assignment, fill
/// each mapping object, fill the assignment. All is read back; the content of fixed mapping objects
/// is only read. A direction whose objects already have the expected values is left as it is.
fn write_mapping(mapping: &PdoMapping, at_once: bool) -> Vec<Action> {
    let directions =
        [(pdo::ASSIGNMENT_OUTPUTS, &mapping.outputs), (pdo::ASSIGNMENT_INPUTS, &mapping.inputs)];
    let mut all = Vec::new();
    for (assignment, pdos) in directions.into_iter().filter(|(_, pdos)| !pdos.is_empty()) {
        let mut plan = Vec::new();
        plan.push(download(assignment, 0, &[0]));
        plan.extend(pdos.iter().filter(|pdo| !pdo.fixed).flat_map(write_entries));
        plan.extend(pdos.iter().flat_map(verify_entries));
        for (sub_index, pdo) in (1..).zip(pdos) {
            plan.push(download(assignment, sub_index, &pdo.index.to_le_bytes()));
        }
        plan.push(download(assignment, 0, &[pdos.len() as u8]));
        plan.extend(verify(assignment, pdos.iter().map(|pdo| u32::from(pdo.index))));
        let objects = wanted(assignment, pdos);
        let at_once = at_once && objects.iter().all(|it| it.values.len() <= LONGEST_AT_ONCE);
        all.push(Action::SkipIfMapped { objects, at_once, actions: plan.len() });
        all.extend(plan);
    }
    all
}

/// An assignment object and the objects of its PDOs, with their expected values.
fn wanted(assignment: u16, pdos: &[Pdo]) -> Vec<Wanted> {
    let values = pdos.iter().map(|pdo| pdo.index.into()).collect();
    let mapped = pdos.iter().map(|pdo| Wanted {
        index: pdo.index,
        values: pdo.entries.iter().map(PdoEntry::mapping_value).collect(),
    });
    core::iter::once(Wanted { index: assignment, values }).chain(mapped).collect()
}

/// Most values of an object that is uploaded at once: a worker has memory for them.
pub(super) const LONGEST_AT_ONCE: usize = 64;

fn verify_entries(pdo: &Pdo) -> impl Iterator<Item = Action> {
    verify(pdo.index, pdo.entries.iter().map(PdoEntry::mapping_value))
}

/// An object with this many sub-indices, and their values.
fn verify(index: u16, values: impl ExactSizeIterator<Item = u32>) -> impl Iterator<Item = Action> {
    let count = values.len() as u32;
    let all = core::iter::once(count).chain(values);
    (0..).zip(all).map(move |(sub_index, expected)| Action::Verify { index, sub_index, expected })
}

fn write_entries(pdo: &Pdo) -> Vec<Action> {
    let mut plan = vec![download(pdo.index, 0, &[0])];
    for (sub_index, entry) in (1..).zip(&pdo.entries) {
        plan.push(download(pdo.index, sub_index, &entry.mapping_value().to_le_bytes()));
    }
    plan.push(download(pdo.index, 0, &[pdo.entries.len() as u8]));
    plan
}

fn download(index: u16, sub_index: u8, data: &[u8]) -> Action {
    Action::Download(StartupSdo { index, sub_index, complete_access: false, data: data.to_vec() })
}

/// Watchdogs, process data SyncManagers and FMMUs, written in PreOp. Watchdogs only as far as they
/// differ from the reset at the start: some ESCs lack the registers.
pub(super) fn process_data(
    watchdogs: Watchdogs,
    sync_managers: &[(u8, SyncManager)],
    pieces: &[&Piece],
) -> Vec<Action> {
    let mut plan = Vec::new();
    let after_reset = Watchdogs::default();
    for (register, value, written) in [
        (register::WATCHDOG_DIVIDER, watchdogs.divider, after_reset.divider),
        (register::WATCHDOG_TIME_PDI, watchdogs.pdi, after_reset.pdi),
        (register::WATCHDOG_TIME_PROCESS_DATA, watchdogs.process_data, after_reset.process_data),
    ] {
        if value != written {
            plan.push(Action::Write(register, value.to_le_bytes().to_vec()));
        }
    }
    for (number, sync_manager) in sync_managers {
        plan.push(Action::Write(SyncManager::register(*number), sync_manager.emit().to_vec()));
    }
    for (number, piece) in (0..).zip(pieces) {
        let address = register::FMMU + number * register::fmmu::LENGTH;
        plan.push(Action::Write(address, piece.fmmu().emit().to_vec()));
    }
    if let Some(last) = sync_managers.iter().map(|(number, _)| *number).max() {
        plan.push(Action::Read(Reading::Watchdogs));
        plan.push(Action::Read(Reading::SyncManagers(last + 1)));
    }
    plan
}

/// PreOp to SafeOp: SYNC0 runs before the application counts on it.
pub(super) fn safe_op(configuration: &SubDeviceConfiguration) -> Vec<Action> {
    let mut plan = Vec::new();
    let sync = Sync::of(configuration);
    if let Some(modes) = configuration.latches {
        if sync.is_none() {
            plan.push(Action::Write(dc::CYCLIC_UNIT_CONTROL, vec![0]));
        }
        plan.push(Action::Write(dc::LATCH_CONTROL, modes.map(LatchMode::register).to_vec()));
    }
    if let Some(sync) = sync {
        let [sync0, sync1] = sync.cycle_times().map(u32::to_le_bytes);
        plan.push(Action::Write(dc::CYCLIC_UNIT_CONTROL, vec![0, 0]));
        let cycle_times =
            if configuration.sync1.is_some() { [sync0, sync1].concat() } else { sync0.to_vec() };
        plan.push(Action::Write(dc::SYNC0_CYCLE_TIME, cycle_times));
        plan.push(Action::WriteSyncStart(sync));
        plan.push(Action::StartSync(sync));
        plan.push(Action::CheckSync(sync));
    }
    plan.push(Action::RequestState(AlState::SafeOp));
    plan
}

/// SafeOp to Op.
pub(super) fn op() -> Vec<Action> {
    vec![Action::RequestState(AlState::Op)]
}

/// The full plan from any state to Op, with all of its configuration written again: for a SubDevice
/// that had no power, or that the short plan did not recover. `process_data` is its plan of
/// [`process_data`].
pub(super) fn anew(
    it: &SubDevice,
    configuration: &SubDeviceConfiguration,
    process_data: &[Action],
) -> Vec<Action> {
    let zeroes = |register, length| Action::Write(register, vec![0; length]);
    let information = &it.information;
    let mut plan = vec![Action::RequestState(AlState::Init)];
    if it.clock.is_some() {
        plan.push(zeroes(dc::CYCLIC_UNIT_CONTROL, 2));
    }
    let fmmus = usize::from(information.fmmu_count) * usize::from(register::fmmu::LENGTH);
    let sync_managers =
        usize::from(information.sync_manager_count) * usize::from(register::sync_manager::LENGTH);
    let cleared = [(register::FMMU, fmmus), (register::SYNC_MANAGER, sync_managers)];
    plan.extend(
        cleared.into_iter().filter(|(_, length)| *length > 0).map(|(at, length)| zeroes(at, length)),
    );
    if it.clock.is_some() {
        let start = dc::SPEED_COUNTER_START_DEFAULT.to_le_bytes().to_vec();
        plan.push(Action::Latch);
        plan.extend([Latched::Reference, Latched::Own, Latched::ReferenceAgain].map(Action::ReadLatch));
        plan.extend([Action::WriteOffset, Action::Write(dc::SPEED_COUNTER_START, start)]);
    }
    plan.extend(pre_op(it.mailbox.as_ref(), configuration, None, it.has_complete_access()));
    plan.extend(process_data.iter().cloned());
    plan.extend(safe_op(configuration));
    plan.extend(op());
    plan
}

/// Any state to Init; SYNC0 and SYNC1 are switched off if they are used.
pub(super) fn init(uses_sync: bool) -> Vec<Action> {
    let mut plan = vec![Action::RequestState(AlState::Init)];
    if uses_sync {
        plan.push(Action::Write(dc::CYCLIC_UNIT_CONTROL, vec![0, 0]));
    }
    plan
}

/// A write of bytes that follow from the SII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    StopSync,
    ClearFmmus,
    ClearSyncManagers,
    /// Resets the filters of its clock.
    StartClock,
    Mailbox,
    SyncManager(u8),
    Fmmu(u8),
}

/// Bytes of the longest of them: 16 FMMUs.
pub(super) const LONGEST_PART: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::main_device::configuration::{Sync0, Sync1};

    fn mapping() -> PdoMapping {
        let pdo = |index, values: &[u32], fixed| Pdo {
            index,
            sync_manager: None,
            fixed,
            name: String::new(),
            entries: values.iter().map(|&value| PdoEntry::from_mapping_value(value)).collect(),
        };
        PdoMapping {
            outputs: vec![pdo(0x1600, &[0x6040_0010, 0x607A_0020], false)],
            inputs: vec![pdo(0x1A00, &[0x6041_0010], false), pdo(0x1A01, &[0x6064_0020], true)],
        }
    }

    /// A plan as a table people can read.
    fn table(plan: &[Action]) -> Vec<String> {
        let line = |action: &Action| match action {
            Action::Download(sdo) => {
                format!("{:04x}:{:02x} := {:02x?}", sdo.index, sdo.sub_index, sdo.data)
            }
            Action::Write(register, data) => format!("[{register:04x}] := {data:02x?}"),
            Action::Verify { index, sub_index, expected } => {
                format!("{index:04x}:{sub_index:02x} = {expected:x}?")
            }
            Action::SkipIfMapped { objects, at_once, actions } => {
                let objects: Vec<_> =
                    objects.iter().map(|it| format!("{:04x} {:x?}", it.index, it.values)).collect();
                let way = if *at_once { ", at once" } else { "" };
                format!("{}{way}: past {actions}", objects.join(", "))
            }
            other => format!("{other:?}"),
        };
        plan.iter().map(line).collect()
    }

    #[test]
    fn the_mapping_is_written_in_the_standards_order() {
        let configuration = SubDeviceConfiguration {
            process_data: ProcessDataSource::Explicit(mapping()),
            startup: vec![StartupSdo {
                index: 0x6060,
                sub_index: 0,
                complete_access: false,
                data: vec![8],
            }],
            ..Default::default()
        };
        let expected = [
            "RequestState(PreOp)",
            "6060:00 := [08]",
            "1c12 [1600], 1600 [60400010, 607a0020]: past 12",
            "1c12:00 := [00]",
            "1600:00 := [00]",
            "1600:01 := [10, 00, 40, 60]",
            "1600:02 := [20, 00, 7a, 60]",
            "1600:00 := [02]",
            "1600:00 = 2?",
            "1600:01 = 60400010?",
            "1600:02 = 607a0020?",
            "1c12:01 := [00, 16]",
            "1c12:00 := [01]",
            "1c12:00 = 1?",
            "1c12:01 = 1600?",
            "1c13 [1a00, 1a01], 1a00 [60410010], 1a01 [60640020]: past 14",
            "1c13:00 := [00]",
            "1a00:00 := [00]",
            "1a00:01 := [10, 00, 41, 60]",
            "1a00:00 := [01]",
            "1a00:00 = 1?",
            "1a00:01 = 60410010?",
            "1a01:00 = 1?",
            "1a01:01 = 60640020?",
            "1c13:01 := [00, 1a]",
            "1c13:02 := [01, 1a]",
            "1c13:00 := [02]",
            "1c13:00 = 2?",
            "1c13:01 = 1a00?",
            "1c13:02 = 1a01?",
        ];
        assert_eq!(table(&pre_op(None, &configuration, None, false)), expected);
        let at_once = table(&pre_op(None, &configuration, None, true));
        assert_eq!(at_once[2], "1c12 [1600], 1600 [60400010, 607a0020], at once: past 12");
    }

    #[test]
    fn sync0_runs_before_safe_op_is_requested() {
        use core::time::Duration;

        let sync0 = Sync0 { cycle: Duration::from_millis(1), shift: Duration::ZERO };
        let mut configuration = SubDeviceConfiguration { sync0: Some(sync0), ..Default::default() };
        let plan = safe_op(&configuration);
        assert_eq!(table(&plan)[..2], ["[0980] := [00, 00]", "[09a0] := [40, 42, 0f, 00]"]);
        let last = [Action::RequestState(AlState::SafeOp)];
        assert!(matches!(
            plan[2..],
            [Action::WriteSyncStart(_), Action::StartSync(_), Action::CheckSync(_), _]
        ));
        assert_eq!(plan[5..], last);
        configuration.sync1 =
            Some(Sync1 { cycle: Duration::from_millis(2), delay: Duration::from_micros(1) });
        configuration.latches = Some([LatchMode::SINGLE, LatchMode::default()]);
        let expected =
            ["[09a8] := [03, 00]", "[0980] := [00, 00]", "[09a0] := [40, 42, 0f, 00, 28, 46, 0f, 00]"];
        assert_eq!(table(&safe_op(&configuration))[..3], expected);
        (configuration.sync0, configuration.sync1) = (None, None);
        let expected = ["[0980] := [00]", "[09a8] := [03, 00]", "RequestState(SafeOp)"];
        assert_eq!(table(&safe_op(&configuration)), expected);
        assert_eq!(safe_op(&SubDeviceConfiguration::default()), last);
    }
}
