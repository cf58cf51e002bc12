//! Scheduling of a thread: policy, CPU, timer slack.

use std::fmt;
use std::io;
use std::time::Duration;

pub use crate::sys::scheduling::{
    Attributes, attributes, priority_limit, set_cpu, set_deadline, set_fifo, set_ordinary, set_timer_slack,
};

/// P: how a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// `SCHED_FIFO`: before everything of a lower priority, for as long as it likes.
    Fifo {
        /// 1 to 99.
        priority: u8,
    },
    /// `SCHED_DEADLINE`: `runtime` in every `period`, before `deadline`, guaranteed by the kernel's admission test. A
    /// cycle that uses more is stopped until the next period.
    Deadline {
        /// Processor time reserved, spinning included; 1024 ns or more.
        runtime: Duration,
        /// By when, from the release; `period` or less.
        deadline: Duration,
        /// Time between two reservations.
        period: Duration,
    },
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fifo { priority } => write!(f, "SCHED_FIFO {priority}"),
            Self::Deadline { runtime, deadline, period } if deadline == period => {
                write!(f, "SCHED_DEADLINE {runtime:?} in {period:?}")
            }
            Self::Deadline { runtime, deadline, period } => {
                write!(f, "SCHED_DEADLINE {runtime:?} within {deadline:?} in {period:?}")
            }
        }
    }
}

impl Scheduling {
    /// Gives the calling thread this policy.
    ///
    /// # Errors
    /// EPERM without `CAP_SYS_NICE` or a sufficient `RLIMIT_RTPRIO`, EINVAL for what no thread can have, EBUSY where less is
    /// left than a reservation asks for.
    pub fn apply(self) -> io::Result<()> {
        match self {
            Self::Fifo { priority } => set_fifo(priority),
            Self::Deadline { runtime, deadline, period } => set_deadline(runtime, deadline, period),
        }
    }
}
