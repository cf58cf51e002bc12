//! Ultrasonic distance sensor of the kind HC-SR04: from edges of a line to a distance, without I/O
//! or clock.
//!
//! | module | contents |
//! |---|---|
//! | [`echo`] | outcome of a ping from the line's edges, and its distance |
//! | [`median`] | median filter |
//!
//! The sensor takes a pulse of 10 us, sends eight periods of 40 kHz, and holds its echo line high
//! from then until the echo comes, or for some 38 ms without an echo. Source: the maker's data
//! sheet (Elec Freaks, *HC-SR04*): 2 cm to 4 m, within 15 degrees.

pub mod echo;
pub mod median;

pub use echo::{Edge, Listener, Outcome, metres};
pub use median::Median;

/// Shortest range, m.
pub const SHORTEST: f64 = 0.02;

/// Longest range, m.
pub const LONGEST: f64 = 4.0;

/// Opening angle of the beam, rad.
pub const FIELD_OF_VIEW: f64 = 15.0 * std::f64::consts::PI / 180.0;

/// Shortest pulse that starts a ping.
pub const TRIGGER: std::time::Duration = std::time::Duration::from_micros(10);
