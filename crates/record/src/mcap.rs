//! A recording as an MCAP file, for Foxglove, PlotJuggler, and the tools of ROS 2.
//!
//! | topic | message | one for each |
//! |---|---|---|
//! | `/cycle` | `onbeat/msg/Cycle` | row |
//! | `/axes/NAME` | `onbeat/msg/Axis` | row with process data |
//! | `/signals/NAME` | `onbeat/msg/Signal` | row with a value of it |
//! | `/events` | `onbeat/msg/Event` | event |
//! | `/late` | `onbeat/msg/Late` | late cycle that was explained |
//!
//! * `Cycle`: `int64` of each column of whole numbers; `wakeup_latency_ns`, `period_ns` (start to
//!   start, 0 of the first); `signals_forced`, -1 where process data was dropped.
//! * `Axis`: `float64` of each of [`OF_AXIS`], NaN where there is none; `int64` of each of
//!   [`STATE_OF_AXIS`], -1 where there is none.
//! * `Signal`: `float64 value`, `bool forced`; the channel's metadata has its unit.
//! * `Event`: `int64 cycle`, `string severity`, `string sentence`.
//! * `Late`: `int64 cycle`, `int64 late_ns`, `string sentence` with the causes.
//!
//! Messages are CDR, their schemas `ros2msg`. Log and publish time are the row's release on
//! CLOCK_REALTIME, where the facts have [`REALTIME_OFFSET`], else on CLOCK_MONOTONIC. Facts are
//! metadata, `onbeat` at the beginning, `onbeat_end` at the end. Chunks are not compressed. The
//! first has schemas and channels and is in the file at once. Message chunks are finished after a
//! sixteenth of a second, after twice that, and so on, then each second: a truncated file holds the
//! data before.

use std::collections::BTreeMap;
use std::io::{self, Write};

use mcap::records::{MessageHeader, Metadata};
use mcap::write::NoSeek;
use mcap::{McapError, WriteOptions, Writer};
use types::Value;

use crate::mark::Mark;
use crate::process_data::{Column, FORCED, OF_AXIS, STATE_OF_AXIS, of_force};
use crate::recording::{Facts, Header};

/// Fact of a recording: CLOCK_REALTIME less CLOCK_MONOTONIC at its beginning, ns.
pub const REALTIME_OFFSET: &str = "realtime_offset_ns";

/// Writes an MCAP file as it grows.
pub struct McapWriter<W: Write> {
    file: Writer<NoSeek<W>>,
    /// Columns of whole numbers; process data follows them.
    whole: usize,
    release: usize,
    start: usize,
    cycle: u16,
    /// Place of [`FORCED`] in the process data.
    forced: Option<usize>,
    axes: Vec<AxisChannel>,
    /// Channels of signals, with the places of their values and, where there is one, of their
    /// forces.
    signals: Vec<(u16, usize, Option<usize>)>,
    events: u16,
    late: u16,
    offset: i64,
    last_start: Option<i64>,
    /// Start of the row behind which a chunk was finished last.
    flushed: Option<i64>,
    /// Time to the next, ns.
    wait: i64,
    sequence: u32,
    process_data: Vec<Option<Value>>,
    message: Vec<u8>,
}

/// Channel of an axis, and the places of its quantities in the process data.
#[derive(Clone, Copy)]
struct AxisChannel {
    channel: u16,
    quantities: [Option<usize>; OF_AXIS.len()],
    state: [Option<usize>; STATE_OF_AXIS.len()],
}

