//! Faults of frames on the wire, as users state them: shares of all frames, there and back.

use std::fmt;
use std::time::Duration;

use onbeat_ethercat_linux::link::{FaultRates, Faults};

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

/// Faults of frames: shares between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameFaults {
    /// Frames that are lost, on either way.
    pub loss: f64,
    /// Replies held back for `delay`.
    pub late: f64,
    /// Time a late reply is held back.
    pub delay: Duration,
    /// Replies that come twice.
    pub duplicate: f64,
    /// Replies that are overtaken by the next.
    pub reorder: f64,
    /// Replies with one bit that is another.
    pub corrupt: f64,
    /// Seed of their chance.
    pub seed: u64,
}

impl FrameFaults {
    /// Faults of each direction. Frames are lost on either way; all else happens to replies, so
    /// that no SubDevice acts on it.
    #[must_use]
    pub fn on_link(self) -> Faults {
        // A frame goes both ways and must survive each.
        let loss = 1.0 - (1.0 - self.loss).sqrt();
        let replies = FaultRates {
            loss,
            corrupt: self.corrupt,
            duplicate: self.duplicate,
            delay: self.late,
            delay_by: self.delay,
            reorder: self.reorder,
        };
        Faults { requests: FaultRates { loss, ..FaultRates::default() }, replies, seed: self.seed }
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

    #[test]
    fn a_frame_is_lost_on_either_way_and_altered_on_its_way_back() {
        let asked = FrameFaults { loss: 0.75, corrupt: 0.5, seed: 3, ..FrameFaults::default() };
        let faults = asked.on_link();
        assert_eq!((faults.requests.loss, faults.replies.loss), (0.5, 0.5));
        assert_eq!((faults.requests.corrupt, faults.replies.corrupt, faults.seed), (0.0, 0.5, 3));
    }
}
