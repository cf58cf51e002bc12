//! Axis of the drive: state machine, power stage, and the plant in time.

mod activity;
mod show;

use core::f64::consts::TAU;
use core::time::Duration;

use ethercat::cia402::{
    Command, Controlword, ModeOfOperation, State, StateMachine, Surroundings, Transition,
};
use ethercat::sdo_abort::AbortCode;
use ethercat::time::Instant;

use self::activity::Activity;
use self::show::SHOWN;
use super::entries::Entries;
use super::homing::Switches;
use super::plant::Plant;
use super::plant::{Counter, Encoder};
use super::profile::{Dwell, SetPoints};
use super::record::{ServoRecord, Taken};
use super::set_point::{Cascade, LimitedTorque};
use super::set_point::{floor, wrapped};
use super::settings::{Scale, Settings, units_per_radian};
use super::touch_probe::TouchProbe;
use super::{COMMUNICATION_LOSS, CONTROL_PERIOD, FOLLOWING_ERROR, ServoDescription, UNDER_VOLTAGE};
use crate::application::{Level, ShaftBrake};
use crate::coe::ObjectDictionary;

/// One axis of a servo drive: its part of the object dictionary, and its motor.
#[derive(Clone, Debug)]
pub struct ServoAxis {
    entries: Entries,
    machine: StateMachine,
    plant: Plant,
    counter: Counter,
    cascade: Cascade,
    activity: Activity,
    settings: Settings,
    /// State that the settings depend on, when they were read: changes of the dictionary, and their
    /// origin.
    read: Option<(u64, Origin)>,
    rest: Rest,
    scale: Scale,
    transition_time: Duration,
    has_quick_stop: bool,
    /// Time until the power stage is ready for the next step.
    settling: Duration,
    operational: bool,
    /// Cycle of SYNC0, where the drive is synchronised to it.
    sync0_cycle: Option<Duration>,
    mode: ModeOfOperation,
    switches: Switches,
    touch_probes: [TouchProbe; 2],
    /// Position units from the shaft's angle 0 to position 0: homing moves it.
    origin: f64,
    homed: bool,
    fault: Option<u16>,
    /// Safe torque off is active: Switch on disabled, without a fault.
    safe_torque_off: bool,
    /// Error code to show and send; 0 is the end of an error.
    reported: Option<u16>,
    following_error_time: Duration,
    /// Place that is demanded of a shaft that follows positions, in position units.
    demanded: f64,
    /// Set-points of profile position mode.
    set_points: SetPoints,
    /// Target reached, where the mode has one, and speed zero.
    reached: bool,
    reached_dwell: Dwell,
    speed_is_zero: bool,
    zero_dwell: Dwell,
    reaction_time: Duration,
    torque: LimitedTorque,
    /// The motor turns against its torque.
    reversed: bool,
    /// Brake at its shaft, and true if this drive powers it.
    brake: Option<(ShaftBrake, bool)>,
    is_braked: bool,
    record: Option<ServoRecord>,
    /// Values in the dictionary, as they were shown last.
    shown: [Option<i64>; SHOWN],
    /// Angle of the shaft in rad, for simulated encoders.
    shaft: Level,
    shaft_is_seen: bool,
}

/// Origin of the settings, without set-points: changes of the dictionary, Op and a power stage that
/// is off, SYNC0.
type Origin = (u64, [bool; 2], Option<Duration>);

/// Axis that is neither moved nor commanded: it stays as it is until the dictionary changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    No,
    /// It is, and its values are not shown yet.
    Yes,
    Shown,
}

/// Speed below which the shaft rests, in rad/s.
const REST: f64 = 0.05;

/// Bit of the digital outputs that sets the brake (0x60FE).
const SET_BRAKE: u32 = 1 << 0;

/// Longest fault reaction: it ends then even if the shaft still turns.
const FAULT_REACTION_LIMIT: Duration = Duration::from_secs(2);

