//! Signals of several elements: arrays, byte strings, samples taken several times a cycle.

use types::signal::{Flow, is_element};

use super::{Input, Output, SignalError, SignalValue, Signals};

impl Signals {
    /// All `N` elements of this input, as values of type `T`; each is also a separate signal,
    /// `NAME[0]` or `NAME.ELEMENT`.
    ///
    /// # Errors
    /// A name without so many elements, or the errors of [`Signals::input`].
    pub fn inputs<T: SignalValue, const N: usize>(&self, name: &str) -> Result<[Input<T>; N], SignalError> {
        let handles: Result<Vec<_>, _> = self.elements(name, true)?.map(|it| self.input(it)).collect();
        handles?.try_into().map_err(|found: Vec<_>| count(name, found.len(), N))
    }

    /// All elements of this input, however many the robot file says; [`Io::get_slice`] reads them.
    ///
    /// [`Io::get_slice`]: crate::controller::Io::get_slice
    ///
    /// # Errors
    /// A name without elements, or the errors of [`Signals::input`].
    pub fn input_slice<T: SignalValue>(&self, name: &str) -> Result<Vec<Input<T>>, SignalError> {
        let handles: Vec<_> =
            self.elements(name, true)?.map(|it| self.input(it)).collect::<Result<_, _>>()?;
        if handles.is_empty() { Err(count(name, 0, 1)) } else { Ok(handles) }
    }

    /// All `N` elements of this output, as values of type `T`.
    ///
    /// # Errors
    /// As [`Signals::inputs`], and one that a part of the robot writes.
    pub fn outputs<T: SignalValue, const N: usize>(
        &self,
        name: &str,
    ) -> Result<[Output<T>; N], SignalError> {
        let handles: Result<Vec<_>, _> = self.elements(name, false)?.map(|it| self.output(it)).collect();
        handles?.try_into().map_err(|found: Vec<_>| count(name, found.len(), N))
    }

    /// All elements of this output, however many the robot file says; [`Io::set_slice`] sets them.
    ///
    /// [`Io::set_slice`]: crate::controller::Io::set_slice
    ///
    /// # Errors
    /// As [`Signals::input_slice`], and an output that a part of the robot writes.
    pub fn output_slice<T: SignalValue>(&self, name: &str) -> Result<Vec<Output<T>>, SignalError> {
        let handles: Vec<_> =
            self.elements(name, false)?.map(|it| self.output(it)).collect::<Result<_, _>>()?;
        if handles.is_empty() { Err(count(name, 0, 1)) } else { Ok(handles) }
    }

    /// Names of the elements, in their order; none of a signal of one value.
    fn elements<'a>(
        &'a self,
        name: &'a str,
        input: bool,
    ) -> Result<impl Iterator<Item = &'a str>, SignalError> {
        // A name without elements: the error of one.
        if self.counted(name, input) == 0 {
            self.find(name, input)?;
        }
        Ok(self.all(input).filter(move |it| is_element(name, it)))
    }

    /// Number of elements of this name.
    pub(super) fn counted(&self, name: &str, input: bool) -> usize {
        self.all(input).filter(|it| is_element(name, it)).count()
    }

    /// Names of all inputs, or outputs.
    fn all(&self, input: bool) -> impl Iterator<Item = &str> {
        let wanted = self.signals.iter().filter(move |signal| (signal.flow == Flow::Input) == input);
        wanted.map(|signal| signal.name.as_str())
    }
}

pub(super) fn count(name: &str, found: usize, wanted: usize) -> SignalError {
    SignalError::Elements { name: name.to_owned(), found, wanted }
}
