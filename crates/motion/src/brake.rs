//! A brake that holds an axis while its drive does not.
//!
//! It takes time to open and to close. The axis is moved only once the brake is open, and the drive
//! gives its torque away only once it is closed. In between the drive holds the axis against
//! external forces.
//!
//! A brake with feedback counts as open or closed only once its feedback shows that. The drive
//! keeps its torque at a brake that does not close.

mod feedback;

use types::state::StopReason;
use types::{BrakeFeedback, DigitalOutput};

use crate::units::Seconds;
use feedback::{FEEDBACK_CYCLES, FeedbackWatch};

pub use feedback::{BrakeCause, BrakeFault, BrakeReading, FEEDBACK_TIME, InputReading};

/// Times of a brake.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BrakeTimes {
    /// From power on its coil until the axis is free.
    pub release: Seconds,
    /// From no power on its coil until it holds.
    pub engage: Seconds,
}

/// Brake that a MainDevice has to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BrakeConfiguration {
    /// Times of its mechanism.
    pub times: BrakeTimes,
    /// Output that powers its coil, which has no other writer; `None` where the drive does that
    /// itself.
    pub output: Option<DigitalOutput>,
    /// Inputs that show whether it is open or closed.
    pub feedback: BrakeFeedback,
}

/// A brake, released by power: without power it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Brake {
    times: BrakeTimes,
    /// The drive powers it, while it is enabled.
    is_drives: bool,
    stage: BrakeStage,
    watch: FeedbackWatch,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum BrakeStage {
    Engaged,
    Releasing(Seconds),
    Released,
    Engaging(Seconds),
}

/// Input of the brake in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrakeSeen {
    /// The drive holds the axis.
    pub torque: bool,
    /// The axis should move, or be held by its drive.
    pub wanted: bool,
    /// The drive may drive the motor, as far as it shows.
    pub powered: bool,
    /// Its feedback.
    pub reading: BrakeReading,
    /// The drive exchanges process data.
    pub is_reached: bool,
    /// The torque is removed once the feedback has shown for [`FEEDBACK_TIME`] that the brake does
    /// not close.
    pub gives_way: bool,
}

/// Wish of the brake on a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Braked {
    /// Power on its coil.
    pub power: bool,
    /// The axis may be moved; until then the drive holds its position.
    pub free: bool,
    /// The drive has to keep its torque, even if a request would remove it.
    pub keep_torque: bool,
}

impl Brake {
    /// A brake that holds. Times that are negative or not finite count as 0.
    #[must_use]
    pub fn new(times: BrakeTimes) -> Self {
        let sane = |time: Seconds| if time.is_finite() { Seconds(time.0.max(0.0)) } else { Seconds::ZERO };
        let times = BrakeTimes { release: sane(times.release), engage: sane(times.engage) };
        Self { times, is_drives: false, stage: BrakeStage::Engaged, watch: FeedbackWatch::default() }
    }

    /// The same, powered by the drive while it is enabled.
    #[must_use]
    pub const fn by_drive(self) -> Self {
        Self { is_drives: true, ..self }
    }

    /// Time it takes.
    #[must_use]
    pub const fn times(&self) -> BrakeTimes {
        self.times
    }

    /// Time from the end of the torque until its feedback has shown whether it is closed, in cycles
    /// of this period.
    #[must_use]
    pub fn time_to_show(&self, period: Seconds) -> Seconds {
        // Twice, as some cycles may be lost.
        let lasts = FEEDBACK_TIME.0.max(f64::from(FEEDBACK_CYCLES) * period.0);
        self.times.engage + Seconds(2.0 * lasts + f64::from(FEEDBACK_CYCLES) * period.0)
    }

    /// True once its feedback has shown that it closes, or a fault. Before that its axis is not
    /// enabled.
    #[must_use]
    pub const fn has_shown(&self) -> bool {
        self.watch.has_shown()
    }

