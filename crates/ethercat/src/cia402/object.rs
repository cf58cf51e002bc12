//! Indices of the objects of CiA 402 (IEC 61800-7-201, object dictionary). All are at sub-index 0
//! unless said.
//!
//! A device may have up to [`MOST_AXES`] axes. The objects of each axis are 0x800 above the
//! previous axis's ([`of_axis`]).

/// Error code of the last fault, UNSIGNED16.
pub const ERROR_CODE: u16 = 0x603F;
/// Controlword, UNSIGNED16.
pub const CONTROLWORD: u16 = 0x6040;
/// Statusword, UNSIGNED16.
pub const STATUSWORD: u16 = 0x6041;
/// Quick stop option code, INTEGER16: action in Quick stop active.
pub const QUICK_STOP_OPTION_CODE: u16 = 0x605A;
/// Shutdown option code, INTEGER16: action in transition 8.
pub const SHUTDOWN_OPTION_CODE: u16 = 0x605B;
/// Disable operation option code, INTEGER16: action in transition 5.
pub const DISABLE_OPERATION_OPTION_CODE: u16 = 0x605C;
/// Halt option code, INTEGER16: action while the halt bit is set.
pub const HALT_OPTION_CODE: u16 = 0x605D;
/// Fault reaction option code, INTEGER16: action in Fault reaction active.
pub const FAULT_REACTION_OPTION_CODE: u16 = 0x605E;
/// Modes of operation, INTEGER8: the requested mode.
pub const MODES_OF_OPERATION: u16 = 0x6060;
/// Modes of operation display, INTEGER8: the mode in effect.
pub const MODES_OF_OPERATION_DISPLAY: u16 = 0x6061;
/// Position actual value, INTEGER32, counts.
pub const POSITION_ACTUAL_VALUE: u16 = 0x6064;
/// Following error window, UNSIGNED32, counts.
pub const FOLLOWING_ERROR_WINDOW: u16 = 0x6065;
/// Following error time out, UNSIGNED16, milliseconds.
pub const FOLLOWING_ERROR_TIME_OUT: u16 = 0x6066;
/// Position window around the target, UNSIGNED32, counts.
pub const POSITION_WINDOW: u16 = 0x6067;
/// Position window time, UNSIGNED16, milliseconds.
pub const POSITION_WINDOW_TIME: u16 = 0x6068;
/// Velocity actual value, INTEGER32, velocity units (commonly counts per second).
pub const VELOCITY_ACTUAL_VALUE: u16 = 0x606C;
/// Velocity window around the target, UNSIGNED16, velocity units.
pub const VELOCITY_WINDOW: u16 = 0x606D;
/// Velocity window time, UNSIGNED16, milliseconds.
pub const VELOCITY_WINDOW_TIME: u16 = 0x606E;
/// Velocity threshold, UNSIGNED16, velocity units: the speed is zero up to it.
pub const VELOCITY_THRESHOLD: u16 = 0x606F;
/// Velocity threshold time, UNSIGNED16, milliseconds.
pub const VELOCITY_THRESHOLD_TIME: u16 = 0x6070;
/// Target torque, INTEGER16, 0.1 % of the rated torque.
pub const TARGET_TORQUE: u16 = 0x6071;
/// Maximum torque, UNSIGNED16, 0.1 % of the rated torque.
pub const MAXIMUM_TORQUE: u16 = 0x6072;
/// Maximum current, UNSIGNED16, 0.1 % of the rated current.
pub const MAXIMUM_CURRENT: u16 = 0x6073;
/// Torque demand, INTEGER16, 0.1 % of the rated torque.
pub const TORQUE_DEMAND: u16 = 0x6074;
/// Motor rated current, UNSIGNED32, milliamperes.
pub const MOTOR_RATED_CURRENT: u16 = 0x6075;
/// Motor rated torque, UNSIGNED32, thousandths of a newton metre.
pub const MOTOR_RATED_TORQUE: u16 = 0x6076;
/// Torque actual value, INTEGER16, 0.1 % of the rated torque.
pub const TORQUE_ACTUAL_VALUE: u16 = 0x6077;
/// Target position, INTEGER32, counts.
pub const TARGET_POSITION: u16 = 0x607A;
/// Home offset, INTEGER32, counts.
pub const HOME_OFFSET: u16 = 0x607C;
/// Position range limit, INTEGER32, counts: where positions wrap; sub-index 1 minimum, 2 maximum.
pub const POSITION_RANGE_LIMIT: u16 = 0x607B;
/// Software position limit, INTEGER32, counts; sub-index 1 minimum, 2 maximum.
pub const SOFTWARE_POSITION_LIMIT: u16 = 0x607D;
/// Polarity, UNSIGNED8: bit 7 turns positions, bit 6 velocities.
pub const POLARITY: u16 = 0x607E;
/// Maximum profile velocity, UNSIGNED32, velocity units.
pub const MAXIMUM_PROFILE_VELOCITY: u16 = 0x607F;
/// Profile velocity, UNSIGNED32, velocity units.
pub const PROFILE_VELOCITY: u16 = 0x6081;
/// End velocity of a profile, UNSIGNED32, velocity units: the speed at the target position.
pub const END_VELOCITY: u16 = 0x6082;
/// Profile acceleration, UNSIGNED32, acceleration units.
pub const PROFILE_ACCELERATION: u16 = 0x6083;
/// Profile deceleration, UNSIGNED32, acceleration units.
pub const PROFILE_DECELERATION: u16 = 0x6084;
/// Quick stop deceleration, UNSIGNED32, acceleration units.
pub const QUICK_STOP_DECELERATION: u16 = 0x6085;
/// Torque slope, UNSIGNED32, 0.1 % of the rated torque per second.
pub const TORQUE_SLOPE: u16 = 0x6087;
/// Position encoder resolution; sub-index 1 encoder increments, 2 motor revolutions, UNSIGNED32.
pub const POSITION_ENCODER_RESOLUTION: u16 = 0x608F;
/// Gear ratio; sub-index 1 motor shaft revolutions, 2 driving shaft revolutions, UNSIGNED32.
pub const GEAR_RATIO: u16 = 0x6091;
/// Feed constant; sub-index 1 feed in position units, 2 driving shaft revolutions, UNSIGNED32.
pub const FEED_CONSTANT: u16 = 0x6092;
/// Homing method, INTEGER8.
pub const HOMING_METHOD: u16 = 0x6098;
/// Homing speeds, UNSIGNED32; sub-index 1 towards the switch, 2 towards zero.
pub const HOMING_SPEEDS: u16 = 0x6099;
/// Homing acceleration, UNSIGNED32, acceleration units.
pub const HOMING_ACCELERATION: u16 = 0x609A;
/// SI unit of positions, UNSIGNED32; the units of velocities, accelerations and jerks follow, up to
/// 0x60AB.
pub const SI_UNIT_POSITION: u16 = 0x60A8;
/// Position offset added to the target position in CSP, INTEGER32, counts.
pub const POSITION_OFFSET: u16 = 0x60B0;
/// Velocity offset (feed-forward), INTEGER32, velocity units.
pub const VELOCITY_OFFSET: u16 = 0x60B1;
/// Torque offset (feed-forward), INTEGER16, 0.1 % of the rated torque.
pub const TORQUE_OFFSET: u16 = 0x60B2;
/// Touch probe function, UNSIGNED16: events of probes 1 (low byte) and 2 (high byte).
pub const TOUCH_PROBE_FUNCTION: u16 = 0x60B8;
/// Touch probe status, UNSIGNED16: which probes wait, and which positions are stored.
pub const TOUCH_PROBE_STATUS: u16 = 0x60B9;
/// Position at the positive edge of touch probe 1, INTEGER32, counts; the negative edge and probe 2
/// follow, up to 0x60BD.
pub const TOUCH_PROBE_POSITION: u16 = 0x60BA;
/// Interpolation sub mode select, INTEGER16: 0 is linear.
pub const INTERPOLATION_SUB_MODE: u16 = 0x60C0;
/// Interpolation data record; sub-index 1 the set-point, INTEGER32, counts.
pub const INTERPOLATION_DATA_RECORD: u16 = 0x60C1;
/// Interpolation time period; sub-index 1 UNSIGNED8 value, 2 INTEGER8 power of ten in seconds.
pub const INTERPOLATION_TIME_PERIOD: u16 = 0x60C2;
/// Positioning option code, UNSIGNED16: from where and which way round profile position goes.
pub const POSITIONING_OPTION_CODE: u16 = 0x60F2;
/// Following error actual value, INTEGER32, counts.
pub const FOLLOWING_ERROR_ACTUAL_VALUE: u16 = 0x60F4;
/// Digital inputs, UNSIGNED32.
pub const DIGITAL_INPUTS: u16 = 0x60FD;
/// Digital outputs; sub-index 1 values, 2 mask, UNSIGNED32.
pub const DIGITAL_OUTPUTS: u16 = 0x60FE;
/// Target velocity, INTEGER32, velocity units (commonly counts per second).
pub const TARGET_VELOCITY: u16 = 0x60FF;
/// Supported drive modes, UNSIGNED32, a bit per mode.
pub const SUPPORTED_DRIVE_MODES: u16 = 0x6502;

