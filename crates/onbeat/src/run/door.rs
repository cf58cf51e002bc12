//! Lets other programs attach to the run.

use bridge::bus::Guests;
use bridge::seam::{Door, OpenError, PlaceError};
use robot::Robot;
use runtime::seam::Seam;
use types::Signal;

use super::beside::{self, Devices};
use super::name::name;
use crate::Error;
use crate::compose::seam::{self, Mover, Ports};

/// A seam that is open.
pub(super) struct Open {
    /// The cycle's end.
    pub(super) seam: Seam,
    /// Open as long as this is.
    pub(super) door: Door,
    /// The real-time ends of its ports.
    pub(super) ports: Ports,
    /// The devices beside the bus, not started.
    pub(super) devices: Devices,
    /// Entrance of those who ask the bus.
    pub(super) guests: Guests,
}

/// Opens the seam of `robot` under the name or path asked for, or one of its own. Where this user has no place for it:
/// why.
///
/// # Errors
/// A name that is taken or impossible, a group that cannot be let in, or a robot file whose seam cannot be.
pub(super) fn open(
    robot: &Robot,
    asked: Option<&str>,
    mover: Mover,
    signals: &[Signal],
    simulated: bool,
) -> Result<Result<Open, String>, Error> {
    let name = name(robot, asked);
    for attempt in 1..=MOST_OF_A_NAME {
        let Some(name) = name.attempt(attempt) else { break };
        let seam::Seam { mut builder, rules, ports } = seam::seam(robot, &name.name, mover, signals)?;
        let devices = beside::devices(robot, simulated, &mut builder)?;
        if let Some(folder) = &name.folder {
            builder.folder(folder);
        }
        let guests = match builder.bus() {
            Ok(guests) => guests,
            Err(error) => return Ok(Err(error.to_string())),
        };
        match builder.open() {
            Ok((ends, door)) => {
                return Ok(Ok(Open { seam: Seam::new(ends, rules), door, ports, devices, guests }));
            }
            Err(OpenError::Place(PlaceError::Taken { .. })) if name.may_be_another => {}
            Err(
                error @ (OpenError::Name { .. }
                | OpenError::Place(
                    PlaceError::Taken { .. } | PlaceError::Occupied { .. } | PlaceError::Group { .. },
                )),
            ) => return Err(error.into()),
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
    Ok(Err(format!("{MOST_OF_A_NAME} cycles of robot \"{}\" run already", robot.name)))
}

/// Cycles of one robot that find a name of their own.
const MOST_OF_A_NAME: u32 = 100;
