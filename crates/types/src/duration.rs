//! Durations as text: `250ns`, `500us`, `1ms`, `1.5s`, `2min`, `24h`.

use alloc::format;
use alloc::string::{String, ToString as _};
use core::fmt;
use core::time::Duration;

/// Error of a text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationError {
    /// The text.
    pub found: String,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.found;
        write!(f, "found \"{found}\", expected a number and a unit (ns, us, ms, s, min, h) as in \"500us\"")
    }
}

impl core::error::Error for DurationError {}

/// Parses a duration, exact to the nanosecond.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(onbeat_types::duration::parse("1.5ms"), Ok(Duration::from_micros(1500)));
/// ```
///
/// # Errors
/// No number, no known unit, a sign, a fraction of a nanosecond, or more than 584 years.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    nanoseconds(text.trim())
        .map(Duration::from_nanos)
        .ok_or_else(|| DurationError { found: text.chars().take(40).collect() })
}

/// Parses a time that something lasts: a duration longer than zero.
///
/// # Errors
/// As [`parse`], and zero: a sentence with the smallest time that is of use.
pub fn parse_lasting(text: &str) -> Result<Duration, String> {
    match parse(text) {
        Ok(Duration::ZERO) => Err(format!(
            "found \"{text}\", expected at least a period of the cycle, as 1ms: nothing happens in no time"
        )),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// Formats `duration` in the largest unit that keeps it a whole number: the inverse of [`parse`].
#[must_use]
pub fn format(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    let (unit, length) = UNITS
        .iter()
        .filter(|(unit, _)| *unit != "µs")
        .map(|&(unit, length)| (unit, u128::from(length)))
        .filter(|(_, length)| nanoseconds != 0 && nanoseconds % length == 0)
        .max_by_key(|&(_, length)| length)
        .unwrap_or(("ns", 1));
    format!("{}{unit}", nanoseconds / length)
}

/// Nanoseconds of each unit.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

fn nanoseconds(text: &str) -> Option<u64> {
    let split = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = text.split_at(split);
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim_start()).map(|&(_, length)| length)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    whole.checked_add(fraction_of(fraction, unit)?)
}

/// Nanoseconds of `0.fraction` of `unit`, or `None` if they are not a whole number.
fn fraction_of(fraction: &str, unit: u64) -> Option<u64> {
    let digits = fraction.trim_end_matches('0');
    if fraction.is_empty() || digits.len() > 11 {
        return None;
    }
    let parts = if digits.is_empty() { 0 } else { digits.parse::<u128>().ok()? };
    let scaled = parts * u128::from(unit);
    let whole = 10_u128.pow(digits.len() as u32);
    (scaled % whole == 0).then(|| u64::try_from(scaled / whole).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact_in_every_unit() {
        for (text, nanoseconds) in [
            ("0s", 0),
            ("1ns", 1),
            ("500us", 500_000),
            ("62.5 µs", 62_500),
            ("1ms", 1_000_000),
            ("0.000000001s", 1),
            ("1.50s", 1_500_000_000),
            ("2min", 120_000_000_000),
            ("24h", 86_400_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "1",
            "ms",
            ".5ms",
            "1.ms",
            "-1ms",
            "1 ms ms",
            "1d",
            "0.5ns",
            "1e3ms",
            "1..5ms",
            "99999999999999999999s",
            "20000000000s",
            "1.0000000000000000000001s",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_lasts_lasts_longer_than_zero() {
        assert_eq!(parse_lasting("1ns"), Ok(Duration::from_nanos(1)));
        for text in ["0s", "0.0ms"] {
            let told = parse_lasting(text).unwrap_err();
            assert!(told.contains(text) && told.contains("a period of the cycle"), "{told}");
        }
        assert_eq!(parse_lasting("1"), parse("1").map_err(|error| error.to_string()));
    }

    #[test]
    fn formatting_reads_back() {
        for nanoseconds in [0, 1, 62_500, 1_000_000, 1_500_000, 1_000_000_000, 90_000_000_000, u64::MAX] {
            let duration = Duration::from_nanos(nanoseconds);
            assert_eq!(parse(&format(duration)), Ok(duration));
        }
        assert_eq!(format(Duration::from_micros(1500)), "1500us");
    }
}
