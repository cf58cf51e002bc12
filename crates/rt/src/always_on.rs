//! Settings that every cycle needs, without a profile's request.
//!
//! * `/dev/cpu_dma_latency` held at 0: idle CPUs stay in states they leave at once (PM QoS, kernel
//!   documentation).
//! * Timer slack of 1 ns: an ordinary thread's sleep may otherwise end 50 us late to save wake-ups.
//! * Transparent huge pages off for this process: the kernel would stop it to merge its pages.
//! * The kernel's limit on real-time threads is read and reported: [`Throttling`].
//!
//! All of it ends with the thread that holds it, and with the process however it ends.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};

use rustix::thread::{
    current_timer_slack, disable_transparent_huge_pages, set_current_timer_slack,
    transparent_huge_pages_are_disabled,
};

use crate::profile::Grant;

/// Settings that are on, and refused ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlwaysOn {
    /// `/dev/cpu_dma_latency` held at 0.
    pub latency: Grant<()>,
    /// Timer slack 1 ns.
    pub timer_slack: Grant<()>,
    /// No transparent huge pages.
    pub huge_pages_off: Grant<()>,
    /// Settings that the kernel keeps for others.
    pub throttling: Throttling,
    /// The reservation of ordinary threads, where the kernel has one.
    pub fair_server: Option<FairServer>,
}

impl AlwaysOn {
    /// Refusals, and the kernel's limits of real-time threads, each a sentence.
    pub fn notes(&self) -> impl Iterator<Item = String> + '_ {
        let refused = [
            ("/dev/cpu_dma_latency could not be held at 0", &self.latency),
            ("the timer slack could not be set", &self.timer_slack),
            ("transparent huge pages could not be switched off", &self.huge_pages_off),
        ];
        let refused = refused
            .into_iter()
            .filter_map(|(what, grant)| grant.refusal().map(|((), why)| format!("{what} ({why})")));
        let throttled = (self.throttling != Throttling::Off).then(|| self.throttling.to_string());
        refused.chain(throttled).chain(self.fair_server.map(|server| server.to_string()))
    }
}

/// Limits by which the kernel keeps real-time threads from taking everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttling {
    /// Not at all, or it does not say.
    Off,
    /// `sched_rt_runtime_us` in every `sched_rt_period_us`; what is used up is waited for.
    Limited {
        /// us.
        runtime: u64,
        /// us.
        period: u64,
    },
}

impl Throttling {
    /// Reads the machine's present state.
    #[must_use]
    pub fn read() -> Self {
        let number = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
            text.trim().parse::<i64>().ok()
        };
        Self::of(number("sched_rt_runtime_us"), number("sched_rt_period_us"))
    }

    fn of(runtime: Option<i64>, period: Option<i64>) -> Self {
        match (runtime.map(u64::try_from), period.map(u64::try_from)) {
            (Some(Ok(runtime)), Some(Ok(period))) if runtime < period => Self::Limited { runtime, period },
            _ => Self::Off,
        }
    }
}

impl fmt::Display for Throttling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => write!(f, "real-time threads are not throttled"),
            Self::Limited { runtime, period } => write!(
                f,
                "real-time threads that use more than {} % of a CPU wait until {} us have passed \
                 (sched_rt_runtime_us {runtime}): -1 switches that off",
                100.0 * *runtime as f64 / *period as f64,
                period
            ),
        }
    }
}

/// The fair server of Linux 6.12 and later: ordinary threads of a CPU that got nothing get this
/// much, before any SCHED_FIFO thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairServer {
    /// us.
    pub runtime: u64,
    /// us.
    pub period: u64,
}

impl FairServer {
    /// Reads debugfs; if it is not mounted, the default of this kernel release.
    #[must_use]
    pub fn read() -> Option<Self> {
        let number = |name: &str| {
            let text =
                fs::read_to_string(format!("/sys/kernel/debug/sched/fair_server/cpu0/{name}")).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self::of(number("runtime").zip(number("period")), &release)
    }

    fn of(nanoseconds: Option<(u64, u64)>, release: &str) -> Option<Self> {
        let mut parts =
            release.split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse().ok());
        let version: (Option<u32>, Option<u32>) = (parts.next().flatten(), parts.next().flatten());
        match nanoseconds {
            Some((0, _)) => None,
            Some((runtime, period)) => Some(Self { runtime: runtime / 1_000, period: period / 1_000 }),
            None if version >= (Some(6), Some(12)) => Some(Self { runtime: 50_000, period: 1_000_000 }),
            None => None,
        }
    }
}

