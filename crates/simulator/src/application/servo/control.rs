//! Control loops of the drive: from set-points to torque.

use core::time::Duration;

/// Demand of the loops, in rad, rad/s and N m.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Demand {
    /// `None` where only the velocity counts.
    pub(super) position: Option<f64>,
    pub(super) velocity: f64,
    /// Feed-forward torque, added to the loops' torque.
    pub(super) torque: f64,
}

/// A position loop (P) over a velocity loop (PI), scaled by the inertia so that one tuning fits all
/// plants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cascade {
    integral: f64,
}

/// Torque, and `true` if the limit reduced it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LimitedTorque {
    pub(super) torque: f64,
    pub(super) limited: bool,
}

/// Gain of the position loop, 1/s.
const POSITION_GAIN: f64 = 150.0;

/// Gain of the velocity loop over the inertia, 1/s: a bandwidth of about 130 Hz.
const VELOCITY_GAIN: f64 = 800.0;

/// Inverse of the velocity loop's reset time, 1/s.
const RESET_RATE: f64 = 60.0;

impl Cascade {
    /// Clears the integral, as when the power stage is switched on.
    pub(super) fn reset(&mut self) {
        self.integral = 0.0;
    }

    /// Torque for this control period.
    pub(super) fn step(
        &mut self,
        demand: Demand,
        position: f64,
        velocity: f64,
        inertia: f64,
        limit: f64,
        time: Duration,
    ) -> LimitedTorque {
        let correction = demand.position.map_or(0.0, |wanted| POSITION_GAIN * (wanted - position));
        let error = demand.velocity + correction - velocity;
        let proportional = inertia * VELOCITY_GAIN * error;
        let wanted = proportional + self.integral + demand.torque;
        let torque = limited(wanted, limit);
        // The integral is held at the limit, or it would have to unwind afterwards.
        if !torque.limited {
            self.integral += inertia * VELOCITY_GAIN * RESET_RATE * error * time.as_secs_f64();
        }
        torque
    }
}

/// `wanted`, clamped to `limit` in either direction.
pub(super) fn limited(wanted: f64, limit: f64) -> LimitedTorque {
    let torque = wanted.clamp(-limit, limit);
    LimitedTorque { torque, limited: torque != wanted }
}
