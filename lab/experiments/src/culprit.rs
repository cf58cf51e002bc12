//! Test load: a thread that occupies a CPU at random instants and records them.

use std::ffi::CString;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use machine::cpus::Cpus;
use machine::task;
use rt::clock::now_ns;
use rt::scheduling::{Scheduling, schedule};
use rustix::thread::set_name;
use thiserror::Error;
use types::time::nanoseconds;

/// Parameters of the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Name of its thread; cut to 15 bytes.
    pub name: String,
    /// CPU it occupies.
    pub cpu: usize,
    /// `SCHED_FIFO` priority, 1 to 99.
    pub priority: u8,
    /// Time it occupies the CPU at once.
    pub busy: Duration,
    /// Mean interval between two occupations; each is between half and one and a half of it.
    pub every: Duration,
    /// Total duration.
    pub duration: Duration,
    /// Seed of the random instants.
    pub seed: u64,
}

/// Reason for a load that cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CulpritError {
    /// The priority was refused.
    #[error(
        "SCHED_FIFO {priority} was refused ({error}): it needs root, CAP_SYS_NICE or an rtprio \
         limit; with CONFIG_RT_GROUP_SCHED also a cpu cgroup with a cpu.rt_runtime_us above 0"
    )]
    Priority {
        /// Priority requested.
        priority: u8,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The CPU was refused.
    #[error("CPU {cpu} was refused ({error}): expected one this process may run on")]
    Cpu {
        /// CPU requested.
        cpu: usize,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The name is not valid for a thread.
    #[error("a thread cannot be called {0:?}: names hold no NUL")]
    Name(String),
}

/// Intervals in which it had the CPU, or was ready to run: begin and end, ns of `CLOCK_MONOTONIC`.
pub type Intervals = Vec<(u64, u64)>;

impl Culprit {
    /// Runs the load on the calling thread, for its duration or until `stop` returns true.
    ///
    /// # Errors
    /// The name, CPU or priority is refused; the CPU was not occupied.
    pub fn run(&self, stop: impl Fn() -> bool) -> Result<Intervals, CulpritError> {
        self.prepare()?;
        let mut random = fastrand::Rng::with_seed(self.seed);
        let busy = nanoseconds(self.busy);
        let every = nanoseconds(self.every).max(2);
        let end = now_ns().saturating_add(nanoseconds(self.duration));
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
        set_name(&name).map_err(|_| CulpritError::Name(self.name.clone()))?;
        task::set_affinity(task::current(), &Cpus::one(self.cpu))
            .map_err(|error| CulpritError::Cpu { cpu: self.cpu, error })?;
        let priority = self.priority;
        schedule(Scheduling::Fifo { priority }).map_err(|error| CulpritError::Priority { priority, error })
    }
}

/// Writes intervals, one per line: begin and end in ns of `CLOCK_MONOTONIC`.
///
/// # Errors
/// Writing fails.
pub fn write(mut file: impl Write, intervals: &[(u64, u64)]) -> io::Result<()> {
    for (began, ended) in intervals {
        writeln!(file, "{began} {ended}")?;
    }
    file.flush()
}
