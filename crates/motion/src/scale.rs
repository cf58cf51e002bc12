//! From a drive's own numbers to SI units at the axis, and back.

use core::f64::consts::TAU;

use thiserror::Error;

use crate::units::{NewtonMetres, Radians, RadiansPerSecond};

/// Scale from a drive's numbers to the axis: behind the gear, without losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisScale {
    counts_per_radian: f64,
    newton_metres_per_unit: f64,
}

impl Default for AxisScale {
    /// A drive with radians and newton metres as units.
    fn default() -> Self {
        Self { counts_per_radian: 1.0, newton_metres_per_unit: 1.0 }
    }
}

impl AxisScale {
    /// `counts_per_revolution` encoder counts a motor revolution (above 0); `gear_ratio` motor
    /// revolutions an axis revolution (not 0; negative where the axis turns the other way);
    /// `rated_torque` of the motor, which 1000 units of 0x6071 and 0x6077 stand for (object 0x6076;
    /// above 0).
    ///
    /// # Errors
    /// A number that is not finite or out of its range.
    pub fn new(
        counts_per_revolution: f64,
        gear_ratio: f64,
        rated_torque: NewtonMetres,
    ) -> Result<Self, ScaleError> {
        let scale = Self {
            counts_per_radian: counts_per_revolution * gear_ratio / TAU,
            newton_metres_per_unit: rated_torque.0 * gear_ratio / TORQUE_UNITS_PER_RATED,
        };
        if !(counts_per_revolution.is_finite() && counts_per_revolution > 0.0) {
            Err(ScaleError::CountsPerRevolution(counts_per_revolution))
        } else if !gear_ratio.is_finite() || gear_ratio == 0.0 {
            Err(ScaleError::GearRatio(gear_ratio))
        } else if !(rated_torque.is_finite() && rated_torque.0 > 0.0) {
            Err(ScaleError::RatedTorque(rated_torque.0))
        } else if !(scale.counts_per_radian.is_normal() && scale.newton_metres_per_unit.is_normal()) {
            Err(ScaleError::Product)
        } else {
            Ok(scale)
        }
    }

    /// Encoder counts a radian of the axis; negative where the gear reverses.
    #[must_use]
    pub const fn counts_per_radian(&self) -> f64 {
        self.counts_per_radian
    }

    /// A position in counts as an angle of the axis: position actual value 0x6064, or for an
    /// endless axis what its turns add up to. Exact up to 2^53 counts.
    #[must_use]
    pub fn position(&self, counts: i64) -> Radians {
        Radians(counts as f64 / self.counts_per_radian)
    }

    /// Velocity actual value 0x606C, counts per second, as a velocity of the axis.
    #[must_use]
    pub fn velocity(&self, counts_per_second: i32) -> RadiansPerSecond {
        RadiansPerSecond(f64::from(counts_per_second) / self.counts_per_radian)
    }

    /// Torque actual value 0x6077, 0.1 % of the rated torque, as a torque at the axis.
    #[must_use]
    pub fn torque(&self, units: i16) -> NewtonMetres {
        NewtonMetres(f64::from(units) * self.newton_metres_per_unit)
    }

    /// The nearest count. Its low 32 bits are what an endless axis takes as target position 0x607A.
    ///
    /// # Errors
    /// `position` is not a number.
    pub fn position_counts(&self, position: Radians) -> Result<Converted<i64>, NotANumber> {
        let counts = rounded(position.0 * self.counts_per_radian)?;
        Ok(Converted { value: counts as i64, saturated: !(-TWO_TO_63..TWO_TO_63).contains(&counts) })
    }

    /// Target velocity 0x60FF, the nearest count per second.
    ///
    /// # Errors
    /// `velocity` is not a number.
    pub fn velocity_counts(&self, velocity: RadiansPerSecond) -> Result<Converted<i32>, NotANumber> {
        let counts = rounded(velocity.0 * self.counts_per_radian)?;
        // `as` saturates; a value it kept comes back unchanged, for f64 holds every i32.
        let value = counts as i32;
        Ok(Converted { value, saturated: f64::from(value) != counts })
    }

    /// Target torque 0x6071, the nearest 0.1 % of the rated torque.
    ///
    /// # Errors
    /// `torque` is not a number.
    pub fn torque_units(&self, torque: NewtonMetres) -> Result<Converted<i16>, NotANumber> {
        let units = rounded(torque.0 / self.newton_metres_per_unit)?;
        let value = units as i16;
        Ok(Converted { value, saturated: f64::from(value) != units })
    }
}

/// A number that fits its object; `saturated` where it had to be made to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converted<T> {
    /// The nearest value the object can hold.
    pub value: T,
    /// The quantity lay beyond what the object can hold.
    pub saturated: bool,
}

/// A quantity was NaN: there is no nearest value to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected a number to send to the drive, found NaN")]
pub struct NotANumber;

/// An [`AxisScale`] that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// Encoder counts per revolution.
    #[error("counts per revolution: expected a finite number above 0, found {0}")]
    CountsPerRevolution(f64),
    /// Gear ratio.
    #[error("gear ratio: expected a finite number other than 0, found {0}")]
    GearRatio(f64),
    /// Rated torque.
    #[error("rated torque: expected a finite number of newton metres above 0, found {0}")]
    RatedTorque(f64),
    /// Each is in its range, but multiplied they are not.
    #[error("axis scale: expected products that floating point can hold, found one too large or too small")]
    Product,
}

