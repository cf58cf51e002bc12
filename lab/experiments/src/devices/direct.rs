//! Drivers called by the real-time tasks themselves: the calls that block, and the time they take
//! (the paper's Figures 5 and 6).

use std::time::Duration;

use ::devices::Peripheral;
use ::devices::pair::Moment;
use report::{Row, Section, Table};
use rt::clock::now_ns;
use rt::task::{Periods, Settings};
use serde_json::{Value, json};
use types::time::nanoseconds;

use super::conduct::Ran;
use super::subject::Subject;
use super::{response, statistics};
use crate::distribution::heads;
use crate::sys::switches;
use crate::thread::thread_time;
use crate::{Context, Error};

/// Jobs of one task that calls its driver.
#[derive(Clone, Debug, Default)]
pub(super) struct Called {
    /// Begin and end, ns.
    pub(super) jobs: Vec<[u64; 2]>,
    /// Voluntary switches within each job: calls that blocked.
    pub(super) blocked: Vec<u64>,
    /// Time within each job in which the thread did not run, ns.
    pub(super) lost: Vec<u64>,
    /// Exchanges that failed.
    pub(super) failures: u64,
    pub(super) refusals: Vec<String>,
}

impl Called {
    fn periods(&self) -> Vec<u64> {
        self.jobs.windows(2).map(|pair| pair[1][0] - pair[0][0]).collect()
    }
}

/// Runs each device alone for `duration`.
///
/// # Errors
/// A thread cannot be made.
pub(super) fn conduct(
    peripherals: &[Peripheral],
    duration: Duration,
    context: &Context,
) -> Result<Vec<Called>, Error> {
    peripherals.iter().map(|it| one(it, duration, context)).collect()
}

fn one(peripheral: &Peripheral, duration: Duration, context: &Context) -> Result<Called, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::other(format_args!("devices: {error}"));
    context.say(format_args!("devices: {} called directly", peripheral.name));
    let subject = Subject::new(peripheral)?;
    let room = response::jobs(duration, peripheral.period);
    let settings = Settings::every(peripheral.name.as_str(), peripheral.period);
    let body = move |periods: &mut Periods| call(subject, periods, room);
    let (task, _records) =
        settings.with_profile(peripheral.profile).create_loop(body).map_err(|error| failed(&error))?;
    if !task.wait_until_ready(Duration::from_secs(30)) {
        return Err(failed(&format_args!("the task of {} is not ready after 30 s", peripheral.name)));
    }
    task.start();
    context.wait(duration + peripheral.period);
    let refusals = task.grants().refusals().collect();
    let called = task.join().map_err(|error| failed(&error))?.value;
    Ok(Called { refusals, ..called })
}

fn call(subject: Subject, periods: &mut Periods, room: usize) -> Called {
    let Subject { mut compute, mut drive, longest, fake: _fake } = subject;
    let (mut command, mut answer) = (vec![0xff; longest], vec![0xff; longest]);
    let mut called = Called::default();
    let resident = |count| {
        let mut memory = vec![u64::MAX; count];
        std::hint::black_box(&mut memory).clear();
        memory
    };
    called.jobs = vec![[u64::MAX; 2]; room];
    std::hint::black_box(&mut called.jobs).clear();
    (called.blocked, called.lost) = (resident(room), resident(room));
    let period_ns = nanoseconds(periods.period());
    called.failures += u64::from(drive.open().is_err());
    while let Some(release) = periods.wait_period() {
        let ([switched, _], begin, ran) = (switches(), now_ns(), thread_time());
        let moment = Moment { release_ns: release.instant.as_nanos(), period_ns, stale: false };
        let length = compute.command(&moment, &mut command);
        match drive.exchange(&command[..length], &mut answer) {
            Ok(Some(length)) => called.failures += u64::from(!compute.answer(&answer[..length])),
            Ok(None) => {}
            Err(_) => called.failures += 1,
        }
        let (ran, end, [after, _]) = (thread_time() - ran, now_ns(), switches());
        if called.jobs.len() < room {
            called.jobs.push([begin, end]);
            called.blocked.push(after - switched);
            called.lost.push((end - begin).saturating_sub(ran));
        }
    }
    drive.close();
    called
}

/// Table of the tasks that call their drivers, next to the tasks with the channel.
pub(super) fn table(peripherals: &[Peripheral], called: &[Called], through: &[Ran]) -> Section {
    let micros = |ns: Option<f64>| report::numbers::microseconds(ns);
    let four = |name: String, jobs: usize, blocked: u64, lost: &[u64], periods: &[u64], nominal: u64| {
        let deviations: Vec<u64> = periods.iter().map(|period| period.abs_diff(nominal)).collect();
        let [lost, deviation] = [lost, &deviations].map(|it| statistics(it).summary());
        let whole = |ns: Option<u64>| micros(ns.map(|ns| ns as f64));
        let cells = vec![
            jobs.to_string(),
            blocked.to_string(),
            micros(lost.average),
            whole(lost.maximum),
            micros(deviation.average),
            whole(deviation.maximum),
        ];
        Row { name, cells, from_paper: false }
    };
    let mut rows = Vec::new();
    for ((it, called), ran) in peripherals.iter().zip(called).zip(through) {
        let nominal = nanoseconds(it.period);
        let (name, blocked) = (format!("{}, called directly", it.name), called.blocked.iter().sum());
        rows.push(four(name, called.jobs.len(), blocked, &called.lost, &called.periods(), nominal));
        let name = format!("{}, through the channel", it.name);
        rows.push(four(name, ran.jobs.len(), ran.blocked, &[], &ran.periods(), nominal));
    }
    let others = [
        "jobs",
        "calls that blocked",
        "time lost, average",
        "maximum",
        "period's deviation, average",
        "maximum of it",
    ];
    Section::Table(Table {
        caption: "The same drivers called by the real-time task itself, each device alone, next to \
            the channel: voluntary context switches within jobs, each a call that blocked; time \
            within a job in which its thread did not run, us; deviation of the period, us"
            .into(),
        columns: heads("task", &others),
        rows,
    })
}

/// The same as values for programs.
pub(super) fn values(peripherals: &[Peripheral], called: &[Called], through: &[Ran]) -> Value {
    let value = |((it, called), ran): ((&Peripheral, &Called), &Ran)| {
        json!({
            "name": it.name,
            "jobs": called.jobs.len(),
            "blocked": called.blocked.iter().sum::<u64>(),
            "lost_ns": statistics(&called.lost),
            "period_ns": statistics(&called.periods()),
            "failures": called.failures,
            "through_channel": { "jobs": ran.jobs.len(), "blocked": ran.blocked },
        })
    };
    peripherals.iter().zip(called).zip(through).map(value).collect()
}

/// Comparison with the paper.
pub(super) const REMARK: &str = "A co-kernel counts a mode switch for each call of the ordinary kernel: the paper's LED task had 311 in 5 s, about one in a job, and lost \
                                 50 ms by one. Here a call costs its own time and, where it blocks, a context switch and the wait for the device; through the \
                                 channel the real-time task makes no call that can block but its sleep.";
