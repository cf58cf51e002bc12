//! SII images for SubDevices described in code.

use ethercat::pdo::{MAPPING_INPUTS, MAPPING_OUTPUTS, Pdo, PdoEntry, PdoMapping};
use ethercat::register::SyncManager;
use ethercat::sii::{
    Builder, CoeDetails, DistributedClock, FmmuUse, Identity, Image, Mailbox, MailboxProtocols,
    SiiSyncManager, SyncManagerUse,
};

use crate::coe::DataType;

/// Contents of an SII image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiiDescription {
    /// Identity of the SubDevice.
    pub identity: Identity,
    /// Name of the SubDevice.
    pub name: String,
    /// Configured station alias; 0 for none.
    pub alias: u16,
    /// PDOs; a SyncManager means assigned by default. With CoE, outputs belong to SyncManager 2 and
    /// inputs to 3, else to 0 and the one after it: see [`SiiDescription::mapping`].
    pub mapping: PdoMapping,
    /// Bytes of each mailbox, at least 16, for a SubDevice with CoE.
    pub mailbox: Option<u16>,
    /// True if it has a distributed clock with SYNC0.
    pub distributed_clock: bool,
}

/// Default size of a mailbox, in bytes.
pub const MAILBOX_SIZE: u16 = 128;

/// Shortest mailbox (ETG.1000.6, 5.6: header, CoE header and SDO).
const SMALLEST_MAILBOX: u16 = 16;

/// First address of the process data memory.
const PROCESS_DATA_MEMORY: u16 = 0x1000;

/// Least length of a process data SyncManager, in bytes, so that a mapping may grow.
const PROCESS_DATA_ROOM: u16 = 128;

/// DC activation: SYNC0 and the clock's cyclic operation (register 0x0980).
pub(super) const ASSIGN_ACTIVATE_SYNC0: u16 = 0x0300;

impl SiiDescription {
    /// Mapping with each assigned PDO at the SyncManager of its direction in the image.
    #[must_use]
    pub fn mapping(&self) -> PdoMapping {
        let (outputs, inputs) = self.sync_managers();
        let at = |pdos: &[Pdo], number| {
            let place = |pdo: &Pdo| Pdo { sync_manager: pdo.sync_manager.map(|_| number), ..pdo.clone() };
            pdos.iter().map(place).collect()
        };
        PdoMapping { outputs: at(&self.mapping.outputs, outputs), inputs: at(&self.mapping.inputs, inputs) }
    }

    /// Image, with checksum.
    #[must_use]
    pub fn image(&self) -> Image {
        let mapping = self.mapping();
        let mut builder = Builder::new(self.identity, &self.name).alias(self.alias);
        let mut address = PROCESS_DATA_MEMORY;
        if let Some(size) = self.mailbox {
            let size = size.max(SMALLEST_MAILBOX);
            let mailbox = Mailbox {
                receive_offset: address,
                receive_size: size,
                send_offset: address + size,
                send_size: size,
            };
            builder = builder
                .mailbox(mailbox, MailboxProtocols::COE)
                .coe_details(coe_details(&mapping))
                .sync_manager(sync_manager(
                    address,
                    size,
                    SyncManager::CONTROL_MAILBOX_OUT,
                    SyncManagerUse::MailboxOut,
                ))
                .sync_manager(sync_manager(
                    address + size,
                    size,
                    SyncManager::CONTROL_MAILBOX_IN,
                    SyncManagerUse::MailboxIn,
                ));
            address += 2 * size;
        }
        // A CoE SubDevice always has both process data SyncManagers: 2 and 3 are their numbers.
        let has_mailbox = self.mailbox.is_some();
        let output_bytes = assigned_bytes(&mapping.outputs);
        if has_mailbox || output_bytes > 0 {
            let control = SyncManager::CONTROL_OUTPUTS;
            let outputs = sync_manager(address, output_bytes, control, SyncManagerUse::Outputs);
            builder = builder.fmmu(FmmuUse::Outputs).sync_manager(outputs);
            address += 3 * output_bytes.max(PROCESS_DATA_ROOM);
        }
        let input_bytes = assigned_bytes(&mapping.inputs);
        if has_mailbox || input_bytes > 0 {
            let control = SyncManager::CONTROL_INPUTS;
            let inputs = sync_manager(address, input_bytes, control, SyncManagerUse::Inputs);
            builder = builder.fmmu(FmmuUse::Inputs).sync_manager(inputs);
        }
        if has_mailbox {
            builder = builder.fmmu(FmmuUse::MailboxStatus);
        }
        builder = mapping.inputs.iter().fold(builder, Builder::input);
        builder = mapping.outputs.iter().fold(builder, Builder::output);
        if self.distributed_clock {
            let mode = DistributedClock {
                assign_activate: ASSIGN_ACTIVATE_SYNC0,
                sync0_cycle_factor: 1,
                ..DistributedClock::default()
            };
            builder = builder.distributed_clock("DC", mode);
        }
        builder.build()
    }

    /// Numbers of the SyncManagers of outputs and inputs.
    fn sync_managers(&self) -> (u8, u8) {
        match (self.mailbox, assigned_bytes(&self.mapping.outputs)) {
            (Some(_), _) => (2, 3),
            (None, 0) => (0, 0),
            (None, _) => (0, 1),
        }
    }
}

/// A coupler or a junction: no process data, no mailbox.
#[must_use]
pub fn coupler(identity: Identity, name: &str) -> SiiDescription {
    SiiDescription {
        identity,
        name: name.to_owned(),
        alias: 0,
        mapping: PdoMapping::default(),
        mailbox: None,
        distributed_clock: false,
    }
}

