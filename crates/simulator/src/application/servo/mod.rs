//! A servo drive by CiA 402 (IEC 61800-7-201) with the motor it turns.
//!
//! Modes CSP, CSV and CST. Velocities are in counts per second, torques in thousandths of the rated torque.
//! Control loops and plant run at [`CONTROL_PERIOD`], whatever the steps and frames; the drive brakes and
//! faults by itself when communication ends.
//!
//! Simplified against a real drive: torque follows its demand at once, power comes and goes at once, and
//! Disable operation, Shutdown and Disable voltage let the motor coast.

mod control;
mod objects;
mod plant;
mod set_point;

use core::f64::consts::TAU;
use core::time::Duration;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::cia402::{
    Command, Controlword, CyclicMode, ModeOfOperation, State, StateMachine, Statusword, Surroundings,
    Transition,
};
use ethercat::pdo::PdoMapping;
use ethercat::sii::Image;
use ethercat::time::Instant;
use ethercat::wire::coe::Emergency;

use super::description::{DescriptionError, not_negative, positive};
use super::{Application, ProcessDataLengths, Replies, StateChange, Sync0Event};
use crate::coe::{CoeDevice, DeviceDescription, ObjectDictionary};
use control::{Cascade, Demand, LimitedTorque, limited};
use objects::Entries;
pub use objects::{SIMULATION, default_mapping};
pub use plant::{Plant, PlantParameters};
use set_point::{Braking, Interpolation, nearest, wrapped};

/// Time between two steps of the control loops and of the plant.
pub const CONTROL_PERIOD: Duration = Duration::from_micros(125);

/// Longest time made up for in one step; of a longer gap the rest is left out.
pub const MAXIMUM_CATCH_UP: Duration = Duration::from_millis(200);

/// Error code of a following error (CiA 402, 0x603F).
pub const FOLLOWING_ERROR: u16 = 0x8611;
/// Error code of communication that ended while the drive was enabled.
pub const COMMUNICATION_LOSS: u16 = 0x7500;
/// Error code of main power that went away: DC link under-voltage.
pub const UNDER_VOLTAGE: u16 = 0x3220;

/// Device type of a servo drive (CiA 402, 0x1000): profile 402, servo drive.
pub const DEVICE_TYPE: u32 = 0x0002_0192;

/// A servo drive as built.
#[derive(Clone, Debug, PartialEq)]
pub struct ServoDescription {
    /// Identity and names.
    pub device: DeviceDescription,
    /// PDOs and what they map by default; objects unknown to the drive are stored and nothing else.
    pub mapping: PdoMapping,
    /// Motor and load.
    pub plant: PlantParameters,
    /// Encoder counts per motor revolution; above 0.
    pub encoder_counts: u32,
    /// Torque that 1000 per mille stand for, in N m; above 0.
    pub rated_torque: f64,
    /// Angle of the shaft at power-on, in rad.
    pub initial_position: f64,
    /// Mode of operation until 0x6060 is written.
    pub mode: CyclicMode,
    /// Time the power stage takes for each step towards Operation enabled.
    pub transition_time: Duration,
}

impl ServoDescription {
    /// A drive of 2.4 N m with a 20-bit encoder and the mapping of [`default_mapping`], in CSP.
    #[must_use]
    pub fn new(device: DeviceDescription) -> Self {
        Self {
            device: DeviceDescription { device_type: DEVICE_TYPE, ..device },
            mapping: default_mapping(),
            plant: PlantParameters::default(),
            encoder_counts: 1 << 20,
            rated_torque: 2.4,
            initial_position: 0.0,
            mode: CyclicMode::Position,
            transition_time: Duration::from_millis(2),
        }
    }

    /// The drive that `image` says it is, with the PDOs the image has; the rest as [`new`](Self::new).
    #[must_use]
    pub fn from_sii(image: &Image) -> Self {
        Self { mapping: super::sii::pdos(image), ..Self::new(DeviceDescription::from_sii(image)) }
    }
}

