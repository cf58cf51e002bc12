//! Periodic tasks on one CPU: measured and computed response times, and outputs that they toggle
//! (controllers paper, Tables 2, 3 and 6, Figures 3 and 7).

pub(crate) mod job;
mod outside;
pub(crate) mod set;
pub(crate) mod share;
mod timeline;

use std::time::Duration;

use record::Statistics;
use report::plots::{self, Samples};
use report::{Report, Row, Section, Table};
use schedulability::{ResponseTime, analyse, fixed_priority};
use serde_json::{Value, json};

pub use self::job::Busy;
pub use self::outside::{Lines, Toggle};
pub use self::set::{Periodic, read};

use self::job::Job;
use self::set::{Run, task_set};
use self::share::Share;
use self::timeline::Both;
use crate::distribution::{self, Durations};
use crate::paper::Paper;
use crate::raw::{Raw, facts};
use crate::surroundings::Surroundings;
use crate::thread::default_cpu;
use crate::{Context, Error};
use types::time::nanoseconds;

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// Name of the task set, or of its file.
    pub name: String,
    /// Tasks, all released together at the start.
    pub tasks: Vec<Periodic>,
    /// Ways in which their jobs are busy, one run each.
    pub busy: Vec<Busy>,
    /// Duration of a run.
    pub duration: Duration,
    /// CPU of all tasks.
    pub cpu: usize,
    /// Outputs that the tasks toggle.
    pub toggle: Toggle,
}

impl Tasks {
    /// A task set of the paper by its name, or of a file.
    ///
    /// # Errors
    /// The errors of [`read`].
    pub fn named(name: &str) -> Result<Self, Error> {
        Ok(Self {
            name: name.to_owned(),
            tasks: read(name)?,
            busy: Busy::ALL.to_vec(),
            duration: Duration::from_secs(20),
            cpu: default_cpu(),
            toggle: Toggle::Nothing,
        })
    }

