//! Drive objects of the dictionary (IEC 61800-7-201), and handles of their entries.

use core::f64::consts::TAU;

use ethercat::cia402::object::*;
use ethercat::cia402::{ModeOfOperation, SupportedModes};
use ethercat::pdo::{MAPPING_INPUTS, MAPPING_OUTPUTS, Pdo, PdoMapping};
use ethercat::sdo_abort::AbortCode;
use ethercat::wire::coe::AccessRights;

use super::ServoDescription;
use super::homing::METHODS;
use crate::application::description::{DescriptionError, add_mapping};
use crate::application::sii::entry;
use crate::coe::common;
use crate::coe::{Allowed, DataType, Entry, EntryId, Object, ObjectDictionary, READ_WRITE};

/// Access of a master to the simulated world, in the range of manufacturer-specific objects: sub-index 1
/// load torque (INTEGER32, mN m), 2 raises a fault with this error code (UNSIGNED16), 3 presence of main
/// power (BOOLEAN).
pub const SIMULATION: u16 = 0x2F00;

/// Position actual internal value, INTEGER32, encoder counts: here the same as 0x6064.
const POSITION_ACTUAL_INTERNAL_VALUE: u16 = 0x6063;

/// Modes of this drive; all others are refused.
pub(super) const MODES: [ModeOfOperation; 4] = [
    ModeOfOperation::Homing,
    ModeOfOperation::CyclicSynchronousPosition,
    ModeOfOperation::CyclicSynchronousVelocity,
    ModeOfOperation::CyclicSynchronousTorque,
];

/// Capacity of a PDO, in objects.
const MAPPING_CAPACITY: u8 = 16;

/// Least number of PDOs of a direction, so that a MainDevice finds spare ones to map into.
const PDO_COUNT: u16 = 4;

/// Handles of the entries that the drive uses.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    pub(super) error_register: EntryId,
    pub(super) error_code: EntryId,
    pub(super) controlword: EntryId,
    pub(super) statusword: EntryId,
    pub(super) quick_stop_option: EntryId,
    pub(super) halt_option: EntryId,
    pub(super) mode: EntryId,
    pub(super) mode_display: EntryId,
    pub(super) position: EntryId,
    pub(super) internal_position: EntryId,
    pub(super) following_error_window: EntryId,
    pub(super) following_error_time_out: EntryId,
    pub(super) following_error: EntryId,
    pub(super) velocity: EntryId,
    pub(super) target_torque: EntryId,
    pub(super) maximum_torque: EntryId,
    pub(super) torque_demand: EntryId,
    pub(super) torque: EntryId,
    pub(super) target_position: EntryId,
    pub(super) profile_deceleration: EntryId,
    pub(super) quick_stop_deceleration: EntryId,
    pub(super) velocity_offset: EntryId,
    pub(super) torque_offset: EntryId,
    pub(super) interpolation_period: EntryId,
    pub(super) interpolation_exponent: EntryId,
    pub(super) target_velocity: EntryId,
    pub(super) digital_inputs: EntryId,
    pub(super) home_offset: EntryId,
    pub(super) homing_method: EntryId,
    pub(super) switch_speed: EntryId,
    pub(super) zero_speed: EntryId,
    pub(super) homing_acceleration: EntryId,
    pub(super) load_torque: EntryId,
    pub(super) raise_fault: EntryId,
    pub(super) power: EntryId,
}

