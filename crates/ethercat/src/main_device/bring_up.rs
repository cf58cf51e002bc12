//! The bus-wide part of bring-up: broadcasts, and steps of all SubDevices together.

use alloc::vec::Vec;

use crate::al::{AlControl, AlState};
use crate::register::{self, FmmuDirection, SyncManager, dc, sii_interface};
use crate::sii::{self, MailboxProtocols, SiiSyncManager, SyncManagerUse};
use crate::wire::{Address, Command};

use super::clock::{self, ClockNode};
use super::coe_mapping::Directions;
use super::configuration::{
    ExpectedIdentity, MAXIMUM_SUB_DEVICES, Oversampling, Presence, ProcessDataSource,
    SubDeviceConfiguration,
};
use super::error::{BusError, SubDeviceError};
use super::estimated_delays;
use super::exchange::{Outgoing, Owner};
use super::layout::{CHUNK_CAPACITY, Layout, Share};
use super::open_ring::OpenRing;
use super::outline::PdoDigest;
use super::sub_device::{MAXIMUM_MAILBOX_LENGTH, Mailbox, SubDevice};
use super::topology;
use super::watchdogs;

/// Bytes of a mailbox at least: its header, and the shortest CoE message.
const MINIMUM_MAILBOX_LENGTH: u16 = 16;

/// A broadcast of the bring-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broadcast {
    /// Read one byte of all: the working counter is their number.
    Count,
    /// Write a value.
    Write(u16, u64, usize),
    /// Write zeroes.
    Clear(u16, usize),
}

/// One round of opening ports that another MainDevice has closed: it reaches the SubDevices behind
/// the ports that the previous round opened. It also resets that MainDevice's event masks.
pub(super) const OPEN_PORTS: [Broadcast; 3] = [
    Broadcast::Write(register::DL_CONTROL_LOOPS, 0, 1),
    Broadcast::Write(register::ECAT_EVENT_MASK, 0, 2),
    Broadcast::Count,
];

/// Datagrams that put all SubDevices into a known state.
pub(super) const RESET: [Broadcast; 14] = [
    Broadcast::Write(register::AL_CONTROL, AlControl::request(AlState::Init).bits() as u64, 2),
    Broadcast::Write(dc::CYCLIC_UNIT_CONTROL, 0, 2),
    Broadcast::Write(register::DL_CONTROL_ALIAS, 0, 1),
    Broadcast::Clear(register::FMMU, 256),
    Broadcast::Clear(register::SYNC_MANAGER, 128),
    Broadcast::Write(register::WATCHDOG_DIVIDER, register::WATCHDOG_DIVIDER_DEFAULT as u64, 2),
    Broadcast::Write(register::WATCHDOG_TIME_PDI, register::WATCHDOG_TIME_DEFAULT as u64, 2),
    Broadcast::Write(register::WATCHDOG_TIME_PROCESS_DATA, register::WATCHDOG_TIME_DEFAULT as u64, 2),
    Broadcast::Clear(register::RX_ERROR_COUNTERS, 8),
    Broadcast::Clear(dc::SYSTEM_TIME_OFFSET, 12),
    Broadcast::Write(dc::SPEED_COUNTER_START, dc::SPEED_COUNTER_START_DEFAULT as u64, 2),
    // The EEPROM: taken from the application, then ours.
    Broadcast::Write(sii_interface::CONFIGURATION, 2, 1),
    Broadcast::Write(sii_interface::CONFIGURATION, 0, 1),
    Broadcast::Count,
];

/// Datagram that latches the receive times.
pub(super) const LATCH: [Broadcast; 1] = [Broadcast::Clear(dc::RECEIVE_TIME, 4)];

/// Datagram that requests Init from every SubDevice.
pub(super) const TO_INIT: [Broadcast; 2] = [
    Broadcast::Write(register::AL_CONTROL, AlControl::request(AlState::Init).bits() as u64, 2),
    Broadcast::Write(dc::CYCLIC_UNIT_CONTROL, 0, 2),
];

impl Broadcast {
    /// First register it goes to.
    pub(super) const fn register(self) -> u16 {
        match self {
            Self::Count => register::TYPE,
            Self::Clear(register, _) | Self::Write(register, ..) => register,
        }
    }

