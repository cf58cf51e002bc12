//! One run: a column under a load.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use machine::usage::{Busy, Usage};
use record::lowest::{Lowest, Share};
use record::{CycleRecord, RunSummary, cycles};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use types::time::nanoseconds;

use super::{Background, Column};
use crate::load::Loads;
use crate::onbeat_run::OnbeatRun;
use crate::servo::refusals;
use crate::{Context, Error, runner};

/// Settings of a run.
pub(super) struct Cell {
    pub(super) column: Column,
    pub(super) load: Background,
    pub(super) period: Duration,
    pub(super) duration: Duration,
}

/// Results of a run.
pub(super) struct Measured {
    pub(super) column: Column,
    pub(super) load: Background,
    /// Times from release to start of all cycles, sorted, ns.
    pub(super) latency: Vec<u64>,
    /// Times from start to start, sorted, ns.
    pub(super) period: Vec<u64>,
    pub(super) cycles: Vec<CycleRecord>,
    pub(super) summary: RunSummary,
    /// Letters granted, or `none`.
    pub(super) granted: String,
    /// Settings requested and refused.
    pub(super) refused: Vec<String>,
    /// Loads that ended by themselves.
    pub(super) ended_loads: Vec<String>,
    pub(super) conditions: Value,
    pub(super) busy: Option<Busy>,
    pub(super) recording: PathBuf,
}

/// Facts of a run that are not in its recording.
#[derive(Debug, Serialize, Deserialize)]
struct Facts {
    /// Releases of the cycles that count, from and to, by the monotonic clock.
    counted_ns: (u64, u64),
    /// Conditions reported by the run.
    conditions: Value,
    refused: Vec<String>,
    ended_loads: Vec<String>,
    busy: Option<Busy>,
}

impl Cell {
    /// Name of its recording.
    fn name(&self) -> String {
        format!("{}-{}", self.column.profile(), self.load.name())
    }

    /// The cell as measured by the run that this one resumes.
    ///
    /// # Errors
    /// Its facts or its recording cannot be read.
    pub(super) fn measured_before(&self, context: &Context) -> Result<Option<Measured>, Error> {
        let facts = context.kept::<Facts>(&self.name())?;
        facts.map_or(Ok(None), |facts| self.measured(context, context.path(&self.name()), facts))
    }

    /// Brings the bus up on the unloaded machine, starts the load, and takes the cycles from then
    /// on: the load is to disturb the cycle, not its start. `None` if the user stopped it before
    /// the first one.
    pub(super) fn measure(
        &self,
        context: &Context,
        robot: &Path,
        cpu: Option<usize>,
        options: &[OsString],
    ) -> Result<Option<Measured>, Error> {
        let path = context.fresh_path(&self.name())?;
        let run = OnbeatRun {
            robot: Some(robot.to_owned()),
            period: Some(self.period),
            options: self.options(cpu, options),
        };
        // It is stopped explicitly; the limit applies if the parent fails to.
        let mut running = run.start(context, &path, self.duration * 2 + Duration::from_secs(120))?;
        if !running.wait_until_measuring(context)? {
            return Ok(None);
        }
        let mut loads = Loads::start(context, self.load.loads())?;
        context.wait(SETTLE);
        let usage = Usage::now().ok();
        let begin = monotonic_ns();
        while monotonic_ns() < begin.saturating_add(nanoseconds(self.duration)) && !running.is_over() {
            if !context.wait(LOOK_EVERY.min(self.duration)) {
                break;
            }
        }
        let end = monotonic_ns().min(begin.saturating_add(nanoseconds(self.duration)));
        let busy = usage.and_then(|before| Some(Usage::now().ok()?.since(&before)));
        let ended_loads = loads.ended();
        drop(loads);
        let outcome = running.finish()?;
        let facts = Facts {
            counted_ns: (begin, end),
            conditions: outcome["conditions"].clone(),
            refused: refusals(&outcome),
            ended_loads,
            busy,
        };
        if !context.stopped() {
            context.keep(&self.name(), &facts)?;
        }
        self.measured(context, path, facts)
    }

    /// Results from the recording; `None` if the user stopped it before the first cycle that
    /// counts.
    fn measured(&self, context: &Context, path: PathBuf, facts: Facts) -> Result<Option<Measured>, Error> {
        let (begin, end) = facts.counted_ns;
        let recording = runner::read(&path)?;
        let (period, all) = cycles::cycles(&recording)
            .map_err(|why| Error::other(format_args!("{}: {why}", path.display())))?;
        let cycles: Vec<CycleRecord> =
            all.into_iter().filter(|cycle| (begin..end).contains(&cycle.release_ns)).collect();
        if cycles.is_empty() {
            return if context.stopped() {
                Ok(None)
            } else {
                Err(Error::other("no cycle while it was measured: the cycle had stopped"))
            };
        }
        let mut measured = Measured::new(self, period, cycles, path);
        measured.granted =
            facts.conditions["profile"]["granted"].as_str().unwrap_or("not known").to_owned();
        measured.refused = facts.refused;
        measured.ended_loads = facts.ended_loads;
        measured.conditions = facts.conditions;
        measured.busy = facts.busy;
        Ok(Some(measured))
    }

    fn options(&self, cpu: Option<usize>, options: &[OsString]) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec!["--profile".into(), self.column.profile().into()];
        if let Some(cpu) = cpu {
            all.extend(["--cpu".into(), cpu.to_string().into()]);
        }
        all.extend_from_slice(options);
        all
    }
}

impl Measured {
    /// True if the machine granted the whole column.
    pub(super) fn is_granted(&self) -> bool {
        self.granted == self.column.profile()
    }

    pub(super) fn new(cell: &Cell, period_ns: u64, cycles: Vec<CycleRecord>, recording: PathBuf) -> Self {
        let mut latency: Vec<u64> = cycles.iter().map(CycleRecord::wakeup_latency).collect();
        let mut period: Vec<u64> =
            cycles.windows(2).filter_map(|pair| pair[1].actual_period(&pair[0])).collect();
        latency.sort_unstable();
        period.sort_unstable();
        Self {
            column: cell.column,
            load: cell.load,
            latency,
            period,
            summary: report::cycle::summary(&cycles, period_ns),
            cycles,
            granted: String::new(),
            refused: Vec::new(),
            ended_loads: Vec::new(),
            conditions: Value::Null,
            busy: None,
            recording,
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let worst = self.latency.last().map_or(0.0, |&it| it as f64 / 1e3);
        let low = Lowest::of(&self.latency, Share::PAPER[0]).map_or(worst, |it| it.maximum as f64 / 1e3);
        write!(
            f,
            "{} under load {}: {} cycles, wakeup latency up to {worst:.1} us, 99 % up to {low:.1} us",
            self.column.title(),
            self.load.name(),
            self.cycles.len()
        )
    }
}

/// Time of the clock of the cycle's instants.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Overhead of a cell in addition to its measurement: the bus comes up, the load starts and ends.
pub(super) const AROUND: Duration = Duration::from_secs(3);

/// Time between the load's start and the first cycle that counts.
const SETTLE: Duration = Duration::from_millis(300);

/// Interval at which a cell checks for the end of its run.
const LOOK_EVERY: Duration = Duration::from_millis(100);
