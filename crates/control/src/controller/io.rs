//! Signals and axes as a controller has them in one cycle.

use types::Value;

use super::{AxisCommand, AxisReport, Freshness};
use crate::signal::{Counters, Handle, Input, Output, SignalState, SignalValue, Signals};

/// Signals and axes of one cycle. Nothing here allocates, waits or panics.
#[derive(Debug)]
pub struct Io<'a> {
    signals: &'a mut Signals,
    reports: &'a [AxisReport],
    commands: &'a mut [AxisCommand],
}

impl<'a> Io<'a> {
    /// Signals and axes of one cycle; the cycle makes them, and a test of a controller.
    #[must_use]
    pub fn new(
        signals: &'a mut Signals,
        reports: &'a [AxisReport],
        commands: &'a mut [AxisCommand],
    ) -> Self {
        Self { signals, reports, commands }
    }

    /// Value of an input as it came in last, or as it is forced; [`Io::is_fresh`] is true if it
    /// came in this cycle.
    #[must_use]
    pub fn get<T: SignalValue>(&self, input: Input<T>) -> T {
        self.value(input.at())
    }

    /// True if the input came in with this cycle.
    #[must_use]
    pub fn is_fresh<T>(&self, input: Input<T>) -> bool {
        self.signals.value(input.at()).is_some_and(|it| it.fresh)
    }

    /// Sets an output, until it is set again. A value beyond its range becomes the nearest one
    /// within it, and one that is not finite changes nothing; both are counted. While the file
    /// determines the output (the cycle stops, the command is stale, its SubDevice is lost) this
    /// changes nothing; while it is forced this is its value afterwards.
    pub fn set<T: SignalValue>(&mut self, output: Output<T>, value: T) {
        self.signals.set(output.at(), value.to_value());
    }

    /// Value of an output as it leaves with this cycle.
    #[must_use]
    pub fn sent<T: SignalValue>(&self, output: Output<T>) -> T {
        self.value(output.at())
    }

    /// True if its SubDevice took the output in the cycle before.
    #[must_use]
    pub fn is_taken<T>(&self, output: Output<T>) -> bool {
        self.signals.value(output.at()).is_some_and(|it| it.fresh)
    }

    /// True while the signal is forced from outside.
    #[must_use]
    pub fn is_forced(&self, signal: impl Handle) -> bool {
        self.signals.value(signal.at()).is_some_and(|it| it.forced)
    }

    /// Validity of the command from outside in this cycle.
    #[must_use]
    pub fn freshness(&self) -> Freshness {
        self.signals.freshness()
    }

    /// Outputs set since the start to impossible values.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.signals.counters()
    }

    /// Report of the axis with this index, if there is one.
    #[must_use]
    pub fn axis(&self, index: usize) -> Option<&AxisReport> {
        self.reports.get(index)
    }

    /// Reports of all axes, in their order.
    #[must_use]
    pub fn axes(&self) -> &[AxisReport] {
        self.reports
    }

    /// Commands of all axes, in their order, as of the cycle before.
    #[must_use]
    pub fn commands(&mut self) -> &mut [AxisCommand] {
        self.commands
    }

    /// Reports and commands of all axes, in their order.
    #[must_use]
    pub fn split(&mut self) -> (&[AxisReport], &mut [AxisCommand]) {
        (self.reports, self.commands)
    }

    /// The same cycle with other reports, for a controller within a controller.
    #[must_use]
    pub fn with_axes<'b>(&'b mut self, reports: &'b [AxisReport]) -> Io<'b> {
        Io { signals: self.signals, reports, commands: self.commands }
    }

    /// Command for the axis with this index, if there is one.
    #[must_use]
    pub fn command(&mut self, index: usize) -> Option<&mut AxisCommand> {
        self.commands.get_mut(index)
    }

    /// Values of all elements as they came in last.
    #[must_use]
    pub fn get_all<T: SignalValue, const N: usize>(&self, inputs: [Input<T>; N]) -> [T; N] {
        inputs.map(|input| self.get(input))
    }

    /// Sets all elements, each as [`Io::set`] does.
    pub fn set_all<T: SignalValue, const N: usize>(&mut self, outputs: [Output<T>; N], values: [T; N]) {
        outputs.into_iter().zip(values).for_each(|(output, value)| self.set(output, value));
    }

    /// Values of so many elements as `values` has space for, the first ones first; returns their
    /// number.
    pub fn get_slice<T: SignalValue>(&self, inputs: &[Input<T>], values: &mut [T]) -> usize {
        let pairs = values.iter_mut().zip(inputs);
        pairs.map(|(value, input)| *value = self.get(*input)).count()
    }

    /// Sets so many elements as there are values, each as [`Io::set`] does; the others stay as they
    /// are.
    pub fn set_slice<T: SignalValue>(&mut self, outputs: &[Output<T>], values: &[T]) {
        outputs.iter().zip(values).for_each(|(output, value)| self.set(*output, *value));
    }

    /// Values, in the order of the signals.
    pub(crate) fn signals(&self) -> impl Iterator<Item = SignalState> + '_ {
        self.signals.states()
    }

    /// Sets the output at this place, as [`Io::set`] does.
    pub(crate) fn set_at(&mut self, place: usize, value: Value) {
        self.signals.set(place, value);
    }

    fn value<T: SignalValue>(&self, place: usize) -> T {
        self.signals.value(place).map_or_else(T::default, |it| T::from_value(it.value))
    }
}
