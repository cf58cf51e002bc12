//! Late cycles of the last minutes, for programs that ask a running cycle.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use types::late::{LateCycle, LateReport, LateSpan};

use crate::explanation::Totals;

/// Seconds that are kept.
pub const KEPT_SECONDS: u64 = 600;

/// Most late cycles listed in a report: the worst.
pub const MOST_LISTED: usize = 100;

/// Most late cycles kept of each second: the worst.
const OF_A_SECOND: usize = 8;

const SECOND: u64 = 1_000_000_000;

/// Late cycles of the last minutes. A clone shows the same ones to another thread; the cycle's
/// thread has none.
#[derive(Clone, Debug, Default)]
pub struct Recent(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// Seconds with cycles, oldest first.
    seconds: VecDeque<Second>,
    run: LateSpan,
    first_ns: u64,
    /// Release of the newest cycle.
    newest_ns: u64,
    late_above_ns: u64,
    period_ns: u64,
    source: &'static str,
    notes: Vec<String>,
}

#[derive(Debug, Default)]
struct Second {
    /// Number of the second of `CLOCK_MONOTONIC`.
    number: u64,
    span: LateSpan,
    totals: Totals,
    worst: Vec<LateCycle>,
}

impl Recent {
    pub(crate) fn new(source: &'static str, late_above_ns: u64, period_ns: u64) -> Self {
        let kept = Kept { source, late_above_ns, period_ns, ..Kept::default() };
        Self(Arc::new(Mutex::new(kept)))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts cycles, each with its release and its lateness.
    pub(crate) fn count(&self, cycles: impl Iterator<Item = (u64, u64, u64)>) {
        let kept = &mut *self.lock();
        for (cycle, release_ns, late_ns) in cycles {
            if kept.run.cycles == 0 {
                kept.first_ns = release_ns;
            }
            kept.newest_ns = kept.newest_ns.max(release_ns);
            let number = release_ns / SECOND;
            if kept.seconds.back().is_none_or(|second| second.number < number) {
                kept.seconds.push_back(Second { number, ..Second::default() });
            }
            while kept.seconds.front().is_some_and(|it| it.number + KEPT_SECONDS < number) {
                kept.seconds.pop_front();
            }
            let spans = [Some(&mut kept.run), kept.seconds.back_mut().map(|it| &mut it.span)];
            spans.into_iter().flatten().for_each(|span| span.add(cycle, late_ns, kept.late_above_ns));
        }
    }

    /// Takes a late cycle with its causes, once it is counted.
    pub(crate) fn take(&self, late: &LateCycle, has_trace: bool) {
        let number = late.release_ns / SECOND;
        let mut kept = self.lock();
        let Some(second) = kept.seconds.iter_mut().rev().find(|it| it.number == number) else { return };
        second.totals.add(late, has_trace);
        if second.worst.len() < OF_A_SECOND || second.worst.last().is_some_and(|last| last < late) {
            second.worst.push(late.clone());
            second.worst.sort_by(|a, b| b.cmp(a));
            second.worst.truncate(OF_A_SECOND);
        }
    }

    /// Replaces the sentences on gaps in the evidence.
    pub(crate) fn note(&self, notes: Vec<String>) {
        self.lock().notes = notes;
    }

    /// Late cycles of the last `last_ns` before `now_ns`, both ns of `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn report(&self, now_ns: u64, last_ns: u64) -> LateReport {
        let kept = self.lock();
        let run_ns = if kept.run.cycles == 0 { 0 } else { now_ns.saturating_sub(kept.first_ns) };
        let span_ns = last_ns.min(run_ns).min(KEPT_SECONDS * SECOND);
        let from_ns = now_ns.saturating_sub(span_ns);
        let mut last = LateSpan { span_ns, ..LateSpan::default() };
        let (mut totals, mut late) = (Totals::default(), Vec::new());
        for second in kept.seconds.iter().filter(|it| (it.number + 1) * SECOND > from_ns) {
            last.merge(&second.span);
            totals.merge(&second.totals);
            late.extend(second.worst.iter().cloned());
        }
        late.sort_by(|a, b| b.cmp(a));
        late.truncate(MOST_LISTED);
        late.sort_by_key(|it| it.cycle);
        LateReport {
            source: kept.source.to_owned(),
            late_above_ns: kept.late_above_ns,
            period_ns: kept.period_ns,
            now_ns,
            last,
            run: LateSpan { span_ns: run_ns, ..kept.run },
            late,
            by_cause: totals.sorted(),
            notes: kept.hang(now_ns).into_iter().chain(kept.notes.iter().cloned()).collect(),
        }
    }
}

