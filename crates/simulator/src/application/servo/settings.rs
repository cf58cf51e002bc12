//! Commands and settings in the drive's units: rad, N m, seconds.
//!
//! Limits of the drive itself, behind the MainDevice's: position (0x607D) and speed (0x607F).
//!
//! The drive follows no target beyond them: it moves to the limit and stays. A shaft that is beyond
//! a position limit is not driven farther out. Homing and the stops ignore them.

use core::f64::consts::TAU;
use core::time::Duration;

use ethercat::cia402::{Controlword, ModeOfOperation};

use super::entries::Entries;
use super::homing::HomingSettings;
use super::objects::{MODES, WHOLE_RANGE};
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

/// Limits in position units and seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OwnLimits {
    lowest: f64,
    highest: f64,
    velocity: f64,
    /// Deceleration of a stop before a position limit: the quick stop's.
    deceleration: f64,
}

impl Default for OwnLimits {
    fn default() -> Self {
        Self {
            lowest: f64::NEG_INFINITY,
            highest: f64::INFINITY,
            velocity: f64::INFINITY,
            deceleration: 1.0,
        }
    }
}

impl OwnLimits {
    /// Position limits that are the whole range, or none between which there is a place, are off;
    /// so is the highest speed.
    pub(super) fn of((lowest, highest): (i64, i64), velocity: i64, deceleration: f64) -> Self {
        let is_off = lowest >= highest || (lowest, highest) == WHOLE_RANGE;
        let off = Self::default();
        let position = |value: i64, off: f64| if is_off { off } else { value as f64 };
        Self {
            lowest: position(lowest, off.lowest),
            highest: position(highest, off.highest),
            velocity: if velocity == i64::from(u32::MAX) { off.velocity } else { velocity as f64 },
            deceleration,
        }
    }

    /// Place that is demanded next, `seconds` after the shaft was to be at `before`, on the way to
    /// `target`.
    pub(super) fn place(&self, target: f64, before: f64, seconds: f64) -> f64 {
        let way = self.velocity * seconds;
        let target = target.clamp(self.lowest.min(before), self.highest.max(before));
        target.clamp(before - way, before + way)
    }

    /// A destination within the limits, of a shaft at `here`.
    pub(super) fn destination(&self, target: f64, here: f64) -> f64 {
        target.clamp(self.lowest.min(here), self.highest.max(here))
    }

    /// Velocity from which the shaft still stops before the limit.
    pub(super) fn velocity(&self, wanted: f64, position: f64) -> f64 {
        let up = self.stopping(self.highest - position).min(self.velocity);
        let down = self.stopping(position - self.lowest).min(self.velocity);
        wanted.clamp(-down, up)
    }

    /// True if a shaft of this velocity has to brake to stop before the limit.
    pub(super) fn brakes(&self, velocity: f64, position: f64) -> bool {
        velocity > self.stopping(self.highest - position)
            || -velocity > self.stopping(position - self.lowest)
    }

    /// True if the shaft is beyond the limit in this direction.
    pub(super) fn is_beyond(&self, direction: f64, position: f64) -> bool {
        direction > 0.0 && position >= self.highest || direction < 0.0 && position <= self.lowest
    }

    /// Deceleration of the stop before a position limit.
    pub(super) fn deceleration(&self) -> f64 {
        self.deceleration
    }

    /// Speed from which the shaft stops within `way`.
    fn stopping(&self, way: f64) -> f64 {
        (2.0 * self.deceleration * way.max(0.0)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_are_off_change_nothing() {
        for off in
            [OwnLimits::of(WHOLE_RANGE, u32::MAX.into(), 1.0), OwnLimits::of((0, 0), 0xFFFF_FFFF, 1.0)]
        {
            assert_eq!(off.place(1e12, 0.0, 1e-3), 1e12);
            assert_eq!(off.velocity(-1e12, 0.0), -1e12);
            assert!(!off.brakes(1e12, 1e12) && !off.is_beyond(1.0, 1e12));
        }
    }

    #[test]
    fn no_demand_leads_beyond_the_limits() {
        let limits = OwnLimits::of((-100, 200), 1000, 50.0);
        assert_eq!(limits.place(500.0, 199.5, 1e-3), 200.0);
        assert_eq!(limits.place(500.0, 0.0, 1e-3), 1.0, "at the highest speed");
        assert_eq!(limits.place(500.0, 300.0, 1e-3), 300.0, "from beyond only inwards");
        assert_eq!(limits.place(0.0, 300.0, 1e-3), 299.0);
        // 1 unit before the limit at 50 units/s^2: 10 units/s.
        assert_eq!(limits.velocity(1000.0, 199.0), 10.0);
        assert_eq!(limits.velocity(-5.0, 250.0), -5.0);
        assert!(limits.brakes(10.1, 199.0) && !limits.brakes(9.9, 199.0));
        assert!(limits.is_beyond(-1.0, -100.0) && !limits.is_beyond(1.0, -100.0));
    }
}