impl<W: Write> McapWriter<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// Columns that do not belong to a cycle; I/O errors of the writer.
    pub fn begin(file: W, header: &Header) -> io::Result<Self> {
        let whole = header.columns.iter().position(|it| Column::of(it).is_some());
        let (timing, process_data) = header.columns.split_at(whole.unwrap_or(header.columns.len()));
        let place = |name: &str| {
            timing.iter().position(|column| column == name).ok_or_else(|| {
                let found = format!("found no column `{name}`, expected a recording of a cycle");
                io::Error::new(io::ErrorKind::InvalidInput, found)
            })
        };
        let (release, start) = (place("release_ns")?, place("start_ns")?);
        let options = WriteOptions::new().compression(None).profile("ros2");
        let options = options.library(concat!("onbeat ", env!("CARGO_PKG_VERSION"))).disable_seeking(true);
        let mut file = options.create(NoSeek::new(file)).map_err(failed)?;
        file.write_metadata(&metadata("onbeat", &header.facts)).map_err(failed)?;

        let fields: String = timing.iter().map(|column| format!("int64 {column}\n")).collect();
        let cycle = format!("{fields}int64 wakeup_latency_ns\nint64 period_ns\nint64 signals_forced\n");
        let cycle = schema(&mut file, "Cycle", &cycle)?;
        let cycle = channel(&mut file, cycle, "/cycle", &[])?;
        let of_axis: String = OF_AXIS.map(|(name, unit)| format!("float64 {name}  # {unit}\n")).concat();
        let state = STATE_OF_AXIS.map(|name| format!("int64 {name}\n")).concat();
        let axis = schema(&mut file, "Axis", &(of_axis + &state))?;
        let event = schema(&mut file, "Event", "int64 cycle\nstring severity\nstring sentence\n")?;
        let late = schema(&mut file, "Late", "int64 cycle\nint64 late_ns\nstring sentence\n")?;
        let events = channel(&mut file, event, "/events", &[])?;
        let late = channel(&mut file, late, "/late", &[])?;
        let signal =
            schema(&mut file, "Signal", "float64 value\nbool forced  # held from outside at this value\n")?;
        let (mut axes, mut signals) = (Vec::new(), Vec::new());
        for (place, column) in process_data.iter().enumerate() {
            match Column::of(column) {
                Some(Column::Axis(name, quantity, _)) if quantity == OF_AXIS[0].0 => {
                    let channel = channel(&mut file, axis, &format!("/axes/{name}"), &[])?;
                    let of = |wanted: &str| {
                        let is_it = |it: &String| matches!(Column::of(it), Some(Column::Axis(axis, found, _)) if (axis, found) == (name, wanted));
                        process_data.iter().position(is_it)
                    };
                    let quantities = OF_AXIS.map(|(quantity, _)| of(quantity));
                    axes.push(AxisChannel { channel, quantities, state: STATE_OF_AXIS.map(of) });
                }
                Some(Column::Signal(name)) => {
                    let unit = unit(&header.facts, name).map(|unit| ("unit", unit));
                    let topic = format!("/signals/{name}");
                    let channel = channel(&mut file, signal, &topic, unit.as_slice())?;
                    let force = of_force(name);
                    let force = process_data.iter().position(|column| *column == force);
                    signals.push((channel, place, force));
                }
                _ => {}
            }
        }
        // A process that is killed at once leaves a readable file.
        file.flush().map_err(failed)?;
        Ok(Self {
            file,
            whole: timing.len(),
            release,
            start,
            cycle,
            forced: process_data.iter().position(|column| column == FORCED),
            axes,
            signals,
            events,
            late,
            offset: header.facts.get(REALTIME_OFFSET).and_then(serde_json::Value::as_i64).unwrap_or(0),
            last_start: None,
            flushed: None,
            wait: FIRST,
            sequence: 0,
            process_data: Vec::new(),
            message: Vec::new(),
        })
    }

    /// Writes one row with its process data, `None` where there is none.
    ///
    /// # Errors
    /// A row with fewer values than there are columns; I/O errors of the writer.
    pub fn row_with(
        &mut self,
        values: &[i64],
        process_data: impl IntoIterator<Item = Option<Value>>,
    ) -> io::Result<()> {
        if values.len() != self.whole {
            let found = format!("a row of {} whole numbers, expected {}", values.len(), self.whole);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, found));
        }
        self.process_data.clear();
        self.process_data.extend(process_data);
        let (release, start) = (values[self.release], values[self.start]);
        let at = u64::try_from(release.saturating_add(self.offset)).unwrap_or(0);
        let value = |row: &[Option<Value>], place: usize| row.get(place).copied().flatten();
        let forced = self.forced.and_then(|place| value(&self.process_data, place));
        let forced_signals = match forced {
            Some(Value::Unsigned(count)) => i64::try_from(count).unwrap_or(i64::MAX),
            Some(value) => value.number() as i64,
            None => -1,
        };
        let period = self.last_start.map_or(0, |last| start - last);
        let derived = [start - release, period, forced_signals];
        self.last_start = Some(start);
        self.begin_message();
        values.iter().chain(&derived).for_each(|value| self.message.extend(value.to_le_bytes()));
        self.send(self.cycle, at)?;
        for at_axis in 0..self.axes.len() {
            let AxisChannel { channel, quantities, state } = self.axes[at_axis];
            if forced.is_none() {
                break;
            }
            self.begin_message();
            let of = |place: Option<usize>| place.and_then(|place| value(&self.process_data, place));
            for place in quantities {
                self.message.extend(of(place).map_or(f64::NAN, Value::number).to_le_bytes());
            }
            for place in state {
                self.message.extend(of(place).map_or(-1, |it| it.number() as i64).to_le_bytes());
            }
            self.send(channel, at)?;
        }
        for at_signal in 0..self.signals.len() {
            let (channel, place, force) = self.signals[at_signal];
            if let Some(it) = value(&self.process_data, place) {
                let force = force.and_then(|place| value(&self.process_data, place));
                self.begin_message();
                self.message.extend(it.number().to_le_bytes());
                self.message.push(force.is_some_and(|force| force.number() != 0.0).into());
                self.send(channel, at)?;
            }
        }
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }

    /// Writes a mark.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn mark(&mut self, mark: &Mark) -> io::Result<()> {
        let monotonic = i64::try_from(mark.at_ns()).unwrap_or(i64::MAX);
        let at = u64::try_from(monotonic.saturating_add(self.offset)).unwrap_or(0);
        self.begin_message();
        self.message.extend(mark.cycle().to_le_bytes());
        let channel = match mark {
            Mark::Event { severity, sentence, .. } => {
                self.text(severity);
                self.text(sentence);
                self.events
            }
            Mark::Late { late_ns, sentence, .. } => {
                self.message.extend(late_ns.to_le_bytes());
                self.text(sentence);
                self.late
            }
        };
        self.send(channel, at)
    }

    /// Appends a string: aligned length with its end, bytes, a zero.
    fn text(&mut self, text: &str) {
        let aligned = (self.message.len() - CDR_LITTLE_ENDIAN.len()).next_multiple_of(4);
        self.message.resize(CDR_LITTLE_ENDIAN.len() + aligned, 0);
        let length = u32::try_from(text.len() + 1).unwrap_or(u32::MAX);
        self.message.extend(length.to_le_bytes());
        self.message.extend(text.as_bytes());
        self.message.push(0);
    }

    /// Finishes the chunk and flushes the buffer of the file, at most once per second of the
    /// recording except at its beginning, because an index follows each chunk. False if it waits
    /// for that.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn flush(&mut self) -> io::Result<bool> {
        let Some(newest) = self.last_start else { return Ok(true) };
        let flushed = *self.flushed.get_or_insert(newest);
        if newest - flushed < self.wait {
            return Ok(false);
        }
        (self.flushed, self.wait) = (Some(newest), (self.wait * 2).min(A_SECOND));
        self.file.flush().map_err(failed).map(|()| true)
    }

    /// Writes the facts known at the end and the index, and returns the file.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn finish(mut self, facts: &Facts) -> io::Result<W> {
        self.file.write_metadata(&metadata("onbeat_end", facts)).map_err(failed)?;
        self.file.finish().map_err(failed)?;
        let mut file = self.file.into_inner().into_inner();
        file.flush()?;
        Ok(file)
    }

    fn begin_message(&mut self) {
        self.message.clear();
        self.message.extend(CDR_LITTLE_ENDIAN);
    }

    fn send(&mut self, channel_id: u16, at: u64) -> io::Result<()> {
        let header = MessageHeader { channel_id, sequence: self.sequence, log_time: at, publish_time: at };
        self.file.write_to_known_channel(&header, &self.message).map_err(failed)
    }
}

