//! Running drive: state machine, power stage, and the plant in time.

mod application;
mod show;

use core::f64::consts::TAU;
use core::time::Duration;

use ethercat::cia402::{
    Command, Controlword, ModeOfOperation, State, StateMachine, Surroundings, Transition,
};
use ethercat::time::Instant;
use ethercat::wire::coe::Emergency;

use super::control::{Cascade, Demand, LimitedTorque, limited};
use super::homing::Homing;
use super::objects::{self, Entries};
use super::plant::Plant;
use super::record::ServoRecord;
use super::set_point::{Braking, Interpolation, nearest};
use super::settings::{Scale, Settings};
use super::{
    CONTROL_PERIOD, FOLLOWING_ERROR, MAXIMUM_CATCH_UP, ServoDescription, UNDER_VOLTAGE, error_register,
};
use crate::application::Level;
use crate::application::description::{DescriptionError, not_negative, positive};
use crate::coe::{CoeDevice, ObjectDictionary};

/// A running servo drive.
#[derive(Clone, Debug)]
pub struct ServoDrive {
    coe: CoeDevice,
    entries: Entries,
    machine: StateMachine,
    plant: Plant,
    cascade: Cascade,
    activity: Activity,
    settings: Settings,
    scale: Scale,
    transition_time: Duration,
    /// Time until the power stage is ready for the next step.
    settling: Duration,
    time: Option<Instant>,
    operational: bool,
    /// Cycle of SYNC0, where the drive is synchronised to it, and `true` if an event has come.
    sync0: Option<Sync0>,
    mode: ModeOfOperation,
    limit_switches: Option<(f64, f64)>,
    /// Encoder counts at position 0, whole: homing moves it.
    origin: f64,
    homed: bool,
    fault: Option<u16>,
    following_error_time: Duration,
    reaction_time: Duration,
    torque: LimitedTorque,
    record: Option<ServoRecord>,
    /// Angle of the shaft in rad, for those that look at it.
    shaft: Level,
}

#[derive(Clone, Copy, Debug)]
struct Sync0 {
    cycle: Duration,
    running: bool,
}

/// Activity of the power stage.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Activity {
    /// No torque.
    Off,
    /// Follows set-points.
    Follow(Interpolation),
    /// Homing by the drive itself.
    Home(Homing),
    /// Slows down, then holds.
    Brake(Braking),
}

/// Speed below which the shaft rests, in rad/s.
const REST: f64 = 0.05;

/// Longest fault reaction: it ends then even if the shaft still turns.
const FAULT_REACTION_LIMIT: Duration = Duration::from_secs(2);

