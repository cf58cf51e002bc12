//! Signals of entries that have no name in the file.
//!
//! Outputs that are no signal's to write: a part of the robot writes them, or they bound an axis.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use ethercat::cia402::object;
use ethercat::main_device::StartupSdo;
use ethercat::pdo::{Direction, PdoEntry, PdoField, PdoMapping};
use types::signal::{Flow, OutputBehaviour};
use types::{Signal, ValueType};

use super::value::default_type;
use super::{Checked, SignalPlace, place_of};
use crate::error::Problem;
use crate::model::{RobotConfig, profile_objects};

/// Adds every entry without a name in the file: by its own name if that is unique in its SubDevice,
/// else by its object. An entry wider than a number is added as its bytes, `[0]` and up.
pub(super) fn add<'a>(
    robot: &RobotConfig,
    mapping: &impl Fn(usize) -> Option<&'a PdoMapping>,
    owners: &Owners,
    taken: &HashMap<SignalPlace, String>,
    signals: &mut Vec<Signal>,
) -> Checked<()> {
    let named: HashSet<String> = signals.iter().map(|signal| signal.name.clone()).collect();
    let mut names = named.clone();
    for (sub_device, described) in robot.bus.sub_devices.iter().enumerate() {
        let Some(mapping) = mapping(sub_device) else { continue };
        let mut times: HashMap<&str, usize> = HashMap::new();
        let both = || [Direction::Input, Direction::Output].into_iter();
        for (entry, _) in both().flat_map(|direction| mapping.entries(direction)) {
            *times.entry(entry.name.trim()).or_default() += 1;
        }
        for direction in both() {
            let output = direction == Direction::Output;
            for (entry, field) in mapping.entries(direction) {
                let is_free = |part: &PdoField| !taken.contains_key(&(sub_device, output, part.bit_offset));
                if entry.index == 0 {
                    continue;
                }
                let own = entry.name.trim();
                let object = format!("{:#06x}:{:02x}", entry.index, entry.sub_index);
                let is_own = times.get(own) == Some(&1) && !own.is_empty();
                let of_entry = format!("{}.{}", described.name, if is_own { own } else { &object });
                let owner = owners.writer(sub_device, field).or(owners.limited(sub_device, field));
                for (at, (part, value_type)) in parts(entry, field).into_iter().enumerate() {
                    if !is_free(&part) {
                        continue;
                    }
                    let element = if value_type.is_some() { String::new() } else { format!("[{at}]") };
                    let mut name = format!("{of_entry}{element}");
                    if named.contains(&name) {
                        let found = format!(
                            "signal \"{name}\", which is the name of {entry} of \"{}\"",
                            described.name
                        );
                        let remedy = "give it another name";
                        return Err(Problem::new(place_of(robot, &name), found, "a separate name", remedy));
                    }
                    if !names.insert(name.clone()) {
                        name = format!("{}.{object} ({direction}){element}", described.name);
                        names.insert(name.clone());
                    }
                    let flow = match owner {
                        _ if !output => Flow::Input,
                        Some(writer) => Flow::Taken(writer.to_owned()),
                        None => Flow::Output(OutputBehaviour::default()),
                    };
                    signals.push(Signal {
                        name,
                        sub_device,
                        bit_offset: part.bit_offset,
                        value_type: value_type.unwrap_or(ValueType::Unsigned(part.bit_length as u8)),
                        unit: String::new(),
                        scaling: None,
                        range: None,
                        flow,
                    });
                }
            }
        }
    }
    Ok(())
}

/// The entry as a number, with its type; one of more than 64 bits as its bytes, of which the last
/// may be a part.
fn parts(entry: &PdoEntry, field: PdoField) -> Vec<(PdoField, Option<ValueType>)> {
    match field.bit_length {
        0 => Vec::new(),
        1..=64 => vec![(field, Some(default_type(entry)))],
        bits => (0..bits)
            .step_by(8)
            .map(|bit| {
                let bit_length = (bits - bit).min(8);
                (PdoField { bit_offset: field.bit_offset + bit, bit_length }, None)
            })
            .collect(),
    }
}

/// Outputs with their writers.
pub(super) struct Owners {
    writers: Vec<Owned>,
    limits: Vec<Owned>,
}

/// SubDevice, bits of its outputs, and the part of the robot they belong to.
type Owned = (usize, Range<usize>, String);

impl Owners {
    /// Owners in the known process data of `robot`. Every object that moves an axis belongs to the
    /// axis, even one that stays at zero, such as an offset: otherwise it would bypass the limits.
    pub(super) fn of<'a>(robot: &RobotConfig, mapping: impl Fn(usize) -> Option<&'a PdoMapping>) -> Self {
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
            let others = || robot.axes.iter().filter(|other| other.sub_device == axis.sub_device);
            for (entry, field) in mapping.entries(Direction::Output) {
                let number = object::axis_of(entry.index);
                let whose = others().find(|other| number == Some(other.drive_axis));
                // The first axis keeps the objects of unused axes at zero.
                if whose.or(others().next()).is_none_or(|whose| whose.name != axis.name) {
                    continue;
                }
                let startup = &robot.bus.sub_devices[axis.sub_device].startup;
                if StartupSdo::leave_the_brake_alone(startup, entry, mapping) {
                    continue;
                }
                let makes_its_way = whose.is_some_and(|whose| {
                    let index = object::of_first_axis(entry.index);
                    let mut modes = std::iter::once(&whose.mode).chain(&whose.modes);
                    modes.any(|&mode| profile_objects(mode).iter().any(|&(object, _)| object == index))
                });
                if object::moves(entry.index) || makes_its_way {
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
