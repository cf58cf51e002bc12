//! Result of explaining a run.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::attribute::TIMER_AT;
use crate::cause::{Cause, Kind};
use crate::late::{CycleTimes, Late};
use crate::trace::{TraceEvent, symbols};

/// Explanation of a run's late cycles.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// Late cycles in order; if there are very many, the worst [`MOST_LATE`](crate::explain::MOST_LATE).
    #[serde(skip)]
    pub late: Vec<LateCycle>,
    /// Source of the causes: `trace`, or `counters` without a trace.
    pub source: &'static str,
    /// Lateness above which a cycle is late, ns.
    pub late_above_ns: u64,
    /// Number of late cycles.
    pub late_cycles: u64,
    /// Cycles whose events were overwritten, at least in part, before they could be read.
    pub overwritten_cycles: u64,
    /// Steal counted by the kernel for the cycle's CPUs over the run, ns, in ticks of 10 ms.
    pub steal_ns: u64,
    /// Causes of all late cycles together, the largest first.
    pub by_cause: Vec<CauseTotal>,
    /// Notes for the reader: gaps in the recording, and the basis of steal.
    pub notes: Vec<String>,
    /// Worst cycles with their events, the worst first.
    #[serde(skip)]
    pub worst: Vec<Explained>,
}

impl Explanation {
    /// Names timers after their functions, if the kernel gives the names.
    pub(crate) fn name_timers(&mut self) {
        let mut causes: Vec<&mut String> = self.by_cause.iter_mut().map(|total| &mut total.name).collect();
        causes.extend(self.late.iter_mut().flat_map(|late| &mut late.causes).map(|cause| &mut cause.name));
        causes
            .extend(self.worst.iter_mut().flat_map(|it| &mut it.late.causes).map(|cause| &mut cause.name));
        let address = |name: &String| u64::from_str_radix(name.strip_prefix(TIMER_AT)?, 16).ok();
        let addresses: BTreeSet<u64> = causes.iter().filter_map(|name| address(name)).collect();
        if addresses.is_empty() {
            return;
        }
        let names = symbols::names(&addresses.into_iter().collect::<Vec<_>>());
        for cause in causes {
            if let Some(name) = address(cause).and_then(|address| names.get(&address)) {
                cause.clone_from(name);
            }
        }
    }
}

/// Late cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LateCycle {
    /// Number of the cycle.
    pub cycle: u64,
    /// Lateness, ns.
    pub late_ns: u64,
    /// Late event: its start, or its end.
    pub late: Late,
    /// Release, ns of `CLOCK_MONOTONIC`.
    pub release_ns: u64,
    /// Start, likewise.
    pub start_ns: u64,
    /// End, likewise.
    pub end_ns: u64,
    /// Causes, the largest first; they add up to `late_ns`.
    pub causes: Vec<Cause>,
}

impl Ord for LateCycle {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.late_ns, self.cycle).cmp(&(other.late_ns, other.cycle))
    }
}

impl PartialOrd for LateCycle {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Late cycle with the events around it.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Late cycle with its causes.
    pub late: LateCycle,
    /// Its record.
    pub cycle: CycleTimes,
    /// Events from one period before its release to one period behind its end, in order of time.
    pub events: Vec<TraceEvent>,
}

/// Sum of one cause over all late cycles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseTotal {
    /// Kind of the cause.
    pub kind: Kind,
    /// Name of the cause.
    pub name: String,
    /// Number of cycles it delayed.
    pub cycles: u64,
    /// Sum of its shares, ns.
    pub ns: u64,
    /// Largest share, ns.
    pub largest_ns: u64,
}
