//! Documents that the page gets, as JSON.

use ipc::client::Client;
use ipc::description::Description;
use ipc::state::{Spread, State};
use ipc::words;
use record::statistics::Statistics;
use serde::Deserialize;
use serde_json::{Value, json};
use types::late::LateCycle;

use super::channels::Channels;
use crate::words::{axes, signals};

/// No cycle runs yet, and why none is found.
pub(super) fn waiting(why: &str) -> Value {
    json!({ "kind": "state", "state": "waiting", "why": why })
}

/// The cycle has ended; the page keeps what it shows.
pub(super) fn ended(attached: u64, client: &Client, why: &str) -> Value {
    json!({
        "kind": "state", "state": "ended", "attached": attached, "name": client.name(), "process": client.process(), "why": why,
    })
}

/// A cycle was found; this never changes while it runs.
pub(super) fn attached(attached: u64, client: &Client, channels: &Channels) -> Value {
    let it = client.description();
    let signals = it.signals.iter().map(|it| {
        json!({
            "name": it.name, "sub_device": it.sub_device, "direction": it.direction, "type": it.value_type,
            "unit": it.unit, "writer": it.writer, "range": it.range,
        })
    });
    json!({
        "kind": "state",
        "state": "attached",
        "attached": attached,
        "name": client.name(),
        "process": client.process(),
        "robot": it.robot,
        "version": it.version,
        "period_ns": it.period_ns,
        "axes": it.axes,
        "controllers": it.controllers.iter().map(|it| &it.name).collect::<Vec<_>>(),
        "signals": signals.collect::<Vec<_>>(),
        "channels": channels.json(),
    })
}

/// The newest state; `time`: its release in seconds on the scope's axis.
pub(super) fn picture(
    attached: u64,
    description: &Description,
    state: &State,
    time: f64,
    still_ms: u64,
    missed: u64,
) -> Value {
    let axes = state.axes.iter().zip(&description.axes).map(|(axis, described)| {
        let (target, error) = axes::target_and_error(axis, described);
        json!([
            words::drive(axis, description),
            words::phase(axis.phase),
            words::why_stopped(axis, state, description),
            axis.fresh,
            axis.homed,
            axis.position,
            axis.velocity,
            described.measures_effort.then_some(axis.effort),
            target,
            error,
        ])
    });
    let signals = state.signals.iter().zip(&description.signals).map(|(signal, described)| {
        let value = signals::value(signal.value(described.kind));
        json!([value, u8::from(signal.fresh) | u8::from(signal.forced) << 1])
    });
    let (bus, clock, timing, command) = (&state.bus, &state.clock, &state.timing, &state.command);
    json!({
        "kind": "picture",
        "attached": attached,
        "cycle": state.cycle,
        "time": time,
        "still_ms": still_ms,
        "missed": missed,
        "bus": {
            "phase": words::bus_phase(bus.phase),
            "all_fresh": bus.all_fresh,
            "working_counter_errors": bus.working_counter_errors,
            "absent": bus.absent,
            "frames_sent": bus.frames_sent,
            "frames_lost": bus.frames_lost,
            "frames_rejected": bus.frames_rejected,
            "broken_cycles": bus.broken_cycles,
            "clock_difference_ns": bus.clock_difference_ns,
            "link_errors": bus.link_errors,
        },
        "clock": {
            "lock": words::clock_lock(clock.lock),
            "fresh": clock.fresh,
            "phase_error_ns": clock.phase_error_ns,
            "drift_ppb": clock.drift_ppb,
            "losses": clock.losses,
        },
        "timing": {
            "cycles": timing.cycles,
            "wakeup_latency": spread(&timing.wakeup_latency),
            "period_jitter": spread(&timing.period_jitter),
            "execution": spread(&timing.execution),
            "overruns": timing.overruns,
            "skipped": timing.skipped,
            "last_overrun": timing.last_overrun,
        },
        "command": {
            "freshness": command.freshness.to_string(),
            "accepted": command.accepted,
            "refused": command.refused,
            "last_refusal": words::last_refusal(command, description),
            "clamped": command.clamped,
            "last_clamp": words::last_clamp(command, description),
        },
        "controller": description.controllers.get(usize::from(state.control.active)).map(|it| &it.name),
        "enabled": state.control.enabled,
        "axes": axes.collect::<Vec<_>>(),
        "signals": signals.collect::<Vec<_>>(),
    })
}

