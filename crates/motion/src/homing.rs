//! Place of an axis in the world, when its drive only knows where it is since it was switched on.
//!
//! An axis's position is its drive's position plus an offset. Homing sets the offset, either from
//! the robot file (absolute encoder) or from the position of the axis at the command to home. The
//! drive keeps its own zero: it is sent the axis's target minus the offset. A drive that finds its
//! mark by itself (CiA 402, homing mode) moves its zero there: then the offset is the mark's
//! position.

use crate::units::{Radians, Seconds};

/// Farthest position that an axis can be set to: beyond it, an `f64` no longer resolves the counts
/// of an encoder, and targets would be rounded to other counts.
pub const FARTHEST: Radians = Radians(1e8);

/// Way in which an axis learns its absolute position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Homing {
    /// Not at all: zero is where its drive says, unchecked.
    #[default]
    Never,
    /// Its encoder is absolute: the drive's position plus this offset. Homed from the start.
    Absolute {
        /// Position of the axis where the drive's is zero.
        offset: Radians,
    },
    /// By its operator: the axis is moved to a mark, and the command to home sets its position
    /// there.
    CurrentPosition {
        /// Position of the mark.
        position: Radians,
    },
    /// By its drive, which on the command to home finds its mark and counts from there.
    Drive {
        /// Position of the mark.
        position: Radians,
        /// Time it may take.
        timeout: Seconds,
    },
}

/// The offset of an axis, and whether it is plausible.
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

    /// True if it knows its absolute position.
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

    /// Sets home at the drive's position `drive`. Only at standstill, because the position jumps.
    /// It changes nothing, and returns `false`, unless the axis is homed by its operator, and for a
    /// position that is not finite.
    pub fn take(&mut self, drive: Radians) -> bool {
        let Homing::CurrentPosition { position } = self.homing else { return false };
        let offset = position - drive;
        if offset.is_finite() {
            self.offset = offset;
            self.homed = true;
        }
        offset.is_finite()
    }

    /// Time its drive may look for its mark, if it is the drive that does.
    #[must_use]
    pub const fn timeout(&self) -> Option<Seconds> {
        match self.homing {
            Homing::Drive { timeout, .. } => Some(timeout),
            _ => None,
        }
    }

    /// The drive begins to look for its mark: until it has found it, the position is not known.
    pub fn lose(&mut self) {
        self.homed &= self.timeout().is_none();
    }

    /// Its drive may have been without power: its zero is again the one at power-on.
    pub fn forget(&mut self) {
        *self = Self::new(self.homing);
    }

    /// Its reported position may be wrong: it is not homed, with any encoder.
    pub fn distrust(&mut self) {
        self.forget();
        self.homed = false;
    }

    /// Its drive counts from `by` higher than before, a whole range of its encoder: the position of
    /// the axis stays.
    pub fn shift(&mut self, by: Radians) {
        if by.is_finite() {
            self.offset -= by;
        }
    }

    /// Way in which the axis learns its position.
    #[must_use]
    pub const fn homing(&self) -> Homing {
        self.homing
    }

    /// Where the drive reports `drive`, the axis is at `position`. An axis placed so is not homed.
    /// False for a position beyond [`FARTHEST`], which changes nothing.
    pub fn place(&mut self, drive: Radians, position: Radians) -> bool {
        let offset = position - drive;
        let is_near = position.abs() <= FARTHEST && offset.is_finite();
        if is_near {
            self.offset = offset;
            self.homed = false;
        }
        is_near
    }

    /// A person has measured that the reported position is right.
    pub fn accept(&mut self) {
        self.homed = true;
    }

    /// The drive has found its mark and counts from there. Only for an axis at standstill, because
    /// its position jumps.
    pub fn found(&mut self) {
        if let Homing::Drive { position, .. } = self.homing {
            if position.is_finite() {
                self.offset = position;
                self.homed = true;
            }
        }
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
    fn an_axis_without_homing_is_not_homed_by_hand() {
        let mut home = Home::new(Homing::Never);
        assert!(!home.take(Radians(7.0)) && !home.is_homed());
        assert_eq!(home.position(Radians(7.5)), Radians(7.5));
    }

    #[test]
    fn an_offset_that_is_no_number_homes_nothing() {
        let mut home = Home::new(Homing::Absolute { offset: Radians(f64::NAN) });
        assert!(!home.is_homed() && home.position(Radians(1.0)) == Radians(1.0));
        home = Home::new(Homing::CurrentPosition { position: Radians(1.0) });
        assert!(!home.take(Radians(f64::INFINITY)) && !home.is_homed());
    }

    #[test]
    fn an_axis_that_was_placed_is_not_homed_and_keeps_its_counts() {
        let mut home = Home::new(Homing::CurrentPosition { position: Radians(1.0) });
        assert!(home.take(Radians(3.0)) && home.is_homed());
        assert!(!home.place(Radians(3.0), Radians(1e300)) && !home.place(Radians(3.0), Radians(f64::NAN)));
        assert!(home.is_homed() && home.position(Radians(3.0)) == Radians(1.0), "nothing has changed");
        assert!(home.place(Radians(3.0), FARTHEST) && !home.is_homed());
        // A count of an encoder of 2^20 a turn.
        let count = Radians(std::f64::consts::TAU / f64::from(1 << 20));
        let there = home.position(Radians(3.0) + count);
        assert!((home.drive_position(there) - Radians(3.0) - count).abs() < count * 0.1);
    }

    #[test]
    fn a_drive_that_found_its_mark_counts_from_there() {
        let homing = Homing::Drive { position: Radians(-0.5), timeout: Seconds(3.0) };
        let mut home = Home::new(homing);
        assert!(!home.is_homed() && !home.take(Radians(1.0)), "it is the drive that homes");
        assert_eq!((home.timeout(), home.position(Radians(1.0))), (Some(Seconds(3.0)), Radians(1.0)));
        home.found();
        assert!(home.is_homed());
        assert_eq!(home.position(Radians(0.25)), Radians(-0.25));
        home.lose();
        assert!(!home.is_homed());
        let mut absolute = Home::new(Homing::Absolute { offset: Radians(0.5) });
        absolute.lose();
        absolute.found();
        assert!(absolute.is_homed() && absolute.position(Radians(0.0)) == Radians(0.5));
    }

    proptest! {
        #[test]
        fn home_set_by_command_puts_axis_at_its_mark(
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
