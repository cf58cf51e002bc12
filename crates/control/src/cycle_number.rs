//! The number of the cycle on digital outputs: what an observer outside tells cycles apart by.

use ethercat::main_device::MainDevice;
use thiserror::Error;

/// Most bytes of a number: more bits than an observer needs to see what is missing.
const LONGEST: usize = 4;

/// Checks that the SubDevices at `positions` can carry the number of the cycle.
/// [`crate::cycle::Cycle::with_cycle_numbers`] asks the same; ask here first to still have the bus in hand if the
/// answer is no.
///
/// # Errors
/// The first that cannot.
pub fn check(positions: &[usize], main_device: &MainDevice) -> Result<(), CycleNumberError> {
    CycleNumbers::bind(positions, main_device).map(drop)
}

/// SubDevices whose outputs carry the low bits of the cycle's number, lowest first: the first output changes with every
/// cycle. At most 32 bits of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CycleNumbers {
    positions: Vec<usize>,
}

impl CycleNumbers {
    pub(crate) fn bind(positions: &[usize], main_device: &MainDevice) -> Result<Self, CycleNumberError> {
        let sub_devices = main_device.sub_devices();
        for &position in positions {
            let Some(sub_device) = sub_devices.get(position) else {
                return Err(CycleNumberError::NoSubDevice { position, found: sub_devices.len() });
            };
            if sub_device.output_bytes() == 0 {
                return Err(CycleNumberError::NoOutputs { position, name: sub_device.name.clone() });
            }
        }
        Ok(Self { positions: positions.to_vec() })
    }

    pub(crate) fn write(&self, main_device: &mut MainDevice, cycle: u64) {
        for &position in &self.positions {
            let image = main_device.outputs_mut(position);
            let length = image.len().min(LONGEST);
            image[..length].copy_from_slice(&cycle.to_le_bytes()[..length]);
        }
    }
}

/// Why a SubDevice cannot carry the number of the cycle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CycleNumberError {
    /// It is not there.
    #[error("SubDevice {position} is to carry the number of the cycle, but the bus has {found} SubDevice{}", if *found == 1 { "" } else { "s" })]
    NoSubDevice {
        /// Its place, from 0.
        position: usize,
        /// SubDevices there are.
        found: usize,
    },
    /// It has no outputs.
    #[error(
        "SubDevice {position} \"{name}\" is to carry the number of the cycle, expected digital outputs, found none; \
         take cycle_number from it"
    )]
    NoOutputs {
        /// Its place, from 0.
        position: usize,
        /// Its name.
        name: String,
    },
}
