//! Signals of several elements: arrays, byte strings, samples taken several times a cycle.

use types::signal::Flow;

use super::{Input, Io, Output, SignalError, SignalValue, Signals};

impl Signals {
    /// All `N` elements of this input, as values of type `T`; each is a signal of its own too, `NAME[0]` or `NAME.ELEMENT`.
    ///
    /// # Errors
    /// A name without so many elements, or those of [`Signals::input`].
    pub fn inputs<T: SignalValue, const N: usize>(&self, name: &str) -> Result<[Input<T>; N], SignalError> {
        let found = self.elements(name, true)?;
        let handles: Result<Vec<_>, _> = found.iter().map(|element| self.input(element)).collect();
        handles?.try_into().map_err(|_| count(name, found.len(), N))
    }

    /// All `N` elements of this output, as values of type `T`.
    ///
    /// # Errors
    /// As [`Signals::inputs`], and one that a part of the robot writes.
    pub fn outputs<T: SignalValue, const N: usize>(
        &self,
        name: &str,
    ) -> Result<[Output<T>; N], SignalError> {
        let found = self.elements(name, false)?;
        let handles: Result<Vec<_>, _> = found.iter().map(|element| self.output(element)).collect();
        handles?.try_into().map_err(|_| count(name, found.len(), N))
    }

    /// Names of the elements, in their order.
    fn elements(&self, name: &str, input: bool) -> Result<Vec<&str>, SignalError> {
        let of_it = |element: &str| {
            let rest = element.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('.') || rest.starts_with('[') && rest.ends_with(']'))
        };
        let wanted = self.signals.iter().filter(|signal| (signal.flow == Flow::Input) == input);
        let found: Vec<_> = wanted.map(|signal| signal.name.as_str()).filter(|name| of_it(name)).collect();
        // A name without elements: the error of one.
        if found.is_empty() { self.find(name, input).map(|_| found) } else { Ok(found) }
    }
}

impl Io<'_> {
    /// Values of all elements as they came in last.
    #[must_use]
    pub fn get_all<T: SignalValue, const N: usize>(&self, inputs: [Input<T>; N]) -> [T; N] {
        inputs.map(|input| self.get(input))
    }

    /// Sets all elements, each as [`Io::set`] does.
    pub fn set_all<T: SignalValue, const N: usize>(&mut self, outputs: [Output<T>; N], values: [T; N]) {
        outputs.into_iter().zip(values).for_each(|(output, value)| self.set(output, value));
    }
}

fn count(name: &str, found: usize, wanted: usize) -> SignalError {
    SignalError::Elements { name: name.to_owned(), found, wanted }
}
