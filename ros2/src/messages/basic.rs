//! builtin_interfaces and std_msgs.

use serde::{Deserialize, Serialize};

/// builtin_interfaces/Time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Time {
    pub(crate) sec: i32,
    pub(crate) nanosec: u32,
}

impl Time {
    /// Time from nanoseconds since 1970; after the last second of the message, in the year 2038,
    /// that one.
    pub(crate) fn from_ns(ns: i64) -> Self {
        Self {
            sec: i32::try_from(ns.div_euclid(SECOND)).unwrap_or(i32::MAX),
            nanosec: ns.rem_euclid(SECOND) as u32,
        }
    }

    /// Nanoseconds since 1970.
    pub(crate) fn to_ns(self) -> i64 {
        i64::from(self.sec) * SECOND + i64::from(self.nanosec)
    }
}

/// builtin_interfaces/Duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Duration {
    pub(crate) sec: i32,
    pub(crate) nanosec: u32,
}

impl Duration {
    /// Nanoseconds; `None` if negative or not in normal form.
    pub(crate) fn to_ns(self) -> Option<u64> {
        let sec = u64::try_from(self.sec).ok()?;
        (self.nanosec < SECOND as u32).then(|| sec * SECOND as u64 + u64::from(self.nanosec))
    }

    /// Duration from nanoseconds, at most 68 years.
    pub(crate) fn from_ns(ns: u64) -> Self {
        let sec = i32::try_from(ns / SECOND as u64).unwrap_or(i32::MAX);
        Self { sec, nanosec: (ns % SECOND as u64) as u32 }
    }
}

const SECOND: i64 = 1_000_000_000;

/// std_msgs/Header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) stamp: Time,
    pub(crate) frame_id: String,
}

/// std_msgs/String.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Text {
    pub(crate) data: String,
}

/// std_msgs/Float64MultiArray.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Float64MultiArray {
    pub(crate) layout: MultiArrayLayout,
    pub(crate) data: Vec<f64>,
}

/// std_msgs/MultiArrayLayout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MultiArrayLayout {
    pub(crate) dim: Vec<MultiArrayDimension>,
    pub(crate) data_offset: u32,
}

/// std_msgs/MultiArrayDimension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MultiArrayDimension {
    pub(crate) label: String,
    pub(crate) size: u32,
    pub(crate) stride: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_goes_there_and_back() {
        for ns in [0, 1, 999_999_999, 1_000_000_000, 1_763_722_800_123_456_789] {
            assert_eq!(Time::from_ns(ns).to_ns(), ns);
        }
        assert_eq!(Time::from_ns(i64::MAX).sec, i32::MAX);
    }

    #[test]
    fn a_duration_that_is_no_time_is_refused() {
        assert_eq!(Duration { sec: 1, nanosec: 5 }.to_ns(), Some(1_000_000_005));
        assert_eq!(Duration { sec: -1, nanosec: 0 }.to_ns(), None);
        assert_eq!(Duration { sec: 0, nanosec: 1_000_000_000 }.to_ns(), None);
        assert_eq!(Duration::from_ns(2_500_000_000), Duration { sec: 2, nanosec: 500_000_000 });
    }
}
