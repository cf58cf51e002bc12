//! Process data by name: found once, read and written in every cycle.

mod array;
mod described;
mod error;
mod external;
mod handle;
mod io;

use ethercat::main_device::MainDevice;
use ethercat::pdo::PdoField;
use ethercat::time::Instant;
use ipc::force::Force;
use motion::supervision::BLIND_CYCLES;
use types::Value;
use types::signal::{Flow, OnStale, OutputBehaviour, Signal, Writer};

use crate::axis::Moment;
use crate::controller::Freshness;

pub use error::{PlaceError, SignalError, SignalsError, nearest};
pub use handle::{Handle, Input, Output, SignalValue};
pub use io::Io;

/// All signals of a robot, with their values.
#[derive(Debug, Default)]
pub struct Signals {
    signals: Vec<Signal>,
    states: Vec<State>,
    /// As they were in the last cycle before the stop.
    before_stop: Vec<SignalState>,
    counters: Counters,
    /// Places of the outputs that are commanded from outside.
    commanded: Vec<usize>,
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

/// Outputs set since the start to what they could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Beyond the range: the nearest value within it was taken.
    pub clamped: u64,
    /// Not finite, of another kind, or of an output the controller does not set: the value before stayed.
    pub refused: u64,
}

#[derive(Clone, Copy, Debug)]
struct State {
    field: PdoField,
    raw: u64,
    /// Takes the place of `raw` while its time is not over.
    forced: Option<Forced>,
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

#[derive(Clone, Copy, Debug)]
struct Forced {
    raw: u64,
    until: Instant,
}

/// Circumstances of one cycle that decide over outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Governing {
    /// Validity of the command from outside.
    pub(crate) freshness: Freshness,
    /// The controller lives on a command that is stale, or on a process that is lost.
    pub(crate) abandoned: bool,
    /// The cycle comes to its end.
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
                forced: None,
                written: raw,
                fresh: false,
                seen: false,
                missed: 0,
                closed: false,
            });
        }
        let commanded = (0..signals.len()).filter(|&place| signals[place].is_commanded()).collect();
        let mut bound = Self { signals, states, commanded, ..Self::default() };
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

    /// Forces a signal, or releases it. The value was checked when it was asked for; another one is the nearest that
    /// can be.
    pub(crate) fn force(&mut self, force: Force, now: Instant) {
        match force {
            Force::ReleaseAll => self.states.iter_mut().for_each(|state| state.forced = None),
            Force::Release(place) => {
                if let Some(state) = self.states.get_mut(place) {
                    state.forced = None;
                }
            }
            Force::Hold { signal: place, value, time } => {
                let (Some(signal), Some(state)) = (self.signals.get(place), self.states.get_mut(place))
                else {
                    return;
                };
                // What an axis is sent is supervision's alone.
                if let (Some((raw, _)), Flow::Input | Flow::Output(_)) = (signal.raw(value), &signal.flow) {
                    state.forced = Some(Forced { raw, until: now + time });
                }
            }
        }
    }

    /// Decides which outputs take writes in this cycle, and what the others are; ends forces whose time is over.
    pub(crate) fn govern(&mut self, governing: Governing) {
        let Governing { freshness, abandoned, stopping, now } = governing;
        self.freshness = freshness;
        let is_stale = freshness == Freshness::Stale;
        for (signal, state) in self.signals.iter().zip(&mut self.states) {
            // The end decides over forces, of inputs too.
            state.forced = state.forced.filter(|forced| now < forced.until && !stopping);
            let Flow::Output(behaviour) = signal.flow else { continue };
            let OutputBehaviour { writer, on_stale, on_stop, on_return, .. } = behaviour;
            let lost = state.seen && state.missed > BLIND_CYCLES;
            let stale = if writer == Writer::Outside { is_stale } else { abandoned };
            let decided = if stopping {
                Some(on_stop)
            } else if let Some(on_return) = on_return.filter(|_| lost) {
                // It returns as the file says, not as somebody forced it before.
                state.forced = None;
                Some(on_return)
            } else {
                on_stale.filter(|_| stale).map(|on_stale| match on_stale {
                    OnStale::Hold => state.raw,
                    OnStale::Bits(bits) => bits,
                })
            };
            state.closed = decided.is_some();
            state.raw = decided.unwrap_or(state.raw);
        }
    }

    /// Sets the outputs that are commanded from outside, each to its value of a command that was checked.
    pub(crate) fn command(&mut self, values: &[Option<Value>]) {
        for (index, value) in values.iter().enumerate() {
            if let (Some(&place), Some(value)) = (self.commanded.get(index), *value) {
                self.put(place, value);
            }
        }
    }

    /// Outputs to the process image, those that have changed.
    pub(crate) fn write(&mut self, main_device: &mut MainDevice) {
        for (signal, state) in self.signals.iter().zip(&mut self.states) {
            match signal.flow {
                Flow::Input => {}
                Flow::Output(_) if state.shown() == state.written => {}
                Flow::Output(_) => {
                    state.written = state.shown();
                    state.field.write(main_device.outputs_mut(signal.sub_device), state.written);
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
            *kept = state.state(signal);
        }
    }

    /// The signals, with their values in the last cycle before the stop.
    pub(crate) fn into_before_stop(self) -> Vec<(Signal, SignalState)> {
        self.signals.into_iter().zip(self.before_stop).collect()
    }

    /// Values, in the order of the signals.
    pub(crate) fn states(&self) -> impl Iterator<Item = SignalState> + '_ {
        self.signals.iter().zip(&self.states).map(|(signal, state)| state.state(signal))
    }

    /// Outputs set since the start to what they could not be.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Validity of the command from outside in this cycle.
    pub(crate) fn freshness(&self) -> Freshness {
        self.freshness
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
    /// A name that no output has, one that a part of the robot writes or that is commanded from outside, or a type it does
    /// not have.
    pub fn output<T: SignalValue>(&self, name: &str) -> Result<Output<T>, SignalError> {
        let place = self.find(name, false)?;
        if let Flow::Taken(writer) = &self.signals[place].flow {
            return Err(SignalError::Taken { name: name.to_owned(), writer: writer.clone() });
        }
        if self.signals[place].is_commanded() {
            return Err(SignalError::Outside { name: name.to_owned() });
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
        Some(state.state(signal))
    }

    /// Sets an output as the controller: one of the outside has another writer.
    fn set(&mut self, place: usize, value: Value) {
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
    use std::time::Duration;

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
        let state = State {
            field,
            raw: 100,
            forced: None,
            written: 100,
            fresh: true,
            seen: true,
            missed: 0,
            closed: false,
        };
        let commanded = if signal.is_commanded() { vec![0] } else { vec![] };
        Signals { signals: vec![signal], states: vec![state], commanded, ..Signals::default() }
    }

    fn value(signals: &Signals) -> u64 {
        signals.states[0].shown()
    }

    /// Of a controller that lives on the command.
    fn governing(stale: bool, stopping: bool) -> Governing {
        let freshness = if stale { Freshness::Stale } else { Freshness::Fresh };
        Governing { freshness, abandoned: stale, stopping, now: Instant::EPOCH }
    }

    fn at(ms: u64) -> Instant {
        Instant::EPOCH + Duration::from_millis(ms)
    }

    fn hold(value: u64) -> Force {
        Force::Hold { signal: 0, value: Value::Unsigned(value), time: Duration::from_millis(10) }
    }

    // feature(signals): an output while the command is stale; values beyond the range and not finite are counted
    #[test]
    fn a_stale_command_holds_an_output_or_gives_it_its_value_until_it_is_fresh_again() {
        for (on_stale, stale) in [(None, 120), (Some(OnStale::Hold), 100), (Some(OnStale::Bits(7)), 7)] {
            let mut signals = output(OutputBehaviour { on_stale, ..OutputBehaviour::default() });
            signals.govern(governing(true, false));
            signals.set(0, Value::Unsigned(120));
            assert_eq!(value(&signals), stale, "{on_stale:?}");
            signals.govern(governing(false, false));
            signals.set(0, Value::Unsigned(130));
            assert_eq!(value(&signals), 130, "{on_stale:?}");
            // The end decides over it.
            signals.govern(governing(true, true));
            signals.set(0, Value::Unsigned(120));
            assert_eq!(value(&signals), 0, "{on_stale:?}");
        }
    }

    // feature(signals): outputs with `writer = "outside"`, one writer each
    #[test]
    fn an_output_of_the_outside_is_set_by_commands_and_goes_stale_whoever_the_controller_is() {
        let on_stale = Some(OnStale::Bits(12));
        let behaviour = OutputBehaviour { writer: Writer::Outside, on_stale, ..OutputBehaviour::default() };
        let mut signals = output(behaviour);
        let own = |stale, stopping| Governing { abandoned: false, ..governing(stale, stopping) };
        signals.govern(own(false, false));
        signals.command(&[None, Some(Value::Unsigned(1))]);
        assert_eq!(value(&signals), 100, "nothing is asked of it");
        signals.command(&[Some(Value::Unsigned(120))]);
        assert_eq!(value(&signals), 120);
        signals.set(0, Value::Unsigned(90));
        assert_eq!((value(&signals), signals.counters.refused), (120, 1), "no controller sets it");
        signals.govern(own(true, false));
        signals.command(&[Some(Value::Unsigned(130))]);
        assert_eq!(value(&signals), 12, "its time is over before it is read");
        signals.govern(own(false, false));
        assert_eq!(value(&signals), 12, "until it is commanded again");
        signals.command(&[Some(Value::Unsigned(140))]);
        assert_eq!(value(&signals), 140);
        signals.govern(own(false, true));
        signals.command(&[Some(Value::Unsigned(150))]);
        assert_eq!(value(&signals), 0);
        // That of a controller with a mind of its own goes on.
        let mut signals = output(OutputBehaviour { on_stale, ..OutputBehaviour::default() });
        signals.govern(own(true, false));
        signals.set(0, Value::Unsigned(120));
        signals.command(&[Some(Value::Unsigned(130))]);
        assert_eq!(value(&signals), 120, "nobody else sets it");
    }

    // feature(signals): forces: over the controller and of inputs, until a time is over, a release, or the stop
    #[test]
    fn a_force_wins_until_its_time_is_over_it_is_released_or_the_cycle_stops() {
        let behaviour =
            || OutputBehaviour { on_stale: Some(OnStale::Bits(7)), ..OutputBehaviour::default() };
        let run = |signals: &mut Signals, ms: u64, stale: bool, stopping: bool| {
            signals.govern(Governing { now: at(ms), ..governing(stale, stopping) });
            signals.set(0, Value::Unsigned(120));
            (value(signals), signals.value(0).unwrap().forced)
        };
        let mut signals = output(behaviour());
        signals.force(hold(150), at(0));
        assert_eq!(run(&mut signals, 0, false, false), (150, true));
        assert_eq!(run(&mut signals, 9, true, false), (150, true), "over a stale command, too");
        assert_eq!(run(&mut signals, 10, true, false), (7, false));
        assert_eq!(run(&mut signals, 11, false, false), (120, false), "the controller has it again");
        for release in [Force::Release(0), Force::ReleaseAll] {
            signals.force(hold(150), at(20));
            signals.force(hold(160), at(20));
            assert_eq!(run(&mut signals, 21, false, false), (160, true));
            signals.force(release, at(22));
            assert_eq!(run(&mut signals, 22, false, false), (120, false));
        }
        signals.force(hold(150), at(30));
        assert_eq!(run(&mut signals, 30, false, true), (0, false), "on_stop decides over it");
        signals.force(hold(150), at(31));
        assert_eq!(run(&mut signals, 31, false, true), (0, false), "and over one that comes later");
    }

    // feature(signals): forces: over the controller and of inputs, until a time is over, a release, or the stop
    #[test]
    fn an_output_that_is_to_return_with_a_value_does_not_return_forced() {
        for (on_return, returned) in [(None, (150, true)), (Some(3), (3, false))] {
            let mut signals = output(OutputBehaviour { on_return, ..OutputBehaviour::default() });
            signals.force(hold(150), at(0));
            signals.states[0].missed = BLIND_CYCLES + 1;
            signals.govern(governing(false, false));
            signals.states[0].missed = 0;
            signals.govern(governing(false, false));
            assert_eq!((value(&signals), signals.value(0).unwrap().forced), returned);
        }
    }

    // feature(signals): forces: over the controller and of inputs, until a time is over, a release, or the stop
    #[test]
    fn what_nobody_may_force_is_not_forced_whatever_is_asked() {
        let mut signals = output(OutputBehaviour::default());
        signals.force(Force::Hold { signal: 0, value: Value::Real(f64::NAN), time: Duration::MAX }, at(0));
        signals.force(Force::Hold { signal: 1, value: Value::Unsigned(1), time: Duration::MAX }, at(0));
        signals.force(Force::Release(usize::MAX), at(0));
        signals.signals[0].flow = Flow::Taken("axis \"x\"".to_owned());
        signals.force(hold(150), at(0));
        assert_eq!((value(&signals), signals.value(0).unwrap().forced), (100, false));
    }

    // feature(signals): an output while the command is stale; values beyond the range and not finite are counted
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
