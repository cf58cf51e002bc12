//! Options of the cycle, which stand over the robot file's `[cycle]`.

use std::fmt;
use std::time::Duration;

use clap::Args;
use clap::builder::TypedValueParser;
use control::pacer::Overruns;
use control::profile::Grants;
use machine::shield::Left;
use robot::{Overrides, OverrunPolicy, Profile};
use serde::Serialize;

use crate::arguments::{named, time};

/// Heading the help lists them under.
const HOLD: &str = "Hold the cycle: over the robot file, see docs/hold.md";

#[derive(Args, Clone, Debug, Default)]
pub(super) struct Hold {
    /// Requests of the cycle to the system: P priority, M memory lock, C CPU shield, S spinning sleep, or none
    #[arg(long, help_heading = HOLD, value_name = "PMCS|none")]
    profile: Option<Profile>,

    /// SCHED_FIFO priority for P
    #[arg(long, help_heading = HOLD, value_name = "1-99", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    /// SCHED_DEADLINE for P instead: this much of every period is reserved
    #[arg(long, help_heading = HOLD, value_name = "TIME", value_parser = time, conflicts_with = "priority")]
    deadline_runtime: Option<Duration>,

    /// The CPU of the cycle; with C all else is moved away from it
    #[arg(long, help_heading = HOLD, value_name = "CPU")]
    cpu: Option<usize>,

    /// Time before each release at which S wakes up and spins
    #[arg(long, help_heading = HOLD, value_name = "TIME", value_parser = time)]
    spin_margin: Option<Duration>,

    /// Policy for releases that a cycle ran past
    #[arg(long, help_heading = HOLD, value_parser = overrun_policy(), value_name = "POLICY")]
    overrun: Option<OverrunPolicy>,
}

/// Policies of overruns, with their help.
fn overrun_policy() -> impl TypedValueParser<Value = OverrunPolicy> {
    named(OverrunPolicy::ALL.map(|it| {
        let help = match it {
            OverrunPolicy::Skip => "Skip to the next grid point",
            OverrunPolicy::CatchUp => "Run them back to back, ten at most",
            OverrunPolicy::Stop => "Bring the axes to rest and end with an error",
        };
        (it, it.name(), help)
    }))
}

impl Hold {
    /// Values in the place of the robot file's.
    pub(super) fn overrides(&self) -> Overrides {
        let Self { profile, priority, deadline_runtime, cpu, spin_margin, overrun } = *self;
        Overrides { profile, priority, deadline_runtime, cpu, spin_margin, overrun, ..Overrides::default() }
    }
}

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
    /// Nothing for what nobody chose.
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
    /// Remarks on facts worth knowing that were not asked for.
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