impl fmt::Display for FairServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runtime, period } = self;
        write!(
            f,
            "the kernel's fair server gives {runtime} us in {period} us to ordinary threads \
             without CPU time, before the cycle: keep them off it (C), or write 0 to \
             /sys/kernel/debug/sched/fair_server/cpuN/runtime"
        )
    }
}

/// Holds it for the calling thread and its process, until it is dropped there.
#[derive(Debug)]
pub(crate) struct Held {
    _latency: Option<File>,
    slack: Option<NonZeroU64>,
    huge_pages: bool,
}

/// Requests all of it.
pub(crate) fn hold() -> (AlwaysOn, Held) {
    let mut held = Held { _latency: None, slack: None, huge_pages: false };
    let latency = Grant::ask(Some(()), |()| {
        held._latency = Some(hold_latency().map_err(|error| why(&error))?);
        Ok(())
    });
    let timer_slack = Grant::ask(Some(()), |()| {
        let before = current_timer_slack().map_err(|error| why(&error.into()))?;
        set_current_timer_slack(Some(NonZeroU64::MIN)).map_err(|error| why(&error.into()))?;
        held.slack = NonZeroU64::new(before);
        Ok(())
    });
    let huge_pages_off = Grant::ask(Some(()), |()| {
        held.huge_pages = huge_pages_off().map_err(|error| why(&error))?;
        Ok(())
    });
    (
        AlwaysOn {
            latency,
            timer_slack,
            huge_pages_off,
            throttling: Throttling::read(),
            fair_server: FairServer::read(),
        },
        held,
    )
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(slack) = self.slack {
            // It was set a moment ago: setting it again is not refused.
            let _ = set_current_timer_slack(Some(slack));
        }
        if self.huge_pages {
            let mut holders = HUGE_PAGE_HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
            *holders -= 1;
            if *holders == 0 {
                let _ = disable_transparent_huge_pages(false);
            }
        }
    }
}

/// The kernel keeps to it as long as the file is open.
fn hold_latency() -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
    file.write_all(&0_i32.to_ne_bytes())?;
    Ok(file)
}

/// Switches them off. Returns true if they were on, and have to be switched on again.
fn huge_pages_off() -> io::Result<bool> {
    let mut holders = HUGE_PAGE_HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if *holders == 0 && transparent_huge_pages_are_disabled()? {
        return Ok(false);
    }
    disable_transparent_huge_pages(true)?;
    *holders += 1;
    Ok(true)
}

/// Threads of this process that hold huge pages off, which is the process's.
static HUGE_PAGE_HOLDERS: Mutex<usize> = Mutex::new(0);

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "this kernel has none".to_owned(),
        io::ErrorKind::PermissionDenied => "it needs root".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(hold): always on: C-state latency, timer slack, no huge pages; throttle and fair server reported
    #[test]
    fn it_is_on_while_it_is_held_and_off_after() {
        std::thread::spawn(|| {
            let before = current_timer_slack().unwrap();
            let (on, held) = hold();
            assert!(on.timer_slack.is_granted() && on.huge_pages_off.is_granted(), "{on:?}");
            assert_eq!(current_timer_slack().unwrap(), 1);
            assert!(transparent_huge_pages_are_disabled().unwrap());
            drop(held);
            assert_eq!(current_timer_slack().unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn fair_server_is_detected_by_file_or_kernel_release() {
        let usual = Some(FairServer { runtime: 50_000, period: 1_000_000 });
        assert_eq!(FairServer::of(None, "6.12.3-rt"), usual);
        assert_eq!(FairServer::of(None, "7.0"), usual);
        for old in ["6.1.0-56-rt-amd64", "5.15.0", "", "six"] {
            assert_eq!(FairServer::of(None, old), None, "{old}");
        }
        assert_eq!(FairServer::of(Some((0, 1_000_000_000)), "6.18.0"), None);
        let some = FairServer::of(Some((10_000_000, 500_000_000)), "6.18.0").unwrap();
        assert!(some.to_string().contains("gives 10000 us in 500000 us"), "{some}");
    }

    // feature(hold): always on: C-state latency, timer slack, no huge pages; throttle and fair server reported
    #[test]
    fn throttling_is_reported_in_per_cent() {
        let limited = Throttling::of(Some(950_000), Some(1_000_000));
        assert!(limited.to_string().contains("more than 95 %"), "{limited}");
        for (runtime, period) in [(Some(-1), Some(1_000_000)), (None, None), (Some(5), Some(5))] {
            assert_eq!(Throttling::of(runtime, period), Throttling::Off);
        }
    }
}