    /// Appends the datagram.
    pub(super) fn emit(self, outgoing: &mut Outgoing<'_>) -> bool {
        let register = self.register();
        let (command, length, value) = match self {
            Self::Count => (Command::Brd, 1, 0),
            Self::Clear(_, length) => (Command::Bwr, length, 0),
            Self::Write(_, value, length) => (Command::Bwr, length, value),
        };
        let Some(data) = outgoing.push(command, Address::Broadcast { register }, length, Owner::Bus) else {
            return false;
        };
        for (byte, value) in data.iter_mut().zip(value.to_le_bytes()) {
            *byte = value;
        }
        true
    }
}

/// Sorts the SubDevices from the order of processing to that of the cable. They differ behind
/// SubDevices that frames enter by another port than 0. Without receive times (`by_times`) port 0
/// is taken as the entry port.
pub(super) fn sort_by_cable(found: &mut Vec<SubDevice>, by_times: bool) -> Result<(), BusError> {
    let nodes: Vec<_> =
        found.iter().map(|it| (it.dl_status, it.plausible_times().filter(|_| by_times))).collect();
    let places = topology::places(&nodes).map_err(|position| BusError::Topology { position })?;
    let mut processed: Vec<_> = core::mem::take(found).into_iter().map(Some).collect();
    for (position, place) in (0..).zip(places) {
        let Some(it) = processed[usize::from(place.processed)].take() else { continue };
        let (upstream, entry_port) = (place.upstream, place.entry);
        found.push(SubDevice { name: SubDevice::name_at(position), position, upstream, entry_port, ..it });
    }
    Ok(())
}

/// Compares the SubDevices found with the description, and takes over names and mappings. A
/// SubDevice without an SII passes; [`check_siis`] refuses it if it needs one.
pub(super) fn verify(
    found: &mut [SubDevice],
    expected: Option<&[SubDeviceConfiguration]>,
) -> Result<(), BusError> {
    name(found)?;
    let Some(expected) = expected else { return Ok(()) };
    for (sub_device, expected) in found.iter_mut().zip(expected) {
        if !expected.name.is_empty() {
            sub_device.name.clone_from(&expected.name);
        }
        if sub_device.sii_problem.is_none() {
            check_identity(sub_device, expected).map_err(|error| at(sub_device, error))?;
        }
    }
    if let Some(missing) = expected.get(found.len()) {
        let name = missing.name.clone();
        return Err(BusError::Missing { expected: expected.len(), found: found.len(), name });
    }
    match found.get(expected.len()) {
        None => Ok(()),
        Some(unexpected) => Err(BusError::Unexpected {
            expected: expected.len(),
            found: found.len(),
            identity: unexpected.identity,
        }),
    }
}

/// Names the SubDevices found after their SIIs.
pub(super) fn name(found: &mut [SubDevice]) -> Result<(), BusError> {
    if found.len() > MAXIMUM_SUB_DEVICES {
        return Err(BusError::TooMany { found: found.len(), maximum: MAXIMUM_SUB_DEVICES });
    }
    for sub_device in found.iter_mut() {
        if let Some(name) = sub_device.sii.as_ref().map(sii::Image::name).filter(|it| !it.is_empty()) {
            sub_device.name = name;
        }
    }
    Ok(())
}

/// Refuses SubDevices with a configuration that needs an unreadable SII.
pub(super) fn check_siis(
    found: &[SubDevice],
    expected: Option<&[SubDeviceConfiguration]>,
) -> Result<(), BusError> {
    for (sub_device, configuration) in found.iter().zip(expected.unwrap_or_default()) {
        if let Some(problem) = sub_device.sii_problem.as_ref().filter(|_| needs_sii(configuration)) {
            return Err(at(sub_device, problem.clone()));
        }
    }
    Ok(())
}

fn needs_sii(it: &SubDeviceConfiguration) -> bool {
    it.identity.is_some() || it.alias.is_some() || it.sync0.is_some() || needs_coe(it) || describes_pdos(it)
}

