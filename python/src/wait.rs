//! Waiting: without Python's lock, and so that Ctrl-C gets through.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::{PyResult, Python};

/// Asks `look` until it gives something or the time has expired (`None`: never). `look` runs
/// without Python's lock and may itself wait up to the given time.
///
/// # Errors
/// The error of `look`; KeyboardInterrupt.
pub(crate) fn until<T: Send>(
    py: Python<'_>,
    longest: Option<Duration>,
    mut look: impl FnMut(Duration) -> PyResult<Option<T>> + Send,
) -> PyResult<Option<T>> {
    let begin = Instant::now();
    loop {
        let left = longest.map_or(SLICE, |longest| longest.saturating_sub(begin.elapsed()).min(SLICE));
        if let Some(found) = py.detach(|| look(left))? {
            return Ok(Some(found));
        }
        py.check_signals()?;
        if longest.is_some_and(|longest| begin.elapsed() >= longest) {
            return Ok(None);
        }
    }
}

/// A time in seconds, as Python gives them.
///
/// # Errors
/// One that is negative or no number.
pub(crate) fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        PyValueError::new_err(format!("{name} is {value}, expected a time in seconds, 0 or more"))
    })
}

/// The same, where `None` is for ever.
pub(crate) fn maybe_seconds(name: &str, value: Option<f64>) -> PyResult<Option<Duration>> {
    value.map(|value| seconds(name, value)).transpose()
}

/// Time Ctrl-C may have to wait.
const SLICE: Duration = Duration::from_millis(50);