impl ServoAxis {
    /// An axis at standstill, powered up in Not ready to switch on. `number` is its index in the
    /// drive, from 0.
    ///
    /// # Errors
    /// The abort code of an object that `dictionary` lacks.
    pub(super) fn new(
        description: &ServoDescription,
        number: u8,
        dictionary: &mut ObjectDictionary,
    ) -> Result<Self, AbortCode> {
        let mut axis = Self {
            entries: Entries::find(dictionary, number)?,
            machine: StateMachine::new(),
            plant: Plant::new(description.plant, description.initial_position),
            counter: Counter::at(description.initial_position),
            cascade: Cascade::default(),
            activity: Activity::Off,
            settings: Settings::default(),
            read: None,
            rest: Rest::No,
            scale: Scale {
                units_per_radian: f64::from(description.encoder_counts) / TAU,
                encoder_per_radian: f64::from(description.encoder_counts) / TAU,
                rated_torque: description.rated_torque,
                torque_limit: description.plant.torque_limit,
                inertia: description.plant.inertia,
            },
            transition_time: description.transition_time,
            has_quick_stop: description.quick_stop,
            settling: description.transition_time,
            operational: false,
            sync0_cycle: None,
            mode: description.mode.into(),
            switches: Switches { limits: description.limit_switches, home: description.home_switch },
            touch_probes: description.touch_probes.map(TouchProbe::new),
            origin: 0.0,
            homed: false,
            fault: None,
            safe_torque_off: false,
            reported: None,
            following_error_time: Duration::ZERO,
            demanded: 0.0,
            set_points: SetPoints::default(),
            reached: false,
            reached_dwell: Dwell::default(),
            speed_is_zero: false,
            zero_dwell: Dwell::default(),
            reaction_time: Duration::ZERO,
            torque: LimitedTorque::default(),
            reversed: false,
            brake: None,
            is_braked: false,
            record: None,
            shown: [None; SHOWN],
            shaft: Level::default(),
            shaft_is_seen: false,
        };
        axis.entries.set_points().into_iter().for_each(|entry| dictionary.mark_set_point(entry));
        axis.read_settings(dictionary);
        axis.show(dictionary);
        Ok(axis)
    }

    /// The motor and its load.
    #[must_use]
    pub fn plant(&self) -> &Plant {
        &self.plant
    }

    /// Digital outputs that are driven: 0x60FE:1 where the mask 0x60FE:2 has a bit. Bit 0 sets the
    /// brake.
    #[must_use]
    pub fn digital_outputs(&self) -> u32 {
        self.settings.outputs
    }

    /// State of the CiA 402 state machine.
    #[must_use]
    pub fn state(&self) -> State {
        self.machine.state()
    }

    pub(super) fn entries(&self) -> &Entries {
        &self.entries
    }

    pub(super) fn record(&mut self) -> ServoRecord {
        self.record.get_or_insert_default().clone()
    }

    /// Counts from elsewhere from now on: positions are `turns` of the motor higher, and so is the
    /// meaning of targets. The shaft stays.
    pub(super) fn shift_count(&mut self, turns: f64) {
        self.origin -= (turns * TAU * self.scale.units_per_radian).round();
        self.wake();
    }

    /// Sets the encoder; the default is [`Encoder::Unlimited`].
    pub(super) fn set_encoder(&mut self, encoder: Encoder) {
        self.counter.encoder = encoder;
    }

    /// The encoder of the axis.
    #[must_use]
    pub fn encoder(&self) -> Encoder {
        self.counter.encoder
    }

    /// Exchanges two phases of its motor.
    pub(super) fn set_reversed(&mut self, reversed: bool) {
        self.reversed = reversed;
    }

    /// Sets the brake at its shaft; `is_powered`: by this drive, while its power stage is on.
    pub(super) fn set_brake(&mut self, brake: ShaftBrake, is_powered: bool) {
        self.brake = Some((brake, is_powered));
    }

    /// The brake at its shaft.
    #[must_use]
    pub fn brake(&self) -> Option<&ShaftBrake> {
        self.brake.as_ref().map(|(brake, _)| brake)
    }

    /// Follows its brake, and powers it if that is up to this drive.
    pub(super) fn follow_brake(&mut self, now: Instant) {
        let Some((brake, is_powered)) = &self.brake else { return };
        if *is_powered {
            let on = matches!(self.machine.state(), State::OperationEnabled | State::QuickStopActive);
            brake.set_power(now, on);
        }
        self.is_braked = brake.look(now).holds;
    }