impl Kept {
    /// A sentence on a cycle that has not ended for several periods: a second at least, as cycles
    /// come here after their end only.
    fn hang(&self, now_ns: u64) -> Option<String> {
        let since_ns = now_ns.saturating_sub(self.newest_ns);
        let hangs = self.run.cycles > 0 && since_ns > (10 * self.period_ns).max(SECOND);
        let since = types::time::span(Duration::from_nanos(since_ns));
        hangs.then(|| format!("no cycle ended for {since}: the cycle hangs, or its bus is not in Op"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::cause::Kind;
    use types::late::Cause;

    const US: u64 = 1_000;

    /// A cycle of every 100 ms, late by its number in us; each tenth of them is late.
    fn recent(cycles: u64) -> Recent {
        let recent = Recent::new("records", 50 * US, 100_000 * US);
        for cycle in 0..cycles {
            let release_ns = 5 * SECOND + cycle * SECOND / 10;
            let late_ns = if cycle % 10 == 0 { (100 + cycle) * US } else { 10 * US };
            recent.count(std::iter::once((cycle, release_ns, late_ns)));
            if late_ns > 50 * US {
                let causes = vec![Cause { kind: Kind::Task, name: "backup".to_owned(), ns: late_ns }];
                recent
                    .take(&LateCycle { cycle, late_ns, release_ns, causes, ..LateCycle::default() }, true);
            }
        }
        recent
    }

    #[test]
    fn a_report_is_of_the_last_seconds() {
        let report = recent(100).report(15 * SECOND, 3 * SECOND);
        assert_eq!(report.late.iter().map(|it| it.cycle).collect::<Vec<_>>(), [70, 80, 90]);
        let last = LateSpan {
            span_ns: 3 * SECOND,
            cycles: 30,
            late_cycles: 3,
            worst_ns: 190 * US,
            worst_cycle: 90,
        };
        assert_eq!(report.last, last);
        assert_eq!((report.run.cycles, report.run.late_cycles, report.run.span_ns), (100, 10, 10 * SECOND));
        let [total] = &report.by_cause[..] else { panic!("{:?}", report.by_cause) };
        assert_eq!((total.cycles, total.ns, total.largest_ns), (3, 540 * US, 190 * US));
    }

    #[test]
    fn a_report_reaches_back_ten_minutes_at_most() {
        let (cycles, now) = (10_000, 1_005 * SECOND);
        let report = recent(cycles).report(now, u64::MAX);
        assert_eq!(report.last.span_ns, KEPT_SECONDS * SECOND);
        assert_eq!(report.last.cycles, KEPT_SECONDS * 10);
        assert_eq!(report.late.len(), MOST_LISTED, "the worst");
        assert!(report.late.is_sorted_by_key(|it| it.cycle));
        assert_eq!(report.late[0].cycle, cycles - 1_000, "lateness grows");
        assert_eq!((report.run.cycles, report.by_cause[0].cycles), (cycles, KEPT_SECONDS));
    }

    #[test]
    fn a_cycle_that_does_not_end_is_reported() {
        let recent = recent(100);
        assert_eq!(recent.report(15 * SECOND, SECOND).notes, Vec::<String>::new());
        let hangs = recent.report(75 * SECOND, SECOND);
        assert_eq!(hangs.last.cycles, 0);
        let [note] = &hangs.notes[..] else { panic!("{:?}", hangs.notes) };
        assert!(note.starts_with("no cycle ended for 60.1 s"), "{note}");
    }

    #[test]
    fn a_cycle_hangs_after_ten_periods_and_a_second_at_least() {
        let notes = |period_ns, since_ns| {
            let recent = Recent::new("records", 50 * US, period_ns);
            recent.count(std::iter::once((0, 5 * SECOND, 0)));
            recent.report(5 * SECOND + since_ns, SECOND).notes.len()
        };
        assert_eq!([SECOND, SECOND + 1].map(|since| notes(1_000 * US, since)), [0, 1]);
        assert_eq!([5 * SECOND, 5 * SECOND + 1].map(|since| notes(SECOND / 2, since)), [0, 1]);
    }

    #[test]
    fn a_report_before_the_first_cycle_is_empty() {
        let report = Recent::new("records", 50 * US, SECOND).report(15 * SECOND, SECOND);
        assert_eq!((report.last, report.run), (LateSpan::default(), LateSpan::default()));
        assert!(report.notes.is_empty(), "{:?}", report.notes);
    }
}
