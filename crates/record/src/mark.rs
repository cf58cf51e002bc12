//! Marks of a recording: events, and late cycles with their causes, in addition to the rows of the
//! cycles.

/// One mark. It may stand behind rows of later cycles: causes are known only then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// An event, as `onbeat events` prints it.
    Event {
        /// Number of the cycle.
        cycle: u64,
        /// CLOCK_MONOTONIC, ns.
        at_ns: u64,
        /// `ok`, `warning` or `error`.
        severity: String,
        /// The event, and its place.
        sentence: String,
    },
    /// A late cycle with its causes, as `onbeat run --explain` prints it.
    Late {
        /// Number of the cycle.
        cycle: u64,
        /// Its release, CLOCK_MONOTONIC, ns.
        at_ns: u64,
        /// Its lateness, ns.
        late_ns: u64,
        /// Its causes.
        sentence: String,
    },
}

impl Mark {
    /// Number of the cycle.
    #[must_use]
    pub const fn cycle(&self) -> u64 {
        match self {
            Self::Event { cycle, .. } | Self::Late { cycle, .. } => *cycle,
        }
    }

    /// CLOCK_MONOTONIC, ns.
    #[must_use]
    pub const fn at_ns(&self) -> u64 {
        match self {
            Self::Event { at_ns, .. } | Self::Late { at_ns, .. } => *at_ns,
        }
    }

    /// Its sentence.
    #[must_use]
    pub fn sentence(&self) -> &str {
        match self {
            Self::Event { sentence, .. } | Self::Late { sentence, .. } => sentence,
        }
    }
}
