//! Types, scales and ranges of signals.

use ethercat::cia402::object;
use ethercat::pdo::PdoEntry;
use types::near::nearest;
use types::signal::Scaling;
use types::{Signal, ValueType};

use super::super::Checked;
use super::FoundEntry;
use crate::error::Problem;
use crate::field::Number;
use crate::model::NamedSignal;
use crate::value::Spanned;

pub(super) fn named_type(name: &Spanned<String>) -> Checked<ValueType> {
    name.get_ref().parse().map_err(|_| {
        let remedy = nearest(name.get_ref(), USUAL)
            .map_or("correct type".to_owned(), |nearest| format!("did you mean \"{nearest}\"?"));
        let expected = "bool, float, double, or int or uint with 1 to 64 bits, as uint16";
        Problem::new(name.span(), format!("unknown type \"{}\"", name.get_ref()), expected, remedy)
    })
}

/// Types of usual widths.
const USUAL: [&str; 11] =
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double"];

/// Type in the file, which must be as wide as the entry; else the type of the entry.
pub(super) fn value_type(signal: &NamedSignal, found: &FoundEntry<'_>) -> Checked<ValueType> {
    let FoundEntry { entry, .. } = found;
    let name = signal.name.get_ref();
    if !(1..=64).contains(&entry.bit_length) {
        let found = format!("signal \"{name}\" on {entry}");
        return Err(Problem::new(signal.place(), found, "an entry of 1 to 64 bits", "choose another"));
    }
    let Some(wanted) = &signal.value_type else { return Ok(default_type(entry)) };
    let value_type = named_type(wanted)?;
    if value_type.bits() == entry.bit_length {
        return Ok(value_type);
    }
    let found = format!("type \"{value_type}\" for the signal \"{name}\" on {entry}");
    let width = entry.bit_length;
    let expected = match width {
        1 => "bool".to_owned(),
        32 => "uint32, int32 or float".to_owned(),
        64 => "uint64, int64 or double".to_owned(),
        _ => format!("uint{width} or int{width}"),
    };
    Err(Problem::new(wanted.span(), found, expected, "correct type"))
}

/// Type of an entry by its object, else by its width.
pub(super) fn default_type(entry: &PdoEntry) -> ValueType {
    // CiA 402-2: positions, velocities, torques, their offsets, touch probe positions, the
    // following error, modes.
    let of_drive = if entry.sub_index == 0 { object::of_first_axis(entry.index) } else { entry.index };
    let drives = matches!(
        of_drive,
        0x6060 | 0x6061 | 0x6064 | 0x606C | 0x6071 | 0x6077 | 0x607A | 0x60B0..=0x60B2 | 0x60BA..=0x60BD | 0x60F4 | 0x60FF
    );
    // ETG.5001.3: the value of an analogue channel.
    let analogue =
        matches!((entry.sub_index, entry.name.trim()), (0x11, "Value") | (0x01 | 0x11, "Analog output"));
    match entry.bit_length {
        1 => ValueType::Bool,
        bits if drives => ValueType::Signed(bits),
        bits => match listed(entry.data_type).filter(|it| it.bits() == bits) {
            Some(listed) => listed,
            None if analogue && bits == 16 => ValueType::Signed(bits),
            None => ValueType::Unsigned(bits),
        },
    }
}

/// Type that the SII gives by its index in the object dictionary (ETG.1000.6, Table 64), if that is
/// a number.
fn listed(data_type: u16) -> Option<ValueType> {
    Some(match data_type {
        0x02 => ValueType::Signed(8),
        0x03 => ValueType::Signed(16),
        0x10 => ValueType::Signed(24),
        0x04 => ValueType::Signed(32),
        0x12..=0x15 => ValueType::Signed(40 + 8 * (data_type as u8 - 0x12)),
        0x08 => ValueType::Float,
        0x11 => ValueType::Double,
        _ => return None,
    })
}

pub(super) fn scaling(signal: &NamedSignal, value_type: ValueType) -> Checked<Option<Scaling>> {
    let place = signal.scale.as_ref().map(Spanned::span).or(signal.offset.as_ref().map(Spanned::span));
    let Some(place) = place else { return Ok(None) };
    if value_type == ValueType::Bool {
        let found = format!("scale or offset for the signal \"{}\" of one bit", signal.name.get_ref());
        return Err(Problem::new(place, found, "them only on numbers", "remove them"));
    }
    let scale = signal.scale.as_ref().map_or(1.0, |scale| scale.get_ref().0);
    let offset = signal.offset.as_ref().map_or(0.0, |offset| offset.get_ref().0);
    let (lowest, highest) = value_type.bounds();
    let whole = !matches!(value_type, ValueType::Float | ValueType::Double);
    if whole && ![lowest, highest].iter().all(|end| (end * scale + offset).is_finite()) {
        let found = format!(
            "scale = {scale:e} and offset = {offset:e} for the signal \"{}\"",
            signal.name.get_ref()
        );
        let expected = format!("values of its {value_type} that are finite");
        return Err(Problem::new(place, found, expected, "correct them"));
    }
    Ok(Some(Scaling { scale, offset }))
}

/// Range, which its entry holds.
pub(super) fn range(entry: &NamedSignal, signal: &Signal) -> Checked<Option<(f64, f64)>> {
    let Some(range) = &entry.range else { return Ok(None) };
    let (lowest, highest) = range.get_ref().0;
    let (least, most) = held(signal);
    let refused = |expected: String| {
        let found =
            format!("range = [{}, {}] for the signal \"{}\"", Number(lowest), Number(highest), signal.name);
        Problem::new(range.span(), found, expected, "correct range")
    };
    if signal.value_type == ValueType::Bool {
        return Err(refused("no range for one bit".to_owned()));
    }
    if !(lowest.is_finite() && highest.is_finite() && lowest < highest) {
        return Err(refused("the lowest and the highest value".to_owned()));
    }
    if lowest < least || highest > most {
        let scaled = if signal.scaling.is_some() { " with its scale" } else { "" };
        return Err(refused(format!(
            "within {} to {}, which its {}{scaled} holds",
            Number(least),
            Number(most),
            signal.value_type
        )));
    }
    Ok(Some((lowest, highest)))
}

/// Lowest and highest value that its entry holds; half a digit beyond rounds to it.
fn held(signal: &Signal) -> (f64, f64) {
    let (lowest, highest) = signal.value_type.bounds();
    let Some(Scaling { scale, offset }) = signal.scaling else { return (lowest, highest) };
    let half = match signal.value_type {
        ValueType::Unsigned(_) | ValueType::Signed(_) => 0.5,
        _ => 0.0,
    };
    let ends = [(lowest - half) * scale + offset, (highest + half) * scale + offset];
    (ends[0].min(ends[1]), ends[0].max(ends[1]))
}