impl Entries {
    /// # Errors
    /// The abort code of the object that is missing; none is in the dictionary of [`dictionary`].
    pub(super) fn find(dictionary: &ObjectDictionary) -> Result<Self, AbortCode> {
        let find = |index| dictionary.find(index, 0);
        Ok(Self {
            error_register: find(common::ERROR_REGISTER)?,
            error_code: find(ERROR_CODE)?,
            controlword: find(CONTROLWORD)?,
            statusword: find(STATUSWORD)?,
            quick_stop_option: find(QUICK_STOP_OPTION_CODE)?,
            halt_option: find(HALT_OPTION_CODE)?,
            mode: find(MODES_OF_OPERATION)?,
            mode_display: find(MODES_OF_OPERATION_DISPLAY)?,
            position: find(POSITION_ACTUAL_VALUE)?,
            internal_position: find(POSITION_ACTUAL_INTERNAL_VALUE)?,
            following_error_window: find(FOLLOWING_ERROR_WINDOW)?,
            following_error_time_out: find(FOLLOWING_ERROR_TIME_OUT)?,
            following_error: find(FOLLOWING_ERROR_ACTUAL_VALUE)?,
            velocity: find(VELOCITY_ACTUAL_VALUE)?,
            target_torque: find(TARGET_TORQUE)?,
            maximum_torque: find(MAXIMUM_TORQUE)?,
            torque_demand: find(TORQUE_DEMAND)?,
            torque: find(TORQUE_ACTUAL_VALUE)?,
            target_position: find(TARGET_POSITION)?,
            profile_deceleration: find(PROFILE_DECELERATION)?,
            quick_stop_deceleration: find(QUICK_STOP_DECELERATION)?,
            velocity_offset: find(VELOCITY_OFFSET)?,
            torque_offset: find(TORQUE_OFFSET)?,
            interpolation_period: dictionary.find(INTERPOLATION_TIME_PERIOD, 1)?,
            interpolation_exponent: dictionary.find(INTERPOLATION_TIME_PERIOD, 2)?,
            target_velocity: find(TARGET_VELOCITY)?,
            digital_inputs: find(DIGITAL_INPUTS)?,
            home_offset: find(HOME_OFFSET)?,
            homing_method: find(HOMING_METHOD)?,
            switch_speed: dictionary.find(HOMING_SPEEDS, 1)?,
            zero_speed: dictionary.find(HOMING_SPEEDS, 2)?,
            homing_acceleration: find(HOMING_ACCELERATION)?,
            load_torque: dictionary.find(SIMULATION, 1)?,
            raise_fault: dictionary.find(SIMULATION, 2)?,
            power: dictionary.find(SIMULATION, 3)?,
        })
    }
}

