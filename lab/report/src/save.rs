//! Saving a report in a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
