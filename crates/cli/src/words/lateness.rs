//! Late cycles of a running cycle in words: figures, causes, remedies.

use std::fmt::Write;
use std::time::Duration;

use ethercat::time::Instant;
use serde::Serialize;
use types::cause::Kind;
use types::late::{CauseTable, CauseTotal, LateReport, LateSpan, ShortTime};
use types::number::grouped;
use types::time::span;

use super::moment::Moment;

/// Late cycles that are listed: the worst.
const LISTED: usize = 20;

/// The report for people; `asked`: the requested time.
pub(crate) fn text(report: &LateReport, asked: Duration) -> String {
    let LateReport { last, run, late_above_ns, period_ns, .. } = report;
    if run.cycles == 0 {
        return "the cycle has measured nothing yet: its bus is not in Op\n".to_owned();
    }
    let (above, period) = (ShortTime(*late_above_ns), ShortTime(*period_ns));
    let mut text = format!("{}: {}; period {period}\n", of_last(last, asked), figures(last, above));
    if run.span_ns > last.span_ns {
        let _ = writeln!(text, "whole run ({}): {}", length(run), figures(run, above));
    }
    if last.late_cycles > 0 {
        text += &list(report);
        let _ = write!(text, "\n{}\n", CauseTable(&report.by_cause));
        for Remedy { kind, remedy } in remedies(&report.by_cause) {
            let _ = writeln!(text, "{:<8}{remedy}", kind.name());
        }
    }
    report.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
    if report.source == "records" {
        text += "The causes come from records and counters, which name no thread and no interrupt. To get \
                 their names, start the run with --explain as root.\n";
    }
    text
}

fn length(span_: &LateSpan) -> String {
    span(Duration::from_nanos(span_.span_ns))
}

fn of_last(last: &LateSpan, asked: Duration) -> String {
    if u128::from(last.span_ns) == asked.as_nanos() {
        return format!("last {}", types::duration::format(asked));
    }
    format!("last {}", length(last))
}

/// Figures of a span.
fn figures(span: &LateSpan, above: ShortTime) -> String {
    let LateSpan { cycles, late_cycles, worst_ns, worst_cycle, .. } = *span;
    let of = grouped(cycles);
    let worst = match cycles {
        0 => String::new(),
        _ => format!(", the worst {} in cycle {}", ShortTime(worst_ns), grouped(worst_cycle)),
    };
    match late_cycles {
        _ if cycles == 0 => "no cycle was measured".to_owned(),
        0 => format!("no cycle of {of} was later than {above}{worst}"),
        late => format!("{} of {of} cycles were later than {above}{worst}", grouped(late)),
    }
}

/// The late cycles, a line each, in their order.
fn list(report: &LateReport) -> String {
    let mut worst: Vec<_> = report.late.iter().collect();
    worst.sort_by(|a, b| b.cmp(a));
    worst.truncate(LISTED);
    worst.sort_by_key(|late| late.cycle);
    let mut text = match report.last.late_cycles {
        all if all > worst.len() as u64 => format!("\nthe worst {}:\n", worst.len()),
        _ => "\n".to_owned(),
    };
    for late in worst {
        let moment = Moment::of(Instant::from_nanos(late.release_ns), late.cycle);
        let _ = writeln!(text, "{} {late}", moment.time());
    }
    text
}

/// Remedy against a kind of cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Remedy {
    pub(crate) kind: Kind,
    pub(crate) remedy: &'static str,
}

/// Remedies against these causes, the largest cause first, one for each kind.
pub(crate) fn remedies(by_cause: &[CauseTotal]) -> Vec<Remedy> {
    let mut remedies: Vec<Remedy> = Vec::new();
    for CauseTotal { kind, .. } in by_cause {
        if remedies.iter().all(|it| it.kind != *kind) {
            remedies.push(Remedy { kind: *kind, remedy: remedy(*kind) });
        }
    }
    remedies
}

