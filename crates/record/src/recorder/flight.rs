//! Flight recorder: the last seconds of every cycle in memory, and in a file when there is a
//! reason.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use types::Value;

use super::DROPPED_MARKS;
use super::files::{BUFFER, KeptFiles, Names};
use super::trigger::{Cause, Eye, Trigger, UnknownValue};
use crate::recording::{Facts, Header};
use crate::{CycleRecord, Mark, RecordingWriter, cycles};

/// Recordings that are kept for a reason: the cycles before it and after it, each recording in a
/// separate file.
///
/// Cycles are kept in memory until then. A further reason while one is written lengthens it, up to
/// a minute more.
#[derive(Clone, Debug)]
pub struct FlightRecorder {
    /// Reasons, at least one.
    pub triggers: Vec<Trigger>,
    /// Time before a reason; a minute at most.
    pub before: Duration,
    /// Time after it; a day at most.
    pub after: Duration,
    /// Files kept: beyond them the oldest of this name go.
    pub kept: usize,
}

impl Default for FlightRecorder {
    fn default() -> Self {
        Self {
            triggers: vec![Trigger::Fault],
            before: Duration::from_secs(5),
            after: Duration::from_secs(2),
            kept: 20,
        }
    }
}

impl FlightRecorder {
    /// Longest time before a reason: it is kept in memory.
    pub const LONGEST_BEFORE: Duration = Duration::from_secs(60);

    /// Longest time after a reason.
    pub const LONGEST_AFTER: Duration = Duration::from_secs(24 * 3600);

    /// Refuses thresholds of values that are not in these columns of process data.
    ///
    /// # Errors
    /// The first such threshold.
    pub fn check(&self, columns: &[String]) -> Result<(), UnknownValue> {
        Eye::new(&self.triggers, columns).map(drop)
    }
}

/// ns.
const A_SECOND: u64 = 1_000_000_000;

/// Time for which further reasons lengthen a recording.
const LONGEST_MORE: Duration = Duration::from_secs(60);

/// The recorder at work, in the writer's thread.
pub(super) struct Flight {
    header: Header,
    names: Names,
    eye: Eye,
    before_ns: u64,
    after_ns: u64,
    last: VecDeque<Row>,
    /// Marks of the cycles in `last`, and some of before.
    marks: VecDeque<Mark>,
    /// Marks dropped for want of space, of each second: time of the newest, and their number.
    dropped: VecDeque<(u64, u64)>,
    /// Causes that came from outside, for the next row.
    asked: Vec<Cause>,
    writes: Option<Writes>,
    /// Files written so far.
    files: u64,
    /// Recordings that failed.
    failed: u64,
    /// Older recordings that were not removed the last time.
    stay: u64,
}

struct Row {
    record: CycleRecord,
    values: Vec<Option<Value>>,
}

/// A recording that is being written.
struct Writes {
    path: PathBuf,
    file: RecordingWriter<BufWriter<File>>,
    causes: Vec<Cause>,
    rows: u64,
    /// Marks of its time that were dropped before its begin.
    dropped: u64,
    /// Release of the newest row.
    newest_ns: u64,
    end_ns: u64,
    latest_end_ns: u64,
}

impl Flight {
    /// Begins; `path` is the name that files are named after.
    ///
    /// # Errors
    /// A threshold of a value that is not recorded.
    pub(super) fn new(
        settings: &FlightRecorder,
        path: &Path,
        header: Header,
    ) -> Result<Self, UnknownValue> {
        let columns = header.columns.get(cycles::COLUMNS.len()..).unwrap_or_default();
        let eye = Eye::new(&settings.triggers, columns)?;
        let before = settings.before.min(FlightRecorder::LONGEST_BEFORE);
        Ok(Self {
            eye,
            header,
            names: Names::new(path, settings.kept),
            before_ns: types::time::nanoseconds(before),
            after_ns: types::time::nanoseconds(settings.after.min(FlightRecorder::LONGEST_AFTER)),
            last: VecDeque::new(),
            marks: VecDeque::new(),
            dropped: VecDeque::new(),
            asked: Vec::new(),
            writes: None,
            files: 0,
            failed: 0,
            stay: 0,
        })
    }

