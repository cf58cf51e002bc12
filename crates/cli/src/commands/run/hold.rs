//! Releases passed over, requests to the system and their grants, for people and for programs.

use std::fmt;

use machine::shield::Left;
use robot::OverrunPolicy;
use rt::pacer::Overruns;
use rt::profile::Grants;
use serde::Serialize;

/// Outcome of cycles that overran, from the first release to the last, for people and for programs.
#[derive(Serialize)]
pub(super) struct OverrunOutcome {
    policy: &'static str,
    /// Releases passed over.
    skipped: u64,
    /// Releases run late, back to back.
    caught_up: u64,
    /// The cycle that ended the run under `stop`.
    stopped_by_cycle: Option<u64>,
}

impl OverrunOutcome {
    pub(super) fn of(policy: OverrunPolicy, overruns: Overruns, stopped_by_cycle: Option<u64>) -> Self {
        Self {
            policy: policy.name(),
            skipped: overruns.skipped,
            caught_up: overruns.caught_up,
            stopped_by_cycle,
        }
    }
}

impl fmt::Display for OverrunOutcome {
    /// Prints nothing for defaults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.policy {
            "catch-up" => writeln!(f, "{:<24}{}", "caught-up releases", self.caught_up),
            "stop" => match self.stopped_by_cycle {
                Some(cycle) => writeln!(f, "{:<24}in cycle {cycle}", "stopped by an overrun"),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// Requests to the system and its grants, for programs.
#[derive(Serialize)]
pub(super) struct ProfileOutcome {
    /// Letters of PMCS.
    requested: String,
    granted: String,
    /// Each a sentence, with what to do.
    refusals: Vec<String>,
    /// Remarks on facts worth knowing that were not requested.
    notes: Vec<String>,
    /// Time before a release at which the cycle wakes up and spins; 0 without S.
    spin_margin_ns: u64,
    shield: Option<ShieldOutcome>,
}

/// Threads and interrupts moved away from the cycle's CPU.
#[derive(Serialize)]
struct ShieldOutcome {
    cpu: usize,
    method: String,
    threads_moved: usize,
    interrupts_moved: usize,
    left: Vec<LeftOutcome>,
}

/// Threads and interrupts that still run there.
#[derive(Serialize)]
struct LeftOutcome {
    why: String,
    what: Vec<String>,
}

impl ProfileOutcome {
    pub(super) fn of(granted: &Grants) -> Self {
        let left = |left: &Left| LeftOutcome { why: left.why.clone(), what: left.what.clone() };
        let shield = granted.shield_report.as_ref().map(|report| ShieldOutcome {
            cpu: report.cpu,
            method: report.method.to_string(),
            threads_moved: report.threads,
            interrupts_moved: report.interrupts,
            left: report.left.iter().map(left).collect(),
        });
        Self {
            requested: granted.requested().to_string(),
            granted: granted.letters().to_string(),
            refusals: granted.refusals().collect(),
            notes: granted.notes().collect(),
            spin_margin_ns: types::time::nanoseconds(granted.spin_margin()),
            shield,
        }
    }
}
