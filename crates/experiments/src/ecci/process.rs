//! Event to answer: a controller in the cycle's thread beside one that is woken with the request and answers from its own.
//!
//! The other one is a thread with mappings of its own, attached as a process is: what is missing is the switch of
//! address spaces, where both share a CPU.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;

use control::clock::{Clock, MonotonicClock};
use control::pacer::Pacer;
use control::profile::{Granted, RealTimeProfile};
use ethercat::time::Instant;
use ipc::client::Client;
use ipc::command::AxisTarget;
use ipc::controller::{Answer, Controller, CycleEnd, DriveRequest, Received, Request};
use ipc::units::Radians;
use report::{Report, Row, Section, Table};
use serde_json::json;
use types::time::nanoseconds;

use super::Ecci;
use super::verdict::Marks;
use super::way;
use crate::Context;
use crate::distribution::{heads, resident};
use crate::thread::real_time;

/// One way to have an answer.
struct Measured {
    name: &'static str,
    /// From the event to the answer, ns.
    answers: Vec<u64>,
    /// Not answered within three quarters of the interval.
    late: u64,
}

/// Measures them in turns, and adds a table to the report.
pub(super) fn measure(ecci: &Ecci, context: &Context<'_>, report: &mut Report) -> io::Result<()> {
    context.say("ecci: a controller process beside one in the cycle's thread");
    let below = ecci.priority.saturating_sub(1).max(1);
    let fifo = RealTimeProfile { cpu: None, ..real_time(Some(below), ecci.cpu) };
    let kinds = [
        ("controller process, SCHED_FIFO below the cycle", fifo),
        ("controller process, ordinary", RealTimeProfile::ORDINARY),
    ];
    let mut rows = Vec::new();
    for (name, profile) in kinds {
        let (in_thread, process) = turns(ecci, context, name, profile)?;
        if rows.is_empty() {
            rows.push(in_thread);
        }
        rows.push(process);
    }
    report.sections.push(table(&rows));
    let value = |it: &Measured| {
        let marks = Marks::of(&it.answers);
        json!({ "controller": it.name, "samples": it.answers.len(), "median_ns": marks.median,
                "low_99_99_ns": marks.tail, "maximum_ns": marks.maximum, "late": it.late })
    };
    report.values.insert("answers".into(), rows.iter().map(value).collect());
    Ok(())
}

/// Alternates between the two, so that both meet the same machine.
fn turns(
    ecci: &Ecci,
    context: &Context<'_>,
    name: &'static str,
    profile: RealTimeProfile,
) -> io::Result<(Measured, Measured)> {
    let (mut builder, folder) = way::builder(ecci.axes, Vec::new())?;
    let end = builder.controller();
    let (_ends, server) = builder.open().map_err(io::Error::other)?;
    let attached = Client::open(server.path()).map_err(io::Error::other)?;
    let controller = attached.controller().map_err(io::Error::other)?;
    let process = thread::Builder::new().name("controller".into()).spawn(move || {
        let _granted = Granted::ask(&profile);
        serve(controller);
    })?;
    let taken = thread::scope(|scope| {
        let cycle = scope.spawn(|| cycle(ecci, context, name, end));
        cycle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    drop((server, attached, folder));
    process.join().map_err(|_| io::Error::other("its thread panicked"))?;
    Ok(taken)
}

fn cycle(
    ecci: &Ecci,
    context: &Context<'_>,
    name: &'static str,
    mut end: CycleEnd,
) -> (Measured, Measured) {
    let _granted = Granted::ask(&real_time(Some(ecci.priority), ecci.cpu));
    let measured = |name| Measured { name, answers: resident(ecci.samples), late: 0 };
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
        let found = exchange(&mut end, &request, &mut answer, deadline);
        if number <= warm_up {
            continue;
        }
        in_thread.answers.push(nanoseconds(answered.since(event)));
        match found {
            Some(at) => process.answers.push(nanoseconds(at.since(asked))),
            None => process.late += 1,
        }
    }
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

/// The same small controller in both places: every axis is asked to where it is.
fn control(request: &Request, answer: &mut Answer) {
    for (axis, answer) in request.axes.iter().zip(&mut answer.axes) {
        answer.request = Some(DriveRequest::Enable);
        answer.target = Some(AxisTarget::Position(Radians(axis.position)));
    }
}

fn serve(mut controller: Controller) {
    while let Some(turn) = controller.wait() {
        control(turn.request, turn.answer);
        turn.send();
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
