//! Jitter of the bus from an observer's recording.

use std::io::{BufRead, BufReader};
use std::path::Path;

use super::edges::Edges;
use crate::jitter::{Arrival, BusJitter, BusObserver, ByCounter, ByTime, WINDOW, jitter_of};
use crate::runner::open;
use record::recording::{Header, RecordingError};
use record::{Facts, RecordingReader};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Evaluation of an observer's recording.
#[derive(Debug, Serialize, Deserialize)]
pub struct Judgement {
    /// Jitter.
    pub jitter: BusJitter,
    /// Facts noted by the observer at the beginning: period, machine, source of time stamps.
    pub facts: Facts,
    /// Facts noted at the end, if it was reached: frames, losses, load of the machine.
    pub end: Facts,
    /// Frames with the number of the frame before.
    pub repeated: u64,
    /// True if cycles were identified by a number in the frames, false if by time.
    pub numbered: bool,
    /// Square waves of the outputs that carry the number.
    #[serde(default)]
    pub waves: Vec<Wave>,
    /// Edges that a time-stamping terminal saw, and the cycle's own stamps.
    #[serde(default)]
    pub edges: Vec<Edges>,
}

/// Evaluates the first `samples` cycles of the recording of `onbeat simulate --record` at `path`.
///
/// # Errors
/// The file cannot be read or is no such recording.
pub fn judge_file(path: &Path, samples: u64) -> Result<Judgement, Error> {
    let file = open(path).map_err(|error| Error::file(path, error))?;
    let mut arrivals = Vec::new();
    let walked = walk(BufReader::new(file), samples, |_, arrival| arrivals.push(arrival));
    let walked = walked.map_err(|error| Error::Recording { path: path.to_owned(), error })?;
    Ok(walked.judged(|period_ns| jitter_of(period_ns, WINDOW, &arrivals)))
}

/// Evaluates such a recording while it is being written, in constant memory; `look` sees
/// intermediate results from time to time.
///
/// # Errors
/// The stream is no such recording.
pub fn judge_stream(
    stream: impl BufRead,
    samples: u64,
    mut look: impl FnMut(&BusObserver),
) -> Result<Judgement, RecordingError> {
    let mut observer = None;
    let mut count = 0_u64;
    let walked = walk(stream, samples, |period_ns, arrival| {
        let observer = observer.get_or_insert_with(|| BusObserver::new(period_ns, WINDOW));
        observer.arrive(arrival);
        count += 1;
        if count % LOOK_EVERY == 0 {
            look(observer);
        }
    })?;
    Ok(walked.judged(|period_ns| observer.unwrap_or_else(|| BusObserver::new(period_ns, WINDOW)).finish()))
}

/// Cycles between two intermediate results.
const LOOK_EVERY: u64 = 4_096;

/// Recording read to its end.
struct Walked {
    facts: Facts,
    end: Facts,
    numbering: Numbering,
    waves: Vec<Wave>,
}

impl Walked {
    fn judged(self, jitter: impl FnOnce(u64) -> BusJitter) -> Judgement {
        Judgement {
            jitter: jitter(self.numbering.period_ns),
            facts: self.facts,
            end: self.end,
            repeated: self.numbering.repeated,
            numbered: matches!(self.numbering.by, By::Counter(_)),
            waves: self.waves,
            edges: Vec::new(),
        }
    }
}

/// Reads a recording to its end and passes on the arrivals of the first `samples` cycles.
fn walk(
    file: impl BufRead,
    samples: u64,
    mut give: impl FnMut(u64, Arrival),
) -> Result<Walked, RecordingError> {
    let mut reader = RecordingReader::open(file)?;
    let mut numbering = Numbering::of(reader.header())?;
    let (facts, period_ns) = (reader.header().facts.clone(), numbering.period_ns);
    let mut left = samples;
    let mut give = |arrival: Option<Arrival>| {
        if let Some(arrival) = arrival.filter(|_| left > 0) {
            left -= 1;
            give(period_ns, arrival);
        }
        left > 0
    };
    let mut waves = Waves::new(period_ns, numbering.bits);
    while let Some(row) = reader.next_row()? {
        if let Some((counter, at_ns)) = numbering.outputs(row) {
            waves.see(counter, at_ns);
        }
        if !give(numbering.arrival(row)) {
            waves.end();
        }
    }
    give(numbering.last());
    let end = reader.end().cloned().unwrap_or_default();
    Ok(Walked { facts, end, numbering, waves: waves.finish() })
}

