//! Edges seen by a time-stamping input terminal, from the recording of a cycle that read their
//! times: the observer of the paper, in addition to the cycle's own stamps.
//!
//! An unsigned input of 64 bits is taken for the time of the newest edge of one direction at one
//! input, ns by the clock of the terminal; an EL1252 has four of them. A time that differs from the
//! cycle before is a new edge. The number of cycles between two edges, which depends on the output
//! that the input is wired to, follows from the times.

use std::io::{BufRead, BufReader};
use std::path::Path;

use record::RecordingReader;
use record::recording::{Header, RecordingError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::jitter::{Arrival, BusJitter, ByTime, WINDOW, jitter_of};
use crate::runner::open;

/// A series of instants that shall be even.
#[derive(Debug, Serialize, Deserialize)]
pub struct Edges {
    /// Signal with their times; of the cycle's own stamps a description.
    pub name: String,
    /// Cycles from one to the next.
    pub cycles: u64,
    /// Jitter: each instant is a cycle of that many periods.
    pub jitter: BusJitter,
}

/// Evaluates the recording of `onbeat run --record` at `path`: each series of edges, and behind
/// them the cycle's own stamps. Empty without a signal that is a time.
///
/// # Errors
/// The file cannot be read or is no such recording.
pub fn edges_of_file(path: &Path) -> Result<Vec<Edges>, Error> {
    let file = open(path).map_err(|error| Error::file(path, error))?;
    edges_of(BufReader::new(file)).map_err(|error| Error::Recording { path: path.to_owned(), error })
}

/// Name of the cycle's own series.
const OWN: &str = "the cycle's own stamps";

fn edges_of(file: impl BufRead) -> Result<Vec<Edges>, RecordingError> {
    let mut reader = RecordingReader::open(file)?;
    let Columns { period_ns, start, before_transmit, mut inputs } = Columns::of(reader.header())?;
    let mut own = Vec::new();
    while let Some(row) = reader.next_row()? {
        let sum: i64 = before_transmit.iter().map(|&phase| row[phase]).sum();
        let cycle = row[0].unsigned_abs();
        own.push(Arrival { cycle, at_ns: row[start].saturating_add(sum) });
        for input in &mut inputs {
            input.see(reader.exact(input.column).and_then(|time| u64::try_from(time).ok()));
        }
    }
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    let mut edges: Vec<Edges> = inputs.into_iter().map(|input| input.judged(period_ns)).collect();
    edges.push(Edges { name: OWN.into(), cycles: 1, jitter: jitter_of(period_ns, WINDOW, &own) });
    Ok(edges)
}

/// Columns of a recording.
struct Columns {
    period_ns: u64,
    start: usize,
    /// Phases from the start of a cycle until its frames are handed over.
    before_transmit: Vec<usize>,
    inputs: Vec<Input>,
}

impl Columns {
    fn of(header: &Header) -> Result<Self, RecordingError> {
        let wrong = RecordingError::unexpected;
        if header.what != "cycle" {
            return Err(wrong("a recording of a cycle, as `onbeat run --record` makes it", &header.what));
        }
        let place = |name: &str| {
            let place = header.columns.iter().position(|column| column == name);
            place.ok_or_else(|| wrong(&format!("a column {name}"), &header.columns.join(",")))
        };
        let period_ns = header.facts.get("period_ns").and_then(Value::as_u64).filter(|&period| period > 0);
        let period_ns = period_ns.ok_or_else(|| wrong("the fact period_ns", "none, or 0"))?;
        let sends_first = header.facts.get("frame_order").and_then(Value::as_str) == Some("wait_for_reply");
        let phases = PHASES.iter().take(if sends_first { 0 } else { PHASES.len() });
        let signals = header.facts.get("signals").and_then(Value::as_array).into_iter().flatten();
        let is_time =
            |it: &&Value| it["direction"] == "input" && it["type"] == "uint64" && it["scaling"].is_null();
        let named = signals.filter(is_time).filter_map(|it| it["name"].as_str());
        let inputs =
            named.map(|name| place(&format!("signal:{name}")).map(|column| Input::new(name, column)));
        Ok(Self {
            period_ns,
            start: place("start_ns")?,
            before_transmit: phases.map(|name| place(name)).collect::<Result<_, _>>()?,
            inputs: inputs.collect::<Result<_, _>>()?,
        })
    }
}

/// Phases of a cycle that sends at its end, before it does.
const PHASES: [&str; 5] = ["receive_ns", "read_ns", "command_ns", "update_ns", "write_ns"];

/// One direction of one input, while a recording is read.
struct Input {
    name: String,
    column: usize,
    newest: Option<u64>,
    times: Vec<i64>,
}

impl Input {
    fn new(name: &str, column: usize) -> Self {
        Self { name: name.to_owned(), column, newest: None, times: Vec::new() }
    }

    /// Takes the time of a row. The first is of an edge before it, or of none.
    fn see(&mut self, time: Option<u64>) {
        let Some(time) = time else { return };
        if self.newest.replace(time).is_some_and(|before| before != time) {
            self.times.push(time as i64);
        }
    }

    fn judged(self, period_ns: u64) -> Edges {
        let mut gaps: Vec<i64> =
            self.times.windows(2).take(WINDOW).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        gaps.sort_unstable();
        let usual = gaps.get(gaps.len() / 2).map_or(0, |gap| gap.max(&0).unsigned_abs());
        let cycles = ((usual + period_ns / 2) / period_ns).max(1);
        let wave_ns = period_ns.saturating_mul(cycles);
        let mut numbering = ByTime::new(wave_ns);
        let mut edges: Vec<Arrival> =
            self.times.iter().filter_map(|&at_ns| numbering.push(at_ns)).collect();
        edges.extend(numbering.finish());
        Edges { name: self.name, cycles, jitter: jitter_of(wave_ns, WINDOW, &edges) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header of a recording with this kind of rows, and a signal of this type.
    fn header(what: &str, of: &str, frame_order: &str) -> Header {
        let columns =
            ["cycle", "release_ns", "start_ns", "receive_ns", "read_ns", "command_ns", "update_ns"]
                .into_iter()
                .chain(["write_ns", "transmit_ns", "signals:forced", "signal:rose"]);
        let rose = serde_json::json!({ "name": "rose", "direction": "input", "type": of });
        let facts =
            serde_json::json!({ "period_ns": 1_000_000, "frame_order": frame_order, "signals": [rose] });
        let facts = facts.as_object().unwrap().clone();
        Header { what: what.to_owned(), columns: columns.map(str::to_owned).collect(), facts }
    }

    /// A cycle of 1 ms with a jitter of 3 us. Its output rises every `wave` cycles at a terminal
    /// with an independent clock; a time is seen two cycles later, except in the `lost` cycles.
    fn recording(header: &Header, wave: i64, lost: std::ops::Range<i64>) -> Vec<u8> {
        let mut writer = record::RecordingWriter::begin(Vec::new(), header).unwrap();
        let late = |cycle: i64| [0, 3_000, 1_000, 6_000, 0][cycle as usize % 5];
        for cycle in 0..4_000_i64 {
            // How long the cycle reads differs, and not when it sends.
            let read = [2, 2_000, 5_000][cycle as usize % 3];
            let start = cycle * 1_000_000 + late(cycle) - read;
            let seen = (cycle - 2) / wave * wave;
            // Where floating-point numbers are 1024 apart, with an oscillator that is 20 ppm fast.
            let stamp = 9_000_000_000_000_000_000 + seen * 1_000_020 + late(seen.max(0)) + 70;
            let stamp = (!lost.contains(&cycle)).then_some(types::Value::Unsigned(stamp as u64));
            let row = [cycle, cycle * 1_000_000, start, 1, read, 3, 4, 60, 9];
            writer.row_with(&row, [Some(types::Value::Unsigned(0)), stamp]).unwrap();
        }
        writer.finish(&record::Facts::new()).unwrap()
    }

    // feature(measure): times of a time-stamping input terminal, as a reference for the cycle's own time stamps
    #[test]
    fn edges_have_the_jitter_of_the_cycle_by_another_clock() {
        for (wave, edges) in [(1, 3_999), (2, 1_999), (7, 571)] {
            let header = header("cycle", "uint64", "reply_of_last_cycle");
            let found = edges_of(&recording(&header, wave, 0..0)[..]).unwrap();
            let [rose, own] = &found[..] else { panic!("{found:?}") };
            assert_eq!((rose.name.as_str(), own.name.as_str()), ("rose", OWN));
            assert_eq!((rose.cycles, rose.jitter.arrivals, rose.jitter.missing), (wave as u64, edges, 0));
            let ppm = rose.jitter.oscillator_difference_ppm().unwrap();
            assert!((ppm - 20.0).abs() < 0.1, "{ppm}: exact beyond 2^53");
            let [rose, own] = [rose, own].map(|it| it.jitter.jitter.standard_deviation());
            assert!((rose - own).abs() < 10.0 && own > 2_000.0, "{rose} and {own} ns");
        }
    }

    #[test]
    fn an_edge_that_was_not_seen_is_missing_and_no_time_is_none() {
        let header = |what, of| header(what, of, "wait_for_reply");
        let found = edges_of(&recording(&header("cycle", "uint64"), 2, 1002..1006)[..]).unwrap();
        assert_eq!((found[0].jitter.missing, found[0].jitter.arrivals), (2, 1_997));
        let none = edges_of(&recording(&header("cycle", "uint32"), 2, 0..0)[..]).unwrap();
        assert!(none.is_empty(), "{none:?}");
        let error = edges_of(&recording(&header("bus", "uint64"), 2, 0..0)[..]).unwrap_err();
        assert!(error.to_string().contains("expected a recording of a cycle"), "{error}");
    }
}