    /// Turns the shaft from outside, by `turns` of the motor.
    pub(super) fn displace(&mut self, turns: f64) {
        self.plant.displace(turns * TAU);
        self.wake();
    }

    /// The dictionary alone does not show this change.
    fn wake(&mut self) {
        (self.rest, self.read, self.shown) = (Rest::No, None, [None; SHOWN]);
        self.turn_shaft();
    }

    pub(super) fn set_shaft(&mut self, shaft: Level) {
        (self.shaft, self.shaft_is_seen) = (shaft, true);
        self.turn_shaft();
    }

    /// Publishes the angle of the shaft to simulated encoders.
    pub(super) fn turn_shaft(&self) {
        self.shaft.set(self.plant.position());
    }

    /// Restores values that are not stored: origin and home are stored, and the encoder knows the
    /// position as far as it can; the motor has coasted meanwhile.
    pub(super) fn power_on(&mut self, dictionary: &mut ObjectDictionary) {
        self.machine = StateMachine::new();
        self.cascade.reset();
        self.activity = Activity::Off;
        self.settling = self.transition_time;
        self.fault = None;
        self.counter.restart();
        (self.read, self.shown) = (None, [None; SHOWN]);
        self.read_settings(dictionary);
    }

    /// Ends the time without power, if any: motion that the encoder did not see is missing in the
    /// count.
    pub(super) fn end_restart(&mut self) {
        if let Some(change) = self.counter.end_restart(self.plant.position()) {
            self.origin -= change * self.scale.units_per_radian;
        }
    }

    /// Takes the torque, without a fault, or ends that.
    pub(super) fn set_safe_torque_off(&mut self, is_active: bool) {
        (self.safe_torque_off, self.rest, self.read) = (is_active, Rest::No, None);
    }

    /// Follows a change of the AL state: into Op, or out of it.
    pub(super) fn enter(
        &mut self,
        operational: bool,
        sync0_cycle: Option<Duration>,
        dictionary: &mut ObjectDictionary,
    ) {
        let leaves_op = self.operational && !operational;
        (self.operational, self.sync0_cycle) = (operational, sync0_cycle);
        if leaves_op {
            if matches!(self.machine.state(), State::OperationEnabled | State::QuickStopActive) {
                self.fault.get_or_insert(COMMUNICATION_LOSS);
            }
            // Commands of Op do not outlive it.
            for entry in
                [self.entries.controlword, self.entries.target_velocity, self.entries.target_torque]
            {
                dictionary.set(entry, 0);
            }
        }
        self.read_settings(dictionary);
    }

    /// Takes the present commands, and shows their results.
    pub(super) fn exchange(&mut self, dictionary: &mut ObjectDictionary) {
        self.read_settings(dictionary);
        if self.rest == Rest::Shown {
            return;
        }
        self.sample_target(dictionary);
        self.show(dictionary);
        if self.rest == Rest::Yes {
            self.rest = Rest::Shown;
        }
    }

    /// True if nothing happens to the axis before its dictionary changes.
    pub(super) fn stays(&self) -> bool {
        self.rest != Rest::No
    }

    /// True if nothing happens to the axis before its dictionary changes, all its values are shown,
    /// and they are not recorded.
    pub(super) fn rests_unseen(&self, dictionary: &ObjectDictionary) -> bool {
        let is_read = self.read.is_some_and(|(changes, _)| changes == dictionary.changes());
        self.rest == Rest::Shown && is_read && self.record.is_none()
    }

    /// True if nothing reads the axis before SYNC0: all settings are read, no error is to be
    /// reported, and no encoder follows the shaft.
    pub(super) fn waits(&self, dictionary: &ObjectDictionary) -> bool {
        let is_read = self.read.is_some_and(|(changes, _)| changes == dictionary.changes());
        is_read && self.reported.is_none() && !self.shaft_is_seen
    }

    /// Notes the present values, if they are recorded.
    pub(super) fn note(&self, now: Instant, dictionary: &ObjectDictionary) {
        if let Some(record) = &self.record {
            record.add(self.taken(now, dictionary));
        }
    }

