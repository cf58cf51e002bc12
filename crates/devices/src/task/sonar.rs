//! Real-time task of the sonar.

use ipc::sensor::{Head, Sonar};

use crate::pair::{Datagram, Moment, Poke, Put, Take, Work};
use crate::sonar::{FIELD_OF_VIEW, LONGEST, Median, SHORTEST, metres};

/// Outcome of a ping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time of the ping, CLOCK_MONOTONIC ns.
    pub stamp_ns: u64,
    /// Time to the echo, ns; 0 without an echo.
    pub length_ns: u64,
}

impl Datagram for Sample {
    const LARGEST: usize = 16;

    fn encode(&self, bytes: &mut [u8]) -> usize {
        Put::new(bytes).u64(self.stamp_ns).u64(self.length_ns).length()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        let mut take = Take(bytes);
        let read = take.u64().zip(take.u64()).zip(take.end());
        let Some(((stamp_ns, length_ns), ())) = read else { return false };
        *self = Self { stamp_ns, length_ns };
        true
    }
}

/// Requests a ping each period, and filters the distances.
#[derive(Clone, Debug)]
pub struct SonarWork {
    /// Temperature of the air, K.
    pub temperature: f64,
    median: Median,
    last: f64,
}

impl SonarWork {
    /// Creates the work for air of this temperature, K.
    #[must_use]
    pub fn new(temperature: f64) -> Self {
        Self { temperature, median: Median::default(), last: f64::INFINITY }
    }
}

impl Work for SonarWork {
    type Sample = Sample;
    type Request = Poke;
    const PUBLISHED: usize = Sonar::SIZE;

    fn take(&mut self, sample: &Sample) -> u64 {
        self.last = match sample.length_ns {
            0 => f64::INFINITY,
            // An object nearer than the shortest range counts as at that range: it must not look
            // like free space.
            length_ns => metres(length_ns, self.temperature).unwrap_or_else(|| too_near_or_far(length_ns)),
        };
        self.median.push(self.last);
        sample.stamp_ns
    }

    fn step(&mut self, _moment: &Moment, _request: &mut Poke) -> bool {
        true
    }

    fn encode(&self, head: Head, bytes: &mut [u8]) -> Option<usize> {
        let range = self.median.value().unwrap_or(f64::INFINITY);
        let (range_min, range_max) = (SHORTEST, LONGEST);
        let last = self.last;
        Sonar { head, range, last, field_of_view: FIELD_OF_VIEW, range_min, range_max }.encode(bytes)
    }
}

fn too_near_or_far(length_ns: u64) -> f64 {
    if length_ns < 1_000_000 { SHORTEST } else { f64::INFINITY }
}
