//! From what an observer recorded to the jitter of the bus.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use timing::interference::{Arrival, BusJitter, BusObserver, ByCounter, ByTime, WINDOW, jitter_of};
use timing::recording::{Header, RecordingError};
use timing::{Facts, RecordingReader};

use crate::Error;

/// What an observer found, and what it says of itself.
#[derive(Debug)]
pub struct Judgement {
    /// The jitter.
    pub jitter: BusJitter,
    /// What the observer noted at the beginning: period, machine, how it stamps.
    pub facts: Facts,
    /// What it noted at the end, if it came so far: frames, losses, load of the machine.
    pub end: Facts,
    /// Frames that carried the number of the one before them.
    pub repeated: u64,
    /// Whether beats were told apart by a number in the frames; else by their time.
    pub numbered: bool,
}

/// Judges the recording of `onbeat simulate --record` at `path`: its first `samples` beats.
///
/// # Errors
/// A file that cannot be read or is no such recording.
pub fn judge_file(path: &Path, samples: u64) -> Result<Judgement, Error> {
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    let mut arrivals = Vec::new();
    let walked = walk(BufReader::new(file), samples, |_, arrival| arrivals.push(arrival));
    let walked = walked.map_err(|error| Error::Recording { path: path.to_owned(), error })?;
    Ok(walked.judged(|period_ns| jitter_of(period_ns, WINDOW, &arrivals)))
}

/// Judges such a recording while it is being written, in constant memory; `look` sees what there is from time to time.
///
/// # Errors
/// What is no such recording.
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

/// Beats between two looks.
const LOOK_EVERY: u64 = 4_096;

/// A recording read to its end.
struct Walked {
    facts: Facts,
    end: Facts,
    numbering: Numbering,
}

impl Walked {
    fn judged(self, jitter: impl FnOnce(u64) -> BusJitter) -> Judgement {
        Judgement {
            jitter: jitter(self.numbering.period_ns),
            facts: self.facts,
            end: self.end,
            repeated: self.numbering.repeated,
            numbered: matches!(self.numbering.by, By::Counter(_)),
        }
    }
}

/// Reads a recording to its end and gives out the arrivals of the first `samples` beats.
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
    };
    while let Some(row) = reader.next_row()? {
        give(numbering.arrival(row));
    }
    give(numbering.last());
    Ok(Walked { facts, end: reader.end().cloned().unwrap_or_default(), numbering })
}

/// Tells which frames begin a beat, and which beat.
#[derive(Debug)]
struct Numbering {
    period_ns: u64,
    columns: Columns,
    /// Each logical address comes once a beat: that of the first frame is as good as any.
    address: Option<i64>,
    by: By,
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
    /// A number that the outputs carry.
    Counter(ByCounter),
    Time(ByTime),
}

impl Numbering {
    fn of(header: &Header) -> Result<Self, RecordingError> {
        let wrong = |expected: &str, found: &str| RecordingError::Line {
            line: 2,
            expected: expected.to_owned(),
            found: found.to_owned(),
        };
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
        let by = match number("beat_number_bits") {
            Some(bits @ 1..=32) => By::Counter(ByCounter::new(period_ns, 1 << bits)),
            _ => By::Time(ByTime::new(period_ns)),
        };
        let columns = Columns {
            arrival: place("arrival_ns")?,
            address: place("logical_address")?,
            outputs: place("outputs")?,
        };
        Ok(Self { period_ns, columns, address: None, by, repeated: 0 })
    }

    /// The arrival that a row is, or that the row before it was.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two frames a beat, the first with a number of two bits; beat 6 is missing, beat 9 comes twice.
    fn recording(bits: u64) -> String {
        let header = format!(
            "# onbeat recording 1\n# {{\"what\":\"bus\",\"columns\":[\"arrival_ns\",\"logical_address\",\"outputs\"],\
             \"facts\":{{\"period_ns\":1000,\"beat_number_bits\":{bits}}}}}\n"
        );
        let beat = |beat: i64| {
            let at = beat * 1001 + beat % 3;
            let outputs = if beat < 3 { -1 } else { beat % 4 };
            let frame = format!("{at},65536,{outputs}\n");
            let again = if beat == 9 { frame.clone() } else { String::new() };
            if beat == 6 { String::new() } else { format!("{frame}{again}{},131072,-1\n", at + 20) }
        };
        let rows: String = (0..40).map(beat).collect();
        format!("{header}{rows}# {{\"kernel_dropped\":0}}\n")
    }

    #[test]
    fn beats_are_told_apart_by_their_number() {
        let mut looks = 0;
        let judged = judge_stream(recording(2).as_bytes(), u64::MAX, |_| looks += 1).unwrap();
        assert_eq!((judged.jitter.arrivals, judged.jitter.missing, judged.repeated), (36, 1, 1));
        assert!(judged.numbered && judged.end["kernel_dropped"] == 0 && looks == 0);
        let ppm = judged.jitter.oscillator_difference_ppm().unwrap();
        assert!((ppm - 1000.0).abs() < 100.0, "{ppm}");
        let some = judge_stream(recording(2).as_bytes(), 10, |_| ()).unwrap();
        assert_eq!(some.jitter.arrivals, 10);
    }

    #[test]
    fn beats_of_any_main_device_are_told_apart_by_their_time() {
        let judged =
            judge_stream(recording(0).replace("9009,65536,1\n9009", "9009").as_bytes(), 100, |_| ());
        let judged = judged.unwrap();
        assert_eq!((judged.jitter.arrivals, judged.jitter.missing, judged.numbered), (39, 1, false));
    }

    #[test]
    fn what_is_no_recording_of_a_bus_is_refused() {
        let error = |text: &str| judge_stream(text.as_bytes(), 1, |_| ()).unwrap_err().to_string();
        let text = recording(2);
        assert!(error("hello").starts_with("line 1: "));
        assert!(error(&text.replace("\"bus\"", "\"cycle\"")).contains("expected a recording of a bus"));
        assert!(error(&text.replace("outputs", "outlets")).contains("a column outputs"));
        assert!(error(&text.replace("period_ns", "period")).contains("the fact period_ns"));
    }
}
