//! Process data by name: found once, read and written in every cycle.

mod array;
mod described;
mod error;
mod force;
mod handle;
mod owned;

use std::sync::Arc;
use std::time::Duration;

use ethercat::main_device::MainDevice;
use ethercat::pdo::PdoField;
use ethercat::time::Instant;
use motion::supervision::BLIND_CYCLES;
use types::near::Near;
use types::signal::{Flow, OnStale, OutputBehaviour, Signal, Writer};
use types::{Freshness, Value, ValueKind};

use force::Forced;

pub use error::{OwnedError, Ownership, PlaceError, SignalError, SignalsError};
pub use force::{ForceEvent, ReleaseReason};
pub use handle::{Handle, Input, Output, SignalValue};
pub(crate) use owned::OwnedOutputs;

/// All signals of a robot, with their values.
#[derive(Debug, Default)]
pub struct Signals {
    signals: Vec<Signal>,
    /// Their names, for events: shared without an allocation.
    names: Vec<Arc<str>>,
    states: Vec<State>,
    /// As they were in the last cycle before the stop.
    before_stop: Vec<SignalState>,
    counters: Counters,
    /// Places of the outputs that are commanded from outside.
    commanded: Vec<usize>,
    /// Places of the outputs with the number of the cycle.
    numbered: Vec<usize>,
    /// Validity of the command from outside in this cycle.
    freshness: Freshness,
}

/// Value of a signal in one cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignalState {
    /// Value, in its unit.
    pub value: Value,
    /// An input that came in with this cycle; an output that its SubDevice took.
    pub fresh: bool,
    /// The value is a forced one.
    pub forced: bool,
}

/// Outputs set since the start to impossible values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Beyond the range: the nearest value within it was taken.
    pub clamped: u64,
    /// Not finite, of another kind, or of an output the controller does not set: the value before
    /// stayed.
    pub refused: u64,
}

#[derive(Clone, Copy, Debug)]
struct State {
    field: PdoField,
    raw: u64,
    /// Bits before the controller's writes of this cycle.
    before: u64,
    /// Takes the place of `raw` while its time is not over.
    forced: Option<Forced>,
    /// Bits in the process image.
    written: u64,
    fresh: bool,
    /// It was exchanged before.
    seen: bool,
    /// Consecutive cycles in which it was not fresh.
    missed: u64,
    /// Its output takes no writes in this cycle.
    closed: bool,
}

/// When inputs are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Time since the last cycle.
    pub(crate) elapsed: Duration,
    /// Cycles skipped since then because the host stalled.
    pub(crate) stalled: u64,
    /// The replies are from before that.
    pub(crate) outdated: bool,
}

/// Circumstances of one cycle that decide about outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Governing {
    /// Number of the cycle.
    pub(crate) cycle: u64,
    /// Validity of the command from outside.
    pub(crate) freshness: Freshness,
    /// The cycle is ending.
    pub(crate) stopping: bool,
    pub(crate) now: Instant,
}

impl State {
    /// Bits that others see.
    fn shown(&self) -> u64 {
        self.forced.map_or(self.raw, |forced| forced.raw)
    }

    fn state(&self, signal: &Signal) -> SignalState {
        SignalState { value: signal.value(self.shown()), fresh: self.fresh, forced: self.forced.is_some() }
    }
}

impl Signals {
    /// Finds the signals in the process data, and gives the outputs their initial values. An output
    /// that an axis writes, or that bounds one, is no signal's to write: it would bypass the
    /// limits.
    pub(crate) fn bind(
        signals: Vec<Signal>,
        main_device: &mut MainDevice,
        owned: &OwnedOutputs,
    ) -> Result<Self, SignalsError> {
        let mut states = Vec::with_capacity(signals.len());
        for signal in &signals {
            let field = place(signal, main_device)?;
            owned.check(signal, field, main_device)?;
            let initial = match signal.flow {
                Flow::Output(behaviour) => Some(behaviour.initial),
                Flow::Fixed(bits) => Some(bits),
                Flow::Input | Flow::Taken(_) | Flow::Cycle => None,
            };
            if let Some(raw) = initial {
                field.write(main_device.outputs_mut(signal.sub_device), raw);
            }
            let raw = initial.unwrap_or_default();
            states.push(State {
                field,
                raw,
                before: raw,
                forced: None,
                written: raw,
                fresh: false,
                seen: false,
                missed: 0,
                closed: false,
            });
        }
        let commanded = (0..signals.len()).filter(|&place| signals[place].is_commanded()).collect();
        let numbered = (0..signals.len()).filter(|&place| signals[place].flow == Flow::Cycle).collect();
        let mut bound =
            Self { names: names(&signals), signals, states, commanded, numbered, ..Self::default() };
        bound.before_stop = bound.states().collect();
        Ok(bound)
    }

