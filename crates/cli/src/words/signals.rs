//! Signals, for people and for programs.

use ipc::description::SignalDescription;
use ipc::state::Signal;
use serde_json::{Value, json};

/// A value for programs: true or false, or a number; nothing for what is no finite number.
pub(crate) fn value(value: types::Value) -> Value {
    json!(value)
}

/// A signal of a running cycle for programs.
pub(crate) fn object(described: &SignalDescription, signal: &Signal) -> Value {
    json!({
        "name": described.name,
        "sub_device": described.sub_device,
        "direction": described.direction,
        "type": described.value_type,
        "unit": described.unit,
        "range": described.range,
        "writer": described.writer,
        "value": value(signal.value(described.kind)),
        "fresh": signal.fresh,
        "forced": signal.forced,
    })
}

/// Its value with its unit, and whether it is an old or a forced one.
pub(crate) fn text(described: &SignalDescription, signal: &Signal) -> String {
    let number = match signal.value(described.kind) {
        types::Value::Real(value) => real(value),
        other => other.to_string(),
    };
    let unit = if described.unit.is_empty() { String::new() } else { format!(" {}", described.unit) };
    format!("{number}{unit}{}", marks(signal.fresh, signal.forced))
}

/// Marks behind a value that is an old or a forced one.
pub(crate) fn marks(is_fresh: bool, is_forced: bool) -> String {
    let old = if is_fresh { "" } else { " (old)" };
    let forced = if is_forced { " (forced)" } else { "" };
    format!("{old}{forced}")
}

/// As many digits as a sensor has.
fn real(value: f64) -> String {
    let text = format!("{value:.4}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    match short {
        _ if !value.is_finite() || value.abs() >= 1e9 => format!("{value:e}"),
        "0" | "-0" if value != 0.0 => format!("{value:.3e}"),
        "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short_and_say_when_they_are_old_or_forced() {
        let described = SignalDescription {
            kind: types::ValueKind::Real,
            unit: "bar".to_owned(),
            ..SignalDescription::default()
        };
        let of =
            |value: f64, fresh| text(&described, &Signal { word: value.to_bits(), fresh, forced: false });
        assert_eq!(of(1.5, true), "1.5 bar");
        assert_eq!(of(-0.00004, true), "-4.000e-5 bar");
        assert_eq!(of(-0.0, false), "0 bar (old)");
        assert_eq!(of(100.0, true), "100 bar");
        let bit = SignalDescription::default();
        let on = Signal { word: 1, fresh: true, forced: false };
        assert_eq!(text(&bit, &on), "true");
        assert_eq!(
            (&object(&bit, &on)["value"], &object(&bit, &on)["forced"]),
            (&true.into(), &false.into())
        );
        assert_eq!(text(&bit, &Signal { fresh: false, forced: true, ..on }), "true (old) (forced)");
        assert_eq!(object(&bit, &Signal { forced: true, ..on })["forced"], true);
    }
}
