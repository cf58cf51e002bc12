//! Saving a report in a folder.

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;

use crate::Report;

/// Files of a saved report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// `report.md`.
    pub markdown: PathBuf,
    /// `report.json`.
    pub json: PathBuf,
    /// `report.html`.
    pub html: PathBuf,
}

/// Writes `report.md`, `report.json` and `report.html` into `folder`, which is created if
/// necessary.
///
/// # Errors
/// The file that cannot be written, with the reason.
pub fn save(report: &Report, folder: &Path) -> io::Result<Saved> {
    fs::create_dir_all(folder).map_err(|error| named(folder, &error))?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| named(&path, &error))?;
        Ok::<_, io::Error>(path)
    };
    Ok(Saved {
        json: write("report.json", report.json())?,
        markdown: write("report.md", report.markdown())?,
        html: write("report.html", report.html())?,
    })
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

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
