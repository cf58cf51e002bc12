//! The entry a signal names.
//!
//! Elements of signals: several values of one kind under one name.

use std::borrow::Cow;

use ethercat::pdo::{Direction, PdoEntry, PdoField, PdoMapping};
use types::ValueType;

use super::super::Checked;
use super::{FoundEntry, value};
use crate::error::Problem;
use crate::field::{Number, is_unseen};
use crate::model::{NamedSignal, SignalEntry};
use crate::value::Spanned;

/// Entries of all elements: an entry that is wider than a number is split into this many parts,
/// else it and the following entries. One number may be several channels of one bit, as its type
/// says.
pub(super) fn find_all<'a>(
    signal: &NamedSignal,
    count: usize,
    mapping: &'a PdoMapping,
    samples: u8,
) -> Checked<Vec<FoundEntry<'a>>> {
    let first = find(signal, mapping, samples)?;
    if let Some(found) = sampled(signal, count, &first, mapping, samples)? {
        return Ok(found);
    }
    let (place, bits) = (first.field.bit_offset, first.field.bit_length);
    if let Some(joined) = joined(signal, count, &first, mapping)? {
        return Ok(vec![joined]);
    }
    if count > 1 && bits > 64 {
        let width = bits / count;
        if width * count != bits || width > 64 {
            let found =
                format!("{count} elements of the signal \"{}\" on {}", signal.name.get_ref(), first.entry);
            let expected = "a number of elements that divides its bits, with at most 64 bits each";
            return Err(Problem::new(signal.elements_place(), found, expected, "correct elements"));
        }
        let part = |number| FoundEntry {
            direction: first.direction,
            entry: Cow::Owned(PdoEntry {
                bit_length: width as u8,
                data_type: 0,
                ..first.entry.clone().into_owned()
            }),
            field: PdoField { bit_offset: place + number * width, bit_length: width },
        };
        return Ok((0..count).map(part).collect());
    }
    let direction = first.direction;
    let found = |(entry, field)| FoundEntry { direction, entry: Cow::Borrowed(entry), field };
    // In the order of the PDOs: with several SyncManagers that is not the order of the bits.
    let before = |it: &(&PdoEntry, PdoField)| it.1 != first.field;
    let is_there = |it: &(&PdoEntry, PdoField)| it.0.index != 0;
    let all: Vec<_> = match signal.channel {
        Some(_) => mapping.channels(direction).skip_while(before).take(count).map(found).collect(),
        None => {
            mapping.entries(direction).skip_while(before).filter(is_there).take(count).map(found).collect()
        }
    };
    let alike = all.iter().take_while(|it| it.field.bit_length == bits).count();
    if alike == count {
        return Ok(all);
    }
    let found =
        format!("{count} elements of the signal \"{}\" from {} on", signal.name.get_ref(), first.entry);
    let each = if bits == 1 { "bit" } else { "bits" };
    let expected = format!("at most {alike}, which are there with {bits} {each} each");
    Err(Problem::new(signal.elements_place(), found, expected, "correct elements"))
}

/// Samples of a channel that is sampled several times a cycle, if `first` is one of them: it and
/// the following entries.
fn sampled<'a>(
    signal: &NamedSignal,
    count: usize,
    first: &FoundEntry<'a>,
    mapping: &'a PdoMapping,
    samples: u8,
) -> Checked<Option<Vec<FoundEntry<'a>>>> {
    let direction = first.direction;
    let behind = mapping.sampled_channels(direction, samples).into_iter().find_map(|channel| {
        let place = channel.iter().position(|(_, field)| *field == first.field)?;
        Some(channel[place..].to_vec())
    });
    let Some(behind) = behind else { return Ok(None) };
    let (name, sub_device) = (signal.name.get_ref(), signal.sub_device.get_ref());
    if signal.elements.is_none() {
        let found = format!("signal \"{name}\" of one value on {}", first.entry);
        let expected =
            format!("elements = {}, the samples that \"{sub_device}\" has there each cycle", behind.len());
        let remedy = "add elements, or elements = 1 for this sample alone";
        return Err(Problem::new(signal.place(), found, expected, remedy));
    }
    if count > behind.len() {
        let found = format!("{count} elements of the signal \"{name}\" from {} on", first.entry);
        let expected =
            format!("at most {}, the samples that \"{sub_device}\" has there each cycle", behind.len());
        return Err(Problem::new(signal.elements_place(), found, expected, "correct elements"));
    }
    let found = |(entry, field)| FoundEntry { direction, entry: Cow::Borrowed(entry), field };
    Ok(Some(behind.into_iter().take(count).map(found).collect()))
}

