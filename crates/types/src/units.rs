//! SI units as types. Arithmetic within a unit and by plain factors, and between a quantity and its
//! rate.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident, $symbol:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(pub f64);

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0.0);

            /// The same without its sign.
            #[must_use]
            pub const fn abs(self) -> Self {
                Self(self.0.abs())
            }

            /// Neither infinite nor NaN.
            #[must_use]
            pub const fn is_finite(self) -> bool {
                self.0.is_finite()
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }

        impl Neg for $name {
            type Output = Self;
            fn neg(self) -> Self {
                Self(-self.0)
            }
        }

        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }

        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }

        impl Div for $name {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }

        /// The number in the requested format, then the unit's symbol.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)?;
                f.write_str(concat!(" ", $symbol))
            }
        }
    };
}

macro_rules! rate {
    ($quantity:ident per second is $rate:ident) => {
        impl Div<Seconds> for $quantity {
            type Output = $rate;
            fn div(self, time: Seconds) -> $rate {
                $rate(self.0 / time.0)
            }
        }

        impl Mul<Seconds> for $rate {
            type Output = $quantity;
            fn mul(self, time: Seconds) -> $quantity {
                $quantity(self.0 * time.0)
            }
        }
    };
}

unit!(
    /// Angles, rad.
    Radians,
    "rad"
);
unit!(
    /// Angular velocities, rad/s.
    RadiansPerSecond,
    "rad/s"
);
unit!(
    /// Angular accelerations, rad/s^2.
    RadiansPerSecondSquared,
    "rad/s^2"
);
unit!(
    /// Angular jerks, rad/s^3.
    RadiansPerSecondCubed,
    "rad/s^3"
);
unit!(
    /// Torques, N m.
    NewtonMetres,
    "N m"
);
unit!(
    /// Lengths, m.
    Metres,
    "m"
);
unit!(
    /// Velocities, m/s.
    MetresPerSecond,
    "m/s"
);
unit!(
    /// Accelerations, m/s^2.
    MetresPerSecondSquared,
    "m/s^2"
);
unit!(
    /// Jerks, m/s^3.
    MetresPerSecondCubed,
    "m/s^3"
);
unit!(
    /// Times, s.
    Seconds,
    "s"
);
unit!(
    /// Frequencies, Hz.
    Hertz,
    "Hz"
);

rate!(Radians per second is RadiansPerSecond);
rate!(RadiansPerSecond per second is RadiansPerSecondSquared);
rate!(RadiansPerSecondSquared per second is RadiansPerSecondCubed);
rate!(Metres per second is MetresPerSecond);
rate!(MetresPerSecond per second is MetresPerSecondSquared);
rate!(MetresPerSecondSquared per second is MetresPerSecondCubed);

impl Seconds {
    /// From nanoseconds, as clocks count.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds as f64 * 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn a_rate_times_a_time_is_a_quantity() {
        let velocity = Radians(3.0) / Seconds(2.0);
        assert_eq!(velocity, RadiansPerSecond(1.5));
        assert_eq!(velocity * Seconds(2.0), Radians(3.0));
        assert_eq!(Metres(4.0) / Metres(2.0), 2.0);
        assert_eq!(Seconds::from_nanos(250_000), Seconds(250e-6));
    }

    #[test]
    fn units_print_their_symbol() {
        assert_eq!(format!("{:.2}", RadiansPerSecond(1.0)), "1.00 rad/s");
    }
}
