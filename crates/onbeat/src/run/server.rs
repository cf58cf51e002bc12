//! Lets other programs attach to the run.

use std::io;

use control::ipc::Ipc;
use ipc::bus::Guests;
use ipc::server::{OpenError, PlaceError, Server, may_be_made};
use robot::RobotConfig;

use super::name::name;
use super::side_tasks::{self, Devices};
use crate::Error;
use crate::compose::ipc::{InPreOp, Interface, Ports, interface};
use crate::compose::rules::MovedBy;

/// An IPC that is open.
pub(super) struct Open {
    /// The cycle's end.
    pub(super) ipc: Ipc,
    /// Open as long as this is.
    pub(super) server: Server,
    /// The real-time ends of its ports.
    pub(super) ports: Ports,
    /// The devices outside the bus, not started.
    pub(super) devices: Devices,
    /// Entrance for clients of the bus.
    pub(super) guests: Guests,
}

/// Opens the IPC of `robot` under the requested name or path, or under the default name. Returns
/// the reason if this user has no place for it.
///
/// # Errors
/// A name that is taken or impossible, a group that cannot be admitted, or a robot file with an
/// impossible IPC.
pub(super) fn open(
    robot: &RobotConfig,
    asked: Option<&str>,
    moved_by: MovedBy,
    in_pre_op: &InPreOp,
    simulated: bool,
) -> Result<Result<Open, String>, Error> {
    let name = name(robot, asked);
    if let Some(folder) = name.folder.as_deref().filter(|it| !it.is_dir() && !may_be_made(it)) {
        let why = "there is no such folder: make it, or give a name alone (--ipc NAME)";
        let error = io::Error::new(io::ErrorKind::NotFound, why);
        return Err(OpenError::Place(PlaceError::Folder { folder: folder.to_owned(), error }).into());
    }
    for attempt in 1..=MOST_OF_A_NAME {
        let Some(name) = name.attempt(attempt) else { break };
        let Interface { mut builder, rules, ports } = interface(robot, &name.name, moved_by, in_pre_op)?;
        let devices = side_tasks::devices(robot, simulated, &mut builder)?;
        if let Some(folder) = &name.folder {
            builder.folder(folder);
        }
        let guests = match builder.bus() {
            Ok(guests) => guests,
            Err(error) => return Ok(Err(error.to_string())),
        };
        match builder.open() {
            Ok((ends, server)) => {
                return Ok(Ok(Open { ipc: Ipc::new(ends, rules), server, ports, devices, guests }));
            }
            Err(OpenError::Place(PlaceError::Taken { .. })) if name.may_be_another => {}
            Err(
                error @ (OpenError::Name { .. }
                | OpenError::Place(
                    PlaceError::Taken { .. } | PlaceError::Occupied { .. } | PlaceError::Group { .. },
                )),
            ) => return Err(error.into()),
            // Otherwise a client with this name would wait for a cycle that does not exist.
            Err(error) if asked.is_some() => return Err(error.into()),
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
    Ok(Err(format!("{MOST_OF_A_NAME} cycles of robot \"{}\" run already", robot.name)))
}

/// Cycles of one robot that get different names.
const MOST_OF_A_NAME: u32 = 100;
