//! Causes of lateness and of disturbances of a real-time thread: common names for all tools that
//! search for them.

use alloc::string::String;
use core::fmt;

use crate::macros::named;

named! {
    /// Kind of a cause.
    #[derive(Default, PartialOrd, Ord)]
    Kind {
        /// Another thread had the CPU: the thread was switched out though it could have run, or not
        /// in.
        Task = "task";
        /// Interrupt handler, or an interrupt of the CPU itself.
        Irq = "irq";
        /// Softirq.
        Softirq = "softirq";
        /// Timer interrupt, and the timers in it.
        Timer = "timer";
        /// Time stolen by the hypervisor.
        Steal = "steal";
        /// No thread of the process ran: it was stopped, or the computer paused.
        Stall = "stall";
        /// The thread's own code.
        Own = "own";
        /// Sleep other than the wait for its period: a voluntary context switch.
        Sleep = "sleep";
        /// A page was missing, and served without I/O.
        MinorFault = "minor_fault";
        /// A page was missing, and read from a disk.
        MajorFault = "major_fault";
        /// System call other than the wait for its period.
        SystemCall = "system_call";
        /// System call in which it went to sleep.
        BlockingCall = "blocking_call";
        /// Unknown: no event explains it.
        #[default]
        #[cfg_attr(feature = "serde", serde(other))]
        Unknown = "unknown";
    }
}

impl fmt::Display for Kind {
    /// Writes it as it happens to a thread, for example "preemption".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Task => "preemption",
            Self::Irq => "interrupt",
            Self::Sleep => "unexpected sleep",
            Self::MinorFault => "minor page fault",
            Self::MajorFault => "major page fault",
            Self::SystemCall => "system call",
            Self::BlockingCall => "blocking system call",
            other => other.name(),
        })
    }
}

/// Disturbances of a thread with the same cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(default))]
pub struct Disturbance {
    /// Kind of the cause.
    pub kind: Kind,
    /// Name: of the system call, of the thread that was preferred, or of the memory that was
    /// missing; "unknown" where the kernel does not report.
    pub name: String,
    /// Number of times.
    pub count: u64,
    /// Period of the first time.
    pub first_period: u64,
    /// Period of the last time.
    pub last_period: u64,
}
