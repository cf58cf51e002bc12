//! One coordinate on its way to a target, planned by `rsruckig`.

use core::mem;

use rsruckig::prelude::*;

/// Bounds of one coordinate, in its unit; all finite and above 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) velocity: f64,
    pub(super) acceleration: f64,
    pub(super) jerk: f64,
}

impl Bounds {
    /// The first that means nothing: its name, its value.
    pub(super) fn wrong(&self) -> Option<(&'static str, f64)> {
        [("velocity", self.velocity), ("acceleration", self.acceleration), ("jerk", self.jerk)]
            .into_iter()
            .find(|(_, bound)| !(bound.is_finite() && *bound > 0.0))
    }

    /// Never less than a motion over `distance` takes that changes its velocity by `change`; about
    /// right for long ones.
    fn time(&self, distance: f64, change: f64) -> f64 {
        distance.abs() / self.velocity
            + (change.abs() + self.velocity) / self.acceleration
            + 2.0 * self.acceleration / self.jerk
    }
}

/// A coordinate at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moment {
    pub(super) position: f64,
    pub(super) velocity: f64,
    pub(super) acceleration: f64,
}

/// Target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Aim {
    Position { position: f64, velocity: f64 },
    Velocity(f64),
}

/// Reason that there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlan {
    /// It would take longer than [`LONGEST`].
    TooLong,
    /// The library found none.
    NotFound,
}

/// The present motion of the coordinate, and space for the next one.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) bounds: Bounds,
    calculator: Ruckig<1, Refuse>,
    input: InputParameter<1>,
    now: PlannedWay,
    next: PlannedWay,
    elapsed: f64,
    /// The library's unit of time, s: with it the largest acceleration is 1. Its tolerances are
    /// absolute, and hold for numbers about 1.
    unit: f64,
}

/// A trajectory that begins at `origin`: the library counts from zero, so that an axis that has
/// turned for days is planned as exactly as a new one.
#[derive(Clone, Debug)]
struct PlannedWay {
    trajectory: Trajectory<1>,
    origin: f64,
    aim: Aim,
    duration: f64,
}

impl Plan {
    /// At standstill at zero.
    pub(super) fn new(bounds: Bounds) -> Self {
        let unit = bounds.acceleration.sqrt().recip();
        let mut input = InputParameter::new(None);
        limit(&mut input, bounds, unit);
        let way = PlannedWay {
            trajectory: Trajectory::new(None),
            origin: 0.0,
            aim: Aim::Position { position: 0.0, velocity: 0.0 },
            duration: 0.0,
        };
        let calculator = Ruckig::new(None, 1.0);
        Self { bounds, calculator, input, now: way.clone(), next: way, elapsed: 0.0, unit }
    }

    /// Sets other bounds, and standstill at `position`.
    pub(super) fn stand_within(&mut self, bounds: Bounds, position: f64) {
        self.unit = bounds.acceleration.sqrt().recip();
        limit(&mut self.input, bounds, self.unit);
        self.bounds = bounds;
        self.stand_at(position);
    }

    /// Standstill at `position`, now and later.
    pub(super) fn stand_at(&mut self, position: f64) {
        self.now.aim = Aim::Position { position, velocity: 0.0 };
        self.now.duration = 0.0;
        self.elapsed = 0.0;
    }

    /// Plans from `from` to `aim`, no shorter than `shortest`; [`Plan::take_up`] begins it. Returns
    /// its duration.
    pub(super) fn prepare(&mut self, from: Moment, aim: Aim, shortest: Option<f64>) -> Result<f64, NoPlan> {
        self.prepare_within(self.bounds, from, aim, shortest)
    }

