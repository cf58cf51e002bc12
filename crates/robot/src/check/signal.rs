//! Checks of signals: names for entries of the process data.

mod behaviour;
mod entry;
mod unnamed;
mod value;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use ethercat::main_device::Presence;
use ethercat::pdo::{Direction, PdoEntry, PdoField, PdoMapping};
use types::near::nearest;
use types::signal::Flow;
use types::{Signal, ValueType};

pub(crate) use self::entry::names;
use self::unnamed::Owners;
use super::{Checked, readable_name};
use crate::error::{FileError, Problem};
use crate::model::{Bus, NamedSignal, RobotConfig, Signals};
use crate::value::Spanned;

/// An entry, and where it lies.
struct FoundEntry<'a> {
    direction: Direction,
    entry: Cow<'a, PdoEntry>,
    field: PdoField,
}

/// Checks of what needs no process data.
pub(super) fn named(entries: &[NamedSignal], bus: &Bus) -> Checked<()> {
    let mut taken = HashSet::new();
    for entry in entries {
        readable_name(&entry.name)?;
        for name in names(entry)? {
            if !taken.insert(name.clone()) {
                let found = format!("a second signal \"{name}\"");
                let remedy = "give it another name";
                return Err(Problem::new(entry.name.span(), found, "every name once", remedy));
            }
        }
        let name = entry.name.get_ref();
        position(entry, bus)?;
        if entry.entry.is_some() == entry.channel.is_some() {
            let found = match entry.entry {
                Some(_) => format!("signal \"{name}\" with both entry and channel"),
                None => format!("signal \"{name}\" without entry and channel"),
            };
            let expected = "entry = { index, sub_index }, or channel = 1 and up";
            return Err(Problem::new(entry.name.span(), found, expected, "give one of the two"));
        }
        entry.value_type.as_ref().map(value::named_type).transpose()?;
        if let Some(unit) = &entry.unit {
            readable_name(unit)?;
        }
        behaviour::never_held(entry)?;
    }
    Ok(())
}

/// Signals of `robot` with known process data.
pub(crate) fn signals<'a>(
    robot: &RobotConfig,
    mapping: impl Fn(usize) -> Option<&'a PdoMapping>,
) -> Checked<Vec<Signal>> {
    let owners = Owners::of(robot, &mapping);
    let mut signals = Vec::new();
    let mut taken: HashMap<SignalPlace, String> = HashMap::new();
    for entry in &robot.signals.named {
        let sub_device = position(entry, &robot.bus)?;
        let Some(mapping) = mapping(sub_device) else { continue };
        let names = names(entry)?;
        let samples = robot.bus.sub_devices[sub_device].oversampling.as_ref().map_or(1, |it| it.samples);
        undescribed(entry, sub_device, mapping, robot)?;
        let all = entry::find_all(entry, names.len(), mapping, samples)?;
        for (name, found) in names.into_iter().zip(all) {
            let output = found.direction == Direction::Output;
            let bits = found.field.bit_offset..found.field.bit_offset + found.field.bit_length;
            let places = bits.map(|bit| (sub_device, output, bit));
            if found.direction == Direction::Output {
                let writer = owners.writer(sub_device, found.field).map(str::to_owned);
                let other = places.clone().find_map(|place| taken.get(&place));
                let writer = writer.or_else(|| other.map(|other| format!("signal \"{other}\"")));
                if let Some(writer) = writer {
                    let found =
                        format!("signal \"{name}\" on the output {}, which {writer} writes", found.entry);
                    let expected = "one writer for each output";
                    return Err(Problem::new(entry.place(), found, expected, "remove one of the two"));
                }
            }
            taken.extend(places.map(|place| (place, name.clone())));
            let limited = owners.limited(sub_device, found.field).filter(|_| output);
            signals.push(signal(entry, name, sub_device, &found, limited)?);
        }
    }
    measured(robot, &signals)?;
    unnamed::add(robot, &mapping, &owners, &taken, &mut signals)?;
    Ok(signals)
}

/// Refuses a signal of a SubDevice that may be absent and has no known process data.
fn undescribed(
    entry: &NamedSignal,
    position: usize,
    mapping: &PdoMapping,
    robot: &RobotConfig,
) -> Checked<()> {
    let may_be_absent = robot.bus.sub_devices[position].presence != Presence::Required;
    let has_any =
        [Direction::Output, Direction::Input].iter().any(|&it| mapping.entries(it).next().is_some());
    if has_any || !may_be_absent {
        return Ok(());
    }
    let (name, sub_device) = (entry.name.get_ref(), entry.sub_device.get_ref());
    let found = format!("signal \"{name}\" on \"{sub_device}\", of which no process data is known");
    let expected = "the pdos of a SubDevice that may be absent at the start";
    Err(Problem::new(entry.place(), found, expected, "give it pdos, or start with it plugged"))
}

