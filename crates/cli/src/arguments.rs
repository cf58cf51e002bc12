//! Arguments that several commands share.

use std::time::Duration;

/// A duration on the command line, as in robot files.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    robot::duration::parse(text).map_err(|error| error.to_string())
}
