//! Result of explaining a run, for people and programs: late cycles summed up by cause, the worst
//! of them with all events around.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;

use serde::Serialize;
use types::cause::Kind;
use types::late::{CauseTable, CauseTotal, LateCycle, ShortTime};
use types::number::grouped;

use crate::attribute::CycleTimes;
use crate::trace::TraceEvent;

/// Explanation of a run's late cycles.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// Late cycles in order; if there are very many, the worst [`MOST_LATE`].
    #[serde(skip)]
    pub late: Vec<LateCycle>,
    /// Source of the causes: `trace`, or `counters` without a trace.
    pub source: &'static str,
    /// Lateness above which a cycle is late, ns.
    pub late_above_ns: u64,
    /// Number of late cycles.
    pub late_cycles: u64,
    /// Cycles with events that were at least partly overwritten before they were read.
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

/// Most late cycles kept.
pub const MOST_LATE: usize = 10_000;

/// Number of worst cycles kept with their events.
pub const WORST: usize = 10;

/// Number of newest late cycles kept for clients that watch the run.
pub const NEWEST: usize = 24;

/// Most events kept with one of them.
const MOST_EVENTS: usize = 20_000;

/// Late cycles of a run so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) late: BinaryHeap<Reverse<LateCycle>>,
    pub(crate) newest: VecDeque<LateCycle>,
    pub(crate) late_cycles: u64,
    pub(crate) by_cause: Totals,
    pub(crate) worst: Vec<Explained>,
}

impl Tally {
    /// The worst one.
    pub(crate) fn worst(&self) -> Option<&LateCycle> {
        self.worst.first().map(|it| &it.late)
    }

    /// Takes a further one.
    pub(crate) fn take(&mut self, mut explained: Explained, has_trace: bool) {
        let late = explained.late.clone();
        self.late_cycles += 1;
        self.by_cause.add(&late, has_trace);
        if self.worst.len() < WORST || self.worst.last().is_some_and(|last| last.late < late) {
            explained.events.truncate(MOST_EVENTS);
            self.worst.push(explained);
            self.worst.sort_by(|a, b| b.late.cmp(&a.late));
            self.worst.truncate(WORST);
        }
        if self.newest.len() == NEWEST {
            self.newest.pop_front();
        }
        self.newest.push_back(late.clone());
        self.late.push(Reverse(late));
        if self.late.len() > MOST_LATE {
            self.late.pop();
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let above = ShortTime(self.late_above_ns);
        if self.late_cycles == 0 {
            writeln!(f, "no cycle was later than {above}")?;
        } else {
            writeln!(f, "{} cycles were later than {above}; the worst:", grouped(self.late_cycles))?;
            for explained in &self.worst {
                writeln!(f, "  {}", explained.late)?;
            }
            CauseTable(&self.by_cause).fmt(f)?;
            writeln!(f, "good is no late cycle; next best is a culprit that can be moved to another CPU")?;
        }
        if self.steal_ns > 0 {
            writeln!(f, "the kernel counted {} as stolen by the hypervisor", ShortTime(self.steal_ns))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

/// Most different causes summed up; later ones count as "others".
const MOST_CAUSES: usize = 1_000;

/// Causes of late cycles together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals(BTreeMap<(Kind, String), CauseTotal>);

impl Totals {
    /// Adds a late cycle.
    pub(crate) fn add(&mut self, late: &LateCycle, has_trace: bool) {
        for cause in &late.causes {
            // Counts, which stand for a trace, differ for each cycle and are named with it; here
            // they are summed up under one name.
            let name =
                if cause.kind == Kind::Unknown && !has_trace { "no trace" } else { cause.name.as_str() };
            self.take(&CauseTotal {
                kind: cause.kind,
                name: name.to_owned(),
                cycles: 1,
                ns: cause.ns,
                largest_ns: cause.ns,
            });
        }
    }

    /// Adds the sums of others.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.0.values().for_each(|total| self.take(total));
    }

    fn take(&mut self, added: &CauseTotal) {
        let mut key = (added.kind, added.name.clone());
        if self.0.len() >= MOST_CAUSES && !self.0.contains_key(&key) {
            key.1 = "others".to_owned();
        }
        let total = self.0.entry(key.clone()).or_insert_with(|| CauseTotal {
            kind: key.0,
            name: key.1,
            ..CauseTotal::default()
        });
        total.cycles += added.cycles;
        total.ns = total.ns.saturating_add(added.ns);
        total.largest_ns = total.largest_ns.max(added.largest_ns);
    }

    /// True if a cause of this kind is among them.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.0.keys().any(|(it, _)| *it == kind)
    }

    /// The largest first.
    pub(crate) fn sorted(self) -> Vec<CauseTotal> {
        let mut totals: Vec<CauseTotal> = self.0.into_values().collect();
        totals.sort_by_key(|total| Reverse(total.ns));
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::cause::Kind;

    #[test]
    fn an_explanation_sums_up_by_cause() {
        let total = |kind, name: &str, ns| CauseTotal {
            kind,
            name: name.to_owned(),
            cycles: 2,
            ns,
            largest_ns: ns,
        };
        let explanation = Explanation {
            late: Vec::new(),
            source: "trace",
            late_above_ns: 50_000,
            late_cycles: 2,
            overwritten_cycles: 0,
            steal_ns: 10_000_000,
            by_cause: vec![
                total(Kind::Task, "culprit", 900_000),
                total(Kind::Steal, "hypervisor", 100_000),
            ],
            notes: vec!["be careful".to_owned()],
            worst: Vec::new(),
        };
        let text = explanation.to_string();
        for expected in [
            "2 cycles were later than 50 us",
            "90.0 %",
            "100 us",
            "task    culprit",
            "10.0 ms as stolen",
            "note: be",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let quiet = Explanation { late_cycles: 0, ..explanation };
        assert!(quiet.to_string().starts_with("no cycle was later than 50 us"));
    }
}