    /// Has the recording of this cause kept.
    pub(super) fn trigger(&mut self, mut cause: Cause) {
        if cause.kind == "command" {
            cause.cycle = self.last.back().map_or(0, |row| row.record.cycle);
        }
        match &mut self.writes {
            Some(writes) => writes.go_on(cause, self.after_ns),
            None if self.asked.len() < MOST_CAUSES => self.asked.push(cause),
            None => {}
        }
    }

    /// Takes a row; returns a sentence about a recording that has ended or failed with it.
    pub(super) fn row(
        &mut self,
        record: &CycleRecord,
        values: impl Iterator<Item = Option<Value>>,
    ) -> Option<String> {
        let row = self.keep(record, values);
        let mut causes = self.eye.look(&row.record, &row.values);
        causes.append(&mut self.asked);
        self.last.push_back(row);
        let mut text = match &mut self.writes {
            None if causes.is_empty() => return None,
            None => self.begin(causes.remove(0)),
            Some(writes) => {
                let (failed, path) =
                    (self.last.back().and_then(|row| writes.row(row).err()), writes.path.clone());
                failed.map(|error| self.fail(&error, &path))
            }
        };
        if let Some(writes) = &mut self.writes {
            causes.into_iter().for_each(|cause| writes.go_on(cause, self.after_ns));
            if record.release_ns >= writes.end_ns {
                text = self.end();
            }
        }
        text
    }

    /// Takes a mark; returns a sentence about a recording that has failed with it.
    pub(super) fn mark(&mut self, mark: Mark) -> Option<String> {
        let failed = match &mut self.writes {
            Some(writes) => writes.file.mark(&mark).err().map(|error| (error, writes.path.clone())),
            None => None,
        };
        let kept_ns = self.before_ns.saturating_add(MARGIN_NS);
        let is_old = |at_ns: u64| at_ns.saturating_add(kept_ns) < mark.at_ns();
        while self.marks.front().is_some_and(|mark| is_old(mark.at_ns())) {
            self.marks.pop_front();
        }
        while self.dropped.front().is_some_and(|&(at_ns, _)| is_old(at_ns)) {
            self.dropped.pop_front();
        }
        let excess = if self.marks.len() == MARKS { self.marks.pop_front() } else { None };
        if let Some(at_ns) = excess.map(|mark| mark.at_ns()) {
            match self.dropped.back_mut().filter(|it| it.0 / A_SECOND == at_ns / A_SECOND) {
                Some(second) => *second = (second.0.max(at_ns), second.1 + 1),
                None => self.dropped.push_back((at_ns, 1)),
            }
        }
        self.marks.push_back(mark);
        failed.map(|(error, path)| self.fail(&error, &path))
    }

    /// True if rows or marks of a recording have been in memory for the time of a chunk.
    pub(super) fn is_due(&self) -> bool {
        self.writes.as_ref().is_some_and(|writes| writes.file.is_due())
    }

    /// Writes what is in memory to the file of a recording; returns a sentence if it failed.
    pub(super) fn flush(&mut self) -> Option<String> {
        let writes = self.writes.as_mut()?;
        let (error, path) = (writes.file.flush().err()?, writes.path.clone());
        Some(self.fail(&error, &path))
    }

    /// Keeps a row of these values, in place of the oldest expired one.
    fn keep(&mut self, record: &CycleRecord, values: impl Iterator<Item = Option<Value>>) -> Row {
        let mut spare = None;
        let is_old = |row: &Row| row.record.release_ns.saturating_add(self.before_ns) < record.release_ns;
        while self.last.front().is_some_and(is_old) {
            spare = self.last.pop_front();
        }
        let mut row = spare.unwrap_or_else(|| Row { record: *record, values: Vec::new() });
        row.record = *record;
        row.values.clear();
        row.values.extend(values);
        row
    }

    /// Begins a recording with the rows there are.
    fn begin(&mut self, cause: Cause) -> Option<String> {
        let (path, file) = match self.names.create(cause.kind) {
            Ok(created) => created,
            Err(error) => {
                let text = format!("a recording for {}", cause.sentence);
                return Some(self.lost(&error, &text));
            }
        };
        match self.begun(cause, &path, file) {
            Ok(writes) => {
                self.writes = Some(writes);
                None
            }
            Err(error) => Some(self.fail(&error, &path)),
        }
    }

