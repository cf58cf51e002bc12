//! Findings of a watch.

use std::fmt;

use types::cause::{Disturbance, Kind};

/// By what means a thread is watched; each knows less than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The kernel's tracepoints: everything, by name, in its period.
    Tracepoints,
    /// The kernel's software events: switches and faults, in their period; names only by chance.
    SoftwareEvents,
    /// The thread's counters in /proc, now and then: how many, in about which periods.
    Counters,
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tracepoints => "tracepoints",
            Self::SoftwareEvents => "software events",
            Self::Counters => "counters",
        })
    }
}

/// The disturbances of one thread since its first release.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbances {
    /// The thread's name.
    pub name: String,
    /// The kernel's number of it.
    pub tid: i32,
    /// By what means they are found.
    pub means: Means,
    /// Gaps of these means, or the reasons for which there are no better ones, each a sentence.
    pub missing: Vec<String>,
    /// Count.
    pub counts: Counts,
    /// Causes, the most frequent first; at most [`MOST_CAUSES`] of a kind, with the rest as
    /// "others".
    pub causes: Vec<Disturbance>,
    /// The first of each kind, in the order in which they came.
    pub firsts: Vec<First>,
    /// Events the kernel had no space for: what they were is not known.
    pub lost: u64,
}

impl Disturbances {
    /// True if there was none.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.counts == Counts::default()
    }

    /// The first of all.
    #[must_use]
    pub fn first(&self) -> Option<&First> {
        self.firsts.first()
    }
}

/// Count of each kind.
///
/// A call that sleeps counts as a system call, a blocking call and a sleep: the three answer three
/// questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// [`Kind::Task`]
    pub preemptions: u64,
    /// [`Kind::Sleep`]
    pub sleeps: u64,
    /// [`Kind::MinorFault`]
    pub minor_faults: u64,
    /// [`Kind::MajorFault`]
    pub major_faults: u64,
    /// [`Kind::SystemCall`]
    pub system_calls: u64,
    /// [`Kind::BlockingCall`]
    pub blocking_calls: u64,
}

impl Counts {
    /// Count of a kind that a watch finds; `None` of any other.
    pub(super) fn of_mut(&mut self, kind: Kind) -> Option<&mut u64> {
        Some(match kind {
            Kind::Task => &mut self.preemptions,
            Kind::Sleep => &mut self.sleeps,
            Kind::MinorFault => &mut self.minor_faults,
            Kind::MajorFault => &mut self.major_faults,
            Kind::SystemCall => &mut self.system_calls,
            Kind::BlockingCall => &mut self.blocking_calls,
            Kind::Irq
            | Kind::Softirq
            | Kind::Timer
            | Kind::Steal
            | Kind::Stall
            | Kind::Own
            | Kind::Unknown => {
                return None;
            }
        })
    }
}

/// The first of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct First {
    /// Kind of disturbance.
    pub kind: Kind,
    /// As in [`Disturbance::name`].
    pub name: String,
    /// In which period; with [`Means::Counters`], in this one or soon before.
    pub period: u64,
    /// When, ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Call stack of the thread, innermost call first; empty if not requested.
    pub backtrace: Vec<Frame>,
    /// In which period that was: a later one where the kernel copied no stack at the first.
    pub backtrace_period: Option<u64>,
}

impl fmt::Display for First {
    /// One line, and one more for each call.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}) in period {}", self.kind, self.name, self.period)?;
        if let Some(period) = self.backtrace_period.filter(|&period| period != self.period) {
            write!(f, ", and in period {period} there")?;
        }
        self.backtrace.iter().try_for_each(|frame| write!(f, "\n    {frame}"))
    }
}

/// A call on the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function, or the address where it is not known.
    pub function: String,
    /// Its source.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " at {file}:{line}"),
            (Some(file), None) => write!(f, " at {file}"),
            _ => Ok(()),
        }
    }
}

/// Causes named at most, for each kind.
pub const MOST_CAUSES: usize = 16;
