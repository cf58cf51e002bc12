//! Values of a robot file: each is read as the type it is used as, and refused if it alone is
//! wrong.
//!
//! Places of values in the text of a file.

use std::fmt::{self, Display};
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use motion::{
    Metres, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, NewtonMetres, Radians,
    RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds,
};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use toml::Spanned;
use toml::de::DeValue;
use types::duration;

use crate::error::{KEY, refused};

/// Largest limit of an axis, in its unit. Limits that follow from others are at most 16 times
/// larger, which [`motion::supervision::LARGEST_LIMIT`] allows.
pub(crate) const LARGEST_LIMIT: f64 = 1e12;

/// A number as it is found in a file, without hundreds of digits: in scientific form beyond sixteen
/// digits.
pub(crate) struct Number(pub(crate) f64);

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number) = *self;
        let magnitude = number.abs();
        match magnitude == 0.0 || (1e-5..1e16).contains(&magnitude) || !number.is_finite() {
            true => Display::fmt(&number, f),
            false => fmt::LowerExp::fmt(&number, f),
        }
    }
}

/// Two values, neither more nor less: a decimal comma makes three numbers of two.
pub(crate) fn two<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<(T, T), D::Error> {
    let values = Vec::<T>::deserialize(deserializer)?;
    let found = values.len();
    let [first, second] = values.try_into().map_err(|_| {
        refused(format_args!("{KEY} of {found} values"), "two", format_args!("correct {KEY}"))
    })?;
    Ok((first, second))
}

/// A type of whole numbers, or of optional ones.
pub(crate) trait Whole: Sized {
    fn of(number: i64) -> Option<Self>;
}

macro_rules! whole {
    ($($type:ty),*) => { $(impl Whole for $type {
        fn of(number: i64) -> Option<Self> {
            number.try_into().ok()
        }
    })* };
}

whole!(i8, u8, u16, u32, usize);

impl<T: Whole> Whole for Option<T> {
    fn of(number: i64) -> Option<Self> {
        T::of(number).map(Some)
    }
}

/// A whole number from `LEAST` to `MOST`.
pub(crate) fn whole<'de, D: Deserializer<'de>, T: Whole, const LEAST: i64, const MOST: i64>(
    deserializer: D,
) -> Result<T, D::Error> {
    let number = i64::deserialize(deserializer)?;
    let within = (LEAST..=MOST).contains(&number).then(|| T::of(number)).flatten();
    let expected = || format!("{LEAST} to {MOST}");
    within
        .ok_or_else(|| refused(format_args!("{KEY} = {number}"), expected(), format_args!("correct {KEY}")))
}

/// A type of real numbers, or of optional ones.
pub(crate) trait Real: Sized {
    fn of(number: f64) -> Self;
}

impl Real for f64 {
    fn of(number: f64) -> Self {
        number
    }
}

macro_rules! units {
    ($($unit:ident),*) => { $(impl Real for $unit {
        fn of(number: f64) -> Self {
            Self(number)
        }
    })* };
}

units!(
    Metres,
    MetresPerSecond,
    MetresPerSecondCubed,
    MetresPerSecondSquared,
    NewtonMetres,
    Radians,
    RadiansPerSecond,
    RadiansPerSecondCubed,
    RadiansPerSecondSquared
);

impl<T: Real> Real for Option<T> {
    fn of(number: f64) -> Self {
        Some(T::of(number))
    }
}

macro_rules! real {
    ($(#[$doc:meta] $name:ident, $expected:literal, $accepts:expr;)*) => { $(
        #[$doc]
        pub(crate) fn $name<'de, D: Deserializer<'de>, T: Real>(deserializer: D) -> Result<T, D::Error> {
            accepted(deserializer, $expected, $accepts)
        }
    )* };
}

real!(
    /// A finite number.
    finite, "a finite number", |_| true;
    /// A finite number above zero.
    positive, "a finite number above 0", |number| number > 0.0;
    /// A limit of an axis: squares and products of such are finite.
    limit, "a number above 0, at most 1e12", |number| number > 0.0 && number <= LARGEST_LIMIT;
    /// Rate error of a clock; the control loop of an ESC steers against 763 ppm at most.
    drift, "parts per million, -500 to 500", |number| (-500.0..=500.0).contains(&number);
    /// A finite number, zero or above.
    not_negative, "a finite number, 0 or above", |number| number >= 0.0;
    /// A finite number, not zero.
    not_zero, "a finite number other than 0", |number| number != 0.0;
    /// A number by which others are multiplied and divided.
    factor, "a finite number other than 0, and not nearer to it than 2.3e-308", f64::is_normal;
);

fn accepted<'de, D: Deserializer<'de>, T: Real>(
    deserializer: D,
    expected: &str,
    accepts: fn(f64) -> bool,
) -> Result<T, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() && accepts(number) {
        return Ok(T::of(number));
    }
    Err(refused(format_args!("{KEY} = {}", Number(number)), expected, format_args!("correct {KEY}")))
}

/// A type of times, or of optional ones.
pub(crate) trait Time: Sized {
    fn of(time: Duration) -> Self;
}

