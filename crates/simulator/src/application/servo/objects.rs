//! Drive objects of the dictionary (IEC 61800-7-201), and handles of their entries.

use core::f64::consts::TAU;

use ethercat::cia402::object::*;
use ethercat::cia402::{ModeOfOperation, SupportedModes};
use ethercat::pdo::{MAPPING_INPUTS, MAPPING_OUTPUTS, Pdo, PdoMapping};
use ethercat::wire::coe::AccessRights;

use super::ServoDescription;
use super::homing::METHODS;
use crate::application::description::{DescriptionError, add_mapping};
use crate::application::sii::entry;
use crate::coe::common;
use crate::coe::{Allowed, DataType, Entry, Object, ObjectDictionary, READ_WRITE};

/// Lets a master access the simulated world, in the range of manufacturer-specific objects:
/// sub-index 1 load torque (INTEGER32, mN m), 2 raises a fault with this error code (UNSIGNED16), 3
/// presence of main power (BOOLEAN). For the first axis; the other axes follow it.
pub const SIMULATION: u16 = 0x2F00;

/// Position actual internal value, INTEGER32: 0x6064 in encoder counts.
pub(super) const POSITION_ACTUAL_INTERNAL_VALUE: u16 = 0x6063;

/// Modes of this drive; all others are refused.
pub(super) const MODES: [ModeOfOperation; 8] = [
    ModeOfOperation::ProfilePosition,
    ModeOfOperation::ProfileVelocity,
    ModeOfOperation::ProfileTorque,
    ModeOfOperation::Homing,
    ModeOfOperation::InterpolatedPosition,
    ModeOfOperation::CyclicSynchronousPosition,
    ModeOfOperation::CyclicSynchronousVelocity,
    ModeOfOperation::CyclicSynchronousTorque,
];

/// Values of 0x607D that are no limits.
pub(super) const WHOLE_RANGE: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);

/// Capacity of a PDO, in objects.
const MAPPING_CAPACITY: u8 = 16;

/// Least number of PDOs of a direction, so that a MainDevice finds spare ones to map into.
const PDO_COUNT: u16 = 4;

/// Dictionary of the drive in `description`.
///
/// # Errors
/// [`DescriptionError::MappedLength`], [`DescriptionError::PdoIndex`].
pub(super) fn dictionary(description: &ServoDescription) -> Result<ObjectDictionary, DescriptionError> {
    let mut dictionary = common::dictionary(&description.device);
    dictionary.add(common::error_history(ERROR_HISTORY_LENGTH));
    for axis in 0..description.axes {
        add_axis(&mut dictionary, description, axis);
    }
    let mapping = with_spare_pdos(&description.mapping, description.axes);
    add_mapping(&mut dictionary, &mapping, MAPPING_CAPACITY)?;
    Ok(dictionary)
}

