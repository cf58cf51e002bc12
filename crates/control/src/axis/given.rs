//! Position of an axis as the operator gives it.

use ipc::reference::{Given, Outcome, Purpose, Refusal};
use motion::homing::Homing;
use motion::supervision::STANDS;
use motion::{Radians, RestartRule};

use super::binding::Axis;

impl Axis {
    /// Accepts or sets its position: with its drive disabled, at standstill.
    pub(super) fn give_position(&mut self, given: Given) -> Outcome {
        let position = Radians(given.position);
        if !position.is_finite() {
            return Err(Refusal::NotFinite);
        }
        let here = self.reading().ok_or(Refusal::NoReading)?;
        if self.is_enabled() {
            return Err(Refusal::Enabled);
        }
        if self.is_faster_than(STANDS) {
            return Err(Refusal::Moving);
        }
        match given.purpose {
            Purpose::Accept => {
                self.may_accept(here, position)?;
                self.accept_position();
            }
            Purpose::Set => {
                self.may_set()?;
                if !self.set_position(position) {
                    return Err(Refusal::TooFar);
                }
            }
        }
        Ok(here.0)
    }

    fn may_accept(&self, here: Radians, measured: Radians) -> Result<(), Refusal> {
        let RestartRule { sense, limits: (lowest, highest), .. } =
            self.restart_rule().ok_or(Refusal::NoLimits)?;
        if !self.is_unreferenced() {
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
        if self.is_unreferenced() {
            let has_way_back = self.restart_rule().is_none_or(|it| it.sense.has_way_back());
            return Err(if has_way_back { Refusal::Unreferenced } else { Refusal::NoWayBack });
        }
        let homes = matches!(self.homing(), Homing::Drive { .. } | Homing::Absolute { .. });
        let knows = |rule: RestartRule| rule.sense.range.is_some() || homes;
        // The next start would restore an offset of the file, or the mark of the drive.
        match self.restart_rule().is_some_and(knows) {
            true => Err(Refusal::KnowsBetter),
            false => Ok(()),
        }
    }
}
