//! Two periodic tasks on one CPU: measured and computed response times (controllers paper, Tables 2 and 3).

mod job;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use control::clock::{Clock, MonotonicClock};
use record::Statistics;
use report::plots::{self, Samples};
use report::{Report, Row, Section, Table};
use schedulability::{ResponseTime, Task, TaskSet, fixed_priority};
use serde_json::{Value, json};

use self::job::{Job, Plan};
use crate::distribution::{self, Durations};
use crate::paper::Paper;
use crate::raw::{Raw, facts};
use crate::surroundings::Surroundings;
use crate::thread::{default_cpu, real_time};
use crate::{Context, Error};
use types::time::nanoseconds;

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// Tasks, all released together at the start.
    pub tasks: Vec<Periodic>,
    /// Duration of the run.
    pub duration: Duration,
    /// CPU of all tasks.
    pub cpu: usize,
}

/// Periodic task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Periodic {
    /// Name of the task.
    pub name: String,
    /// `SCHED_FIFO` priority; the highest runs first.
    pub priority: u8,
    /// Time between two releases.
    pub period: Duration,
    /// Processor time of each job.
    pub execution: Duration,
}

impl Default for Tasks {
    /// The paper's two tasks.
    fn default() -> Self {
        let task = |name: &str, priority, period, execution| Periodic {
            name: name.into(),
            priority,
            period: Duration::from_micros(period),
            execution: Duration::from_micros(execution),
        };
        Self {
            tasks: vec![task("tau1", 99, 1_000, 500), task("tau2", 80, 5_000, 1_500)],
            duration: Duration::from_secs(20),
            cpu: default_cpu(),
        }
    }
}

