//! Robot file: bus, axes, cycle and controllers of one robot, read from TOML and checked as a whole.
//!
//! [`Robot::read`] returns a description in which every reference resolves and every mapping can be set up,
//! or one [`FileError`] with file, line and column, the content found, the content expected and the remedy.
//! This crate does not touch a bus: running, simulating and displaying a robot start from the same
//! description.
//!
//! ```
//! let text = r#"
//!     [cycle]
//!     period = "1ms"
//!
//!     [[bus.sub_device]]
//!     name = "lamps"
//!     simulate = { kind = "digital_outputs", channels = 4 }
//! "#;
//! let robot = onbeat_robot::Robot::parse(text, "lamps.toml").unwrap();
//! assert_eq!(robot.bus.sub_devices[0].name, "lamps");
//!
//! let error = onbeat_robot::Robot::parse("[cicle]", "lamps.toml").unwrap_err();
//! assert!(error.to_string().starts_with("lamps.toml:1:2: unknown key \"cicle\""));
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`model`] | the keys of a robot file, each of the type it is used as |
//! | `field` | values that are refused alone |
//! | `devices` | properties that SubDevices take over |
//! | `source` | the file's tables, and the places of their values |
//! | `check` | values that are refused together: the first problem found |
//! | [`object`] | values of CoE objects as text |
//! | [`task_set`] | task sets, for analysis |
//! | [`duration`] | durations as text |
#![forbid(unsafe_code)]

mod check;
mod devices;
pub mod duration;
mod error;
mod field;
pub mod model;
mod nearest;
pub mod object;
mod source;
pub mod task_set;

use std::path::Path;
use std::time::Duration;

pub use error::FileError;
pub use model::*;

use crate::source::Source;

/// Values that replace those of the file; they are checked like the file's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Replaces `cycle.period`; a SYNC0 that follows the period follows this one.
    pub period: Option<Duration>,
}

impl Robot {
    /// Reads and checks the robot file at `path`.
    ///
    /// # Errors
    /// An unreadable file, or the first problem in it.
    pub fn read(path: &Path, overrides: Overrides) -> Result<Self, FileError> {
        let text = source::text(path)
            .map_err(|error| FileError::unreadable(path, "a robot file in TOML", &error))?;
        let mut robot = Self::parse_with(&text, &path.display().to_string(), overrides)?;
        robot.resolve_paths(path.parent().unwrap_or(Path::new("")));
        Ok(robot)
    }

    /// Checks the robot file `text`, which errors name `file_name`.
    ///
    /// # Errors
    /// The first problem in it.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, FileError> {
        Self::parse_with(text, file_name, Overrides::default())
    }

    /// [`Robot::parse`] with some of the file's values replaced.
    ///
    /// # Errors
    /// The first problem in the file as it reads with `overrides`.
    pub fn parse_with(text: &str, file_name: &str, overrides: Overrides) -> Result<Self, FileError> {
        let checked = || {
            let source = Source::robot(text)?;
            let mut robot: Self = source.read()?;
            check::robot(&mut robot, overrides, &source).map(|()| robot)
        };
        let mut robot = checked().map_err(|problem| FileError::at(text, file_name, problem))?;
        (robot.signals.text, robot.signals.file) = (text.to_owned(), file_name.to_owned());
        Ok(robot)
    }

    /// Resolves the paths of a robot file, which are relative to the folder of the file.
    fn resolve_paths(&mut self, folder: &Path) {
        for simulation in self.bus.sub_devices.iter_mut().filter_map(|it| it.simulation.as_mut()) {
            if let Some(path) = &mut simulation.sii {
                *path = folder.join(&*path);
            }
        }
        if let Some(arm) = &mut self.arm {
            arm.urdf = folder.join(&arm.urdf);
        }
    }
}
