//! `[[signal]]`: the channels of a terminal by name.

use std::collections::HashSet;

use ethercat::pdo::{Direction, Pdo, PdoEntry, PdoMapping};
use types::ValueType;
use types::object::ObjectType;

use super::found::Found;
use super::text::{quoted, row, shown};

/// Longest name of a channel, so that with the SubDevice's name it fits a signal.
const LONGEST: usize = 24;

/// Signals of the SubDevice that has this name: one for each channel. Oversampling terminals have
/// theirs by their objects alone.
pub(super) fn rows(found: &Found, name: &str) -> String {
    if !found.samples.is_empty() {
        return String::new();
    }
    let both = [Direction::Input, Direction::Output];
    let mut names = both.map(|direction| names(&found.mapping, direction));
    let two_ways = names.iter().all(|it| !it.is_empty());
    if names[0].iter().any(|it| names[1].contains(it)) {
        for (direction, names) in both.iter().zip(&mut names) {
            names.iter_mut().for_each(|it| *it = format!("{direction} {it}"));
        }
    }
    let rows = |(direction, names)| of_direction(&found.mapping, direction, name, names, two_ways);
    both.into_iter().zip(names).map(rows).collect()
}

fn of_direction(
    mapping: &PdoMapping,
    direction: Direction,
    name: &str,
    names: Vec<String>,
    two_ways: bool,
) -> String {
    let mut rows = String::new();
    for (number, ((entry, _), channel)) in mapping.channels(direction).zip(names).enumerate() {
        if !(1..=64).contains(&entry.bit_length) {
            continue;
        }
        let bits = if entry.bit_length == 1 { "bit" } else { "bits" };
        let object = format!("0x{:04X}:{:02X} {}", entry.index, entry.sub_index, shown(&entry.name));
        rows += "\n[[signal]]\n";
        rows += &format!("name = {}\nsub_device = \"{name}\"\n", quoted(&format!("{name} {channel}")));
        rows += &row(
            &format!("channel = {}", number + 1),
            &format!("{}, {} {bits}", object.trim_end(), entry.bit_length),
        );
        if two_ways {
            rows += &format!("direction = \"{direction}\"\n");
        }
        if let Some(value_type) = value_type(entry) {
            rows += &format!("type = \"{value_type}\"\n");
        }
        if direction == Direction::Output {
            rows +=
                &row("writer = \"outside\"", "`onbeat io set`, ROS 2, Python; remove it for a controller");
        }
    }
    rows
}

/// Names of the channels: of their entries, of their PDOs, or numbers, whichever distinguishes
/// them.
fn names(mapping: &PdoMapping, direction: Direction) -> Vec<String> {
    let channels: Vec<_> = mapping.channels(direction).collect();
    let pdos = match direction {
        Direction::Input => &mapping.inputs,
        Direction::Output => &mapping.outputs,
    };
    let short = |name: String| name.chars().take(LONGEST).collect::<String>().trim_end().to_owned();
    let of_entries = channels.iter().map(|(entry, _)| short(shown(&entry.name))).collect();
    let of_pdos = channels.iter().map(|(entry, _)| short(pdo_name(pdos, entry))).collect();
    let numbers = (1..=channels.len()).map(|number| format!("{direction} {number}")).collect();
    let tells_apart = |names: &Vec<String>| {
        let distinct: HashSet<&String> = names.iter().filter(|it| !it.is_empty()).collect();
        distinct.len() == names.len()
    };
    [of_entries, of_pdos].into_iter().find(tells_apart).unwrap_or(numbers)
}

/// Name of the PDO of an entry; of "AI TxPDO-Map Channel 1" the end.
fn pdo_name(pdos: &[Pdo], entry: &PdoEntry) -> String {
    let has = |pdo: &&Pdo| pdo.entries.iter().any(|it| std::ptr::eq(it, entry));
    let name = pdos.iter().find(has).map(|pdo| shown(&pdo.name)).unwrap_or_default();
    name.split_once("PDO-Map")
        .map(|(_, end)| end.trim().to_owned())
        .filter(|it| !it.is_empty())
        .unwrap_or(name)
}

/// Type of an entry, if it is a number of a type that is known.
fn value_type(entry: &PdoEntry) -> Option<ValueType> {
    let value_type = match ObjectType::from_data_type(entry.data_type)? {
        ObjectType::Signed(bytes) => ValueType::Signed(8 * bytes),
        ObjectType::Unsigned(bytes) => ValueType::Unsigned(8 * bytes),
        ObjectType::Float => ValueType::Float,
        ObjectType::Double => ValueType::Double,
        ObjectType::Bool | ObjectType::Text | ObjectType::Octets => return None,
    };
    (entry.bit_length > 1 && value_type.bits() == entry.bit_length).then_some(value_type)
}
