//! Activity of the power stage: by the state, the mode and the controlword, a torque for every
//! control period.

use core::time::Duration;

use ethercat::cia402::{Command, ModeOfOperation, State};

use super::super::CONTROL_PERIOD;
use super::super::FOLLOWING_ERROR;
use super::super::homing::Homing;
use super::super::profile::Profile;
use super::super::set_point::{Braking, Interpolation, nearest, wrapped};
use super::super::set_point::{Demand, LimitedTorque, limited};
use super::{REST, ServoAxis};
use crate::coe::ObjectDictionary;

/// Activity of the power stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Activity {
    /// No torque.
    Off,
    /// Follows set-points: the cyclic modes, and interpolated position.
    Follow(Interpolation),
    /// Makes its own way: profile position and profile velocity; interpolated position while it is
    /// not enabled.
    Profile(Profile),
    /// Profile torque: the demand, in N m.
    Torque(f64),
    /// Homing by the drive itself.
    Home(Homing),
    /// Slows down, then holds.
    Brake(Braking),
}

/// Task of the power stage in its state.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Task {
    Nothing,
    /// Work of the mode.
    Work,
    /// Stop with this deceleration, in rad/s^2.
    Stop(f64),
}

impl ServoAxis {
    /// Counts the time of a fault reaction. A further error of a faulted axis is shown, and has no
    /// state.
    pub(super) fn react(&mut self, state: State) {
        if state == State::FaultReactionActive {
            self.reaction_time += CONTROL_PERIOD;
        }
        if state.is_faulted() {
            self.reported = self.fault.take().or(self.reported);
        }
    }

    fn task(&self) -> Task {
        let stop = |deceleration: Option<f64>| deceleration.map_or(Task::Nothing, Task::Stop);
        match self.machine.state() {
            State::OperationEnabled if self.departure().is_some() => stop(self.departure()),
            State::OperationEnabled if self.settings.controlword.halt() => stop(self.settings.halt),
            State::OperationEnabled => Task::Work,
            State::QuickStopActive => stop(self.settings.quick_stop),
            State::FaultReactionActive => stop(self.settings.fault_reaction),
            _ => Task::Nothing,
        }
    }

    /// Deceleration before Disable operation or Shutdown leaves Operation enabled, if their option
    /// codes require it; `None` once the axis is at standstill.
    pub(super) fn departure(&self) -> Option<f64> {
        if self.machine.state() != State::OperationEnabled {
            return None;
        }
        let controlword = self.settings.controlword;
        let deceleration = match Command::from_controlword(controlword, controlword)? {
            Command::SwitchOn => self.settings.disable_operation,
            Command::Shutdown => self.settings.shutdown,
            _ => None,
        };
        let stopped = matches!(self.activity, Activity::Brake(_)) && self.rests();
        deceleration.filter(|_| !stopped)
    }

    pub(super) fn choose_activity(&mut self, dictionary: &ObjectDictionary) {
        let task = self.task();
        match task {
            Task::Nothing => {
                self.activity = Activity::Off;
                self.cascade.reset();
            }
            Task::Work if self.works() => {}
            Task::Work => self.begin(dictionary),
            Task::Stop(_) if matches!(self.activity, Activity::Brake(_)) => {}
            // A shaft that was not driven before is not driven now.
            Task::Stop(_)
                if self.activity == Activity::Off && self.machine.state() != State::OperationEnabled => {}
            Task::Stop(_) => {
                let (position, velocity) = (self.measured(), self.plant.velocity());
                self.activity = Activity::Brake(Braking { position, velocity });
            }
        }
    }

    /// True if the activity belongs to the mode.
    fn works(&self) -> bool {
        use ModeOfOperation as M;
        let interpolates = self.settings.controlword.enables_interpolation();
        match self.activity {
            Activity::Off | Activity::Brake(_) => false,
            Activity::Home(_) => self.mode == M::Homing,
            Activity::Torque(_) => self.mode == M::ProfileTorque,
            Activity::Profile(_) => match self.mode {
                M::InterpolatedPosition => !interpolates,
                mode => matches!(mode, M::ProfilePosition | M::ProfileVelocity),
            },
            Activity::Follow(_) => match self.mode {
                M::InterpolatedPosition => interpolates,
                mode => mode.cyclic().is_some(),
            },
        }
    }