fn spread(it: &Spread) -> Value {
    json!([it.last_ns, it.minimum_ns, it.mean_ns, it.maximum_ns])
}

/// Times of the cycles that were read, since a page is open.
#[derive(Debug)]
pub(super) struct Times {
    wakeup_latency: Statistics,
    period_jitter: Statistics,
    execution: Statistics,
    measured: u64,
}

impl Times {
    pub(super) fn new() -> Self {
        Self {
            wakeup_latency: Statistics::new(),
            period_jitter: Statistics::new(),
            execution: Statistics::new(),
            measured: 0,
        }
    }

    /// Takes the times of a cycle, if it is one more that was measured.
    pub(super) fn take(&mut self, state: &State) {
        let timing = &state.timing;
        if std::mem::replace(&mut self.measured, timing.cycles) != timing.cycles {
            self.wakeup_latency.record(timing.wakeup_latency.last_ns, state.cycle);
            self.period_jitter.record(timing.period_jitter.last_ns, state.cycle);
            self.execution.record(timing.execution.last_ns, state.cycle);
        }
    }

    /// Histograms, late cycles, and the other diagnostics of the run.
    pub(super) fn json(&self, attached: u64, start_ns: u64, mut diagnostics: Option<Value>) -> Value {
        diagnostics.iter_mut().for_each(add_sentences);
        let histogram = |name: &str, it: &Statistics| {
            let up_to = it.up_to(BOUNDS);
            let below = std::iter::once(0).chain(up_to);
            let mut counts: Vec<u64> = up_to.iter().zip(below).map(|(to, below)| to - below).collect();
            counts.push(it.count() - up_to[BOUNDS.len() - 1]);
            let percentile = |quantile| it.percentile(quantile);
            json!({
                "name": name, "count": it.count(), "counts": counts, "median": percentile(0.5), "p99": percentile(0.99),
                "p999": percentile(0.999), "maximum": it.maximum(), "maximum_cycle": it.maximum_cycle(),
            })
        };
        json!({
            "kind": "timing",
            "attached": attached,
            "start_ns": start_ns,
            "bounds": BOUNDS.as_slice(),
            "histograms": [
                histogram("period jitter", &self.period_jitter),
                histogram("wake-up latency", &self.wakeup_latency),
                histogram("execution time", &self.execution),
            ],
            "diagnostics": diagnostics,
        })
    }
}

/// Adds the sentence of each late cycle, for the page.
fn add_sentences(diagnostics: &mut Value) {
    let newest = diagnostics.pointer_mut("/late/newest").and_then(Value::as_array_mut);
    for late in newest.into_iter().flatten() {
        if let Ok(read) = LateCycle::deserialize(&*late) {
            late["sentence"] = read.to_string().into();
        }
    }
}

/// Bounds of the histograms, ns: ten to a decade from a microsecond to 10 ms.
const BOUNDS: [u64; 41] = {
    let decade = [1000, 1259, 1585, 1995, 2512, 3162, 3981, 5012, 6310, 7943];
    let mut bounds = [10_000_000; 41];
    let mut place = 0;
    while place < 40 {
        bounds[place] = decade[place % 10] * 10_u64.pow(place as u32 / 10);
        place += 1;
    }
    bounds
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_cycles_of_the_page_have_a_sentence() {
        let late = json!({ "cycle": 7, "late_ns": 61_000, "late": "start",
            "causes": [{ "kind": "task", "name": "backup", "ns": 61_000 }] });
        let mut diagnostics = json!({ "number": 1, "late": { "count": 1, "newest": [late] } });
        add_sentences(&mut diagnostics);
        let sentence = &diagnostics["late"]["newest"][0]["sentence"];
        assert_eq!(sentence, "cycle 7 started 61 us late: backup ran 61 us");
        let mut without = json!({ "number": 1 });
        add_sentences(&mut without);
        assert_eq!(without, json!({ "number": 1 }));
    }
}