/// A servo drive at work.
#[derive(Clone, Debug)]
pub struct ServoDrive {
    coe: CoeDevice,
    entries: Entries,
    machine: StateMachine,
    plant: Plant,
    cascade: Cascade,
    activity: Activity,
    settings: Settings,
    counts_per_radian: f64,
    rated_torque: f64,
    transition_time: Duration,
    /// Until the power stage is ready for the next step.
    settling: Duration,
    time: Option<Instant>,
    operational: bool,
    /// SYNC0's cycle, where the drive is synchronised to it, and whether an event has come.
    sync0: Option<Sync0>,
    mode: CyclicMode,
    fault: Option<u16>,
    following_error_time: Duration,
    reaction_time: Duration,
    torque: LimitedTorque,
}

#[derive(Clone, Copy, Debug)]
struct Sync0 {
    cycle: Duration,
    running: bool,
}

/// What the power stage does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Activity {
    /// No torque.
    Off,
    /// Follows set-points.
    Follow(Interpolation),
    /// Slows down and then holds.
    Brake(Braking),
}

/// What the dictionary says, read once a step.
#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    controlword: Controlword,
    following_error_window: Option<f64>,
    following_error_time_out: Duration,
    torque_limit: f64,
    halt_deceleration: f64,
    quick_stop_deceleration: f64,
    fault_deceleration: f64,
    quick_stop_holds: bool,
    set_point_period: Duration,
    target_velocity: f64,
    target_torque: f64,
    velocity_offset: f64,
    torque_offset: f64,
    load_torque: f64,
    power: bool,
}

/// Below this speed the shaft rests, in rad/s.
const REST: f64 = 0.05;

/// A fault reaction that has not stopped the shaft by then ends all the same.
const FAULT_REACTION_LIMIT: Duration = Duration::from_secs(2);

impl ServoDrive {
    /// At rest, powered up in Not ready to switch on.
    ///
    /// # Errors
    /// [`DescriptionError`] names the number or the mapped object that cannot be.
    pub fn new(description: &ServoDescription) -> Result<Self, DescriptionError> {
        positive("encoder_counts", f64::from(description.encoder_counts))?;
        positive("rated_torque", description.rated_torque)?;
        positive("inertia", description.plant.inertia)?;
        positive("torque_limit", description.plant.torque_limit)?;
        not_negative("viscous_friction", description.plant.viscous_friction)?;
        not_negative("coulomb_friction", description.plant.coulomb_friction)?;
        not_negative("initial_position's magnitude", description.initial_position.abs())?;
        let dictionary = objects::dictionary(description)?;
        let entries = Entries::find(&dictionary).expect("objects::dictionary adds every entry");
        let mut drive = Self {
            coe: CoeDevice::new(dictionary),
            entries,
            machine: StateMachine::new(),
            plant: Plant::new(description.plant, description.initial_position),
            cascade: Cascade::default(),
            activity: Activity::Off,
            settings: Settings::default(),
            counts_per_radian: f64::from(description.encoder_counts) / TAU,
            rated_torque: description.rated_torque,
            transition_time: description.transition_time,
            settling: description.transition_time,
            time: None,
            operational: false,
            sync0: None,
            mode: description.mode,
            fault: None,
            following_error_time: Duration::ZERO,
            reaction_time: Duration::ZERO,
            torque: LimitedTorque::default(),
        };
        drive.read_settings();
        drive.show();
        Ok(drive)
    }

    /// The objects.
    #[must_use]
    pub fn dictionary(&self) -> &ObjectDictionary {
        self.coe.dictionary()
    }

    /// The objects, to change what the drive starts with.
    pub fn dictionary_mut(&mut self) -> &mut ObjectDictionary {
        self.coe.dictionary_mut()
    }

    /// The motor and its load.
    #[must_use]
    pub fn plant(&self) -> &Plant {
        &self.plant
    }

    /// The state of the drive's own state machine.
    #[must_use]
    pub fn state(&self) -> State {
        self.machine.state()
    }

    /// Lets the world run up to `now`.
    fn run_until(&mut self, now: Instant) {
        let mut time = *self.time.get_or_insert(now);
        let gap = now.since(time).max(time.since(now));
        if gap > MAXIMUM_CATCH_UP {
            time = if now > time { earlier(now, MAXIMUM_CATCH_UP) } else { now };
        }
        while now.since(time) >= CONTROL_PERIOD {
            time = time + CONTROL_PERIOD;
            self.control();
        }
        self.time = Some(time);
    }