/// A terminal with `channels` digital outputs, 1 to 64, one fixed PDO each.
#[must_use]
pub fn digital_outputs(identity: Identity, name: &str, channels: u8) -> SiiDescription {
    let outputs = (0..channels).map(|channel| digital_pdo(MAPPING_OUTPUTS, 0x7000, channel, "Output"));
    let mapping = PdoMapping { outputs: outputs.collect(), inputs: Vec::new() };
    SiiDescription { mapping, ..coupler(identity, name) }
}

/// A terminal with `channels` digital inputs, 1 to 64, one fixed PDO each.
#[must_use]
pub fn digital_inputs(identity: Identity, name: &str, channels: u8) -> SiiDescription {
    let inputs = (0..channels).map(|channel| digital_pdo(MAPPING_INPUTS, 0x6000, channel, "Input"));
    let mapping = PdoMapping { outputs: Vec::new(), inputs: inputs.collect() };
    SiiDescription { mapping, ..coupler(identity, name) }
}

/// A SubDevice with CoE, such as a drive or an analogue terminal.
#[must_use]
pub fn with_coe(identity: Identity, name: &str, mapping: PdoMapping) -> SiiDescription {
    SiiDescription {
        mapping,
        mailbox: Some(MAILBOX_SIZE),
        distributed_clock: true,
        ..coupler(identity, name)
    }
}

/// All PDOs of `image`, assigned by default or not. Assigned PDOs are in the order of their
/// SyncManagers.
#[must_use]
pub fn pdos(image: &Image) -> PdoMapping {
    let ordered = |mut pdos: Vec<Pdo>| {
        pdos.sort_by_key(|pdo| pdo.sync_manager);
        pdos
    };
    PdoMapping { outputs: ordered(image.outputs()), inputs: ordered(image.inputs()) }
}

/// An entry of a PDO that holds a value of `data_type`.
pub(super) fn entry(index: u16, sub_index: u8, data_type: DataType, name: &str) -> PdoEntry {
    let bit_length = data_type.bit_length().and_then(|bits| u8::try_from(bits).ok()).unwrap_or(0);
    PdoEntry { index, sub_index, bit_length, data_type: data_type.code(), name: name.to_owned() }
}

/// Padding of a PDO.
pub(super) fn padding(bits: u8) -> PdoEntry {
    PdoEntry::from_mapping_value(bits.into())
}

pub(super) fn digital_pdo(first: u16, object: u16, channel: u8, name: &str) -> Pdo {
    Pdo {
        index: first + u16::from(channel),
        sync_manager: Some(0),
        fixed: true,
        name: format!("Channel {}", u16::from(channel) + 1),
        entries: vec![entry(object + 0x10 * u16::from(channel), 1, DataType::Boolean, name)],
    }
}

fn coe_details(mapping: &PdoMapping) -> CoeDetails {
    let details = CoeDetails::SDO.with(CoeDetails::SDO_INFORMATION).with(CoeDetails::COMPLETE_ACCESS);
    let settable = mapping.outputs.iter().chain(&mapping.inputs).any(|pdo| !pdo.fixed);
    if settable {
        details.with(CoeDetails::PDO_ASSIGNMENT).with(CoeDetails::PDO_CONFIGURATION)
    } else {
        details
    }
}

fn sync_manager(physical_address: u16, length: u16, control: u8, usage: SyncManagerUse) -> SiiSyncManager {
    SiiSyncManager { physical_address, length, control, status: 0, enable: 1, usage }
}

fn assigned_bytes(pdos: &[Pdo]) -> u16 {
    let assigned = pdos.iter().filter(|pdo| pdo.sync_manager.is_some());
    let bits: usize = assigned.map(Pdo::bit_length).sum();
    u16::try_from(bits.div_ceil(8)).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::servo::default_mapping;
    use super::*;

    #[test]
    fn a_drive_has_mailbox_and_process_data_sync_managers() {
        let identity = Identity { vendor_id: 1, product_code: 2, revision: 3, serial: 4 };
        let description = SiiDescription { alias: 77, ..with_coe(identity, "drive", default_mapping()) };
        let image = Image::parse(&description.image().emit()).expect("an image that parses");
        assert_eq!((image.header.identity(), image.name()), (identity, "drive".to_owned()));
        assert_eq!(image.header.alias(), 77);
        let places = image.sync_managers().iter().map(|it| (it.physical_address, it.length));
        let places: Vec<_> = places.collect();
        assert_eq!(places, [(0x1000, 128), (0x1080, 128), (0x1100, 12), (0x1280, 12)]);
        assert_eq!(image.default_mapping(), default_mapping());
        assert_eq!(image.distributed_clocks().len(), 1);
        let details = image.general().expect("a general category").coe_details;
        assert!(details.contains(CoeDetails::PDO_CONFIGURATION.with(CoeDetails::COMPLETE_ACCESS)));
    }

    #[test]
    fn digital_terminals_have_one_sync_manager_and_no_mailbox() {
        let outputs = digital_outputs(Identity::default(), "outputs", 12).image();
        assert_eq!(outputs.sync_managers().len(), 1);
        assert_eq!((outputs.sync_managers()[0].length, outputs.header.mailbox()), (2, None));
        assert_eq!(outputs.default_mapping().output_bits(), 12);
        let inputs = digital_inputs(Identity::default(), "inputs", 3).image();
        assert_eq!(inputs.sync_managers()[0].usage, SyncManagerUse::Inputs);
        assert_eq!(inputs.default_mapping().input_bits(), 3);
        let coupler = coupler(Identity::default(), "coupler").image();
        assert!(coupler.sync_managers().is_empty() && coupler.fmmus().is_empty());
    }
}