/// True of an object that moves the axis or changes how its numbers are read: controlword, mode,
/// targets and offsets, home offset, polarity, scales and units (of torque and current too), and
/// the digital outputs, whose first bit is the brake of the drive. Of any axis of a device.
#[must_use]
pub const fn moves(index: u16) -> bool {
    matches!(
        of_first_axis(index),
        CONTROLWORD
            | MODES_OF_OPERATION
            | TARGET_TORQUE
            | TARGET_POSITION
            | HOME_OFFSET
            | POLARITY
            | MOTOR_RATED_CURRENT
            | MOTOR_RATED_TORQUE
            // Notations and dimensions, resolutions, gear, feed, and the factors of older profiles.
            | 0x6089..=0x6097
            | SI_UNIT_POSITION..=0x60AB
            | POSITION_OFFSET..=TORQUE_OFFSET
            | INTERPOLATION_DATA_RECORD
            | DIGITAL_OUTPUTS
            | TARGET_VELOCITY
    )
}

/// True of an object that bounds how the axis moves and stops: option codes, windows of the
/// following error and the position, greatest torque, current, speed and acceleration, position
/// limits, profiles and their jerk, homing, interpolation, positioning options. Of any axis of a
/// device.
#[must_use]
pub const fn limits(index: u16) -> bool {
    matches!(
        of_first_axis(index),
        QUICK_STOP_OPTION_CODE..=FAULT_REACTION_OPTION_CODE
            | FOLLOWING_ERROR_WINDOW..=POSITION_WINDOW_TIME
            | MAXIMUM_TORQUE
            | MAXIMUM_CURRENT
            | POSITION_RANGE_LIMIT
            | SOFTWARE_POSITION_LIMIT
            | MAXIMUM_PROFILE_VELOCITY..=TORQUE_SLOPE
            | HOMING_METHOD..=HOMING_ACCELERATION
            | 0x60A3
            | 0x60A4
            | INTERPOLATION_SUB_MODE
            | INTERPOLATION_TIME_PERIOD
            | 0x60C5
            | 0x60C6
            | 0x60E0
            | 0x60E1
            | POSITIONING_OPTION_CODE
    )
}