    /// One control period.
    fn control(&mut self) {
        self.settling = self.settling.saturating_sub(CONTROL_PERIOD);
        self.step_machine();
        self.choose_activity();
        self.torque = self.act();
        self.plant.advance(self.torque.torque, self.settings.load_torque, CONTROL_PERIOD);
        self.watch_following_error();
    }

    fn step_machine(&mut self) {
        let state = self.machine.state();
        if state == State::FaultReactionActive {
            self.reaction_time += CONTROL_PERIOD;
        }
        let around = Surroundings {
            initialised: self.settling.is_zero(),
            power: self.settings.power,
            fault: self.fault.is_some(),
            fault_reaction_completed: self.rests() || self.reaction_time >= FAULT_REACTION_LIMIT,
            quick_stop_completed: self.rests(),
            quick_stop_holds: self.settings.quick_stop_holds,
        };
        let controlword = self.settings.controlword;
        if around.fault || self.settling.is_zero() || !leads_upwards(state, controlword) {
            if let Some(transition) = self.machine.step(controlword, around) {
                self.enter_state(transition);
            }
        }
    }

    fn enter_state(&mut self, transition: Transition) {
        match transition.number {
            1..=4 => self.settling = self.transition_time,
            13 => {
                let code = self.fault.take().unwrap_or(UNDER_VOLTAGE);
                self.reaction_time = Duration::ZERO;
                self.report(code, error_register(code));
            }
            15 => self.report(0, 0),
            _ => {}
        }
    }

    /// Shows an error, or that there is none any more, in 0x603F and 0x1001, and sends the emergency.
    fn report(&mut self, error_code: u16, error_register: u8) {
        let entries = &self.entries;
        let (code, register) = (entries.error_code, entries.error_register);
        self.coe.dictionary_mut().set(code, i64::from(error_code));
        self.coe.dictionary_mut().set(register, i64::from(error_register));
        self.coe.server_mut().send(Emergency { error_code, error_register, data: [0; 5] });
    }

    fn choose_activity(&mut self) {
        let halt = self.settings.controlword.halt();
        let follows = matches!(self.activity, Activity::Follow(_));
        let brakes = matches!(self.activity, Activity::Brake(_));
        match self.machine.state() {
            State::OperationEnabled if !halt && !follows => self.follow(),
            State::OperationEnabled if !halt => {}
            State::OperationEnabled | State::QuickStopActive | State::FaultReactionActive => {
                if self.activity == Activity::Off && self.machine.state() != State::OperationEnabled {
                    // What was not driven before is not driven now.
                } else if !brakes {
                    let (position, velocity) = (self.measured(), self.plant.velocity());
                    self.activity = Activity::Brake(Braking { position, velocity });
                }
            }
            _ => {
                self.activity = Activity::Off;
                self.cascade.reset();
            }
        }
    }

    /// Starts to follow set-points from where the shaft is.
    fn follow(&mut self) {
        let position = self.plant.position() * self.counts_per_radian;
        let mut line = Interpolation::at(position);
        let target = self.target_position();
        if self.mode == CyclicMode::Position {
            // A drive takes no target that it would have to jump to.
            let distance = nearest(target, position) - position;
            if self.settings.following_error_window.is_some_and(|window| distance.abs() > window) {
                self.fault.get_or_insert(FOLLOWING_ERROR);
            } else {
                line.aim(target, self.settings.set_point_period);
            }
        }
        self.following_error_time = Duration::ZERO;
        self.cascade.reset();
        self.activity = Activity::Follow(line);
    }

