//! Handles of an axis's objects.

use ethercat::cia402::object::*;
use ethercat::sdo_abort::AbortCode;

use super::objects::{ERROR_HISTORY_LENGTH, POSITION_ACTUAL_INTERNAL_VALUE, SIMULATION};
use crate::coe::{EntryId, ObjectDictionary, common};

/// Handles of the entries that an axis uses; all axes share 0x1001 and 0x1003.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    pub(super) error_register: EntryId,
    pub(super) error_code: EntryId,
    pub(super) error_count: EntryId,
    /// Errors of 0x1003, newest first.
    pub(super) errors: [EntryId; ERROR_HISTORY_LENGTH],
    pub(super) controlword: EntryId,
    pub(super) statusword: EntryId,
    pub(super) quick_stop_option: EntryId,
    pub(super) shutdown_option: EntryId,
    pub(super) disable_operation_option: EntryId,
    pub(super) halt_option: EntryId,
    pub(super) fault_reaction_option: EntryId,
    pub(super) mode: EntryId,
    pub(super) mode_display: EntryId,
    pub(super) position: EntryId,
    pub(super) internal_position: EntryId,
    pub(super) following_error_window: EntryId,
    pub(super) following_error_time_out: EntryId,
    pub(super) following_error: EntryId,
    pub(super) position_window: EntryId,
    pub(super) position_window_time: EntryId,
    pub(super) velocity: EntryId,
    pub(super) velocity_window: EntryId,
    pub(super) velocity_window_time: EntryId,
    pub(super) velocity_threshold: EntryId,
    pub(super) velocity_threshold_time: EntryId,
    pub(super) target_torque: EntryId,
    pub(super) maximum_torque: EntryId,
    pub(super) torque_demand: EntryId,
    pub(super) torque: EntryId,
    pub(super) target_position: EntryId,
    /// Lowest and highest position.
    pub(super) software_limits: [EntryId; 2],
    pub(super) maximum_profile_velocity: EntryId,
    pub(super) profile_velocity: EntryId,
    pub(super) end_velocity: EntryId,
    pub(super) profile_acceleration: EntryId,
    pub(super) profile_deceleration: EntryId,
    pub(super) quick_stop_deceleration: EntryId,
    pub(super) torque_slope: EntryId,
    pub(super) velocity_offset: EntryId,
    pub(super) torque_offset: EntryId,
    pub(super) interpolation_set_point: EntryId,
    pub(super) interpolation_period: EntryId,
    pub(super) interpolation_exponent: EntryId,
    pub(super) target_velocity: EntryId,
    pub(super) digital_inputs: EntryId,
    pub(super) digital_outputs: EntryId,
    pub(super) digital_output_mask: EntryId,
    pub(super) gear_motor_revolutions: EntryId,
    pub(super) gear_shaft_revolutions: EntryId,
    pub(super) feed: EntryId,
    pub(super) feed_shaft_revolutions: EntryId,
    pub(super) touch_probe_function: EntryId,
    pub(super) touch_probe_status: EntryId,
    /// Positions at the positive and the negative edge of probe 1, then of probe 2.
    pub(super) touch_probe_positions: [EntryId; 4],
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
    pub(super) fn find(dictionary: &ObjectDictionary, axis: u8) -> Result<Self, AbortCode> {
        let part = |index, sub_index| dictionary.find(of_axis(index, axis), sub_index);
        let find = |index| part(index, 0);
        let simulation = |sub_index| dictionary.find(SIMULATION + u16::from(axis), sub_index);
        Ok(Self {
            error_register: dictionary.find(common::ERROR_REGISTER, 0)?,
            error_code: find(ERROR_CODE)?,
            error_count: dictionary.find(common::ERROR_HISTORY, 0)?,
            errors: errors(dictionary)?,
            controlword: find(CONTROLWORD)?,
            statusword: find(STATUSWORD)?,
            quick_stop_option: find(QUICK_STOP_OPTION_CODE)?,
            shutdown_option: find(SHUTDOWN_OPTION_CODE)?,
            disable_operation_option: find(DISABLE_OPERATION_OPTION_CODE)?,
            fault_reaction_option: find(FAULT_REACTION_OPTION_CODE)?,
            halt_option: find(HALT_OPTION_CODE)?,
            mode: find(MODES_OF_OPERATION)?,
            mode_display: find(MODES_OF_OPERATION_DISPLAY)?,
            position: find(POSITION_ACTUAL_VALUE)?,
            internal_position: find(POSITION_ACTUAL_INTERNAL_VALUE)?,
            following_error_window: find(FOLLOWING_ERROR_WINDOW)?,
            following_error_time_out: find(FOLLOWING_ERROR_TIME_OUT)?,
            following_error: find(FOLLOWING_ERROR_ACTUAL_VALUE)?,
            position_window: find(POSITION_WINDOW)?,
            position_window_time: find(POSITION_WINDOW_TIME)?,
            velocity_window: find(VELOCITY_WINDOW)?,
            velocity_window_time: find(VELOCITY_WINDOW_TIME)?,
            velocity_threshold: find(VELOCITY_THRESHOLD)?,
            velocity_threshold_time: find(VELOCITY_THRESHOLD_TIME)?,
            velocity: find(VELOCITY_ACTUAL_VALUE)?,
            target_torque: find(TARGET_TORQUE)?,
            maximum_torque: find(MAXIMUM_TORQUE)?,
            torque_demand: find(TORQUE_DEMAND)?,
            torque: find(TORQUE_ACTUAL_VALUE)?,
            target_position: find(TARGET_POSITION)?,
            software_limits: [part(SOFTWARE_POSITION_LIMIT, 1)?, part(SOFTWARE_POSITION_LIMIT, 2)?],
            maximum_profile_velocity: find(MAXIMUM_PROFILE_VELOCITY)?,
            profile_velocity: find(PROFILE_VELOCITY)?,
            end_velocity: find(END_VELOCITY)?,
            profile_acceleration: find(PROFILE_ACCELERATION)?,
            profile_deceleration: find(PROFILE_DECELERATION)?,
            quick_stop_deceleration: find(QUICK_STOP_DECELERATION)?,
            torque_slope: find(TORQUE_SLOPE)?,
            velocity_offset: find(VELOCITY_OFFSET)?,
            torque_offset: find(TORQUE_OFFSET)?,
            interpolation_set_point: part(INTERPOLATION_DATA_RECORD, 1)?,
            interpolation_period: part(INTERPOLATION_TIME_PERIOD, 1)?,
            interpolation_exponent: part(INTERPOLATION_TIME_PERIOD, 2)?,
            target_velocity: find(TARGET_VELOCITY)?,
            digital_inputs: find(DIGITAL_INPUTS)?,
            digital_outputs: part(DIGITAL_OUTPUTS, 1)?,
            digital_output_mask: part(DIGITAL_OUTPUTS, 2)?,
            gear_motor_revolutions: part(GEAR_RATIO, 1)?,
            gear_shaft_revolutions: part(GEAR_RATIO, 2)?,
            feed: part(FEED_CONSTANT, 1)?,
            feed_shaft_revolutions: part(FEED_CONSTANT, 2)?,
            touch_probe_function: find(TOUCH_PROBE_FUNCTION)?,
            touch_probe_status: find(TOUCH_PROBE_STATUS)?,
            touch_probe_positions: [
                find(TOUCH_PROBE_POSITION)?,
                find(TOUCH_PROBE_POSITION + 1)?,
                find(TOUCH_PROBE_POSITION + 2)?,
                find(TOUCH_PROBE_POSITION + 3)?,
            ],
            home_offset: find(HOME_OFFSET)?,
            homing_method: find(HOMING_METHOD)?,
            switch_speed: part(HOMING_SPEEDS, 1)?,
            zero_speed: part(HOMING_SPEEDS, 2)?,
            homing_acceleration: find(HOMING_ACCELERATION)?,
            load_torque: simulation(1)?,
            raise_fault: simulation(2)?,
            power: simulation(3)?,
        })
    }

    /// Objects that change every cycle. [`super::settings::Settings::read_set_points`] or the
    /// sampling of the position reads them.
    pub(super) fn set_points(&self) -> [EntryId; 6] {
        [
            self.target_position,
            self.interpolation_set_point,
            self.target_velocity,
            self.target_torque,
            self.velocity_offset,
            self.torque_offset,
        ]
    }
}

fn errors(dictionary: &ObjectDictionary) -> Result<[EntryId; ERROR_HISTORY_LENGTH], AbortCode> {
    let mut errors = [dictionary.find(common::ERROR_HISTORY, 1)?; ERROR_HISTORY_LENGTH];
    for (sub_index, error) in (1..).zip(&mut errors) {
        *error = dictionary.find(common::ERROR_HISTORY, sub_index)?;
    }
    Ok(errors)
}