/// Most axes of one device (IEC 61800-7-201, 0x6000 to 0x9FFF).
pub const MOST_AXES: u8 = 8;

/// Distance between the same objects of two axes of a device (ETG.6010, 4.3).
const AXIS_OFFSET: u16 = 0x800;

/// Index of the same object of another axis of the device, which is counted from 0; `index` is that
/// of the first axis.
#[must_use]
pub const fn of_axis(index: u16, axis: u8) -> u16 {
    index.wrapping_add(AXIS_OFFSET.wrapping_mul(axis as u16))
}

/// Axis that an object of the profile belongs to, counted from 0; `None` for an object that is no
/// axis's.
#[must_use]
pub const fn axis_of(index: u16) -> Option<u8> {
    if index < 0x6000 || index > 0x9FFF { None } else { Some(((index - 0x6000) / AXIS_OFFSET) as u8) }
}

/// Index of the same object of the device's first axis.
#[must_use]
pub const fn of_first_axis(index: u16) -> u16 {
    match axis_of(index) {
        Some(axis) => index - AXIS_OFFSET * axis as u16,
        None => index,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_axes_are_0x800_apart() {
        for (axis, index) in
            (0..MOST_AXES).zip([0x6041, 0x6841, 0x7041, 0x7841, 0x8041, 0x8841, 0x9041, 0x9841])
        {
            assert_eq!(of_axis(STATUSWORD, axis), index);
            assert_eq!((axis_of(index), of_first_axis(index)), (Some(axis), STATUSWORD));
            assert!(moves(of_axis(CONTROLWORD, axis)) && limits(of_axis(SOFTWARE_POSITION_LIMIT, axis)));
        }
        for index in [0x1003, 0x5FFF, 0xA000, 0xFFFF] {
            assert_eq!((axis_of(index), of_first_axis(index)), (None, index));
        }
    }
}