impl ServoDrive {
    /// A drive at rest, powered up in Not ready to switch on.
    ///
    /// # Errors
    /// [`DescriptionError`] with the number or the mapped object that is invalid.
    pub fn new(description: &ServoDescription) -> Result<Self, DescriptionError> {
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
            scale: Scale {
                counts_per_radian: f64::from(description.encoder_counts) / TAU,
                rated_torque: description.rated_torque,
                torque_limit: description.plant.torque_limit,
            },
            transition_time: description.transition_time,
            settling: description.transition_time,
            time: None,
            operational: false,
            sync0: None,
            mode: description.mode.into(),
            limit_switches: description.limit_switches,
            origin: 0.0,
            homed: false,
            fault: None,
            following_error_time: Duration::ZERO,
            reaction_time: Duration::ZERO,
            torque: LimitedTorque::default(),
            record: None,
            shaft: Level::default(),
        };
        drive.read_settings();
        drive.show();
        Ok(drive)
    }

    /// Shows the angle of its shaft (rad) as `shaft`, to encoders that turn with it.
    #[must_use]
    pub fn with_shaft(self, shaft: Level) -> Self {
        shaft.set(self.plant.position());
        Self { shaft, ..self }
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

    /// The motor and its load.
    #[must_use]
    pub fn plant(&self) -> &Plant {
        &self.plant
    }

    /// State of the CiA 402 state machine.
    #[must_use]
    pub fn state(&self) -> State {
        self.machine.state()
    }

    /// Records the inputs of the drive from now on, without end; a second call returns the same record.
    pub fn record(&mut self) -> ServoRecord {
        self.record.get_or_insert_default().clone()
    }

    /// Runs the plant and the loops up to `now`.
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

    /// Runs one control period.
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

    /// Shows an error, or its end, in 0x603F and 0x1001, and sends the emergency.
    fn report(&mut self, error_code: u16, error_register: u8) {
        let entries = &self.entries;
        let (code, register) = (entries.error_code, entries.error_register);
        self.coe.dictionary_mut().set(code, i64::from(error_code));
        self.coe.dictionary_mut().set(register, i64::from(error_register));
        self.coe.server_mut().send(Emergency { error_code, error_register, data: [0; 5] });
    }

    fn choose_activity(&mut self) {
        let halt = self.settings.controlword.halt();
        let homing = self.mode == ModeOfOperation::Homing;
        let follows = match self.activity {
            Activity::Follow(_) => !homing,
            Activity::Home(_) => homing,
            _ => false,
        };
        let brakes = matches!(self.activity, Activity::Brake(_));
        match self.machine.state() {
            State::OperationEnabled if !halt && !follows && homing => {
                let homing = Homing::at(self.measured(), self.plant.velocity(), self.homed);
                self.activity = Activity::Home(homing);
            }
            State::OperationEnabled if !halt && !follows => self.follow(),
            State::OperationEnabled if !halt => {}
            State::OperationEnabled | State::QuickStopActive | State::FaultReactionActive => {
                if self.activity == Activity::Off && self.machine.state() != State::OperationEnabled {
                    // A shaft that was not driven before is not driven now.
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

    /// Starts to follow set-points from the present position.
    fn follow(&mut self) {
        let position = self.counts();
        let mut line = Interpolation::at(position);
        let target = self.target_position();
        if self.mode == ModeOfOperation::CyclicSynchronousPosition {
            // Refuses a target that would need a jump.
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

    /// Torque for this control period.
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
            Activity::Home(homing) => {
                let (start, position) = (self.settings.controlword.homing_start(), self.plant.position());
                let settings = &self.settings.homing;
                let home = homing.step(start, settings, position, self.limit_switches, CONTROL_PERIOD);
                if let Some(home) = home {
                    // The home offset is the position of the home; drives differ in its sign.
                    let counts = (home * self.scale.counts_per_radian).floor();
                    self.origin = counts - self.settings.home_offset;
                }
                self.homed = homing.is_attained();
                let (position, velocity, acceleration) = homing.demand();
                let torque = acceleration * self.plant.parameters().inertia;
                Demand { position: Some(position), velocity, torque }
            }
            Activity::Follow(line) => {
                line.advance(CONTROL_PERIOD);
                let torque = self.settings.torque_offset;
                match self.mode {
                    ModeOfOperation::CyclicSynchronousTorque => {
                        return limited(self.settings.target_torque + torque, limit);
                    }
                    ModeOfOperation::CyclicSynchronousVelocity => Demand {
                        position: None,
                        velocity: self.settings.target_velocity + self.settings.velocity_offset,
                        torque,
                    },
                    _ => Demand {
                        position: Some((line.position() + self.origin) / self.scale.counts_per_radian),
                        velocity: line.velocity() / self.scale.counts_per_radian
                            + self.settings.velocity_offset,
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
            Activity::Follow(line) if self.mode == ModeOfOperation::CyclicSynchronousPosition => {
                Some(line.position() - self.counts())
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

    /// Position to be shown, in counts, before it is cut to whole ones and wraps.
    fn counts(&self) -> f64 {
        self.plant.position() * self.scale.counts_per_radian - self.origin
    }

    /// Position from the encoder, in rad.
    fn measured(&self) -> f64 {
        (self.plant.position() * self.scale.counts_per_radian).floor() / self.scale.counts_per_radian
    }

    fn target_position(&self) -> i32 {
        self.coe.dictionary().get(self.entries.target_position) as i32
    }

    /// Takes a set-point: at SYNC0, or when a new one has come.
    fn sample_target(&mut self) {
        let target = self.target_position();
        let (synchronised, period) = (self.sync0.is_some(), self.settings.set_point_period);
        if let Activity::Follow(line) = &mut self.activity {
            if self.mode == ModeOfOperation::CyclicSynchronousPosition
                && (synchronised || target != line.target())
            {
                line.aim(target, period);
            }
        }
    }

    /// Reads commands and settings from the dictionary.
    fn read_settings(&mut self) {
        let sync0_cycle = self.sync0.map(|sync0| sync0.cycle);
        self.settings = Settings::read(self.coe.dictionary(), &self.entries, &self.scale, sync0_cycle);
        if !self.operational {
            self.settings.controlword = Controlword(0);
        }
        if let Some(mode) = self.settings.mode.filter(|mode| *mode != self.mode) {
            self.mode = mode;
            // The set-points of another mode start at the present position.
            self.activity = Activity::Off;
        }
        if self.settings.raised_fault != 0 {
            self.coe.dictionary_mut().set(self.entries.raise_fault, 0);
            self.fault.get_or_insert(self.settings.raised_fault);
        }
    }
}

fn earlier(now: Instant, by: Duration) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_sub(by.as_nanos() as u64))
}

/// True if the command leads towards Operation enabled, for which the power stage takes its time.
fn leads_upwards(state: State, controlword: Controlword) -> bool {
    let below = matches!(state, State::SwitchOnDisabled | State::ReadyToSwitchOn | State::SwitchedOn);
    let command = Command::from_controlword(controlword, controlword);
    below && matches!(command, Some(Command::Shutdown | Command::SwitchOn | Command::EnableOperation))
}