    /// Begins the work of the mode at the present position and velocity.
    fn begin(&mut self, dictionary: &ObjectDictionary) {
        use ModeOfOperation as M;
        let enabled = self.settings.controlword.enables_interpolation();
        match self.mode {
            M::Homing => {
                let homing = Homing::at(self.measured(), self.plant.velocity(), self.homed);
                self.activity = Activity::Home(homing);
            }
            M::ProfileTorque => self.activity = Activity::Torque(self.torque.torque),
            M::InterpolatedPosition if enabled => self.follow(dictionary),
            M::ProfilePosition | M::ProfileVelocity | M::InterpolatedPosition => {
                let velocity = self.plant.velocity() * self.scale.units_per_radian;
                self.activity = Activity::Profile(Profile::at(self.counts(), velocity));
                self.following_error_time = Duration::ZERO;
            }
            _ => self.follow(dictionary),
        }
    }

    /// Starts to follow set-points from the present position.
    fn follow(&mut self, dictionary: &ObjectDictionary) {
        let position = self.counts();
        let mut line = Interpolation::at(position);
        if let Some(target) = self.set_point(dictionary) {
            // Refuses a target that would need a jump.
            let distance = nearest(target, position) - position;
            if self.settings.following_error_window.is_some_and(|window| distance.abs() > window) {
                self.fault.get_or_insert(FOLLOWING_ERROR);
            } else {
                line.aim(target, self.settings.set_point_period);
            }
        }
        self.following_error_time = Duration::ZERO;
        self.demanded = position;
        self.cascade.reset();
        self.activity = Activity::Follow(line);
    }

    /// Handshake of profile position mode; other modes and states know no set-points.
    pub(super) fn take_set_points(&mut self, dictionary: &ObjectDictionary) {
        let controlword = self.settings.controlword;
        let enabled = self.machine.state() == State::OperationEnabled;
        if !enabled || self.mode != ModeOfOperation::ProfilePosition {
            self.set_points.clear(controlword);
            return;
        }
        let position = match &self.activity {
            Activity::Profile(profile) => profile.position,
            _ => self.counts(),
        };
        let target = nearest(self.target_position(dictionary), position);
        let target = wrapped(self.settings.own_limits.destination(target, position));
        self.set_points.step(controlword, target, position);
    }

    /// Torque for this control period.
    pub(super) fn act(&mut self) -> LimitedTorque {
        let settings = &self.settings;
        let limit = settings.torque_limit;
        let inertia = self.plant.parameters().inertia;
        // Only braking uses the task.
        let task = if matches!(self.activity, Activity::Brake(_)) { self.task() } else { Task::Nothing };
        let demand = match &mut self.activity {
            Activity::Off => return LimitedTorque::default(),
            Activity::Torque(demand) => {
                let step = settings.torque_slope * CONTROL_PERIOD.as_secs_f64();
                *demand += (settings.target_torque - *demand).clamp(-step, step);
                return limited(*demand, limit);
            }
            Activity::Brake(braking) => {
                let deceleration = if let Task::Stop(deceleration) = task { deceleration } else { 0.0 };
                // The loops alone would lag behind a hard stop and then overshoot it.
                let torque = match braking.velocity {
                    0.0 => 0.0,
                    velocity => -(deceleration * inertia).copysign(velocity),
                };
                braking.advance(deceleration, CONTROL_PERIOD);
                Demand { position: Some(braking.position), velocity: braking.velocity, torque }
            }
            Activity::Home(homing) => {
                let (start, position) = (settings.controlword.homing_start(), self.plant.position());
                let home = homing.step(start, &settings.homing, position, &self.switches, CONTROL_PERIOD);
                if let Some(home) = home {
                    // The home offset is the position of the home; drives differ in its sign.
                    let counts = (home * self.scale.units_per_radian).floor();
                    self.origin = counts - settings.home_offset;
                }
                self.homed = homing.is_attained();
                let (position, velocity, acceleration) = homing.demand();
                Demand { position: Some(position), velocity, torque: acceleration * inertia }
            }
            Activity::Profile(profile) => {
                let bounds = &settings.profile;
                match self.mode {
                    ModeOfOperation::ProfilePosition => {
                        let on_set_point = settings.controlword.changes_on_set_point();
                        self.set_points.advance(profile, bounds, settings.end_velocity, on_set_point);
                    }
                    ModeOfOperation::ProfileVelocity => {
                        profile.turn(settings.profile_target_velocity, bounds, CONTROL_PERIOD);
                    }
                    _ => profile.turn(0.0, bounds, CONTROL_PERIOD),
                }
                let radians = |units: f64| units / self.scale.units_per_radian;
                let position = radians(profile.position + self.origin);
                Demand {
                    position: (self.mode != ModeOfOperation::ProfileVelocity).then_some(position),
                    velocity: radians(profile.velocity),
                    torque: radians(profile.acceleration) * inertia,
                }
            }
            Activity::Follow(line) => {
                line.advance(CONTROL_PERIOD);
                let torque = settings.torque_offset;
                let limits = &settings.own_limits;
                let units = self.scale.units_per_radian;
                let (counts, speed) =
                    (self.plant.position() * units - self.origin, self.plant.velocity() * units);
                match self.mode {
                    ModeOfOperation::CyclicSynchronousTorque => {
                        let wanted = settings.target_torque + torque;
                        if limits.brakes(speed, counts) {
                            let hardest = settings.own_limits.deceleration() / units * inertia;
                            return limited(-hardest.copysign(speed), limit);
                        }
                        let is_held = limits.is_beyond(wanted, counts);
                        return limited(if is_held { 0.0 } else { wanted }, limit);
                    }
                    ModeOfOperation::CyclicSynchronousVelocity => Demand {
                        position: None,
                        velocity: limits.velocity(
                            (settings.target_velocity + settings.velocity_offset) * units,
                            counts,
                        ) / units,
                        torque,
                    },
                    _ => {
                        let (wanted, seconds) = (line.position(), CONTROL_PERIOD.as_secs_f64());
                        let place = limits.place(wanted, self.demanded, seconds);
                        let velocity = if place == wanted {
                            line.velocity()
                        } else {
                            (place - self.demanded) / seconds
                        };
                        self.demanded = place;
                        Demand {
                            position: Some((place + self.origin) / units),
                            velocity: velocity / units + settings.velocity_offset,
                            torque,
                        }
                    }
                }
            }
        };
        let (position, velocity) = (self.measured(), self.plant.velocity());
        self.cascade.step(demand, position, velocity, inertia, limit, CONTROL_PERIOD)
    }

