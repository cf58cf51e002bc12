//! Sources of set-points: planned, careless and hostile ones.
//!
//! Limits of position, velocity, acceleration and jerk, looked at from outside.
//!
//! Requests of a jog, honest and hostile ones, and conditions that hold an axis meanwhile.

use fastrand::Rng;
use onbeat_motion::online::{AxisLimits, OnlineMotion, Synchronisation, Target};
use onbeat_motion::supervision::{
    CyclicMode, Jog, JogLimits, Limits, Seen, Settings, StopReason, Supervised,
};
use onbeat_motion::{
    AxisFeedback, AxisPhase, AxisSetpoint, NewtonMetres, Radians, RadiansPerSecond, Seconds,
    TrajectoryPoint,
};

/// A source of set-points that changes its way now and then.
pub(super) struct Source {
    settings: Settings,
    period: Seconds,
    motion: OnlineMotion,
    way: Way,
    left: u32,
    /// Last set-point: position or velocity.
    at: f64,
    number: u32,
}

#[derive(Clone, Copy)]
enum Way {
    /// Planned, with targets that change and may be beyond anything.
    Planned,
    Still,
    /// The same speed at once: of the limit, or a little beyond.
    Rush(f64),
    /// Accelerates within its limits until something stops it.
    Pull(f64),
    /// To and fro.
    Flip(f64),
    Noise(f64),
    /// A step now and then.
    Step(f64),
    /// NaN, infinite, huge.
    Wild,
}

impl Source {
    pub(super) fn new(rng: &mut Rng, settings: &Settings, period: Seconds) -> Self {
        let limits = settings.limits;
        // Some planners know other limits than the axis has.
        let eager = [1.0, 1.0, 1.0, 3.0][rng.usize(..4)];
        let limits = AxisLimits {
            velocity: limits.velocity,
            acceleration: limits.acceleration * eager,
            jerk: limits.jerk * eager,
        };
        let motion = OnlineMotion::new(&[limits], Synchronisation::Independent).unwrap();
        Self { settings: *settings, period, motion, way: Way::Still, left: 0, at: 0.0, number: 0 }
    }

    pub(super) fn next(&mut self, rng: &mut Rng, shown: &AxisFeedback) -> AxisSetpoint {
        let is_velocity = self.settings.mode.cyclic() == CyclicMode::Velocity;
        if let AxisPhase::HoldingAt(place) = shown.phase {
            self.at = if is_velocity { 0.0 } else { place.0 };
            self.begin(place, 0.0);
        }
        if self.left == 0 {
            self.left = rng.u32(1..400);
            self.way = self.any_way(rng);
            if matches!(self.way, Way::Planned) {
                let (place, velocity) =
                    if is_velocity { (0.0, self.at) } else { (self.at, shown.velocity.0) };
                let most = self.settings.limits.velocity.0;
                self.begin(Radians(place), velocity.clamp(-most, most));
            }
        }
        self.left -= 1;
        self.number = self.number.wrapping_add(1);
        let limits = self.settings.limits;
        let side = if self.number % 2 == 0 { 1.0 } else { -1.0 };
        let unit = if is_velocity { limits.velocity.0 } else { limits.velocity.0 * self.period.0 };
        let mut wild = None;
        match self.way {
            Way::Still => {}
            Way::Planned => {
                if rng.u32(..150) == 0 {
                    let _ = self.motion.aim_axis(0, self.any_target(rng));
                }
                let point = self.motion.advance(self.period)[0];
                self.at = if is_velocity { point.velocity.0 } else { point.position.0 };
            }
            Way::Rush(speed) if is_velocity => self.at = speed * limits.velocity.0,
            Way::Rush(speed) => self.at += speed * unit,
            Way::Pull(share) if is_velocity => {
                self.at += share * limits.acceleration.0 * self.period.0;
                self.at = self.at.clamp(-limits.velocity.0, limits.velocity.0);
            }
            Way::Pull(share) => {
                let run = f64::from(400 - self.left.min(400));
                let speed = (run * limits.acceleration.0 * self.period.0).min(limits.velocity.0);
                self.at += share * speed * self.period.0;
            }
            Way::Flip(share) => wild = Some(self.at + share * side * unit),
            Way::Noise(share) => wild = Some(self.at + share * unit * (rng.f64() - 0.5)),
            Way::Step(share) => {
                if rng.u32(..30) == 0 {
                    self.at += share * unit;
                }
            }
            Way::Wild => {
                let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, f64::MAX, 5e-324];
                wild = (rng.u32(..20) == 0).then(|| numbers[rng.usize(..numbers.len())]);
            }
        }
        if is_velocity {
            self.at = self.at.clamp(-1.04 * limits.velocity.0, 1.04 * limits.velocity.0);
        } else if let Some((lowest, highest)) = limits.position {
            self.at = self.at.clamp(lowest.0, highest.0);
        }
        let given = wild.unwrap_or(self.at);
        match is_velocity {
            true => AxisSetpoint {
                position: shown.position,
                velocity: RadiansPerSecond(given),
                ..AxisSetpoint::default()
            },
            false => AxisSetpoint { position: Radians(given), ..AxisSetpoint::default() },
        }
    }

    fn begin(&mut self, position: Radians, velocity: f64) {
        let velocity = RadiansPerSecond(velocity);
        let _ = self.motion.begin(0, TrajectoryPoint { position, velocity, ..TrajectoryPoint::default() });
    }

    fn any_way(&self, rng: &mut Rng) -> Way {
        let sign = if rng.bool() { 1.0 } else { -1.0 };
        match rng.u32(..16) {
            0..4 => Way::Planned,
            4 | 5 => Way::Still,
            6 | 7 => Way::Rush(sign * [1.0, 1.04, 0.3, 0.01][rng.usize(..4)]),
            8 | 9 => Way::Pull(sign * [1.0, 0.99, 1.02][rng.usize(..3)]),
            10 => Way::Flip(rng.f64() * 1.04),
            11 | 12 => Way::Noise(10_f64.powf(-4.0 * rng.f64())),
            13 | 14 => Way::Step(sign * rng.f64() * 1.04),
            _ => Way::Wild,
        }
    }

    fn any_target(&self, rng: &mut Rng) -> Target {
        let limits = self.settings.limits;
        let fast = limits.velocity.0;
        let velocity = RadiansPerSecond(
            [0.0, fast, -fast, fast * rng.f64(), f64::NAN, 1e300, -2.0 * fast][rng.usize(..7)],
        );
        if self.settings.mode.cyclic() == CyclicMode::Velocity {
            return Target::Velocity(velocity);
        }
        let (lowest, highest) = limits.position.unwrap_or((Radians(-fast), Radians(fast)));
        let places =
            [lowest.0, highest.0, lowest.0 + rng.f64() * (highest.0 - lowest.0), f64::INFINITY, 1e300];
        match rng.u32(..8) {
            0 => Target::Velocity(velocity),
            _ => Target::rest_at(Radians(places[rng.usize(..places.len())])),
        }
    }
}

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