fn remedy(kind: Kind) -> &'static str {
    match kind {
        Kind::Task => "Give the cycle a CPU that other threads do not use: `--profile PMCS --cpu N`.",
        Kind::Irq | Kind::Softirq => {
            "Move interrupts to other CPUs: `--profile PMCS --cpu N`, or `onbeat doctor`."
        }
        Kind::Timer => "Keep timers off the CPU: `nohz_full` and `rcu_nocbs` (docs/hold.md).",
        Kind::Steal => "Give the virtual machine CPUs of the host that no other machine uses.",
        Kind::Stall => {
            "Do not stop or freeze the process (Ctrl-Z, SIGSTOP, debugger, cgroup), nor suspend or pause the computer."
        }
        Kind::Own => "Shorten the named phase, or use a longer period.",
        Kind::MinorFault | Kind::MajorFault => "Lock the memory of the process: `--profile M`.",
        Kind::Sleep | Kind::SystemCall | Kind::BlockingCall => {
            "Keep the controller from system calls (docs/controllers.md)."
        }
        Kind::Unknown => {
            "Start the run with --explain as root; `onbeat doctor` finds firmware, power saving and interrupts."
        }
    }
}

#[cfg(test)]
mod tests {
    use types::late::{Cause, LateCycle};

    use super::*;

    fn report(late_cycles: u64) -> LateReport {
        let last = LateSpan {
            span_ns: 60_000_000_000,
            cycles: 60_000,
            late_cycles,
            worst_ns: if late_cycles > 0 { 302_000_000 } else { 31_000 },
            worst_cycle: 48_213,
        };
        let name = || "process".to_owned();
        let causes = vec![Cause { kind: Kind::Stall, name: name(), ns: 302_000_000 }];
        let late = LateCycle { cycle: 48_213, late_ns: 302_000_000, causes, ..LateCycle::default() };
        let ns = 302_000_000;
        let total = CauseTotal { kind: Kind::Stall, name: name(), cycles: 1, ns, largest_ns: ns };
        let few = usize::try_from(late_cycles.min(1)).unwrap_or(0);
        LateReport {
            source: "records".to_owned(),
            late_above_ns: 50_000,
            period_ns: 1_000_000,
            now_ns: 0,
            last,
            run: LateSpan { span_ns: 90_000_000_000, cycles: 90_000, ..last },
            late: vec![late; few],
            by_cause: vec![total; few],
            notes: Vec::new(),
        }
    }

    #[test]
    fn late_cycles_have_figures_causes_and_remedies() {
        let text = text(&report(1), Duration::from_secs(60));
        for expected in [
            "last 1min: 1 of 60 000 cycles were later than 50 us, the worst 302.0 ms in cycle 48 213; period 1.0 ms",
            "whole run (90.0 s): 1 of 90 000 cycles",
            " cycle 48 213 started 302.0 ms late: the whole process stalled 302.0 ms\n",
            "stall   process ",
            "stall   Do not stop or freeze the process",
            "start the run with --explain as root",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn a_cycle_that_was_never_late_has_its_figures() {
        let text = text(&report(0), Duration::from_secs(60));
        let first = "last 1min: no cycle of 60 000 was later than 50 us, the worst 31 us in cycle 48 213; period 1.0 ms\n";
        assert!(text.starts_with(first), "{text}");
        assert!(!text.contains("lateness by cause"), "{text}");
    }

    #[test]
    fn a_span_without_cycles_is_not_good() {
        let mut report = report(0);
        report.last = LateSpan { span_ns: 60_000_000_000, ..LateSpan::default() };
        let text = text(&report, Duration::from_secs(60));
        assert!(text.starts_with("last 1min: no cycle was measured; period 1.0 ms\n"), "{text}");
    }

    #[test]
    fn a_span_shorter_than_asked_has_its_length() {
        let text = text(&report(0), Duration::from_secs(3600));
        assert!(text.starts_with("last 60.0 s: "), "{text}");
        let none = text_of_nothing();
        assert_eq!(none, "the cycle has measured nothing yet: its bus is not in Op\n");
    }

    fn text_of_nothing() -> String {
        text(&LateReport::default(), Duration::from_secs(60))
    }
}
