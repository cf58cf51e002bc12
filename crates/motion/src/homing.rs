//! Where an axis is in the world, when its drive only knows where it is since it was switched on.
//!
//! An axis's position is its drive's position plus an offset. Homing sets the offset: from what the robot file says of
//! an absolute encoder, or from where the axis stands when somebody says "home". The drive keeps its own zero: what it
//! is sent is the axis's target minus the offset. (Homing by a switch, the drive's mode 6, is not done here.)

use crate::units::Radians;

/// How an axis learns its absolute position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Homing {
    /// Not at all: zero is where its drive says, and nobody vouches for it. It may still be homed by hand, to 0.
    #[default]
    Never,
    /// Its encoder is absolute: the drive's position plus this offset. Homed from the start.
    Absolute {
        /// Position of the axis where the drive's is zero.
        offset: Radians,
    },
    /// Somebody brings it to a mark and says "home": there it is at this position.
    CurrentPosition {
        /// Position of the mark.
        position: Radians,
    },
}

/// The offset of an axis, and whether it can be believed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Home {
    homing: Homing,
    offset: Radians,
    homed: bool,
}

impl Home {
    /// As it is when the drive is switched on. An offset that is no finite number counts as none.
    #[must_use]
    pub fn new(homing: Homing) -> Self {
        match homing {
            Homing::Absolute { offset } if offset.is_finite() => Self { homing, offset, homed: true },
            _ => Self { homing, offset: Radians::ZERO, homed: false },
        }
    }

    /// Whether it knows its absolute position.
    #[must_use]
    pub const fn is_homed(&self) -> bool {
        self.homed
    }

    /// The axis's position where its drive's is `drive`.
    #[must_use]
    pub fn position(&self, drive: Radians) -> Radians {
        drive + self.offset
    }

    /// The drive's position where the axis's is `axis`.
    #[must_use]
    pub fn drive_position(&self, axis: Radians) -> Radians {
        axis - self.offset
    }

    /// Here is home: the drive stands at `drive`. Only for an axis that stands, for its position jumps. An absolute
    /// encoder knows better, and a position that is no finite number is none: both change nothing, and `false` says so.
    pub fn take(&mut self, drive: Radians) -> bool {
        let position = match self.homing {
            Homing::Never => Radians::ZERO,
            Homing::CurrentPosition { position } => position,
            Homing::Absolute { .. } => return false,
        };
        let offset = position - drive;
        if offset.is_finite() {
            self.offset = offset;
            self.homed = true;
        }
        offset.is_finite()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_absolute_encoder_is_homed_from_the_start_and_knows_better() {
        let mut home = Home::new(Homing::Absolute { offset: Radians(0.5) });
        assert!(home.is_homed());
        assert_eq!(home.position(Radians(1.0)), Radians(1.5));
        assert!(!home.take(Radians(7.0)));
        assert_eq!(home.position(Radians(1.0)), Radians(1.5));
    }

    #[test]
    fn an_offset_that_is_no_number_homes_nothing() {
        let mut home = Home::new(Homing::Absolute { offset: Radians(f64::NAN) });
        assert!(!home.is_homed() && home.position(Radians(1.0)) == Radians(1.0));
        home = Home::new(Homing::CurrentPosition { position: Radians(1.0) });
        assert!(!home.take(Radians(f64::INFINITY)) && !home.is_homed());
    }

    proptest! {
        #[test]
        fn where_somebody_says_home_the_axis_is_at_its_mark(
            mark in -10.0..10.0, stands in -1e3..1e3, away in -10.0..10.0,
        ) {
            let mut home = Home::new(Homing::CurrentPosition { position: Radians(mark) });
            prop_assert!(!home.is_homed());
            prop_assert_eq!(home.position(Radians(stands)), Radians(stands));
            prop_assert!(home.take(Radians(stands)) && home.is_homed());
            prop_assert!((home.position(Radians(stands)).0 - mark).abs() < 1e-9);
            let target = Radians(mark + away);
            prop_assert!((home.position(home.drive_position(target)) - target).abs().0 < 1e-9);
        }
    }
}