    fn begun(&self, cause: Cause, path: &Path, file: File) -> io::Result<Writes> {
        let mut header = self.header.clone();
        let words = json!({ "cycle": cause.cycle, "cause": cause.kind, "sentence": cause.sentence });
        header.facts.insert("trigger".to_owned(), words);
        let file = RecordingWriter::begin(BufWriter::with_capacity(BUFFER, file), &header)?;
        let now = self.last.back().map_or(0, |row| row.record.release_ns);
        let end_ns = now.saturating_add(self.after_ns);
        let latest_end_ns = end_ns.saturating_add(types::time::nanoseconds(LONGEST_MORE));
        let causes = vec![cause];
        let path = path.to_owned();
        let begin = self.last.front().map_or(0, |row| row.record.release_ns);
        let dropped = self.dropped.iter().filter(|it| it.0 >= begin).map(|it| it.1).sum();
        let mut writes =
            Writes { path, file, causes, rows: 0, dropped, newest_ns: now, end_ns, latest_end_ns };
        self.last.iter().try_for_each(|row| writes.row(row))?;
        let mut marks = self.marks.iter().filter(|mark| mark.at_ns() >= begin);
        marks.try_for_each(|mark| writes.file.mark(mark))?;
        Ok(writes)
    }

    /// Ends the recording that is being written, if there is one.
    fn end(&mut self) -> Option<String> {
        let writes = self.writes.take()?;
        let path = writes.path.clone();
        match writes.end() {
            Ok(text) => {
                self.files += 1;
                let removed = self.names.remove_oldest(&path);
                let stay = removed.map_or_else(
                    |it| (it.files, format!("; older ones stay: {}", it.error)),
                    |()| Default::default(),
                );
                self.stay = stay.0;
                Some(text + &stay.1)
            }
            Err(error) => Some(self.fail(&error, &path)),
        }
    }

    /// Ends with the run: a recording requested in its last cycle is kept, too.
    pub(super) fn finish(mut self, mut tell: impl FnMut(String)) -> KeptFiles {
        let mut asked = std::mem::take(&mut self.asked).into_iter();
        if let Some(cause) = asked.next() {
            self.begin(cause).map(&mut tell);
        }
        if let Some(writes) = &mut self.writes {
            asked.for_each(|cause| writes.go_on(cause, self.after_ns));
        }
        self.end().map(&mut tell);
        KeptFiles { kept: self.files, failed: self.failed, stay: self.stay }
    }

    /// Abandons the recording and removes its file, which this recorder has created; the next cause
    /// begins another.
    fn fail(&mut self, error: &io::Error, path: &Path) -> String {
        self.writes = None;
        let _ = fs::remove_file(path);
        self.lost(error, &path.display().to_string())
    }

    /// Counts a recording that failed.
    fn lost(&mut self, error: &io::Error, what: &str) -> String {
        self.failed += 1;
        format!("{what}: {error}; this recording is not kept")
    }
}

impl Writes {
    fn row(&mut self, row: &Row) -> io::Result<()> {
        self.rows += 1;
        self.newest_ns = row.record.release_ns;
        self.file.row_with(&cycles::row(&row.record), row.values.iter().copied())
    }

    /// Lengthens it, for a further cause.
    fn go_on(&mut self, cause: Cause, after_ns: u64) {
        self.end_ns = self.end_ns.max(self.newest_ns.saturating_add(after_ns)).min(self.latest_end_ns);
        if self.causes.len() < MOST_CAUSES {
            self.causes.push(cause);
        }
    }

    /// Writes the end, and returns a sentence on the content.
    fn end(self) -> io::Result<String> {
        let cause = |cause: &Cause| json!({ "cycle": cause.cycle, "cause": cause.kind, "sentence": cause.sentence });
        let mut facts = Facts::new();
        facts.insert("cycles".to_owned(), self.rows.into());
        if self.dropped > 0 {
            facts.insert(DROPPED_MARKS.to_owned(), self.dropped.into());
        }
        facts.insert("triggers".to_owned(), self.causes.iter().map(cause).collect());
        self.file.finish(&facts)?;
        let first = &self.causes[0];
        let more = match self.causes.len() - 1 {
            0 => String::new(),
            MOST_CAUSES.. => ", and more".to_owned(),
            more => format!(", and {more} more"),
        };
        Ok(format!(
            "{}: {} cycles around cycle {}: {}{more}",
            self.path.display(),
            self.rows,
            first.cycle,
            first.sentence
        ))
    }
}

/// Most marks that are kept in memory.
const MARKS: usize = 1 << 12;

