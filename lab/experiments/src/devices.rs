//! The service robot's five devices, each with a real-time task and an ordinary one joined by a
//! channel: periods and response times of the real-time tasks (service robot paper, Table 1), and
//! their schedulability.

mod conduct;
mod direct;
mod response;
mod subject;
mod waited;
mod world;

use std::time::Duration;

use ::devices::{DeviceStatus, Kind, Peripheral, service_robot};
use record::Statistics;
use report::{Report, Row, Section, Table};
use rt::scheduling::Attributes;
use serde_json::{Value, json};

use self::conduct::Ran;
use self::direct::Called;
use self::waited::Waited;
use crate::distribution::{self, Durations};
use crate::paper::Paper;
use crate::raw::{Raw, facts};
use crate::surroundings::Surroundings;
use crate::thread::{default_cpu, real_time};
use crate::{Context, Error};
use types::time::nanoseconds;

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Devices {
    /// Devices, with the periods of their real-time tasks.
    pub peripherals: Vec<Peripheral>,
    /// Duration of the run.
    pub duration: Duration,
    /// Duration of the runs in which tasks wait for their devices: of each device alone, and of all
    /// together.
    pub waiting: Duration,
    /// Duration for which each task calls its driver itself, if it does.
    pub direct: Option<Duration>,
    /// CPU of all real-time tasks.
    pub cpu: usize,
}

impl Default for Devices {
    /// The paper's five devices, simulated.
    fn default() -> Self {
        let cpu = default_cpu();
        let profile = real_time(Some(PRIORITY), cpu);
        Self {
            peripherals: service_robot(profile, PRIORITY),
            duration: Duration::from_secs(20),
            waiting: Duration::from_secs(5),
            direct: None,
            cpu,
        }
    }
}

/// SCHED_FIFO priority of the task with the shortest period.
const PRIORITY: u8 = 80;

/// Priority of a task that runs alone, as in the paper.
const ALONE: u8 = 99;

impl Devices {
    /// Replaces the simulated device of a kind by a real one.
    pub fn replace(&mut self, kind: Kind) {
        let bare = kind.bare();
        for peripheral in self.peripherals.iter_mut().filter(|it| it.kind.bare() == bare) {
            peripheral.kind = kind.clone();
        }
    }

    /// Moves all real-time tasks to this CPU.
    pub fn on_cpu(&mut self, cpu: usize) {
        self.cpu = cpu;
        self.peripherals.iter_mut().for_each(|it| it.profile.cpu = Some(cpu));
    }

