//! Reads a recording row by row.

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;

use mcap::records::{Record, op};

use super::facts;
use super::file_records::{FileRecords, parse};
use super::layout::{Layout, Whole, too_many};
use super::{CDR_LITTLE_ENDIAN, Facts, Header, REALTIME_OFFSET, RecordingError};
use crate::mark::Mark;

/// Reads a recording row by row, in constant memory but for its marks, also while it is being
/// written. A recording that was cut off ends behind its last whole row.
pub struct RecordingReader<R> {
    file: FileRecords<R>,
    header: Header,
    layout: Layout,
    offset: i64,
    channels: BTreeMap<u16, TopicContent>,
    end: Option<Facts>,
    marks: Vec<Mark>,
    /// The row that was read last.
    row: ReadRow,
    /// The row that is being read.
    next: ReadRow,
    /// True if `next` has a row.
    is_begun: bool,
}

/// Values of a row.
#[derive(Debug, Default)]
struct ReadRow {
    values: Vec<i64>,
    process_data: Vec<f64>,
    /// Places of process data with whole numbers that a `float64` rounds.
    exact: Vec<(usize, i128)>,
    /// True if its process data was dropped.
    is_dropped: bool,
}

/// Content of a channel.
#[derive(Clone, Copy, Debug)]
enum TopicContent {
    Row,
    /// Of the axis at this place.
    Axis(usize),
    /// Of the signal at this place.
    Signal(usize),
    Events,
    Late,
}