impl Tasks {
    /// Runs the experiment.
    ///
    /// # Errors
    /// A thread cannot be started, or a file cannot be written.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        self.check()?;
        let surroundings = Surroundings::begin(context);
        context.say(format_args!("tasks: {} s", self.duration.as_secs_f64()));
        let (ran, warnings) = self.conduct(context.stop)?;
        for (task, jobs) in self.tasks.iter().zip(&ran) {
            self.record(context, task, jobs)?;
        }
        let mut report = self.report(&ran);
        surroundings.end(&mut report);
        warnings.into_iter().for_each(|warning| report.warn(warning));
        Ok(report)
    }

    /// Checks the settings: all jobs are kept in memory, which is allocated before the first.
    fn check(&self) -> Result<(), Error> {
        for task in &self.tasks {
            let jobs = self.plan(task).jobs;
            if jobs > MOST_JOBS {
                return Err(Error::other(format_args!(
                    "{} s of {} are {jobs} jobs, expected at most {MOST_JOBS}: choose a shorter --duration",
                    self.duration.as_secs(),
                    task.name
                )));
            }
        }
        Ok(())
    }

    /// Runs all tasks, released together.
    fn conduct(&self, stop: &AtomicBool) -> Result<(Vec<Vec<Job>>, Vec<String>), Error> {
        let create = |task: &Periodic| job::create(&task.name, &self.plan(task));
        let tasks: Vec<_> =
            self.tasks.iter().map(create).collect::<Result<_, _>>().map_err(Error::other)?;
        if let Some(late) = tasks.iter().find(|task| !task.wait_until_ready(TIMEOUT)) {
            return Err(Error::other(format_args!(
                "task `{}` is not ready after {TIMEOUT:?}",
                late.name()
            )));
        }
        let first = MonotonicClock.now() + LEAD;
        tasks.iter().for_each(|task| task.start_at(first));
        while !tasks.iter().all(control::task::Task::is_over) && !stop.load(Ordering::Relaxed) {
            thread::sleep(LOOK_EVERY);
        }
        let (mut ran, mut warnings) = (Vec::new(), Vec::new());
        for task in tasks {
            warnings.extend(task.grants().refusals());
            let name = task.name().to_owned();
            let ended = task.join().map_err(Error::other)?;
            if ended.overruns.skipped > 0 {
                let skipped = ended.overruns.skipped;
                warnings.push(format!(
                    "{name}: {skipped} releases were passed over, for it was too late for them"
                ));
            }
            ran.push(ended.value);
        }
        Ok((ran, warnings))
    }

    fn plan(&self, task: &Periodic) -> Plan {
        let period = task.period.max(Duration::from_nanos(1));
        let jobs = self.duration.as_nanos() / period.as_nanos();
        Plan {
            period,
            execution: task.execution,
            jobs: usize::try_from(jobs).unwrap_or(usize::MAX).max(1),
            profile: real_time(Some(task.priority), self.cpu),
        }
    }

    fn record(&self, context: &Context, task: &Periodic, jobs: &[Job]) -> Result<(), Error> {
        let column = |of: fn(&Job) -> u64| jobs.iter().map(of).collect::<Vec<u64>>();
        let (release, start) = (column(|job| job.release), column(|job| job.start));
        let (end, execution) = (column(|job| job.end), column(|job| job.execution));
        let settings = facts([
            ("task", task.name.as_str().into()),
            ("priority", task.priority.into()),
            ("period_ns", nanoseconds(task.period).into()),
            ("wcet_ns", nanoseconds(task.execution).into()),
            ("cpu", self.cpu.into()),
        ]);
        let columns = ["release_ns", "start_ns", "end_ns", "execution_ns"];
        let mut raw = Raw::begin(context, &task.name, "job", &columns, settings)?;
        raw.append(&[&release, &start, &end, &execution])?;
        raw.finish(facts([]))
    }

    fn report(&self, ran: &[Vec<Job>]) -> Report {
        let mut report = Report {
            experiment: "tasks".into(),
            title: "Two periodic tasks on one CPU, beside their computed response times".into(),
            source: Some("the controllers paper, Tables 2 and 3".into()),
            measured: "for every job: the period from its start to the next, its jitter |period - nominal|, and the \
                       response time from its release to its end, beside the worst response that the analysis computes"
                .into(),
            good: "no response above the computed one by more than the wake-up and the switches between tasks, which \
                   the analysis is not told of; a period that stays nominal"
                .into(),
            found: Some(
                "responses as computed on four boards: tau1 0.50 ms, tau2 2.99 to 3.00 ms"
                    .into(),
            ),
            ..Report::default()
        };
        for it in &self.tasks {
            let (period, execution) = (it.period.as_micros(), it.execution.as_micros());
            let value =
                format!("SCHED_FIFO {}, every {period} us, {execution} us of processor time", it.priority);
            report.condition(it.name.as_str(), value);
        }
        report.condition("CPU of the tasks", self.cpu.to_string());
        let counts: Vec<String> = ran.iter().map(|jobs| jobs.len().to_string()).collect();
        report.condition("samples", format!("{} jobs", counts.join(" and ")));
        let tasks: Vec<Measured> =
            self.tasks.iter().zip(ran).map(|(task, jobs)| Measured::new(task, jobs)).collect();
        self.tables(&tasks, &mut report);
        report.values.extend(self.values(&tasks));
        report
    }

    fn tables(&self, tasks: &[Measured], report: &mut Report) {
        let of = |caption: &str, of: fn(&Measured) -> &Durations| {
            let rows = tasks.iter().map(|task| four(&task.name, &of(task).statistics())).collect();
            Section::Table(Table {
                caption: caption.into(),
                columns: distribution::heads("task", &FOUR),
                rows,
            })
        };
        report.sections.push(of("Period, us: start to start", |it| &it.period));
        report.sections.push(of("Jitter, us: |period - nominal|", |it| &it.jitter));
        report.sections.push(self.responses(tasks));
        report.sections.push(of("Processor time of a job, us", |it| &it.execution));
        report.sections.push(Section::Text(ANALYSIS.into()));
        Paper::Controllers.append(&["Table 2", "Table 3"], report);
        let responses: Vec<Durations> = tasks.iter().map(|task| task.response.clone()).collect();
        report.sections.extend(distribution::plots("Response time", &responses));
        for task in tasks {
            let micros: Vec<f64> = task.response.ns.iter().map(|&ns| ns as f64 / 1e3).collect();
            let caption = format!("Response time of {} over time", task.name);
            let samples = [Samples { name: &task.name, values: &micros }];
            report.sections.push(Section::Trace(plots::trace(&caption, "us", &task.seconds, &samples)));
        }
    }

    /// Table of measured and computed response times.
    fn responses(&self, tasks: &[Measured]) -> Section {
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
            caption: "Response time, us: release to end, measured, and the worst that response-time analysis computes \
                      from the execution times C asked for, and from those measured"
                .into(),
            columns,
            rows: (0..tasks.len()).map(row).collect(),
        })
    }

    /// Worst-case response times, from the median and from the longest execution times measured.
    fn computed_from_measured(&self, tasks: &[Measured]) -> (Vec<ResponseTime>, Vec<ResponseTime>) {
        let of = |place: usize| tasks[place].execution.statistics();
        (self.computed(|place| of(place).percentile(0.5)), self.computed(|place| of(place).maximum()))
    }

    /// Worst-case response times, from `wcet` by a task's index, or else the requested execution times.
    fn computed(&self, wcet: impl Fn(usize) -> Option<u64>) -> Vec<ResponseTime> {
        let task = |(place, it): (usize, &Periodic)| {
            let wcet = wcet(place).unwrap_or(nanoseconds(it.execution));
            Task::new(it.name.as_str(), it.priority.into(), nanoseconds(it.period), wcet)
        };
        fixed_priority::response_times(&TaskSet::new(self.tasks.iter().enumerate().map(task).collect()))
    }

    fn values(&self, tasks: &[Measured]) -> serde_json::Map<String, Value> {
        let given = self.computed(|_| None);
        let (median, longest) = self.computed_from_measured(tasks);
        let task = |(place, it): (usize, &Measured)| {
            json!({
                "name": it.name,
                "period_ns": it.period.statistics(),
                "jitter_ns": it.jitter.statistics(),
                "response_ns": it.response.statistics(),
                "execution_ns": it.execution.statistics(),
                "computed_response_ns": given[place].ns(),
                "computed_response_of_median_execution_ns": median[place].ns(),
                "computed_response_of_longest_execution_ns": longest[place].ns(),
            })
        };
        facts([("tasks", tasks.iter().enumerate().map(task).collect())])
    }
}

/// Most jobs: five and a half hours of tau1; 640 MB.
const MOST_JOBS: usize = 20_000_000;

/// Time from all threads being ready to the first release: all are asleep by then.
const LEAD: Duration = Duration::from_millis(20);

/// Longest wait for all tasks to be ready.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Interval at which the end of the tasks is checked.
const LOOK_EVERY: Duration = Duration::from_millis(10);

const ANALYSIS: &str = "The analysis is W = C + B + the sum over higher priorities of ceil((W + J) / P) C, without blocking and without \
                        release jitter. The computed R of tau2 ends on the very instant at which tau1 is released again: a task that \
                        burns its own CPU time, as here, meets that job with whatever the machine adds, as the R of the measured median \
                        shows.";

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
    /// Releases, s since the first.
    seconds: Vec<f64>,
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
            seconds: jobs.iter().map(|job| (job.release - first) as f64 / 1e9).collect(),
        }
    }
}
