//! Periodic tasks of one CPU, and their run.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use robot::task_set;
use rt::clock::{Clock, MonotonicClock};
use schedulability::{Policy, Task, TaskSet};
use types::time::nanoseconds;

use super::job::{self, Busy, Job, Plan};
use super::outside::Toggle;
use super::share::Share;
use crate::Error;
use crate::thread::real_time;

/// Periodic task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Periodic {
    /// Name of the task.
    pub name: String,
    /// `SCHED_FIFO` priority; the highest runs first.
    pub priority: u8,
    /// Time between two releases.
    pub period: Duration,
    /// Busy time of each job.
    pub execution: Duration,
}

/// Task sets of the paper by name, as `onbeat analyse` reads them.
const NAMED: [(&str, &str); 2] = [
    ("controllers", include_str!("../../../../examples/tasks/controllers.toml")),
    ("service-robot", include_str!("../../../../examples/tasks/service-robot.toml")),
];

/// Tasks of a set of the paper, by its name, or of a file.
///
/// # Errors
/// A file that is no task set, or a set that cannot run here: on one CPU, by fixed priorities 1 to
/// 99.
pub fn read(name: &str) -> Result<Vec<Periodic>, Error> {
    let named = NAMED.iter().find(|(known, _)| *known == name);
    let decided = task_set::Decided::default();
    let set = match named {
        Some((name, text)) => task_set::parse(text, name, decided),
        None => task_set::read(Path::new(name), decided),
    };
    periodic(name, &set.map_err(Error::other)?)
}

fn periodic(name: &str, set: &TaskSet) -> Result<Vec<Periodic>, Error> {
    let wrong = |found: String, expected: &str| {
        Error::other(format_args!("{name}: found {found}, expected {expected}"))
    };
    if set.policy != Policy::FixedPriority {
        return Err(wrong(format!("policy \"{}\"", set.policy.name()), "fixed priorities"));
    }
    let cpu = set.tasks.first().map_or(0, |task| task.cpu);
    let task = |it: &Task| {
        if it.cpu != cpu {
            return Err(wrong(format!("task \"{}\" on cpu {}", it.name, it.cpu), "all tasks on one cpu"));
        }
        let priority = u8::try_from(it.priority).ok().filter(|priority| (1..=99).contains(priority));
        let priority = priority.ok_or_else(|| {
            wrong(
                format!("task \"{}\" with priority {}", it.name, it.priority),
                "1 to 99, as SCHED_FIFO has them",
            )
        })?;
        let [period, execution] = [it.period_ns, it.wcet_ns].map(Duration::from_nanos);
        Ok(Periodic { name: it.name.clone(), priority, period, execution })
    };
    set.tasks.iter().map(task).collect()
}

/// The tasks for the analysis; `wcet` replaces the execution time of a task, by its place.
pub(crate) fn task_set(tasks: &[Periodic], wcet: impl Fn(usize) -> Option<u64>) -> TaskSet {
    let task = |(place, it): (usize, &Periodic)| {
        let wcet = wcet(place).unwrap_or(nanoseconds(it.execution));
        Task::new(it.name.as_str(), it.priority.into(), nanoseconds(it.period), wcet)
    };
    TaskSet::new(tasks.iter().enumerate().map(task).collect())
}

/// Run of a set.
pub(crate) struct Run<'a> {
    pub(crate) tasks: &'a [Periodic],
    pub(crate) duration: Duration,
    pub(crate) cpu: usize,
    pub(crate) busy: Busy,
    /// Means that the tasks share.
    pub(crate) share: Share,
    /// Outputs that they toggle.
    pub(crate) toggle: &'a Toggle,
}

/// Jobs of each task, and doubts.
pub(crate) type Ran = (Vec<Vec<Job>>, Vec<String>);

