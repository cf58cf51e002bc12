//! A culprit to be found: a thread that takes a CPU from everybody, at random instants, and writes down when.

use std::ffi::CString;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity, set_name};
use thiserror::Error;

use crate::explain::now_ns;
use crate::sys;

/// How it takes a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Name of its thread: at most 15 bytes, more are cut off.
    pub name: String,
    /// The CPU.
    pub cpu: usize,
    /// Its `SCHED_FIFO` priority, 1 to 99.
    pub priority: u8,
    /// How long it takes the CPU each time.
    pub busy: Duration,
    /// Mean time between two times; each lies anywhere between half and one and a half of it.
    pub every: Duration,
    /// How long it goes on.
    pub duration: Duration,
    /// Same seed, same instants.
    pub seed: u64,
}

/// Why it cannot take the CPU.
#[derive(Debug, Error)]
pub enum CulpritError {
    /// The priority was refused.
    #[error(
        "SCHED_FIFO {priority} was refused ({error}): it needs root, CAP_SYS_NICE or an rtprio limit; with \
         CONFIG_RT_GROUP_SCHED also a cpu cgroup whose cpu.rt_runtime_us is not 0"
    )]
    Priority {
        /// Asked for.
        priority: u8,
        /// The answer.
        error: io::Error,
    },
    /// The CPU was refused.
    #[error("CPU {cpu} was refused ({error}): expected one this process may run on")]
    Cpu {
        /// Asked for.
        cpu: usize,
        /// The answer.
        error: io::Error,
    },
    /// The name cannot be one.
    #[error("a thread cannot be called {0:?}: names hold no NUL")]
    Name(String),
}

/// Times in which it had the CPU, or wanted it: begin and end, ns of `CLOCK_MONOTONIC`.
pub type Intervals = Vec<(u64, u64)>;

impl Culprit {
    /// Takes the CPU on the calling thread, until its duration is over or `stop` says so.
    ///
    /// # Errors
    /// A name, a CPU or a priority that is refused: then it has taken nothing.
    pub fn run(&self, stop: impl Fn() -> bool) -> Result<Intervals, CulpritError> {
        self.prepare()?;
        let mut random = fastrand::Rng::with_seed(self.seed);
        let busy = nanos(self.busy);
        let every = nanos(self.every).max(2);
        let end = now_ns().saturating_add(nanos(self.duration));
        let mut intervals = Vec::with_capacity(1 << 16);
        while now_ns() < end && !stop() {
            thread::sleep(Duration::from_nanos(random.u64(every / 2..=every / 2 + every)));
            let began = now_ns();
            let mut now = began;
            while now < began + busy {
                now = now_ns();
            }
            intervals.push((began, now));
        }
        Ok(intervals)
    }

    fn prepare(&self) -> Result<(), CulpritError> {
        let mut name = self.name.clone().into_bytes();
        name.truncate(15);
        let name = CString::new(name).map_err(|_| CulpritError::Name(self.name.clone()))?;
        let refused = |error: rustix::io::Errno| CulpritError::Cpu { cpu: self.cpu, error: error.into() };
        set_name(&name).map_err(|_| CulpritError::Name(self.name.clone()))?;
        if self.cpu >= CpuSet::MAX_CPU {
            return Err(refused(rustix::io::Errno::INVAL));
        }
        let mut cpus = CpuSet::new();
        cpus.set(self.cpu);
        sched_setaffinity(None, &cpus).map_err(refused)?;
        let priority = self.priority;
        sys::set_fifo(priority).map_err(|error| CulpritError::Priority { priority, error })
    }
}

/// Writes intervals, one a line: begin and end in ns of `CLOCK_MONOTONIC`.
///
/// # Errors
/// What writing fails with.
pub fn write(mut file: impl Write, intervals: &[(u64, u64)]) -> io::Result<()> {
    for (began, ended) in intervals {
        writeln!(file, "{began} {ended}")?;
    }
    file.flush()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
