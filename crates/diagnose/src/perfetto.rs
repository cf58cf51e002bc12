//! Late cycle with all events around it, as a trace for Perfetto (ui.perfetto.dev) and
//! chrome://tracing.
//!
//! Chrome's Trace Event Format, as JSON: complete slices ("X") and instants ("i") on named tracks,
//! times in microseconds. One track is the cycle's; each CPU has one for threads and one for
//! interrupts.

use serde_json::{Value, json};

use crate::attribute::phase_name;
use crate::explanation::Explained;
use crate::timeline::{Doing, Slice, Timeline};

/// Track of the cycle.
const CYCLE: u64 = 1;

/// Trace of one late cycle.
#[must_use]
pub fn trace(explained: &Explained) -> Value {
    let events = &explained.events;
    let record = &explained.cycle.record;
    let from = events.first().map_or(record.release_ns, |event| event.time_ns.min(record.release_ns));
    let to = events.last().map_or(record.end_ns, |event| event.time_ns.max(record.end_ns));
    let mut trace = vec![name("process_name", 0, "onbeat"), name("thread_name", CYCLE, "cycle")];
    one_cycle(explained, &mut trace);
    let timeline = Timeline::new(events);
    let mut cpus: Vec<usize> = events.iter().map(|event| event.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    for cpu in cpus {
        let (runs, interrupts) = (10 + 2 * cpu as u64, 11 + 2 * cpu as u64);
        trace.push(name("thread_name", runs, &format!("CPU {cpu}")));
        trace.push(name("thread_name", interrupts, &format!("CPU {cpu} interrupts")));
        for slice in timeline.slices(cpu, from, to) {
            let Some((words, arguments, interrupt)) = told(&slice) else { continue };
            let track = if interrupt { interrupts } else { runs };
            trace.push(complete(&words, track, slice.from_ns, slice.to_ns, arguments));
        }
    }
    json!({ "displayTimeUnit": "ns", "traceEvents": trace, "otherData": { "late": explained.late } })
}

/// Appends the cycle: its lateness with the causes, its phases, its releases.
fn one_cycle(explained: &Explained, trace: &mut Vec<Value>) {
    let record = &explained.cycle.record;
    let next = record.release_ns.saturating_add(explained.cycle.period_ns);
    trace.push(instant("release", record.release_ns));
    trace.push(instant("next release", next));
    let causes: serde_json::Map<String, Value> = explained
        .late
        .causes
        .iter()
        .map(|cause| (format!("{} {}", cause.kind.name(), cause.name), micros(cause.ns)))
        .collect();
    let late = json!({ "late_us": micros(explained.late.late_ns), "causes_us": causes });
    trace.push(complete(&explained.late.to_string(), CYCLE, record.release_ns, record.start_ns, late));
    let mut now = record.start_ns;
    for (phase, end) in explained.cycle.phase_ends() {
        if end > now {
            trace.push(complete(phase_name(phase), CYCLE, now, end, json!({})));
        }
        now = now.max(end);
    }
}

/// Name and arguments of a slice, and true for an interrupt's; `None` for idle.
fn told(slice: &Slice) -> Option<(String, Value, bool)> {
    Some(match slice.doing {
        Doing::Idle(_) | Doing::Unrecorded => return None,
        Doing::Task(task) => {
            let arguments = json!({ "thread": task.thread, "kernel_priority": task.priority });
            (format!("{} {}", task.name, task.thread), arguments, false)
        }
        Doing::Stolen => ("stolen".to_owned(), json!({}), false),
        Doing::Irq { number, name } => (format!("irq {number} {name}"), json!({}), true),
        Doing::Vector(name) => (name.to_owned(), json!({}), true),
        Doing::Softirq(name) => (format!("softirq {name}"), json!({}), true),
        Doing::Timer(function) => (format!("timer {function:#x}"), json!({}), true),
    })
}

fn name(what: &str, track: u64, name: &str) -> Value {
    json!({ "name": what, "ph": "M", "pid": PROCESS, "tid": track, "args": { "name": name } })
}

fn complete(name: &str, track: u64, from_ns: u64, to_ns: u64, arguments: Value) -> Value {
    json!({
        "name": name, "ph": "X", "pid": PROCESS, "tid": track,
        "ts": micros(from_ns), "dur": micros(to_ns.saturating_sub(from_ns)), "args": arguments,
    })
}

fn instant(name: &str, at_ns: u64) -> Value {
    json!({ "name": name, "ph": "i", "s": "p", "pid": PROCESS, "tid": CYCLE, "ts": micros(at_ns) })
}

/// Process id of all tracks in the trace.
const PROCESS: u64 = 1;

/// Microseconds with three decimals, the format's unit.
fn micros(ns: u64) -> Value {
    json!(ns as f64 / 1e3)
}