    /// The torque for this control period.
    fn act(&mut self) -> LimitedTorque {
        let limit = self.settings.torque_limit;
        let demand = match &mut self.activity {
            Activity::Off => return LimitedTorque::default(),
            Activity::Brake(braking) => {
                let deceleration = match self.machine.state() {
                    State::OperationEnabled => self.settings.halt_deceleration,
                    State::QuickStopActive => self.settings.quick_stop_deceleration,
                    _ => self.settings.fault_deceleration,
                };
                // The loops alone would lag behind a hard stop and then overshoot it.
                let torque = match braking.velocity {
                    0.0 => 0.0,
                    velocity => -(deceleration * self.plant.parameters().inertia).copysign(velocity),
                };
                braking.advance(deceleration, CONTROL_PERIOD);
                Demand { position: Some(braking.position), velocity: braking.velocity, torque }
            }
            Activity::Follow(line) => {
                line.advance(CONTROL_PERIOD);
                let torque = self.settings.torque_offset;
                match self.mode {
                    CyclicMode::Torque => return limited(self.settings.target_torque + torque, limit),
                    CyclicMode::Velocity => Demand {
                        position: None,
                        velocity: self.settings.target_velocity + self.settings.velocity_offset,
                        torque,
                    },
                    CyclicMode::Position => Demand {
                        position: Some(line.position() / self.counts_per_radian),
                        velocity: line.velocity() / self.counts_per_radian + self.settings.velocity_offset,
                        torque,
                    },
                }
            }
        };
        let inertia = self.plant.parameters().inertia;
        let (position, velocity) = (self.measured(), self.plant.velocity());
        self.cascade.step(demand, position, velocity, inertia, limit, CONTROL_PERIOD)
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

    /// Demand less actual position in counts, while a position is followed.
    fn following_error(&self) -> Option<f64> {
        match &self.activity {
            Activity::Follow(line) if self.mode == CyclicMode::Position => {
                Some(line.position() - self.plant.position() * self.counts_per_radian)
            }
            _ => None,
        }
    }

    fn rests(&self) -> bool {
        let braked = match &self.activity {
            Activity::Brake(braking) => braking.velocity == 0.0,
            _ => true,
        };
        braked && self.plant.velocity().abs() < REST
    }

    /// The position as the encoder gives it, in rad.
    fn measured(&self) -> f64 {
        (self.plant.position() * self.counts_per_radian).floor() / self.counts_per_radian
    }

    fn target_position(&self) -> i32 {
        self.coe.dictionary().get(self.entries.target_position) as i32
    }

    /// A set-point is due: at SYNC0, or when a new one has come.
    fn sample_target(&mut self) {
        let target = self.target_position();
        let (synchronised, period) = (self.sync0.is_some(), self.settings.set_point_period);
        if let Activity::Follow(line) = &mut self.activity {
            if self.mode == CyclicMode::Position && (synchronised || target != line.target()) {
                line.aim(target, period);
            }
        }
    }

    /// Takes outputs and settings from the dictionary.
    fn read_settings(&mut self) {
        let (dictionary, entries) = (self.coe.dictionary(), &self.entries);
        let get = |entry| dictionary.get(entry);
        let number = |entry| dictionary.get(entry) as f64;
        let counts = |entry| dictionary.get(entry) as f64 / self.counts_per_radian;
        let per_mille = |entry| dictionary.get(entry) as f64 / 1000.0 * self.rated_torque;
        let slow = counts(entries.profile_deceleration);
        let quick = counts(entries.quick_stop_deceleration);
        let quick_stop_option = get(entries.quick_stop_option);
        let window = get(entries.following_error_window);
        let exponent = get(entries.interpolation_exponent) as i32;
        let interpolation = number(entries.interpolation_period) * 10_f64.powi(exponent);
        let sync0_cycle = self.sync0.map(|sync0| sync0.cycle);
        self.settings = Settings {
            controlword: Controlword(if self.operational { get(entries.controlword) as u16 } else { 0 }),
            following_error_window: (window != i64::from(u32::MAX)).then_some(window as f64),
            following_error_time_out: Duration::from_millis(get(entries.following_error_time_out) as u64),
            torque_limit: per_mille(entries.maximum_torque).min(self.plant.parameters().torque_limit),
            halt_deceleration: if get(entries.halt_option) == 2 { quick } else { slow },
            quick_stop_deceleration: if matches!(quick_stop_option, 1 | 5) { slow } else { quick },
            fault_deceleration: quick,
            quick_stop_holds: quick_stop_option >= 5,
            set_point_period: sync0_cycle.unwrap_or(Duration::from_secs_f64(interpolation)),
            target_velocity: counts(entries.target_velocity),
            target_torque: per_mille(entries.target_torque),
            velocity_offset: counts(entries.velocity_offset),
            torque_offset: per_mille(entries.torque_offset),
            load_torque: number(entries.load_torque) / 1000.0,
            power: get(entries.power) != 0,
        };
        let mode = ModeOfOperation::from_number(get(entries.mode) as i8).cyclic();
        let raised = get(entries.raise_fault) as u16;
        let raise_fault = entries.raise_fault;
        if let Some(mode) = mode.filter(|mode| *mode != self.mode) {
            self.mode = mode;
            // The set-points of another mode begin from where the shaft is.
            self.activity = Activity::Off;
        }
        if raised != 0 {
            self.coe.dictionary_mut().set(raise_fault, 0);
            self.fault.get_or_insert(raised);
        }
    }

    /// Puts actual values into the dictionary.
    fn show(&mut self) {
        let counts = self.plant.position() * self.counts_per_radian;
        let following_error = self.following_error();
        let torque = self.torque.torque / self.rated_torque * 1000.0;
        let statusword = self.statusword(following_error);
        let mode = ModeOfOperation::from(self.mode).number();
        let velocity = (self.plant.velocity() * self.counts_per_radian).round() as i32;
        let entries = &self.entries;
        let dictionary = self.coe.dictionary_mut();
        dictionary.set(entries.statusword, i64::from(statusword.0));
        dictionary.set(entries.mode_display, i64::from(mode));
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

impl Application for ServoDrive {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.coe.lengths()
    }

    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        self.coe.enter(change);
        self.operational = change.to == AlState::Op;
        self.sync0 = change.sync0.filter(|sync0| sync0.cycle_nanoseconds > 0).map(|sync0| Sync0 {
            cycle: Duration::from_nanos(u64::from(sync0.cycle_nanoseconds)),
            running: false,
        });
        if change.from == AlState::Op {
            if matches!(self.machine.state(), State::OperationEnabled | State::QuickStopActive) {
                self.fault.get_or_insert(COMMUNICATION_LOSS);
            }
            // What comes after does not begin with what was commanded before.
            for entry in
                [self.entries.controlword, self.entries.target_velocity, self.entries.target_torque]
            {
                self.coe.dictionary_mut().set(entry, 0);
            }
        }
        self.read_settings();
        Ok(())
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        self.run_until(now);
        if self.sync0.is_none_or(|sync0| !sync0.running) {
            self.exchange(outputs, inputs);
        } else {
            // SDOs still take effect; process data waits for SYNC0.
            self.read_settings();
        }
    }

    fn sync0(&mut self, event: Sync0Event, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        if let Some(sync0) = &mut self.sync0 {
            sync0.running = true;
        }
        self.run_until(event.now);
        self.exchange(outputs, inputs);
    }

    fn coe(&mut self, request: &[u8], replies: &mut Replies<'_>) -> bool {
        self.show();
        self.coe.serve(request, replies);
        true
    }

    fn poll_coe(&mut self, replies: &mut Replies<'_>) {
        self.coe.poll(replies);
    }
}

impl ServoDrive {
    /// Takes what is commanded now, and shows what is.
    fn exchange(&mut self, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        if let Some(outputs) = outputs {
            self.coe.take_outputs(outputs);
        }
        self.read_settings();
        self.sample_target();
        self.show();
        self.coe.put_inputs(inputs);
    }
}

fn earlier(now: Instant, by: Duration) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_sub(by.as_nanos() as u64))
}

/// Whether the command leads towards Operation enabled, for which the power stage takes its time.
fn leads_upwards(state: State, controlword: Controlword) -> bool {
    let below = matches!(state, State::SwitchOnDisabled | State::ReadyToSwitchOn | State::SwitchedOn);
    let command = Command::from_controlword(controlword, controlword);
    below && matches!(command, Some(Command::Shutdown | Command::SwitchOn | Command::EnableOperation))
}

/// The error register (0x1001) that goes with an error code: generic, and the kind (CiA 301, 7.5.2.2).
fn error_register(error_code: u16) -> u8 {
    const GENERIC: u8 = 1 << 0;
    let kind = match error_code >> 12 {
        0x2 => 1 << 1,
        0x3 => 1 << 2,
        0x4 => 1 << 3,
        0x7 if error_code == COMMUNICATION_LOSS => 1 << 4,
        0x8 if error_code >> 8 == 0x81 => 1 << 4,
        0x7 | 0x8 => 1 << 5,
        0xF => 1 << 7,
        _ => 0,
    };
    GENERIC | kind
}

#[cfg(test)]
mod tests;
