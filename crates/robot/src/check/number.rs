//! Checks of numbers and their ranges.

use std::ops::RangeInclusive;

use toml::Spanned;

use super::Checked;
use crate::error::Problem;

pub(super) fn whole(key: &str, value: &Spanned<i64>, range: RangeInclusive<i64>) -> Checked<i64> {
    if range.contains(value.get_ref()) {
        return Ok(*value.get_ref());
    }
    Err(Problem::new(
        value.span(),
        format!("{key} = {}", value.get_ref()),
        format!("{} to {}", range.start(), range.end()),
        format!("correct {key}"),
    ))
}

pub(crate) fn optional_whole(
    key: &str,
    value: Option<&Spanned<i64>>,
    range: RangeInclusive<i64>,
) -> Checked<Option<i64>> {
    value.map(|value| whole(key, value, range)).transpose()
}

/// A finite number.
pub(super) fn finite(key: &str, value: &Spanned<f64>) -> Checked<f64> {
    accepted(key, value, "a finite number", |_| true)
}

/// A finite number above zero.
pub(super) fn positive(key: &str, value: &Spanned<f64>) -> Checked<f64> {
    accepted(key, value, "a finite number above 0", |number| number > 0.0)
}

/// A finite number, zero or above.
pub(super) fn not_negative(key: &str, value: &Spanned<f64>) -> Checked<f64> {
    accepted(key, value, "a finite number, 0 or above", |number| number >= 0.0)
}

/// A finite number, not zero.
pub(super) fn not_zero(key: &str, value: &Spanned<f64>) -> Checked<f64> {
    accepted(key, value, "a finite number other than 0", |number| number != 0.0)
}

fn accepted(key: &str, value: &Spanned<f64>, expected: &str, accept: fn(f64) -> bool) -> Checked<f64> {
    let number = *value.get_ref();
    if number.is_finite() && accept(number) {
        return Ok(number);
    }
    Err(Problem::new(value.span(), format!("{key} = {number}"), expected, format!("correct {key}")))
}
