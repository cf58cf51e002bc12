//! Values of a state that the scope shows, by number.

use ipc::description::Description;
use ipc::state::State;
use serde_json::{Value, json};
use types::ValueKind;

use crate::words::axes;

/// Channels of a cycle, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Channels(Vec<Channel>);

#[derive(Debug)]
struct Channel {
    name: String,
    unit: String,
    source: Source,
}

/// Place of a value in a state.
#[derive(Clone, Copy, Debug)]
enum Source {
    Axis(usize, OfAxis),
    /// Distance from the set-point in the unit of the mode.
    FollowingError(usize),
    Signal(usize, ValueKind),
    Timing(OfTiming),
}

#[derive(Clone, Copy, Debug)]
enum OfAxis {
    Position,
    Velocity,
    Effort,
    TargetPosition,
    TargetVelocity,
    TargetEffort,
}

#[derive(Clone, Copy, Debug)]
enum OfTiming {
    WakeupLatency,
    PeriodJitter,
    Execution,
    PhaseError,
    WorkingCounterErrors,
}

impl Channels {
    pub(super) fn of(description: &Description) -> Self {
        let mut all = Vec::new();
        let mut add = |name: String, unit: &str, source| {
            all.push(Channel { name, unit: unit.to_owned(), source });
        };
        for (place, axis) in description.axes.iter().enumerate() {
            let mut of =
                |what, unit, of| add(format!("{} {what}", axis.name), unit, Source::Axis(place, of));
            of("position", "rad", OfAxis::Position);
            of("velocity", "rad/s", OfAxis::Velocity);
            if axis.measures_effort {
                of("effort", "N m", OfAxis::Effort);
            }
            of("target position", "rad", OfAxis::TargetPosition);
            of("target velocity", "rad/s", OfAxis::TargetVelocity);
            of("target effort", "N m", OfAxis::TargetEffort);
            let error = format!("{} following error", axis.name);
            add(error, axes::unit(axis.mode.cyclic()), Source::FollowingError(place));
        }
        for (place, signal) in description.signals.iter().enumerate() {
            let unit = if signal.kind == ValueKind::Bool { "bit" } else { &signal.unit };
            add(signal.name.clone(), unit, Source::Signal(place, signal.kind));
        }
        for (name, unit, of) in [
            ("cycle wake-up latency", "us", OfTiming::WakeupLatency),
            ("cycle period jitter", "us", OfTiming::PeriodJitter),
            ("cycle execution time", "us", OfTiming::Execution),
            ("cycle clock phase error", "us", OfTiming::PhaseError),
            ("cycle working counter errors", "", OfTiming::WorkingCounterErrors),
        ] {
            add(name.to_owned(), unit, Source::Timing(of));
        }
        Self(all)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Value of a channel; NaN of one that the state does not have.
    pub(super) fn value(&self, channel: u16, state: &State, description: &Description) -> f64 {
        self.0.get(usize::from(channel)).and_then(|it| it.value(state, description)).unwrap_or(f64::NAN)
    }

    /// Names and units, for the page.
    pub(super) fn json(&self) -> Value {
        self.0.iter().map(|it| json!([it.name, it.unit])).collect()
    }
}

impl Channel {
    fn value(&self, state: &State, description: &Description) -> Option<f64> {
        Some(match self.source {
            Source::Axis(place, of) => {
                let axis = state.axes.get(place)?;
                match of {
                    OfAxis::Position => axis.position,
                    OfAxis::Velocity => axis.velocity,
                    OfAxis::Effort => axis.effort,
                    OfAxis::TargetPosition => axis.target_position,
                    OfAxis::TargetVelocity => axis.target_velocity,
                    OfAxis::TargetEffort => axis.target_effort,
                }
            }
            Source::FollowingError(place) => {
                axes::target_and_error(state.axes.get(place)?, description.axes.get(place)?).1?
            }
            Source::Signal(place, kind) => match state.signals.get(place)?.value(kind) {
                types::Value::Bool(value) => f64::from(u8::from(value)),
                types::Value::Unsigned(value) => value as f64,
                types::Value::Signed(value) => value as f64,
                types::Value::Real(value) => value,
            },
            Source::Timing(of) => match of {
                OfTiming::WakeupLatency => state.timing.wakeup_latency.last_ns as f64 / 1e3,
                OfTiming::PeriodJitter => state.timing.period_jitter.last_ns as f64 / 1e3,
                OfTiming::Execution => state.timing.execution.last_ns as f64 / 1e3,
                OfTiming::PhaseError => state.clock.phase_error_ns as f64 / 1e3,
                OfTiming::WorkingCounterErrors => f64::from(state.bus.working_counter_errors),
            },
        })
    }
}