impl<R: BufRead> RecordingReader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// A file that is no recording; I/O errors of the reader.
    pub fn open(file: R) -> Result<Self, RecordingError> {
        let mut file = FileRecords::open(file)?;
        let mut facts = Facts::new();
        let (header, columns) = loop {
            match file.next()? {
                None => return Err(RecordingError::NoRows),
                Some(op::HEADER) => {}
                Some(op::METADATA) => {
                    let Some(Record::Metadata(it)) = parse(op::METADATA, &file.data) else {
                        return Err(file.damaged("metadata"));
                    };
                    match it.name.as_str() {
                        facts::BEGIN => facts = facts::facts(it.metadata),
                        facts::ROWS => {
                            let header = facts::header(&it.metadata, facts);
                            break header
                                .ok_or_else(|| file.damaged("the kind and the columns of the rows"))?;
                        }
                        _ => {}
                    }
                }
                Some(_) => return Err(RecordingError::Foreign),
            }
        };
        let is_too_wide = columns > header.columns.len();
        let layout = if is_too_wide { Err(too_many(columns)) } else { Layout::of(&header) };
        let layout = layout.map_err(|(expected, found)| RecordingError::unexpected(expected, &found))?;
        let offset = header.facts.get(REALTIME_OFFSET).and_then(serde_json::Value::as_i64).unwrap_or(0);
        Ok(Self {
            file,
            header,
            layout,
            offset,
            channels: BTreeMap::new(),
            end: None,
            marks: Vec::new(),
            row: ReadRow::default(),
            next: ReadRow::default(),
            is_begun: false,
        })
    }

    /// Head of the recording.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Facts known at the end, once they have been read: after the last row.
    #[must_use]
    pub const fn end(&self) -> Option<&Facts> {
        self.end.as_ref()
    }

    /// Takes the marks that were read since they were taken last.
    pub fn take_marks(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.marks)
    }

    /// Process data of the row that was read last, NaN where there is none.
    #[must_use]
    pub fn process_data(&self) -> &[f64] {
        &self.row.process_data
    }

    /// Column `column` of the row that was read last, as a whole number: exact, where
    /// [`process_data`](Self::process_data) rounds beyond 2^53. `None` if there is no value, or no
    /// whole number.
    #[must_use]
    pub fn exact(&self, column: usize) -> Option<i128> {
        let Some(place) = column.checked_sub(self.layout.whole) else {
            return self.row.values.get(column).map(|&it| it.into());
        };
        if let Some((_, exact)) = self.row.exact.iter().find(|(found, _)| *found == place) {
            return Some(*exact);
        }
        let value = *self.row.process_data.get(place)?;
        (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i128)
    }

    /// Next row without its process data, or `None` at the end.
    ///
    /// # Errors
    /// Damage in the file; I/O errors of the reader.
    pub fn next_row(&mut self) -> Result<Option<&[i64]>, RecordingError> {
        loop {
            let Some(kind) = self.file.next()? else {
                // Half a row is none. Without process data it is one message, which is whole.
                let is_whole = std::mem::take(&mut self.is_begun) && self.layout.width == 0;
                return Ok(is_whole.then(|| self.take_next()));
            };
            match kind {
                op::MESSAGE => {
                    if self.message()? {
                        return Ok(Some(&self.row.values));
                    }
                }
                op::SCHEMA => {}
                op::CHANNEL => self.channel()?,
                // Rows end with their chunk.
                _ => {
                    if kind == op::METADATA {
                        self.metadata();
                    }
                    if std::mem::take(&mut self.is_begun) {
                        return Ok(Some(self.take_next()));
                    }
                }
            }
        }
    }

    fn take_next(&mut self) -> &[i64] {
        std::mem::swap(&mut self.row, &mut self.next);
        &self.row.values
    }

    /// Takes the facts of the end. Without them the recording is cut off, and its rows count.
    fn metadata(&mut self) {
        match parse(op::METADATA, &self.file.data) {
            Some(Record::Metadata(it)) if it.name == facts::END => {
                self.end = Some(facts::facts(it.metadata));
            }
            _ => {}
        }
    }

    fn channel(&mut self) -> Result<(), RecordingError> {
        let Some(Record::Channel(it)) = parse(op::CHANNEL, &self.file.data) else {
            return Err(self.file.damaged("a channel"));
        };
        let topic = it.topic.as_str();
        let axis = || {
            let name = topic.strip_prefix("/axes/")?;
            Some(TopicContent::Axis(self.layout.axes.iter().position(|it| it.name == name)?))
        };
        let signal = || {
            let name = topic.strip_prefix("/signals/")?;
            Some(TopicContent::Signal(self.layout.signals.iter().position(|it| it.name == name)?))
        };
        let channel = match topic {
            _ if topic.strip_prefix('/') == Some(&self.header.what) => Some(TopicContent::Row),
            "/events" => Some(TopicContent::Events),
            "/late" => Some(TopicContent::Late),
            _ => axis().or_else(signal),
        };
        // Of another program: passed over, as its messages are.
        if let Some(channel) = channel {
            self.channels.insert(it.id, channel);
        }
        Ok(())
    }

    /// Takes a message; true if it begins another row, and the row before is whole.
    fn message(&mut self) -> Result<bool, RecordingError> {
        let damaged = || self.file.damaged("a message");
        let (channel, mut rest) = self.file.data.split_first_chunk().ok_or_else(damaged)?;
        let _sequence: [u8; 4] = take(&mut rest).ok_or_else(damaged)?;
        let at = u64::from_le_bytes(take(&mut rest).ok_or_else(damaged)?);
        let _published: [u8; 8] = take(&mut rest).ok_or_else(damaged)?;
        let Some(&channel) = self.channels.get(&u16::from_le_bytes(*channel)) else { return Ok(false) };
        let mut content = rest.strip_prefix(&CDR_LITTLE_ENDIAN).ok_or_else(damaged)?;
        match channel {
            TopicContent::Row => {
                if content.len() != 8 * self.layout.numbers() {
                    return Err(self.file.damaged("a row with a number for each column"));
                }
                let is_whole = std::mem::replace(&mut self.is_begun, true);
                if is_whole {
                    std::mem::swap(&mut self.row, &mut self.next);
                }
                self.next.begin(content, &self.layout);
                return Ok(is_whole);
            }
            TopicContent::Axis(_) | TopicContent::Signal(_) if !self.is_begun || self.next.is_dropped => {}
            TopicContent::Axis(place) => {
                let axis = &self.layout.axes[place];
                for place in axis.quantities {
                    let value = f64::from_le_bytes(take(&mut content).ok_or_else(damaged)?);
                    self.next.set(place, value);
                }
                for place in axis.state {
                    let value = i64::from_le_bytes(take(&mut content).ok_or_else(damaged)?);
                    self.next.set(place, if value == -1 { f64::NAN } else { value as f64 });
                }
            }
            TopicContent::Signal(place) => {
                let signal = &self.layout.signals[place];
                let value = f64::from_le_bytes(take(&mut content).ok_or_else(damaged)?);
                let [forced] = take(&mut content).ok_or_else(damaged)?;
                self.next.set(Some(signal.value), value);
                self.next.set(signal.force, if forced == 0 { 0.0 } else { 1.0 });
                if let Some(kind) = signal.whole {
                    let _aligned: [u8; 7] = take(&mut content).ok_or_else(damaged)?;
                    let exact = take(&mut content).ok_or_else(damaged)?;
                    let exact = match kind {
                        Whole::Unsigned => u64::from_le_bytes(exact).into(),
                        Whole::Signed => i64::from_le_bytes(exact).into(),
                    };
                    // Of a scaled value the number is not whole.
                    if exact as f64 == value {
                        self.next.exact.push((signal.value, exact));
                    }
                }
            }
            TopicContent::Events | TopicContent::Late => {
                let at = (i128::from(at) - i128::from(self.offset)).max(0);
                let at_ns = u64::try_from(at).unwrap_or(u64::MAX);
                let mark =
                    mark(content, at_ns, matches!(channel, TopicContent::Late)).ok_or_else(damaged)?;
                self.marks.push(mark);
            }
        }
        Ok(false)
    }
}