/// Marks are kept for so much longer than rows: a mark may precede the row of its cycle.
const MARGIN_NS: u64 = 1_000_000_000;

/// Causes in a recording, at most.
const MOST_CAUSES: usize = 100;

#[cfg(test)]
mod tests {
    use crate::Recording;

    use super::*;

    /// A recorder with threshold `signal:a > 0` in an empty folder.
    fn flight(name: &str, after: Duration) -> (Flight, PathBuf) {
        let folder = std::env::temp_dir().join(format!("onbeat-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let triggers = vec!["a>0".parse().unwrap()];
        let settings = FlightRecorder { triggers, before: Duration::ZERO, after, kept: 1000 };
        let mut columns = cycles::COLUMNS.map(str::to_owned).to_vec();
        columns.extend(["signals:forced", "signal:a", "forced:a"].map(str::to_owned));
        let header = Header { what: cycles::WHAT.to_owned(), columns, facts: Facts::new() };
        (Flight::new(&settings, &folder.join("arm.mcap"), header).unwrap(), folder)
    }

    fn row(flight: &mut Flight, cycle: u64) -> Option<String> {
        let values = [0, cycle % 2, 0].map(|number| Some(Value::Unsigned(number)));
        flight.row(&CycleRecord::begin(cycle, cycle, cycle), values.into_iter())
    }

    // feature(measure): each recording of a flight recorder has a separate file, however fast they follow
    #[test]
    fn recordings_of_one_moment_have_separate_files() {
        let (mut flight, folder) = flight("moment", Duration::ZERO);
        let text: Vec<String> = (0..200).filter_map(|cycle| row(&mut flight, cycle)).collect();
        let kept = text.iter().filter(|it| it.contains(" cycles around cycle ")).count();
        let files = flight.finish(|_| {});
        assert_eq!((kept, files), (100, KeptFiles { kept: 100, failed: 0, stay: 0 }), "{text:?}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 100);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn marks_dropped_before_the_time_of_a_recording_are_not_counted() {
        let (mut flight, folder) = flight("steady", Duration::ZERO);
        flight.before_ns = 10_000_000_000;
        // A thousand marks a second, for a minute.
        for at_ns in (0..60_000).map(|it| it * 1_000_000) {
            let late = Mark::Late { cycle: 1, at_ns, late_ns: 60_000, sentence: String::new() };
            assert_eq!(flight.mark(late), None);
            drop(row(&mut flight, at_ns));
        }
        drop(row(&mut flight, 60_000_000_001));
        flight.finish(|_| {});
        let path = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let recording = Recording::read(&fs::read(path).unwrap()[..]).unwrap();
        let dropped = recording.end[DROPPED_MARKS].as_u64().unwrap();
        let expected = 10_000 - MARKS as u64;
        assert!((expected..=expected + 1_000).contains(&dropped), "{dropped}, expected about {expected}");
    }

    // feature(measure): a flight recording counts the events and late cycles that it had to drop
    #[test]
    fn marks_without_space_are_counted_in_the_file() {
        let (mut flight, folder) = flight("marks", Duration::ZERO);
        let late = |at_ns| Mark::Late { cycle: 1, at_ns, late_ns: 60_000, sentence: String::new() };
        (0..MARKS + 10).for_each(|_| assert_eq!(flight.mark(late(1)), None));
        (0..3).for_each(|cycle| drop(row(&mut flight, cycle)));
        assert_eq!(flight.mark(late(3 + MARGIN_NS)), None, "the others are old now");
        assert_eq!((flight.marks.len(), flight.dropped.len()), (1, 0));
        flight.finish(|_| {});
        let path = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let recording = Recording::read(&fs::read(path).unwrap()[..]).unwrap();
        assert_eq!(recording.end[DROPPED_MARKS], 10);
        assert_eq!(recording.marks.len(), MARKS);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_longest_time_after_a_cause_does_not_overflow() {
        let (mut flight, folder) = flight("longest", Duration::MAX);
        let texts: Vec<(u64, String)> =
            (u64::MAX - 3..=u64::MAX).filter_map(|cycle| Some((cycle, row(&mut flight, cycle)?))).collect();
        let [(u64::MAX, text)] = &texts[..] else { panic!("it ends before: {texts:?}") };
        assert!(text.contains("3 cycles around"), "{text}");
        fs::remove_dir_all(folder).unwrap();
    }
}