/// Assignment of frames to cycles.
#[derive(Debug)]
struct Numbering {
    period_ns: u64,
    columns: Columns,
    /// Logical address of the first frame: each address comes once a cycle, so any will do.
    address: Option<i64>,
    by: By,
    /// Bits of the number; 0 without one.
    bits: u32,
    repeated: u64,
}

#[derive(Debug)]
struct Columns {
    arrival: usize,
    address: usize,
    outputs: usize,
}

#[derive(Debug)]
enum By {
    /// By a number in the outputs.
    Counter(ByCounter),
    Time(ByTime),
}

impl Numbering {
    fn of(header: &Header) -> Result<Self, RecordingError> {
        let wrong = RecordingError::unexpected;
        if header.what != "bus" {
            return Err(wrong(
                "a recording of a bus, as `onbeat simulate --record` makes it",
                &header.what,
            ));
        }
        let place = |name: &str| {
            let place = header.columns.iter().position(|column| column == name);
            place.ok_or_else(|| wrong(&format!("a column {name}"), &header.columns.join(",")))
        };
        let number = |name: &str| header.facts.get(name).and_then(serde_json::Value::as_u64);
        let period_ns = number("period_ns").filter(|&period| period > 0);
        let period_ns = period_ns.ok_or_else(|| wrong("the fact period_ns", "none, or 0"))?;
        let (by, bits) = match number("cycle_number_bits") {
            Some(bits @ 1..=32) => (By::Counter(ByCounter::new(period_ns, 1 << bits)), bits as u32),
            _ => (By::Time(ByTime::new(period_ns)), 0),
        };
        let columns = Columns {
            arrival: place("arrival_ns")?,
            address: place("logical_address")?,
            outputs: place("outputs")?,
        };
        Ok(Self { period_ns, columns, address: None, by, bits, repeated: 0 })
    }

    /// Outputs of a row of the first address in Op, and its time.
    fn outputs(&self, row: &[i64]) -> Option<(u64, i64)> {
        let is_first = self.address.is_none_or(|address| address == row[self.columns.address]);
        let outputs = u64::try_from(row[self.columns.outputs]).ok().filter(|_| is_first)?;
        Some((outputs, row[self.columns.arrival]))
    }

    /// Arrival completed by a row: its own or the previous row's.
    fn arrival(&mut self, row: &[i64]) -> Option<Arrival> {
        let address = row[self.columns.address];
        if *self.address.get_or_insert(address) != address {
            return None;
        }
        let at_ns = row[self.columns.arrival];
        match &mut self.by {
            By::Time(numbering) => numbering.push(at_ns),
            By::Counter(numbering) => {
                // Outside Op outputs are low, and carry no number.
                let counter = u64::try_from(row[self.columns.outputs]).ok()?;
                let arrival = numbering.number(counter, at_ns);
                self.repeated += u64::from(arrival.is_err());
                arrival.ok()
            }
        }
    }

    fn last(&self) -> Option<Arrival> {
        match self.by {
            By::Time(numbering) => numbering.finish(),
            By::Counter(_) => None,
        }
    }
}

/// Rising edges of one output.
#[derive(Debug, Serialize, Deserialize)]
pub struct Wave {
    /// Number of the output, the first of which changes with every cycle.
    pub output: u32,
    /// Edges: each is a cycle of this period.
    pub edges: BusJitter,
}

/// Number of outputs with evaluated edges.
const OUTPUTS: u32 = 4;

/// Waves while a recording is read.
pub(super) struct Waves {
    outputs: Vec<Output>,
    over: bool,
}

struct Output {
    number: u32,
    was_high: Option<bool>,
    numbering: ByCounter,
    observer: BusObserver,
}

impl Waves {
    /// Of a counter of so many bits: the last one is no wave, for its edges could not be numbered.
    pub(super) fn new(period_ns: u64, bits: u32) -> Self {
        let output = |number: u32| {
            let period_ns = period_ns << (number + 1);
            Output {
                number,
                was_high: None,
                numbering: ByCounter::new(period_ns, 1 << (bits - number - 1)),
                observer: BusObserver::new(period_ns, WINDOW),
            }
        };
        let outputs = (0..OUTPUTS.min(bits.saturating_sub(1))).map(output).collect();
        Self { outputs, over: false }
    }

    /// Takes the outputs of a frame.
    pub(super) fn see(&mut self, counter: u64, at_ns: i64) {
        if self.over {
            return;
        }
        for output in &mut self.outputs {
            let is_high = counter >> output.number & 1 == 1;
            // A wave begins with its first rise.
            if output.was_high.replace(is_high) == Some(false) && is_high {
                if let Ok(arrival) = output.numbering.number(counter >> (output.number + 1), at_ns) {
                    output.observer.arrive(arrival);
                }
            }
        }
    }