/// Nanoseconds of one.
const A_SECOND: i64 = 1_000_000_000;

/// Time that the first chunk of messages takes, ns.
const FIRST: i64 = A_SECOND / 16;

/// Encapsulation header of plain CDR. Members of eight bytes stand first, and so are aligned behind
/// it.
const CDR_LITTLE_ENDIAN: [u8; 4] = [0, 1, 0, 0];

fn schema<W: Write>(file: &mut Writer<NoSeek<W>>, name: &str, text: &str) -> io::Result<u16> {
    file.add_schema(&format!("onbeat/msg/{name}"), "ros2msg", text.as_bytes()).map_err(failed)
}

fn channel<W: Write>(
    file: &mut Writer<NoSeek<W>>,
    schema: u16,
    topic: &str,
    metadata: &[(&str, &str)],
) -> io::Result<u16> {
    let metadata = metadata.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    file.add_channel(schema, topic, "cdr", &metadata).map_err(failed)
}

/// Facts as text; facts that are not text as JSON.
fn metadata(name: &str, facts: &Facts) -> Metadata {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let metadata: BTreeMap<String, String> =
        facts.iter().map(|(name, value)| (name.clone(), text(value))).collect();
    Metadata { name: name.to_owned(), metadata }
}

/// Unit of the signal of this name.
fn unit<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    facts.get("signals")?.as_array()?.iter().find(|signal| signal["name"] == name)?["unit"].as_str()
}

