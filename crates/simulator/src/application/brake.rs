//! A brake on the shaft of a motor: power opens it, and a spring closes it.
//!
//! A terminal's output or a drive powers its coil ([`ShaftBrake::set_power`]). The drive has its
//! friction, and digital inputs show whether it is open or closed. It can stick.
//!
//! Simplified: it holds wholly until it is open, and not at all until it is closed.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use ethercat::time::Instant;

/// A brake. Clones are the same one.
#[derive(Clone, Debug)]
pub struct ShaftBrake(Arc<Mechanism>);

#[derive(Debug)]
struct Mechanism {
    release: u64,
    engage: u64,
    /// Power as it was set last, and when, in ns.
    coil: AtomicBool,
    coil_set: AtomicU64,
    /// Power as it acts, and since when, in ns.
    power: AtomicBool,
    since: AtomicU64,
    /// Time of the last look, in ns.
    looked: AtomicU64,
    sticks: AtomicU8,
}

/// Place in which a brake sticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sticking {
    /// It does not stick.
    #[default]
    Free,
    /// It stays closed.
    Closed,
    /// It stays open.
    Open,
}

/// State of a brake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrakeState {
    /// It is wholly open.
    pub released: bool,
    /// It is wholly closed.
    pub closed: bool,
    /// It holds the shaft.
    pub holds: bool,
}

impl ShaftBrake {
    /// A closed brake that opens within `release` and closes within `engage`: it takes four fifths
    /// of these times.
    #[must_use]
    pub fn new(release: Duration, engage: Duration) -> Self {
        let takes = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / 5 * 4;
        Self(Arc::new(Mechanism {
            release: takes(release),
            engage: takes(engage),
            coil: AtomicBool::new(false),
            coil_set: AtomicU64::new(0),
            power: AtomicBool::new(false),
            since: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            sticks: AtomicU8::new(Sticking::Free as u8),
        }))
    }

    /// Sets power on its coil. Without a call for 20 ms the coil has no power: its source has none.
    pub fn set_power(&self, now: Instant, on: bool) {
        // Relaxed here and below: one thread steps all SubDevices.
        self.0.coil.store(on, Ordering::Relaxed);
        self.0.coil_set.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Has it stick, or ends that: then it is as its coil has it.
    pub fn stick(&self, sticking: Sticking) {
        self.0.sticks.store(sticking as u8, Ordering::Relaxed);
    }

    /// Its state at `now`.
    #[must_use]
    pub fn look(&self, now: Instant) -> BrakeState {
        let it = &*self.0;
        let now = now.as_nanos();
        let looked = it.looked.swap(now, Ordering::Relaxed);
        if now.saturating_sub(looked) > ALIVE.as_nanos() as u64 / 2 {
            // All SubDevices were late: their source of power was not set either.
            it.coil_set.store(now, Ordering::Relaxed);
        }
        let is_alive = now.saturating_sub(it.coil_set.load(Ordering::Relaxed)) <= ALIVE.as_nanos() as u64;
        let power = it.coil.load(Ordering::Relaxed) && is_alive;
        if it.power.swap(power, Ordering::Relaxed) != power {
            it.since.store(now, Ordering::Relaxed);
        }
        let since = it.since.load(Ordering::Relaxed);
        let takes = if power { it.release } else { it.engage };
        let done = since == 0 || now.saturating_sub(since) >= takes;
        match it.sticks.load(Ordering::Relaxed) {
            sticks if sticks == Sticking::Closed as u8 => CLOSED,
            sticks if sticks == Sticking::Open as u8 => OPEN,
            _ => match (power, done) {
                (true, true) => OPEN,
                (false, true) => CLOSED,
                (opens, false) => BrakeState { released: false, closed: false, holds: opens },
            },
        }
    }
}

const OPEN: BrakeState = BrakeState { released: true, closed: false, holds: false };
const CLOSED: BrakeState = BrakeState { released: false, closed: true, holds: true };

/// Time after which a coil that is not set has no power.
const ALIVE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    /// A brake, and its source of power, stepped every millisecond.
    struct Bench {
        brake: ShaftBrake,
        power: Option<bool>,
        now: u64,
    }

    impl Bench {
        fn new() -> Self {
            let brake = ShaftBrake::new(Duration::from_millis(100), Duration::from_millis(50));
            Self { brake, power: Some(false), now: 1_000 }
        }

        fn run(&mut self, milliseconds: u64) -> BrakeState {
            let mut state = CLOSED;
            for _ in 0..milliseconds {
                self.now += 1;
                let now = Instant::from_nanos(self.now * 1_000_000);
                self.power.into_iter().for_each(|power| self.brake.set_power(now, power));
                state = self.brake.look(now);
            }
            state
        }
    }

    #[test]
    fn it_opens_and_closes_in_its_time() {
        let mut bench = Bench::new();
        assert_eq!(bench.run(200), CLOSED);
        bench.power = Some(true);
        let opening = bench.run(79);
        assert_eq!(opening, BrakeState { released: false, closed: false, holds: true });
        assert_eq!(bench.run(2), OPEN);
        bench.power = Some(false);
        let closing = bench.run(39);
        assert_eq!(closing, BrakeState { released: false, closed: false, holds: false });
        assert_eq!(bench.run(2), CLOSED);
    }

    #[test]
    fn it_sticks_until_it_is_free() {
        let mut bench = Bench::new();
        bench.power = Some(true);
        assert_eq!(bench.run(200), OPEN);
        bench.brake.stick(Sticking::Closed);
        assert_eq!(bench.run(200), CLOSED);
        bench.brake.stick(Sticking::Open);
        bench.power = Some(false);
        assert_eq!(bench.run(200), OPEN);
        bench.brake.stick(Sticking::Free);
        assert_eq!(bench.run(1), CLOSED);
    }

    #[test]
    fn it_closes_if_its_source_has_no_power() {
        let mut bench = Bench::new();
        bench.power = Some(true);
        assert_eq!(bench.run(200), OPEN);
        bench.power = None;
        assert_eq!(bench.run(15), OPEN);
        assert_eq!(bench.run(60), CLOSED);
        // A gap in time of all SubDevices is no loss of power.
        bench.power = Some(true);
        assert_eq!(bench.run(200), OPEN);
        bench.now += 90;
        let late = Instant::from_nanos(bench.now * 1_000_000);
        assert_eq!(bench.brake.look(late), OPEN);
        assert_eq!(bench.run(200), OPEN);
    }
}