    fn taken(&self, now: Instant, dictionary: &ObjectDictionary) -> Taken {
        let entries = &self.entries;
        Taken {
            now,
            operational: self.operational,
            controlword: self.settings.controlword,
            mode: self.mode,
            target_position: dictionary.get(entries.target_position) as i32,
            target_velocity: dictionary.get(entries.target_velocity) as i32,
            target_torque: dictionary.get(entries.target_torque) as i16,
            maximum_torque: dictionary.get(entries.maximum_torque) as u16,
            state: self.machine.state(),
            position: wrapped(self.counts()),
            angle: self.plant.position(),
            velocity: self.plant.velocity() * self.scale.units_per_radian,
        }
    }

    /// Error code to be shown and sent since the last call; 0 is the end of an error.
    pub(super) fn take_report(&mut self) -> Option<u16> {
        self.reported.take()
    }

    /// Runs one control period.
    pub(super) fn control(&mut self, dictionary: &mut ObjectDictionary) {
        let state = self.machine.state();
        self.settling = self.settling.saturating_sub(CONTROL_PERIOD);
        self.step_machine();
        self.choose_activity(dictionary);
        self.take_set_points(dictionary);
        self.torque = self.act();
        self.plant.set_brake(self.settings.outputs & SET_BRAKE != 0 || self.is_braked);
        let before = self.plant.position();
        let torque = if self.reversed { -self.torque.torque } else { self.torque.torque };
        self.plant.advance(torque, self.settings.load_torque, CONTROL_PERIOD);
        self.counter.sees(self.plant.position());
        self.watch_probes(before, dictionary);
        self.watch_following_error();
        self.watch_target();
        let stays =
            state == State::SwitchOnDisabled && state == self.machine.state() && self.is_left_alone();
        self.rest = if stays { Rest::Yes } else { Rest::No };
    }

    fn is_left_alone(&self) -> bool {
        self.settling.is_zero()
            && self.fault.is_none()
            && self.reported.is_none()
            && matches!(self.activity, Activity::Off)
            && self.settings.touch_probes == [0; 2]
            && [self.plant.velocity(), self.torque.torque, self.settings.load_torque] == [0.0; 3]
    }

    fn step_machine(&mut self) {
        let state = self.machine.state();
        if self.safe_torque_off && !state.is_faulted() && state != State::NotReadyToSwitchOn {
            self.machine = StateMachine::in_state(State::SwitchOnDisabled);
            return;
        }
        if state == State::FaultReactionActive {
            self.reaction_time += CONTROL_PERIOD;
        }
        if state.is_faulted() {
            // It is in Fault for another error already: the new one is shown, and has no state.
            self.reported = self.fault.take().or(self.reported);
        }
        let rests = matches!(state, State::FaultReactionActive | State::QuickStopActive) && self.rests();
        let around = Surroundings {
            initialised: self.settling.is_zero(),
            power: self.settings.power,
            fault: self.fault.is_some(),
            fault_reaction_completed: self.settings.fault_reaction.is_none()
                || rests
                || self.reaction_time >= FAULT_REACTION_LIMIT,
            quick_stop_completed: self.settings.quick_stop.is_none() || rests,
            quick_stop_holds: self.settings.quick_stop_holds,
        };
        let mut controlword = self.settings.controlword;
        if self.departure().is_some() || self.ignores_quick_stop() {
            // The axis slows down first, or the drive has no such command.
            controlword = Controlword::ENABLE_OPERATION;
        }
        if around.fault || self.settling.is_zero() || !leads_upwards(state, controlword) {
            if let Some(transition) = self.machine.step(controlword, around) {
                self.enter_state(transition);
            }
        }
    }

    /// True while an enabled drive without quick stop has the quick-stop command.
    fn ignores_quick_stop(&self) -> bool {
        let controlword = self.settings.controlword;
        let command = Command::from_controlword(controlword, controlword);
        !self.has_quick_stop
            && self.machine.state() == State::OperationEnabled
            && command == Some(Command::QuickStop)
    }

