//! Faults of a simulated bus on demand, from a script or over a socket. The simulator reads their
//! text ([`simulator::fault`]).
//!
//! | module | contents |
//! |---|---|
//! | [`frames`] | shares of frames that are lost, delayed, ... |
//! | [`script`] | the file of a script, which errors name |
//! | [`segment`] | a segment on which faults take place |
//! | [`socket`] | faults from other programs |

pub mod frames;
pub mod script;
pub mod segment;
pub mod socket;

use std::time::Duration;

use robot::RobotConfig;
use simulator::Segment;

pub use frames::FrameFaults;
pub use script::ScriptErrors;
pub(crate) use segment::FaultReports;
pub use segment::{FaultHandle, FaultySegment, Listing, NotTaken, Report};
pub use simulator::fault::{
    Fault, FaultError, GRAMMAR, OtherIdentity, Port, Script, Share, Targets, Timed,
};

/// The SubDevices of `robot`, which `segment` simulates.
#[must_use]
pub fn targets(robot: &RobotConfig, segment: &mut Segment) -> Targets {
    Targets::of(robot.bus.sub_devices.iter().map(|it| it.name.clone()), segment)
}

/// A time since the start, as a script has it.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.3}s", time.as_secs_f64())
}
