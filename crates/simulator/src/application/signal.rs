//! Physical quantities at the inputs of simulated terminals and sensors.

use core::f64::consts::TAU;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ethercat::time::Instant;

use super::description::{DescriptionError, not_negative};

/// A quantity that one SubDevice sets and others read: the voltage of a wire, the angle of a shaft.
/// Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Level {
    bits: Arc<AtomicU64>,
    /// Newest values with their times, if the level changes between the steps of its readers.
    course: Option<Arc<SignalHistory>>,
}

/// Newest values of a level: time in ns and value, the newest before `next`.
#[derive(Debug)]
struct SignalHistory {
    values: Vec<[AtomicU64; 2]>,
    next: AtomicU64,
}

/// Values in a history: more than a catch-up of 2 ms needs at the fastest sampling.
const KEPT: usize = 512;

impl Level {
    /// A level that also provides its newest values by time.
    #[must_use]
    pub fn with_course() -> Self {
        let values = (0..KEPT).map(|_| Default::default()).collect();
        let course = Arc::new(SignalHistory { values, next: AtomicU64::new(0) });
        Self { course: Some(course), ..Self::default() }
    }

    /// Sets it from `now` on; times do not go back.
    pub fn set_at(&self, now: Instant, value: f64) {
        self.set(value);
        let Some(course) = &self.course else { return };
        // Relaxed: one thread steps all SubDevices.
        let next = course.next.load(Ordering::Relaxed);
        let [time, bits] = &course.values[next as usize % KEPT];
        time.store(now.as_nanos(), Ordering::Relaxed);
        bits.store(value.to_bits(), Ordering::Relaxed);
        course.next.store(next + 1, Ordering::Relaxed);
    }

    /// Its value at `now`, within the kept history. A level without a history returns the present
    /// value, and 0 before the first.
    #[must_use]
    pub fn at(&self, now: Instant) -> f64 {
        let Some(course) = &self.course else { return self.get() };
        let next = course.next.load(Ordering::Relaxed);
        let kept = next.saturating_sub(KEPT as u64)..next;
        let mut values = kept.rev().map(|number| &course.values[number as usize % KEPT]);
        let found = values.find(|[time, _]| time.load(Ordering::Relaxed) <= now.as_nanos());
        found.map_or(0.0, |[_, bits]| f64::from_bits(bits.load(Ordering::Relaxed)))
    }

    /// Its present value; 0 before the first.
    #[must_use]
    pub fn get(&self) -> f64 {
        // Relaxed here and below: the word orders no other memory.
        f64::from_bits(self.bits.load(Ordering::Relaxed))
    }

    /// Sets it.
    pub fn set(&self, value: f64) {
        self.bits.store(value.to_bits(), Ordering::Relaxed);
    }
}

/// History of a quantity in time, in the unit of the input that reads it.
#[derive(Clone, Debug)]
pub enum Signal {
    /// Constant value.
    Constant(f64),
    /// `offset + amplitude * sin(2 pi (frequency * time + phase))`.
    Sine {
        /// Value in the middle.
        offset: f64,
        /// Largest distance from it.
        amplitude: f64,
        /// Hertz; 0 or more.
        frequency: f64,
        /// Turns, 0 to 1.
        phase: f64,
    },
    /// From the first value evenly to the second, again and again.
    Ramp {
        /// First value.
        from: f64,
        /// Second value, which is not reached.
        to: f64,
        /// Ramps a second, in hertz; 0 or more.
        frequency: f64,
    },
    /// `scale` times what another SubDevice sets.
    Level {
        /// Quantity that is followed.
        level: Level,
        /// Units of the input for each of the level.
        scale: f64,
    },
}

impl Signal {
    /// Value at `now`; time zero is the epoch.
    #[must_use]
    pub fn at(&self, now: Instant) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Sine { offset, amplitude, frequency, phase } => {
                offset + amplitude * (TAU * (turns(*frequency, now) + phase)).sin()
            }
            Self::Ramp { from, to, frequency } => from + (to - from) * turns(*frequency, now).fract(),
            Self::Level { level, scale } => scale * level.at(now),
        }
    }

    /// Checks its numbers.
    pub(super) fn check(&self) -> Result<(), DescriptionError> {
        let (numbers, frequency) = match *self {
            Self::Constant(value) => ([value, 0.0, 0.0], 0.0),
            Self::Sine { offset, amplitude, frequency, phase } => ([offset, amplitude, phase], frequency),
            Self::Ramp { from, to, frequency } => ([from, to, 0.0], frequency),
            Self::Level { scale, .. } => ([scale, 0.0, 0.0], 0.0),
        };
        not_negative("frequency", frequency)?;
        match numbers.into_iter().find(|number| !number.is_finite()) {
            Some(found) => {
                Err(DescriptionError::Value { name: "signal", expected: "a finite number", found })
            }
            None => Ok(()),
        }
    }
}

/// Periods of `frequency` at `now`, whole ones left out as far as they are large.
fn turns(frequency: f64, now: Instant) -> f64 {
    // Whole seconds and the rest apart: a sum of years and nanoseconds would lose the latter.
    let seconds = (now.as_nanos() / 1_000_000_000) as f64;
    let rest = (now.as_nanos() % 1_000_000_000) as f64 * 1e-9;
    (frequency * seconds).fract() + frequency * rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_advance_in_time_and_levels_are_shared() {
        let ramp = Signal::Ramp { from: 10.0, to: -10.0, frequency: 50.0 };
        // Three quarters of its period, after a year.
        let now = Instant::from_nanos(31_536_000_015_000_000);
        assert!((ramp.at(now) + 5.0).abs() < 1e-6, "{}", ramp.at(now));
        let level = Level::default();
        let follows = Signal::Level { level: level.clone(), scale: 4.0 };
        level.set(-2.5);
        assert_eq!(follows.at(now), -10.0);
        assert!(Signal::Ramp { from: 0.0, to: f64::INFINITY, frequency: 1.0 }.check().is_err());
        assert!(Signal::Ramp { from: 0.0, to: 1.0, frequency: -1.0 }.check().is_err());
    }
}
