//! Behaviour of an output.

use crate::value::Spanned;
use ethercat::cia402::object;
use ethercat::pdo::Direction;
use types::signal::{Flow, OnStale, OutputBehaviour, Writer};
use types::{Signal, Value, ValueType};

use super::super::Checked;
use super::FoundEntry;
use crate::error::Problem;
use crate::field::Number;
use crate::model::{NamedSignal, SignalWriter};

/// Behaviour of an output that bounds the axis `limited`, if it does one.
pub(super) fn flow(
    entry: &NamedSignal,
    signal: &Signal,
    found: &FoundEntry<'_>,
    limited: Option<&str>,
) -> Checked<Flow> {
    let place = |value: &Option<Spanned<toml::Value>>| value.as_ref().map(Spanned::span);
    let keys = [
        ("writer", entry.writer.as_ref().map(Spanned::span)),
        ("initial", place(&entry.initial)),
        ("on_stale", place(&entry.on_stale)),
        ("on_stop", place(&entry.on_stop)),
        ("on_return", place(&entry.on_return)),
    ];
    if found.direction == Direction::Input {
        return match keys.into_iter().find_map(|(key, place)| Some((key, place?))) {
            None => Ok(Flow::Input),
            Some((key, place)) => {
                let found = format!("{key} for the signal \"{}\", which is an input", signal.name);
                Err(Problem::new(place, found, format!("{key} only on outputs"), "remove it"))
            }
        };
    }
    if let Some(axis) = limited {
        let given = keys.into_iter().filter(|(key, _)| *key != "initial");
        if let Some((key, place)) = given.into_iter().find_map(|(key, place)| Some((key, place?))) {
            let found = format!("{key} for the signal \"{}\", which bounds {axis}", signal.name);
            return Err(Problem::new(place, found, "initial alone, at which it stays", "remove it"));
        }
        if entry.initial.is_none() && object::of_first_axis(found.entry.index) == object::MAXIMUM_TORQUE {
            return Ok(Flow::Taken(axis.to_owned()));
        }
        let initial = entry.initial.as_ref().map(|value| bits("initial", value, signal)).transpose()?;
        return Ok(Flow::Fixed(initial.unwrap_or_default()));
    }
    let writer = match entry.writer.as_ref().map(Spanned::get_ref) {
        Some(SignalWriter::Cycle) => return number(entry, signal, found.entry.index).map(|()| Flow::Cycle),
        Some(SignalWriter::Outside) => Writer::Outside,
        Some(SignalWriter::Controller) | None => Writer::Controller,
    };
    let optional = |key, value: &Option<Spanned<toml::Value>>| {
        value.as_ref().map(|value| bits(key, value, signal)).transpose()
    };
    // Zero, if its range has it, else the end next to it.
    let rest = match signal.range {
        Some((lowest, highest)) => {
            let zero = signal.value(0).number();
            signal.raw(Value::Real(zero.clamp(lowest, highest))).map_or(0, |(raw, _)| raw)
        }
        None => 0,
    };
    Ok(Flow::Output(OutputBehaviour {
        writer,
        initial: optional("initial", &entry.initial)?.unwrap_or(rest),
        on_stale: match &entry.on_stale {
            Some(value) if value.get_ref().as_str() == Some("hold") => Some(OnStale::Hold),
            // The client that commanded it is gone.
            None if writer == Writer::Outside => Some(OnStale::Bits(rest)),
            other => optional("on_stale", other)?.map(OnStale::Bits),
        },
        on_stop: optional("on_stop", &entry.on_stop)?.unwrap_or(0),
        on_return: optional("on_return", &entry.on_return)?,
    }))
}

