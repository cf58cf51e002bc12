//! Which robot a command is about.

use std::path::Path;
use std::time::Duration;

use robot::{Overrides, Robot};

use crate::Error;

/// The robot of those who name none: six servo axes.
const BUILT_IN: &str = include_str!("../../../../examples/six-axis.toml");

/// The robot in the file at `path`, or the built-in one.
pub fn robot(path: Option<&Path>, period: Option<Duration>) -> Result<Robot, Error> {
    let overrides = Overrides { period };
    Ok(match path {
        Some(path) => Robot::read(path, overrides)?,
        None => Robot::parse_with(BUILT_IN, "(built-in) six-axis.toml", overrides)?,
    })
}
