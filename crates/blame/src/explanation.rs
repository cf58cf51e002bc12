//! What came out of watching a run.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::attribute::TIMER_AT;
use crate::beat::{Beat, Late};
use crate::cause::{Cause, Kind};
use crate::trace::{TraceEvent, symbols};

/// What a run's late beats came from.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// Late beats in order; of very many, the worst [`MOST_LATE`](crate::explain::MOST_LATE).
    #[serde(skip)]
    pub late: Vec<LateBeat>,
    /// `trace`, or `counters` where the trace could not be had.
    pub source: &'static str,
    /// Beats later than this are late, ns.
    pub late_above_ns: u64,
    /// How many there were.
    pub late_beats: u64,
    /// Beats whose events were overwritten before they could be read, at least in part.
    pub overwritten_beats: u64,
    /// What the kernel counted as stolen from the cycle's CPUs over the run, ns, in ticks of 10 ms.
    pub steal_ns: u64,
    /// What all late beats together were made of, largest first.
    pub by_cause: Vec<CauseTotal>,
    /// What a reader must know: what is missing, and how steal was inferred.
    pub notes: Vec<String>,
    /// The worst beats with their events, worst first.
    #[serde(skip)]
    pub worst: Vec<Explained>,
}

impl Explanation {
    /// Timers by the names of their functions, where the kernel tells them.
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

/// A late beat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LateBeat {
    /// Number of the cycle.
    pub cycle: u64,
    /// How late, ns.
    pub late_ns: u64,
    /// What was late: its start, or its end.
    pub late: Late,
    /// Its release, ns of `CLOCK_MONOTONIC`.
    pub release_ns: u64,
    /// Its start.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// What made it late, largest first; adding up to `late_ns`.
    pub causes: Vec<Cause>,
}

impl Ord for LateBeat {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.late_ns, self.cycle).cmp(&(other.late_ns, other.cycle))
    }
}

impl PartialOrd for LateBeat {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A late beat with what happened around it.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The beat.
    pub late: LateBeat,
    /// Its record.
    pub beat: Beat,
    /// Events from one period before its release to one period behind its end, in order of time.
    pub events: Vec<TraceEvent>,
}

/// What one cause took from all late beats together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseTotal {
    /// What kind of thing.
    pub kind: Kind,
    /// Which.
    pub name: String,
    /// Beats it made later.
    pub beats: u64,
    /// Its shares of all of them, ns.
    pub ns: u64,
    /// Its largest share of one, ns.
    pub largest_ns: u64,
}
