//! Findings of a watch.

use std::fmt;

/// Kinds of disturbance of a real-time thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// It was switched out though it could have run: an involuntary context switch.
    Preemption,
    /// It went to sleep, and not to wait for its period: a voluntary context switch.
    Sleep,
    /// A page was missing, and served without I/O.
    MinorFault,
    /// A page was missing, and read from a disk.
    MajorFault,
    /// It called the system, and not to wait for its period.
    SystemCall,
    /// It called the system and went to sleep there.
    BlockingCall,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Preemption,
        Self::Sleep,
        Self::MinorFault,
        Self::MajorFault,
        Self::SystemCall,
        Self::BlockingCall,
    ];

    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Preemption => "preemption",
            Self::Sleep => "unexpected sleep",
            Self::MinorFault => "minor page fault",
            Self::MajorFault => "major page fault",
            Self::SystemCall => "system call",
            Self::BlockingCall => "blocking system call",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

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
    /// By what, the most frequent first; at most [`MOST_CULPRITS`], with the rest of a kind as "others".
    pub culprits: Vec<Culprit>,
    /// The first of each kind, in the order in which they came.
    pub firsts: Vec<First>,
    /// Events the kernel had no room for: what they were is not known.
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
/// A call that sleeps counts as a system call, a blocking call and a sleep: the three answer three questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// [`Kind::Preemption`]
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
    /// Of one kind.
    #[must_use]
    pub const fn of(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Preemption => self.preemptions,
            Kind::Sleep => self.sleeps,
            Kind::MinorFault => self.minor_faults,
            Kind::MajorFault => self.major_faults,
            Kind::SystemCall => self.system_calls,
            Kind::BlockingCall => self.blocking_calls,
        }
    }

    pub(super) fn of_mut(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Preemption => &mut self.preemptions,
            Kind::Sleep => &mut self.sleeps,
            Kind::MinorFault => &mut self.minor_faults,
            Kind::MajorFault => &mut self.major_faults,
            Kind::SystemCall => &mut self.system_calls,
            Kind::BlockingCall => &mut self.blocking_calls,
        }
    }
}

/// A cause of disturbances, its count, and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// How.
    pub kind: Kind,
    /// The system call, the thread that was preferred, or the memory that was missing; "unknown" where the kernel does
    /// not tell.
    pub name: String,
    /// Count.
    pub count: u64,
    /// Period of the first time.
    pub first_period: u64,
    /// Period of the last time.
    pub last_period: u64,
}

/// The first of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct First {
    /// How.
    pub kind: Kind,
    /// As in [`Culprit::name`].
    pub name: String,
    /// In which period; with [`Means::Counters`], in this one or soon before.
    pub period: u64,
    /// When, ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Call stack of the thread, innermost call first; empty unless asked for.
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

/// Culprits told at most, for each kind.
pub const MOST_CULPRITS: usize = 16;
