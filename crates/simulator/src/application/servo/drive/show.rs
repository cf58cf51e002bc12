//! Statusword and actual values of the drive.

use ethercat::cia402::Statusword;

use super::super::set_point::wrapped;
use super::{Activity, ServoDrive};

impl ServoDrive {
    /// Puts actual values into the dictionary.
    pub(super) fn show(&mut self) {
        let counts = self.counts();
        let following_error = self.following_error();
        let torque = self.torque.torque / self.scale.rated_torque * 1000.0;
        let statusword = self.statusword(following_error);
        let mode = self.mode.number();
        let switches = self.limit_switches.map_or(0, |(lowest, highest)| {
            let position = self.plant.position();
            i64::from(position <= lowest) | i64::from(position >= highest) << 1
        });
        let velocity = (self.plant.velocity() * self.scale.counts_per_radian).round() as i32;
        let entries = &self.entries;
        let dictionary = self.coe.dictionary_mut();
        dictionary.set(entries.statusword, i64::from(statusword.0));
        dictionary.set(entries.mode_display, i64::from(mode));
        dictionary.set(entries.digital_inputs, switches);
        dictionary.set(entries.position, i64::from(wrapped(counts)));
        dictionary.set(entries.internal_position, i64::from(wrapped(counts)));
        dictionary.set(entries.velocity, i64::from(velocity));
        dictionary.set(entries.following_error, i64::from(following_error.unwrap_or(0.0).round() as i32));
        // Saturating: a plant may be stronger than 32 times the rated torque.
        dictionary.set(entries.torque_demand, i64::from(torque.round() as i16));
        dictionary.set(entries.torque, i64::from(torque.round() as i16));
    }

    fn statusword(&self, following_error: Option<f64>) -> Statusword {
        let mut word = self.machine.statusword(self.settings.power);
        if let Activity::Home(homing) = &self.activity {
            word.0 |= homing.bits(self.rests());
        }
        let braked = matches!(self.activity, Activity::Brake(_)) && self.rests();
        let window = self.settings.following_error_window;
        let outside = following_error.zip(window).is_some_and(|(error, window)| error.abs() > window);
        for (bit, set) in [
            (Statusword::TARGET_REACHED, braked),
            (Statusword::INTERNAL_LIMIT_ACTIVE, self.torque.limited),
            (Statusword::DRIVE_FOLLOWS_COMMAND, matches!(self.activity, Activity::Follow(_))),
            (Statusword::FOLLOWING_ERROR, outside),
        ] {
            if set {
                word.0 |= bit;
            }
        }
        word
    }
}
