//! Writes a recording as it grows.

use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use mcap::records::MessageHeader;
use mcap::write::NoSeek;
use mcap::{McapError, WriteOptions, Writer};
use types::Value;

use super::facts;
use super::layout::{Layout, Whole, described};
use super::{CDR_LITTLE_ENDIAN, Facts, Header, REALTIME_OFFSET};
use crate::mark::Mark;
use crate::process_data::{OF_AXIS, STATE_OF_AXIS};

/// Writes a recording as it grows. Rows are in the file after a second of the recording at most:
/// an index follows each chunk of rows. A writer that is dropped leaves a file that reads as cut
/// off.
pub struct RecordingWriter<W: Write> {
    file: Writer<NoSeek<W>>,
    layout: Layout,
    channels: Channels,
    offset: i64,
    last_start: Option<i64>,
    chunk: OpenChunk,
    bytes: u64,
    rows: u64,
    /// Rows that are in the file.
    flushed_rows: u64,
    sequence: u32,
    process_data: Vec<Option<Value>>,
    message: Vec<u8>,
}

/// Channels of a file.
struct Channels {
    row: u16,
    axes: Vec<u16>,
    signals: Vec<u16>,
    events: u16,
    late: u16,
}

/// The chunk that is not in the file yet.
struct OpenChunk {
    bytes: u64,
    /// First message: rows may have a clock that is set, or none.
    begun: Option<Instant>,
    /// Instant of the row in front of it, or of its first one, ns.
    since: Option<u64>,
    /// Time that it takes, ns, by the clock of the rows and by that of this computer.
    time: u64,
}

impl OpenChunk {
    /// Time that the next one takes, ns.
    fn next_time(&self) -> u64 {
        (self.time * 2).min(A_SECOND)
    }
}

/// Checks that a recording can have these columns.
///
/// # Errors
/// Columns that no message has.
pub(crate) fn check_columns(header: &Header) -> io::Result<()> {
    layout(header).map(drop)
}

fn layout(header: &Header) -> io::Result<Layout> {
    Layout::of(header).map_err(|(expected, found)| invalid(format!("expected {expected}, found {found}")))
}