    /// Runs the experiment.
    ///
    /// # Errors
    /// A thread cannot be started, or a file cannot be written.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        let surroundings = Surroundings::begin(context);
        let (mut all, mut warnings) = (Vec::new(), Vec::new());
        context.progress.plan("tasks", vec![self.duration; self.busy.len()]);
        for &busy in &self.busy {
            let run = Run {
                tasks: &self.tasks,
                duration: self.duration,
                cpu: self.cpu,
                busy,
                share: Share::Nothing,
                toggle: &self.toggle,
            };
            run.check()?;
            let Some((ran, doubts)) = context.cell(busy.slug(), || run.conduct(context.stop))? else {
                break;
            };
            for (task, jobs) in self.tasks.iter().zip(&ran) {
                self.record(context, busy, task, jobs)?;
            }
            warnings.extend(doubts);
            all.push((busy, ran));
        }
        let mut report = self.report(&all)?;
        surroundings.end(&mut report);
        warnings.into_iter().for_each(|warning| report.warn(warning));
        Ok(report)
    }

    fn record(&self, context: &Context, busy: Busy, task: &Periodic, jobs: &[Job]) -> Result<(), Error> {
        let column = |of: fn(&Job) -> u64| jobs.iter().map(of).collect::<Vec<u64>>();
        let (release, start) = (column(|job| job.release), column(|job| job.start));
        let (end, execution) = (column(|job| job.end), column(|job| job.execution));
        let settings = facts([
            ("task", task.name.as_str().into()),
            ("priority", task.priority.into()),
            ("period_ns", nanoseconds(task.period).into()),
            ("wcet_ns", nanoseconds(task.execution).into()),
            ("busy", busy.slug().into()),
            ("cpu", self.cpu.into()),
        ]);
        let mut columns = vec!["release_ns", "start_ns", "end_ns", "execution_ns"];
        let mut values: Vec<&[u64]> = vec![&release, &start, &end, &execution];
        let (up, down) = (column(|job| job.outside[0]), column(|job| job.outside[1]));
        if self.toggle.is_seen() {
            columns.extend(["outside_up_ns", "outside_down_ns"]);
            values.extend([&up[..], &down]);
        }
        let name = task.name.replace(|letter: char| !letter.is_alphanumeric() && letter != '_', "-");
        let mut raw = Raw::begin(context, &format!("{name}-{}", busy.slug()), "job", &columns, settings)?;
        raw.append(&values)?;
        raw.finish(facts([]))
    }

    fn report(&self, all: &[(Busy, Vec<Vec<Job>>)]) -> Result<Report, Error> {
        let mut report = Report {
            experiment: "tasks".into(),
            title: "Periodic tasks on one CPU, with their computed response times".into(),
            source: Some("the controllers paper, Tables 2, 3 and 6, Figure 3".into()),
            measured: "for every job: the period from its start to the next, its jitter |period - \
                nominal|, and the response time from its release to its end, and the worst \
                response that the analysis computes"
                .into(),
            good: "no response above the computed one by more than the wake-up and the switches \
                between tasks, which the analysis does not include; a period that stays nominal"
                .into(),
            found: self.found().map(str::to_owned),
            ..Report::default()
        };
        report.condition("task set", self.name.as_str());
        for it in &self.tasks {
            let (period, execution) = (it.period.as_micros(), it.execution.as_micros());
            let value = format!("SCHED_FIFO {}, every {period} us, busy for {execution} us", it.priority);
            report.condition(it.name.as_str(), value);
        }
        report.condition("CPU of the tasks", self.cpu.to_string());
        if let Some(words) = self.toggle.words() {
            report.condition("outputs", words);
        }
        for (busy, ran) in all {
            let counts: Vec<String> = ran.iter().map(|jobs| jobs.len().to_string()).collect();
            report.condition(format!("samples, {}", busy.name()), format!("jobs: {}", counts.join(", ")));
        }
        report.sections.push(self.analysis(&mut report.values)?);
        let mut values = Vec::new();
        for (busy, ran) in all {
            let tasks: Vec<Measured> =
                self.tasks.iter().zip(ran).map(|(task, jobs)| Measured::new(task, jobs)).collect();
            self.tables(*busy, &tasks, &mut report);
            if self.toggle.is_seen() {
                outside(*busy, &tasks, &mut report);
            }
            let timelines = Both::of(&task_set(&self.tasks, |_| None), ran);
            report.sections.extend(timelines.into_iter().flat_map(|it| it.sections(busy.name())));
            values.extend(self.values(*busy, &tasks));
        }
        report.sections.push(Section::Text(ANALYSIS.into()));
        Paper::Controllers.append(self.tables_of_the_paper(), &mut report);
        for (busy, ran) in all {
            for (task, jobs) in self.tasks.iter().zip(ran) {
                plot(*busy, &Measured::new(task, jobs), &mut report);
            }
        }
        report.values.insert("tasks".into(), values.into());
        Ok(report)
    }

    /// Result of the paper for this set.
    fn found(&self) -> Option<&'static str> {
        match self.name.as_str() {
            "controllers" => {
                Some("responses as computed on four boards: tau1 0.50 ms, tau2 2.99 to 3.00 ms")
            }
            "service-robot" => {
                Some("worst responses of 0.029 to 2.273 ms and a system slack of 914.06 %, computed")
            }
            _ => None,
        }
    }

    fn tables_of_the_paper(&self) -> &'static [&'static str] {
        match self.name.as_str() {
            "service-robot" => &["Table 6"],
            _ => &["Table 2", "Table 3"],
        }
    }

    /// Table of computed responses and slack.
    fn analysis(&self, values: &mut serde_json::Map<String, Value>) -> Result<Section, Error> {
        let set = task_set(&self.tasks, |_| None);
        let found = analyse(&set).map_err(Error::other)?;
        let row = |(task, verdict): (&Periodic, &schedulability::verdict::TaskVerdict)| {
            let us = |time: Duration| report::numbers::microseconds(Some(nanoseconds(time) as f64));
            let cells = vec![
                us(task.period),
                us(task.execution),
                task.priority.to_string(),
                words(verdict.response),
                verdict.slack.to_string(),
                verdict.mast_slack.to_string(),
            ];
            Row { name: task.name.clone(), cells, from_paper: false }
        };
        let mut rows: Vec<Row> = self.tasks.iter().zip(&found.tasks).map(row).collect();
        let dash = || "-".to_owned();
        let system =
            vec![dash(), dash(), dash(), dash(), found.slack.to_string(), found.mast_slack.to_string()];
        rows.push(Row { name: "system".into(), cells: system, from_paper: false });
        values.insert("schedulable".into(), found.schedulable.into());
        values.insert("mast_slack_percent".into(), found.mast_slack.percent().into());
        Ok(Section::Table(Table {
            caption: "Computed: worst response, us, and slack, how much longer execution times may be: exact, and by MAST's way".into(),
            columns: distribution::heads(
                "task",
                &["period, us", "execution, us", "priority", "computed R", "slack", "slack (MAST)"],
            ),
            rows,
        }))
    }

    fn tables(&self, busy: Busy, tasks: &[Measured], report: &mut Report) {
        let busy = busy.name();
        let of = |caption: &str, of: fn(&Measured) -> &Durations| {
            let rows = tasks.iter().map(|task| four(&task.name, &of(task).statistics())).collect();
            Section::Table(Table {
                caption: format!("{caption}, {busy}"),
                columns: distribution::heads("task", &FOUR),
                rows,
            })
        };
        report.sections.push(of("Period, us: start to start", |it| &it.period));
        report.sections.push(of("Jitter, us: |period - nominal|", |it| &it.jitter));
        report.sections.push(self.responses(busy, tasks));
        report.sections.push(of("Processor time of a job, us", |it| &it.execution));
    }

    /// Table of measured and computed response times.
    fn responses(&self, busy: &str, tasks: &[Measured]) -> Section {
        let given = self.computed(|_| None);
        let (median, longest) = self.computed_from_measured(tasks);
        let row = |place: usize| {
            let statistics = tasks[place].response.statistics();
            let mut row = four(&tasks[place].name, &statistics);
            let bound = |it: ResponseTime| it.ns().map(|ns| ns as f64);
            row.cells.extend([given[place], median[place], longest[place]].map(words));
            let longest = statistics.maximum().map(|ns| ns as f64);
            let ratio = longest.zip(bound(given[place])).map(|(longest, bound)| longest / bound);
            row.cells.push(ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}")));
            row
        };
        let mut columns = distribution::heads("task", &FOUR);
        columns.extend(["computed R", "R of median C", "R of longest C", "maximum / R"].map(str::to_owned));
        Section::Table(Table {
            caption: format!(
                "Response time, us: release to end, measured, {busy}, and the worst that \
                 response-time analysis computes from the requested execution times C, and from \
                 the measured processor times"
            ),
            columns,
            rows: (0..tasks.len()).map(row).collect(),
        })
    }

    /// Worst-case response times, from the median and from the longest execution times measured.
    fn computed_from_measured(&self, tasks: &[Measured]) -> (Vec<ResponseTime>, Vec<ResponseTime>) {
        let of = |place: usize| tasks[place].execution.statistics();
        (self.computed(|place| of(place).percentile(0.5)), self.computed(|place| of(place).maximum()))
    }

    /// Worst-case response times, from `wcet` by a task's index, or else the requested execution
    /// times.
    fn computed(&self, wcet: impl Fn(usize) -> Option<u64>) -> Vec<ResponseTime> {
        fixed_priority::response_times(&task_set(&self.tasks, wcet))
    }

    fn values(&self, busy: Busy, tasks: &[Measured]) -> Vec<Value> {
        let given = self.computed(|_| None);
        let (median, longest) = self.computed_from_measured(tasks);
        let task = |(place, it): (usize, &Measured)| {
            let mut value = json!({
                "name": it.name,
                "busy": busy.slug(),
                "period_ns": it.period.statistics(),
                "jitter_ns": it.jitter.statistics(),
                "response_ns": it.response.statistics(),
                "execution_ns": it.execution.statistics(),
                "computed_response_ns": given[place].ns(),
                "computed_response_of_median_execution_ns": median[place].ns(),
                "computed_response_of_longest_execution_ns": longest[place].ns(),
            });
            if self.toggle.is_seen() {
                let Outside { period, up, period_error, up_error } = &it.outside;
                value["outside"] = json!({
                    "period_ns": period.statistics(),
                    "up_ns": up.statistics(),
                    "period_difference_ns": period_error.statistics(),
                    "up_difference_ns": up_error.statistics(),
                });
            }
            value
        };
        tasks.iter().enumerate().map(task).collect()
    }
}

