//! Process data by type: handles resolved once, values read and written in every cycle.

use crate::pdo::{Direction, Field, FieldError, ProcessValue};

use super::{MainDevice, SubDevice};

/// An input of one SubDevice: [`SubDevice::input`] resolves it, [`MainDevice::get`] reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Input<T> {
    position: u16,
    field: Field<T>,
}

/// An output of one SubDevice: [`SubDevice::output`] resolves it, [`MainDevice::set`] writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Output<T> {
    position: u16,
    field: Field<T>,
}

impl<T: ProcessValue> Input<T> {
    /// Place of its SubDevice, from 0.
    #[must_use]
    pub fn position(self) -> usize {
        self.position.into()
    }

    /// Its place among the SubDevice's inputs.
    #[must_use]
    pub fn field(self) -> Field<T> {
        self.field
    }
}

impl<T: ProcessValue> Output<T> {
    /// Place of its SubDevice, from 0.
    #[must_use]
    pub fn position(self) -> usize {
        self.position.into()
    }

    /// Its place among the SubDevice's outputs.
    #[must_use]
    pub fn field(self) -> Field<T> {
        self.field
    }
}

impl SubDevice {
    /// Resolves the input object `index`:`sub_index`; from PreOp on, when its PDOs are known. The
    /// handle is valid as long as the bus does not change.
    ///
    /// # Errors
    /// An object that is not mapped, or is an output, or that `T` does not fit.
    pub fn input<T: ProcessValue>(&self, index: u16, sub_index: u8) -> Result<Input<T>, FieldError> {
        let field = self.mapping.field(Direction::Input, index, sub_index)?;
        Ok(Input { position: self.position, field })
    }

    /// Resolves the output object `index`:`sub_index`; see [`SubDevice::input`].
    ///
    /// # Errors
    /// An object that is not mapped, or is an input, or that `T` does not fit.
    pub fn output<T: ProcessValue>(&self, index: u16, sub_index: u8) -> Result<Output<T>, FieldError> {
        let field = self.mapping.field(Direction::Output, index, sub_index)?;
        Ok(Output { position: self.position, field })
    }
}

impl MainDevice {
    /// The value of an input as it came in last; [`MainDevice::inputs_fresh`] is true if that was
    /// in the last cycle. Zero for a handle of another bus that does not fit this one.
    #[must_use]
    pub fn get<T: ProcessValue>(&self, input: Input<T>) -> T {
        input.field.get(self.inputs(input.position()))
    }

    /// Sets an output for the next cycles, until it is set again. An integer beyond the range of
    /// the entry becomes the nearest value in range.
    pub fn set<T: ProcessValue>(&mut self, output: Output<T>, value: T) {
        output.field.set(self.outputs_mut(output.position()), value);
    }
}
