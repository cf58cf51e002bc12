//! Outputs that are no signal's to write: a part of the robot writes them, or they bound an axis.

use std::ops::Range;

use ethercat::cia402::object;
use ethercat::pdo::{Direction, PdoField, PdoMapping};

use crate::model::Robot;

/// Outputs with their writers.
pub(super) struct Owners {
    writers: Vec<Owned>,
    limits: Vec<Owned>,
}

/// SubDevice, bits of its outputs, and the part of the robot they belong to.
type Owned = (usize, Range<usize>, String);

impl Owners {
    /// Those of `robot` in the process data that is known. Every object that moves an axis is the axis's, also one that it
    /// leaves at zero, as an offset: past it no limit would hold.
    pub(super) fn of<'a>(robot: &Robot, mapping: impl Fn(usize) -> Option<&'a PdoMapping>) -> Self {
        let (mut writers, mut limits) = (Vec::new(), Vec::new());
        for axis in &robot.axes {
            let output = axis.brake.and_then(|brake| brake.output);
            writers.extend(output.and_then(|output| {
                let field =
                    mapping(output.sub_device)?.digital_outputs().nth(output.channel.checked_sub(1)?)?;
                Some((output.sub_device, bits(field), format!("the brake of axis \"{}\"", axis.name)))
            }));
        }
        for axis in &robot.axes {
            let Some(mapping) = mapping(axis.sub_device) else { continue };
            let of_axis = |field| (axis.sub_device, bits(field), format!("axis \"{}\"", axis.name));
            for (entry, field) in mapping.entries(Direction::Output) {
                if object::moves(entry.index) {
                    writers.push(of_axis(field));
                } else if object::limits(entry.index) {
                    limits.push(of_axis(field));
                }
            }
        }
        Self { writers, limits }
    }

    /// Writer of this output.
    pub(super) fn writer(&self, sub_device: usize, field: PdoField) -> Option<&str> {
        find(&self.writers, sub_device, field)
    }

    /// The axis that this output bounds.
    pub(super) fn limited(&self, sub_device: usize, field: PdoField) -> Option<&str> {
        find(&self.limits, sub_device, field)
    }
}

fn bits(field: PdoField) -> Range<usize> {
    field.bit_offset..field.bit_offset + field.bit_length
}

fn find(owned: &[Owned], sub_device: usize, field: PdoField) -> Option<&str> {
    let wanted = bits(field);
    let mut owned = owned.iter();
    let owner = owned.find(|(position, bits, _)| {
        *position == sub_device && bits.start < wanted.end && wanted.start < bits.end
    });
    owner.map(|(_, _, owner)| owner.as_str())
}
