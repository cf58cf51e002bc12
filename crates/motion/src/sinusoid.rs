//! A sinusoid that starts from standstill.

use core::f64::consts::TAU;

use thiserror::Error;

use crate::axis::TrajectoryPoint;
use crate::units::{
    Hertz, Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds,
};

/// `start + amplitude s(t) sin(2 pi frequency t)`, where `s` rises from 0 to 1 over the ramp as `10
/// u^3 - 15 u^4 + 6 u^5`: position, velocity and acceleration are continuous, and velocity and
/// acceleration begin at zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmoothSinusoid {
    start: Radians,
    amplitude: Radians,
    angular_frequency: f64,
    ramp: Seconds,
}

impl SmoothSinusoid {
    /// Around `start`; `amplitude` of either sign, `frequency` 0 or above, `ramp` above 0.
    ///
    /// # Errors
    /// A number that is not finite or out of its range.
    pub fn new(
        start: Radians,
        amplitude: Radians,
        frequency: Hertz,
        ramp: Seconds,
    ) -> Result<Self, SinusoidError> {
        if !start.is_finite() {
            return Err(SinusoidError::Start(start.0));
        }
        if !amplitude.is_finite() {
            return Err(SinusoidError::Amplitude(amplitude.0));
        }
        if !(frequency.is_finite() && frequency.0 >= 0.0) {
            return Err(SinusoidError::Frequency(frequency.0));
        }
        if !(ramp.is_finite() && ramp.0 > 0.0) {
            return Err(SinusoidError::Ramp(ramp.0));
        }
        Ok(Self { start, amplitude, angular_frequency: TAU * frequency.0, ramp })
    }

    /// The same with its amplitude made small enough that neither bound is exceeded. A bound that
    /// is not above zero leaves no motion.
    #[must_use]
    pub fn within(self, velocity: RadiansPerSecond, acceleration: RadiansPerSecondSquared) -> Self {
        let share = |limit: f64, bound: f64| if bound > 0.0 { limit.max(0.0) / bound } else { 1.0 };
        let factor = share(velocity.0, self.maximum_velocity().0)
            .min(share(acceleration.0, self.maximum_acceleration().0))
            .min(1.0);
        Self { amplitude: self.amplitude * factor, ..self }
    }

    /// The same, begun at another position.
    #[must_use]
    pub fn starting_at(self, start: Radians) -> Self {
        Self { start, ..self }
    }

    /// The largest distance from the start.
    #[must_use]
    pub fn amplitude(&self) -> Radians {
        self.amplitude.abs()
    }

    /// A speed it never exceeds.
    #[must_use]
    pub fn maximum_velocity(&self) -> RadiansPerSecond {
        let bound = MAXIMUM_SLOPE / self.ramp.0 + self.angular_frequency;
        RadiansPerSecond(self.amplitude.0.abs() * bound)
    }

    /// An acceleration it never exceeds.
    #[must_use]
    pub fn maximum_acceleration(&self) -> RadiansPerSecondSquared {
        let (ramp, omega) = (self.ramp.0, self.angular_frequency);
        let bound = MAXIMUM_CURVATURE / (ramp * ramp) + 2.0 * MAXIMUM_SLOPE / ramp * omega + omega * omega;
        RadiansPerSecondSquared(self.amplitude.0.abs() * bound)
    }

    /// A jerk it never exceeds by more than a thousandth, in any phase: the ramp is evaluated in
    /// steps.
    #[must_use]
    pub fn maximum_jerk(&self) -> RadiansPerSecondCubed {
        let omega = self.angular_frequency;
        let at = |step: u32| {
            let u = f64::from(step) / f64::from(JERK_STEPS);
            let [rise, slope, curvature] = self.ramp_at(self.ramp.0 * u);
            let change = 60.0 * (1.0 - 6.0 * u * (1.0 - u)) / self.ramp.0.powi(3);
            let of_sine = change - 3.0 * slope * omega * omega;
            let of_cosine = 3.0 * curvature * omega - rise * omega.powi(3);
            of_sine.hypot(of_cosine)
        };
        let bound = (0..=JERK_STEPS).map(at).fold(0.0, f64::max);
        RadiansPerSecondCubed(self.amplitude.0.abs() * bound)
    }

