//! Trapezoids: demands of bounded velocity and acceleration (IEC 61800-7-201, profile position and
//! profile velocity mode).
//!
//! Set-points of profile position mode and their handshake (IEC 61800-7-201, profile position mode,
//! functional description).
//!
//! A rising edge of bit 4 of the controlword hands over the target position 0x607A. Bit 12 of the
//! statusword acknowledges it, and falls when bit 4 is low again and another set-point is accepted.
//! With bit 5 the new set-point replaces the earlier ones; without it, one set-point waits behind
//! the running one. Bit 6 makes it relative to the previous target. With bit 9 the axis passes the
//! running set-point at profile velocity if another one waits.

use core::time::Duration;

use ethercat::cia402::Controlword;

use super::CONTROL_PERIOD;
use super::set_point::nearest;

/// Bounds of a profile, in position units and seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) velocity: f64,
    /// Rate at which the speed rises.
    pub(super) acceleration: f64,
    /// Rate at which it falls.
    pub(super) deceleration: f64,
}

/// Demand of a profile, in position units and seconds; positions do not wrap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Profile {
    pub(super) position: f64,
    pub(super) velocity: f64,
    pub(super) acceleration: f64,
}

impl Profile {
    /// Profile of an axis at this position and velocity.
    pub(super) fn at(position: f64, velocity: f64) -> Self {
        Self { position, velocity, acceleration: 0.0 }
    }

    /// Advances by `time` towards `velocity`.
    pub(super) fn turn(&mut self, velocity: f64, bounds: &Bounds, time: Duration) {
        let seconds = time.as_secs_f64();
        let rises = velocity.abs() > self.velocity.abs() && velocity * self.velocity >= 0.0;
        let rate = if rises { bounds.acceleration } else { bounds.deceleration } * seconds;
        let change = (velocity - self.velocity).clamp(-rate, rate);
        self.acceleration = change / seconds;
        self.velocity += change;
        self.position += self.velocity * seconds;
    }

    /// Advances by `time` towards `target`, to reach it at `end_velocity` (0 or more). Returns
    /// `true` when it stopped there or passed it.
    pub(super) fn approach(
        &mut self,
        target: f64,
        end_velocity: f64,
        bounds: &Bounds,
        time: Duration,
    ) -> bool {
        let seconds = time.as_secs_f64();
        let distance = target - self.position;
        let fall = bounds.deceleration * seconds;
        if end_velocity == 0.0 && distance.abs() <= fall * seconds && self.velocity.abs() <= 2.0 * fall {
            *self = Self::at(target, 0.0);
            return true;
        }
        // Highest speed for this period from which the rest of the way is enough to slow down.
        let square = 2.0 * bounds.deceleration * distance.abs() + end_velocity.powi(2);
        let highest = (fall.powi(2) + square).sqrt() - fall;
        self.turn(highest.min(bounds.velocity).copysign(distance), bounds, time);
        end_velocity > 0.0 && (target - self.position) * distance <= 0.0
    }
}

/// Set-points of a drive: the running one, and the waiting one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SetPoints {
    running: Option<f64>,
    waiting: Option<f64>,
    /// The running one has been reached.
    over: bool,
    acknowledged: bool,
    /// Bit 4 in the control period before.
    before: bool,
}

impl SetPoints {
    /// Forgets all of them: the drive has left the mode, or Operation enabled.
    pub(super) fn clear(&mut self, controlword: Controlword) {
        *self = Self { before: controlword.new_set_point(), ..Self::default() };
    }

    /// Runs the handshake for one control period. `position` is where the axis is, in position
    /// units.
    pub(super) fn step(&mut self, controlword: Controlword, target: i32, position: f64) {
        let new = controlword.new_set_point();
        if new && !self.before {
            self.hand_over(controlword, target, position);
        }
        self.acknowledged &= new || self.waiting.is_some();
        self.before = new;
    }

    fn hand_over(&mut self, controlword: Controlword, target: i32, position: f64) {
        let last = self.waiting.or(self.running).unwrap_or(position.floor());
        let target =
            if controlword.is_relative() { last + f64::from(target) } else { nearest(target, last) };
        if controlword.changes_set_immediately() || self.running.is_none() || self.over {
            (self.running, self.waiting, self.over) = (Some(target), None, false);
        } else if self.waiting.is_none() {
            self.waiting = Some(target);
        }
        self.acknowledged = true;
    }