impl<W: Write> RecordingWriter<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// Columns that no message has; I/O errors of the writer.
    pub fn begin(file: W, header: &Header) -> io::Result<Self> {
        let layout = layout(header)?;
        let options = WriteOptions::new().compression(None).profile("ros2").chunk_size(None);
        let options = options.library(concat!("onbeat ", env!("CARGO_PKG_VERSION"))).disable_seeking(true);
        let mut file = options.create(NoSeek::new(file)).map_err(failed)?;
        file.write_metadata(&facts::metadata(facts::BEGIN, &header.facts)).map_err(failed)?;
        file.write_metadata(&facts::rows(header)).map_err(failed)?;
        let channels = channels(&mut file, &layout, header)?;
        // A process that is killed at once leaves a readable file.
        file.flush().map_err(failed)?;
        let text = header.facts.iter().map(|(name, value)| name.len() + value.to_string().len());
        let head: usize = header.columns.iter().map(String::len).chain(text).sum();
        Ok(Self {
            file,
            layout,
            channels,
            offset: header.facts.get(REALTIME_OFFSET).and_then(serde_json::Value::as_i64).unwrap_or(0),
            last_start: None,
            chunk: OpenChunk { bytes: 0, begun: None, since: None, time: FIRST },
            bytes: head as u64,
            rows: 0,
            flushed_rows: 0,
            sequence: 0,
            process_data: Vec::new(),
            message: Vec::new(),
        })
    }

    /// Writes one row of a recording without process data.
    ///
    /// # Errors
    /// A row with more or fewer values than there are columns; I/O errors of the writer.
    pub fn row(&mut self, values: &[i64]) -> io::Result<()> {
        self.row_with(values, [])
    }

    /// Writes one row with its process data, `None` where there is none.
    ///
    /// # Errors
    /// As [`RecordingWriter::row`].
    pub fn row_with(
        &mut self,
        values: &[i64],
        process_data: impl IntoIterator<Item = Option<Value>>,
    ) -> io::Result<()> {
        self.process_data.clear();
        self.process_data.extend(process_data);
        let (found, expected) =
            ((values.len(), self.process_data.len()), (self.layout.whole, self.layout.width));
        if found != expected {
            return Err(invalid(format!(
                "a row of {} + {} values, expected {} + {}",
                found.0, found.1, expected.0, expected.1
            )));
        }
        let at = match self.layout.instant {
            Some((column, true)) => self.realtime(values[column].into()),
            Some((column, false)) => u64::try_from(values[column]).unwrap_or(0),
            None => u64::from(self.sequence),
        };
        let forced = self.layout.forced.and_then(|place| self.process_data[place]);
        self.begin_message();
        values.iter().for_each(|value| self.message.extend(value.to_le_bytes()));
        self.derived(values, forced);
        self.send(self.channels.row, at)?;
        if forced.is_some() {
            self.axes(at)?;
            self.signals(at)?;
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.rows += 1;
        self.end_row(at)
    }

    /// Appends the numbers that follow from a row.
    fn derived(&mut self, values: &[i64], forced: Option<Value>) {
        if let Some((release, start)) = self.layout.times {
            let (release, start) = (values[release], values[start]);
            let period = self.last_start.map_or(0, |last| start.saturating_sub(last));
            self.last_start = Some(start);
            self.message.extend(start.saturating_sub(release).to_le_bytes());
            self.message.extend(period.to_le_bytes());
        } else if forced.is_none() && self.layout.forced.is_none() {
            return;
        }
        let count = match forced {
            Some(Value::Unsigned(count)) => i64::try_from(count).unwrap_or(i64::MAX),
            Some(value) => value.number() as i64,
            None => -1,
        };
        self.message.extend(count.to_le_bytes());
    }

    fn axes(&mut self, at: u64) -> io::Result<()> {
        for place in 0..self.layout.axes.len() {
            self.begin_message();
            let (axis, values) = (&self.layout.axes[place], &self.process_data);
            let of = |place: Option<usize>| place.and_then(|place| values[place]);
            for place in axis.quantities {
                self.message.extend(of(place).map_or(f64::NAN, Value::number).to_le_bytes());
            }
            for place in axis.state {
                self.message.extend(of(place).map_or(-1, |it| it.number() as i64).to_le_bytes());
            }
            self.send(self.channels.axes[place], at)?;
        }
        Ok(())
    }

    fn signals(&mut self, at: u64) -> io::Result<()> {
        for place in 0..self.layout.signals.len() {
            let signal = &self.layout.signals[place];
            let force = signal.force.and_then(|place| self.process_data[place]);
            let is_forced = force.is_some_and(|force| force.number() != 0.0);
            let (value, whole) = (self.process_data[signal.value], signal.whole);
            if value.is_none() && !is_forced {
                continue;
            }
            self.begin_message();
            self.message.extend(value.map_or(f64::NAN, Value::number).to_le_bytes());
            self.message.push(is_forced.into());
            if let Some(kind) = whole {
                self.message.extend([0; 7]);
                self.message.extend(exact(value, kind));
            }
            self.send(self.channels.signals[place], at)?;
        }
        Ok(())
    }

    /// Writes a mark.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn mark(&mut self, mark: &Mark) -> io::Result<()> {
        let at = self.realtime(mark.at_ns().into());
        self.begin_message();
        self.message.extend(mark.cycle().to_le_bytes());
        let channel = match mark {
            Mark::Event { severity, sentence, .. } => {
                self.text(severity);
                self.text(sentence);
                self.channels.events
            }
            Mark::Late { late_ns, sentence, .. } => {
                self.message.extend(late_ns.to_le_bytes());
                self.text(sentence);
                self.channels.late
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

    /// Ends the chunk behind a row, if it has its time or its size.
    fn end_row(&mut self, at: u64) -> io::Result<()> {
        let since = *self.chunk.since.get_or_insert(at);
        // A clock that was set back ends it, too.
        let passed = if self.layout.instant.is_some() { at.abs_diff(since) } else { 0 };
        if passed < self.chunk.time && self.chunk.bytes < LARGEST && !self.is_due() {
            return Ok(());
        }
        let next = self.chunk.next_time();
        self.flush()?;
        (self.chunk.since, self.chunk.time) = (Some(at), next);
        Ok(())
    }

    /// True if a row or a mark has been in memory for the time of a chunk, a second at most: then
    /// [`flush`](Self::flush) writes it, also without a further row.
    #[must_use]
    pub fn is_due(&self) -> bool {
        let time = Duration::from_nanos(self.chunk.time);
        self.chunk.begun.is_some_and(|begun| begun.elapsed() >= time)
    }

    /// True if all rows and marks are in the file, and not in memory.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.chunk.bytes == 0
    }

    /// Writes what is in memory to the file, with an index of it.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.is_due() {
            self.chunk.time = self.chunk.next_time();
        }
        (self.chunk.bytes, self.chunk.begun, self.chunk.since) = (0, None, None);
        self.file.flush().map_err(failed)?;
        self.flushed_rows = self.rows;
        Ok(())
    }

    /// Number of rows that are in the file, and not in memory.
    #[must_use]
    pub fn flushed_rows(&self) -> u64 {
        self.flushed_rows
    }

    /// Size of the file with what is in memory, bytes; without the index that follows at its end.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the facts known at the end and the index, and returns the file.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn finish(mut self, facts: &Facts) -> io::Result<W> {
        self.file.write_metadata(&facts::metadata(facts::END, facts)).map_err(failed)?;
        self.finish_cut_off()
    }

    /// Writes the index alone, and returns the file: it reads as cut off.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn finish_cut_off(mut self) -> io::Result<W> {
        self.file.finish().map_err(failed)?;
        let mut file = self.file.into_inner().into_inner();
        file.flush()?;
        Ok(file)
    }

    /// Instant of CLOCK_MONOTONIC on CLOCK_REALTIME.
    fn realtime(&self, at: i128) -> u64 {
        let at = (at + i128::from(self.offset)).max(0);
        u64::try_from(at).unwrap_or(u64::MAX)
    }

    fn begin_message(&mut self) {
        self.message.clear();
        self.message.extend(CDR_LITTLE_ENDIAN);
    }

    fn send(&mut self, channel_id: u16, at: u64) -> io::Result<()> {
        let header = MessageHeader { channel_id, sequence: self.sequence, log_time: at, publish_time: at };
        self.file.write_to_known_channel(&header, &self.message).map_err(failed)?;
        self.chunk.begun.get_or_insert_with(Instant::now);
        let bytes = (AROUND_A_MESSAGE + self.message.len()) as u64;
        self.chunk.bytes += bytes;
        self.bytes += bytes;
        Ok(())
    }
}

