//! Outputs that a part of the robot writes by itself.

use std::ops::Range;

use ethercat::cia402::object::{
    CONTROLWORD, MODES_OF_OPERATION, TARGET_POSITION, TARGET_TORQUE, TARGET_VELOCITY,
};
use ethercat::pdo::{PdoField, PdoMapping};

use crate::model::Robot;

/// Objects by which a drive is driven.
pub(super) const DRIVEN: [u16; 5] =
    [CONTROLWORD, TARGET_POSITION, TARGET_VELOCITY, TARGET_TORQUE, MODES_OF_OPERATION];

/// Outputs with their writers.
pub(super) struct Owners(Vec<(usize, Range<usize>, String)>);

impl Owners {
    /// Those of `robot` in the process data that is known.
    pub(super) fn of<'a>(robot: &Robot, mapping: impl Fn(usize) -> Option<&'a PdoMapping>) -> Self {
        let mut owners = Vec::new();
        let bits = |field: PdoField| field.bit_offset..field.bit_offset + field.bit_length;
        for axis in &robot.axes {
            let written = mapping(axis.sub_device)
                .into_iter()
                .flat_map(|mapping| DRIVEN.into_iter().filter_map(move |index| mapping.output(index, 0)));
            owners.extend(
                written.map(|field| (axis.sub_device, bits(field), format!("axis \"{}\"", axis.name))),
            );
            let output = axis.brake.and_then(|brake| brake.output);
            owners.extend(output.and_then(|output| {
                let field =
                    mapping(output.sub_device)?.digital_outputs().nth(output.channel.checked_sub(1)?)?;
                Some((output.sub_device, bits(field), format!("the brake of axis \"{}\"", axis.name)))
            }));
        }
        Self(owners)
    }

    /// Writer of this output.
    pub(super) fn writer(&self, sub_device: usize, field: PdoField) -> Option<&str> {
        let end = field.bit_offset + field.bit_length;
        let mut owners = self.0.iter();
        let owner = owners.find(|(position, bits, _)| {
            *position == sub_device && bits.start < end && field.bit_offset < bits.end
        });
        owner.map(|(_, _, writer)| writer.as_str())
    }
}