/// Adds the objects of an axis, which is counted from 0.
fn add_axis(dictionary: &mut ObjectDictionary, description: &ServoDescription, axis: u8) {
    let counts = f64::from(description.encoder_counts);
    let rated_torque = (description.rated_torque * 1000.0).round() as i64;
    let maximum_torque =
        (description.plant.torque_limit / description.rated_torque * 1000.0).round() as i64;
    let deceleration = ((DECELERATION / TAU * counts) as i64).clamp(1, i64::from(u32::MAX));
    let window = (counts * FOLLOWING_ERROR_REVOLUTIONS).max(1.0) as i64;

    let speed = |radians: f64| ((radians / TAU * counts) as i64).clamp(1, i64::from(u32::MAX));
    let position_window = (counts * POSITION_WINDOW_REVOLUTIONS).max(1.0) as i64;
    let velocity_window = speed(VELOCITY_WINDOW_RADIANS).min(i64::from(u16::MAX));

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
        (SHUTDOWN_OPTION_CODE, "Shutdown option code", DataType::I16, READ_WRITE, 0, DISABLES.into()),
        // The standard's default is 1; this drive has always coasted.
        (
            DISABLE_OPERATION_OPTION_CODE,
            "Disable operation option code",
            DataType::I16,
            READ_WRITE,
            0,
            DISABLES.into(),
        ),
        (HALT_OPTION_CODE, "Halt option code", DataType::I16, READ_WRITE, 1, HALTS.into()),
        (
            FAULT_REACTION_OPTION_CODE,
            "Fault reaction option code",
            DataType::I16,
            READ_WRITE,
            2,
            FAULT_REACTIONS.into(),
        ),
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
        (POSITION_WINDOW, "Position window", DataType::U32, READ_WRITE, position_window, any.clone()),
        (POSITION_WINDOW_TIME, "Position window time", DataType::U16, READ_WRITE, 2, any.clone()),
        (VELOCITY_WINDOW, "Velocity window", DataType::U16, READ_WRITE, velocity_window, any.clone()),
        (VELOCITY_WINDOW_TIME, "Velocity window time", DataType::U16, READ_WRITE, 2, any.clone()),
        (VELOCITY_THRESHOLD, "Velocity threshold", DataType::U16, READ_WRITE, velocity_window, any.clone()),
        (VELOCITY_THRESHOLD_TIME, "Velocity threshold time", DataType::U16, READ_WRITE, 2, any.clone()),
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
        (
            MAXIMUM_PROFILE_VELOCITY,
            "Max profile velocity",
            DataType::U32,
            READ_WRITE,
            i64::from(u32::MAX),
            any.clone(),
        ),
        (PROFILE_VELOCITY, "Profile velocity", DataType::U32, rx, speed(SWITCH_SPEED), any.clone()),
        (END_VELOCITY, "End velocity", DataType::U32, rx, 0, any.clone()),
        (PROFILE_ACCELERATION, "Profile acceleration", DataType::U32, rx, deceleration, AT_LEAST_1),
        (TORQUE_SLOPE, "Torque slope", DataType::U32, rx, TORQUE_SLOPE_PER_MILLE, AT_LEAST_1),
        (PROFILE_DECELERATION, "Profile deceleration", DataType::U32, rx, deceleration, AT_LEAST_1),
        (
            QUICK_STOP_DECELERATION,
            "Quick stop deceleration",
            DataType::U32,
            rx,
            2 * deceleration,
            AT_LEAST_1,
        ),
        (TOUCH_PROBE_FUNCTION, "Touch probe function", DataType::U16, rx, 0, any.clone()),
        (TOUCH_PROBE_STATUS, "Touch probe status", DataType::U16, tx, 0, any.clone()),
        (TOUCH_PROBE_POSITION, "Touch probe 1 positive edge", DataType::I32, tx, 0, any.clone()),
        (TOUCH_PROBE_POSITION + 1, "Touch probe 1 negative edge", DataType::I32, tx, 0, any.clone()),
        (TOUCH_PROBE_POSITION + 2, "Touch probe 2 positive edge", DataType::I32, tx, 0, any.clone()),
        (TOUCH_PROBE_POSITION + 3, "Touch probe 2 negative edge", DataType::I32, tx, 0, any.clone()),
        (VELOCITY_OFFSET, "Velocity offset", DataType::I32, rx, 0, any.clone()),
        (TORQUE_OFFSET, "Torque offset", DataType::I16, rx, 0, any.clone()),
        (FOLLOWING_ERROR_ACTUAL_VALUE, "Following error actual value", DataType::I32, tx, 0, any.clone()),
        (
            INTERPOLATION_SUB_MODE,
            "Interpolation sub mode select",
            DataType::I16,
            READ_WRITE,
            0,
            LINEAR.into(),
        ),
        (DIGITAL_INPUTS, "Digital inputs", DataType::U32, tx, 0, any.clone()),
        (TARGET_VELOCITY, "Target velocity", DataType::I32, rx, 0, any.clone()),
        (
            SUPPORTED_DRIVE_MODES,
            "Supported drive modes",
            DataType::U32,
            AccessRights::READ,
            supported,
            any.clone(),
        ),
        (
            SI_UNIT_POSITION + 1,
            "SI unit velocity",
            DataType::U32,
            AccessRights::READ,
            0x00B5_0300,
            any.clone(),
        ),
        (SI_UNIT_POSITION + 2, "SI unit acceleration", DataType::U32, AccessRights::READ, 0x00B5_5700, any),
    ] {
        let value = value.min(i64::from(u32::MAX));
        let entry = Entry::new(0, name, data_type, access).with_allowed(allowed).with_value(value);
        dictionary.add(Object::variable(of_axis(index, axis), entry));
    }
    let set_point = Entry::new(1, "Interpolation data record", DataType::I32, rx);
    let record = of_axis(INTERPOLATION_DATA_RECORD, axis);
    dictionary.add(Object::record(record, "Interpolation data record", 0, vec![set_point]));
    let encoder_counts = i64::from(description.encoder_counts);
    for (index, name, access, [first, second]) in [
        (
            POSITION_ENCODER_RESOLUTION,
            "Position encoder resolution",
            AccessRights::READ,
            [("Encoder increments", encoder_counts), ("Motor revolutions", 1)],
        ),
        (
            GEAR_RATIO,
            "Gear ratio",
            READ_WRITE,
            [("Motor shaft revolutions", 1), ("Driving shaft revolutions", 1)],
        ),
        (
            FEED_CONSTANT,
            "Feed constant",
            READ_WRITE,
            [("Feed", encoder_counts), ("Driving shaft revolutions", 1)],
        ),
    ] {
        let entry = |sub_index, (name, value)| {
            Entry::new(sub_index, name, DataType::U32, access).with_allowed(AT_LEAST_1).with_value(value)
        };
        dictionary.add(Object::array(of_axis(index, axis), name, vec![entry(1, first), entry(2, second)]));
    }
    let limit =
        |sub_index, name, value| Entry::new(sub_index, name, DataType::I32, READ_WRITE).with_value(value);
    let limits =
        vec![limit(1, "Min position limit", WHOLE_RANGE.0), limit(2, "Max position limit", WHOLE_RANGE.1)];
    dictionary.add(Object::array(
        of_axis(SOFTWARE_POSITION_LIMIT, axis),
        "Software position limit",
        limits,
    ));
    dictionary.add(interpolation_time_period(axis));
    let output = |sub_index, name| Entry::new(sub_index, name, DataType::U32, rx);
    let outputs = vec![output(1, "Physical outputs"), output(2, "Bit mask")];
    dictionary.add(Object::record(of_axis(DIGITAL_OUTPUTS, axis), "Digital outputs", 0, outputs));
    dictionary.add(homing_speeds(axis, speed));
    dictionary.add(simulation(axis));
}

