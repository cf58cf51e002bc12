//! Late cycles of a span of time, summed up by cause: the answer to `onbeat explain`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{LateCycle, ShortTime};
use crate::cause::Kind;

/// Late cycles of a running cycle in the last minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(default))]
pub struct LateReport {
    /// Source of the causes: `trace`, `counters` (`run --explain` without a trace) or `records`.
    pub source: String,
    /// Lateness above which a cycle is late, ns.
    pub late_above_ns: u64,
    /// Time between two releases, ns.
    pub period_ns: u64,
    /// Time of the report, ns of `CLOCK_MONOTONIC`.
    pub now_ns: u64,
    /// The requested span, in whole seconds.
    pub last: LateSpan,
    /// The whole run, from its first cycle in Op.
    pub run: LateSpan,
    /// Late cycles of the span in their order; of very many the worst.
    pub late: Vec<LateCycle>,
    /// Causes of all late cycles of the span together, the largest first.
    pub by_cause: Vec<CauseTotal>,
    /// Gaps in the evidence, each a sentence.
    pub notes: Vec<String>,
}

/// Figures of a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(default))]
pub struct LateSpan {
    /// Length up to now, ns.
    pub span_ns: u64,
    /// Number of cycles.
    pub cycles: u64,
    /// Number of late cycles.
    pub late_cycles: u64,
    /// Largest lateness, ns.
    pub worst_ns: u64,
    /// Number of the cycle with it.
    pub worst_cycle: u64,
}

impl LateSpan {
    /// Adds a cycle.
    pub fn add(&mut self, cycle: u64, late_ns: u64, late_above_ns: u64) {
        self.cycles += 1;
        self.late_cycles += u64::from(late_ns > late_above_ns);
        self.take_worst(cycle, late_ns);
    }

    /// Adds the cycles of another span.
    pub fn merge(&mut self, other: &Self) {
        self.cycles += other.cycles;
        self.late_cycles += other.late_cycles;
        self.take_worst(other.worst_cycle, other.worst_ns);
    }

    fn take_worst(&mut self, cycle: u64, late_ns: u64) {
        if late_ns > self.worst_ns {
            (self.worst_cycle, self.worst_ns) = (cycle, late_ns);
        }
    }
}

/// Sum of one cause over all late cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(default))]
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

/// Sums by cause as a table, the largest first.
#[derive(Clone, Copy, Debug)]
pub struct CauseTable<'a>(pub &'a [CauseTotal]);

/// Lines of the table.
const SUMMED: usize = 12;

impl fmt::Display for CauseTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u64 = self.0.iter().map(|total| total.ns).sum();
        let (shown, more) = self.0.split_at(self.0.len().min(SUMMED));
        let title = |kind: Kind, name: &str| format!("{:<8}{name}", kind.name());
        let width =
            shown.iter().map(|it| title(it.kind, &it.name).chars().count()).max().unwrap_or(0).max(20);
        let heading = "lateness by cause";
        writeln!(f, "{heading:<width$}{:>10}{:>10}{:>12}{:>12}", "cycles", "share", "total", "largest")?;
        for total in shown {
            let share = format!("{:.1} %", total.ns as f64 * 100.0 / all.max(1) as f64);
            let name = title(total.kind, &total.name);
            let (sum, largest) = (ShortTime(total.ns), ShortTime(total.largest_ns));
            writeln!(f, "{name:<width$}{:>10}{share:>10}{sum:>12}{largest:>12}", total.cycles)?;
        }
        if more.is_empty() {
            return Ok(());
        }
        writeln!(f, "and {} more, {}", more.len(), ShortTime(more.iter().map(|it| it.ns).sum()))
    }
}