/// Tables of the outside observations next to the tasks' own stamps.
fn outside(busy: Busy, tasks: &[Measured], report: &mut Report) {
    let table = |caption: &str, rows: Vec<Row>| {
        Section::Table(Table {
            caption: format!("{caption}, {}", busy.name()),
            columns: distribution::heads("task", &FOUR),
            rows,
        })
    };
    let beside = |own: fn(&Measured) -> &Durations, seen: fn(&Measured) -> &Durations| {
        let two = |it: &Measured| {
            [
                four(&format!("{}: own stamps", it.name), &own(it).statistics()),
                four(&format!("{}: from outside", it.name), &seen(it).statistics()),
            ]
        };
        tasks.iter().flat_map(two).collect::<Vec<_>>()
    };
    let periods = beside(|it| &it.period, |it| &it.outside.period);
    report.sections.push(table("Period seen from outside, us: edge up to edge up", periods));
    let ups = beside(|it| &it.up, |it| &it.outside.up);
    report.sections.push(table("Output up, us: start to end of a job", ups));
    let differences = |it: &Measured| {
        [
            four(&format!("{}: period", it.name), &it.outside.period_error.statistics()),
            four(&format!("{}: output up", it.name), &it.outside.up_error.statistics()),
        ]
    };
    let rows = tasks.iter().flat_map(differences).collect();
    report.sections.push(table("|own stamps - from outside|, us, of each job", rows));
    let periods: Vec<Durations> = tasks
        .iter()
        .map(|it| Durations::new(format!("{}, from outside", it.name), it.outside.period.ns.clone()))
        .collect();
    let caption = format!("Period seen from outside, {}", busy.name());
    report.sections.extend(distribution::plots(&caption, &periods));
}

