//! Text of an explanation for people.

use std::fmt;

use crate::cause::{Kind, Time};
use crate::explanation::{Explanation, LateCycle};
use crate::late::Late;

/// Most causes named in one line; the rest is summed up.
const NAMED: usize = 5;

/// Lines of the summary by cause.
const SUMMED: usize = 12;

impl fmt::Display for LateCycle {
    /// Writes for example "cycle 48 213 started 183 us late: kworker/1:2 ran 120 us, irq 24 eth0 61 us".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.late {
            Late::Start => "started",
            Late::End => "ended",
        };
        write!(f, "cycle {} {what} {} late", grouped(self.cycle), Time(self.late_ns))?;
        // Causes of less than a hundredth are left out.
        let matters = |ns: u64| ns.saturating_mul(100) >= self.late_ns;
        let named = self.causes.iter().filter(|cause| matters(cause.ns)).take(NAMED).count();
        for (number, cause) in self.causes.iter().take(named).enumerate() {
            write!(f, "{} {cause}", if number == 0 { ":" } else { "," })?;
        }
        let rest: u64 = self.causes.iter().skip(named).map(|cause| cause.ns).sum();
        if rest > 0 { write!(f, ", others {}", Time(rest)) } else { Ok(()) }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let above = Time(self.late_above_ns);
        if self.late_cycles == 0 {
            writeln!(f, "no cycle was later than {above}")?;
        } else {
            writeln!(f, "{} cycles were later than {above}; the worst:", grouped(self.late_cycles))?;
            for explained in &self.worst {
                writeln!(f, "  {}", explained.late)?;
            }
            self.fmt_causes(f)?;
            writeln!(f, "good is no late cycle; next best is a culprit that can be moved to another CPU")?;
        }
        if self.steal_ns > 0 {
            writeln!(f, "the kernel counted {} as stolen by the hypervisor", Time(self.steal_ns))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

impl Explanation {
    fn fmt_causes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u64 = self.by_cause.iter().map(|total| total.ns).sum();
        let shown = &self.by_cause[..self.by_cause.len().min(SUMMED)];
        let title = |kind: Kind, name: &str| format!("{:<8}{name}", kind.name());
        let width =
            shown.iter().map(|it| title(it.kind, &it.name).chars().count()).max().unwrap_or(0).max(20);
        writeln!(
            f,
            "{:<width$}{:>10}{:>10}{:>12}{:>12}",
            "lateness by cause", "cycles", "share", "total", "largest"
        )?;
        for total in shown {
            let share = format!("{:.1} %", total.ns as f64 * 100.0 / all.max(1) as f64);
            let name = title(total.kind, &total.name);
            let (sum, largest) = (Time(total.ns), Time(total.largest_ns));
            writeln!(f, "{name:<width$}{:>10}{share:>10}{sum:>12}{largest:>12}", total.cycles)?;
        }
        match self.by_cause.len() - shown.len() {
            0 => Ok(()),
            more => {
                let ns: u64 = self.by_cause.iter().skip(SUMMED).map(|total| total.ns).sum();
                writeln!(f, "and {more} more, {}", Time(ns))
            }
        }
    }
}

/// Number with grouped digits: 48213 as "48 213".
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Cause;
    use crate::explanation::CauseTotal;

    fn cause(kind: Kind, name: &str, ns: u64) -> Cause {
        Cause { kind, name: name.to_owned(), ns }
    }

    fn late(causes: Vec<Cause>) -> LateCycle {
        let late_ns = causes.iter().map(|cause| cause.ns).sum();
        LateCycle {
            cycle: 48_213,
            late_ns,
            late: Late::Start,
            release_ns: 0,
            start_ns: late_ns,
            end_ns: late_ns,
            causes,
        }
    }

    #[test]
    fn a_late_cycle_is_one_line() {
        let cycle = late(vec![
            cause(Kind::Task, "kworker/1:2", 120_000),
            cause(Kind::Irq, "24 eth0", 61_000),
            cause(Kind::Unknown, "waking up", 1_700),
        ]);
        assert_eq!(
            cycle.to_string(),
            "cycle 48 213 started 183 us late: kworker/1:2 ran 120 us, irq 24 eth0 61 us, others 1.7 us"
        );
    }

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
