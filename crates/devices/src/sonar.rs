//! Ultrasonic distance sensor of the kind HC-SR04: from edges of a line to a distance, without I/O
//! or clock.
//!
//!
//! The sensor takes a pulse of 10 us, sends eight periods of 40 kHz, and holds its echo line high
//! from then until the echo comes, or for some 38 ms without an echo. Source: the maker's data
//! sheet (Elec Freaks, *HC-SR04*): 2 cm to 4 m, within 15 degrees.

/// Shortest range, m.
pub const SHORTEST: f64 = 0.02;

/// Longest range, m.
pub const LONGEST: f64 = 4.0;

/// Opening angle of the beam, rad.
pub const FIELD_OF_VIEW: f64 = 15.0 * std::f64::consts::PI / 180.0;

/// Shortest pulse that starts a ping.
pub const TRIGGER: std::time::Duration = std::time::Duration::from_micros(10);

/// Median of the last five distances. Infinity, for nothing within range, is a distance like any
/// other.
#[derive(Clone, Debug, Default)]
pub struct Median {
    last: [f64; WIDTH],
    count: usize,
    next: usize,
}

const WIDTH: usize = 5;

impl Median {
    /// Adds a distance, unless it is NaN; returns the median.
    pub fn push(&mut self, distance: f64) -> Option<f64> {
        if !distance.is_nan() {
            self.last[self.next] = distance;
            self.next = (self.next + 1) % WIDTH;
            self.count = (self.count + 1).min(WIDTH);
        }
        self.value()
    }

    /// Median; of an even number the smaller of the middle two. `None` without distances.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        let mut sorted = self.last;
        let sorted = &mut sorted[..self.count];
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(self.count.saturating_sub(1) / 2).copied()
    }
}

/// Edge of the echo line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Time stamp of the kernel, ns.
    pub stamp_ns: u64,
    /// True for a rising edge.
    pub up: bool,
    /// Kernel's sequence number of the edge on this line; a gap means lost edges.
    pub number: u32,
}

/// Outcome of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The line was high for the time of an echo.
    Echo {
        /// Time the line was high, ns.
        length_ns: u64,
        /// Time of the rising edge.
        stamp_ns: u64,
    },
    /// The line was high longer than for any echo: nothing within range.
    Nothing {
        /// Time of the rising edge.
        stamp_ns: u64,
    },
}

/// Evaluates the edges after one ping.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    up: Option<Edge>,
}

impl Listener {
    /// Takes an edge; returns the outcome of the ping once it is known. A falling edge without a
    /// rising one, and a pair with lost edges in between, are ignored.
    pub fn take(&mut self, edge: Edge) -> Option<Outcome> {
        if edge.up {
            self.up = Some(edge);
            return None;
        }
        let up = self.up.take()?;
        let follows = edge.number == up.number.wrapping_add(1);
        let length_ns = edge.stamp_ns.checked_sub(up.stamp_ns).filter(|_| follows)?;
        let stamp_ns = up.stamp_ns;
        Some(if length_ns <= LONGEST_ECHO_NS {
            Outcome::Echo { length_ns, stamp_ns }
        } else {
            Outcome::Nothing { stamp_ns }
        })
    }

    /// True if the line is high after the last edge: a ping now would be ignored by the sensor.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up.is_some()
    }
}

/// Time to [`LONGEST`] and back in cold air (-20 degrees Celsius, 318.9 m/s), and a margin.
const LONGEST_ECHO_NS: u64 = 26_000_000;

/// Distance of an echo in air of this temperature, K; `None` if it is outside the sensor's range.
#[must_use]
pub fn metres(length_ns: u64, temperature: f64) -> Option<f64> {
    let distance = length_ns as f64 * 1e-9 * speed_of_sound(temperature) / 2.0;
    (SHORTEST..=LONGEST).contains(&distance).then_some(distance)
}

/// Speed of sound in dry air, m/s: an ideal gas with 331.3 m/s at 0 degrees Celsius.
#[must_use]
pub fn speed_of_sound(temperature: f64) -> f64 {
    331.3 * (temperature.max(0.0) / 273.15).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_wrong_ones_of_five_do_not_show() {
        let mut median = Median::default();
        assert_eq!(median.value(), None);
        assert_eq!(median.push(1.0), Some(1.0));
        assert_eq!(median.push(f64::INFINITY), Some(1.0));
        for distance in [1.01, 0.2, 1.02] {
            median.push(distance);
        }
        assert_eq!(median.value(), Some(1.01));
        assert_eq!(median.push(f64::NAN), Some(1.01));
        for _ in 0..3 {
            median.push(f64::INFINITY);
        }
        assert_eq!(median.value(), Some(f64::INFINITY));
    }

    fn edge(stamp_ns: u64, up: bool, number: u32) -> Edge {
        Edge { stamp_ns, up, number }
    }

    #[test]
    fn the_time_the_line_is_up_is_the_way_there_and_back() {
        let mut listener = Listener::default();
        assert_eq!(listener.take(edge(1_000, true, 1)), None);
        assert!(listener.is_up());
        let outcome = listener.take(edge(5_831_000, false, 2)).unwrap();
        assert_eq!(outcome, Outcome::Echo { length_ns: 5_830_000, stamp_ns: 1_000 });
        // At 20 degrees Celsius the speed of sound is 343.2 m/s.
        let found = metres(5_830_000, 293.15).unwrap();
        assert!((found - 1.0).abs() < 1e-3, "{found}");
        assert!(metres(5_830_000, 253.15).unwrap() < 0.94);
    }

    #[test]
    fn nothing_there_too_near_and_lost_edges_are_no_distances() {
        let mut listener = Listener::default();
        listener.take(edge(0, true, 1));
        assert_eq!(listener.take(edge(38_000_000, false, 2)), Some(Outcome::Nothing { stamp_ns: 0 }));
        assert_eq!(metres(100_000, 293.15), None);
        assert_eq!(listener.take(edge(50, false, 3)), None, "never came up");
        listener.take(edge(60, true, 4));
        assert_eq!(listener.take(edge(900_000, false, 7)), None, "edges 5 and 6 were lost");
        listener.take(edge(1_000_000, true, 8));
        assert_eq!(listener.take(edge(900_000, false, 9)), None, "time went back");
    }
}
