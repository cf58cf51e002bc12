//! Sources of set-points: planned, careless and hostile ones.

use fastrand::Rng;
use onbeat_motion::online::{AxisLimits, OnlineMotion, Synchronisation, Target};
use onbeat_motion::supervision::{CyclicMode, Settings};
use onbeat_motion::{
    AxisFeedback, AxisPhase, AxisSetpoint, Radians, RadiansPerSecond, Seconds, TrajectoryPoint,
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