/// Dictionary of the drive in `description`.
///
/// # Errors
/// [`DescriptionError::MappedLength`], [`DescriptionError::PdoIndex`].
pub(super) fn dictionary(description: &ServoDescription) -> Result<ObjectDictionary, DescriptionError> {
    let mut dictionary = common::dictionary(&description.device);
    let counts = f64::from(description.encoder_counts);
    let rated_torque = (description.rated_torque * 1000.0).round() as i64;
    let maximum_torque =
        (description.plant.torque_limit / description.rated_torque * 1000.0).round() as i64;
    let deceleration = ((DECELERATION / TAU * counts) as i64).clamp(1, i64::from(u32::MAX));
    let window = (counts * FOLLOWING_ERROR_REVOLUTIONS).max(1.0) as i64;

    let rx = READ_WRITE.with(AccessRights::RX_PDO_MAPPABLE);
    let tx = AccessRights::READ.with(AccessRights::TX_PDO_MAPPABLE);
    let mode = i64::from(ModeOfOperation::from(description.mode).number());
    let modes = Allowed::OneOf(MODES.iter().map(|mode| i64::from(mode.number())).collect());
    let methods = Allowed::OneOf(METHODS.iter().map(|&method| method.into()).collect());
    let any = Allowed::Any;
    let supported = i64::from(SupportedModes::of(&MODES).0);
    for (index, name, data_type, access, value, allowed) in [
        (ERROR_CODE, "Error code", DataType::U16, tx, 0, any.clone()),
        (CONTROLWORD, "Controlword", DataType::U16, rx, 0, any.clone()),
        (STATUSWORD, "Statusword", DataType::U16, tx, 0, any.clone()),
        (
            QUICK_STOP_OPTION_CODE,
            "Quick stop option code",
            DataType::I16,
            READ_WRITE,
            2,
            QUICK_STOPS.into(),
        ),
        (HALT_OPTION_CODE, "Halt option code", DataType::I16, READ_WRITE, 1, HALTS.into()),
        (MODES_OF_OPERATION, "Modes of operation", DataType::I8, rx, mode, modes),
        (MODES_OF_OPERATION_DISPLAY, "Modes of operation display", DataType::I8, tx, mode, any.clone()),
        (
            POSITION_ACTUAL_INTERNAL_VALUE,
            "Position actual internal value",
            DataType::I32,
            tx,
            0,
            any.clone(),
        ),
        (POSITION_ACTUAL_VALUE, "Position actual value", DataType::I32, tx, 0, any.clone()),
        (FOLLOWING_ERROR_WINDOW, "Following error window", DataType::U32, rx, window, any.clone()),
        (FOLLOWING_ERROR_TIME_OUT, "Following error time out", DataType::U16, READ_WRITE, 2, any.clone()),
        (VELOCITY_ACTUAL_VALUE, "Velocity actual value", DataType::I32, tx, 0, any.clone()),
        (TARGET_TORQUE, "Target torque", DataType::I16, rx, 0, any.clone()),
        (MAXIMUM_TORQUE, "Max torque", DataType::U16, rx, maximum_torque.min(0xFFFF), any.clone()),
        (TORQUE_DEMAND, "Torque demand", DataType::I16, tx, 0, any.clone()),
        (
            MOTOR_RATED_TORQUE,
            "Motor rated torque",
            DataType::U32,
            AccessRights::READ,
            rated_torque,
            any.clone(),
        ),
        (TORQUE_ACTUAL_VALUE, "Torque actual value", DataType::I16, tx, 0, any.clone()),
        (TARGET_POSITION, "Target position", DataType::I32, rx, 0, any.clone()),
        (HOME_OFFSET, "Home offset", DataType::I32, READ_WRITE, 0, any.clone()),
        (HOMING_METHOD, "Homing method", DataType::I8, READ_WRITE, 37, methods),
        (HOMING_ACCELERATION, "Homing acceleration", DataType::U32, READ_WRITE, deceleration, AT_LEAST_1),
        (PROFILE_DECELERATION, "Profile deceleration", DataType::U32, rx, deceleration, AT_LEAST_1),
        (
            QUICK_STOP_DECELERATION,
            "Quick stop deceleration",
            DataType::U32,
            rx,
            2 * deceleration,
            AT_LEAST_1,
        ),
        (VELOCITY_OFFSET, "Velocity offset", DataType::I32, rx, 0, any.clone()),
        (TORQUE_OFFSET, "Torque offset", DataType::I16, rx, 0, any.clone()),
        (FOLLOWING_ERROR_ACTUAL_VALUE, "Following error actual value", DataType::I32, tx, 0, any.clone()),
        (DIGITAL_INPUTS, "Digital inputs", DataType::U32, tx, 0, any.clone()),
        (TARGET_VELOCITY, "Target velocity", DataType::I32, rx, 0, any.clone()),
        (SUPPORTED_DRIVE_MODES, "Supported drive modes", DataType::U32, AccessRights::READ, supported, any),
    ] {
        let value = value.min(i64::from(u32::MAX));
        let entry = Entry::new(0, name, data_type, access).with_allowed(allowed).with_value(value);
        dictionary.add(Object::variable(index, entry));
    }
    dictionary.add(interpolation_time_period());
    dictionary.add(homing_speeds(counts));
    dictionary.add(simulation());
    add_mapping(&mut dictionary, &with_spare_pdos(&description.mapping), MAPPING_CAPACITY)?;
    Ok(dictionary)
}

/// Default deceleration, in rad/s^2; a quick stop takes twice as much.
const DECELERATION: f64 = 500.0;

/// Default homing speeds, in rad/s.
const SWITCH_SPEED: f64 = 10.0;
const ZERO_SPEED: f64 = 1.0;

/// Default following error window, in revolutions.
const FOLLOWING_ERROR_REVOLUTIONS: f64 = 0.05;

/// Supported option codes: slow-down ramp and quick-stop ramp, each to end in Switch on disabled (1, 2) or
/// to stay in Quick stop active (5, 6).
const QUICK_STOPS: OneOf = OneOf(&[1, 2, 5, 6]);

/// Slow-down ramp or quick-stop ramp, both staying in Operation enabled.
const HALTS: OneOf = OneOf(&[1, 2]);

const AT_LEAST_1: Allowed = Allowed::Range(1, u32::MAX as i64);

