//! Statusword and actual values of the axis.

use ethercat::cia402::{ModeOfOperation, State, Statusword};

use super::super::set_point::wrapped;
use super::{Activity, ServoAxis};
use crate::coe::ObjectDictionary;

impl ServoAxis {
    /// Puts actual values into the dictionary.
    pub(in super::super) fn show(&mut self, dictionary: &mut ObjectDictionary) {
        let counts = self.counts();
        let following_error = self.following_error();
        let torque = self.torque.torque / self.scale.rated_torque * 1000.0;
        let statusword = self.statusword(following_error);
        let mode = self.mode.number();
        let position = self.plant.position();
        let inputs = i64::from(self.switches.limit(-1.0, position))
            | i64::from(self.switches.limit(1.0, position)) << 1
            | i64::from(self.switches.home(position)) << 2
            | i64::from(self.touch_probes[0].input(position)) << 16
            | i64::from(self.touch_probes[1].input(position)) << 17;
        let probes = self.touch_probes.map(|probe| probe.status());
        let internal = counts * (self.scale.encoder_per_radian / self.scale.units_per_radian);
        let velocity = rounded(self.plant.velocity() * self.scale.units_per_radian);
        // A plant may be stronger than 32 times the rated torque.
        let torque = rounded(torque).clamp(i16::MIN.into(), i16::MAX.into());
        let entries = &self.entries;
        let values: [_; SHOWN] = [
            (entries.statusword, i64::from(statusword.0)),
            (entries.mode_display, i64::from(mode)),
            (entries.digital_inputs, inputs),
            (entries.touch_probe_status, i64::from(u16::from_le_bytes(probes))),
            (entries.position, i64::from(wrapped(counts))),
            (entries.internal_position, i64::from(wrapped(internal))),
            (entries.velocity, i64::from(velocity)),
            (entries.following_error, i64::from(rounded(following_error.unwrap_or(0.0)))),
            (entries.torque_demand, i64::from(torque)),
            (entries.torque, i64::from(torque)),
        ];
        // Only this function writes them, so an unchanged value needs no lookup.
        for ((entry, value), shown) in values.into_iter().zip(&mut self.shown) {
            if shown.replace(value) != Some(value) {
                dictionary.show(entry, value);
            }
        }
    }

    fn statusword(&self, following_error: Option<f64>) -> Statusword {
        let mut word = self.machine.statusword(self.settings.power);
        if let Activity::Home(homing) = &self.activity {
            word.0 |= homing.bits(self.rests());
        }
        let braked = matches!(self.activity, Activity::Brake(_)) && self.rests();
        let follows = matches!(self.activity, Activity::Follow(_));
        let window = self.settings.following_error_window;
        let outside = following_error.zip(window).is_some_and(|(error, window)| error.abs() > window);
        let has_following_error = self.mode != ModeOfOperation::InterpolatedPosition;
        let enabled = self.machine.state() == State::OperationEnabled;
        let speed_is_zero = self.mode == ModeOfOperation::ProfileVelocity && self.speed_is_zero && enabled;
        for (bit, set) in [
            (Statusword::TARGET_REACHED, braked || self.reached),
            (Statusword::INTERNAL_LIMIT_ACTIVE, self.torque.limited),
            // Of interpolated position the same bit: the interpolation is active.
            (Statusword::DRIVE_FOLLOWS_COMMAND, follows),
            (Statusword::SET_POINT_ACKNOWLEDGE, self.set_points.is_acknowledged()),
            (Statusword::SPEED_IS_ZERO, speed_is_zero),
            (Statusword::FOLLOWING_ERROR, outside && has_following_error),
        ] {
            if set {
                word.0 |= bit;
            }
        }
        word
    }
}

/// Objects that are shown.
pub(super) const SHOWN: usize = 10;

/// The nearest whole number, as far as 32 bits hold it.
fn rounded(value: f64) -> i32 {
    (value + 0.5_f64.copysign(value)) as i32
}