fn rounded(number: f64) -> Result<f64, NotANumber> {
    if number.is_nan() { Err(NotANumber) } else { Ok(number.round()) }
}

/// 0x6071 and 0x6077 count thousandths of the rated torque.
const TORQUE_UNITS_PER_RATED: f64 = 1000.0;

/// The first whole number above every `i64`.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_scale() -> impl Strategy<Value = AxisScale> {
        (1.0..1e7, 0.01..500.0_f64, any::<bool>(), 0.01..1e3).prop_map(
            |(counts, gear, reversed, torque)| {
                let gear = if reversed { -gear } else { gear };
                AxisScale::new(counts, gear, NewtonMetres(torque)).unwrap()
            },
        )
    }

    #[test]
    fn known_numbers() {
        let scale = AxisScale::new(1_048_576.0, 50.0, NewtonMetres(2.4)).unwrap();
        assert_eq!(scale.position(1_048_576 * 25), Radians(TAU / 2.0));
        assert_eq!(scale.velocity_counts(RadiansPerSecond(TAU)).unwrap().value, 1_048_576 * 50);
        assert!((scale.torque(1000).0 - 120.0).abs() < 1e-9, "rated torque behind the gear");
        assert_eq!(
            scale.torque_units(NewtonMetres(-60.0)),
            Ok(Converted { value: -500, saturated: false })
        );
        let reversed = AxisScale::new(4096.0, -1.0, NewtonMetres(1.0)).unwrap();
        assert_eq!(reversed.position(4096), Radians(-TAU));
        assert_eq!(reversed.torque_units(NewtonMetres(1.0)).unwrap().value, -1000);
    }

    #[test]
    fn what_does_not_fit_saturates_and_says_so() {
        let scale = AxisScale::new(1e6, 1.0, NewtonMetres(1.0)).unwrap();
        for (found, want) in [(1e9, i32::MAX), (-1e9, i32::MIN), (f64::INFINITY, i32::MAX)] {
            let converted = scale.velocity_counts(RadiansPerSecond(found));
            assert_eq!(converted, Ok(Converted { value: want, saturated: true }));
        }
        assert!(!scale.position_counts(Radians(1e9)).unwrap().saturated, "turns add up beyond 32 bits");
        for (found, want) in [(1e30, i64::MAX), (f64::NEG_INFINITY, i64::MIN)] {
            let converted = scale.position_counts(Radians(found));
            assert_eq!(converted, Ok(Converted { value: want, saturated: true }));
        }
        assert_eq!(
            scale.torque_units(NewtonMetres(40.0)),
            Ok(Converted { value: i16::MAX, saturated: true })
        );
        assert_eq!(scale.torque_units(NewtonMetres(-32.768)).unwrap().value, i16::MIN);
    }

    #[test]
    fn nan_is_refused() {
        let scale = AxisScale::new(1e6, 1.0, NewtonMetres(1.0)).unwrap();
        assert_eq!(scale.position_counts(Radians(f64::NAN)), Err(NotANumber));
        assert_eq!(scale.velocity_counts(RadiansPerSecond(f64::NAN)), Err(NotANumber));
        assert_eq!(scale.torque_units(NewtonMetres(f64::NAN)), Err(NotANumber));
    }

    #[test]
    fn a_scale_that_means_nothing_is_refused() {
        let new = |counts, gear, torque| AxisScale::new(counts, gear, NewtonMetres(torque));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(new(bad, 1.0, 1.0), Err(ScaleError::CountsPerRevolution(_))), "{bad}");
            assert!(matches!(new(1.0, 1.0, bad), Err(ScaleError::RatedTorque(_))), "{bad}");
        }
        for bad in [0.0, f64::NAN, f64::NEG_INFINITY] {
            assert!(matches!(new(1.0, bad, 1.0), Err(ScaleError::GearRatio(_))), "{bad}");
        }
        assert_eq!(new(1e300, 1e300, 1.0), Err(ScaleError::Product));
        assert_eq!(new(1e-300, 1e-300, 1.0), Err(ScaleError::Product));
    }

    proptest! {
        #[test]
        fn every_count_survives_the_way_to_radians_and_back(scale in any_scale(), counts: i32, units: i16) {
            let wide = i64::from(counts) * 1000;
            let same = |value| Ok(Converted { value, saturated: false });
            prop_assert_eq!(scale.position_counts(scale.position(wide)), same(wide));
            let same = |value| Ok(Converted { value, saturated: false });
            prop_assert_eq!(scale.velocity_counts(scale.velocity(counts)), same(counts));
            prop_assert_eq!(scale.torque_units(scale.torque(units)), Ok(Converted { value: units, saturated: false }));
        }

        #[test]
        fn a_position_is_off_by_half_a_count_at_most(scale in any_scale(), position in -1e3..1e3) {
            let converted = scale.position_counts(Radians(position)).unwrap();
            let back = scale.position(converted.value).0;
            let half = 0.5 / scale.counts_per_radian().abs();
            prop_assert!(converted.saturated || (back - position).abs() <= half * 1.000_001 + 1e-12);
        }
    }
}
