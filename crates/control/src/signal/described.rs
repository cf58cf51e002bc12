//! Signals of a cycle in another process, by their descriptions.

use ethercat::pdo::PdoField;
use ipc::description::{OUTSIDE, SignalDescription};
use ipc::state;
use types::signal::{Direction, Flow, OutputBehaviour, Scaling, Signal, Writer};
use types::{Value, ValueType};

use super::{Forced, Signals, State, names};
use crate::controller::Freshness;

impl Signals {
    /// Signals as the cycle describes them; [`Signals::show`] gives them values.
    pub(crate) fn described(descriptions: &[SignalDescription]) -> Self {
        let signals: Vec<Signal> = descriptions.iter().map(signal).collect();
        let state = State {
            field: PdoField { bit_offset: 0, bit_length: 0 },
            raw: UNKNOWN,
            before: UNKNOWN,
            forced: None,
            written: UNKNOWN,
            fresh: false,
            seen: false,
            missed: 0,
            closed: false,
        };
        let names = names(&signals);
        Self { states: vec![state; signals.len()], signals, names, ..Self::default() }
    }

    /// Takes over the values of one cycle. The value beneath a force is the last that was seen.
    pub(crate) fn show(&mut self, shown: &[state::Signal], freshness: Freshness) {
        self.freshness = freshness;
        for ((signal, state), shown) in self.signals.iter().zip(&mut self.states).zip(shown) {
            let raw = bits(signal, *shown);
            state.fresh = shown.fresh;
            state.forced = shown.forced.then(|| Forced::elsewhere(raw));
            if !shown.forced {
                (state.raw, state.seen) = (raw, true);
            }
            state.written = state.raw;
        }
    }

    /// Values of the outputs that a controller sets, as words of their kinds; `None` for all other
    /// signals, and for an output that has been forced ever since it is seen and was not set.
    pub(crate) fn answers(&mut self) -> impl Iterator<Item = Option<u64>> + '_ {
        self.signals.iter().zip(&mut self.states).map(|(signal, state)| {
            state.seen |= state.raw != state.written;
            let settable = matches!(signal.flow, Flow::Output(_)) && !signal.is_commanded();
            (settable && state.seen).then(|| signal.value(state.raw).word())
        })
    }
}

fn signal(described: &SignalDescription) -> Signal {
    let SignalDescription { name, value_type, direction, unit, range, scaling, writer, .. } = described;
    let output = |writer| Flow::Output(OutputBehaviour { writer, ..OutputBehaviour::default() });
    let flow = match writer.as_deref() {
        _ if *direction == Direction::Input => Flow::Input,
        Some(OUTSIDE) => output(Writer::Outside),
        Some("controller") | None => output(Writer::Controller),
        Some(part) => Flow::Taken(part.to_owned()),
    };
    let scaling = scaling.map(|(scale, offset)| Scaling { scale, offset });
    let (name, unit, value_type, range) = (name.clone(), unit.clone(), *value_type, *range);
    Signal { name, sub_device: 0, bit_offset: 0, value_type, unit, scaling, range, flow }
}

/// Bits of the entry that have this value, which may be beyond the range and not finite.
fn bits(signal: &Signal, shown: state::Signal) -> u64 {
    let value = shown.value(signal.kind());
    let value = match signal.scaling {
        None => value,
        Some(Scaling { scale, offset }) => Value::Real((value.number() - offset) / scale),
    };
    match signal.value_type {
        ValueType::Float => u64::from((value.number() as f32).to_bits()),
        ValueType::Double => value.number().to_bits(),
        whole => whole.encode(value).map_or(0, |(raw, _)| raw),
    }
}

/// Bits of an output with an unknown value beneath a force: no output is set to it.
const UNKNOWN: u64 = u64::MAX;
