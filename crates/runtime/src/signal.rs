//! Process data by name: found once, read and written in every cycle.

mod error;
mod external;
mod handle;
mod io;

use ethercat::main_device::MainDevice;
use ethercat::pdo::PdoField;
use motion::supervision::BLIND_CYCLES;
use types::Value;
use types::signal::{Flow, OnStale, OutputBehaviour, Signal};

use crate::axis::Moment;

pub use error::{PlaceError, SignalError, SignalsError, nearest};
pub use handle::{Input, Output, SignalValue};
pub use io::Io;

/// All signals of a robot, with their values.
#[derive(Debug, Default)]
pub struct Signals {
    signals: Vec<Signal>,
    states: Vec<State>,
    /// As they were in the last cycle before the stop.
    before_stop: Vec<SignalState>,
    counters: Counters,
}

/// Value of a signal in one cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalState {
    /// Value, in its unit.
    pub value: Value,
    /// An input that came in with this cycle; an output that its SubDevice took.
    pub fresh: bool,
}

/// Outputs set since the start to what they could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Beyond the range: the nearest value within it was taken.
    pub clamped: u64,
    /// Not finite: the value before stayed.
    pub refused: u64,
}

#[derive(Clone, Copy, Debug)]
struct State {
    field: PdoField,
    raw: u64,
    /// Bits in the process image.
    written: u64,
    fresh: bool,
    /// It was exchanged before.
    seen: bool,
    /// Cycles in a row in which it was not.
    missed: u64,
    /// Its output takes no writes in this cycle.
    closed: bool,
}

impl Signals {
    /// Finds the signals in the process data, and gives the outputs their initial values.
    pub(crate) fn bind(signals: Vec<Signal>, main_device: &mut MainDevice) -> Result<Self, PlaceError> {
        let mut states = Vec::with_capacity(signals.len());
        for signal in &signals {
            let field = place(signal, main_device)?;
            let mut raw = 0;
            if let Flow::Output(behaviour) = signal.flow {
                raw = behaviour.initial;
                field.write(main_device.outputs_mut(signal.sub_device), raw);
            }
            states.push(State {
                field,
                raw,
                written: raw,
                fresh: false,
                seen: false,
                missed: 0,
                closed: false,
            });
        }
        let mut bound = Self { signals, states, before_stop: Vec::new(), counters: Counters::default() };
        bound.before_stop = bound.states().collect();
        Ok(bound)
    }

    /// Inputs of this cycle, and what became of the outputs.
    pub(crate) fn read(&mut self, main_device: &MainDevice, moment: Moment) {
        for (signal, state) in self.signals.iter().zip(&mut self.states) {
            let exchanged = match signal.flow {
                Flow::Input => main_device.inputs_fresh(signal.sub_device),
                Flow::Output(_) | Flow::Taken(_) => main_device.outputs_taken(signal.sub_device),
            };
            state.fresh = exchanged && !moment.outdated;
            if state.fresh {
                state.missed = 0;
                state.seen = true;
                if signal.flow == Flow::Input {
                    state.raw = state.field.read(main_device.inputs(signal.sub_device));
                }
            } else {
                state.missed = state.missed.saturating_add(moment.stalled).saturating_add(1);
            }
        }
    }

    /// Decides which outputs take writes in this cycle, and what the others are. `stale`: the command is over that the
    /// controller lives on. `stopping`: the cycle comes to its end.
    pub(crate) fn govern(&mut self, stale: bool, stopping: bool) {
        for (signal, state) in self.signals.iter().zip(&mut self.states) {
            let Flow::Output(behaviour) = signal.flow else { continue };
            let OutputBehaviour { on_stale, on_stop, on_return, .. } = behaviour;
            let lost = state.seen && state.missed > BLIND_CYCLES;
            let forced = if stopping {
                Some(on_stop)
            } else if let Some(on_return) = on_return.filter(|_| lost) {
                Some(on_return)
            } else {
                on_stale.filter(|_| stale).map(|on_stale| match on_stale {
                    OnStale::Hold => state.raw,
                    OnStale::Bits(bits) => bits,
                })
            };
            state.closed = forced.is_some();
            state.raw = forced.unwrap_or(state.raw);
        }
    }

    /// Outputs to the process image, those that have changed.
    pub(crate) fn write(&mut self, main_device: &mut MainDevice) {
        for (signal, state) in self.signals.iter().zip(&mut self.states) {
            match signal.flow {
                Flow::Input => {}
                Flow::Output(_) if state.raw == state.written => {}
                Flow::Output(_) => {
                    state.field.write(main_device.outputs_mut(signal.sub_device), state.raw);
                    state.written = state.raw;
                }
                // Its writer was before.
                Flow::Taken(_) => state.raw = state.field.read(main_device.outputs_mut(signal.sub_device)),
            }
        }
    }

    /// Keeps the values of this cycle as those before the stop.
    pub(crate) fn keep(&mut self) {
        let Self { signals, states, before_stop, .. } = self;
        for ((kept, signal), state) in before_stop.iter_mut().zip(signals.iter()).zip(states.iter()) {
            *kept = SignalState { value: signal.value(state.raw), fresh: state.fresh };
        }
    }

    /// The signals, with their values in the last cycle before the stop.
    pub(crate) fn into_before_stop(self) -> Vec<(Signal, SignalState)> {
        self.signals.into_iter().zip(self.before_stop).collect()
    }