/// Distribution of the responses of a task, and they over time.
fn plot(busy: Busy, task: &Measured, report: &mut Report) {
    let caption = format!("Response time of {}, {}", task.name, busy.name());
    report.sections.extend(distribution::plots(&caption, std::slice::from_ref(&task.response)));
    let micros: Vec<f64> = task.response.ns.iter().map(|&ns| ns as f64 / 1e3).collect();
    let samples = [Samples { name: &task.name, values: &micros }];
    report.sections.push(Section::Trace(plots::trace(
        &format!("{caption}, over time"),
        "us",
        &task.seconds,
        &samples,
    )));
}

const ANALYSIS: &str = "The analysis is W = C + B + the sum over higher priorities of ceil((W + J) / P) C, without blocking and without \
                        release jitter. The computed R of the two tasks' tau2 ends on the very instant at which tau1 is released again: a task that \
                        burns its own processor time meets that job with whatever the machine adds, as the R of the measured median \
                        shows. One that spins in blocks of elapsed time, as the paper's most likely does, loses nothing of the block in which it is \
                        preempted: it ends before that release if wake-ups and switches cost a few us at most.";

/// Headings: average, maximum, minimum, standard deviation.
const FOUR: [&str; 4] = ["average", "maximum", "minimum", "SD"];

fn four(name: &str, statistics: &Statistics) -> Row {
    let cells = report::numbers::four(statistics).map(|(_, ns)| report::numbers::microseconds(ns));
    Row { name: name.into(), cells: cells.into(), from_paper: false }
}

fn words(response: ResponseTime) -> String {
    match response {
        ResponseTime::Bounded(ns) => report::numbers::microseconds(Some(ns as f64)),
        ResponseTime::Unbounded => "unbounded".into(),
        ResponseTime::AtLeast(ns) => format!("at least {}", report::numbers::microseconds(Some(ns as f64))),
    }
}

/// Measurements of one task.
struct Measured {
    name: String,
    period: Durations,
    jitter: Durations,
    response: Durations,
    execution: Durations,
    /// From start to end.
    up: Durations,
    outside: Outside,
    /// Releases, s since the first.
    seconds: Vec<f64>,
}

/// Times of a task as observed from outside, of the jobs with observed edges.
struct Outside {
    period: Durations,
    up: Durations,
    /// Differences to the task's own stamps.
    period_error: Durations,
    up_error: Durations,
}

impl Outside {
    fn new(name: &str, jobs: &[Job]) -> Self {
        let (mut periods, mut ups) = (Vec::new(), Vec::new());
        for job in jobs.iter().filter(|job| !job.outside.contains(&0)) {
            let [up, down] = job.outside;
            ups.push((down.saturating_sub(up), job.end - job.start));
        }
        for pair in jobs.windows(2).filter(|pair| pair.iter().all(|job| job.outside[0] != 0)) {
            let period = pair[1].outside[0].saturating_sub(pair[0].outside[0]);
            periods.push((period, pair[1].start - pair[0].start));
        }
        let seen = |all: &[(u64, u64)]| Durations::new(name, all.iter().map(|(seen, _)| *seen).collect());
        let error = |all: &[(u64, u64)]| {
            Durations::new(name, all.iter().map(|(seen, own)| seen.abs_diff(*own)).collect())
        };
        Self {
            period: seen(&periods),
            up: seen(&ups),
            period_error: error(&periods),
            up_error: error(&ups),
        }
    }
}

impl Measured {
    fn new(task: &Periodic, jobs: &[Job]) -> Self {
        let durations = |ns: Vec<u64>| Durations::new(task.name.as_str(), ns);
        let periods: Vec<u64> = jobs.windows(2).map(|pair| pair[1].start - pair[0].start).collect();
        let nominal = nanoseconds(task.period);
        let first = jobs.first().map_or(0, |job| job.release);
        Self {
            name: task.name.clone(),
            jitter: durations(periods.iter().map(|period| period.abs_diff(nominal)).collect()),
            period: durations(periods),
            response: durations(jobs.iter().map(|job| job.end - job.release).collect()),
            execution: durations(jobs.iter().map(|job| job.execution).collect()),
            up: durations(jobs.iter().map(|job| job.end - job.start).collect()),
            outside: Outside::new(&task.name, jobs),
            seconds: jobs.iter().map(|job| (job.release - first) as f64 / 1e9).collect(),
        }
    }
}
