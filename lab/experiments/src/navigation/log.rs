//! Log of the pilot: pose and velocity of the base, and commands.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use motion::base::{Pose, Twist};
use motion::{Metres, MetresPerSecond, Radians, RadiansPerSecond};
use record::RecordingWriter;
use record::recording::Header;
use serde_json::Value;

use crate::raw::facts;
use crate::{Context, Error, runner};

/// Step of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) time_ns: u64,
    pub(crate) pose: Pose,
    pub(crate) twist: Twist,
    pub(crate) asked: Twist,
    /// Clearance to the obstacle, m.
    pub(crate) room: f64,
}

/// Log that grows.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    writer: Option<RecordingWriter<BufWriter<File>>>,
    failed: Option<std::io::Error>,
}

impl Log {
    /// Begins a log with these facts of the drive.
    pub(crate) fn begin(context: &Context, name: &str, facts: &[(&str, Value)]) -> Result<Self, Error> {
        let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let columns = COLUMNS.map(str::to_owned).to_vec();
        let writer = context.record(name, &Header { what: WHAT.into(), columns, facts })?;
        Ok(Self { path: context.path(name), writer: Some(writer), failed: None })
    }

    /// Appends a step; a write error is reported at the end.
    pub(crate) fn append(&mut self, row: &Row) {
        let billionths = |number: f64| (number * 1e9) as i64;
        let numbers = [
            row.pose.x.0,
            row.pose.y.0,
            row.pose.yaw.0,
            row.twist.x.0,
            row.twist.y.0,
            row.twist.yaw.0,
            row.asked.x.0,
            row.asked.y.0,
            row.asked.yaw.0,
            row.room,
        ];
        let mut cells = [0; COLUMNS.len()];
        cells[0] = i64::try_from(row.time_ns).unwrap_or(i64::MAX);
        for (cell, number) in cells[1..].iter_mut().zip(numbers) {
            *cell = billionths(number);
        }
        if let Some(writer) = self.writer.as_mut().filter(|_| self.failed.is_none()) {
            self.failed = writer.row(&cells).err();
        }
    }

    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        let ended = match (self.failed.take(), self.writer.take()) {
            (Some(error), _) => Err(error),
            (None, Some(writer)) => writer.finish(&facts([])).map(drop),
            (None, None) => Ok(()),
        };
        ended.map_err(|error| Error::file(&self.path, error))
    }
}

/// Finishes the log when the controller is dropped.
impl Drop for Log {
    fn drop(&mut self) {
        // An incomplete log is detected by its reader.
        let _ = self.finish();
    }
}

/// Rows of a log.
///
/// # Errors
/// The file, and its error.
pub(crate) fn read(path: &Path) -> Result<Vec<Row>, Error> {
    let recording = runner::read(path)?;
    let column = |name: &str| -> Result<Vec<i64>, Error> {
        let missing = || {
            Error::other(format_args!(
                "{}: expected a log with a column {name}, found none",
                path.display()
            ))
        };
        recording.column(name).map(Iterator::collect).ok_or_else(missing)
    };
    let columns = COLUMNS.iter().map(|name| column(name)).collect::<Result<Vec<_>, _>>()?;
    let row = |place: usize| {
        let whole = |column: usize| columns[column][place];
        let number = |column: usize| whole(column) as f64 / 1e9;
        let twist = |column: usize| Twist {
            x: MetresPerSecond(number(column)),
            y: MetresPerSecond(number(column + 1)),
            yaw: RadiansPerSecond(number(column + 2)),
        };
        Row {
            time_ns: u64::try_from(whole(0)).unwrap_or(0),
            pose: Pose { x: Metres(number(1)), y: Metres(number(2)), yaw: Radians(number(3)) },
            twist: twist(4),
            asked: twist(7),
            room: number(10),
        }
    };
    Ok((0..columns[0].len()).map(row).collect())
}

/// Kind of a recording of a drive.
const WHAT: &str = "drive";

/// Columns: instants in ns; all others in billionths of m, rad, m/s and rad/s.
const COLUMNS: [&str; 11] = [
    "time_ns",
    "x_nm",
    "y_nm",
    "yaw_nrad",
    "vx_nm_s",
    "vy_nm_s",
    "vyaw_nrad_s",
    "asked_vx_nm_s",
    "asked_vy_nm_s",
    "asked_vyaw_nrad_s",
    "room_nm",
];