/// Channels in this direction. An oversampling SubDevice has one for each sampled channel, by its
/// first sample.
fn channels(mapping: &PdoMapping, direction: Direction, samples: u8) -> Vec<(&PdoEntry, PdoField)> {
    let sampled = |direction| mapping.sampled_channels(direction, samples);
    match [direction, direction.other()].into_iter().all(|it| sampled(it).is_empty()) {
        true => mapping.channels(direction).collect(),
        false => sampled(direction).iter().filter_map(|channel| channel.first().copied()).collect(),
    }
}

/// Unsigned integer over this channel of one bit and the following ones, if its type is wider.
fn joined<'a>(
    signal: &NamedSignal,
    count: usize,
    first: &FoundEntry<'a>,
    mapping: &PdoMapping,
) -> Checked<Option<FoundEntry<'a>>> {
    let value_type = signal.value_type.as_ref().map(value::named_type).transpose()?;
    let (Some(ValueType::Unsigned(bits @ 2..)), Some(_), 1, 1) =
        (value_type, &signal.channel, count, first.field.bit_length)
    else {
        return Ok(None);
    };
    let place = first.field.bit_offset;
    let behind = mapping.channels(first.direction).map(|(_, field)| field);
    let behind = behind.filter(|field| field.bit_offset >= place).zip(place..);
    let there = behind.take_while(|(field, bit)| field.bit_length == 1 && field.bit_offset == *bit).count();
    if there < usize::from(bits) {
        let found = format!(
            "type \"uint{bits}\" for the signal \"{}\" from {} on",
            signal.name.get_ref(),
            first.entry
        );
        let expected = match there {
            1 => "bool: it has no neighbouring channel of one bit".to_owned(),
            there => {
                format!(
                    "bool, or at most uint{there}: that is the number of neighbouring channels of \
                     one bit"
                )
            }
        };
        let at = signal.value_type.as_ref().map_or_else(|| signal.place(), Spanned::span);
        return Err(Problem::new(at, found, expected, "correct type"));
    }
    Ok(Some(FoundEntry {
        direction: first.direction,
        entry: Cow::Owned(PdoEntry { bit_length: bits, data_type: 0, ..first.entry.clone().into_owned() }),
        field: PdoField { bit_offset: place, bit_length: bits.into() },
    }))
}

fn find<'a>(signal: &NamedSignal, mapping: &'a PdoMapping, samples: u8) -> Checked<FoundEntry<'a>> {
    let directions: &[Direction] = match signal.direction {
        None => &[Direction::Input, Direction::Output],
        Some(Direction::Input) => &[Direction::Input],
        Some(Direction::Output) => &[Direction::Output],
    };
    match (&signal.entry, &signal.channel) {
        (Some(entry), _) => by_object(signal, *entry.get_ref(), mapping, directions),
        (None, Some(channel)) => by_channel(signal, *channel.get_ref(), (mapping, samples), directions),
        (None, None) => Err(Problem::new(signal.place(), "no entry", "entry or channel", "add one")),
    }
}

