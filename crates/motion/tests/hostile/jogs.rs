//! Requests of a jog, honest and hostile ones, and conditions that hold an axis meanwhile.

use fastrand::Rng;
use onbeat_motion::supervision::{Jog, JogLimits, Seen, Settings, StopReason, Supervised};
use onbeat_motion::{NewtonMetres, RadiansPerSecond};

/// Requests that change now and then.
pub(super) struct Jogs {
    limits: JogLimits,
    /// Axes of a trial in which nothing is jogged.
    never: bool,
    now: Seen,
    /// A jog moves the axis, and its request has not ended since.
    lasts: bool,
    /// The set-point before was one at standstill.
    stood: bool,
}

impl Jogs {
    pub(super) fn any(rng: &mut Rng, settings: &Settings) -> (Self, JogLimits) {
        let share = [0.02, 0.1, 0.1, 0.7, 1.0][rng.usize(..5)];
        let velocity = RadiansPerSecond(settings.limits.velocity.0 * share);
        let limits = JogLimits { velocity, torque: NewtonMetres(0.3) };
        let never = rng.u32(..3) == 0;
        (Self { limits, never, now: Seen::default(), lasts: false, stood: true }, limits)
    }

    /// Inputs of supervision in this cycle.
    pub(super) fn look(&mut self, rng: &mut Rng, seen: Seen) -> Seen {
        if self.never {
            return seen;
        }
        let now = &mut self.now;
        if rng.u32(..60) == 0 {
            let v = self.limits.velocity.0;
            let wild = [f64::NAN, f64::INFINITY, -1e300, 0.0, v, -v, 2.0 * v, -0.3 * v];
            let velocity = RadiansPerSecond(wild[rng.usize(..wild.len())]);
            let permitted = rng.u32(..6) > 0;
            now.jog = (rng.u32(..4) > 0).then_some(Jog { velocity, permitted });
        }
        if rng.u32(..300) == 0 {
            (now.set_up, now.not_homed) = (rng.u32(..3) == 0, rng.u32(..4) == 0);
        }
        Seen { jog: now.jog, set_up: now.set_up, not_homed: now.not_homed, ..seen }
    }

    /// Compares a set-point with the limits of a jog. True while a jog moves the axis, and has to
    /// keep the limits of a source of set-points; its end brakes as a stop does.
    pub(super) fn judge(&mut self, seen: &Seen, supervised: &Supervised) -> Result<bool, String> {
        let is_jog = supervised.reason == Some(StopReason::Jog);
        let asks = seen.jog.is_some_and(|it| it.permitted);
        let speed = supervised.setpoint.velocity.0.abs();
        self.lasts = is_jog && asks && (self.lasts || self.stood);
        self.stood = speed == 0.0;
        if is_jog && speed > self.limits.velocity.0 * (1.0 + 1e-5) + 1e-5 {
            return Err(format!("a jog at {speed} rad/s"));
        }
        Ok(self.lasts)
    }
}