impl Run<'_> {
    /// Checks that all jobs find room: they are kept in memory, which is allocated before the
    /// first.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for task in self.tasks {
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
    pub(crate) fn conduct(&self, stop: &AtomicBool) -> Result<Ran, Error> {
        let shared = self.share.make(self.tasks.len()).map_err(Error::other)?;
        let jobs: Vec<usize> = self.tasks.iter().map(|task| self.plan(task).jobs).collect();
        let (outputs, watch) = self.toggle.open(&jobs)?;
        let parts = self.tasks.iter().zip(shared).zip(outputs);
        let tasks = parts.map(|((task, share), output)| {
            job::create(&task_name(task), &self.plan(task), share, output).map_err(Error::other)
        });
        let tasks: Vec<_> = tasks.collect::<Result<_, _>>()?;
        if let Some(late) = tasks.iter().find(|task| !task.wait_until_ready(TIMEOUT)) {
            return Err(Error::other(format_args!(
                "task `{}` is not ready after {TIMEOUT:?}",
                late.name()
            )));
        }
        let first = MonotonicClock.now() + LEAD;
        tasks.iter().for_each(|task| task.start_at(first));
        while !tasks.iter().all(rt::task::Task::is_over) && !stop.load(Ordering::Relaxed) {
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
            ran.push(ended.value.map_err(|error| Error::other(format_args!("task `{name}`: {error}")))?);
        }
        for ((task, jobs), edges) in self.tasks.iter().zip(&mut ran).zip(watch.finish()?) {
            for (job, outside) in jobs.iter_mut().zip(edges) {
                job.outside = outside;
            }
            let unseen = jobs.iter().filter(|job| job.outside.contains(&0)).count();
            if unseen > 0 {
                let (name, all) = (&task.name, jobs.len());
                warnings.push(format!("{name}: the edges of {unseen} of {all} jobs were not seen outside"));
            }
        }
        Ok((ran, warnings))
    }

    fn plan(&self, task: &Periodic) -> Plan {
        let period = task.period.max(Duration::from_nanos(1));
        let jobs = self.duration.as_nanos() / period.as_nanos();
        let highest = self.tasks.iter().map(|task| task.priority).max();
        Plan {
            period,
            execution: task.execution,
            jobs: usize::try_from(jobs).unwrap_or(usize::MAX).max(1),
            profile: real_time(Some(task.priority), self.cpu),
            busy: self.busy,
            shares_whole: Some(task.priority) == highest || self.share == Share::Nothing,
        }
    }
}

fn task_name(task: &Periodic) -> String {
    task.name.replace('\0', "")
}

/// Most jobs: five and a half hours of tau1; 960 MB.
const MOST_JOBS: usize = 20_000_000;

/// Time from all threads being ready to the first release: all are asleep by then.
const LEAD: Duration = Duration::from_millis(20);

/// Longest wait for all tasks to be ready.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Interval at which the end of the tasks is checked.
const LOOK_EVERY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use schedulability::analyse;

    use super::*;
    use crate::paper::Paper;

    // feature(measure): `measure tasks`: the papers' task sets by name, with the names, periods, priorities and slack that they print
    #[test]
    fn the_five_tasks_of_table_6_are_as_printed() {
        let tasks = read("service-robot").unwrap();
        let found = analyse(&task_set(&tasks, |_| None)).unwrap();
        let contents = Paper::Controllers.contents();
        let table = contents.figures.iter().find(|it| it.name == "Table 6").unwrap();
        assert_eq!(table.rows.len(), tasks.len());
        let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
        for ((row, task), verdict) in table.rows.iter().zip(&tasks).zip(&found.tasks) {
            let response = verdict.response.ns().unwrap();
            let slack = verdict.mast_slack.percent().unwrap();
            let ours = [
                task.name.clone(),
                ms(nanoseconds(task.period)),
                ms(nanoseconds(task.execution)),
                task.priority.to_string(),
                ms(response),
                format!("{slack:.1}"),
            ];
            assert_eq!(&ours[..], &row[..]);
        }
        let system = found.mast_slack.percent().unwrap();
        assert_eq!(table.conditions[0], ("system slack".to_owned(), format!("{system:.2} %")));
        assert_eq!(read("controllers").unwrap().len(), 2);
    }

    #[test]
    fn a_set_that_cannot_run_here_is_refused_with_the_reason() {
        let path = std::env::temp_dir().join(format!("onbeat-set-{}.toml", std::process::id()));
        let task = |name: &str, more: &str| {
            format!("[[task]]\nname = \"{name}\"\nperiod = \"1ms\"\nwcet = \"1us\"\n{more}\n")
        };
        for (text, expected) in [
            (task("a", "priority = 100"), "1 to 99"),
            (task("a", "priority = 9") + &task("b", "priority = 8\ncpu = 1"), "all tasks on one cpu"),
            ("policy = \"edf\"\n".to_owned() + &task("a", ""), "fixed priorities"),
            ("nothing".to_owned(), "expected"),
        ] {
            std::fs::write(&path, &text).unwrap();
            let error = read(path.to_str().unwrap()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
