//! Running drive: its axes in time, and the objects they have in common.

mod application;

use core::time::Duration;

use ethercat::time::Instant;
use ethercat::wire::coe::Emergency;

use super::axis::ServoAxis;
use super::objects;
use super::plant::Encoder;
use super::record::ServoRecord;
use super::{CONTROL_PERIOD, MAXIMUM_CATCH_UP, MOST_AXES, ServoDescription, error_register};
use crate::application::description::{DescriptionError, not_negative, positive};
use crate::application::{Level, ShaftBrake};
use crate::coe::{CoeDevice, ObjectDictionary};

/// A running servo drive.
#[derive(Clone, Debug)]
pub struct ServoDrive {
    coe: CoeDevice,
    /// At least one.
    axes: Vec<ServoAxis>,
    time: Option<Instant>,
    /// True once an event of SYNC0 has occurred, if the drive is synchronised to it.
    sync0: Option<bool>,
    /// Changes of the dictionary when the error history was looked at.
    history_seen: u64,
}

impl ServoDrive {
    /// A drive at standstill, powered up in Not ready to switch on.
    ///
    /// # Errors
    /// [`DescriptionError`] with the number or the mapped object that is invalid.
    pub fn new(description: &ServoDescription) -> Result<Self, DescriptionError> {
        if !(1..=MOST_AXES).contains(&description.axes) {
            let (expected, found) = ("1 to 8", f64::from(description.axes));
            return Err(DescriptionError::Value { name: "axes", expected, found });
        }
        positive("encoder_counts", f64::from(description.encoder_counts))?;
        positive("rated_torque", description.rated_torque)?;
        positive("inertia", description.plant.inertia)?;
        positive("torque_limit", description.plant.torque_limit)?;
        not_negative("viscous_friction", description.plant.viscous_friction)?;
        not_negative("coulomb_friction", description.plant.coulomb_friction)?;
        not_negative("initial_position's magnitude", description.initial_position.abs())?;
        if let Some((lowest, highest)) = description.limit_switches {
            positive("limit_switches' distance", highest - lowest)?;
        }
        for (first, last) in description.touch_probes.into_iter().flatten() {
            positive("touch_probes' length", last - first)?;
        }
        if let Some((first, last)) = description.home_switch {
            positive("home_switch's length", last - first)?;
        }
        let mut dictionary = objects::dictionary(description)?;
        let axes = (0..description.axes)
            .map(|number| ServoAxis::new(description, number, &mut dictionary))
            .collect::<Result<_, _>>()
            .expect("objects::dictionary adds every entry");
        Ok(Self { coe: CoeDevice::new(dictionary), axes, time: None, sync0: None, history_seen: 0 })
    }

    /// Shows the angle of the shaft (rad) of its first axis as `shaft`, to encoders that turn with
    /// it.
    #[must_use]
    pub fn with_shaft(mut self, shaft: Level) -> Self {
        self.axes[0].set_shaft(shaft);
        self
    }

    /// Object dictionary.
    #[must_use]
    pub fn dictionary(&self) -> &ObjectDictionary {
        self.coe.dictionary()
    }

    /// Object dictionary, to change initial values.
    pub fn dictionary_mut(&mut self) -> &mut ObjectDictionary {
        self.coe.dictionary_mut()
    }

    /// Its axes: at least one.
    #[must_use]
    pub fn axes(&self) -> &[ServoAxis] {
        &self.axes
    }

    /// Raises a fault of an axis with this error code; an axis in Fault shows it and stays there. 0
    /// raises none; a missing axis is ignored.
    pub fn raise_fault(&mut self, axis: usize, error_code: u16) {
        if let Some(axis) = self.axes.get(axis) {
            self.coe.dictionary_mut().set(axis.entries().raise_fault, error_code.into());
        }
    }

    /// Reports an error code of an axis without a fault, as a drive with a late diagnosis does.
    /// Nothing happens for an axis that is not there.
    pub fn report_error(&mut self, axis: usize, error_code: u16) {
        if axis < self.axes.len() {
            self.report(axis, error_code);
        }
    }

    /// Switches main power on or off, of all axes; without it they take no command that needs it.
    pub fn set_main_power(&mut self, on: bool) {
        for axis in &self.axes {
            self.coe.dictionary_mut().set(axis.entries().power, on.into());
        }
    }

    /// Makes safe torque off of an axis active: it is in Switch on disabled without a fault, and
    /// stays there.
    pub fn set_safe_torque_off(&mut self, axis: usize, is_active: bool) {
        if let Some(axis) = self.axes.get_mut(axis) {
            axis.set_safe_torque_off(is_active);
        }
    }

    /// Sets the load on the shaft of an axis, in mN m.
    pub fn set_load(&mut self, axis: usize, torque: i32) {
        if let Some(axis) = self.axes.get(axis) {
            self.coe.dictionary_mut().set(axis.entries().load_torque, torque.into());
        }
    }

