//! A SubDevice that is configured for the first time while the bus runs, or at another place than
//! before: its process data was laid out at the start, and its SII has the addresses in its memory.

use alloc::vec;
use alloc::vec::Vec;

use crate::al::AlState;
use crate::register::sii_interface::CONFIGURATION;
use crate::register::{self, FmmuDirection, SyncManager, dc};
use crate::sii::SyncManagerUse;

use super::super::barrier::BarrierState;
use super::super::bring_up;
use super::super::clock::ClockSetting;
use super::super::configuration::{ProcessDataSource, SubDeviceConfiguration};
use super::super::error::SubDeviceError;
use super::super::layout::{Piece, Share};
use super::super::outline::{Outline, PdoDigest};
use super::super::plan::{self, Action, LONGEST_PART, Latched, Part, Reading};
use super::super::watchdogs;
use super::SubDevice;

/// Number of a SyncManager that only the SII has: the first of its use.
const BY_ITS_USE: u8 = u8::MAX;

const UNKNOWN: SyncManager = SyncManager { physical_address: 0, length: 0, control: 0, active: false };

/// Process data of one SubDevice, and the data it needs.
#[derive(Clone, Debug)]
pub(in crate::main_device) struct Late {
    parts: Vec<Mapped>,
    needs_coe: bool,
    describes_pdos: bool,
    needs_clock: bool,
    needs_latches: bool,
    /// Clocks are set up on this bus.
    has_clocks: bool,
    /// No source describes its process data: it is assumed to have none.
    is_taken_for_empty: bool,
}

/// One SyncManager's process data.
#[derive(Clone, Debug)]
struct Mapped {
    /// As described.
    wanted: u8,
    piece: Piece,
    /// As learnt.
    number: u8,
    sync_manager: SyncManager,
}

/// SyncManagers that are read back.
const READ_BACK: u8 = 8;

/// The shares of an absent SubDevice, as far as its mapping is known.
pub(in crate::main_device) fn shares(
    it: &SubDevice,
    configured: &SubDeviceConfiguration,
) -> Result<Vec<(u8, SyncManager, Share)>, SubDeviceError> {
    let mut found: Vec<(u8, SyncManager, Share)> = Vec::new();
    let directions =
        [(&it.mapping.outputs, FmmuDirection::Write), (&it.mapping.inputs, FmmuDirection::Read)];
    for (pdos, direction) in directions {
        for pdo in pdos.iter().filter(|pdo| pdo.bit_length() > 0) {
            let number = pdo.sync_manager.unwrap_or(BY_ITS_USE);
            let bits = pdo.bit_length();
            let is_same =
                |one: &&mut (u8, SyncManager, Share)| (one.0, one.2.direction) == (number, direction);
            match found.iter_mut().find(is_same) {
                Some((.., share)) => share.bits += bits,
                None => {
                    let position = it.position;
                    // It may refuse LRW, and is not there to tell.
                    let share = Share {
                        position,
                        direction,
                        physical_address: 0,
                        bits,
                        refuses_lrw: true,
                        maps_bits: false,
                        is_loose: true,
                        every: configured.every.max(1),
                    };
                    found.push((number, UNKNOWN, share));
                }
            }
        }
    }
    bring_up::check_slow(&found, configured)?;
    Ok(found)
}

impl Late {
    pub(in crate::main_device) fn new(
        in_use: &[(u8, SyncManager, Share)],
        pieces: &[&Piece],
        configuration: &SubDeviceConfiguration,
        has_clocks: bool,
    ) -> Self {
        let parts = in_use.iter().zip(pieces).map(|((wanted, sync_manager, _), piece)| Mapped {
            wanted: *wanted,
            piece: (*piece).clone(),
            number: *wanted,
            sync_manager: *sync_manager,
        });
        Self {
            parts: parts.collect(),
            needs_coe: bring_up::needs_coe(configuration),
            describes_pdos: bring_up::describes_pdos(configuration),
            needs_clock: configuration.sync0.is_some(),
            needs_latches: configuration.latches.is_some(),
            has_clocks,
            is_taken_for_empty: in_use.is_empty() && configuration.process_data == ProcessDataSource::Sii,
        }
    }
}

