//! Numbers in messages.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// A number of at most six significant digits; very large and very small ones with an exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounded(pub f64);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number) = *self;
        if !number.is_finite() || number == 0.0 {
            return write!(f, "{}", number.abs().copysign(if number == 0.0 { 1.0 } else { number }));
        }
        // Rounded first: 9.999999 has one digit more before its point.
        let text = format!("{number:.*e}", DIGITS - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        match exponent.parse::<i32>() {
            Ok(exponent @ -4..=6) => {
                let decimals = usize::try_from(DIGITS as i32 - 1 - exponent).unwrap_or(0);
                f.write_str(trimmed(&format!("{number:.decimals$}")))
            }
            _ => write!(f, "{}e{exponent}", trimmed(mantissa)),
        }
    }
}

/// Number with grouped digits: 48213 as "48 213".
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Without zeros at its end.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

const DIGITS: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_six_significant_digits() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.5, "0.5"),
            (-1.25, "-1.25"),
            (1.0 / 3.0, "0.333333"),
            (12_345.678_9, "12345.7"),
            (9.999_999_9, "10"),
            (999_999.9, "1000000"),
            (1e-4, "0.0001"),
            (1.234_567_8e-5, "1.23457e-5"),
            (1e300, "1e300"),
            (-1.797_693_134_862_315_7e308, "-1.79769e308"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(Rounded(number).to_string(), text, "{number:e}");
        }
    }
}