    /// The same, within other bounds: of velocity, lower ones.
    pub(super) fn prepare_within(
        &mut self,
        bounds: Bounds,
        from: Moment,
        aim: Aim,
        shortest: Option<f64>,
    ) -> Result<f64, NoPlan> {
        let (input, unit) = (&mut self.input, self.unit);
        input.max_velocity[0] = bounds.velocity * unit;
        input.current_position[0] = 0.0;
        input.current_velocity[0] = from.velocity * unit;
        input.current_acceleration[0] = from.acceleration * unit * unit;
        input.minimum_duration = shortest.map(|time| time / unit);
        let (distance, velocity) = match aim {
            Aim::Position { position, velocity } => {
                input.control_interface = ControlInterface::Position;
                (position - from.position, velocity)
            }
            Aim::Velocity(velocity) => {
                input.control_interface = ControlInterface::Velocity;
                (0.0, velocity)
            }
        };
        let time = bounds.time(distance, velocity - from.velocity);
        if !(time <= LONGEST) {
            return Err(NoPlan::TooLong);
        }
        let way = &mut self.next;
        // A distance of exactly 2 a^3/j^2, for example, lies between two shapes of the library's
        // motions, and rounding can leave it in neither: round numbers do that. A tiny offset finds
        // the motion; its end is exact all the same.
        let duration = BESIDE.into_iter().find_map(|beside| {
            input.target_position[0] = distance * (1.0 - beside);
            let of_velocity = if matches!(aim, Aim::Velocity(_)) { beside } else { 0.0 };
            input.target_velocity[0] = velocity * unit * (1.0 - of_velocity);
            match self.calculator.calculate(input, &mut way.trajectory) {
                Ok(RuckigResult::Working | RuckigResult::Finished) => {}
                Ok(_) | Err(_) => return None,
            }
            let duration = way.trajectory.get_duration() * unit;
            let end = at(&way.trajectory, unit, duration);
            let sound = duration.is_finite() && duration >= 0.0 && end.position.is_finite();
            (sound && keeps_to(&way.trajectory, input)).then_some(duration)
        });
        let duration = duration.ok_or(NoPlan::NotFound)?;
        (way.origin, way.aim, way.duration) = (from.position, aim, duration);
        Ok(duration)
    }

    /// Begins what was prepared.
    pub(super) fn take_up(&mut self) {
        mem::swap(&mut self.now, &mut self.next);
        self.elapsed = 0.0;
    }

    /// Time passes.
    pub(super) fn advance(&mut self, time: f64) {
        self.elapsed += time;
    }

    /// State now.
    pub(super) fn moment(&self) -> Moment {
        self.now.at(self.unit, self.elapsed)
    }

    /// Time until it arrives; 0 if it has.
    pub(super) fn remaining(&self) -> f64 {
        (self.now.duration - self.elapsed).max(0.0)
    }
}

impl PlannedWay {
    fn at(&self, unit: f64, elapsed: f64) -> Moment {
        let beyond = elapsed - self.duration;
        if beyond < 0.0 {
            let moment = at(&self.trajectory, unit, elapsed);
            return Moment { position: self.origin + moment.position, ..moment };
        }
        // Once there it is exact: the library ends within its tolerance.
        let (position, velocity) = match self.aim {
            Aim::Position { position, velocity } => (position, velocity),
            Aim::Velocity(velocity) => {
                (self.origin + at(&self.trajectory, unit, self.duration).position, velocity)
            }
        };
        Moment { position: position + velocity * beyond, velocity, acceleration: 0.0 }
    }
}

fn limit(input: &mut InputParameter<1>, bounds: Bounds, unit: f64) {
    input.max_velocity[0] = bounds.velocity * unit;
    input.max_acceleration[0] = 1.0;
    input.max_jerk[0] = bounds.jerk * unit.powi(3);
}

fn at(trajectory: &Trajectory<1>, unit: f64, time: f64) -> Moment {
    let mut moment = Moment::default();
    trajectory.state_to_integrate_from(
        time / unit,
        &mut 0,
        |_, time, position, velocity, acceleration, jerk| {
            let (position, velocity, acceleration) =
                rsruckig::util::integrate(time, position, velocity, acceleration, jerk);
            moment =
                Moment { position, velocity: velocity / unit, acceleration: acceleration / (unit * unit) };
        },
    );
    moment
}

/// True if a trajectory keeps to the jerk and, once it has braked to its bounds, to the
/// acceleration.
fn keeps_to(trajectory: &Trajectory<1>, bounds: &InputParameter<1>) -> bool {
    let rounding = 1.0 + 1e-6;
    trajectory.get_profiles().iter().flat_map(|profiles| profiles.iter()).all(|profile| {
        let mut jerks = profile.j.iter().chain(&profile.brake.j);
        jerks.all(|found| found.abs() <= bounds.max_jerk[0] * rounding)
            && profile.a.iter().all(|found| found.abs() <= bounds.max_acceleration[0] * rounding)
    })
}

/// The library's errors without their words: they would be a second allocation.
#[derive(Clone, Debug)]
struct Refuse;

impl RuckigErrorHandler for Refuse {
    fn handle_validation_error(_: &str) -> Result<(), RuckigError> {
        Err(RuckigError::ValidationError(String::new()))
    }

    fn handle_calculator_error(_: &str) -> Result<(), RuckigError> {
        Err(RuckigError::CalculatorError(String::new()))
    }
}

/// Offsets from a target that the library finds no motion to, tried in turn: parts of the target,
/// beginning with none.
const BESIDE: [f64; 4] = [0.0, 1e-9, -1e-9, 1e-7];

/// The library's own bound for the duration of a plan, s.
pub(super) const LONGEST: f64 = 7.6e3;