struct OneOf(&'static [i64]);

impl From<OneOf> for Allowed {
    fn from(values: OneOf) -> Self {
        Self::OneOf(values.0.to_vec())
    }
}

/// Interpolation time period: value and power of ten in seconds (CiA 402, 0x60C2); 1 ms by default.
fn interpolation_time_period() -> Object {
    let entries = vec![
        Entry::new(1, "Interpolation time period value", DataType::U8, READ_WRITE)
            .with_allowed(Allowed::Range(1, 255))
            .with_value(1),
        Entry::new(2, "Interpolation time index", DataType::I8, READ_WRITE)
            .with_allowed(Allowed::Range(-6, 0))
            .with_value(-3),
    ];
    Object::record(INTERPOLATION_TIME_PERIOD, "Interpolation time period", 0, entries)
}

/// Default homing speeds: slow enough for any axis.
fn homing_speeds(counts: f64) -> Object {
    let speed = |radians: f64| ((radians / TAU * counts) as i64).clamp(1, i64::from(u32::MAX));
    let entry = |sub_index, name, value| {
        Entry::new(sub_index, name, DataType::U32, READ_WRITE).with_allowed(AT_LEAST_1).with_value(value)
    };
    let entries = vec![
        entry(1, "Speed during search for switch", speed(SWITCH_SPEED)),
        entry(2, "Speed during search for zero", speed(ZERO_SPEED)),
    ];
    Object::record(HOMING_SPEEDS, "Homing speeds", 0, entries)
}

fn simulation() -> Object {
    let entries = vec![
        Entry::new(1, "Load torque", DataType::I32, READ_WRITE),
        Entry::new(2, "Raise fault", DataType::U16, READ_WRITE),
        Entry::new(3, "Main power", DataType::Boolean, READ_WRITE).with_value(1),
    ];
    Object::record(SIMULATION, "Simulation", 0, entries)
}

/// `mapping` with spare, unassigned PDOs after its own.
fn with_spare_pdos(mapping: &PdoMapping) -> PdoMapping {
    let spare = |pdos: &[Pdo], first: u16, name: &str| {
        let mut pdos = pdos.to_vec();
        for index in first..first + PDO_COUNT {
            if pdos.iter().all(|pdo| pdo.index != index) {
                let name = format!("{name} {}", index - first + 1);
                pdos.push(Pdo { index, sync_manager: None, fixed: false, name, entries: Vec::new() });
            }
        }
        pdos
    };
    PdoMapping {
        outputs: spare(&mapping.outputs, MAPPING_OUTPUTS, "RxPDO"),
        inputs: spare(&mapping.inputs, MAPPING_INPUTS, "TxPDO"),
    }
}

/// Default mapping, 12 bytes each way: controlword, target position, target velocity, target torque;
/// statusword and the actual values of position, velocity and torque.
#[must_use]
pub fn default_mapping() -> PdoMapping {
    let entry = |(index, data_type, name): (u16, DataType, &str)| entry(index, 0, data_type, name);
    let pdo = |index, sync_manager, name: &str, entries: [(u16, DataType, &str); 4]| Pdo {
        index,
        sync_manager: Some(sync_manager),
        fixed: false,
        name: name.to_owned(),
        entries: entries.map(entry).to_vec(),
    };
    let outputs = [
        (CONTROLWORD, DataType::U16, "Controlword"),
        (TARGET_POSITION, DataType::I32, "Target position"),
        (TARGET_VELOCITY, DataType::I32, "Target velocity"),
        (TARGET_TORQUE, DataType::I16, "Target torque"),
    ];
    let inputs = [
        (STATUSWORD, DataType::U16, "Statusword"),
        (POSITION_ACTUAL_VALUE, DataType::I32, "Position actual value"),
        (VELOCITY_ACTUAL_VALUE, DataType::I32, "Velocity actual value"),
        (TORQUE_ACTUAL_VALUE, DataType::I16, "Torque actual value"),
    ];
    PdoMapping {
        outputs: vec![pdo(MAPPING_OUTPUTS, 2, "RxPDO 1", outputs)],
        inputs: vec![pdo(MAPPING_INPUTS, 3, "TxPDO 1", inputs)],
    }
}
