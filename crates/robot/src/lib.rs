//! Robot file, the description of one robot in TOML: read, then checked as a whole.
//!
//! [`RobotConfig::read`] returns a description in which every reference resolves and every mapping can be set up,
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
//! | `field` | values that are refused alone |
//! | `devices` | properties that SubDevices take over |
//! | `source` | the file's tables, and the places of their values |
//! | `value` | a table as a value of the model |
//! | `check` | values that are refused together: the first problem found |
//! | `doubt` | values that are allowed, and hardly meant |
//! | `task_set` | task sets, for analysis (feature `task-set`) |
//! | [`draft`] | a robot file from what is on a bus |
//! | [`duration`] | durations as text |
#![forbid(unsafe_code)]

mod check;
mod devices;
mod doubt;
pub mod draft;
pub mod duration;
mod error;
mod field;
pub mod model;
mod nearest;
mod source;
#[cfg(feature = "task-set")]
pub mod task_set;
mod value;

use std::path::Path;

pub use error::FileError;
pub use model::*;
pub use nearest::nearest;

use sha2::{Digest, Sha256};
use toml::Spanned;
use toml::de::DeTable;

use crate::error::Problem;
use crate::source::Source;

/// Text of the file at `path`, a regular one of 16 MiB at most.
///
/// # Errors
/// A file that cannot be read, where `expected` was.
pub fn read_text(path: &Path, expected: &str) -> Result<String, FileError> {
    source::text(path).map_err(|error| FileError::unreadable(path, expected, &error))
}

/// Problems of a file that are told at once: more are not read.
const MOST_PROBLEMS: usize = 20;

/// JSON Schema (draft 2020-12) of robot files, for editors: their keys, types, ranges and choices. What [`RobotConfig::parse`] refuses besides - references,
/// keys that exclude each other - is not in it.
pub const SCHEMA: &str = include_str!("../robot.schema.json");

/// Robot of those who name none: six servo axes.
const BUILT_IN: &str = include_str!("../../../examples/six-axis.toml");

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
        let checked = || {
            let source = Source::robot(text)?;
            let mut robot: Self = source.read()?;
            robot.cycle.replace(overrides);
            check::robot(&mut robot, &source).map(|()| robot)
        };
        let mut robot = checked().map_err(|problem| FileError::at(text, file_name, problem))?;
        (robot.signals.text, robot.signals.file) = (text.to_owned(), file_name.to_owned());
        Ok(robot)
    }

    /// SHA-256 of the robot file's text, in hexadecimal, as `sha256sum` prints it: what a recording was made with. Files that
    /// it names, and what a command line replaces, are not in it. `None` of one that was made without a file.
    #[must_use]
    pub fn sha256(&self) -> Option<String> {
        let text = &self.signals.text;
        let digest = || Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        (!text.is_empty()).then(digest)
    }

    /// All problems of the robot file `text`, in the order in which they are met; of one that [`RobotConfig::parse`] reads none.
    ///
    /// Behind the first, each is what is found once the values before it are replaced by ones that may stand there, or left out. Where
    /// neither helps it is the last one: more may show once these are mended.
    #[must_use]
    pub fn problems(text: &str, file_name: &str) -> Vec<FileError> {
        let mut tables = match source::tables(text) {
            Ok(tables) => tables,
            Err(problem) => return vec![FileError::at(text, file_name, problem)],
        };
        let mut problems: Vec<FileError> = Vec::new();
        let mut without: Vec<String> = Vec::new();
        for _ in 0..MOST_PROBLEMS {
            let Some(problem) = Self::problem(text, &tables) else { break };
            let start = problem.span.start;
            let found = FileError::at(text, file_name, problem);
            // What names a table that was left out is right.
            let told = !without.iter().any(|name| found.names(name));
            if problems.contains(&found) {
                break;
            }
            match Self::mended(text, &tables, start, &found) {
                Some((mended, left_out)) => {
                    tables = mended;
                    without.extend(left_out);
                    problems.extend(told.then_some(found));
                }
                None => {
                    problems.extend(told.then_some(found));
                    break;
                }
            }
        }
        problems
    }

    /// The tables without the problem at `start`: with another value there, without its key, or without the table of a list that cannot
    /// be without the key; and the name of that table.
    fn mended<'t>(
        text: &str,
        tables: &Spanned<DeTable<'t>>,
        start: usize,
        found: &FileError,
    ) -> Option<(Spanned<DeTable<'t>>, Option<String>)> {
        let replaced = source::substitutes(&found.found, &found.expected).into_iter().find_map(|value| {
            let mut tables = tables.clone();
            let replaced = source::replace(tables.get_mut(), start, &value);
            let helps = || Self::problem(text, &tables).is_none_or(|next| next.span.start != start);
            (replaced && helps()).then_some((tables, None))
        });
        replaced.or_else(|| {
            let mut shorter = tables.clone();
            let key = source::remove(shorter.get_mut(), start)?;
            let next = Self::problem(text, &shorter).map(|it| FileError::at(text, "", it));
            if !next.is_some_and(|next| next.lacks(&key)) {
                return Some((shorter, None));
            }
            let mut shorter = tables.clone();
            let name = source::remove_item(shorter.get_mut(), start)?;
            Some((shorter, Some(name)))
        })
    }

    fn problem(text: &str, tables: &Spanned<DeTable<'_>>) -> Option<Problem> {
        Source::robot_of(text, tables.clone()).and_then(|it| Self::checked(&it)).err()
    }

    fn checked(source: &Source<'_>) -> check::Checked<Self> {
        let mut robot: Self = source.read()?;
        check::robot(&mut robot, source).map(|()| robot)
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
