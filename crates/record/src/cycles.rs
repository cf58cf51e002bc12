//! Cycle records as a recording: `what = "cycle"`, one row per cycle.

use crate::record::{CycleRecord, Phase};
use crate::recording::Recording;

/// [`Header::what`](crate::recording::Header::what) of a recording of cycles.
pub const WHAT: &str = "cycle";

/// Columns, as the fields of [`CycleRecord`]: instants on the cycle's clock, duration of each
/// phase, releases skipped just before, frames lost, 1 where every working counter was right, and
/// the time of simulated SubDevices.
pub const COLUMNS: [&str; 16] = [
    "cycle",
    "release_ns",
    "start_ns",
    "end_ns",
    "receive_ns",
    "read_ns",
    "command_ns",
    "update_ns",
    "write_ns",
    "transmit_ns",
    "publish_ns",
    "wait_ns",
    "skipped",
    "lost_frames",
    "working_counter_ok",
    SIMULATION,
];

/// Column that earlier recordings do not have.
const SIMULATION: &str = "simulation_ns";

/// Phases in the order of their columns.
const PHASES: [Phase; 8] = [
    Phase::Receive,
    Phase::Read,
    Phase::Command,
    Phase::Update,
    Phase::Write,
    Phase::Transmit,
    Phase::Publish,
    Phase::Wait,
];

/// Row of a recording for one cycle.
#[must_use]
pub fn row(record: &CycleRecord) -> [i64; COLUMNS.len()] {
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let mut row = [0; COLUMNS.len()];
    let instants = [record.cycle, record.release_ns, record.start_ns, record.end_ns];
    let phases = PHASES.iter().map(|&phase| record.duration(phase));
    let counts = [
        record.skipped.into(),
        record.lost_frames.into(),
        record.working_counter_ok.into(),
        record.simulation_ns.into(),
    ];
    for (place, value) in row.iter_mut().zip(instants.into_iter().chain(phases).chain(counts)) {
        *place = whole(value);
    }
    row
}

/// Period, ns, and cycle records of a recording, in its order.
///
/// # Errors
/// A recording that is not one of a cycle: its kind, its columns or its period.
pub fn cycles(recording: &Recording) -> Result<(u64, Vec<CycleRecord>), String> {
    let header = &recording.header;
    if header.what != WHAT {
        return Err(format!("found a recording of `{}`, expected one of `{WHAT}`", header.what));
    }
    let place = |name: &str| {
        let place = header.columns.iter().position(|column| column == name);
        place.ok_or_else(|| format!("found no column `{name}`, expected it in a recording of `{WHAT}`"))
    };
    let needed = COLUMNS.iter().filter(|&&name| name != SIMULATION);
    let places: Vec<usize> = needed.map(|&name| place(name)).collect::<Result<_, _>>()?;
    let simulation = place(SIMULATION).ok();
    let period = header.facts.get("period_ns").and_then(serde_json::Value::as_u64).filter(|&it| it > 0);
    let period = period.ok_or("found no `period_ns` in the header, expected the period in nanoseconds")?;
    let records = recording.rows().map(|row| {
        let value = |column: usize| u64::try_from(row[places[column]]).unwrap_or(0);
        let small = |column: usize| u32::try_from(value(column)).unwrap_or(u32::MAX);
        let mut durations_ns = [0; Phase::ALL.len()];
        for (index, &phase) in PHASES.iter().enumerate() {
            durations_ns[phase as usize] = small(4 + index);
        }
        CycleRecord {
            cycle: value(0),
            release_ns: value(1),
            start_ns: value(2),
            end_ns: value(3),
            skipped: small(12),
            lost_frames: small(13),
            working_counter_ok: value(14) != 0,
            overrun: value(3) > value(1).saturating_add(period),
            durations_ns,
            simulation_ns: simulation.map_or(0, |place| u32::try_from(row[place]).unwrap_or(0)),
        }
    });
    Ok((period, records.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Header, RecordingWriter};

    fn header(what: &str, columns: &[&str], period: u64) -> Header {
        let facts = [("period_ns".to_owned(), period.into())].into_iter().collect();
        Header { what: what.into(), columns: columns.iter().map(|&it| it.to_owned()).collect(), facts }
    }

    fn recording(header: &Header, rows: &[[i64; COLUMNS.len()]]) -> Recording {
        let mut writer = RecordingWriter::begin(Vec::new(), header).unwrap();
        for row in rows {
            writer.row(&row[..header.columns.len()]).unwrap();
        }
        let file = writer.finish(&Default::default()).unwrap();
        Recording::read(file.as_slice()).unwrap()
    }

    #[test]
    fn cycles_come_back_as_they_were() {
        let mut one = CycleRecord::begin(7, 1_000, 1_050);
        for (index, phase) in Phase::ALL.into_iter().enumerate() {
            one.finish(phase, 1_060 + 10 * index as u64 * index as u64);
        }
        let two = CycleRecord { skipped: 2, lost_frames: 1, working_counter_ok: false, ..one };
        let three = CycleRecord { end_ns: 9_000, overrun: true, simulation_ns: 77, ..one };
        let written = recording(&header(WHAT, &COLUMNS, 5_000), &[row(&one), row(&two), row(&three)]);
        assert_eq!(cycles(&written), Ok((5_000, vec![one, two, three])));
    }

    #[test]
    fn recordings_without_the_time_of_simulated_sub_devices_are_read() {
        let one = CycleRecord { simulation_ns: 77, ..CycleRecord::begin(7, 1_000, 1_050) };
        let written = recording(&header(WHAT, &COLUMNS[..15], 5_000), &[row(&one)]);
        assert_eq!(cycles(&written), Ok((5_000, vec![CycleRecord { simulation_ns: 0, ..one }])));
    }

    #[test]
    fn what_is_no_cycle_is_named() {
        let error = |header: &Header| cycles(&recording(header, &[])).unwrap_err();
        assert!(error(&header("bus", &COLUMNS, 5)).starts_with("found a recording of `bus`"));
        assert!(error(&header(WHAT, &COLUMNS[..3], 5)).starts_with("found no column `end_ns`"));
        assert!(error(&header(WHAT, &COLUMNS, 0)).starts_with("found no `period_ns`"));
    }
}
