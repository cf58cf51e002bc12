//! Rows of a recording, by `onbeat export`; order statistics of durations.

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

/// Sorted durations in nanoseconds.
#[derive(Debug)]
pub(crate) struct Sorted(Vec<u64>);

impl Sorted {
    /// Sorts `durations`.
    pub(crate) fn new(mut durations: Vec<u64>) -> Self {
        durations.sort_unstable();
        Self(durations)
    }

    /// Number of durations.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Smallest duration not exceeded by at least `share` (0 to 1) of all (nearest rank); 0 without
    /// durations.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.clamp(1, self.0.len().max(1)) - 1).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let sorted = Sorted::new((1..=1000).rev().collect());
        assert_eq!(
            [0.0, 0.5, 0.99, 0.999, 1.0].map(|share| sorted.quantile(share)),
            [1, 500, 990, 999, 1000]
        );
        assert_eq!(Sorted::new(vec![]).quantile(0.5), 0);
    }
}
