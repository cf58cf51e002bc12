//! Position of an axis as the operator gives it.

use ipc::reference::{Given, Outcome, Purpose, Refusal};
use motion::homing::Homing;
use motion::supervision::STANDS;
use motion::{Radians, RestartRule};

use super::binding::Axis;

/// Facts about an axis that decide whether its position is accepted or set.
#[derive(Clone, Copy, Debug)]
struct Facts {
    /// Position that its drive reports.
    reading: Option<Radians>,
    /// Its drive may drive the motor.
    enabled: bool,
    moving: bool,
    unreferenced: bool,
    /// `None` without position limits.
    rule: Option<RestartRule>,
    homing: Homing,
}

impl Axis {
    /// Accepts or sets its position: with its drive disabled, at standstill.
    pub(super) fn give_position(&mut self, given: Given) -> Outcome {
        let facts = Facts {
            reading: self.reading(),
            enabled: self.is_enabled(),
            moving: self.is_faster_than(STANDS),
            unreferenced: self.is_unreferenced(),
            rule: self.restart_rule(),
            homing: self.homing(),
        };
        let here = facts.check(given)?;
        match given.purpose {
            Purpose::Accept => self.accept_position(),
            Purpose::Set => {
                if !self.set_position(Radians(given.position)) {
                    return Err(Refusal::TooFar);
                }
            }
        }
        Ok(here.0)
    }
}

impl Facts {
    /// The reading, if this position may be given.
    fn check(&self, given: Given) -> Result<Radians, Refusal> {
        let position = Radians(given.position);
        if !position.is_finite() {
            return Err(Refusal::NotFinite);
        }
        let here = self.reading.ok_or(Refusal::NoReading)?;
        if self.enabled {
            return Err(Refusal::Enabled);
        }
        if self.moving {
            return Err(Refusal::Moving);
        }
        match given.purpose {
            Purpose::Accept => self.may_accept(here, position)?,
            Purpose::Set => self.may_set()?,
        }
        Ok(here)
    }

    fn may_accept(&self, here: Radians, measured: Radians) -> Result<(), Refusal> {
        let RestartRule { sense, limits: (lowest, highest), .. } = self.rule.ok_or(Refusal::NoLimits)?;
        if !self.unreferenced {
            return Err(Refusal::Referenced);
        }
        if sense.range.is_none() {
            return Err(if sense.has_way_back() { Refusal::Incremental } else { Refusal::NoWayBack });
        }
        if here < lowest || here > highest {
            return Err(Refusal::OutsideLimits);
        }
        let near = (measured - here).abs() <= sense.tolerance;
        if near { Ok(()) } else { Err(Refusal::Differs) }
    }