fn failed(error: McapError) -> io::Error {
    match error {
        McapError::Io(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CycleRecord, cycles, process_data};

    fn header() -> Header {
        let signals = [process_data::of_signal("pressure"), of_force("pressure")];
        let process_data = [FORCED.to_owned()].into_iter().chain(signals);
        let columns = cycles::COLUMNS.map(str::to_owned).into_iter().chain(process_data);
        let facts = serde_json::json!({
            REALTIME_OFFSET: 5_000, "robot": "press", "signals": [{ "name": "pressure", "unit": "bar" }],
        });
        Header {
            what: cycles::WHAT.to_owned(),
            columns: columns.chain(process_data::of_axis("x")).collect(),
            facts: facts.as_object().unwrap().clone(),
        }
    }

    fn row(release: u64) -> [i64; cycles::COLUMNS.len()] {
        cycles::row(&CycleRecord::begin(release / 100, release, release + 7))
    }

    /// Little-endian numbers behind the encapsulation.
    fn words(data: &[u8]) -> Vec<[u8; 8]> {
        assert_eq!(data[..4], CDR_LITTLE_ENDIAN);
        data[4..].chunks_exact(8).map(|word| word.try_into().unwrap()).collect()
    }

    // feature(measure): recordings as MCAP (CDR, ros2msg): cycles, axes, signals with their units, facts
    #[test]
    fn rows_are_messages_at_their_wall_time() {
        let mut writer = McapWriter::begin(Vec::new(), &header()).unwrap();
        let real = |value| Some(Value::Real(value));
        let state = [Some(Value::Unsigned(8)), Some(Value::Unsigned(0)), None];
        let numbers = [real(0.5), None, None, real(1.0), real(2.0), real(3.0)];
        let axis = numbers.into_iter().chain(state);
        let forced = |is| Some(Value::Unsigned(is));
        let all = [forced(1), real(2.5), forced(1)].into_iter().chain(axis.clone());
        writer.row_with(&row(1_000), all).unwrap();
        let without = [forced(0), None, forced(0)].into_iter().chain(axis.clone());
        writer.row_with(&row(1_100), without).unwrap();
        writer.row_with(&row(1_200), vec![None; 12]).unwrap();
        let free = [forced(0), real(2.75), forced(0)].into_iter().chain(axis);
        writer.row_with(&row(1_300), free).unwrap();
        let event = |sentence: &str| Mark::Event {
            cycle: 11,
            at_ns: 1_150,
            severity: "error".into(),
            sentence: sentence.into(),
        };
        writer.mark(&event("drive-1 is lost")).unwrap();
        let sentence = "cycle 12 started 9 us late".to_owned();
        writer.mark(&Mark::Late { cycle: 12, at_ns: 1_200, late_ns: 9_000, sentence }).unwrap();
        let file = writer.finish(serde_json::json!({ "cycles": 3 }).as_object().unwrap()).unwrap();

        let messages: Vec<mcap::Message<'_>> =
            mcap::MessageStream::new(&file).unwrap().collect::<Result<_, _>>().unwrap();
        let told: Vec<(&str, u64)> =
            messages.iter().map(|it| (it.channel.topic.as_str(), it.log_time)).collect();
        let expected = [
            ("/cycle", 6_000),
            ("/axes/x", 6_000),
            ("/signals/pressure", 6_000),
            ("/cycle", 6_100),
            ("/axes/x", 6_100),
            ("/cycle", 6_200),
            ("/cycle", 6_300),
            ("/axes/x", 6_300),
            ("/signals/pressure", 6_300),
            ("/events", 6_150),
            ("/late", 6_200),
        ];
        assert_eq!(told, expected);
        let cycle = words(&messages[3].data);
        assert_eq!(cycle.len(), cycles::COLUMNS.len() + 3);
        let behind = &cycle[cycles::COLUMNS.len()..];
        assert_eq!(behind.iter().map(|it| i64::from_le_bytes(*it)).collect::<Vec<_>>(), [7, 100, 0]);
        let last = words(&messages[5].data);
        assert_eq!(i64::from_le_bytes(last[last.len() - 1]), -1, "its process data was dropped");
        let numbers: Vec<f64> = words(&messages[1].data).into_iter().map(f64::from_le_bytes).collect();
        assert!(numbers[1].is_nan() && numbers[2].is_nan());
        assert_eq!([numbers[0], numbers[3], numbers[4], numbers[5]], [0.5, 1.0, 2.0, 3.0]);
        let state =
            words(&messages[1].data)[6..].iter().map(|it| i64::from_le_bytes(*it)).collect::<Vec<_>>();
        assert_eq!(state, [8, 0, -1]);
        let event = [
            &11_i64.to_le_bytes()[..],
            &[6, 0, 0, 0],
            b"error\0",
            &[0, 0],
            &[16, 0, 0, 0],
            b"drive-1 is lost\0",
        ]
        .concat();
        assert_eq!(messages[9].data[4..], event);
        assert_eq!(messages[10].data[4 + 8..][..8], 9_000_i64.to_le_bytes());
        assert!(messages[10].data.ends_with(b"cycle 12 started 9 us late\0"));
        let pressure = &messages[2];
        assert_eq!(pressure.channel.metadata["unit"], "bar");
        let of_signal = |data: &[u8]| (f64::from_le_bytes(words(data)[0]), data[12..].to_vec());
        assert_eq!(of_signal(&pressure.data), (2.5, vec![1]), "forced");
        assert_eq!(of_signal(&messages[8].data), (2.75, vec![0]), "not forced");
        let schema = messages[1].channel.schema.as_ref().unwrap();
        assert_eq!((schema.name.as_str(), schema.encoding.as_str()), ("onbeat/msg/Axis", "ros2msg"));
        assert!(schema.data.starts_with(b"float64 position  # rad\n"));

        let summary = mcap::Summary::read(&file).unwrap().unwrap();
        assert_eq!((summary.stats.unwrap().message_count, summary.metadata_indexes.len()), (11, 2));
    }

    /// Messages of a file that was cut off.
    fn messages(file: &[u8]) -> usize {
        let options = mcap::read::Options::IgnoreEndMagic.into();
        mcap::MessageStream::new_with_options(file, options).unwrap().map_while(Result::ok).count()
    }

    #[test]
    fn truncated_file_of_one_second_has_header_and_data() {
        let mut file = Vec::new();
        let mut writer = McapWriter::begin(&mut file, &header()).unwrap();
        assert!(writer.flush().unwrap(), "there is no row yet");
        // As of a process that is killed: nothing is finished.
        std::mem::forget(writer);
        let options = mcap::read::Options::IgnoreEndMagic.into();
        let records = mcap::read::ChunkFlattener::new_with_options(&file, options).unwrap();
        let channels =
            records.map_while(Result::ok).filter(|it| matches!(it, mcap::records::Record::Channel(_)));
        assert_eq!(channels.count(), 5);

        // Rows each millisecond, flushed as a recorder does. Checks the rows of the first second in
        // a file cut off then.
        let mut kept = Vec::new();
        for cut in [70, 200, 500, 999] {
            let mut file = Vec::new();
            let mut writer = McapWriter::begin(&mut file, &header()).unwrap();
            for number in 0..cut {
                writer.row_with(&row(1_000_000 * number), vec![None; 12]).unwrap();
                writer.flush().unwrap();
            }
            std::mem::forget(writer);
            kept.push(messages(&file));
        }
        assert!(kept.iter().zip([70, 200, 500, 999]).all(|(kept, cut)| kept * 2 + 10 >= cut), "{kept:?}");
        assert!(kept.is_sorted() && kept[0] > 60, "{kept:?}");
    }

    #[test]
    fn what_is_no_cycle_and_a_full_disk_are_errors() {
        let columns = vec!["latency_ns".to_owned()];
        let other = Header { what: "wakeup".to_owned(), columns, facts: Facts::new() };
        let error = McapWriter::begin(Vec::new(), &other).err().unwrap().to_string();
        assert_eq!(error, "found no column `release_ns`, expected a recording of a cycle");
        let mut disk = [0_u8; 4096];
        let mut writer = McapWriter::begin(&mut disk[..], &header()).unwrap();
        (0..100).for_each(|number| writer.row_with(&row(number * 100), vec![None; 12]).unwrap());
        assert_eq!(writer.finish(&Facts::new()).unwrap_err().kind(), io::ErrorKind::WriteZero);
        let mut writer = McapWriter::begin(Vec::new(), &header()).unwrap();
        assert!(
            writer.row_with(&[1, 2], []).unwrap_err().to_string().contains("2 whole numbers, expected 16")
        );
    }
}
