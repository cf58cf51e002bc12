//! Errors of a bus that cannot be brought up: the place, the expected value, the found one, and a
//! remedy.

mod sub_device;

pub use sub_device::{Awaited, AwaitedAction, SubDeviceError, SyncMiss};

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

use thiserror::Error;

use crate::al::AlState;
use crate::sii::Identity;
use crate::time::span;
use crate::wire::MacAddress;

/// A bring-up that failed.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BusError {
    /// No SubDevice answers.
    #[error(
        "no SubDevice answers: check the cable, the power of the first SubDevice and the \
         interface; a closed ring does not answer at one end alone: name its second interface, too \
         (--second-iface)"
    )]
    Empty,
    /// Replies come back with our own source address.
    #[error(
        "{found} {} came back that SubDevices have processed, but from our own source address {source_address}, expected \
         one with bit 1 of its first byte set: if this segment leaves the address alone, set replies = \
         \"unchanged_source\" in [bus] of the robot file",
        plural(*found as usize, "frame", "frames")
    )]
    UnchangedSource {
        /// Count.
        found: u64,
        /// Our source address.
        source_address: MacAddress,
    },
    /// Frames come back as they were sent.
    #[error(
        "the frames come back unprocessed ({found} so far): a loop or a switch sends them back; connect the interface to \
         the first SubDevice's IN"
    )]
    Reflected {
        /// Count.
        found: u64,
    },
    /// Fewer SubDevices than described.
    #[error(
        "{found} {} answer{}, expected {expected}: the first missing is SubDevice {found} \"{name}\"; check \
         its power and the cable to it",
        plural(*found, "SubDevice", "SubDevices"),
        plural(*found, "s", "")
    )]
    Missing {
        /// Number of SubDevices described.
        expected: usize,
        /// Number of SubDevices that answer.
        found: usize,
        /// Name of the first that is missing.
        name: String,
    },
    /// More SubDevices than described.
    #[error(
        "{found} {} answer{}, expected {expected}: SubDevice {expected} ({identity}) is not described; add it \
         to the robot file or unplug it",
        plural(*found, "SubDevice", "SubDevices"),
        plural(*found, "s", "")
    )]
    Unexpected {
        /// Number of SubDevices described.
        expected: usize,
        /// Number of SubDevices that answer.
        found: usize,
        /// Identity of the first one too many.
        identity: Identity,
    },
    /// A SubDevice of a ring is cabled the wrong way round.
    #[error(
        "SubDevice {position} \"{name}\": its port 0 is on the side of the ring's second interface, expected on that of the first: its IN \
         and OUT are swapped, and only one of the ring's two copies of a frame is processed there; swap its cables"
    )]
    SwappedInRing {
        /// Its place in the ring, from 0 at the first interface.
        position: u16,
        /// Its name.
        name: String,
    },
    /// A SubDevice that the bus may not lack is not there.
    #[error(
        "SubDevice {position} \"{name}\" is required, and none of the {found} that answer matches \
         it, in the order described; check its power, the cable to it and the order"
    )]
    MissingRequired {
        /// Position in the description, from 0.
        position: u16,
        /// Its name.
        name: String,
        /// Number of SubDevices that answer.
        found: usize,
    },
    /// No SubDevice there is described.
    #[error(
        "{found} {} answer{}, expected one or more SubDevices of the robot file: the first that \
         answers is {identity}; correct the robot file or the cable",
        plural(*found, "SubDevice", "SubDevices"),
        plural(*found, "s", "")
    )]
    NobodyDescribed {
        /// Number of SubDevices that answer.
        found: usize,
        /// Identity of the first.
        identity: Identity,
    },
    /// One SubDevice may be either of two described.
    #[error(
        "the SubDevice at place {place} of the bus ({identity}) can be SubDevice {position} \"{name}\" or SubDevice {other} \
         \"{other_name}\", expected one only: give them an alias each"
    )]
    Ambiguous {
        /// Place in the segment, from 0.
        place: u16,
        /// Its identity.
        identity: Identity,
        /// Position of the first in the description, from 0.
        position: u16,
        /// Its name.
        name: String,
        /// Position of the other in the description, from 0.
        other: u16,
        /// The other's name.
        other_name: String,
    },
    /// Two SubDevices can be the same one described.
    #[error(
        "the SubDevices at positions {first} and {second} of the bus both match SubDevice \
         {position} \"{name}\", expected one: give each a different alias, or unplug one"
    )]
    TwoOfOne {
        /// Position in the description, from 0.
        position: u16,
        /// Its name.
        name: String,
        /// Place in the segment, from 0.
        first: u16,
        /// Place in the segment, from 0.
        second: u16,
    },
    /// A required SubDevice is connected behind one that may be unplugged.
    #[error(
        "SubDevice {position} \"{name}\" is required and is connected behind SubDevice {before} \
         \"{before_name}\", which is hot_connect, expected nothing required behind what may be \
         unplugged: connect it elsewhere, or make it part of that group"
    )]
    BehindHotConnect {
        /// Position in the description, from 0.
        position: u16,
        /// Its name.
        name: String,
        /// Position in the description, from 0, of its predecessor.
        before: u16,
        /// That one's name.
        before_name: String,
    },
    /// More SubDevices than this MainDevice handles.
    #[error("{found} SubDevices answer, expected at most {maximum}")]
    TooMany {
        /// Number of SubDevices that answer.
        found: usize,
        /// Number possible.
        maximum: usize,
    },
    /// The number of SubDevices changed while they were brought up.
    #[error(
        "{found} of {expected} {} take{} the state change to {state}: check cables and power",
        plural(usize::from(*expected), "SubDevice", "SubDevices"),
        plural(usize::from(*found), "s", "")
    )]
    Incomplete {
        /// Number counted.
        expected: u16,
        /// Number that answered.
        found: u16,
        /// Asked of all.
        state: AlState,
    },
    /// Link states contradict the count.
    #[error("SubDevice {position} hangs on no open port: link states changed during the scan; start again")]
    Topology {
        /// Its position.
        position: u16,
    },
    /// One SubDevice fails.
    #[error("SubDevice {position} \"{name}\"{}{error}", error.joint())]
    SubDevice {
        /// Place in the segment, from 0.
        position: u16,
        /// Its name.
        name: String,
        /// Failure.
        error: SubDeviceError,
    },
    /// Broadcasts are answered, and their end does not come.
    #[error(
        "the number of SubDevices on the bus does not settle: register {register:#06x} was read \
         for {}, and the last count was {found}; check cables and power",
        span(*after)
    )]
    Unsettled {
        /// The one not through yet.
        register: u16,
        /// Time waited.
        after: Duration,
        /// SubDevices counted last.
        found: u16,
    },
    /// Process data does not fit the frames that can be on their way in one cycle.
    #[error("process data of {found} datagrams, expected at most {maximum}")]
    ProcessDataTooLarge {
        /// Datagrams needed.
        found: usize,
        /// Datagrams possible.
        maximum: usize,
    },
    /// Working counters never became whole in SafeOp.
    #[error(
        "process data was incomplete for {} on the way to Op: {}; check that the SubDevices answer \
         within the period",
        span(*after),
        not_whole(*datagram, *expected, *received)
    )]
    IncompleteProcessData {
        /// Time waited.
        after: Duration,
        /// The first datagram with a wrong one.
        datagram: usize,
        /// Value expected.
        expected: u16,
        /// Value found; `None` if its frame did not come back. The expected value if all were right
        /// in the last cycle, and too seldom before.
        received: Option<u16>,
    },
    /// The reference clock's time, which SYNC0 waits for, never came in SafeOp.
    #[error(
        "no time of the reference clock was received for {} on the way to Op, although frames \
         were: check the cables and the SubDevice with the reference clock",
        span(*after)
    )]
    NoReferenceTime {
        /// Time waited.
        after: Duration,
    },
}

/// Datagram of process data that is not whole.
fn not_whole(datagram: usize, expected: u16, received: Option<u16>) -> String {
    match received {
        Some(received) if received == expected => {
            "it was complete in the last cycle, but not in enough consecutive cycles".to_owned()
        }
        Some(received) => {
            format!("datagram {datagram} came back with working counter {received}, expected {expected}")
        }
        None => format!("the frame with datagram {datagram} did not come back"),
    }
}

/// The word for `count` of them.
fn plural(count: usize, one: &'static str, more: &'static str) -> &'static str {
    if count == 1 { one } else { more }
}