    fn may_set(&self) -> Result<(), Refusal> {
        if self.unreferenced {
            let has_way_back = self.rule.is_none_or(|it| it.sense.has_way_back());
            return Err(if has_way_back { Refusal::Unreferenced } else { Refusal::NoWayBack });
        }
        let homes = matches!(self.homing, Homing::Drive { .. } | Homing::Absolute { .. });
        let knows = |rule: RestartRule| rule.sense.range.is_some() || homes;
        // The next start would restore an offset of the file, or the mark of the drive.
        match self.rule.is_some_and(knows) {
            true => Err(Refusal::KnowsBetter),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use motion::{PositionSense, RadiansPerSecondSquared, Seconds};

    use super::*;

    const HERE: Radians = Radians(0.5);
    const TOLERANCE: Radians = Radians(0.25);

    /// An unreferenced axis with an absolute encoder, disabled, at standstill within its limits.
    fn facts(range: Option<Radians>, homes_on_a_switch: bool) -> Facts {
        let tolerance = TOLERANCE;
        let sense = PositionSense { range, tolerance, homes_on_a_switch, ..PositionSense::default() };
        let limits = (Radians(-1.0), Radians(1.0));
        let deceleration = RadiansPerSecondSquared(1.0);
        Facts {
            reading: Some(HERE),
            enabled: false,
            moving: false,
            unreferenced: true,
            rule: Some(RestartRule { sense, limits, deceleration, engage: Seconds::ZERO }),
            homing: Homing::Never,
        }
    }

    fn absolute() -> Facts {
        facts(Some(Radians(6.0)), false)
    }

    fn give(facts: Facts, purpose: Purpose, position: f64) -> Result<Radians, Refusal> {
        facts.check(Given { axis: 0, position, purpose })
    }

    #[test]
    fn no_position_is_given_to_an_axis_that_may_move() {
        for purpose in [Purpose::Accept, Purpose::Set] {
            let told = |facts, position| give(facts, purpose, position).unwrap_err();
            for position in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                assert_eq!(told(absolute(), position), Refusal::NotFinite);
            }
            assert_eq!(told(Facts { reading: None, ..absolute() }, HERE.0), Refusal::NoReading);
            assert_eq!(told(Facts { enabled: true, ..absolute() }, HERE.0), Refusal::Enabled);
            assert_eq!(told(Facts { moving: true, ..absolute() }, HERE.0), Refusal::Moving);
        }
    }

    #[test]
    fn a_measured_position_is_accepted_within_tolerance_and_limits() {
        let accept = |facts, position| give(facts, Purpose::Accept, position);
        for (measured, expected) in [
            (HERE.0, Ok(HERE)),
            (HERE.0 + TOLERANCE.0, Ok(HERE)),
            (HERE.0 - TOLERANCE.0, Ok(HERE)),
            (HERE.0 + TOLERANCE.0 + 1e-9, Err(Refusal::Differs)),
            (HERE.0 - TOLERANCE.0 - 1e-9, Err(Refusal::Differs)),
        ] {
            assert_eq!(accept(absolute(), measured), expected, "{measured}");
        }
        for (reading, expected) in [
            (1.0, Ok(Radians(1.0))),
            (-1.0, Ok(Radians(-1.0))),
            (1.000_001, Err(Refusal::OutsideLimits)),
            (-1.000_001, Err(Refusal::OutsideLimits)),
        ] {
            let found = accept(Facts { reading: Some(Radians(reading)), ..absolute() }, reading);
            assert_eq!(found, expected, "{reading}");
        }
        let refused = |facts| accept(facts, HERE.0).unwrap_err();
        assert_eq!(refused(Facts { unreferenced: false, ..absolute() }), Refusal::Referenced);
        assert_eq!(refused(Facts { rule: None, ..absolute() }), Refusal::NoLimits);
        assert_eq!(refused(facts(None, true)), Refusal::Incremental);
        assert_eq!(refused(facts(None, false)), Refusal::NoWayBack);
    }

    #[test]
    fn a_position_is_set_only_where_nothing_else_restores_it() {
        let set = |facts| give(facts, Purpose::Set, 7.0);
        let referenced = |facts| Facts { unreferenced: false, ..facts };
        assert_eq!(set(absolute()), Err(Refusal::Unreferenced));
        assert_eq!(set(facts(None, true)), Err(Refusal::Unreferenced));
        assert_eq!(set(facts(None, false)), Err(Refusal::NoWayBack));
        assert_eq!(set(Facts { rule: None, ..absolute() }), Err(Refusal::Unreferenced));
        assert_eq!(set(referenced(absolute())), Err(Refusal::KnowsBetter));
        let incremental = referenced(facts(None, true));
        assert_eq!(set(incremental), Ok(HERE), "beyond the limits, too: they move along");
        let (position, timeout) = (Radians(0.0), Seconds(1.0));
        for (homing, expected) in [
            (Homing::Drive { position, timeout }, Err(Refusal::KnowsBetter)),
            (Homing::Absolute { offset: position }, Err(Refusal::KnowsBetter)),
            (Homing::CurrentPosition { position }, Ok(HERE)),
        ] {
            assert_eq!(set(Facts { homing, ..incremental }), expected, "{homing:?}");
            // Without limits nothing depends on it.
            assert_eq!(set(Facts { homing, rule: None, ..incremental }), Ok(HERE));
        }
    }
}