impl<W: Write> fmt::Debug for RecordingWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingWriter").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Adds the schemas and channels of a file.
fn channels<W: Write>(
    file: &mut Writer<NoSeek<W>>,
    layout: &Layout,
    header: &Header,
) -> io::Result<Channels> {
    let (name, topic) = match header.what.as_str() {
        "cycle" => ("Cycle", "/cycle".to_owned()),
        what => ("Row", format!("/{what}")),
    };
    let row = schema(file, name, &layout.row_schema(&header.columns))?;
    let row = channel(file, row, &topic, None)?;
    let of_axis: String = OF_AXIS.map(|(name, unit)| format!("float64 {name}  # {unit}\n")).concat();
    let state = STATE_OF_AXIS.map(|name| format!("int64 {name}\n")).concat();
    let axis = schema(file, "Axis", &(of_axis + &state))?;
    let event = schema(file, "Event", "int64 cycle\nstring severity\nstring sentence\n")?;
    let late = schema(file, "Late", "int64 cycle\nint64 late_ns\nstring sentence\n")?;
    let events = channel(file, event, "/events", None)?;
    let late = channel(file, late, "/late", None)?;
    let axes = layout.axes.iter().map(|it| channel(file, axis, &format!("/axes/{}", it.name), None));
    let axes = axes.collect::<io::Result<_>>()?;
    let (mut signals, described) = (Vec::new(), described(&header.facts));
    for signal in &layout.signals {
        let (name, exact) = match signal.whole {
            None => ("Signal", ""),
            Some(Whole::Unsigned) => ("SignalUnsigned64", "uint64 exact  # the value, not rounded\n"),
            Some(Whole::Signed) => ("SignalSigned64", "int64 exact  # the value, not rounded\n"),
        };
        let fields = "float64 value\nbool forced  # held from outside at this value\n";
        let of_signal = schema(file, name, &(fields.to_owned() + exact))?;
        let unit = described.get(signal.name.as_str()).and_then(|it| it["unit"].as_str());
        signals.push(channel(file, of_signal, &format!("/signals/{}", signal.name), unit)?);
    }
    Ok(Channels { row, axes, signals, events, late })
}

fn schema<W: Write>(file: &mut Writer<NoSeek<W>>, name: &str, text: &str) -> io::Result<u16> {
    file.add_schema(&format!("onbeat/msg/{name}"), "ros2msg", text.as_bytes()).map_err(failed)
}

fn channel<W: Write>(
    file: &mut Writer<NoSeek<W>>,
    schema: u16,
    topic: &str,
    unit: Option<&str>,
) -> io::Result<u16> {
    let metadata = unit.map(|unit| ("unit".to_owned(), unit.to_owned())).into_iter().collect();
    file.add_channel(schema, topic, "cdr", &metadata).map_err(failed)
}

/// A whole number of 64 bits as it is; 0 of no value.
fn exact(value: Option<Value>, kind: Whole) -> [u8; 8] {
    match (value, kind) {
        (Some(Value::Unsigned(value)), _) => value.to_le_bytes(),
        (Some(Value::Signed(value)), _) => value.to_le_bytes(),
        (Some(value), Whole::Unsigned) => (value.number() as u64).to_le_bytes(),
        (Some(value), Whole::Signed) => (value.number() as i64).to_le_bytes(),
        (None, _) => [0; 8],
    }
}

fn failed(error: McapError) -> io::Error {
    match error {
        McapError::Io(error) => error,
        other => io::Error::other(other),
    }
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Nanoseconds of one.
const A_SECOND: u64 = 1_000_000_000;

/// Time that the first chunk takes, ns; each further one takes twice the time, up to a second.
const FIRST: u64 = A_SECOND / 16;

/// Bytes of a chunk at most, up to the row that reaches them.
const LARGEST: u64 = 8 << 20;

/// Bytes of a message in the file in addition to its content: its head, and its place in an index.
const AROUND_A_MESSAGE: usize = 9 + 22 + 16;