/// Default deceleration, in rad/s^2; a quick stop takes twice as much.
const DECELERATION: f64 = 500.0;

/// Default homing speeds, in rad/s.
const SWITCH_SPEED: f64 = 10.0;
const ZERO_SPEED: f64 = 1.0;

/// Default window around a target position, in revolutions, and around a target velocity, in rad/s.
const POSITION_WINDOW_REVOLUTIONS: f64 = 0.001;
const VELOCITY_WINDOW_RADIANS: f64 = 0.05;

/// Default torque slope, in thousandths of the rated torque per second.
const TORQUE_SLOPE_PER_MILLE: i64 = 10_000;

/// Default following error window, in revolutions.
const FOLLOWING_ERROR_REVOLUTIONS: f64 = 0.05;

/// Quick stop option codes: the function disabled (0), slow-down ramp, quick-stop ramp, current
/// limit, voltage limit, each to end in Switch on disabled (1 to 4) or to stay in Quick stop active
/// (5 to 8).
const QUICK_STOPS: OneOf = OneOf(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);

/// Shutdown and Disable operation: the function disabled, or after the slow-down ramp.
const DISABLES: OneOf = OneOf(&[0, 1]);

/// Halt: slow-down ramp, quick-stop ramp, current limit, voltage limit, all staying in Operation
/// enabled.
const HALTS: OneOf = OneOf(&[1, 2, 3, 4]);

/// Fault reaction: the function disabled, or stopped as by [`HALTS`].
const FAULT_REACTIONS: OneOf = OneOf(&[0, 1, 2, 3, 4]);

/// The sub mode of interpolation: linear.
const LINEAR: OneOf = OneOf(&[0]);

