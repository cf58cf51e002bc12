//! Limits of position, velocity, acceleration and jerk, looked at from outside.

use onbeat_motion::supervision::{CyclicMode, Limits, Settings, Supervised};
use onbeat_motion::{Radians, Seconds};

/// Set-points sent to one axis: the last positions (csp) or velocities (csv), the newest first.
pub(super) struct Oracle {
    limits: Limits,
    is_velocity: bool,
    period: f64,
    sent: [f64; 4],
    /// Number of differences since the source had the axis: only these count.
    free: usize,
}

impl Oracle {
    pub(super) fn new(settings: &Settings, period: Seconds) -> Self {
        let is_velocity = settings.mode.cyclic() == CyclicMode::Velocity;
        Self { limits: settings.limits, is_velocity, period: period.0, sent: [0.0; 4], free: 0 }
    }

    pub(super) fn look(
        &mut self,
        supervised: &Supervised,
        stopped: bool,
        actual: Radians,
    ) -> Result<(), String> {
        let setpoint = supervised.setpoint;
        let now = if self.is_velocity { setpoint.velocity.0 } else { setpoint.position.0 };
        self.sent = [now, self.sent[0], self.sent[1], self.sent[2]];
        self.free = if stopped { 0 } else { self.free + 1 };
        let [a, b, c, d] = self.sent;
        let t = self.period;
        let (velocity, acceleration, jerk) = match self.is_velocity {
            true => (a, (a - b) / t, (a - 2.0 * b + c) / (t * t)),
            false => ((a - b) / t, (a - 2.0 * b + c) / (t * t), (a - 3.0 * b + 3.0 * c - d) / (t * t * t)),
        };
        // Positions nearer than this are the same; a velocity is known to as much in a cycle.
        let rounding = if self.is_velocity { self.limits.velocity.0 * 4e-7 / t } else { 9e-8 / (t * t) };
        let highest = match stopped {
            true => self.limits.deceleration.0,
            false => self.limits.acceleration.0,
        };
        let check = |name: &str, found: f64, limit: f64| match found.abs() <= limit {
            true => Ok(()),
            false => Err(format!("{name}: {found}, limit {limit}; sent {:?}", self.sent)),
        };
        if !a.is_finite() {
            return Err(format!("sent {a}"));
        }
        check("velocity", velocity, self.limits.velocity.0 * (1.0 + 1e-5) + 2e-9 / t)?;
        check("acceleration", acceleration, highest * 1.0101 + rounding)?;
        // A stop has no limit of jerk; after it set-points begin at standstill.
        if self.free > self.settles() && self.limits.written.jerk {
            check("jerk", jerk, self.limits.jerk.0 * 1.0101 + rounding / t)?;
        }
        let Some((lowest, highest)) = self.limits.position else { return Ok(()) };
        let place = if self.is_velocity { actual.0 } else { a };
        if place < lowest.0 - 1e-8 || place > highest.0 + 1e-8 {
            return Err(format!("position: {place}, limits {lowest} to {highest}"));
        }
        Ok(())
    }

    /// Differences that reach back into a stop.
    fn settles(&self) -> usize {
        if self.is_velocity { 2 } else { 3 }
    }
}