    /// Set-point `elapsed` after its begin; before it, at standstill at the start.
    #[must_use]
    pub fn at(&self, elapsed: Seconds) -> TrajectoryPoint {
        let time = elapsed.0.max(0.0);
        let [rise, slope, curvature] = self.ramp_at(time);
        let omega = self.angular_frequency;
        let (sine, cosine) = (omega * time).sin_cos();
        let amplitude = self.amplitude.0;
        let turn = omega * cosine;
        TrajectoryPoint {
            position: self.start + Radians(amplitude * rise * sine),
            velocity: RadiansPerSecond(amplitude * (slope * sine + rise * turn)),
            acceleration: RadiansPerSecondSquared(
                amplitude * (curvature * sine + 2.0 * slope * turn - rise * omega * omega * sine),
            ),
        }
    }

    /// The ramp with its first two derivatives.
    fn ramp_at(&self, time: f64) -> [f64; 3] {
        let ramp = self.ramp.0;
        if time >= ramp {
            return [1.0, 0.0, 0.0];
        }
        let u = time / ramp;
        let rise = u * u * u * (10.0 + u * (-15.0 + 6.0 * u));
        let slope = 30.0 * u * u * (1.0 - u) * (1.0 - u);
        let curvature = 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u);
        [rise, slope / ramp, curvature / (ramp * ramp)]
    }
}

/// A [`SmoothSinusoid`] that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SinusoidError {
    /// Place where it starts.
    #[error("sinusoid's start: expected a finite number of radians, found {0}")]
    Start(f64),
    /// Amplitude.
    #[error("sinusoid's amplitude: expected a finite number of radians, found {0}")]
    Amplitude(f64),
    /// Frequency.
    #[error("sinusoid's frequency: expected a finite number of hertz, 0 or above, found {0}")]
    Frequency(f64),
    /// Time it takes to full amplitude.
    #[error("sinusoid's ramp: expected a finite number of seconds above 0, found {0}")]
    Ramp(f64),
}