    /// Exchanges two phases of the motor of an axis: it turns against its torque.
    pub fn set_reversed(&mut self, axis: usize, reversed: bool) {
        if let Some(axis) = self.axes.get_mut(axis) {
            axis.set_reversed(reversed);
        }
    }

    /// Sets the brake at the shaft of an axis; `is_powered`: by the drive, while its power stage is
    /// on.
    pub fn set_brake(&mut self, axis: usize, brake: ShaftBrake, is_powered: bool) {
        if let Some(axis) = self.axes.get_mut(axis) {
            axis.set_brake(brake, is_powered);
        }
    }

    /// Shifts the position count of an axis by `turns` of its motor; the shaft stays where it is.
    /// Targets follow the new count.
    pub fn shift_count(&mut self, axis: usize, turns: f64) {
        if let Some(axis) = self.axes.get_mut(axis) {
            axis.shift_count(turns);
        }
    }

    /// Sets the encoder of an axis.
    pub fn set_encoder(&mut self, axis: usize, encoder: Encoder) {
        if let Some(axis) = self.axes.get_mut(axis) {
            axis.set_encoder(encoder);
        }
    }

    /// Turns the shaft of an axis from outside, by `turns` of its motor, with or without power.
    pub fn displace(&mut self, axis: usize, turns: f64) {
        if let Some(axis) = self.axes.get_mut(axis) {
            axis.displace(turns);
        }
    }

    /// Records the inputs of its first axis from now on, without end; a second call returns the
    /// same record.
    pub fn record(&mut self) -> ServoRecord {
        self.axes[0].record()
    }

    /// The same of another axis, counted from 0, if it is there.
    pub fn record_axis(&mut self, axis: usize) -> Option<ServoRecord> {
        self.axes.get_mut(axis).map(ServoAxis::record)
    }

    /// Runs the plants and the loops up to `now`.
    fn run_until(&mut self, now: Instant) {
        let mut time = *self.time.get_or_insert(now);
        self.axes.iter_mut().for_each(|axis| axis.follow_brake(now));
        if self.axes.iter().all(ServoAxis::stays) {
            let periods = now.since(time).as_nanos() / CONTROL_PERIOD.as_nanos();
            time = time + Duration::from_nanos((periods * CONTROL_PERIOD.as_nanos()) as u64);
        }
        let gap = now.since(time).max(time.since(now));
        if gap > MAXIMUM_CATCH_UP {
            time = if now > time { earlier(now, MAXIMUM_CATCH_UP) } else { now };
        }
        while now.since(time) >= CONTROL_PERIOD {
            time = time + CONTROL_PERIOD;
            for number in 0..self.axes.len() {
                self.axes[number].control(self.coe.dictionary_mut());
                if let Some(error_code) = self.axes[number].take_report() {
                    self.report(number, error_code);
                }
            }
        }
        self.time = Some(time);
        self.axes.iter_mut().for_each(ServoAxis::end_restart);
        self.axes.iter().for_each(ServoAxis::turn_shaft);
    }

    /// Shows an error of an axis, or its end, in its 0x603F and in 0x1001, and sends the emergency.
    /// Its first byte of the maker, and the upper half of an error in 0x1003, is the axis, counted
    /// from 0.
    fn report(&mut self, axis: usize, error_code: u16) {
        let shown = self.axes[axis].entries().error_code;
        self.coe.dictionary_mut().set(shown, error_code.into());
        let (entries, dictionary) = (self.axes[0].entries(), self.coe.dictionary_mut());
        let codes = self.axes.iter().map(|axis| dictionary.get(axis.entries().error_code) as u16);
        let register = codes.map(error_register).fold(0, |all, one| all | one);
        dictionary.set(entries.error_register, register.into());
        if error_code != 0 {
            let errors = entries.errors;
            for pair in errors.windows(2).rev() {
                let older = dictionary.get(pair[0]);
                dictionary.set(pair[1], older);
            }
            dictionary.set(errors[0], (axis as i64) << 16 | i64::from(error_code));
            let known = (dictionary.get(entries.error_count) + 1).min(errors.len() as i64);
            dictionary.set(entries.error_count, known);
        }
        let data = [axis as u8, 0, 0, 0, 0];
        self.coe.server_mut().send(Emergency { error_code, error_register: register, data });
    }

    /// Empties 0x1003 once its count was written to 0.
    fn clear_forgotten_errors(&mut self) {
        let changes = self.coe.dictionary().setting_changes();
        if core::mem::replace(&mut self.history_seen, changes) == changes {
            return;
        }
        let (entries, dictionary) = (self.axes[0].entries(), self.coe.dictionary_mut());
        if dictionary.get(entries.error_count) == 0 && dictionary.get(entries.errors[0]) != 0 {
            for error in entries.errors {
                dictionary.set(error, 0);
            }
        }
    }

    /// Reads commands and settings from the dictionary.
    fn read_settings(&mut self) {
        for axis in &mut self.axes {
            axis.read_settings(self.coe.dictionary_mut());
        }
        self.clear_forgotten_errors();
    }
}

fn earlier(now: Instant, by: Duration) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_sub(by.as_nanos() as u64))
}