/// Checks that the signal of the cycle's number has no other behaviour, and moves no axis.
fn number(entry: &NamedSignal, signal: &Signal, index: u16) -> Checked<()> {
    let refused = |place, found: String, expected, remedy| {
        let found = format!("{found} for the signal \"{}\" with writer = \"cycle\"", signal.name);
        Err(Problem::new(place, found, expected, remedy))
    };
    let place = |value: &Option<Spanned<toml::Value>>| value.as_ref().map(Spanned::span);
    let keys = [
        ("scale", entry.scale.as_ref().map(Spanned::span)),
        ("offset", entry.offset.as_ref().map(Spanned::span)),
        ("range", entry.range.as_ref().map(Spanned::span)),
        ("initial", place(&entry.initial)),
        ("on_stale", place(&entry.on_stale)),
        ("on_stop", place(&entry.on_stop)),
        ("on_return", place(&entry.on_return)),
    ];
    if let Some((key, place)) = keys.into_iter().find_map(|(key, place)| Some((key, place?))) {
        return refused(place, key.to_owned(), "the number of the cycle and nothing else", "remove it");
    }
    // A drive must not get a number that counts up, and behind these are the channels of terminals.
    if index < 0x6800 && (object::moves(index) || object::limits(index)) {
        let found = format!("object {index:#06x}, which drives an axis,");
        return refused(entry.place(), found, "an output that moves nothing", "choose another");
    }
    match signal.value_type {
        ValueType::Unsigned(8..) => Ok(()),
        other => {
            let remedy = "choose another, or join channels of one bit by their type, as \"uint16\"";
            refused(entry.place(), other.to_string(), "an unsigned integer of 8 to 64 bits", remedy)
        }
    }
}

/// Checks that `hold` is not used where an output cannot be held.
pub(super) fn never_held(entry: &NamedSignal) -> Checked<()> {
    let keys = [("initial", &entry.initial), ("on_stop", &entry.on_stop), ("on_return", &entry.on_return)];
    let held = keys.into_iter().find_map(|(key, value)| {
        let value = value.as_ref()?;
        (value.get_ref().as_str() == Some("hold")).then_some((key, value))
    });
    held.map_or(Ok(()), |(key, value)| {
        let found = format!("{key} = \"hold\" for the signal \"{}\"", entry.name.get_ref());
        let remedy = match key {
            "on_stop" => "say what it is to be: Init clears it anyway",
            "on_return" => "remove it: without it the output keeps its value",
            _ => "say what it is to be",
        };
        Err(Problem::new(value.span(), found, "\"zero\" or a value", remedy))
    })
}

/// Bits of a value of the file, which has to be one of the signal's.
fn bits(key: &str, value: &Spanned<toml::Value>, signal: &Signal) -> Checked<u64> {
    let whole = matches!(signal.value_type, ValueType::Unsigned(_) | ValueType::Signed(_))
        && signal.scaling.is_none();
    let wanted = match value.get_ref() {
        toml::Value::String(word) if word == "zero" => return Ok(0),
        toml::Value::Boolean(value) => Some(Value::Bool(*value)),
        toml::Value::Integer(value) => Some(Value::Signed(*value)),
        toml::Value::Float(value) if !whole => Some(Value::Real(*value)),
        _ => None,
    };
    match wanted.and_then(|wanted| signal.raw(wanted)) {
        Some((raw, false)) => Ok(raw),
        // A float is nearest to most numbers only.
        Some((raw, true)) if signal.value_type == ValueType::Float && in_range(wanted, signal) => Ok(raw),
        _ => {
            let found = format!("{key} = {} for the signal \"{}\"", value.get_ref(), signal.name);
            let expected = match (signal.value_type, signal.range) {
                (ValueType::Bool, _) => "true, false or \"zero\"".to_owned(),
                (_, Some((lowest, highest))) => {
                    format!("{} to {}, its range, or \"zero\"", Number(lowest), Number(highest))
                }
                (value_type, None) if whole => {
                    let (lowest, highest) = value_type.bounds();
                    format!("a whole number, {lowest} to {highest} ({value_type}), or \"zero\"")
                }
                (value_type, None) => format!("a number that its {value_type} holds, or \"zero\""),
            };
            Err(Problem::new(value.span(), found, expected, format!("correct {key}")))
        }
    }
}

fn in_range(value: Option<Value>, signal: &Signal) -> bool {
    let (lowest, highest) = signal.range.unwrap_or(signal.value_type.bounds());
    value.is_some_and(|value| (lowest..=highest).contains(&value.number()))
}
