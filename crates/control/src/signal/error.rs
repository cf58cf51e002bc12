//! Errors of signals.

use thiserror::Error;
use types::ValueType;
use types::near::Near;

/// Reason for which a controller cannot have a signal.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SignalError {
    /// No signal has this name.
    #[error("no {} is called \"{name}\"; {near}", direction(*input))]
    Unknown {
        /// Requested name.
        name: String,
        /// True if an input was requested, false for an output.
        input: bool,
        /// Names in its place.
        near: Near,
    },
    /// It goes the other way.
    #[error("signal \"{name}\" is an {}, expected an {}", direction(!input), direction(*input))]
    Direction {
        /// Requested name.
        name: String,
        /// True if an input was requested, false for an output.
        input: bool,
    },
    /// A part of the robot, or the cycle, writes this output.
    #[error("output \"{name}\" is written by {writer}: it can be read only")]
    Taken {
        /// Requested name.
        name: String,
        /// Its writer.
        writer: String,
    },
    /// This output is commanded from outside.
    #[error(
        "output \"{name}\" is commanded from outside: do not write it here, or remove writer = \
         \"outside\" from the robot file"
    )]
    Outside {
        /// Requested name.
        name: String,
    },
    /// It has another number of elements.
    #[error("signal \"{name}\" has {}, expected {wanted}", counted(*found))]
    Elements {
        /// Requested name.
        name: String,
        /// Number of its elements.
        found: usize,
        /// Requested number.
        wanted: usize,
    },
    /// It is of another type.
    #[error("signal \"{name}\" is {found}{}, which {wanted} does not take; read and write it as {}",
        if *scaled { " with a scale" } else { "" }, fitting(*found, *scaled))]
    Type {
        /// Requested name.
        name: String,
        /// Type of its entry.
        found: ValueType,
        /// It has a scale or an offset.
        scaled: bool,
        /// Requested type.
        wanted: &'static str,
    },
}

/// A signal that lies outside the process data of its SubDevice.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("signal \"{name}\" ends at bit {end} of SubDevice {position}, expected at most {} bits: correct its place", bytes * 8)]
pub struct PlaceError {
    /// Name.
    pub name: String,
    /// Position on the bus of its SubDevice.
    pub position: usize,
    /// First bit behind it.
    pub end: usize,
    /// Bytes of inputs or outputs that the SubDevice has.
    pub bytes: usize,
}

/// A signal that writes an output of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "signal \"{name}\" writes {index:#06x}:{sub_index:02x} of SubDevice {position}, {}",
    match ownership {
        Ownership::SetPoint =>
            "which an axis writes within its limits: remove the signal, and set the axis's set-point",
        Ownership::Limit =>
            "which bounds how an axis moves: remove the signal, or give it a fixed value (Flow::Fixed)",
        Ownership::Brake =>
            "which releases the brake of an axis: remove the signal, and enable the axis",
    }
)]
pub struct OwnedError {
    /// Name.
    pub name: String,
    /// Position on the bus of its SubDevice.
    pub position: usize,
    /// Index of the object.
    pub index: u16,
    /// Sub-index of the object.
    pub sub_index: u8,
    /// Use that the axis has for it.
    pub ownership: Ownership,
}

/// Use that an axis has for an output.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// It moves the axis.
    SetPoint,
    /// It bounds how the axis moves. A fixed value may.
    Limit,
    /// It releases the brake of the axis.
    Brake,
}

/// Signals that are impossible, or that a controller cannot have.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SignalsError {
    /// Outside the process data.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// An output of an axis.
    #[error(transparent)]
    Owned(#[from] OwnedError),
    /// [`crate::controller::Controller::init`] has refused.
    #[error("the controller cannot start: {0}")]
    Controller(#[from] SignalError),
    /// [`crate::controller::Controller::init`] has panicked, with these words.
    #[error("the controller panicked before the first cycle: {0}")]
    Panicked(String),
}

fn direction(input: bool) -> &'static str {
    if input { "input" } else { "output" }
}

fn counted(elements: usize) -> String {
    match elements {
        0 => "no elements".to_owned(),
        1 => "1 element".to_owned(),
        more => format!("{more} elements"),
    }
}

/// Types that take a signal.
fn fitting(value_type: ValueType, scaled: bool) -> String {
    let bits = value_type.bits().next_power_of_two().max(8);
    match value_type {
        ValueType::Bool => "bool".to_owned(),
        _ if scaled => "f64".to_owned(),
        ValueType::Unsigned(_) => format!("u{bits} or f64"),
        ValueType::Signed(_) => format!("i{bits} or f64"),
        ValueType::Float => "f32 or f64".to_owned(),
        ValueType::Double => "f64".to_owned(),
    }
}