impl SubDevice {
    /// Takes its mailbox and SyncManagers from its SII.
    pub(in crate::main_device) fn learn(&mut self, outline: &Outline) -> Result<(), SubDeviceError> {
        let (has_clock, information) = (self.has_clock(), self.information);
        let Some(late) = &mut self.late else { return Ok(()) };
        self.mailbox = bring_up::declared(outline.mailbox(), outline.protocols())?;
        let has_coe = self.mailbox.is_some_and(|mailbox| mailbox.coe);
        if late.needs_coe && !has_coe {
            return Err(SubDeviceError::NoCoe);
        }
        let first =
            |usage| outline.sync_managers().position(|it| it.usage == usage).map(|number| number as u8);
        if late.describes_pdos && !has_coe {
            bring_up::check_pdos(PdoDigest::of(&self.mapping, first), outline.pdos())?;
        }
        // With CoE its SII need not describe its process data.
        let usages = [SyncManagerUse::Outputs, SyncManagerUse::Inputs];
        let has_data =
            outline.pdos().bits > 0 || has_coe && usages.into_iter().any(|it| first(it).is_some());
        if late.is_taken_for_empty && has_data {
            return Err(SubDeviceError::UnexpectedProcessData);
        }
        if late.needs_clock && !has_clock {
            return Err(SubDeviceError::NoClock);
        }
        if late.needs_latches && !has_clock {
            return Err(SubDeviceError::NoLatches);
        }
        let fmmus = information.fmmu_count;
        if late.parts.len() > usize::from(fmmus) {
            return Err(SubDeviceError::Fmmus { needed: late.parts.len(), found: fmmus });
        }
        if late.has_clocks && has_clock {
            self.clock.get_or_insert(ClockSetting::default());
        }
        for part in &mut late.parts {
            let (usage, direction) = match part.piece.share.direction {
                FmmuDirection::Write => (SyncManagerUse::Outputs, "outputs"),
                _ => (SyncManagerUse::Inputs, "inputs"),
            };
            let number = if part.wanted == BY_ITS_USE { first(usage) } else { Some(part.wanted) };
            let number = number.ok_or(SubDeviceError::NoSyncManager { direction })?;
            let record = outline
                .sync_managers()
                .nth(number.into())
                .ok_or(SubDeviceError::NoSyncManager { direction })?;
            if number >= information.sync_manager_count {
                return Err(SubDeviceError::SyncManagers { number, found: information.sync_manager_count });
            }
            let length = part.piece.image.len() as u16;
            let (physical_address, control) = (record.physical_address, record.control);
            let declared = SyncManager { physical_address, length, control, active: true };
            let control = watchdogs::control(self.wanted_watchdog, &declared);
            part.sync_manager = SyncManager { control, ..declared };
            (part.number, part.piece.share.physical_address) = (number, physical_address);
        }
        Ok(())
    }

    /// True if an action of its plan concerns it, as far as is known of it.
    pub(in crate::main_device) fn is_concerned(&self, action: &Action) -> bool {
        // Without CoE it uses the PDOs of its SII.
        if let Action::Download(_) | Action::Verify { .. } | Action::SkipIfMapped { .. } = action {
            return self.mailbox.is_some_and(|mailbox| mailbox.coe);
        }
        if let Action::Bound { place, again, .. } = *action {
            let state = self.barriers.get(usize::from(place));
            let is_refused = state.is_some_and(|it| matches!(it, BarrierState::Refused(_)));
            return self.mailbox.is_some_and(|mailbox| mailbox.coe) && (!again || is_refused);
        }
        if self.late.is_none() {
            return true;
        }
        match action {
            Action::Read(Reading::LatchedTimes)
            | Action::Latch
            | Action::ReadLatch(_)
            | Action::ReadBefore(_)
            | Action::WriteOffset
            | Action::Part(Part::StopSync | Part::StartClock) => self.clock.is_some(),
            Action::Part(Part::Mailbox) => self.mailbox.is_some(),
            _ => true,
        }
    }
}

