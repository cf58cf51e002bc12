//! Objects of a drive that bound its axis: a second barrier behind the limits of the host.
//!
//! A barrier is written in PreOp, at every bring-up, and read back. A drive that lacks the object,
//! or refuses the write, starts without this barrier. A drive that accepts the value and keeps
//! another one does not start.

use crate::cia402::object::{SOFTWARE_POSITION_LIMIT, of_first_axis};
use crate::sdo_abort::AbortCode;

use super::coe_mapping::number;
use super::configuration::{Barrier, BarrierTask, UnitValue};
use super::error::SubDeviceError;
use super::request::MailboxError;

/// State of a barrier in the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BarrierState {
    /// Nothing is known yet.
    #[default]
    Unknown,
    /// The drive was written this value and returned it.
    Active(u32),
    /// The drive returned this value, and was written none.
    Read(u32),
    /// The drive lacks the object.
    Missing,
    /// The drive names no unit for it, or an unknown one.
    UnknownUnit(u32),
    /// The drive refused the access.
    Refused(AbortCode),
}

impl BarrierState {
    /// Value that the drive returned.
    #[must_use]
    pub const fn value(self) -> Option<u32> {
        match self {
            Self::Active(value) | Self::Read(value) => Some(value),
            Self::Unknown | Self::Missing | Self::UnknownUnit(_) | Self::Refused(_) => None,
        }
    }
}

impl Barrier {
    /// True if its value has a sign.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        is_signed(self.index)
    }

    /// The number that `bits` are as its value.
    #[must_use]
    pub const fn number(&self, bits: u32) -> i64 {
        if self.is_signed() { bits as i32 as i64 } else { bits as i64 }
    }

    /// Value to write where the drive names this unit.
    fn value(&self, unit: u32) -> Option<u32> {
        match self.task {
            BarrierTask::Read => None,
            BarrierTask::Write(value) => Some(value),
            BarrierTask::WriteInUnit(value) => value.in_unit(unit).map(|it| it.min(self.highest())),
        }
    }

    const fn highest(&self) -> u32 {
        if self.length == 2 { u16::MAX as u32 } else { u32::MAX }
    }
}

/// True if the value of this object has a sign, as position limits and option codes have.
pub(super) const fn is_signed(index: u16) -> bool {
    matches!(of_first_axis(index), SOFTWARE_POSITION_LIMIT)
}

impl UnitValue {
    /// The value in the unit of this code (ETG.6010: prefix, numerator, denominator), rounded up;
    /// `None` for an unknown unit.
    #[must_use]
    pub fn in_unit(&self, code: u32) -> Option<u32> {
        if code == 0 {
            return self.assumes_counts.then(|| whole(self.milli_counts as f64 / MILLI));
        }
        let [_, denominator, numerator, prefix] = code.to_le_bytes();
        let counts = match numerator {
            INCREMENTS => 1.0,
            REVOLUTIONS => self.milli_counts_per_revolution as f64 / MILLI,
            _ => return None,
        };
        let seconds = match denominator {
            SECONDS | SECONDS_SQUARED => 1.0,
            MINUTES => 60.0,
            _ => return None,
        };
        let mut value = self.milli_counts as f64 / MILLI * seconds / counts;
        let exponent = prefix as i8;
        for _ in 0..exponent.unsigned_abs().min(HIGHEST_PREFIX) {
            value = if exponent < 0 { value * 10.0 } else { value / 10.0 };
        }
        value.is_finite().then(|| whole(value))
    }
}

/// The next whole number above, at least 1.
fn whole(value: f64) -> u32 {
    let below = value as u32;
    // Less than a thousandth above a whole number is rounding.
    let above = if value - f64::from(below) > 1e-3 { below.saturating_add(1) } else { below };
    above.max(1)
}

/// Accesses to one barrier, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BarrierAccess {
    step: Access,
    /// Value written.
    value: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Unit(u16),
    Write,
    Read,
}

/// Request of an access to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BarrierRequest {
    Upload(u16, u8),
    Download([u8; 4]),
}

impl BarrierAccess {
    pub(super) fn new(barrier: &Barrier) -> Self {
        let (step, value) = match barrier.task {
            BarrierTask::Read => (Access::Read, 0),
            BarrierTask::Write(value) => (Access::Write, value),
            BarrierTask::WriteInUnit(value) => (Access::Unit(value.unit), 0),
        };
        Self { step, value }
    }

    pub(super) fn request(&self, barrier: &Barrier) -> BarrierRequest {
        match self.step {
            Access::Unit(unit) => BarrierRequest::Upload(unit, 0),
            Access::Write => BarrierRequest::Download(self.value.to_le_bytes()),
            Access::Read => BarrierRequest::Upload(barrier.index, barrier.sub_index),
        }
    }