    /// Nothing more is looked at.
    pub(super) fn end(&mut self) {
        self.over = true;
    }

    pub(super) fn finish(self) -> Vec<Wave> {
        let waves = self.outputs.into_iter();
        waves.map(|it| Wave { output: it.number, edges: it.observer.finish() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(what: &str, bits: u64) -> Header {
        let facts = serde_json::json!({ "period_ns": 1000, "cycle_number_bits": bits });
        let columns = ["arrival_ns", "logical_address", "outputs"].map(str::to_owned).to_vec();
        Header { what: what.to_owned(), columns, facts: facts.as_object().unwrap().clone() }
    }

    /// Two frames a cycle, the first with a number of two bits; cycle 6 is missing, cycle 9 comes
    /// `nine` times.
    fn recording(header: &Header, nine: usize) -> Vec<u8> {
        let mut writer = record::RecordingWriter::begin(Vec::new(), header).unwrap();
        for cycle in (0..40).filter(|&cycle| cycle != 6) {
            let at = cycle * 1001 + cycle % 3;
            let outputs = if cycle < 3 { -1 } else { cycle % 4 };
            for _ in 0..if cycle == 9 { nine } else { 1 } {
                writer.row(&[at, 65536, outputs]).unwrap();
            }
            writer.row(&[at + 20, 131_072, -1]).unwrap();
        }
        let end = serde_json::json!({ "kernel_dropped": 0 });
        writer.finish(end.as_object().unwrap()).unwrap()
    }

    #[test]
    fn cycles_are_distinguished_by_their_number() {
        let (mut looks, file) = (0, recording(&header("bus", 2), 2));
        let judged = judge_stream(&file[..], u64::MAX, |_| looks += 1).unwrap();
        assert_eq!((judged.jitter.arrivals, judged.jitter.missing, judged.repeated), (36, 1, 1));
        assert!(judged.numbered && judged.end["kernel_dropped"] == 0 && looks == 0);
        let ppm = judged.jitter.oscillator_difference_ppm().unwrap();
        assert!((ppm - 1000.0).abs() < 100.0, "{ppm}");
        let some = judge_stream(&file[..], 10, |_| ()).unwrap();
        assert_eq!(some.jitter.arrivals, 10);
    }

    // feature(measure): `simulate --record`: any MainDevice's cycles with the kernel's time stamps
    #[test]
    fn cycles_of_any_main_device_are_distinguished_by_time() {
        let judged = judge_stream(&recording(&header("bus", 0), 1)[..], 100, |_| ()).unwrap();
        assert_eq!((judged.jitter.arrivals, judged.jitter.missing, judged.numbered), (39, 1, false));
    }

    #[test]
    fn what_is_no_recording_of_a_bus_is_refused() {
        let error = |file: &[u8]| judge_stream(file, 1, |_| ()).unwrap_err().to_string();
        let of = |header: &Header| error(&recording(header, 1));
        assert!(error(b"hello").starts_with("expected a recording"));
        assert!(of(&header("cycle", 2)).contains("expected a recording of a bus"));
        let mut other = header("bus", 2);
        "outlets".clone_into(&mut other.columns[2]);
        assert!(of(&other).contains("a column outputs"));
        let mut other = header("bus", 2);
        other.facts.remove("period_ns");
        assert!(of(&other).contains("the fact period_ns"));
    }

    #[test]
    fn rising_edges_of_an_output_are_a_series_with_its_period() {
        let mut waves = Waves::new(1_000, 16);
        // 70 000 cycles: the counter wraps. Each eighth frame is 40 ns late, one is missing.
        for cycle in 0..70_000_i64 {
            if cycle != 33_333 {
                let late = if cycle % 8 == 4 { 40 } else { 0 };
                waves.see(cycle as u64 % (1 << 16), cycle * 1_000 + late);
            }
        }
        let waves = waves.finish();
        assert_eq!(waves.len(), 4);
        for (wave, edges) in waves.iter().zip([34_999, 17_500, 8_750, 4_375]) {
            let it = &wave.edges;
            assert_eq!((it.period_ns, it.arrivals), (2_000 << wave.output, edges), "{}", wave.output);
            assert!(it.periods.mean() - it.period_ns as f64 <= 1.0, "{}", wave.output);
        }
        // Output 0 rises in odd cycles, one of which is missing; output 2 in the late ones, all
        // alike.
        assert!(waves[0].edges.missing == 1 && waves[2].edges.jitter.standard_deviation() < 1.0);
        assert!(Waves::new(1_000, 0).finish().is_empty());
    }
}