impl Part {
    /// Its register, and its bytes in `data`; returns the number of bytes, too.
    pub(in crate::main_device) fn write(
        self,
        it: &SubDevice,
        data: &mut [u8; LONGEST_PART],
    ) -> (u16, usize) {
        let counted =
            |count: u8, length: u16| (usize::from(count) * usize::from(length)).clamp(1, LONGEST_PART);
        let mapped = |number: u8| it.late.as_ref().and_then(|late| late.parts.get(usize::from(number)));
        let mut put = |bytes: &[u8]| {
            data[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        };
        match self {
            Self::StopSync => (dc::CYCLIC_UNIT_CONTROL, put(&[0, 0])),
            Self::ClearFmmus => {
                (register::FMMU, counted(it.information.fmmu_count, register::fmmu::LENGTH))
            }
            Self::ClearSyncManagers => {
                let length = register::sync_manager::LENGTH;
                (register::SYNC_MANAGER, counted(it.information.sync_manager_count, length))
            }
            Self::StartClock => {
                (dc::SPEED_COUNTER_START, put(&dc::SPEED_COUNTER_START_DEFAULT.to_le_bytes()))
            }
            Self::Mailbox => {
                let [out, r#in] = it.mailbox.map_or([[0; 8]; 2], |mailbox| mailbox.sync_managers());
                data[..8].copy_from_slice(&out);
                data[8..16].copy_from_slice(&r#in);
                (SyncManager::register(0), 16)
            }
            Self::SyncManager(number) => match mapped(number) {
                Some(part) => (SyncManager::register(part.number), put(&part.sync_manager.emit())),
                None => (register::SYNC_MANAGER, 1),
            },
            Self::Fmmu(number) => {
                let fmmu = mapped(number).map(|part| part.piece.fmmu().emit());
                let address = register::FMMU + u16::from(number) * register::fmmu::LENGTH;
                (address, fmmu.map_or(1, |bytes| put(&bytes)))
            }
        }
    }
}

/// From any state to Op: for a SubDevice of which only the identity is known.
pub(in crate::main_device) fn plan(
    it: &SubDevice,
    late: &Late,
    configuration: &SubDeviceConfiguration,
) -> Vec<Action> {
    let part = Action::Part;
    let mut plan = vec![
        Action::RequestState(AlState::Init),
        Action::Read(Reading::Information),
        Action::Read(Reading::DlStatus),
        Action::FindPlace,
        // The EEPROM: taken from the application, then ours.
        Action::Write(CONFIGURATION, vec![2]),
        Action::Write(CONFIGURATION, vec![0]),
        Action::LearnSii,
        part(Part::StopSync),
        part(Part::ClearFmmus),
        part(Part::ClearSyncManagers),
        Action::Latch,
        Action::Read(Reading::LatchedTimes),
        Action::ReadBefore(Reading::DlStatus),
        Action::ReadBefore(Reading::LatchedTimes),
    ];
    plan.extend([Latched::Reference, Latched::Own, Latched::ReferenceAgain].map(Action::ReadLatch));
    plan.extend([Action::WriteOffset, part(Part::StartClock), part(Part::Mailbox)]);
    plan.extend(plan::pre_op(None, configuration, None, false));
    plan.extend(plan::process_data(it.wanted_watchdogs, &[], &[]));
    let parts = 0..late.parts.len() as u8;
    plan.extend(parts.clone().map(Part::SyncManager).chain(parts.map(Part::Fmmu)).map(Action::Part));
    plan.push(Action::Read(Reading::Watchdogs));
    plan.push(Action::Read(Reading::SyncManagers(READ_BACK)));
    plan.extend(plan::safe_op(configuration));
    plan.extend(plan::op());
    plan
}