const AT_LEAST_1: Allowed = Allowed::Range(1, u32::MAX as i64);

struct OneOf(&'static [i64]);

impl From<OneOf> for Allowed {
    fn from(values: OneOf) -> Self {
        Self::OneOf(values.0.to_vec())
    }
}

/// Interpolation time period: value and power of ten in seconds (CiA 402, 0x60C2); 1 ms by default.
fn interpolation_time_period(axis: u8) -> Object {
    let entries = vec![
        Entry::new(1, "Interpolation time period value", DataType::U8, READ_WRITE)
            .with_allowed(Allowed::Range(1, 255))
            .with_value(1),
        Entry::new(2, "Interpolation time index", DataType::I8, READ_WRITE)
            .with_allowed(Allowed::Range(-6, 0))
            .with_value(-3),
    ];
    Object::record(of_axis(INTERPOLATION_TIME_PERIOD, axis), "Interpolation time period", 0, entries)
}

/// Default homing speeds: slow enough for any axis.
fn homing_speeds(axis: u8, speed: impl Fn(f64) -> i64) -> Object {
    let entry = |sub_index, name, value| {
        Entry::new(sub_index, name, DataType::U32, READ_WRITE).with_allowed(AT_LEAST_1).with_value(value)
    };
    let entries = vec![
        entry(1, "Speed during search for switch", speed(SWITCH_SPEED)),
        entry(2, "Speed during search for zero", speed(ZERO_SPEED)),
    ];
    Object::record(of_axis(HOMING_SPEEDS, axis), "Homing speeds", 0, entries)
}

fn simulation(axis: u8) -> Object {
    let entries = vec![
        Entry::new(1, "Load torque", DataType::I32, READ_WRITE),
        Entry::new(2, "Raise fault", DataType::U16, READ_WRITE),
        Entry::new(3, "Main power", DataType::Boolean, READ_WRITE).with_value(1),
    ];
    Object::record(SIMULATION + u16::from(axis), "Simulation", 0, entries)
}

/// `mapping` with spare, unassigned PDOs after its own, for each of `axes`.
fn with_spare_pdos(mapping: &PdoMapping, axes: u8) -> PdoMapping {
    let spare = |pdos: &[Pdo], first: u16, name: &str| {
        let mut pdos = pdos.to_vec();
        for index in
            (0..axes).flat_map(|axis| (0..PDO_COUNT).map(move |number| pdo_of(first, axis) + number))
        {
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

/// First PDO of an axis: 0x10 after the previous axis, as multi-axis drives number them.
const fn pdo_of(first: u16, axis: u8) -> u16 {
    first + 0x10 * axis as u16
}

/// Default mapping of a drive with one axis, 12 bytes each way: controlword, target position,
/// target velocity, target torque; statusword and the actual values of position, velocity and
/// torque.
#[must_use]
pub fn default_mapping() -> PdoMapping {
    default_mapping_of(1)
}

/// Default mapping of a drive with `axes` axes: for each a PDO in each direction, 0x10 after the
/// previous axis.
#[must_use]
pub fn default_mapping_of(axes: u8) -> PdoMapping {
    let pdo = |first, sync_manager, axis: u8, name: &str, entries: [(u16, DataType, &str); 4]| Pdo {
        index: pdo_of(first, axis),
        sync_manager: Some(sync_manager),
        fixed: false,
        name: format!("{name} {}", pdo_of(1, axis)),
        entries: entries
            .map(|(index, data_type, name)| match axis {
                0 => entry(index, 0, data_type, name),
                _ => entry(of_axis(index, axis), 0, data_type, &format!("{name} {}", axis + 1)),
            })
            .to_vec(),
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
        outputs: (0..axes).map(|axis| pdo(MAPPING_OUTPUTS, 2, axis, "RxPDO", outputs)).collect(),
        inputs: (0..axes).map(|axis| pdo(MAPPING_INPUTS, 3, axis, "TxPDO", inputs)).collect(),
    }
}

/// Errors that 0x1003 keeps.
pub(super) const ERROR_HISTORY_LENGTH: usize = 8;
