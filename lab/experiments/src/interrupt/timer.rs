//! Latency from a timer's programmed expiry to user code, for each way to sleep.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethercat::time::Instant;
use rt::clock::{Clock, MonotonicClock};
use rt::pacer::Grid;
use rt::profile::{Granted, RealTimeProfile};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::distribution::resident;
use crate::sys::posix_timer::SignalTimer;

/// Way to sleep until an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// `clock_nanosleep`, as in the cycle.
    Sleep,
    /// Timer read through a file descriptor.
    Descriptor,
    /// Timer that sends a signal to the thread.
    Signal,
}

impl Timer {
    pub(super) const ALL: [Self; 3] = [Self::Sleep, Self::Descriptor, Self::Signal];

    /// Name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sleep => "timer: clock_nanosleep",
            Self::Descriptor => "timer: timerfd",
            Self::Signal => "timer: POSIX timer, signal",
        }
    }

    /// Sleeps `samples` times until an instant on a grid; returns the latencies, ns, and the
    /// settings refused.
    ///
    /// # Errors
    /// The timer cannot be created.
    pub(super) fn measure(
        self,
        samples: usize,
        interval: Duration,
        profile: &RealTimeProfile,
        stop: &AtomicBool,
    ) -> io::Result<(Vec<u64>, Vec<String>)> {
        let granted = Granted::ask(profile);
        let alarm = self.alarm()?;
        let mut latencies = resident(samples);
        let grid = Grid::new(MonotonicClock.now() + interval, interval);
        let mut next = 0;
        while latencies.len() < samples && !stop.load(Ordering::Relaxed) {
            // Always a future instant: a past one would not use the timer.
            let index = grid.next_index(MonotonicClock.now() + interval / 4).max(next);
            next = index + 1;
            let expiry = grid.release(index);
            alarm.sleep_until(expiry)?;
            let seen = MonotonicClock.now();
            latencies.push(types::time::nanoseconds(seen.since(expiry)));
        }
        Ok((latencies, granted.refusals().collect()))
    }

    fn alarm(self) -> io::Result<Alarm> {
        Ok(match self {
            Self::Sleep => Alarm::Sleep,
            Self::Descriptor => {
                Alarm::Descriptor(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?)
            }
            Self::Signal => Alarm::Signal(Box::new(SignalTimer::new()?)),
        })
    }
}

enum Alarm {
    Sleep,
    Descriptor(OwnedFd),
    Signal(Box<SignalTimer>),
}

impl Alarm {
    fn sleep_until(&self, instant: Instant) -> io::Result<()> {
        match self {
            Self::Sleep => {
                MonotonicClock.sleep_until(instant);
                Ok(())
            }
            Self::Descriptor(timer) => sleep_by(timer, instant),
            Self::Signal(timer) => timer.sleep_until(instant.as_nanos()),
        }
    }
}

fn sleep_by(timer: &OwnedFd, instant: Instant) -> io::Result<()> {
    let end = Duration::from_nanos(instant.as_nanos().max(1));
    let setting = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec { tv_sec: end.as_secs() as i64, tv_nsec: end.subsec_nanos().into() },
    };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &setting)?;
    let mut expirations = [0; 8];
    loop {
        match rustix::io::read(timer, &mut expirations) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_timer_is_seen_before_its_expiry() {
        for timer in Timer::ALL {
            let alarm = timer.alarm().unwrap();
            for _ in 0..10 {
                let end = MonotonicClock.now() + Duration::from_micros(300);
                alarm.sleep_until(end).unwrap();
                assert!(MonotonicClock.now() >= end, "{timer:?}");
            }
        }
    }
}