    /// Inputs of this cycle, and whether the outputs were taken.
    pub(crate) fn read(&mut self, main_device: &MainDevice, moment: Moment) {
        for (signal, state) in self.signals.iter().zip(&mut self.states) {
            let exchanged = match signal.flow {
                Flow::Input => main_device.inputs_fresh(signal.sub_device),
                _ => main_device.outputs_taken(signal.sub_device),
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

    /// Decides which outputs take writes in this cycle, and sets the others; ends expired forces.
    pub(crate) fn govern(&mut self, governing: &Governing, tell: &mut impl FnMut(ForceEvent)) {
        let &Governing { cycle, freshness, stopping, .. } = governing;
        self.freshness = freshness;
        let is_stale = freshness == Freshness::Stale;
        for ((signal, state), name) in self.signals.iter().zip(&mut self.states).zip(&self.names) {
            let is_over = state.forced.and_then(|forced| forced.is_over(governing));
            let Flow::Output(behaviour) = signal.flow else {
                if let Some(reason) = is_over {
                    force::end(signal, state, name, reason, cycle, tell);
                }
                continue;
            };
            let OutputBehaviour { writer, on_stale, on_stop, on_return, .. } = behaviour;
            let lost = state.seen && state.missed > BLIND_CYCLES;
            let stale = writer == Writer::Outside && is_stale;
            // It returns as the file says, not with its earlier force.
            let on_return = on_return.filter(|_| lost && !stopping);
            let decided = if stopping {
                Some(on_stop)
            } else {
                let on_stale = on_stale.filter(|_| stale).map(|on_stale| when_stale(on_stale, state.raw));
                on_return.or(on_stale)
            };
            state.closed = decided.is_some();
            state.raw = decided.unwrap_or(state.raw);
            state.before = state.raw;
            if let Some(reason) = is_over.or(on_return.map(|_| ReleaseReason::Return)) {
                force::end(signal, state, name, reason, cycle, tell);
            }
        }
    }

    /// Reverts the controller's writes of this cycle if the robot file determines the output: the
    /// command is stale, or the process is lost.
    pub(crate) fn abandon(&mut self) {
        for (signal, state) in self.signals.iter().zip(&mut self.states) {
            let Flow::Output(OutputBehaviour {
                writer: Writer::Controller, on_stale: Some(on_stale), ..
            }) = signal.flow
            else {
                continue;
            };
            if !state.closed {
                state.raw = when_stale(on_stale, state.before);
            }
        }
    }

    /// Sets the outputs that are commanded from outside, each to its value of a command that was
    /// checked.
    pub(crate) fn command(&mut self, values: &[Option<Value>]) {
        for (index, value) in values.iter().enumerate() {
            if let (Some(&place), Some(value)) = (self.commanded.get(index), *value) {
                self.put(place, value);
            }
        }
    }

    /// Writes changed outputs to the process image.
    pub(crate) fn write(&mut self, main_device: &mut MainDevice) {
        for (signal, state) in self.signals.iter().zip(&mut self.states) {
            match signal.flow {
                // The number of the cycle goes out with its frame.
                Flow::Input | Flow::Cycle => {}
                Flow::Output(_) if state.shown() == state.written => {}
                Flow::Output(_) => {
                    state.written = state.shown();
                    state.field.write(main_device.outputs_mut(signal.sub_device), state.written);
                }
                // Its writer was before. An axis lowers its own limit for a jog.
                Flow::Taken(_) | Flow::Fixed(_) => {
                    state.raw = state.field.read(main_device.outputs_mut(signal.sub_device))
                }
            }
        }
    }

    /// Bits that the robot file gives to an output.
    pub(crate) fn fixed(&self, sub_device: usize, field: PdoField) -> Option<u64> {
        let at = |state: &State| state.field == field;
        let mut places = self.signals.iter().zip(&self.states);
        places.find_map(|(signal, state)| match signal.flow {
            Flow::Fixed(bits) if signal.sub_device == sub_device && at(state) => Some(bits),
            _ => None,
        })
    }

    /// Number of the cycle to the process image, where it goes out.
    pub(crate) fn write_number(&mut self, main_device: &mut MainDevice, cycle: u64) {
        for &place in &self.numbered {
            let (signal, state) = (&self.signals[place], &mut self.states[place]);
            let bits = u32::from(signal.value_type.bits()).clamp(1, 64);
            state.raw = cycle & u64::MAX >> (64 - bits);
            state.field.write(main_device.outputs_mut(signal.sub_device), state.raw);
        }
    }

    /// Keeps the values of this cycle as the values before the stop.
    pub(crate) fn keep(&mut self) {
        let Self { signals, states, before_stop, .. } = self;
        for ((kept, signal), state) in before_stop.iter_mut().zip(signals.iter()).zip(states.iter()) {
            *kept = state.state(signal);
        }
    }

    /// The signals, with their values in the last cycle before the stop.
    pub(crate) fn into_before_stop(self) -> Vec<(Signal, SignalState)> {
        self.signals.into_iter().zip(self.before_stop).collect()
    }

    /// The signal at this place, if there is one.
    pub(crate) fn at(&self, place: usize) -> Option<&Signal> {
        self.signals.get(place)
    }

    /// Number of signals.
    pub(crate) fn count(&self) -> usize {
        self.signals.len()
    }

    /// Values, in the order of the signals.
    pub(crate) fn states(&self) -> impl Iterator<Item = SignalState> + '_ {
        self.signals.iter().zip(&self.states).map(|(signal, state)| state.state(signal))
    }

    /// Outputs set since the start to impossible values.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Kind of the value of each output that a controller may set; `None` of all other signals.
    pub(crate) fn output_kinds(&self) -> impl Iterator<Item = Option<ValueKind>> + '_ {
        self.signals.iter().map(|signal| {
            let settable = matches!(signal.flow, Flow::Output(_)) && !signal.is_commanded();
            settable.then(|| signal.kind())
        })
    }

    /// Validity of the command from outside in this cycle.
    pub(crate) fn freshness(&self) -> Freshness {
        self.freshness
    }

    /// Names of all signals, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> + '_ {
        self.signals.iter().map(|signal| signal.name.as_str())
    }