    /// Runs the experiment.
    ///
    /// # Errors
    /// A thread or the shared-memory interface cannot be created, or a file cannot be written.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        self.check()?;
        let surroundings = Surroundings::begin(context);
        context.say(format_args!("devices: {} s", self.duration.as_secs_f64()));
        let mut raw = self.begin_raw(context)?;
        let ran = conduct::conduct(self, context, |task, rows| raw[task].append(rows))?;
        for (raw, ran) in raw.into_iter().zip(&ran) {
            raw.finish(facts([("overruns", ran.live.overruns.into()), ("dropped", ran.dropped.into())]))?;
        }
        for (peripheral, ran) in self.peripherals.iter().zip(&ran) {
            self.record_ordinary(context, peripheral, ran)?;
        }
        let waited = Waited::run(self, context)?;
        let alone = self.alone();
        let called = self.direct.map(|duration| direct::conduct(&alone, duration, context)).transpose()?;
        let mut report = self.report(&ran, &waited, called.as_deref());
        surroundings.end(&mut report);
        warn(&ran, &mut report);
        waited.warn(&self.peripherals, &mut report);
        Ok(report)
    }

    /// The same devices, each to be run alone.
    fn alone(&self) -> Vec<Peripheral> {
        let profile = real_time(Some(ALONE), self.cpu);
        self.peripherals.iter().cloned().map(|it| Peripheral { profile, ..it }).collect()
    }

    /// Checks the durations: all jobs are kept in memory.
    fn check(&self) -> Result<(), Error> {
        let asked =
            [("duration", Some(self.duration)), ("waiting", Some(self.waiting)), ("direct", self.direct)];
        for (option, duration) in asked {
            let Some(duration) = duration else { continue };
            for it in &self.peripherals {
                let jobs = duration.as_nanos() / it.period.as_nanos().max(1);
                if jobs > MOST_JOBS {
                    return Err(Error::other(format_args!(
                        "{} s of {} are {jobs} jobs, expected at most {MOST_JOBS}: choose a shorter --{option}",
                        duration.as_secs(),
                        it.name
                    )));
                }
            }
        }
        Ok(())
    }

    fn begin_raw(&self, context: &Context) -> Result<Vec<Raw>, Error> {
        let begin = |it: &Peripheral| {
            let settings = facts([
                ("task", it.name.as_str().into()),
                ("device", it.kind.bare().name().into()),
                ("period_ns", nanoseconds(it.period).into()),
                ("profile", it.profile.letters().to_string().into()),
                ("cpu", self.cpu.into()),
            ]);
            Raw::begin(context, &it.name, "job", &["release_ns", "start_ns", "end_ns"], settings)
        };
        self.peripherals.iter().map(begin).collect()
    }

    /// Records the uses of the device by its ordinary task.
    fn record_ordinary(&self, context: &Context, it: &Peripheral, ran: &Ran) -> Result<(), Error> {
        let settings = facts([
            ("task", it.name.as_str().into()),
            ("device", ran.status.device.as_str().into()),
            ("found", ran.status.found.as_str().into()),
        ]);
        let name = format!("{}-device", it.name);
        let mut raw = Raw::begin(context, &name, "exchange", &["begin_ns", "end_ns"], settings)?;
        let column = |place: usize| ran.exchanges.iter().map(|it| it[place]).collect::<Vec<u64>>();
        raw.append(&[&column(0), &column(1)])?;
        raw.finish(facts([]))
    }

    fn report(&self, ran: &[Ran], waited: &Waited, called: Option<&[Called]>) -> Report {
        let mut report = Report {
            experiment: "devices".into(),
            title: "Five devices, each a real-time task and an ordinary one joined by a channel".into(),
            source: Some("the service robot paper, Table 1".into()),
            measured: "for every job of the real-time tasks: the period from its start to the next, and the response, once as the paper has it, \
                       with a task that waits for its device's answer, and once without a wait, from its release to its end; then the \
                       bounds on the processor's utilisation, with both as execution times"
                .into(),
            good: "periods that stay nominal, responses far below the periods, and a utilisation below the bounds: then \
                   every task meets its deadlines whatever the devices do"
                .into(),
            found: Some(
                "responses from 21 us (actuator) to 755 us (range finder) on average, and a utilisation of 9.47 %: schedulable"
                    .into(),
            ),
            ..Report::default()
        };
        for (it, ran) in self.peripherals.iter().zip(ran) {
            let DeviceStatus { device, found, .. } = &ran.status;
            let found = if found.is_empty() { "not found" } else { found };
            let (period, profile) = (it.period.as_millis(), &it.profile);
            let scheduled = profile
                .scheduling
                .map_or_else(|| "ordinary".to_owned(), |it| Attributes::from(it).to_string());
            report.condition(
                it.name.as_str(),
                format!("every {period} ms, {scheduled}; device {device}: {found}"),
            );
        }
        report.condition("CPU of the real-time tasks", self.cpu.to_string());
        let counts: Vec<String> = ran.iter().map(|it| it.jobs.len().to_string()).collect();
        report.condition("samples", format!("{} jobs", counts.join(", ")));
        report.sections.extend(waited.sections(&self.peripherals));
        report.sections.push(self.table(ran, "Period, ms: start to start", Ran::periods));
        report.sections.push(self.table(ran, "Response, ms: release to end", Ran::responses));
        report.sections.push(Section::Text(RESPONSE.into()));
        if let Some(called) = called {
            report.sections.push(direct::table(&self.peripherals, called, ran));
            report.sections.push(Section::Text(direct::REMARK.into()));
            report.values.insert("direct".into(), direct::values(&self.peripherals, called, ran));
            called.iter().flat_map(|it| &it.refusals).for_each(|it| report.warn(it.as_str()));
        }
        Paper::ServiceRobot.append(&["Table 1", "utilisation", "Figures 5 and 6"], &mut report);
        let [executions, responses] = self.times(ran, waited);
        report.sections.extend(world::sections(&self.peripherals, &executions, EXECUTIONS));
        report.sections.extend(world::sections(&self.peripherals, &responses, RESPONSES));
        report.sections.push(ordinary(&self.peripherals, ran));
        let responses: Vec<Durations> = self
            .peripherals
            .iter()
            .zip(ran)
            .map(|(it, ran)| Durations::new(it.name.as_str(), ran.responses()))
            .collect();
        report.sections.extend(distribution::plots("Response time", &responses));
        report.values.extend(self.values(ran, waited));
        report
    }

    /// Median and longest times of each task: of jobs that wait for nothing, and responses of
    /// devices alone.
    fn times(&self, ran: &[Ran], waited: &Waited) -> [Vec<Option<world::Times>>; 2] {
        let executions = ran.iter().map(|it| world::times(&it.executions())).collect();
        let responses = waited.alone.iter().map(|it| world::times(&it.responses())).collect();
        [executions, responses]
    }

    fn table(&self, ran: &[Ran], caption: &str, of: fn(&Ran) -> Vec<u64>) -> Section {
        let row = |(it, ran): (&Peripheral, &Ran)| {
            let statistics = statistics(&of(ran));
            let nominal = report::numbers::milliseconds(Some(nanoseconds(it.period) as f64));
            let four = report::numbers::four(&statistics).map(|(_, ns)| report::numbers::milliseconds(ns));
            Row {
                name: it.name.clone(),
                cells: [nominal].into_iter().chain(four).collect(),
                from_paper: false,
            }
        };
        Section::Table(Table {
            caption: caption.into(),
            columns: distribution::heads(
                "task",
                &["nominal period", "average", "maximum", "minimum", "SD"],
            ),
            rows: self.peripherals.iter().zip(ran).map(row).collect(),
        })
    }

    fn values(&self, ran: &[Ran], waited: &Waited) -> serde_json::Map<String, Value> {
        let task = |(it, ran): (&Peripheral, &Ran)| {
            json!({
                "name": it.name,
                "nominal_period_ns": nanoseconds(it.period),
                "period_ns": statistics(&ran.periods()),
                "response_ns": statistics(&ran.responses()),
                "execution_ns": statistics(&ran.executions()),
                "exchange_ns": statistics(&ran.exchange_times()),
                "overruns": ran.live.overruns,
                "device": ran.status,
                "messages": ran.messages,
                "messages_stale": ran.stale,
            })
        };
        let mut values = facts([("tasks", self.peripherals.iter().zip(ran).map(task).collect())]);
        let [executions, responses] = self.times(ran, waited);
        values.insert("bounds".into(), world::values(&self.peripherals, &executions));
        values.insert("bounds_of_responses".into(), world::values(&self.peripherals, &responses));
        values.extend(waited.values(&self.peripherals));
        values
    }
}