impl Time for Duration {
    fn of(time: Duration) -> Self {
        time
    }
}

impl Time for Seconds {
    fn of(time: Duration) -> Self {
        Self(time.as_secs_f64())
    }
}

impl<T: Time> Time for Option<T> {
    fn of(time: Duration) -> Self {
        Some(T::of(time))
    }
}

/// A duration, written as text.
pub(crate) fn time<'de, D: Deserializer<'de>, T: Time>(deserializer: D) -> Result<T, D::Error> {
    let expected = "a number and a unit (ns, us, ms, s, min, h) in quotes, as in \"500us\"";
    time_or(deserializer, None, expected).map(|time| T::of(time.unwrap_or_default()))
}

/// Deviation of single times: no more than the control loop of a simulated clock bears.
pub(crate) fn jitter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    time_within(deserializer, Duration::ZERO..=Duration::from_micros(100), "correct {key}")
}

/// A duration, or `word` in place of one.
pub(crate) fn time_or<'de, D: Deserializer<'de>>(
    deserializer: D,
    word: Option<&'static str>,
    expected: &'static str,
) -> Result<Option<Duration>, D::Error> {
    struct TimeOr(Option<&'static str>, &'static str);

    impl Visitor<'_> for TimeOr {
        type Value = Option<Duration>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.1)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            if self.0 == Some(text) {
                return Ok(None);
            }
            duration::parse(text).map(Some).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
        }
    }

    deserializer.deserialize_str(TimeOr(word, expected))
}

/// A duration within `range`.
pub(crate) fn time_within<'de, D: Deserializer<'de>, T: Time>(
    deserializer: D,
    range: RangeInclusive<Duration>,
    remedy: &str,
) -> Result<T, D::Error> {
    let length: Duration = time(deserializer)?;
    within(KEY, length, &range)
        .map(|()| T::of(length))
        .map_err(|[found, expected]| refused(found, expected, remedy))
}

/// Checks that `length` is within `range`, or returns what was found and what was expected.
pub(crate) fn within(
    key: &str,
    length: Duration,
    range: &RangeInclusive<Duration>,
) -> Result<(), [String; 2]> {
    if range.contains(&length) {
        return Ok(());
    }
    let [shortest, longest] = [range.start(), range.end()].map(|&end| duration::format(end));
    Err([format!("{key} {}", duration::format(length)), format!("{shortest} to {longest}")])
}

/// A text that can be read in a table and typed on a command line.
pub(crate) fn readable<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    match check_readable(&text) {
        Ok(()) => Ok(text.into()),
        Err([found, expected, remedy]) => Err(refused(found, expected, remedy)),
    }
}

/// True of a letter that shows nothing, or turns the direction in which others are shown.
#[must_use]
pub fn is_unseen(letter: char) -> bool {
    let turns = matches!(letter, '\u{061C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}');
    letter.is_control() || turns
}

/// Checks that a name is readable, or returns what was found, what was expected and the remedy.
pub(crate) fn check_readable(text: &str) -> Result<(), [String; 3]> {
    let readable = !text.trim().is_empty() && text.chars().count() <= 64 && !text.chars().any(is_unseen);
    readable.then_some(()).ok_or_else(|| {
        [
            format!("the name {text:?}"),
            "1 to 64 characters, none of them a control character".to_owned(),
            "give it a name that can be read in a table".to_owned(),
        ]
    })
}

/// Place of a value in the text; of a value that is not there, the place of the table it would be
/// in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'s> {
    start: usize,
    value: Option<&'s DeValue<'s>>,
}

impl<'s> Place<'s> {
    /// Place of all tables of a file.
    pub(crate) fn of(root: &'s Spanned<DeValue<'s>>) -> Self {
        Self { start: root.span().start, value: Some(root.get_ref()) }
    }

    /// Value of `key` of a table.
    pub(crate) fn key(self, key: &str) -> Self {
        self.go_to(self.value.and_then(|value| value.get(key)))
    }

    /// Value of a list, from 0.
    pub(crate) fn item(self, index: usize) -> Self {
        self.go_to(self.value.and_then(|value| value.get(index)))
    }

    /// Name of `key` itself, which the writer of the file chose.
    pub(crate) fn name_of(self, key: &str) -> Self {
        let table = self.value.and_then(DeValue::as_table);
        let name = table.and_then(|table| table.get_key_value(key));
        Self { start: name.map_or(self.start, |(name, _)| name.span().start), value: None }
    }

    /// Value of the first of `keys` that is there.
    pub(crate) fn first_of(self, keys: &[&str]) -> Self {
        keys.iter().find(|key| self.has(key)).map_or(self, |key| self.key(key))
    }

    /// True if the table has `key`.
    pub(crate) fn has(self, key: &str) -> bool {
        self.value.is_some_and(|value| value.get(key).is_some())
    }

    fn go_to(self, value: Option<&'s Spanned<DeValue<'s>>>) -> Self {
        let start = value.map_or(self.start, |value| value.span().start);
        Self { start, value: value.map(Spanned::get_ref) }
    }
}

impl From<Place<'_>> for Range<usize> {
    fn from(place: Place<'_>) -> Self {
        place.start..place.start
    }
}
