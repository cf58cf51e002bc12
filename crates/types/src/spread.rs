//! Summary of a time that is measured again and again.

/// Last, smallest, largest and mean value of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Value of the last cycle.
    pub last_ns: u64,
    /// Smallest value.
    pub minimum_ns: u64,
    /// Largest value.
    pub maximum_ns: u64,
    /// Mean value.
    pub mean_ns: u64,
}
