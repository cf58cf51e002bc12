//! Plant of the drive: a motor with its load, turning against friction.
//!
//! Encoder of an axis: what the drive knows of the position after a time without power.

use core::f64::consts::TAU;
use core::time::Duration;

/// Parameters of the motor and its load, at the motor shaft.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlantParameters {
    /// Inertia of rotor and load, in kg m^2; above 0.
    pub inertia: f64,
    /// Viscous friction, in N m s/rad; 0 or more.
    pub viscous_friction: f64,
    /// Coulomb friction, in N m; 0 or more.
    pub coulomb_friction: f64,
    /// Largest torque of the motor in either direction, in N m; above 0.
    pub torque_limit: f64,
}

impl Default for PlantParameters {
    /// A motor of about 750 W with a load of twice its own inertia.
    fn default() -> Self {
        Self { inertia: 5e-4, viscous_friction: 1e-3, coulomb_friction: 0.02, torque_limit: 7.2 }
    }
}

/// State of the moving parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plant {
    parameters: PlantParameters,
    position: f64,
    velocity: f64,
    braked: bool,
}

impl Plant {
    /// A plant at standstill at `position` (rad).
    #[must_use]
    pub const fn new(parameters: PlantParameters, position: f64) -> Self {
        Self { parameters, position, velocity: 0.0, braked: false }
    }

    /// Parameters of the plant.
    #[must_use]
    pub const fn parameters(&self) -> &PlantParameters {
        &self.parameters
    }

    /// Angle of the shaft, in rad.
    #[must_use]
    pub const fn position(&self) -> f64 {
        self.position
    }

    /// Speed of the shaft, in rad/s.
    #[must_use]
    pub const fn velocity(&self) -> f64 {
        self.velocity
    }

    /// Turns the shaft by `angle` (rad) from outside, at standstill.
    pub fn displace(&mut self, angle: f64) {
        self.position += angle;
        self.velocity = 0.0;
    }

    /// Sets or releases the brake at the shaft: friction of twice the motor's torque.
    pub fn set_brake(&mut self, braked: bool) {
        self.braked = braked;
    }

    /// Turns for `time` under the motor's `torque` against `load_torque` (both N m; a positive load
    /// brakes positive motion).
    ///
    /// Symplectic Euler: the new velocity moves the position. Viscous friction is taken implicitly,
    /// and Coulomb friction stops the shaft but never reverses it, so that the integration is
    /// stable at any step.
    pub fn advance(&mut self, torque: f64, load_torque: f64, time: Duration) {
        let PlantParameters { inertia, viscous_friction, coulomb_friction, torque_limit } = self.parameters;
        let time = time.as_secs_f64();
        let torque = torque.clamp(-torque_limit, torque_limit) - load_torque;
        let driven = (self.velocity + time * torque / inertia) / (1.0 + time * viscous_friction / inertia);
        let friction = if self.braked { coulomb_friction + BRAKE * torque_limit } else { coulomb_friction };
        let braking = time * friction / inertia;
        self.velocity = if driven.abs() <= braking { 0.0 } else { driven - braking.copysign(driven) };
        self.position += self.velocity * time;
    }
}

/// Torque of the brake, in torques of the motor.
const BRAKE: f64 = 2.0;

/// Knowledge of an encoder after a time without power.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Encoder {
    /// Every position, however far the shaft has turned.
    #[default]
    Unlimited,
    /// No encoder memory: the drive continues with the count from before the loss of power.
    Incremental,
    /// Positions within this many turns of the motor; above 0. After a restart the drive counts
    /// from -1/2 to +1/2 of this range.
    Absolute {
        /// Turns that the encoder distinguishes.
        turns: f64,
    },
}

/// Encoder of one axis, and the motion that its drive does not know of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    pub(super) encoder: Encoder,
    /// Angle at which the drive last counted, in rad.
    counted: f64,
    /// Part of the true angle that the count lacks, in rad.
    unseen: f64,
    restarts: bool,
}

impl Counter {
    pub(super) fn at(angle: f64) -> Self {
        Self { counted: angle, ..Self::default() }
    }

    /// The drive has power, and sees the shaft at `angle` (rad).
    pub(super) fn sees(&mut self, angle: f64) {
        if !self.restarts {
            self.counted = angle;
        }
    }

    /// The drive has power again: motion until [`end_restart`](Self::end_restart) is of the time
    /// without.
    pub(super) fn restart(&mut self) {
        self.restarts = true;
    }

    /// Angle (rad) by which the count changes because the drive was without power, once it has
    /// restarted; the shaft is at `angle`.
    pub(super) fn end_restart(&mut self, angle: f64) -> Option<f64> {
        if !core::mem::take(&mut self.restarts) {
            return None;
        }
        let before = self.unseen;
        match self.encoder {
            Encoder::Unlimited => {}
            Encoder::Incremental => self.unseen += angle - self.counted,
            Encoder::Absolute { turns } => {
                let range = turns * TAU;
                self.unseen = range * (angle / range).round();
            }
        }
        self.counted = angle;
        Some(before - self.unseen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_micros(125);

    #[test]
    fn speed_settles_where_friction_balances_the_torque() {
        let parameters = PlantParameters::default();
        let mut plant = Plant::new(parameters, 0.0);
        for _ in 0..80_000 {
            plant.advance(0.12, 0.0, STEP);
        }
        let expected = (0.12 - parameters.coulomb_friction) / parameters.viscous_friction;
        assert!((plant.velocity() - expected).abs() < 1e-3 * expected, "{}", plant.velocity());
    }

    #[test]
    fn coulomb_friction_holds_and_stops() {
        let mut plant = Plant::new(PlantParameters::default(), 1.0);
        plant.advance(0.0199, 0.0, STEP);
        assert_eq!(plant.velocity(), 0.0);
        plant.advance(7.0, 0.0, STEP);
        assert!(plant.velocity() > 0.0);
        for _ in 0..80_000 {
            plant.advance(0.0, 0.0, STEP);
            assert!(plant.velocity() >= 0.0);
        }
        assert_eq!(plant.velocity(), 0.0);
    }

    #[test]
    fn the_motor_gives_no_more_than_its_limit() {
        let parameters =
            PlantParameters { coulomb_friction: 0.0, viscous_friction: 0.0, ..Default::default() };
        let mut plant = Plant::new(parameters, 0.0);
        plant.advance(1000.0, 0.0, STEP);
        let expected = parameters.torque_limit / parameters.inertia * STEP.as_secs_f64();
        assert!((plant.velocity() - expected).abs() < 1e-9);
    }

    #[test]
    fn long_steps_stay_stable() {
        let parameters = PlantParameters { viscous_friction: 10.0, ..Default::default() };
        let mut plant = Plant::new(parameters, 0.0);
        for _ in 0..100 {
            plant.advance(7.2, 0.0, Duration::from_secs(1));
            assert!(plant.velocity() <= 0.72 + 1e-9);
        }
    }
}
