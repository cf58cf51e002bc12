//! A digital input in the process image, which is evaluated in every cycle.

use ethercat::main_device::MainDevice;
use ethercat::pdo::PdoField;
use motion::supervision::BLIND_CYCLES;
use types::state::InputLevel;

use crate::signal::Moment;

/// One digital input, bound.
#[derive(Debug)]
pub(crate) struct DigitalInput {
    sub_device: usize,
    field: PdoField,
    /// Consecutive cycles without the input; `None` before it came for the first time.
    missed: Option<u64>,
    /// Level of the input in its last process data.
    high: bool,
}

impl DigitalInput {
    /// Finds the input `channel`, from 1, of the SubDevice at `position`.
    ///
    /// # Errors
    /// The number of digital inputs it has.
    pub(crate) fn bind(main_device: &MainDevice, position: usize, channel: usize) -> Result<Self, usize> {
        let sub_device = main_device.sub_devices().get(position);
        let field = sub_device.and_then(|it| {
            let field = it.mapping.digital_inputs().nth(channel.checked_sub(1)?)?;
            field.within(32, it.input_bytes())
        });
        let found = || sub_device.map_or(0, |it| it.mapping.digital_inputs().count());
        Ok(Self { sub_device: position, field: field.ok_or_else(found)?, missed: None, high: false })
    }

    /// Reads it from the process data of this cycle.
    pub(crate) fn look(&mut self, main_device: &MainDevice, moment: Moment) {
        if main_device.inputs_fresh(self.sub_device) && !moment.outdated {
            self.high = self.field.read(main_device.inputs(self.sub_device)) != 0;
            self.missed = Some(0);
        } else if let Some(missed) = &mut self.missed {
            *missed = missed.saturating_add(moment.stalled).saturating_add(1);
        }
    }

    /// Its level; lost after more than [`BLIND_CYCLES`] without process data.
    pub(crate) fn level(&self) -> InputLevel {
        match self.missed {
            None => InputLevel::Unknown,
            Some(missed) if missed > BLIND_CYCLES => InputLevel::Lost,
            Some(_) if self.high => InputLevel::High,
            Some(_) => InputLevel::Low,
        }
    }

    /// True once it was read.
    pub(crate) const fn is_read(&self) -> bool {
        self.missed.is_some()
    }

    /// Position of its SubDevice.
    pub(crate) const fn sub_device(&self) -> usize {
        self.sub_device
    }

    /// Its place in the process data.
    pub(crate) const fn field(&self) -> PdoField {
        self.field
    }
}