impl<R> fmt::Debug for RecordingReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingReader").field("header", &self.header).finish_non_exhaustive()
    }
}

impl ReadRow {
    /// Begins a row with the numbers of its message.
    fn begin(&mut self, content: &[u8], layout: &Layout) {
        let number = |it: &[u8]| it.first_chunk().map_or(0, |it| i64::from_le_bytes(*it));
        let mut numbers = content.chunks_exact(8).map(number);
        self.values.clear();
        self.values.extend(numbers.clone().take(layout.whole));
        self.process_data.clear();
        self.process_data.resize(layout.width, f64::NAN);
        self.exact.clear();
        let forced = numbers.next_back().filter(|count| *count >= 0);
        self.is_dropped = forced.is_none();
        if let Some(count) = forced.filter(|_| layout.width > 0) {
            self.set(layout.forced, count as f64);
            layout.signals.iter().for_each(|signal| self.set(signal.force, 0.0));
        }
    }

    fn set(&mut self, place: Option<usize>, value: f64) {
        if let Some(place) = place {
            self.process_data[place] = if value.is_nan() { f64::NAN } else { value };
        }
    }
}

/// Mark of a message.
fn mark(mut content: &[u8], at_ns: u64, is_late: bool) -> Option<Mark> {
    let cycle = u64::from_le_bytes(take(&mut content)?);
    if is_late {
        let late_ns = u64::from_le_bytes(take(&mut content)?);
        return Some(Mark::Late { cycle, at_ns, late_ns, sentence: text(&mut content)? });
    }
    let severity = text(&mut content)?;
    // The next string begins where its length is aligned.
    let aligned = (severity.len() + 1).next_multiple_of(4) - (severity.len() + 1);
    content = content.get(aligned..)?;
    Some(Mark::Event { cycle, at_ns, severity, sentence: text(&mut content)? })
}

/// A string: its length with its end, its bytes, a zero.
fn text(content: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(u32::from_le_bytes(take(content)?)).ok()?;
    let (bytes, rest) = content.split_at_checked(length)?;
    *content = rest;
    Some(String::from_utf8_lossy(bytes.strip_suffix(&[0])?).into_owned())
}

/// Takes the first bytes.
fn take<const N: usize>(content: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = content.split_first_chunk()?;
    *content = rest;
    Some(*first)
}

/// Whole numbers up to this one are exact as `float64`: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;
