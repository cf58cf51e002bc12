//! Robot file, the description of one robot in TOML: read, then checked as a whole.
//!
//! [`RobotConfig::read`] returns a description in which every reference resolves and every mapping
//! can be set up, or one [`FileError`] with file, line and column, the content found, the content
//! expected and the remedy. This crate does not touch a bus: running, simulating and displaying a
//! robot start from the same description.
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
//! let robot = onbeat_robot::RobotConfig::parse(text, "lamps.toml").unwrap();
//! assert_eq!(robot.bus.sub_devices[0].name, "lamps");
//!
//! let error = onbeat_robot::RobotConfig::parse("[cicle]", "lamps.toml").unwrap_err();
//! assert!(error.to_string().starts_with("lamps.toml:1:2: unknown key \"cicle\""));
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`model`] | the keys of a robot file, each of the type it is used as |
//! | `field` | values that are refused alone; places of values in the text |
//! | `devices` | properties that SubDevices take over |
//! | `value` | a table as a value of the model |
//! | `check` | values that are refused together: the first problem found |
//! | `mend` | all problems of a file |
//! | `barrier` | objects of the drives that follow from the limits |
//! | `doubt` | values that are allowed, and hardly meant |
//! | `task_set` | task sets, for analysis (feature `task-set`) |
//! | [`draft`] | a robot file from what is on a bus |
#![forbid(unsafe_code)]

mod barrier;
mod check;
mod devices;
mod doubt;
pub mod draft;
mod error;
mod field;
mod mend;
pub mod model;
#[cfg(feature = "task-set")]
pub mod task_set;
mod value;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

pub use barrier::{BarrierSource, DriveBarrier};
pub use error::FileError;
pub use field::is_unseen;
pub use model::*;

use sha2::{Digest, Sha256};
use toml::Spanned;
use toml::de::DeTable;

use crate::error::Problem;
use crate::field::Place;

/// Text of the file at `path`, a regular one of 16 MiB at most.
///
/// # Errors
/// A file that cannot be read, where `expected` was.
pub fn read_text(path: &Path, expected: &str) -> Result<String, FileError> {
    text(path).map_err(|error| FileError::unreadable(path, expected, &error))
}

/// Text without a byte-order mark of the file at `path`, a regular one: others may have no end, or
/// nothing to read for ever.
fn text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(LARGEST + 1).read_to_string(&mut text)?;
    // Some editors begin a file with a byte-order mark.
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    if text.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it has more than {} MiB", LARGEST >> 20)));
    }
    Ok(text)
}

/// Tables of `text`.
fn tables(text: &str) -> Result<Spanned<DeTable<'_>>, Problem> {
    DeTable::parse(text).map_err(|error| Problem::from_toml(text, &error))
}

/// Bytes of a file at most: a thousand times what large robots have.
const LARGEST: u64 = 16 << 20;

/// UTF-8 byte-order mark.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// JSON Schema (draft 2020-12) of robot files, for editors: their keys, types, ranges and choices.
/// It does not cover references, and keys that exclude each other, which [`RobotConfig::parse`]
/// checks.
pub const SCHEMA: &str = include_str!("../robot.schema.json");

/// Robot used without a robot file: six servo axes.
const BUILT_IN: &str = include_str!("six-axis.toml");

impl RobotConfig {
    /// Reads and checks the robot file at `path`; without one the built-in robot.
    ///
    /// # Errors
    /// As [`RobotConfig::read`].
    pub fn read_or_built_in(path: Option<&Path>, overrides: Overrides) -> Result<Self, FileError> {
        match path {
            Some(path) => Self::read(path, overrides),
            None => Self::parse_with(BUILT_IN, "(built-in) six-axis.toml", overrides),
        }
    }

    /// Reads and checks the robot file at `path`.
    ///
    /// # Errors
    /// An unreadable file, or the first problem in it.
    pub fn read(path: &Path, overrides: Overrides) -> Result<Self, FileError> {
        let text = read_text(path, "a robot file in TOML")?;
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

    /// [`RobotConfig::parse`] with some of the file's values replaced.
    ///
    /// # Errors
    /// The first problem in the file as it reads with `overrides`.
    pub fn parse_with(text: &str, file_name: &str, overrides: Overrides) -> Result<Self, FileError> {
        let checked = tables(text).and_then(|tables| Self::of(text, tables, overrides));
        let mut robot = checked.map_err(|problem| FileError::at(text, file_name, problem))?;
        (robot.signals.text, robot.signals.file) = (text.to_owned(), file_name.to_owned());
        Ok(robot)
    }

    /// SHA-256 of the robot file's text, in hexadecimal, as `sha256sum` prints it, for recordings.
    /// Files that it names, and values that a command line replaces, are not included. `None`
    /// without a file.
    #[must_use]
    pub fn sha256(&self) -> Option<String> {
        let text = &self.signals.text;
        let digest = || Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        (!text.is_empty()).then(digest)
    }

    /// The robot of these tables of `text`, with some of their values replaced.
    fn of(text: &str, tables: Spanned<DeTable<'_>>, overrides: Overrides) -> Result<Self, Problem> {
        let root = devices::completed(text, tables)?;
        let mut robot: Self = value::read(text, &root)?;
        robot.cycle.replace(overrides);
        check::robot(&mut robot, Place::of(&root)).map(|()| robot)
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