fn check_identity(found: &SubDevice, expected: &SubDeviceConfiguration) -> Result<(), SubDeviceError> {
    if let Some(identity) = expected.identity {
        let ExpectedIdentity { vendor_id, product_code, revision } = identity;
        let same = found.identity.vendor_id == vendor_id
            && found.identity.product_code == product_code
            && revision.is_none_or(|revision| revision == found.identity.revision);
        if !same {
            return Err(SubDeviceError::Identity { expected: identity, found: found.identity });
        }
    }
    match expected.alias {
        Some(alias) if alias != found.information.alias => {
            Err(SubDeviceError::Alias { expected: alias, found: found.information.alias })
        }
        _ => Ok(()),
    }
}

/// Puts the place before an error.
pub(super) fn at(sub_device: &SubDevice, error: SubDeviceError) -> BusError {
    BusError::SubDevice { position: sub_device.position, name: sub_device.name.clone(), error }
}

/// The mailbox a SubDevice's SII declares.
pub(super) fn mailbox(sub_device: &SubDevice) -> Result<Option<Mailbox>, SubDeviceError> {
    let Some(sii) = &sub_device.sii else { return Ok(None) };
    declared(sii.header.mailbox(), sii.header.mailbox_protocols())
}

/// The mailbox that an SII declares, if it does.
pub(super) fn declared(
    mailbox: Option<sii::Mailbox>,
    protocols: MailboxProtocols,
) -> Result<Option<Mailbox>, SubDeviceError> {
    let Some(declared) = mailbox else { return Ok(None) };
    let coe = protocols.contains(MailboxProtocols::COE);
    let (out, r#in) =
        ((declared.receive_offset, declared.receive_size), (declared.send_offset, declared.send_size));
    for (address, found) in [out, r#in] {
        if !(MINIMUM_MAILBOX_LENGTH..=MAXIMUM_MAILBOX_LENGTH).contains(&found) {
            let (minimum, maximum) = (MINIMUM_MAILBOX_LENGTH, MAXIMUM_MAILBOX_LENGTH);
            return Err(SubDeviceError::MailboxLength { address, found, minimum, maximum });
        }
    }
    let ((out_address, out_length), (in_address, in_length)) = (out, r#in);
    Ok(Some(Mailbox { out_address, out_length, in_address, in_length, coe }))
}

/// True if a configuration needs CoE, independently of the SII.
pub(super) fn needs_coe(configuration: &SubDeviceConfiguration) -> bool {
    !configuration.startup.is_empty()
}

/// True if PDOs are described: they are written by CoE, or compared with the SII.
pub(super) fn describes_pdos(configuration: &SubDeviceConfiguration) -> bool {
    match &configuration.process_data {
        ProcessDataSource::Sii => false,
        ProcessDataSource::Explicit(mapping) => !mapping.outputs.is_empty() || !mapping.inputs.is_empty(),
    }
}

/// Compares the described PDOs with the PDOs of a SubDevice that has no others.
pub(super) fn check_pdos(described: PdoDigest, found: PdoDigest) -> Result<(), SubDeviceError> {
    match described == found {
        true => Ok(()),
        false => Err(SubDeviceError::OtherPdos { expected: described.bits, found: found.bits }),
    }
}

/// The same for a SubDevice with a readable SII.
pub(super) fn check_own_pdos(it: &SubDevice) -> Result<(), SubDeviceError> {
    let default = |usage| default_sync_manager(it, usage);
    let own = it.sii.as_ref().map(sii::Image::default_mapping).unwrap_or_default();
    check_pdos(PdoDigest::of(&it.mapping, default), PdoDigest::of(&own, default))
}

/// The SyncManagers that carry a SubDevice's process data, and each one's share.
pub(super) fn sync_managers(
    sub_device: &SubDevice,
    configuration: &SubDeviceConfiguration,
) -> Result<Vec<(u8, SyncManager, Share)>, SubDeviceError> {
    let declared = sub_device.sii.as_ref().map_or(&[][..], |sii| sii.sync_managers());
    let mut found: Vec<(u8, SyncManager, Share)> = Vec::new();
    let directions = [
        (&sub_device.mapping.outputs, SyncManagerUse::Outputs, FmmuDirection::Write, "outputs"),
        (&sub_device.mapping.inputs, SyncManagerUse::Inputs, FmmuDirection::Read, "inputs"),
    ];
    for (pdos, usage, direction, word) in directions {
        for pdo in pdos.iter().filter(|pdo| pdo.bit_length() > 0) {
            let default = default_sync_manager(sub_device, usage);
            let number =
                pdo.sync_manager.or(default).ok_or(SubDeviceError::NoSyncManager { direction: word })?;
            let record = declared.get(usize::from(number)).ok_or(SubDeviceError::SyncManager {
                pdo: pdo.index,
                sync_manager: number,
                count: declared.len(),
            })?;
            match found.iter_mut().find(|(other, ..)| *other == number) {
                Some((.., share)) => share.bits += pdo.bit_length(),
                None => {
                    let share = Share {
                        position: sub_device.position,
                        direction,
                        physical_address: record.physical_address,
                        bits: pdo.bit_length(),
                        refuses_lrw: !configuration.lrw || refuses_lrw(sub_device),
                        maps_bits: !sub_device.information.features.fmmu_bytes_only(),
                        is_loose: sub_device.mark.presence != Presence::Required,
                        every: configuration.every.max(1),
                    };
                    let mut sync_manager = SyncManager {
                        physical_address: record.physical_address,
                        length: 0,
                        control: record.control,
                        active: true,
                    };
                    sync_manager.control = watchdogs::control(sub_device.wanted_watchdog, &sync_manager);
                    found.push((number, sync_manager, share));
                }
            }
        }
    }
    for (_, sync_manager, share) in &mut found {
        sync_manager.length = u16::try_from(share.bits.div_ceil(8)).unwrap_or(u16::MAX);
    }
    let count = sub_device.information.sync_manager_count;
    if let Some(&(number, ..)) = found.iter().find(|(number, ..)| *number >= count) {
        return Err(SubDeviceError::SyncManagers { number, found: count });
    }
    check_slow(&found, configuration)?;
    let fmmus = sub_device.information.fmmu_count;
    if found.len() > usize::from(fmmus) {
        return Err(SubDeviceError::Fmmus { needed: found.len(), found: fmmus });
    }
    Ok(found)
}

/// Refuses process data for every few cycles that takes more than one datagram.
pub(super) fn check_slow(
    in_use: &[(u8, SyncManager, Share)],
    configuration: &SubDeviceConfiguration,
) -> Result<(), SubDeviceError> {
    let bytes: usize = in_use.iter().map(|(.., share)| share.bits.div_ceil(8)).sum();
    match configuration.every > 1 && bytes > CHUNK_CAPACITY {
        true => Err(SubDeviceError::TooLargeToWait { every: configuration.every, found: bytes }),
        false => Ok(()),
    }
}

/// The first SyncManager that its SII declares for this use.
fn default_sync_manager(sub_device: &SubDevice, usage: SyncManagerUse) -> Option<u8> {
    let declared = sub_device.sii.as_ref().map_or(&[][..], |sii| sii.sync_managers());
    declared.iter().position(|it| it.usage == usage).map(|number| number as u8)
}

/// The ESC says so, or the SII does.
fn refuses_lrw(sub_device: &SubDevice) -> bool {
    let general = sub_device.sii.as_ref().and_then(|sii| sii.general());
    sub_device.information.features.refuses_lrw() || general.is_some_and(|general| general.refuses_lrw())
}

/// The mapping in use: the configuration's, its PDOs on the SyncManagers they are given or else the
/// first of their direction; or the SII's default.
pub(super) fn mapping(sub_device: &mut SubDevice, configuration: &SubDeviceConfiguration) {
    sub_device.mapping = match &configuration.process_data {
        ProcessDataSource::Explicit(mapping) => {
            let mut mapping = mapping.clone();
            let usages = [SyncManagerUse::Outputs, SyncManagerUse::Inputs];
            for (pdos, usage) in [&mut mapping.outputs, &mut mapping.inputs].into_iter().zip(usages) {
                let default = default_sync_manager(sub_device, usage);
                pdos.iter_mut().for_each(|pdo| pdo.sync_manager = pdo.sync_manager.or(default));
            }
            mapping
        }
        ProcessDataSource::Sii => {
            sub_device.sii.as_ref().map(|sii| sii.default_mapping()).unwrap_or_default()
        }
    };
}

/// Adds the configured number of samples of each channel to the mapping of the SII.
pub(super) fn oversample(
    sub_device: &mut SubDevice,
    configuration: &SubDeviceConfiguration,
) -> Result<(), SubDeviceError> {
    let Some(Oversampling { samples, pdos }) = &configuration.oversampling else { return Ok(()) };
    if configuration.process_data != ProcessDataSource::Sii {
        return Ok(());
    }
    if sub_device.mailbox.is_some_and(|mailbox| mailbox.coe) {
        return Err(SubDeviceError::SamplesByCoe);
    }
    let marked = sub_device.sii.as_ref().map(sii::Image::samples).unwrap_or_default();
    let wanted = if pdos.is_empty() { &marked } else { pdos };
    let mapping = &sub_device.mapping;
    let assigned: Vec<u16> = mapping.outputs.iter().chain(&mapping.inputs).map(|pdo| pdo.index).collect();
    let missing = pdos.iter().copied().find(|index| !assigned.contains(index));
    if missing.is_some() || !assigned.iter().any(|index| wanted.contains(index)) {
        return Err(SubDeviceError::NoSamples { wanted: missing, assigned });
    }
    sub_device.mapping = mapping.oversampled(*samples, |pdo| wanted.contains(&pdo.index));
    Ok(())
}

/// The directions whose mapping only the SubDevice knows: it has CoE and SyncManagers for process
/// data, and neither its SII nor its configuration describes their content.
pub(super) fn unknown_mapping(
    sub_device: &SubDevice,
    configuration: &SubDeviceConfiguration,
) -> Option<Directions> {
    let mapping = &sub_device.mapping;
    let is_known = configuration.process_data != ProcessDataSource::Sii
        || mapping.output_bits() > 0
        || mapping.input_bits() > 0;
    if is_known || !sub_device.mailbox.is_some_and(|mailbox| mailbox.coe) {
        return None;
    }
    let declared = sub_device.sii.as_ref()?.sync_managers();
    let is_for =
        |number: usize, usage| declared.get(number).is_some_and(|it: &SiiSyncManager| it.usage == usage);
    let directions = [is_for(2, SyncManagerUse::Outputs), is_for(3, SyncManagerUse::Inputs)];
    directions.contains(&true).then_some(directions)
}

/// Checks that all may leave PreOp: process data is known, and watchdogs are as configured.
pub(super) fn check(sub_devices: &[SubDevice]) -> Result<(), BusError> {
    sub_devices.iter().try_for_each(|it| {
        let unread = it.mapping_error.clone().map_or(Ok(()), Err);
        unread.and_then(|()| watchdogs::check(it)).map_err(|error| at(it, error))
    })
}

/// Takes over where a layout puts a SubDevice's outputs and inputs.
pub(super) fn place(sub_device: &mut SubDevice, layout: &Layout) {
    let of = |direction| {
        let mut pieces = layout
            .pieces
            .iter()
            .filter(|piece| {
                piece.share.position == sub_device.position && piece.share.direction == direction
            })
            .map(|piece| piece.image.clone());
        let first = pieces.next().unwrap_or(0..0);
        first.start..pieces.next_back().map_or(first.end, |last| last.end)
    };
    (sub_device.outputs, sub_device.inputs) = (of(FmmuDirection::Write), of(FmmuDirection::Read));
}

/// Clocks of all, from the latched times; unexpected SubDevices count as cable.
pub(super) fn set_clocks(
    sub_devices: &mut [SubDevice],
    system_time: u64,
    is_stranger: impl Fn(usize) -> bool,
    open: Option<OpenRing>,
) -> Option<u16> {
    if let Some(open) = open {
        let (settings, reference) = open.clocks(sub_devices, system_time, is_stranger);
        for (sub_device, setting) in sub_devices.iter_mut().zip(settings) {
            sub_device.clock = setting;
        }
        return reference.map(|position| position as u16);
    }
    let mut nodes: Vec<_> = sub_devices
        .iter()
        .enumerate()
        .map(|(place, it)| ClockNode {
            status: it.dl_status,
            entry: it.entry_port,
            processed: it.processed,
            upstream: it.upstream,
            latched: it.plausible_times().filter(|_| !is_stranger(place)),
        })
        .collect();
    let mut settings = clock::settings(&nodes, system_time);
    let reference =
        estimated_delays::complete(sub_devices, &mut nodes, &mut settings, system_time, is_stranger);
    for (sub_device, setting) in sub_devices.iter_mut().zip(settings) {
        sub_device.clock = setting;
    }
    reference.map(|position| position as u16)
}
