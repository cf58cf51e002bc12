//! /cmd_vel, as Twist and as TwistStamped: from samples to a command of the base.
//!
//! A topic of DDS may have writers of several types, and a reader receives those of its own. RustDDS keeps
//! one cache for each topic *name*, so two readers of one name see each other's samples: samples are
//! distinguished by their length - a Twist has 48 bytes, a TwistStamped never less than 64 - and counted
//! once by writer and sequence number.

use std::collections::HashMap;

use ipc::command;
use ipc::description::{BaseDescription, Description};
use rustdds::{GUID, SequenceNumber};

use super::commands::{attached, report};
use super::{Endpoints, Moment};
use crate::check::finite;
use crate::dds::sample::Sample;
use crate::dds::{DdsError, Quality, Reader};
use crate::messages::geometry::{Twist, TwistStamped};
use types::{BaseKind, ControllerKind};

/// Readers of /cmd_vel.
pub(crate) struct Velocity {
    /// Of a Twist and of a TwistStamped; none for a robot without a controller of a base.
    readers: Vec<Reader>,
    newest: Newest,
}

impl Velocity {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>, robot: &Description) -> Result<Self, DdsError> {
        let follows = robot.controllers.iter().filter_map(|it| it.kind).any(ControllerKind::drives_a_base);
        let kinds: &[&str] =
            if follows { &["geometry_msgs/Twist", "geometry_msgs/TwistStamped"] } else { &[] };
        let readers = kinds.iter().map(|kind| endpoints.subscribe("cmd_vel", kind, Quality::BestEffort));
        Ok(Self { readers: readers.collect::<Result<_, _>>()?, newest: Newest::default() })
    }

    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>) {
        // Of all samples since the last turn the newest counts.
        let mut velocity = None;
        for reader in &self.readers {
            while let Some(sample) = reader.take() {
                if self.newest.is_new(&sample) {
                    velocity = Some(sample);
                }
            }
        }
        if let Some(sample) = velocity {
            report("cmd_vel", moment, |moment| drive(&sample, moment));
        }
    }

    pub(crate) fn readers(&mut self) -> Vec<&mut Reader> {
        self.readers.iter_mut().collect()
    }
}

/// Passes a velocity on to the cycle.
pub(super) fn drive(sample: &Sample, moment: &mut Moment<'_>) -> Result<(), String> {
    let twist = decode_velocity(sample)?;
    let robot = attached(&mut moment.robot)?;
    let base = robot.description().base.as_ref();
    let base = base.ok_or("the robot has no base that drives about (no [base] in its file)")?;
    let velocity = possible(&twist, base)?;
    if let Some(active) =
        robot.active().filter(|active| !active.kind.is_some_and(ControllerKind::drives_a_base))
    {
        return Err(format!("controller `{}` is active, and does not drive the base", active.name));
    }
    robot.drive(velocity, moment.settings.cmd_vel_timeout)
}

/// Decodes a Twist or a TwistStamped.
fn decode_velocity(sample: &Sample) -> Result<Twist, String> {
    if sample.bytes.len() <= TWIST {
        return sample.decode();
    }
    sample.decode::<TwistStamped>().map(|stamped| stamped.twist)
}

/// Bytes of a Twist.
const TWIST: usize = 48;

/// Velocity of a base from a twist message.
///
/// # Errors
/// A part of the twist that the base cannot do.
fn possible(twist: &Twist, base: &BaseDescription) -> Result<command::Twist, String> {
    let Twist { linear, angular } = *twist;
    let numbers = [
        ("linear.x", linear.x),
        ("linear.y", linear.y),
        ("linear.z", linear.z),
        ("angular.x", angular.x),
        ("angular.y", angular.y),
        ("angular.z", angular.z),
    ];
    for (name, number) in numbers {
        finite(name, number)?;
    }
    if base.kind == BaseKind::Differential && linear.y != 0.0 {
        return Err(format!("linear.y is {} m/s: a differential drive cannot go sideways", linear.y));
    }
    Ok(command::Twist::new(linear.x, linear.y, angular.z))
}

/// Last sequence number of each writer.
#[derive(Default)]
struct Newest {
    last: HashMap<GUID, SequenceNumber>,
}

/// Writers that are remembered: commands come from a few.
const MOST_WRITERS: usize = 64;

impl Newest {
    fn is_new(&mut self, sample: &Sample) -> bool {
        let (writer, number) = (sample.identity.writer_guid, sample.identity.sequence_number);
        if self.last.get(&writer).is_some_and(|&last| number <= last) {
            return false;
        }
        if self.last.len() >= MOST_WRITERS {
            self.last.clear();
        }
        self.last.insert(writer, number);
        true
    }
}

#[cfg(test)]
mod tests;