    /// The input of this name, as a value of type `T`: `bool`, an integer that is as wide as the
    /// entry or wider, `f32`; or `f64`, which reads every number, and what is scaled.
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
    /// A name that no output has, one that a part of the robot writes or that is commanded from
    /// outside, or a type it does not have.
    pub fn output<T: SignalValue>(&self, name: &str) -> Result<Output<T>, SignalError> {
        let place = self.find(name, false)?;
        if let Some(writer) = self.signals[place].read_only_for() {
            return Err(SignalError::Taken { name: name.to_owned(), writer: writer.to_owned() });
        }
        if self.signals[place].is_commanded() {
            return Err(SignalError::Outside { name: name.to_owned() });
        }
        self.check_type::<T>(place)?;
        Ok(Output::new(place))
    }

    /// Places of the inputs that share bits with a field of the inputs of this SubDevice.
    pub(crate) fn inputs_at(&self, sub_device: usize, field: PdoField) -> impl Iterator<Item = usize> + '_ {
        let shares = move |(place, state): (usize, &State)| {
            let signal = &self.signals[place];
            let is_input = signal.flow == Flow::Input && signal.sub_device == sub_device;
            (is_input && common_bits(state.field, field).is_some()).then_some(place)
        };
        self.states.iter().enumerate().filter_map(shares)
    }

    /// Level of a field while the signal at this place, which shares bits with it, is forced.
    pub(crate) fn forced_level(&self, place: usize, field: PdoField) -> Option<bool> {
        let state = self.states.get(place)?;
        Some(state.forced?.raw & common_bits(state.field, field)? != 0)
    }

    fn find(&self, name: &str, input: bool) -> Result<usize, SignalError> {
        let is_input = |signal: &Signal| signal.flow == Flow::Input;
        match self.signals.iter().position(|signal| signal.name == name) {
            Some(place) if is_input(&self.signals[place]) == input => Ok(place),
            Some(_) => Err(SignalError::Direction { name: name.to_owned(), input }),
            // The whole of an array is no value.
            None if self.counted(name, input) > 0 => Err(array::count(name, self.counted(name, input), 1)),
            None => {
                let wanted = self.signals.iter().filter(|signal| is_input(signal) == input);
                let near = Near::to(name, wanted.map(|signal| signal.name.as_str()));
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

    pub(crate) fn value(&self, place: usize) -> Option<SignalState> {
        let (signal, state) = (self.signals.get(place)?, self.states.get(place)?);
        Some(state.state(signal))
    }

    /// Sets an output as the controller: one of the outside has another writer.
    pub(crate) fn set(&mut self, place: usize, value: Value) {
        if self.signals.get(place).is_some_and(Signal::is_commanded) {
            self.counters.refused += 1;
        } else {
            self.put(place, value);
        }
    }

    fn put(&mut self, place: usize, value: Value) {
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

fn names(signals: &[Signal]) -> Vec<Arc<str>> {
    signals.iter().map(|signal| Arc::from(signal.name.as_str())).collect()
}

/// Bits of `field` that `other` has, too, as a mask of its value; `None` where it has none.
fn common_bits(field: PdoField, other: PdoField) -> Option<u64> {
    let begin = field.bit_offset.max(other.bit_offset);
    let end = (field.bit_offset + field.bit_length.min(64)).min(other.bit_offset + other.bit_length);
    let bits = |count: usize| if count >= 64 { u64::MAX } else { (1 << count) - 1 };
    (begin < end).then(|| bits(end - begin) << (begin - field.bit_offset))
}

/// Bits of an output that were `before`, once the command is stale.
fn when_stale(on_stale: OnStale, before: u64) -> u64 {
    match on_stale {
        OnStale::Hold => before,
        OnStale::Bits(bits) => bits,
    }
}

fn place(signal: &Signal, main_device: &MainDevice) -> Result<PdoField, PlaceError> {
    let Signal { name, sub_device, bit_offset, value_type, flow, .. } = signal;
    let bytes = main_device.sub_devices().get(*sub_device).map_or(0, |it| match flow {
        Flow::Input => it.input_bytes(),
        _ => it.output_bytes(),
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
mod tests;
