//! Rows of a recording, by `onbeat export`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command;

/// Rows of a recording with whole numbers.
pub(super) struct Recorded {
    columns: Vec<String>,
    rows: Vec<Vec<u64>>,
}

impl Recorded {
    /// Rows of the recording at `path`, which the release program of `root` made.
    ///
    /// # Errors
    /// The export failed, or has no rows.
    pub(super) fn read(root: &Path, path: &Path) -> Result<Self, String> {
        let csv = path.with_extension("csv");
        let mut export = Command::new(root.join("target/release/onbeat"));
        command::output(export.arg("export").arg(path).arg(&csv).arg("--force"))?;
        let text = fs::read_to_string(&csv).map_err(|error| format!("{}: {error}", csv.display()))?;
        let mut lines = text.lines();
        let columns = lines.next().unwrap_or_default().split(',').map(str::to_owned).collect();
        let row = |line: &str| line.split(',').map(|value| value.parse().unwrap_or(0)).collect();
        Ok(Self { columns, rows: lines.map(row).collect() })
    }

    /// Values of these columns, row by row.
    ///
    /// # Errors
    /// A column that the recording does not have.
    pub(super) fn values<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<impl Iterator<Item = [u64; N]> + '_, String> {
        let mut places = [0; N];
        for (place, name) in places.iter_mut().zip(names) {
            let found = self.columns.iter().position(|column| column == name);
            *place = found.ok_or_else(|| format!("no column {name}"))?;
        }
        Ok(self.rows.iter().map(move |row| places.map(|place| row.get(place).copied().unwrap_or(0))))
    }
}
