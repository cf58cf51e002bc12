//! Findings of the watch, and a task's own figures, in the words of the diagnostics.

use std::time::Duration;

use ipc::diagnostics::{Culprit, TaskDiagnostics, Watched};

use super::report::{Disturbances, Means};
use crate::task::{Live, Task};

/// Culprits shown at most: the document has room for all tasks.
const MOST: usize = 8;

impl From<&Disturbances> for Watched {
    fn from(found: &Disturbances) -> Self {
        let counts = found.counts;
        let culprit = |it: &super::Culprit| Culprit {
            kind: it.kind.words().to_owned(),
            name: it.name.clone(),
            count: it.count,
            first_period: it.first_period,
            last_period: it.last_period,
        };
        Self {
            means: match found.means {
                Means::Tracepoints => "tracepoints",
                Means::SoftwareEvents => "software events",
                Means::Counters => "counters",
            }
            .to_owned(),
            preemptions: counts.preemptions,
            sleeps: counts.sleeps,
            minor_faults: counts.minor_faults,
            major_faults: counts.major_faults,
            system_calls: counts.system_calls,
            blocking_calls: counts.blocking_calls,
            culprits: found.culprits.iter().take(MOST).map(culprit).collect(),
            firsts: found.firsts.iter().map(ToString::to_string).collect(),
            missing: found.missing.clone(),
            lost: found.lost,
        }
    }
}

impl<T> Task<T> {
    /// Its figures, for the diagnostics; `found` by a watch, if one looks.
    #[must_use]
    pub fn diagnostics(&self, found: Option<&Disturbances>) -> TaskDiagnostics {
        let own = diagnostics(self.name(), self.tid(), self.period(), &self.live());
        TaskDiagnostics { watched: found.map(Watched::from), ..own }
    }
}

fn diagnostics(name: &str, thread: i32, period: Duration, live: &Live) -> TaskDiagnostics {
    TaskDiagnostics {
        name: name.to_owned(),
        thread,
        period_ns: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
        jobs: live.jobs,
        actual_period_ns: live.period.into(),
        response_ns: live.response.into(),
        overruns: live.overruns,
        ..TaskDiagnostics::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disturbance::{Counts, First, Frame, Kind};

    #[test]
    fn what_was_found_stands_in_the_document() {
        let frame = Frame { function: "reads".into(), file: Some("a.rs".into()), line: Some(7) };
        let found = Disturbances {
            name: "sonar".into(),
            tid: 5,
            means: Means::Tracepoints,
            missing: vec![],
            counts: Counts { system_calls: 2, sleeps: 1, blocking_calls: 1, ..Counts::default() },
            culprits: vec![],
            firsts: vec![First {
                kind: Kind::BlockingCall,
                name: "read".into(),
                period: 9,
                at_ns: 1,
                backtrace: vec![frame],
                backtrace_period: Some(11),
            }],
            lost: 0,
        };
        let shown = Watched::from(&found);
        assert_eq!((shown.system_calls, shown.sleeps, shown.blocking_calls), (2, 1, 1));
        let first = "blocking system call (read) in period 9, and in period 11 there\n    reads at a.rs:7";
        assert_eq!(shown.firsts, [first]);
        assert_eq!(shown.means, "tracepoints");
    }

    #[test]
    fn no_more_culprits_are_shown_than_find_room() {
        let culprit = |count| crate::disturbance::Culprit {
            kind: Kind::Preemption,
            name: format!("thread {count}"),
            count,
            first_period: 1,
            last_period: 2,
        };
        let found = Disturbances {
            name: "sonar".into(),
            tid: 5,
            means: Means::Counters,
            missing: vec![],
            counts: Counts::default(),
            culprits: (0..20).rev().map(culprit).collect(),
            firsts: vec![],
            lost: 0,
        };
        let shown: Vec<u64> = Watched::from(&found).culprits.iter().map(|it| it.count).collect();
        assert_eq!(shown, [19, 18, 17, 16, 15, 14, 13, 12], "the most frequent");
    }
}