/// Checks that sensors measure: that their signals are numbers, and inputs.
fn measured(robot: &RobotConfig, signals: &[Signal]) -> Checked<()> {
    for sensor in &robot.sensors {
        for signal in signals.iter().filter(|signal| sensor.signals.contains(&signal.name)) {
            let what = match signal.flow {
                Flow::Input if signal.value_type == ValueType::Bool => "one bit",
                Flow::Input => continue,
                _ => "an output",
            };
            let found =
                format!("signal \"{}\" of the sensor \"{}\", which is {what}", signal.name, sensor.name);
            let place = place_of(robot, &signal.name);
            return Err(Problem::new(place, found, "an input that is a number", "correct the sensor"));
        }
    }
    Ok(())
}

/// Place of the entry of the file that has this name, or gives it to an element.
fn place_of(robot: &RobotConfig, name: &str) -> std::ops::Range<usize> {
    let has = |entry: &&NamedSignal| names(entry).is_ok_and(|names| names.iter().any(|it| it == name));
    robot.signals.named.iter().find(has).map(|entry| entry.name.span()).unwrap_or_default()
}

/// SubDevice, true for its outputs, and a bit of them.
type SignalPlace = (usize, bool, usize);

fn signal(
    entry: &NamedSignal,
    name: String,
    sub_device: usize,
    found: &FoundEntry<'_>,
    limited: Option<&str>,
) -> Checked<Signal> {
    let value_type = value::value_type(entry, found)?;
    let mut signal = Signal {
        name,
        sub_device,
        bit_offset: found.field.bit_offset,
        value_type,
        unit: entry.unit.as_ref().map(|unit| unit.get_ref().clone()).unwrap_or_default(),
        scaling: value::scaling(entry, value_type)?,
        range: None,
        flow: Flow::Input,
    };
    signal.range = value::range(entry, &signal)?;
    signal.flow = behaviour::flow(entry, &signal, found, limited)?;
    Ok(signal)
}

fn position(entry: &NamedSignal, bus: &Bus) -> Checked<usize> {
    let wanted = entry.sub_device.get_ref();
    let names = || bus.sub_devices.iter().map(|it| it.name.as_str());
    names().position(|name| name == wanted).ok_or_else(|| {
        let remedy = nearest(wanted, names())
            .map_or("correct sub_device".to_owned(), |nearest| format!("did you mean \"{nearest}\"?"));
        let found = format!("signal \"{}\" on the unknown SubDevice \"{wanted}\"", entry.name.get_ref());
        Problem::new(entry.sub_device.span(), found, "the name of a SubDevice on the bus", remedy)
    })
}

impl NamedSignal {
    /// Place of its entry or channel.
    fn place(&self) -> std::ops::Range<usize> {
        let entry = self.entry.as_ref().map(Spanned::span);
        entry.or(self.channel.as_ref().map(Spanned::span)).unwrap_or_else(|| self.name.span())
    }

    /// Place of its elements.
    fn elements_place(&self) -> std::ops::Range<usize> {
        self.elements.as_ref().map_or_else(|| self.place(), Spanned::span)
    }
}

impl RobotConfig {
    /// Signals, the named ones first, then every other entry as `sub_device.entry`. `mapping` gives
    /// the process data of the SubDevice at a position; where that is not known yet its signals are
    /// left out.
    ///
    /// # Errors
    /// A named signal that is not in the process data, does not fit its entry, or is an output that
    /// has a writer.
    pub fn signals<'a>(
        &self,
        mapping: impl Fn(usize) -> Option<&'a PdoMapping>,
    ) -> Result<Vec<Signal>, FileError> {
        let Signals { text, file, .. } = &self.signals;
        signals(self, mapping).map_err(|problem| FileError::at(text, file, problem))
    }

    /// True if the robot file gives a signal this name.
    #[must_use]
    pub fn names_signal(&self, name: &str) -> bool {
        let names = self.signals.named.iter().filter_map(|signal| names(signal).ok());
        names.flatten().any(|named| named == name)
    }
}