    /// Advances `profile` by a control period towards the running set-point; it stops where there
    /// is none.
    pub(super) fn advance(
        &mut self,
        profile: &mut Profile,
        bounds: &Bounds,
        end_velocity: f64,
        change_on_set_point: bool,
    ) {
        let end_velocity = match self.waiting {
            Some(_) if change_on_set_point => bounds.velocity,
            _ => end_velocity.min(bounds.velocity),
        };
        match self.running {
            Some(target) if !self.over => {
                self.over = profile.approach(target, end_velocity, bounds, CONTROL_PERIOD);
            }
            // Past a target with an end velocity, it slows down behind it.
            _ => profile.turn(0.0, bounds, CONTROL_PERIOD),
        }
        if self.over && self.waiting.is_some() {
            (self.running, self.waiting, self.over) = (self.waiting, None, false);
        }
    }

    /// Bit 12 of the statusword.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.acknowledged
    }

    /// Target of the last set-point, once no other waits.
    pub(super) fn last(&self) -> Option<f64> {
        self.running.filter(|_| self.waiting.is_none())
    }
}

/// Time for which a value has been inside its window (0x6068, 0x606E, 0x6070).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Dwell {
    time: Duration,
}

impl Dwell {
    /// Counts a control period; `true` once the value has been inside for `needed`.
    pub(super) fn step(&mut self, inside: bool, needed: Duration) -> bool {
        if !inside {
            self.time = Duration::ZERO;
            return false;
        }
        let elapsed = self.time >= needed;
        if !elapsed {
            self.time += CONTROL_PERIOD;
        }
        elapsed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PERIOD: Duration = Duration::from_micros(125);

    #[test]
    fn a_move_takes_the_time_of_its_trapezoid() {
        let bounds = Bounds { velocity: 100.0, acceleration: 1000.0, deceleration: 500.0 };
        let mut profile = Profile::at(0.0, 0.0);
        let mut periods = 0;
        while !profile.approach(-50.0, 0.0, &bounds, PERIOD) {
            periods += 1;
        }
        // 0.1 s up (5 units), 0.2 s down (10 units), 35 units at 100 a second.
        let seconds = f64::from(periods) * PERIOD.as_secs_f64();
        assert!((seconds - 0.65).abs() < 2e-3, "{seconds} s");
        assert_eq!(profile, Profile::at(-50.0, 0.0));
    }

    #[test]
    fn an_end_velocity_is_that_at_the_target() {
        let bounds = Bounds { velocity: 100.0, acceleration: 1000.0, deceleration: 500.0 };
        let mut profile = Profile::at(0.0, 0.0);
        while !profile.approach(50.0, 40.0, &bounds, PERIOD) {}
        assert!((profile.velocity - 40.0).abs() < 0.2, "{profile:?}");
        assert!((profile.position - 50.0).abs() < 0.02, "{profile:?}");
    }

    proptest! {
        /// From any motion, to any target: it gets there, within its bounds.
        #[test]
        fn every_target_is_reached_within_the_bounds(
            start in -1e4..1e4_f64, speed in -2e3..2e3_f64, target in -1e4..1e4_f64,
            velocity in 500.0..5e3_f64, acceleration in 1e3..1e5_f64, deceleration in 1e3..1e5_f64,
        ) {
            let bounds = Bounds { velocity, acceleration, deceleration };
            let mut profile = Profile::at(start, speed);
            let steepest = acceleration.max(deceleration) * (1.0 + 1e-9);
            let mut there = false;
            for _ in 0..600_000 {
                let before = profile.velocity;
                there = profile.approach(target, 0.0, &bounds, PERIOD);
                if there {
                    break;
                }
                let rate = (profile.velocity - before).abs() / PERIOD.as_secs_f64();
                prop_assert!(rate <= steepest, "{rate} of {steepest}");
                prop_assert!(profile.velocity.abs() <= velocity.max(before.abs()) + 1e-9);
            }
            prop_assert!(there, "{profile:?}");
        }
    }
}