    /// The drive answered: the state of the barrier, or `None` if there is more to do.
    ///
    /// # Errors
    /// The drive keeps another value, or does not answer.
    pub(super) fn answered(
        &mut self,
        barrier: &Barrier,
        answer: Result<&[u8], MailboxError>,
    ) -> Result<Option<BarrierState>, SubDeviceError> {
        let Barrier { index, sub_index, .. } = *barrier;
        let bytes = match (answer, self.step) {
            (Ok(bytes), _) => bytes,
            // A drive without the object names no unit.
            (Err(MailboxError::Aborted(_)), Access::Unit(_)) => &[],
            (Err(MailboxError::Aborted(AbortCode::NO_OBJECT | AbortCode::NO_SUB_INDEX)), _) => {
                return Ok(Some(BarrierState::Missing));
            }
            (Err(MailboxError::Aborted(code)), _) => return Ok(Some(BarrierState::Refused(code))),
            (Err(error), _) => return Err(SubDeviceError::Sdo { index, sub_index, error }),
        };
        match self.step {
            Access::Unit(_) => {
                let unit = number(bytes);
                let Some(value) = barrier.value(unit) else {
                    return Ok(Some(BarrierState::UnknownUnit(unit)));
                };
                *self = Self { step: Access::Write, value };
                Ok(None)
            }
            Access::Write => {
                self.step = Access::Read;
                Ok(None)
            }
            Access::Read => {
                let found = number(bytes) & barrier.highest();
                match barrier.task {
                    BarrierTask::Read => Ok(Some(BarrierState::Read(found))),
                    _ if found == self.value & barrier.highest() => Ok(Some(BarrierState::Active(found))),
                    _ => {
                        let [expected, found] = [self.value, found].map(|it| barrier.number(it));
                        Err(SubDeviceError::Barrier { index, sub_index, expected, found })
                    }
                }
            }
        }
    }
}

const MILLI: f64 = 1000.0;

/// Codes of units (CiA 303-2).
const INCREMENTS: u8 = 0xB5;
const REVOLUTIONS: u8 = 0xB4;
const SECONDS: u8 = 0x03;
const MINUTES: u8 = 0x47;
const SECONDS_SQUARED: u8 = 0x57;

/// Highest power of ten of a unit.
const HIGHEST_PREFIX: u8 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 revolutions a second of 1000 counts.
    const VALUE: UnitValue = UnitValue {
        unit: 0x60A9,
        milli_counts: 10_000_000,
        milli_counts_per_revolution: 1_000_000,
        assumes_counts: true,
    };

    const fn barrier(task: BarrierTask) -> Barrier {
        Barrier { index: 0x607F, sub_index: 0, length: 4, task }
    }

    #[test]
    fn values_are_in_the_unit_that_the_drive_names() {
        let rows = [
            (0x00B5_0300, Some(10_000)),
            (0x03B5_0300, Some(10)),
            (0x00B4_0300, Some(10)),
            (0x00B4_4700, Some(600)),
            (0xFFB4_4700, Some(6_000)),
            (0x00B5_5700, Some(10_000)),
            (0, Some(10_000)),
            // Metres per second.
            (0x0001_0300, None),
            (0x00B5_FF00, None),
        ];
        for (code, expected) in rows {
            assert_eq!(VALUE.in_unit(code), expected, "{code:#010x}");
        }
        assert_eq!(UnitValue { assumes_counts: false, ..VALUE }.in_unit(0), None);
        assert_eq!(UnitValue { milli_counts: 1_500, ..VALUE }.in_unit(0), Some(2), "rounded up");
        assert_eq!(UnitValue { milli_counts: u64::MAX, ..VALUE }.in_unit(0x9CB5_0300), Some(u32::MAX));
    }

    /// Bytes of an answer, or the code of an abort.
    type Answer = Result<&'static [u8], AbortCode>;

    fn play(barrier: Barrier, answers: &[Answer]) -> Result<Option<BarrierState>, SubDeviceError> {
        let mut access = BarrierAccess::new(&barrier);
        for (number, answer) in answers.iter().enumerate() {
            let state = access.answered(&barrier, answer.map_err(MailboxError::Aborted))?;
            if state.is_some() {
                assert_eq!(number + 1, answers.len(), "answers are left");
                return Ok(state);
            }
        }
        Ok(None)
    }

    #[test]
    fn a_drive_without_the_object_has_no_barrier_and_starts() {
        use BarrierState::{Active, Missing, Read, Refused, UnknownUnit};
        let ok: Answer = Ok(&[]);
        let is = |bytes| -> Answer { Ok(bytes) };
        let (write, read) = (barrier(BarrierTask::Write(7)), barrier(BarrierTask::Read));
        let in_unit = barrier(BarrierTask::WriteInUnit(UnitValue { assumes_counts: false, ..VALUE }));
        let rows: [(Barrier, &[Answer], BarrierState); 8] = [
            (write, &[ok, is(&[7, 0, 0, 0])], Active(7)),
            (write, &[Err(AbortCode::NO_OBJECT)], Missing),
            (write, &[Err(AbortCode::READ_ONLY)], Refused(AbortCode::READ_ONLY)),
            (read, &[is(&[2, 0])], Read(2)),
            (read, &[Err(AbortCode::NO_SUB_INDEX)], Missing),
            (in_unit, &[is(&[0, 0x47, 0xB4, 0]), ok, is(&[0x58, 2, 0, 0])], Active(600)),
            (in_unit, &[Err(AbortCode::NO_OBJECT)], UnknownUnit(0)),
            (in_unit, &[is(&[0, 3, 1, 0])], UnknownUnit(0x0001_0300)),
        ];
        for (barrier, answers, expected) in rows {
            assert_eq!(play(barrier, answers), Ok(Some(expected)), "{barrier:?} {answers:?}");
        }
    }

    #[test]
    fn a_drive_that_keeps_another_value_is_refused() {
        let limit = Barrier { index: 0x687D, sub_index: 1, ..barrier(BarrierTask::Write(-5_i32 as u32)) };
        let kept = play(limit, &[Ok(&[]), Ok(&[0, 0, 0, 0])]).unwrap_err();
        let expected = "object 0x687d:01 is 0 after -5 was written to it, expected -5, as the limits of its axis say: the drive \
             keeps its own value; correct the limits, or write the value of the drive in startup";
        assert_eq!(kept.to_string(), expected);
    }
}