    fn enter_state(&mut self, transition: Transition) {
        match transition.number {
            1..=4 => self.settling = self.transition_time,
            13 => {
                let code = self.fault.take().unwrap_or(UNDER_VOLTAGE);
                self.reaction_time = Duration::ZERO;
                self.reported = Some(code);
            }
            15 => self.reported = Some(0),
            _ => {}
        }
    }

    /// Stores the positions at the edges of the touch probes, since the shaft was at `before`.
    fn watch_probes(&mut self, before: f64, dictionary: &mut ObjectDictionary) {
        let (now, positions) = (self.plant.position(), self.entries.touch_probe_positions);
        let functions = self.settings.touch_probes;
        if functions == [0; 2] && self.touch_probes.iter().all(TouchProbe::is_off) {
            return;
        }
        for ((probe, function), entries) in
            self.touch_probes.iter_mut().zip(functions).zip(positions.chunks(2))
        {
            probe.step(function, before, now);
            for (angle, &entry) in probe.take_stored().into_iter().zip(entries) {
                let position = angle.map(|angle| angle * self.scale.units_per_radian - self.origin);
                if let Some(position) = position {
                    dictionary.set(entry, i64::from(wrapped(position)));
                }
            }
        }
    }

    fn watch_following_error(&mut self) {
        let error = self.following_error();
        let outside = error
            .zip(self.settings.following_error_window)
            .is_some_and(|(error, window)| error.abs() > window);
        if !outside {
            self.following_error_time = Duration::ZERO;
            return;
        }
        self.following_error_time += CONTROL_PERIOD;
        if self.following_error_time > self.settings.following_error_time_out {
            self.fault.get_or_insert(FOLLOWING_ERROR);
        }
    }

    /// Position to be shown, in position units, before it is cut to whole ones and wraps.
    fn counts(&self) -> f64 {
        self.plant.position() * self.scale.units_per_radian - self.origin
    }

    /// Position from the encoder, in rad.
    fn measured(&self) -> f64 {
        floor(self.plant.position() * self.scale.encoder_per_radian) / self.scale.encoder_per_radian
    }

    /// Takes gear ratio and feed constant over, while the power stage is off; position 0 stays
    /// where it is.
    fn read_scale(&mut self, dictionary: &ObjectDictionary) {
        if self.activity != Activity::Off {
            return;
        }
        let units = units_per_radian(dictionary, &self.entries);
        if units != self.scale.units_per_radian {
            self.origin *= units / self.scale.units_per_radian;
            self.scale.units_per_radian = units;
        }
    }

    /// Reads commands and settings from the dictionary, where they can have changed.
    pub(super) fn read_settings(&mut self, dictionary: &mut ObjectDictionary) {
        let states = [self.operational, self.activity == Activity::Off];
        let now = (dictionary.changes(), (dictionary.setting_changes(), states, self.sync0_cycle));
        if self.read == Some(now) {
            return;
        }
        let before = self.read.replace(now);
        self.rest = Rest::No;
        if before.is_some_and(|(_, origin)| origin == now.1) {
            return self.settings.read_set_points(dictionary, &self.entries, &self.scale);
        }
        self.read_scale(dictionary);
        self.settings = Settings::read(dictionary, &self.entries, &self.scale, self.sync0_cycle);
        if !self.operational {
            self.settings.controlword = Controlword(0);
        }
        if let Some(mode) = self.settings.mode.filter(|mode| *mode != self.mode) {
            self.mode = mode;
            // The set-points of another mode start at the present position.
            self.activity = Activity::Off;
        }
        if self.settings.raised_fault != 0 {
            dictionary.set(self.entries.raise_fault, 0);
            self.fault.get_or_insert(self.settings.raised_fault);
        }
    }
}

/// True if the command leads towards Operation enabled, for which the power stage takes its time.
fn leads_upwards(state: State, controlword: Controlword) -> bool {
    let below = matches!(state, State::SwitchOnDisabled | State::ReadyToSwitchOn | State::SwitchedOn);
    let command = Command::from_controlword(controlword, controlword);
    below && matches!(command, Some(Command::Shutdown | Command::SwitchOn | Command::EnableOperation))
}
