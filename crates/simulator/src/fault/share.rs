//! Shares of frames, and other numbers with decimals.

use std::fmt;

/// Share of frames, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// All of them.
    pub const ALL: Self = Self(1_000_000);

    /// So many millionths; `None` above all.
    #[must_use]
    pub fn millionths(count: u32) -> Option<Self> {
        Some(Self(count)).filter(|share| *share <= Self::ALL)
    }

    /// Reads a percentage to four decimals, as `2.5%`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let count = fixed(text.strip_suffix('%')?, 4)?;
        Self::millionths(u32::try_from(count).ok()?)
    }

    /// As a fraction, 0 to 1.
    #[must_use]
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", Fixed { value: self.0.into(), decimals: 4 })
    }
}

/// A number with so many decimals, without trailing zeros.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    pub(super) value: i64,
    pub(super) decimals: u32,
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10_u64.pow(self.decimals);
        let (sign, value) = (if self.value < 0 { "-" } else { "" }, self.value.unsigned_abs());
        let width = self.decimals as usize;
        let decimals = format!("{:0width$}", value % one);
        match decimals.trim_end_matches('0') {
            "" => write!(f, "{sign}{}", value / one),
            decimals => write!(f, "{sign}{}.{decimals}", value / one),
        }
    }
}

/// Reads a number with at most so many decimals, exactly.
pub(super) fn fixed(text: &str, decimals: u32) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > decimals as usize {
        return None;
    }
    let places = decimals - u32::try_from(fraction.len()).ok()?;
    let fraction = fraction.parse::<i64>().ok()?.checked_mul(10_i64.pow(places))?;
    let whole = whole.parse::<i64>().ok()?.checked_mul(10_i64.pow(decimals))?;
    whole.checked_add(fraction)?.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_per_cent_to_four_decimals() {
        for (text, share) in [("0%", 0), ("2.5%", 25_000), ("100%", 1_000_000), ("0.0001%", 1)] {
            assert_eq!(Share::parse(text), Some(Share(share)), "{text}");
            assert_eq!(Share(share).to_string(), text);
        }
        for wrong in ["", "%", "1", "100.0001%", "-1%", "0.00001%", "1.%", ".5%", "1e2%", "nan%", "1 %"] {
            assert_eq!(Share::parse(wrong), None, "{wrong}");
        }
    }
}