    /// True while its feedback may still show that it does not close without torque.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.watch.is_pending()
    }

    /// One cycle, `elapsed` after the last. A drive that has lost its torque closes the brake at
    /// once.
    pub fn step(&mut self, elapsed: Seconds, seen: &BrakeSeen) -> Braked {
        let BrakeSeen { torque, wanted, powered, ref reading, .. } = *seen;
        self.stage = match self.stage {
            _ if !torque => BrakeStage::Engaged,
            BrakeStage::Engaged if wanted => BrakeStage::Releasing(Seconds::ZERO),
            BrakeStage::Releasing(_) | BrakeStage::Released if !wanted => {
                BrakeStage::Engaging(Seconds::ZERO)
            }
            BrakeStage::Engaging(_) if wanted => BrakeStage::Releasing(Seconds::ZERO),
            BrakeStage::Releasing(since) => BrakeStage::Releasing(since + elapsed),
            BrakeStage::Engaging(since) => BrakeStage::Engaging(since + elapsed),
            stage => stage,
        };
        let commanded = match self.stage {
            BrakeStage::Releasing(_) | BrakeStage::Released => Some(true),
            // Its drive closes it once it is disabled.
            _ if self.is_drives && powered => None,
            _ => Some(false),
        };
        self.watch.look(elapsed, commanded, reading, self.times, seen.is_reached);
        match self.stage {
            BrakeStage::Releasing(since) if since >= self.times.release && reading.not_open().is_none() => {
                self.stage = BrakeStage::Released;
            }
            BrakeStage::Engaging(since) if since >= self.times.engage => {
                let is_closed = match self.is_known_open() {
                    true => seen.gives_way || self.watch.has_agreed(),
                    false => reading.not_closed().is_none(),
                };
                if self.is_drives || is_closed {
                    self.stage = BrakeStage::Engaged;
                }
            }
            _ => {}
        }
        Braked {
            power: matches!(self.stage, BrakeStage::Releasing(_) | BrakeStage::Released),
            free: self.stage == BrakeStage::Released,
            keep_torque: matches!(self.stage, BrakeStage::Engaging(_)),
        }
    }

    /// Contradiction of its feedback that has lasted, until it is acknowledged.
    #[must_use]
    pub const fn fault(&self) -> Option<BrakeFault> {
        self.watch.fault()
    }

    /// Ends a fault of its feedback, unless the feedback still contradicts the command.
    pub fn acknowledge(&mut self) {
        self.watch.acknowledge();
    }

    /// True if the drive keeps its torque because the brake does not close.
    #[must_use]
    pub fn holds_by_torque(&self) -> bool {
        matches!(self.stage, BrakeStage::Engaging(_)) && self.is_known_open()
    }

    fn is_known_open(&self) -> bool {
        self.fault().is_some_and(|it| it.reason == StopReason::BrakeNotClosed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CYCLE: Seconds = Seconds(1e-3);

    fn brake() -> Brake {
        Brake::new(BrakeTimes { release: Seconds(0.1), engage: Seconds(0.05) })
    }

    /// One cycle of a brake without feedback.
    fn step(brake: &mut Brake, torque: bool, wanted: bool) -> Braked {
        brake.step(CYCLE, &BrakeSeen { torque, wanted, ..BrakeSeen::default() })
    }

    /// Cycles until `wanted` shows.
    fn cycles_until(
        brake: &mut Brake,
        torque: bool,
        moved: bool,
        wanted: impl Fn(Braked) -> bool,
    ) -> usize {
        (0..1_000).position(|_| wanted(step(brake, torque, moved))).unwrap()
    }

    #[test]
    fn an_axis_is_moved_only_once_its_brake_is_open() {
        let mut brake = brake();
        assert_eq!(step(&mut brake, false, true), Braked { power: false, free: false, keep_torque: false });
        let first = step(&mut brake, true, true);
        assert!(first.power && !first.free, "{first:?}");
        let cycles = cycles_until(&mut brake, true, true, |braked| braked.free);
        assert!((98..=101).contains(&cycles), "{cycles}");
    }

    #[test]
    fn torque_stays_until_the_brake_holds() {
        let mut brake = brake();
        cycles_until(&mut brake, true, true, |braked| braked.free);
        let first = step(&mut brake, true, false);
        assert!(!first.power && !first.free && first.keep_torque, "{first:?}");
        let cycles = cycles_until(&mut brake, true, false, |braked| !braked.keep_torque);
        assert!((48..=51).contains(&cycles), "{cycles}");
    }

    #[test]
    fn a_drive_without_torque_closes_it_at_once() {
        let mut brake = brake();
        cycles_until(&mut brake, true, true, |braked| braked.free);
        assert_eq!(step(&mut brake, false, true), Braked { power: false, free: false, keep_torque: false });
    }

    #[test]
    fn reversed_brake_command_takes_effect_at_once() {
        let mut brake = brake();
        cycles_until(&mut brake, true, true, |braked| braked.power);
        let closing = step(&mut brake, true, false);
        assert!(!closing.power && closing.keep_torque, "opening, and not wanted any more: {closing:?}");
        let opening = step(&mut brake, true, true);
        assert!(opening.power && !opening.keep_torque, "closing, and wanted again: {opening:?}");
        let cycles = cycles_until(&mut brake, true, true, |braked| braked.free);
        assert!((98..=101).contains(&cycles), "from the start: {cycles}");
    }

    #[test]
    fn times_that_mean_nothing_are_none() {
        let mut brake = Brake::new(BrakeTimes { release: Seconds(f64::NAN), engage: Seconds(-1.0) });
        assert!(step(&mut brake, true, true).free);
        assert!(!step(&mut brake, true, false).keep_torque);
    }

    proptest! {
        /// The coil never has power without torque on the axis, and nothing moves against a closed
        /// brake.
        #[test]
        fn it_never_lets_an_axis_fall(cycles in prop::collection::vec(any::<(bool, bool)>(), 1..400)) {
            let mut brake = brake();
            for (torque, wanted) in cycles {
                let braked = step(&mut brake, torque, wanted);
                prop_assert!(!braked.power || torque);
                prop_assert!(!braked.free || braked.power);
                prop_assert!(!(braked.keep_torque && braked.power));
            }
        }
    }
}
