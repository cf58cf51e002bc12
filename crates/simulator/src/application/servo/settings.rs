//! Commands and settings in the drive's units: rad, N m, seconds.

use core::time::Duration;

use ethercat::cia402::{Controlword, ModeOfOperation};

use super::homing::HomingSettings;
use super::objects::{Entries, MODES};
use crate::coe::{EntryId, ObjectDictionary};

/// Conversion from the dictionary's units to the drive's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) counts_per_radian: f64,
    /// Torque of 1000 per mille, in N m.
    pub(super) rated_torque: f64,
    /// Torque of the motor, in N m.
    pub(super) torque_limit: f64,
}

/// Settings of the dictionary, read once a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settings {
    pub(super) controlword: Controlword,
    pub(super) following_error_window: Option<f64>,
    pub(super) following_error_time_out: Duration,
    pub(super) torque_limit: f64,
    pub(super) halt_deceleration: f64,
    pub(super) quick_stop_deceleration: f64,
    pub(super) fault_deceleration: f64,
    pub(super) quick_stop_holds: bool,
    pub(super) set_point_period: Duration,
    pub(super) target_velocity: f64,
    pub(super) target_torque: f64,
    pub(super) velocity_offset: f64,
    pub(super) torque_offset: f64,
    pub(super) load_torque: f64,
    pub(super) power: bool,
    /// Mode of operation; `None` for one that the drive does not support.
    pub(super) mode: Option<ModeOfOperation>,
    pub(super) homing: HomingSettings,
    /// Position of the home, in counts.
    pub(super) home_offset: f64,
    /// Error code of a fault to simulate; 0 for none.
    pub(super) raised_fault: u16,
}

impl Settings {
    /// Reads the settings. `sync0_cycle` is the time from set-point to set-point where the drive is
    /// synchronised.
    pub(super) fn read(
        dictionary: &ObjectDictionary,
        entries: &Entries,
        scale: &Scale,
        sync0_cycle: Option<Duration>,
    ) -> Self {
        let get = |entry: EntryId| dictionary.get(entry);
        let angle = |entry| get(entry) as f64 / scale.counts_per_radian;
        let torque = |entry| get(entry) as f64 / 1000.0 * scale.rated_torque;
        let slow = angle(entries.profile_deceleration);
        let quick = angle(entries.quick_stop_deceleration);
        let quick_stop_option = get(entries.quick_stop_option);
        let window = get(entries.following_error_window);
        let exponent = get(entries.interpolation_exponent) as i32;
        let interpolation = get(entries.interpolation_period) as f64 * 10_f64.powi(exponent);
        Self {
            controlword: Controlword(get(entries.controlword) as u16),
            // All bits set switch the supervision off (CiA 402, 0x6065).
            following_error_window: (window != i64::from(u32::MAX)).then_some(window as f64),
            following_error_time_out: Duration::from_millis(get(entries.following_error_time_out) as u64),
            torque_limit: torque(entries.maximum_torque).min(scale.torque_limit),
            halt_deceleration: if get(entries.halt_option) == 2 { quick } else { slow },
            quick_stop_deceleration: if matches!(quick_stop_option, 1 | 5) { slow } else { quick },
            fault_deceleration: quick,
            quick_stop_holds: quick_stop_option >= 5,
            set_point_period: sync0_cycle.unwrap_or(Duration::from_secs_f64(interpolation)),
            target_velocity: angle(entries.target_velocity),
            target_torque: torque(entries.target_torque),
            velocity_offset: angle(entries.velocity_offset),
            torque_offset: torque(entries.torque_offset),
            load_torque: get(entries.load_torque) as f64 / 1000.0,
            power: get(entries.power) != 0,
            mode: Some(ModeOfOperation::from_number(get(entries.mode) as i8))
                .filter(|mode| MODES.contains(mode)),
            homing: HomingSettings {
                method: get(entries.homing_method) as i8,
                switch_speed: angle(entries.switch_speed),
                zero_speed: angle(entries.zero_speed),
                acceleration: angle(entries.homing_acceleration),
            },
            home_offset: get(entries.home_offset) as f64,
            raised_fault: get(entries.raise_fault) as u16,
        }
    }
}
