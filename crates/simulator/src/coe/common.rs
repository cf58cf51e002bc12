//! Common objects of every SubDevice with CoE (ETG.1000.6, 5.6.7.4): device type, error register,
//! names, identity, SyncManager types, PDO assignment and synchronisation parameters.

use ethercat::pdo::{Pdo, PdoMapping};
use ethercat::sii::{Identity, Image};
use ethercat::wire::coe::AccessRights;

use super::data_type::DataType;
use super::dictionary::ObjectDictionary;
use super::mapping::{Direction, assignment_object, mapping_object};
use super::object::{Allowed, Entry, Object, READ_WRITE, numbered};
use super::synchronisation;
pub use super::synchronisation::{ERROR_SETTINGS, INPUT_SYNCHRONISATION, OUTPUT_SYNCHRONISATION};

/// Device type.
pub const DEVICE_TYPE: u16 = 0x1000;
/// Error register.
pub const ERROR_REGISTER: u16 = 0x1001;
/// Pre-defined error field: errors in the past, newest first (CiA 301, 7.5.2.4).
pub const ERROR_HISTORY: u16 = 0x1003;
/// Manufacturer device name.
pub const DEVICE_NAME: u16 = 0x1008;
/// Manufacturer hardware version.
pub const HARDWARE_VERSION: u16 = 0x1009;
/// Manufacturer software version.
pub const SOFTWARE_VERSION: u16 = 0x100A;
/// Identity.
pub const IDENTITY: u16 = 0x1018;
/// SyncManager communication types.
pub const SYNC_MANAGER_TYPES: u16 = 0x1C00;

/// Identification objects of a SubDevice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// 0x1000: profile number in the low half, 402 for drives; 0 without a profile.
    pub device_type: u32,
    /// 0x1018.
    pub identity: Identity,
    /// 0x1008.
    pub name: String,
    /// 0x1009.
    pub hardware_version: String,
    /// 0x100A.
    pub software_version: String,
}

impl DeviceDescription {
    /// A device without a profile, version 1.0.
    #[must_use]
    pub fn new(identity: Identity, name: &str) -> Self {
        Self {
            device_type: 0,
            identity,
            name: name.to_owned(),
            hardware_version: "1.0".to_owned(),
            software_version: "1.0".to_owned(),
        }
    }

    /// Description in `image`.
    #[must_use]
    pub fn from_sii(image: &Image) -> Self {
        Self::new(image.header.identity(), &image.name())
    }
}

/// A dictionary with the common objects of a SubDevice with CoE, and nothing mapped.
#[must_use]
pub fn dictionary(description: &DeviceDescription) -> ObjectDictionary {
    let number = |sub, name, value: u32| {
        Entry::new(sub, name, DataType::U32, AccessRights::READ).with_value(i64::from(value))
    };
    let text =
        |name, text: &str| Entry::new(0, name, DataType::VisibleString, AccessRights::READ).with_text(text);
    let mut dictionary = ObjectDictionary::new();
    dictionary.add(Object::variable(DEVICE_TYPE, number(0, "Device type", description.device_type)));
    let register = Entry::new(
        0,
        "Error register",
        DataType::U8,
        AccessRights::READ.with(AccessRights::TX_PDO_MAPPABLE),
    );
    dictionary.add(Object::variable(ERROR_REGISTER, register));
    dictionary.add(Object::variable(DEVICE_NAME, text("Manufacturer device name", &description.name)));
    let hardware = text("Manufacturer hardware version", &description.hardware_version);
    dictionary.add(Object::variable(HARDWARE_VERSION, hardware));
    let software = text("Manufacturer software version", &description.software_version);
    dictionary.add(Object::variable(SOFTWARE_VERSION, software));
    let identity = &description.identity;
    let parts = vec![
        number(1, "Vendor ID", identity.vendor_id),
        number(2, "Product code", identity.product_code),
        number(3, "Revision number", identity.revision),
        number(4, "Serial number", identity.serial),
    ];
    dictionary.add(Object::record(IDENTITY, "Identity", IDENTITY_TYPE, parts));
    let types = (1..=4).map(|sub| {
        Entry::new(sub, numbered(sub), DataType::U8, AccessRights::READ).with_value(i64::from(sub))
    });
    dictionary.add(Object::array(SYNC_MANAGER_TYPES, "Sync manager type", types.collect()));
    dictionary.add(synchronisation::error_settings());
    dictionary.add(synchronisation::parameters(OUTPUT_SYNCHRONISATION, "SM output parameter"));
    dictionary.add(synchronisation::parameters(INPUT_SYNCHRONISATION, "SM input parameter"));
    dictionary
}

/// Pre-defined error field with space for `length` errors, empty. Sub-index 0 counts the stored
/// errors; a MainDevice may only write 0, to clear them.
#[must_use]
pub fn error_history(length: usize) -> Object {
    let entries = (1..)
        .take(length)
        .map(|sub_index| Entry::new(sub_index, "Standard error field", DataType::U32, AccessRights::READ));
    let mut object = Object::array(ERROR_HISTORY, "Pre-defined error field", entries.collect());
    object = object.with_count(0, READ_WRITE);
    if let Some(count) = object.entry_mut(0) {
        count.allowed = Allowed::OneOf(vec![0]);
    }
    object
}

/// Adds mapping objects for `pdos` of one direction, and the assignment object for PDOs that have a
/// SyncManager.
///
/// A PDO that is not fixed has space for `capacity` objects, and then the assignment can be written
/// too. The caller must add the mapped objects.
pub fn add_pdos(dictionary: &mut ObjectDictionary, direction: Direction, pdos: &[Pdo], capacity: u8) {
    for pdo in pdos {
        dictionary.add(mapping_object(pdo, if pdo.fixed { 0 } else { capacity }));
    }
    let mut assigned: Vec<_> = pdos.iter().filter(|pdo| pdo.sync_manager.is_some()).collect();
    // Several SyncManagers of one direction are joined in the order of their numbers.
    assigned.sort_by_key(|pdo| pdo.sync_manager);
    let assigned: Vec<u16> = assigned.into_iter().map(|pdo| pdo.index).collect();
    let room = u8::try_from(pdos.len()).unwrap_or(u8::MAX);
    dictionary.add(assignment_object(direction, &assigned, room, pdos.is_empty()));
}

/// Adds the mapping and assignment objects of both directions, as [`add_pdos`] does.
pub fn add_mapping(dictionary: &mut ObjectDictionary, mapping: &PdoMapping, capacity: u8) {
    add_pdos(dictionary, Direction::Outputs, &mapping.outputs, capacity);
    add_pdos(dictionary, Direction::Inputs, &mapping.inputs, capacity);
}

/// Data type of the identity record (ETG.1000.6, Table 64).
const IDENTITY_TYPE: u16 = 0x0023;