    /// Values, in the order of the signals.
    pub(crate) fn states(&self) -> impl Iterator<Item = SignalState> + '_ {
        let state = |(signal, state): (&Signal, &State)| SignalState {
            value: signal.value(state.raw),
            fresh: state.fresh,
        };
        self.signals.iter().zip(&self.states).map(state)
    }

    /// Outputs set since the start to what they could not be.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Names of all signals, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> + '_ {
        self.signals.iter().map(|signal| signal.name.as_str())
    }

    /// The input of this name, as a value of type `T`: `bool`, an integer that is as wide as the entry or wider, `f32`; or
    /// `f64`, which reads every number, and what is scaled.
    ///
    /// # Errors
    /// A name that no input has, or a type it does not have.
    pub fn input<T: SignalValue>(&self, name: &str) -> Result<Input<T>, SignalError> {
        let place = self.find(name, true)?;
        self.check_type::<T>(place)?;
        Ok(Input::new(place))
    }

    /// The output of this name, as a value of type `T`, as in [`Signals::input`].
    ///
    /// # Errors
    /// A name that no output has, one that a part of the robot writes, or a type it does not have.
    pub fn output<T: SignalValue>(&self, name: &str) -> Result<Output<T>, SignalError> {
        let place = self.find(name, false)?;
        if let Flow::Taken(writer) = &self.signals[place].flow {
            return Err(SignalError::Taken { name: name.to_owned(), writer: writer.clone() });
        }
        self.check_type::<T>(place)?;
        Ok(Output::new(place))
    }

    fn find(&self, name: &str, input: bool) -> Result<usize, SignalError> {
        let is_input = |signal: &Signal| signal.flow == Flow::Input;
        match self.signals.iter().position(|signal| signal.name == name) {
            Some(place) if is_input(&self.signals[place]) == input => Ok(place),
            Some(_) => Err(SignalError::Direction { name: name.to_owned(), input }),
            None => {
                let wanted = self.signals.iter().filter(|signal| is_input(signal) == input);
                let near = nearest(name, wanted.map(|signal| signal.name.as_str()));
                Err(SignalError::Unknown { name: name.to_owned(), input, near })
            }
        }
    }

    fn check_type<T: SignalValue>(&self, place: usize) -> Result<(), SignalError> {
        let signal = &self.signals[place];
        let scaled = signal.scaling.is_some();
        T::fits(signal.value_type, scaled).then_some(()).ok_or_else(|| SignalError::Type {
            name: signal.name.clone(),
            found: signal.value_type,
            scaled,
            wanted: std::any::type_name::<T>(),
        })
    }

    fn value(&self, place: usize) -> Option<SignalState> {
        let (signal, state) = (self.signals.get(place)?, self.states.get(place)?);
        Some(SignalState { value: signal.value(state.raw), fresh: state.fresh })
    }

    fn set(&mut self, place: usize, value: Value) {
        let (Some(signal), Some(state)) = (self.signals.get(place), self.states.get_mut(place)) else {
            return;
        };
        match signal.raw(value) {
            None => self.counters.refused += 1,
            Some((raw, clamped)) => {
                self.counters.clamped += u64::from(clamped);
                if !state.closed {
                    state.raw = raw;
                }
            }
        }
    }
}

fn place(signal: &Signal, main_device: &MainDevice) -> Result<PdoField, PlaceError> {
    let Signal { name, sub_device, bit_offset, value_type, flow, .. } = signal;
    let bytes = main_device.sub_devices().get(*sub_device).map_or(0, |it| match flow {
        Flow::Input => it.input_bytes(),
        Flow::Output(_) | Flow::Taken(_) => it.output_bytes(),
    });
    let field = PdoField { bit_offset: *bit_offset, bit_length: usize::from(value_type.bits()) };
    let end = field.bit_offset + field.bit_length;
    let inside = field.bit_length > 0 && end <= bytes * 8;
    inside.then_some(field).ok_or_else(|| PlaceError {
        name: name.clone(),
        position: *sub_device,
        end,
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use types::ValueType;

    use super::*;

    /// One output of eight bits, at 100.
    fn output(behaviour: OutputBehaviour) -> Signals {
        let signal = Signal {
            name: "valve".to_owned(),
            sub_device: 0,
            bit_offset: 0,
            value_type: ValueType::Unsigned(8),
            unit: String::new(),
            scaling: None,
            range: Some((10.0, 200.0)),
            flow: Flow::Output(behaviour),
        };
        let field = PdoField { bit_offset: 0, bit_length: 8 };
        let state =
            State { field, raw: 100, written: 100, fresh: true, seen: true, missed: 0, closed: false };
        Signals { signals: vec![signal], states: vec![state], ..Signals::default() }
    }

    fn value(signals: &Signals) -> u64 {
        signals.states[0].raw
    }

    #[test]
    fn a_stale_command_holds_an_output_or_gives_it_its_value_until_it_is_fresh_again() {
        for (on_stale, stale) in [(None, 120), (Some(OnStale::Hold), 100), (Some(OnStale::Bits(7)), 7)] {
            let mut signals = output(OutputBehaviour { on_stale, ..OutputBehaviour::default() });
            signals.govern(true, false);
            signals.set(0, Value::Unsigned(120));
            assert_eq!(value(&signals), stale, "{on_stale:?}");
            signals.govern(false, false);
            signals.set(0, Value::Unsigned(130));
            assert_eq!(value(&signals), 130, "{on_stale:?}");
            // The end decides over it.
            signals.govern(true, true);
            signals.set(0, Value::Unsigned(120));
            assert_eq!(value(&signals), 0, "{on_stale:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_clamped_or_refused_and_counted() {
        let mut signals = output(OutputBehaviour::default());
        signals.set(0, Value::Real(300.0));
        assert_eq!((value(&signals), signals.counters.clamped), (200, 1));
        signals.set(0, Value::Real(f64::NAN));
        signals.set(0, Value::Bool(true));
        signals.set(1, Value::Unsigned(1));
        assert_eq!((value(&signals), signals.counters), (200, Counters { clamped: 1, refused: 2 }));
    }
}