fn by_object<'a>(
    signal: &NamedSignal,
    wanted: SignalEntry,
    mapping: &'a PdoMapping,
    directions: &[Direction],
) -> Checked<FoundEntry<'a>> {
    let SignalEntry { index, sub_index } = wanted;
    let all = || {
        directions.iter().flat_map(|&direction| {
            let found = move |(entry, field)| FoundEntry { direction, entry: Cow::Borrowed(entry), field };
            mapping.entries(direction).filter(|(it, _)| it.index != 0).map(found)
        })
    };
    let mut found = all().filter(|it| it.entry.index == index && it.entry.sub_index == sub_index);
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(ambiguous(signal)),
        (None, _) => {
            let mut near: Vec<_> = all().map(|it| it.entry).collect();
            near.sort_by_key(|it| (it.index.abs_diff(index), it.sub_index.abs_diff(sub_index)));
            near.truncate(NEAR);
            let near: Vec<String> = near.iter().map(ToString::to_string).collect();
            let found = format!("signal \"{}\" on {index:#06x}:{sub_index:02x}", signal.name.get_ref());
            let sub_device = signal.sub_device.get_ref();
            let expected = match near.is_empty() {
                true => format!("a SubDevice with process data; \"{sub_device}\" has none"),
                false => format!("process data of \"{sub_device}\", near it {}", near.join(", ")),
            };
            Err(Problem::new(signal.place(), found, expected, "correct entry, or map it in pdos"))
        }
    }
}

fn by_channel<'a>(
    signal: &NamedSignal,
    number: i64,
    (mapping, samples): (&'a PdoMapping, u8),
    directions: &[Direction],
) -> Checked<FoundEntry<'a>> {
    let channels = |direction| channels(mapping, direction, samples);
    let counts: Vec<_> = directions
        .iter()
        .map(|&direction| (direction, channels(direction).len()))
        .filter(|&(_, count)| count > 0)
        .collect();
    let &[(direction, most)] = counts.as_slice() else {
        if !counts.is_empty() {
            return Err(ambiguous(signal));
        }
        let found = format!("channel {number} for the signal \"{}\"", signal.name.get_ref());
        let expected =
            format!("a SubDevice with such channels; \"{}\" has none", signal.sub_device.get_ref());
        return Err(Problem::new(signal.place(), found, expected, "correct sub_device or direction"));
    };
    let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    let found = place.and_then(|place| channels(direction).get(place).copied());
    found.map(|(entry, field)| FoundEntry { direction, entry: Cow::Borrowed(entry), field }).ok_or_else(
        || {
            let found = format!("channel {number} for the signal \"{}\"", signal.name.get_ref());
            let expected =
                format!("1 to {most}, the {direction} channels of \"{}\"", signal.sub_device.get_ref());
            Problem::new(signal.place(), found, expected, "correct channel")
        },
    )
}

fn ambiguous(signal: &NamedSignal) -> Problem {
    let found = format!(
        "signal \"{}\" on \"{}\", which has this as an input and as an output",
        signal.name.get_ref(),
        signal.sub_device.get_ref()
    );
    Problem::new(signal.place(), found, "direction = \"input\" or \"output\"", "add direction")
}

/// Entries shown where another was expected.
const NEAR: usize = 4;

/// Most elements of a signal.
const MOST: i64 = 256;

/// Names of its elements, `NAME[0]` and up or `NAME.ELEMENT`; its own, if it has none.
pub(crate) fn names(signal: &NamedSignal) -> Checked<Vec<String>> {
    let name = signal.name.get_ref();
    let Some(elements) = &signal.elements else { return Ok(vec![name.clone()]) };
    let named = |values: &[toml::Value]| -> Option<Vec<String>> {
        let fits = |text: &&str| !text.trim().is_empty() && !text.chars().any(is_unseen);
        values
            .iter()
            .map(|value| value.as_str().filter(fits).map(|text| format!("{name}.{text}")))
            .collect()
    };
    let names = match elements.get_ref() {
        toml::Value::Integer(count) if (1..=MOST).contains(count) => {
            Some((0..*count).map(|number| format!("{name}[{number}]")).collect())
        }
        toml::Value::Array(values) if (1..=MOST as usize).contains(&values.len()) => named(values),
        _ => None,
    };
    names.ok_or_else(|| {
        let found = format!("elements = {} for the signal \"{name}\"", shown(elements.get_ref()));
        let expected = format!("their number, 1 to {MOST}, or their names, as [\"x\", \"y\", \"z\"]");
        Problem::new(elements.span(), found, expected, "correct elements")
    })
}

/// A value as the file has it, without the hundreds of digits of a huge number.
fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::Float(number) => Number(*number).to_string(),
        toml::Value::Array(values) => {
            let all: Vec<String> = values.iter().map(shown).collect();
            format!("[{}]", all.join(", "))
        }
        other => other.to_string(),
    }
}
