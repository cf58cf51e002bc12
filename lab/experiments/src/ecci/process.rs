//! Event to answer: a controller in the cycle's thread compared to one in a separate process, which
//! is woken with the request.

use std::sync::atomic::Ordering;
use std::thread;

use ethercat::time::Instant;
use ipc::controller::{Answer, CycleEnd, Received, Request};
use report::{Report, Row, Section, Table};
use rt::clock::{Clock, MonotonicClock};
use rt::pacer::Pacer;
use rt::profile::Granted;
use serde_json::json;
use types::time::nanoseconds;

use super::Ecci;
use super::answer::{self, control};
use super::verdict::Marks;
use super::way;
use crate::distribution::{heads, resident};
use crate::thread::real_time;
use crate::{Context, Error};

/// One way to have an answer.
struct Measured {
    name: &'static str,
    /// From the event to the answer, ns.
    answers: Vec<u64>,
    /// Not answered within three quarters of the interval.
    late: u64,
    /// Process that answered last, if it was another one.
    process: Option<u64>,
}

/// Measures them in turns, and adds a table to the report.
pub(super) fn measure(ecci: &Ecci, context: &Context<'_>, report: &mut Report) -> Result<(), Error> {
    context.say("ecci: a controller process, and a controller in the cycle's thread");
    let below = ecci.priority.saturating_sub(1).max(1);
    let kinds = [
        ("controller process, SCHED_FIFO below the cycle", Some(below)),
        ("controller process, ordinary", None),
    ];
    let mut rows = Vec::new();
    for (name, priority) in kinds {
        let (mut end, door) = way::controlled(ecci.axes, Vec::new()).map_err(Error::other)?;
        let mut process = answer::Process::start(context, door.path(), priority)?;
        for refusal in process.refusals.drain(..) {
            report.warn(format!("{name}: {refusal}"));
        }
        let (in_thread, measured) = thread::scope(|scope| {
            let cycle = scope.spawn(|| cycle(ecci, context, name, &mut end));
            cycle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        drop(door);
        process.finish()?;
        if rows.is_empty() {
            rows.push(in_thread);
        }
        rows.push(measured);
    }
    report.sections.push(table(&rows));
    let value = |it: &Measured| {
        let marks = Marks::of(&it.answers);
        json!({ "controller": it.name, "process": it.process, "samples": it.answers.len(),
                "median_ns": marks.median, "low_99_99_ns": marks.tail, "maximum_ns": marks.maximum,
                "late": it.late })
    };
    report.values.insert("answers".into(), rows.iter().map(value).collect());
    Ok(())
}

/// Alternates between the two, so that both meet the same machine.
fn cycle(
    ecci: &Ecci,
    context: &Context<'_>,
    name: &'static str,
    end: &mut CycleEnd,
) -> (Measured, Measured) {
    let _granted = Granted::ask(&real_time(Some(ecci.priority), ecci.cpu));
    let measured = |name| Measured { name, answers: resident(ecci.samples), late: 0, process: None };
    let (mut in_thread, mut process) = (measured("in the cycle's thread"), measured(name));
    let (mut request, mut answer) = (end.blank_request(), end.blank_answer());
    let mut pacer = Pacer::new(MonotonicClock, ecci.interval);
    let warm_up = ecci.samples as u64 / 10 + 10;
    let mut number = 0;
    while process.answers.len() + (process.late as usize) < ecci.samples
        && !context.stop.load(Ordering::Relaxed)
    {
        pacer.wait();
        number += 1;
        stamp(&mut request, number);
        let event = MonotonicClock.now();
        control(&request, &mut answer);
        let answered = MonotonicClock.now();
        pacer.wait();
        let asked = MonotonicClock.now();
        let deadline = asked + ecci.interval * 3 / 4;
        let found = exchange(end, &request, &mut answer, deadline);
        if number <= warm_up {
            continue;
        }
        in_thread.answers.push(nanoseconds(answered.since(event)));
        match found {
            Some(at) => process.answers.push(nanoseconds(at.since(asked))),
            None => process.late += 1,
        }
    }
    process.process = Some(end.counters().read().process);
    (in_thread, process)
}

/// Asks as the cycle does; when the answer was there.
fn exchange(
    end: &mut CycleEnd,
    request: &Request,
    answer: &mut Answer,
    deadline: Instant,
) -> Option<Instant> {
    // What came too late for the request before.
    end.newest(answer);
    end.ask(request);
    loop {
        let heard = end.newest(answer);
        let now = MonotonicClock.now();
        match heard {
            Received::Answer if answer.cycle == request.cycle => return Some(now),
            _ if now >= deadline => return None,
            _ => end.wait(deadline.as_nanos()),
        }
    }
}

fn stamp(request: &mut Request, number: u64) {
    request.cycle = number;
    for axis in &mut request.axes {
        axis.position = number as f64;
    }
}

fn table(rows: &[Measured]) -> Section {
    let row = |it: &Measured| {
        let marks = Marks::of(&it.answers);
        let micros = |ns: Option<u64>| report::numbers::microseconds(ns.map(|ns| ns as f64));
        let mut cells: Vec<String> = [marks.median, marks.tail, marks.maximum].map(micros).into();
        cells.push(it.late.to_string());
        Row { name: it.name.into(), cells, from_paper: false }
    };
    Section::Table(Table {
        caption: "Event to answer, us; late: not within three quarters of the interval".into(),
        columns: heads("controller", &["median", "99.99 %", "maximum", "late"]),
        rows: rows.iter().map(row).collect(),
    })
}
