//! A report to JSON and back.

use thiserror::Error;

use crate::Report;

impl Report {
    /// The report as JSON; [`Report::from_json`] reads it.
    #[must_use]
    pub fn json(&self) -> String {
        // Plain data with text as keys: serialising it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a report written by [`Report::json`].
    ///
    /// # Errors
    /// The line and what was expected there.
    pub fn from_json(text: &str) -> Result<Self, NotAReport> {
        serde_json::from_str(text).map_err(NotAReport)
    }
}

/// JSON that is not a report, or text that is not JSON.
#[derive(Debug, Error)]
#[error("expected a report as `report.json` holds it, found: {0}")]
pub struct NotAReport(serde_json::Error);
