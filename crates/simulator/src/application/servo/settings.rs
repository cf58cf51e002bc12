//! Commands and settings in the drive's units: rad, N m, seconds.

use core::f64::consts::TAU;
use core::time::Duration;

use ethercat::cia402::{Controlword, ModeOfOperation};

use super::entries::Entries;
use super::homing::HomingSettings;
use super::objects::MODES;
use super::own_limits::OwnLimits;
use super::profile::Bounds;
use crate::coe::{EntryId, ObjectDictionary};

/// Position units per radian of the motor shaft, by gear ratio and feed constant (IEC 61800-7-201,
/// factor group): the feed of a motor revolution is the feed constant over the gear ratio.
pub(super) fn units_per_radian(dictionary: &ObjectDictionary, entries: &Entries) -> f64 {
    let get = |entry: EntryId| dictionary.get(entry) as f64;
    let feed = get(entries.feed) * get(entries.gear_shaft_revolutions);
    let revolutions = get(entries.feed_shaft_revolutions) * get(entries.gear_motor_revolutions);
    feed / revolutions / TAU
}

/// Conversion from the dictionary's units to the drive's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) units_per_radian: f64,
    /// Resolution of the encoder, in counts per radian of the motor shaft.
    pub(super) encoder_per_radian: f64,
    /// Torque of 1000 per mille, in N m.
    pub(super) rated_torque: f64,
    /// Torque of the motor, in N m.
    pub(super) torque_limit: f64,
    /// Inertia at the motor shaft, in kg m^2.
    pub(super) inertia: f64,
}

/// Settings of the dictionary, read where they have changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settings {
    pub(super) controlword: Controlword,
    pub(super) following_error_window: Option<f64>,
    pub(super) following_error_time_out: Duration,
    pub(super) torque_limit: f64,
    /// Decelerations of the stops, in rad/s^2; `None` where the axis coasts instead.
    pub(super) halt: Option<f64>,
    pub(super) shutdown: Option<f64>,
    pub(super) disable_operation: Option<f64>,
    pub(super) quick_stop: Option<f64>,
    pub(super) fault_reaction: Option<f64>,
    pub(super) quick_stop_holds: bool,
    pub(super) own_limits: OwnLimits,
    /// Position units.
    pub(super) profile: Bounds,
    pub(super) end_velocity: f64,
    pub(super) maximum_velocity: f64,
    pub(super) profile_target_velocity: f64,
    /// N m/s.
    pub(super) torque_slope: f64,
    /// Distance from the target within which it is reached, and for how long: 0x6067, 0x6068.
    pub(super) position_window: f64,
    pub(super) position_window_time: Duration,
    /// The same of velocities, in position units a second: 0x606D, 0x606E; of speed zero: 0x606F,
    /// 0x6070.
    pub(super) velocity_window: f64,
    pub(super) velocity_window_time: Duration,
    pub(super) velocity_threshold: f64,
    pub(super) velocity_threshold_time: Duration,
    /// Bytes of 0x60B8, of probe 1 and 2.
    pub(super) touch_probes: [u8; 2],
    /// Digital outputs that are driven.
    pub(super) outputs: u32,
    pub(super) set_point_period: Duration,
    pub(super) target_velocity: f64,
    pub(super) target_torque: f64,
    pub(super) velocity_offset: f64,
    pub(super) torque_offset: f64,
    pub(super) load_torque: f64,
    pub(super) power: bool,
    /// Mode of operation; `None` for an unsupported mode.
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
        let angle = |entry| get(entry) as f64 / scale.units_per_radian;
        let torque = |entry| get(entry) as f64 / 1000.0 * scale.rated_torque;
        let slow = angle(entries.profile_deceleration);
        let quick = angle(entries.quick_stop_deceleration);
        let quick_stop_option = get(entries.quick_stop_option);
        let torque_limit = torque(entries.maximum_torque).min(scale.torque_limit);
        let stop = |option: i64| stop(option, slow, quick, torque_limit / scale.inertia);
        let units = |entry| get(entry) as f64;
        let milliseconds = |entry| Duration::from_millis(get(entry) as u64);
        let maximum_velocity = units(entries.maximum_profile_velocity);
        let window = get(entries.following_error_window);
        let exponent = get(entries.interpolation_exponent) as i32;
        let interpolation = get(entries.interpolation_period) as f64 * 10_f64.powi(exponent);
        let mut settings = Self {
            controlword: Controlword(get(entries.controlword) as u16),
            // All bits set switch the supervision off (CiA 402, 0x6065).
            following_error_window: (window != i64::from(u32::MAX)).then_some(window as f64),
            following_error_time_out: milliseconds(entries.following_error_time_out),
            torque_limit,
            halt: stop(get(entries.halt_option)),
            shutdown: stop(get(entries.shutdown_option)),
            disable_operation: stop(get(entries.disable_operation_option)),
            quick_stop: stop(quick_stop_option),
            fault_reaction: stop(get(entries.fault_reaction_option)),
            quick_stop_holds: quick_stop_option >= 5,
            own_limits: OwnLimits::of(
                (get(entries.software_limits[0]), get(entries.software_limits[1])),
                get(entries.maximum_profile_velocity),
                units(entries.quick_stop_deceleration),
            ),
            profile: Bounds {
                velocity: units(entries.profile_velocity).min(maximum_velocity),
                acceleration: units(entries.profile_acceleration),
                deceleration: units(entries.profile_deceleration),
            },
            end_velocity: units(entries.end_velocity),
            maximum_velocity,
            torque_slope: torque(entries.torque_slope),
            position_window: units(entries.position_window),
            position_window_time: milliseconds(entries.position_window_time),
            velocity_window: units(entries.velocity_window),
            velocity_window_time: milliseconds(entries.velocity_window_time),
            velocity_threshold: units(entries.velocity_threshold),
            velocity_threshold_time: milliseconds(entries.velocity_threshold_time),
            touch_probes: (get(entries.touch_probe_function) as u16).to_le_bytes(),
            outputs: (get(entries.digital_outputs) & get(entries.digital_output_mask)) as u32,
            set_point_period: sync0_cycle.unwrap_or(Duration::from_secs_f64(interpolation)),
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
            ..Self::default()
        };
        settings.read_set_points(dictionary, entries, scale);
        settings
    }

    /// Reads only the set-points, which change every cycle. Position set-points are read when they
    /// are sampled.
    pub(super) fn read_set_points(
        &mut self,
        dictionary: &ObjectDictionary,
        entries: &Entries,
        scale: &Scale,
    ) {
        let velocity = |entry| dictionary.get(entry) as f64 / scale.units_per_radian;
        let torque = |entry| dictionary.get(entry) as f64 / 1000.0 * scale.rated_torque;
        let limit = self.maximum_velocity;
        self.profile_target_velocity =
            (dictionary.get(entries.target_velocity) as f64).clamp(-limit, limit);
        self.target_velocity = velocity(entries.target_velocity);
        self.target_torque = torque(entries.target_torque);
        self.velocity_offset = velocity(entries.velocity_offset);
        self.torque_offset = torque(entries.torque_offset);
    }
}

/// Deceleration of a stop by its option code; `None` for 0, the drive function disabled. Quick-stop
/// codes 5 to 8 also hold the axis, and otherwise equal 1 to 4. The current limit and the voltage
/// limit are one here: the torque of the motor.
fn stop(option: i64, slow: f64, quick: f64, hardest: f64) -> Option<f64> {
    match option {
        0 => None,
        1 | 5 => Some(slow),
        2 | 6 => Some(quick),
        _ => Some(hardest),
    }
}
