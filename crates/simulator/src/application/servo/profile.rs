//! Trapezoids: demands of bounded velocity and acceleration (IEC 61800-7-201, profile position and
//! profile velocity mode).

use core::time::Duration;

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