/// Two days of the fastest task.
const MOST_JOBS: u128 = 20_000_000;

const EXECUTIONS: &str = "from start to end of a job that waits for nothing, with what interrupted it";

const RESPONSES: &str = "responses of each device alone, as the paper takes them";

const RESPONSE: &str = "This response is from the release of the real-time task to its end, which waits for no driver: the way of `onbeat run`. \
                        The ordinary tasks' exchanges are in the table of their own.";

/// Table of the ordinary tasks.
fn ordinary(peripherals: &[Peripheral], ran: &[Ran]) -> Section {
    let row = |(it, ran): (&Peripheral, &Ran)| {
        let statistics = statistics(&ran.exchange_times());
        let count = ran.exchanges.len().to_string();
        let four = report::numbers::four(&statistics).map(|(_, ns)| report::numbers::milliseconds(ns));
        let told = format!("{} ({})", ran.messages, ran.stale);
        let cells = [count].into_iter().chain(four).chain([told]).collect();
        Row { name: it.name.clone(), cells, from_paper: false }
    };
    let heads = ["exchanges", "average", "maximum", "minimum", "SD", "sent (stale)"];
    Section::Table(Table {
        caption: "The ordinary tasks, ms: duration of each exchange with the device, for which no \
            real-time task waits; and the messages that were sent, with the stale messages among \
            them"
            .into(),
        columns: distribution::heads("device", &heads),
        rows: peripherals.iter().zip(ran).map(row).collect(),
    })
}

fn warn(ran: &[Ran], report: &mut Report) {
    for it in ran {
        let DeviceStatus { name, device, failures, last_error, .. } = &it.status;
        if *failures > 0 {
            report.warn(format!(
                "device {name} ({device}) failed {failures} times, the last time: {last_error}"
            ));
        }
        if it.dropped > 0 {
            let dropped = it.dropped;
            report.warn(format!("{dropped} jobs of {name} are missing: the recorder did not keep up"));
        }
        if it.live.overruns > 0 {
            let overruns = it.live.overruns;
            report.warn(format!("{overruns} jobs of {name} ran past their next release"));
        }
        it.refusals.iter().for_each(|refusal| report.warn(refusal.as_str()));
    }
    let is_simulated = |device: &str| device.starts_with("simulated") || device.starts_with("/dev/pts/");
    if ran.iter().all(|it| is_simulated(&it.status.device)) {
        report.warn(
            "all devices are simulated: what the kernel's real drivers and interrupts take is not in the numbers; name \
             devices with --range-finder, --imu, --sonar, --led-strip",
        );
    }
}

fn statistics(ns: &[u64]) -> Statistics {
    Durations::new("", ns.to_vec()).statistics()
}
