//! Outputs that belong to an axis: no other signal may write them.

use ethercat::cia402::object;
use ethercat::main_device::{MainDevice, StartupSdo};
use ethercat::pdo::{Direction, PdoEntry, PdoField, PdoMapping};
use types::Signal;
use types::signal::Flow;

use super::common_bits;
use super::error::{OwnedError, Ownership};

/// Outputs of the axes.
#[derive(Debug, Default)]
pub(crate) struct OwnedOutputs {
    /// Places of their drives.
    pub(crate) drives: Vec<usize>,
    /// Outputs of their brakes: place of the SubDevice, and field.
    pub(crate) brakes: Vec<(usize, PdoField)>,
}

impl OwnedOutputs {
    /// Checks that a signal at this field writes nothing that an axis writes or that bounds one. A
    /// fixed value may bound it.
    pub(super) fn check(
        &self,
        signal: &Signal,
        field: PdoField,
        main_device: &MainDevice,
    ) -> Result<(), OwnedError> {
        if matches!(signal.flow, Flow::Input | Flow::Taken(_)) {
            return Ok(());
        }
        let is_fixed = matches!(signal.flow, Flow::Fixed(_));
        let position = signal.sub_device;
        let Some(mapping) = main_device.sub_devices().get(position).map(|it| &it.mapping) else {
            return Ok(());
        };
        let configured = main_device.configuration().sub_devices.as_ref();
        let startup = configured.and_then(|it| it.get(position)).map_or(&[][..], |it| &it.startup);
        let is_brake =
            |&(at, brake): &(usize, PdoField)| at == position && common_bits(brake, field).is_some();
        let has_brake = self.brakes.iter().any(is_brake);
        let is_drive = self.drives.contains(&position);
        for (entry, other) in mapping.entries(Direction::Output) {
            let Some(common) = common_bits(other, field) else { continue };
            let ownership = match of_drive(entry, common, mapping, startup).filter(|_| is_drive) {
                _ if has_brake => Ownership::Brake,
                Some(Ownership::Limit) if is_fixed => continue,
                Some(ownership) => ownership,
                None => continue,
            };
            return Err(OwnedError {
                name: signal.name.clone(),
                position,
                index: entry.index,
                sub_index: entry.sub_index,
                ownership,
            });
        }
        Ok(())
    }
}

/// Use that an axis has for these bits of an entry of its drive. Of the digital outputs, the first
/// bit alone is a brake, and only where the drive takes it for one.
fn of_drive(
    entry: &PdoEntry,
    bits: u64,
    mapping: &PdoMapping,
    startup: &[StartupSdo],
) -> Option<Ownership> {
    if object::of_first_axis(entry.index) == object::DIGITAL_OUTPUTS {
        let is_brake = bits & 1 != 0 && !StartupSdo::leave_the_brake_alone(startup, entry, mapping);
        return is_brake.then_some(Ownership::Brake);
    }
    if object::moves(entry.index) {
        return Some(Ownership::SetPoint);
    }
    object::limits(entry.index).then_some(Ownership::Limit)
}