    /// Demand less actual position in counts, while a position is followed.
    pub(super) fn following_error(&self) -> Option<f64> {
        match &self.activity {
            Activity::Follow(_) if self.follows_positions() => Some(self.demanded - self.counts()),
            Activity::Profile(profile) if self.mode != ModeOfOperation::ProfileVelocity => {
                Some(profile.position - self.counts())
            }
            _ => None,
        }
    }

    /// Checks whether the target of the mode is reached and the shaft is at standstill.
    pub(super) fn watch_target(&mut self) {
        let settings = &self.settings;
        let velocity = self.plant.velocity() * self.scale.units_per_radian;
        let near = |target: f64| (target - self.counts()).abs() <= settings.position_window;
        let (inside, time) = match (&self.activity, self.mode) {
            (Activity::Profile(_), ModeOfOperation::ProfilePosition) => {
                (self.set_points.last().is_some_and(near), settings.position_window_time)
            }
            (Activity::Profile(_), ModeOfOperation::ProfileVelocity) => {
                let error = settings.profile_target_velocity - velocity;
                (error.abs() <= settings.velocity_window, settings.velocity_window_time)
            }
            (Activity::Torque(demand), _) => (*demand == settings.target_torque, Duration::ZERO),
            (Activity::Follow(line), ModeOfOperation::InterpolatedPosition) => {
                (near(line.end()), settings.position_window_time)
            }
            _ => (false, Duration::ZERO),
        };
        let stands = velocity.abs() <= settings.velocity_threshold;
        let stands_for = settings.velocity_threshold_time;
        self.reached = self.reached_dwell.step(inside, time);
        self.speed_is_zero = self.zero_dwell.step(stands, stands_for);
    }

    pub(super) fn rests(&self) -> bool {
        let braked = match &self.activity {
            Activity::Brake(braking) => braking.velocity == 0.0,
            _ => true,
        };
        braked && self.plant.velocity().abs() < REST
    }

    fn target_position(&self, dictionary: &ObjectDictionary) -> i32 {
        dictionary.get(self.entries.target_position) as i32
    }

    /// True of a mode that follows positions cycle by cycle.
    fn follows_positions(&self) -> bool {
        use ModeOfOperation as M;
        matches!(self.mode, M::CyclicSynchronousPosition | M::InterpolatedPosition)
    }

    /// Position that the mode follows cycle by cycle, if it follows one.
    fn set_point(&self, dictionary: &ObjectDictionary) -> Option<i32> {
        match self.mode {
            ModeOfOperation::InterpolatedPosition => {
                Some(dictionary.get(self.entries.interpolation_set_point) as i32)
            }
            _ => self.follows_positions().then(|| self.target_position(dictionary)),
        }
    }

    /// Takes a set-point: at SYNC0, or when a new one arrives.
    pub(super) fn sample_target(&mut self, dictionary: &ObjectDictionary) {
        let (synchronised, period) = (self.sync0_cycle.is_some(), self.settings.set_point_period);
        let target = self.set_point(dictionary);
        if let (Activity::Follow(line), Some(target)) = (&mut self.activity, target) {
            if synchronised || target != line.target() {
                line.aim(target, period);
            }
        }
    }
}