/// Largest slope of `10 u^3 - 15 u^4 + 6 u^5` on 0..1, at u = 1/2.
const MAXIMUM_SLOPE: f64 = 15.0 / 8.0;
/// Largest second derivative of it, `10 / sqrt(3)`, at u = 1/2 -+ sqrt(3)/6.
const MAXIMUM_CURVATURE: f64 = 5.773_502_691_896_258;
/// Steps of the ramp: its third derivative and what else makes the jerk are polynomials of at most
/// the fifth degree.
const JERK_STEPS: u32 = 200;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_sinusoid() -> impl Strategy<Value = SmoothSinusoid> {
        (-10.0..10.0, -3.0..3.0, 0.0..5.0, 0.1..5.0).prop_map(|(start, amplitude, frequency, ramp)| {
            SmoothSinusoid::new(Radians(start), Radians(amplitude), Hertz(frequency), Seconds(ramp))
                .unwrap()
        })
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused() {
        let new = |start, amplitude, frequency, ramp| {
            SmoothSinusoid::new(Radians(start), Radians(amplitude), Hertz(frequency), Seconds(ramp))
        };
        assert!(matches!(new(f64::NAN, 1.0, 1.0, 1.0), Err(SinusoidError::Start(_))));
        assert!(matches!(new(0.0, f64::INFINITY, 1.0, 1.0), Err(SinusoidError::Amplitude(_))));
        assert_eq!(new(0.0, 1.0, -1.0, 1.0), Err(SinusoidError::Frequency(-1.0)));
        assert_eq!(new(0.0, 1.0, 1.0, 0.0), Err(SinusoidError::Ramp(0.0)));
    }

    #[test]
    fn after_the_ramp_it_is_a_plain_sinusoid() {
        let sinusoid = SmoothSinusoid::new(Radians(1.0), Radians(0.5), Hertz(1.0), Seconds(2.0)).unwrap();
        let crest = sinusoid.at(Seconds(3.25));
        assert!((crest.position.0 - 1.5).abs() < 1e-12 && crest.velocity.0.abs() < 1e-12, "{crest:?}");
    }

    proptest! {
        #[test]
        fn begins_at_standstill_at_its_start(sinusoid in any_sinusoid(), before in -5.0..=0.0) {
            let point = sinusoid.at(Seconds(before));
            prop_assert_eq!(point.position, sinusoid.start);
            prop_assert_eq!((point.velocity.0.abs(), point.acceleration.0.abs()), (0.0, 0.0));
        }

        #[test]
        fn velocity_and_acceleration_are_derivatives(sinusoid in any_sinusoid(), at in 0.01..10.0) {
            let step = 1e-5;
            let (before, here, after) =
                (sinusoid.at(Seconds(at - step)), sinusoid.at(Seconds(at)), sinusoid.at(Seconds(at + step)));
            let slope = (after.position.0 - before.position.0) / (2.0 * step);
            let scale = 1.0 + sinusoid.maximum_acceleration().0;
            prop_assert!((slope - here.velocity.0).abs() < 1e-4 * scale, "{slope} {here:?}");
            let slope = (after.velocity.0 - before.velocity.0) / (2.0 * step);
            // The third derivative jumps where the ramp ends: it is continuous in the second only.
            prop_assert!((slope - here.acceleration.0).abs() < 1e-2 * scale, "{slope} {here:?}");
        }

        #[test]
        fn its_bounds_hold(sinusoid in any_sinusoid(), at in 0.0..10.0) {
            let point = sinusoid.at(Seconds(at));
            let rounding = 1.0 + 1e-12;
            prop_assert!((point.position - sinusoid.start).abs().0 <= sinusoid.amplitude().0 * rounding + 1e-12);
            prop_assert!(point.velocity.abs().0 <= sinusoid.maximum_velocity().0 * rounding);
            prop_assert!(point.acceleration.abs().0 <= sinusoid.maximum_acceleration().0 * rounding);
        }

        #[test]
        fn its_bound_of_jerk_holds(sinusoid in any_sinusoid(), at in 0.0..10.0) {
            let step: f64 = 1e-3;
            let [a, b, c, d] = [0.0, 1.0, 2.0, 3.0].map(|number| sinusoid.at(Seconds(at + number * step)).position.0);
            let jerk = (d - 3.0 * c + 3.0 * b - a) / step.powi(3);
            prop_assert!(jerk.abs() <= sinusoid.maximum_jerk().0 * 1.001 + 1e-4, "{jerk} {:?}", sinusoid.maximum_jerk());
        }

        #[test]
        fn it_can_be_made_to_fit_the_limits_of_an_axis(
            sinusoid in any_sinusoid(),
            velocity in 0.0..20.0,
            acceleration in 0.0..100.0,
        ) {
            let fitted = sinusoid.within(RadiansPerSecond(velocity), RadiansPerSecondSquared(acceleration));
            prop_assert!(fitted.maximum_velocity().0 <= velocity * (1.0 + 1e-9));
            prop_assert!(fitted.maximum_acceleration().0 <= acceleration * (1.0 + 1e-9));
            prop_assert!(fitted.amplitude() <= sinusoid.amplitude());
            let fits = sinusoid.maximum_velocity().0 <= velocity
                && sinusoid.maximum_acceleration().0 <= acceleration;
            prop_assert_eq!(fits, fitted == sinusoid || sinusoid.amplitude.0 == 0.0);
        }
    }
}
