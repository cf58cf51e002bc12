//! The brake of an axis in the process image: its output, and the inputs of its feedback.

use ethercat::main_device::MainDevice;
use ethercat::pdo::PdoField;
use motion::brake::{Brake, BrakeCause, BrakeReading, Braked, InputReading};
use types::state::BrakeInput;
use types::{DigitalOutput, FeedbackInput};

use super::{AxisConfiguration, AxisError};
use crate::controller::BrakeInputCause;
use crate::digital_input::DigitalInput;
use crate::signal::Moment;

/// A brake, bound.
#[derive(Debug)]
pub(super) struct BoundBrake {
    pub(super) brake: Brake,
    /// Its wish in this cycle.
    pub(super) now: Braked,
    /// Feedback of this cycle.
    pub(super) reading: BrakeReading,
    output: Option<BrakeOutput>,
    released: Option<BoundInput>,
    closed: Option<BoundInput>,
    /// Place of its first input among the inputs of all brakes.
    first_input: usize,
}

/// An input of the feedback; inverted: it is on while it is low.
#[derive(Debug)]
struct BoundInput {
    input: DigitalInput,
    inverted: bool,
}

impl BoundBrake {
    /// The brake of an axis, if it has one.
    pub(super) fn bind(
        configuration: &AxisConfiguration,
        main_device: &MainDevice,
    ) -> Result<Option<Self>, AxisError> {
        let Some(it) = configuration.brake else { return Ok(None) };
        let output = BrakeOutput::bind(configuration, main_device)?;
        let input = |name: BrakeInput, input: Option<FeedbackInput>| {
            let bind = |input| BoundInput::bind(name, input, configuration, main_device);
            input.map(bind).transpose()
        };
        let brake = Brake::new(it.times);
        let mut bound = Self {
            brake: if output.is_none() { brake.by_drive() } else { brake },
            now: Braked { power: false, free: false, keep_torque: false },
            reading: BrakeReading::default(),
            output,
            released: input(BrakeInput::Released, it.feedback.released)?,
            closed: input(BrakeInput::Closed, it.feedback.closed)?,
            first_input: 0,
        };
        bound.note_reading();
        Ok(Some(bound))
    }

    /// Reads its feedback from the process data of this cycle.
    pub(super) fn read(&mut self, main_device: &MainDevice, moment: Moment) {
        for it in [&mut self.released, &mut self.closed].into_iter().flatten() {
            it.input.look(main_device, moment);
        }
        self.note_reading();
    }

    fn note_reading(&mut self) {
        let reading = |it: &Option<BoundInput>| it.as_ref().map(BoundInput::reading);
        self.reading = BrakeReading { released: reading(&self.released), closed: reading(&self.closed) };
    }

    /// Input that shows its fault.
    pub(super) fn cause(&self) -> Option<BrakeInputCause> {
        let BrakeCause { input, level } = self.brake.fault()?.cause;
        let behind = input == BrakeInput::Closed && self.released.is_some();
        Some(BrakeInputCause { place: self.first_input + usize::from(behind), level })
    }

    /// Numbers its inputs from `first`, and returns the number of the next.
    pub(super) fn number_inputs(&mut self, first: usize) -> usize {
        self.first_input = first;
        first + usize::from(self.released.is_some()) + usize::from(self.closed.is_some())
    }

    /// Power to its coil, or not.
    pub(super) fn write(&self, main_device: &mut MainDevice) {
        if let Some(output) = self.output {
            output.write(main_device, self.now.power);
        }
    }

    /// Output that holds the brake open: place of the SubDevice, and field.
    pub(super) fn output(&self) -> Option<(usize, PdoField)> {
        self.output.map(|output| (output.sub_device, output.field))
    }
}

impl BoundInput {
    fn bind(
        name: BrakeInput,
        wanted: FeedbackInput,
        configuration: &AxisConfiguration,
        main_device: &MainDevice,
    ) -> Result<Self, AxisError> {
        let FeedbackInput { sub_device: position, channel, inverted } = wanted;
        let missing = |found| AxisError::NoBrakeInput {
            axis: configuration.name.clone(),
            input: name,
            position,
            channel,
            found,
        };
        let input = DigitalInput::bind(main_device, position, channel).map_err(missing)?;
        Ok(Self { input, inverted })
    }

    fn reading(&self) -> InputReading {
        InputReading { level: self.input.level(), inverted: self.inverted }
    }
}

/// The digital output that gives a brake's coil power, found in the process image.
#[derive(Clone, Copy, Debug)]
struct BrakeOutput {
    sub_device: usize,
    field: PdoField,
}

impl BrakeOutput {
    fn bind(
        configuration: &AxisConfiguration,
        main_device: &MainDevice,
    ) -> Result<Option<Self>, AxisError> {
        let Some(output) = configuration.brake.and_then(|brake| brake.output) else { return Ok(None) };
        let DigitalOutput { sub_device: position, channel } = output;
        let sub_device = main_device.sub_devices().get(position);
        let field = sub_device.and_then(|it| {
            let field = it.mapping.digital_outputs().nth(channel.checked_sub(1)?)?;
            field.within(32, it.output_bytes())
        });
        let missing = || AxisError::NoBrakeOutput {
            axis: configuration.name.clone(),
            position,
            channel,
            found: sub_device.map_or(0, |it| it.mapping.digital_outputs().count()),
        };
        Ok(Some(Self { sub_device: position, field: field.ok_or_else(missing)? }))
    }

    fn write(self, main_device: &mut MainDevice, power: bool) {
        self.field.write(main_device.outputs_mut(self.sub_device), power.into());
    }
}
