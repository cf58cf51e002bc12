//! Every measured cycle in a file, or only the cycles around a cause, written by a separate thread:
//! neither the cycle nor its watch ever waits for a disk.

mod asked;
mod files;
mod flight;
mod parts;
mod process_data;
mod trigger;

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Display, Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use control::bus::{PartNames, sentence};
use control::observer::CycleEvent;
use control::sampling::Samples;
use ipc::bus::Severity;
use ipc::ring;
use machine::usage::Usage;
use record::recording::{Facts, Header, REALTIME_OFFSET, is_recording};
use record::{CycleRecord, Mark, RecordingWriter, RunConditions, RunSummary, cycles};
use rt::clock::Clock;
use rt::output::{OutputThread, Taken, Unfinished};
use rustix::fs::{Access, FlockOperation, access, flock};
use serde_json::Value;
use types::late::LateCycle;

use asked::Kept;
use files::KeptFiles;
use flight::Flight;
use parts::Parts;
use process_data::ProcessData;
use trigger::Cause;

pub(crate) use asked::RecordingSettings;
pub(super) use asked::{Ask, NewFile};
pub use flight::FlightRecorder;
pub use parts::RecordingParts;
pub use process_data::RecordedSignals;
pub use trigger::{Threshold, Trigger, TriggerError};

use crate::error::{Incomplete, RecordingError};
use crate::{Error, Notice, Reporter};

/// Time the file may take nothing at the end of a run before it is given up.
const LAST_TIMEOUT: Duration = Duration::from_secs(3);

/// Polling interval of the writer.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Interval at which a waiting cycle looks for space.
const ROOM_EVERY: Duration = Duration::from_millis(1);

/// Cycles between two checks of the file.
const AT_ONCE: usize = 256;

/// Numbers of the writer.
#[derive(Clone, Copy, Default)]
struct Wrote {
    /// Cycles without their process data, which was dropped.
    without: u64,
    /// Files of a flight recorder, or parts.
    files: KeptFiles,
    /// Fate of the file, where others have laid hands on it.
    disturbed: Option<&'static str>,
}

/// Facts known once the bus is in PreOp.
struct Top {
    header: Header,
    /// Signals and axes, if they are recorded.
    samples: Option<Samples>,
}

/// Hands cycles over as they come.
pub(super) struct Recorder {
    path: PathBuf,
    /// Names for what happens.
    names: PartNames,
    /// Faults have a recording kept.
    on_fault: bool,
    keeps: bool,
    causes: Sender<Cause>,
    marks: SyncSender<Mark>,
    /// Marks that were dropped because the queue was full.
    dropped_marks: u64,
    /// The last late cycle that was marked.
    last_late: Option<u64>,
    cycles: ring::Sender<CycleRecord>,
    end: Sender<Facts>,
    said: Receiver<String>,
    writer: OutputThread<io::Result<Wrote>>,
    /// A cycle without space waits for the file.
    is_patient: bool,
    measured: u64,
    begin: Option<Usage>,
}

impl Recorder {
    /// Has the top written, with the conditions of the run.
    pub(super) fn begin(
        new: NewFile,
        conditions: &RunConditions,
        period: Duration,
        names: PartNames,
        (is_patient, offset): (bool, i64),
    ) -> Self {
        let NewFile { path, kept, process_data, top, causes, marks, cycles, end, said, writer, .. } = new;
        let keeps = kept.flight().is_some();
        let on_fault = kept.flight().is_some_and(|flight| flight.triggers.contains(&Trigger::Fault));
        let period = types::time::nanoseconds(period);
        let mut header = Header {
            what: cycles::WHAT.to_owned(),
            columns: cycles::COLUMNS.map(str::to_owned).to_vec(),
            facts: facts(conditions, period, offset),
        };
        let samples = process_data.map(|ProcessData { samples, columns, signals }| {
            header.columns.extend(columns);
            header.facts.insert("signals".to_owned(), signals);
            samples
        });
        // A writer that is gone has its failure to tell.
        let _ = top.send(Top { header, samples });
        let begin = Usage::now().ok();
        Self {
            path,
            names,
            on_fault,
            keeps,
            causes,
            marks,
            dropped_marks: 0,
            last_late: None,
            cycles,
            end,
            said,
            writer,
            is_patient,
            measured: 0,
            begin,
        }
    }

    /// Has events written, and a recording kept for a fault, if requested.
    pub(super) fn see(&mut self, events: &[CycleEvent]) {
        for event in events {
            let Some((severity, sentence)) = sentence(event, &[], &self.names) else { continue };
            let (cycle, at_ns) = (event.cycle, event.at.as_nanos());
            if self.on_fault && severity == Severity::Error {
                let _ = self.causes.send(Cause { cycle, kind: "fault", sentence: sentence.clone() });
            }
            let severity = severity.name().to_owned();
            self.mark(Mark::Event { cycle, at_ns, severity, sentence });
        }
    }

    /// Has late cycles written: `newer` returns the late cycles after a given one, in their order.
    pub(super) fn late(&mut self, newer: impl FnOnce(Option<u64>) -> Vec<LateCycle>) {
        for late in newer(self.last_late) {
            let LateCycle { cycle, release_ns: at_ns, late_ns, .. } = late;
            self.last_late = Some(cycle);
            self.mark(Mark::Late { cycle, at_ns, late_ns, sentence: late.to_string() });
        }
    }

    fn mark(&mut self, mark: Mark) {
        // A writer that is gone has its failure to tell.
        self.dropped_marks += u64::from(self.marks.try_send(mark).is_err());
    }

    /// Has one cycle written. It is dropped if the ring is full; a patient one waits before, until
    /// the file took nothing for [`LAST_TIMEOUT`]: from then on nothing waits any more.
    pub(super) fn record(&mut self, record: &CycleRecord) {
        self.measured += 1;
        let since = std::time::Instant::now();
        while self.is_patient && self.cycles.room() == 0 {
            std::thread::sleep(ROOM_EVERY);
            self.is_patient = since.elapsed() < LAST_TIMEOUT;
        }
        self.cycles.send(*record);
    }

    /// Passes on the writer's sentences since the last call.
    pub(super) fn look(&self, reporter: &mut dyn Reporter) {
        self.said.try_iter().for_each(|line| reporter.notice(&Notice::Recording(line)));
    }

    /// Writes the final facts, and returns the result.
    pub(super) fn finish(self, summary: &RunSummary) -> Result<String, Error> {
        let mut end = end(summary, self.begin.as_ref());
        if self.dropped_marks > 0 {
            end.insert(DROPPED_MARKS.to_owned(), self.dropped_marks.into());
        }
        let _ = self.end.send(end);
        // The writer ends when there are no more to come.
        drop((self.cycles, self.end));
        let outcome = self.writer.finish(LAST_TIMEOUT);
        let written = self.writer.taken();
        // Cycles without a record here are missing, too.
        let missing = (self.measured + summary.dropped_records.count).saturating_sub(written);
        let marks = self.dropped_marks;
        let mut without = 0;
        let source = match outcome {
            Ok(Ok(Wrote { disturbed: Some(what), .. })) => {
                return Err(Error::Recording { path: self.path, source: RecordingError::Disturbed(what) });
            }
            Ok(Ok(Wrote { files, .. })) if self.keeps && files.failed > 0 => {
                let source = RecordingError::NotKept { failed: files.failed, kept: files.kept };
                return Err(Error::Recording { path: self.path, source });
            }
            Ok(Ok(Wrote { files, .. })) if self.keeps && missing + marks > 0 => {
                let source = RecordingError::NotSeen { kept: files.kept, missing, marks };
                return Err(Error::Recording { path: self.path, source });
            }
            Ok(Err(error)) if self.keeps => {
                return Err(Error::Recording { path: self.path, source: RecordingError::File(error) });
            }
            Ok(Ok(Wrote { without, files, .. })) if self.keeps || without + missing + marks == 0 => {
                if files.stay > 0 {
                    let source = RecordingError::NotRemoved { stay: files.stay };
                    return Err(Error::Recording { path: self.path, source });
                }
                let path = self.path.display();
                return Ok(match files.kept {
                    kept if self.keeps => kept_recordings(&path, kept),
                    0 => format!("{written} cycles recorded in {path}"),
                    1 => format!("{written} cycles recorded in 1 part named after {path}"),
                    parts => format!("{written} cycles recorded in {parts} parts named after {path}"),
                });
            }
            Ok(Ok(wrote)) => {
                without = wrote.without;
                Incomplete::TooSlow
            }
            Ok(Err(error)) => error.into(),
            Err(Unfinished::Hangs) => Incomplete::Hangs,
            Err(Unfinished::Panicked) => Incomplete::Panicked,
        };
        let source = RecordingError::NotWhole { source, written, without, missing, marks };
        Err(Error::Recording { path: self.path, source })
    }
}

/// Recordings that a flight recorder has kept.
fn kept_recordings(path: &Display<'_>, kept: u64) -> String {
    match kept {
        0 => format!("{path}: no recording was kept"),
        1 => format!("{path}: 1 recording was kept"),
        kept => format!("{path}: {kept} recordings were kept"),
    }
}

/// The writer's side.
struct Writing {
    path: PathBuf,
    /// True if an earlier recording may be replaced.
    replaces: bool,
    kept: Kept,
    incoming: Receiver<Cause>,
    marked: Receiver<Mark>,
    say: Sender<String>,
}

impl Writing {
    /// Opens the file and writes everything; written parts are counted.
    fn write(
        self,
        opened: &SyncSender<io::Result<()>>,
        top: &Receiver<Top>,
        mut rows: ring::Receiver<CycleRecord>,
        bottom: &Receiver<Facts>,
        taken: &Taken,
    ) -> io::Result<Wrote> {
        let file = match self.open() {
            Ok(file) => {
                let _ = opened.send(Ok(()));
                file
            }
            Err(error) => {
                // A caller that does not wait for it any more gets the error at the end.
                let again = io::Error::new(error.kind(), error.to_string());
                let _ = opened.send(Err(error));
                return Err(again);
            }
        };
        // A run that ended earlier has nothing to write.
        let Ok(Top { header, mut samples }) = top.recv() else { return Ok(Wrote::default()) };
        let begun = file.as_ref().map(File::try_clone).transpose()?;
        let written = self
            .tape(file, header)
            .and_then(|tape| self.write_rows(tape, &mut rows, samples.as_mut(), taken));
        if let Err(error) = &written {
            let told = format!("{}: {error}; cycles are not recorded any more", self.path.display());
            let _ = self.say.send(told);
            self.discard(&mut rows, samples.as_mut());
        }
        let end = bottom.recv();
        let Written { tape, without, waiting } = written?;
        let files = match (tape, end) {
            (Tape::Whole(file), Ok(mut end)) => {
                if samples.is_some() {
                    end.insert(WITHOUT.to_owned(), without.into());
                }
                file.finish(&end)?;
                KeptFiles::default()
            }
            (Tape::Whole(_), Err(_)) => KeptFiles::default(),
            (Tape::Parts(mut parts), end) => {
                parts.end(&end.unwrap_or_default())?;
                KeptFiles { kept: parts.files, failed: 0, stay: parts.stay }
            }
            (Tape::Kept(flight), _) => flight.finish(|line| drop(self.say.send(line))),
        };
        taken.add(waiting);
        let disturbed = begun.and_then(|file| disturbance(&self.path, &file));
        Ok(Wrote { without, files, disturbed })
    }

    /// Opens the file; for several there is none yet, but a folder that takes them.
    fn open(&self) -> io::Result<Option<File>> {
        if matches!(self.kept, Kept::Whole) {
            return open_new(&self.path, self.replaces).map(Some);
        }
        if fs::metadata(&self.path).is_ok_and(|it| !it.is_file()) {
            return Err(io::Error::other(
                "not a regular file, expected one: recordings are kept next to it",
            ));
        }
        let folder = self.path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if self.path.file_stem().is_none() || !fs::metadata(folder)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        access(folder, Access::WRITE_OK | Access::EXEC_OK)?;
        Ok(None)
    }

    fn tape(&self, file: Option<File>, header: Header) -> io::Result<Tape> {
        Ok(match (file, &self.kept) {
            (Some(file), _) => {
                // An earlier recording is replaced only now: a start that fails keeps it.
                if file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                let file = BufWriter::with_capacity(BUFFER, file);
                Tape::Whole(Box::new(RecordingWriter::begin(file, &header)?))
            }
            (None, Kept::Parts(parts)) => Tape::Parts(Box::new(Parts::new(*parts, &self.path, header))),
            (None, kept) => {
                let flight = kept.flight().cloned().unwrap_or_default();
                let flight = Flight::new(&flight, &self.path, header);
                Tape::Kept(Box::new(flight.map_err(io::Error::other)?))
            }
        })
    }

    /// Takes cycles for a file that has failed, so that no patient cycle waits for it.
    fn discard(&self, rows: &mut ring::Receiver<CycleRecord>, mut samples: Option<&mut Samples>) {
        loop {
            let last = rows.is_over();
            for record in rows.by_ref() {
                if let Some(samples) = &mut samples {
                    samples.go_to(record.cycle);
                }
            }
            self.incoming.try_iter().for_each(drop);
            self.marked.try_iter().for_each(drop);
            if last {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Empties the ring into the file until it is not filled any more; counts cycles with dropped
    /// process data.
    fn write_rows(
        &self,
        mut tape: Tape,
        rows: &mut ring::Receiver<CycleRecord>,
        mut samples: Option<&mut Samples>,
        taken: &Taken,
    ) -> io::Result<Written> {
        let (mut without, mut all, mut flushed) = (0, 0, 0);
        loop {
            // Read before emptying: everything stored before it is found below.
            let last = rows.is_over();
            let mut written = 0;
            self.incoming.try_iter().for_each(|cause| tape.trigger(cause));
            let mut marks = 0;
            for mark in self.marked.try_iter().take(AT_ONCE) {
                tape.mark(mark, &self.say)?;
                marks += 1;
            }
            for record in rows.by_ref().take(AT_ONCE) {
                match &mut samples {
                    None => tape.row(&record, std::iter::empty(), &self.say)?,
                    Some(samples) => {
                        without += u64::from(!samples.go_to(record.cycle));
                        tape.row(&record, samples.values(), &self.say)?;
                    }
                }
                written += 1;
            }
            all += written;
            if written == 0 && last && marks < AT_ONCE {
                return Ok(Written { tape, without, waiting: all - flushed });
            }
            // A run that is killed keeps what is older than a second, also where no cycle follows.
            tape.flush_due(&self.say)?;
            if written == 0 && !last {
                std::thread::sleep(LOOK_EVERY);
            }
            let now = tape.flushed_rows(all);
            taken.add(now - std::mem::replace(&mut flushed, now));
        }
    }
}

/// Bytes that show whether a file is a recording.
const HEAD: usize = 64;

/// Opens the file for a recording: a new or empty one, or, if `replaces`, an earlier recording that
/// no run is writing. It keeps its content until the recording begins.
fn open_new(path: &Path, replaces: bool) -> io::Result<File> {
    let is_new = !fs::metadata(path).is_ok_and(|it| it.is_file());
    let file = File::options().read(!is_new).write(true).create(is_new).truncate(false).open(path)?;
    if is_new && !file.metadata()?.is_file() {
        return Ok(file);
    }
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(io::Error::other("another run writes it"));
    }
    let mut begin = [0; HEAD];
    let length = if is_new { 0 } else { (&file).read(&mut begin)? };
    if length > 0 && !is_recording(&begin[..length]) {
        return Err(io::Error::other("there is a file that is no recording"));
    }
    if length > 0 && !replaces {
        return Err(io::Error::other("there is a recording already; --force replaces it"));
    }
    (&file).seek(io::SeekFrom::Start(0))?;
    Ok(file)
}

/// Fate of a file that is written whole, where it is not at its path any more, or lacks its
/// beginning.
fn disturbance(path: &Path, file: &File) -> Option<&'static str> {
    let identity = |it: &fs::Metadata| (it.dev(), it.ino());
    let written = file.metadata().ok().filter(fs::Metadata::is_file)?;
    if !fs::metadata(path).is_ok_and(|there| identity(&there) == identity(&written)) {
        return Some("it was moved, removed or replaced");
    }
    let mut begin = [0; HEAD];
    // A file that is writable but not readable passes.
    let length = File::open(path).and_then(|mut file| file.read(&mut begin)).ok()?;
    (!is_recording(&begin[..length])).then_some("it was cut by another program")
}

/// Text written, but for its end.
struct Written {
    tape: Tape,
    /// Cycles without their process data, which was dropped.
    without: u64,
    /// Cycles that are in the file only once that is finished.
    waiting: u64,
}

/// Destination of rows.
enum Tape {
    Whole(Box<RecordingWriter<BufWriter<File>>>),
    Parts(Box<Parts>),
    Kept(Box<Flight>),
}

impl Tape {
    fn trigger(&mut self, cause: Cause) {
        if let Self::Kept(flight) = self {
            flight.trigger(cause);
        }
    }

    fn row(
        &mut self,
        record: &CycleRecord,
        values: impl Iterator<Item = Option<types::Value>>,
        say: &Sender<String>,
    ) -> io::Result<()> {
        match self {
            Self::Whole(file) => file.row_with(&cycles::row(record), values),
            Self::Parts(parts) => {
                let written = parts.row(record, values);
                parts.take_note().into_iter().for_each(|line| drop(say.send(line)));
                written
            }
            Self::Kept(flight) => {
                flight.row(record, values).into_iter().for_each(|line| drop(say.send(line)));
                Ok(())
            }
        }
    }

    fn mark(&mut self, mark: Mark, say: &Sender<String>) -> io::Result<()> {
        match self {
            Self::Whole(file) => file.mark(&mark),
            Self::Parts(parts) => parts.mark(&mark),
            Self::Kept(flight) => {
                flight.mark(mark).into_iter().for_each(|line| drop(say.send(line)));
                Ok(())
            }
        }
    }

    /// Number of rows that are in the file, of `all`.
    fn flushed_rows(&self, all: u64) -> u64 {
        match self {
            Self::Whole(file) => file.flushed_rows(),
            Self::Parts(parts) => parts.flushed_rows(),
            Self::Kept(_) => all,
        }
    }

    /// Writes what has been in memory for the time of a chunk to the file.
    fn flush_due(&mut self, say: &Sender<String>) -> io::Result<()> {
        match self {
            Self::Whole(file) if file.is_due() => file.flush(),
            Self::Parts(parts) if parts.is_due() => parts.flush(),
            Self::Kept(flight) if flight.is_due() => {
                flight.flush().into_iter().for_each(|line| drop(say.send(line)));
                Ok(())
            }
            Self::Whole(_) | Self::Parts(_) | Self::Kept(_) => Ok(()),
        }
    }
}

/// The conditions by their names in `--json`, the period, and the offset to UTC.
fn facts(conditions: &RunConditions, period_ns: u64, offset_ns: i64) -> Facts {
    let mut facts = Facts::new();
    facts.insert("period_ns".to_owned(), period_ns.into());
    facts.insert(REALTIME_OFFSET.to_owned(), offset_ns.into());
    if let Ok(Value::Object(conditions)) = serde_json::to_value(conditions) {
        facts.extend(conditions);
    }
    facts
}

/// CLOCK_REALTIME less the clock of the releases, ns: CLOCK_MONOTONIC, or a virtual clock.
pub(super) fn realtime_offset_ns(releases: &impl Clock) -> i64 {
    let realtime = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let now = u128::from(releases.now().as_nanos());
    i64::try_from(realtime.saturating_sub(now)).unwrap_or(i64::MAX)
}

/// Faults over the run, and the machine's doings.
fn end(summary: &RunSummary, begin: Option<&Usage>) -> Facts {
    let counts = [
        ("cycles", summary.cycles()),
        ("dropped_records", summary.dropped_records.count),
        ("working_counter_errors", summary.working_counter_errors.count),
        ("lost_frames", summary.lost_frames.count),
        ("overruns", summary.overruns.count),
        ("skipped_releases", summary.skipped_releases.count),
    ];
    let mut facts: Facts =
        counts.map(|(name, count)| (name.to_owned(), count.into())).into_iter().collect();
    let over = begin.and_then(|begin| Some(Usage::now().ok()?.since(begin)));
    if let Some(Ok(usage)) = over.map(serde_json::to_value) {
        facts.insert("machine".to_owned(), usage);
    }
    facts
}

/// Fact known at the end: cycles in the recording with dropped signals and axes.
const WITHOUT: &str = "cycles_without_process_data";

/// Fact known at the end: events and late cycles that were dropped because the queue was full.
const DROPPED_MARKS: &str = "dropped_marks";

/// Cycles of one polling interval at 4 kHz.
const BUFFER: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    // feature(measure): events at the end of a run are in its recording, however many
    #[test]
    fn all_that_happened_at_the_end_is_written() {
        let path = std::env::temp_dir().join(format!("onbeat-marks-{}.mcap", std::process::id()));
        let ((_causes, incoming), (marks, marked)) = (mpsc::channel(), mpsc::channel());
        let (say, _said) = mpsc::channel();
        let (tell, _opened) = mpsc::sync_channel(1);
        let ((top, begin), (end, bottom)) = (mpsc::channel(), mpsc::channel());
        let (cycles, rows) = ring::bounded(1);
        let header = Header { what: "cycle".to_owned(), columns: Vec::new(), facts: Facts::new() };
        top.send(Top { header, samples: None }).unwrap();
        let most = 3 * AT_ONCE as u64 + 7;
        for cycle in 0..most {
            let (severity, sentence) = ("ok".to_owned(), "as it should be".to_owned());
            marks.send(Mark::Event { cycle, at_ns: 0, severity, sentence }).unwrap();
        }
        end.send(Facts::new()).unwrap();
        drop((cycles, end));
        let file =
            Writing { path: path.clone(), replaces: false, kept: Kept::Whole, incoming, marked, say };
        assert!(file.write(&tell, &begin, rows, &bottom, &Taken::default()).is_ok());
        let recording = record::Recording::read(&fs::read(&path).unwrap()[..]).unwrap();
        fs::remove_file(&path).unwrap();
        let as_it_should = recording.marks.iter().filter(|mark| mark.sentence() == "as it should be");
        assert_eq!(as_it_should.count() as u64, most);
    }

    // feature(measure): a flight recording is in its file after a second, also where no cycle follows
    #[test]
    fn a_flight_recording_without_further_cycles_is_in_its_file() {
        let folder = std::env::temp_dir().join(format!("onbeat-idle-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let ((causes, incoming), (_marks, marked)) = (mpsc::channel(), mpsc::channel());
        let (say, _said) = mpsc::channel();
        let (tell, _opened) = mpsc::sync_channel(1);
        let ((top, begin), (end, bottom)) = (mpsc::channel(), mpsc::channel());
        let (mut cycles, rows) = ring::bounded(1);
        let columns = cycles::COLUMNS.map(str::to_owned).to_vec();
        let header = Header { what: "cycle".to_owned(), columns, facts: Facts::new() };
        top.send(Top { header, samples: None }).unwrap();
        causes.send(Cause { cycle: 0, kind: "fault", sentence: "a fault".to_owned() }).unwrap();
        let kept = Kept::Around(FlightRecorder::default());
        let file = Writing { path: folder.join("arm.mcap"), replaces: false, kept, incoming, marked, say };
        let writer =
            std::thread::spawn(move || file.write(&tell, &begin, rows, &bottom, &Taken::default()));
        cycles.send(CycleRecord::begin(0, 0, 0));
        let rows = || {
            let path = fs::read_dir(&folder).ok()?.next()?.ok()?.path();
            Some(record::Recording::read(&fs::read(path).ok()?[..]).ok()?.len())
        };
        let most = std::time::Instant::now() + Duration::from_secs(30);
        while rows() != Some(1) {
            assert!(std::time::Instant::now() < most, "{:?} rows", rows());
            std::thread::sleep(LOOK_EVERY);
        }
        drop((cycles, end));
        assert_eq!(writer.join().unwrap().unwrap().files.kept, 1);
        fs::remove_dir_all(folder).unwrap();
    }

    // feature(measure): `--force` replaces recordings of Onbeat only, once their successor begins
    #[test]
    fn force_replaces_own_recordings_and_only_at_the_begin() {
        let path = std::env::temp_dir().join(format!("onbeat-force-{}.mcap", std::process::id()));
        let header = Header { what: String::new(), columns: Vec::new(), facts: Facts::new() };
        let mut own = Vec::new();
        RecordingWriter::begin(&mut own, &header).unwrap().finish(&Facts::new()).unwrap();
        fs::write(&path, &own).unwrap();
        drop(open_new(&path, true).unwrap());
        assert_eq!(fs::read(&path).unwrap(), own, "a run that does not begin keeps it");
        let place = own.windows(7).position(|it| it == b"onbeat ").unwrap();
        let mut other = own;
        other[place..place + 7].copy_from_slice(b"rosbag ");
        fs::write(&path, &other).unwrap();
        assert!(open_new(&path, true).is_err());
        assert_eq!(fs::read(&path).unwrap(), other);
        fs::remove_file(&path).unwrap();
    }

    // feature(measure): recordings of `--time fast` have the UTC of their virtual clock
    #[test]
    fn the_offset_to_utc_is_of_the_clock_of_the_releases() {
        let clock = rt::clock::VirtualClock::default();
        let utc = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let found = i128::from(realtime_offset_ns(&clock)) + i128::from(clock.now().as_nanos());
        assert!(found >= i128::from(utc) * 1_000_000_000, "{found}");
    }

    // feature(measure): a recording that others move, remove, replace or cut while it is written ends the run with 1
    #[test]
    fn file_changed_by_others_is_reported() {
        let folder = std::env::temp_dir().join(format!("onbeat-disturbed-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("run.mcap");
        let begin = || {
            let mut file = open_new(&path, true).unwrap();
            let header = Header { what: String::new(), columns: Vec::new(), facts: Facts::new() };
            RecordingWriter::begin(&mut file, &header).unwrap().flush().unwrap();
            file
        };
        let gone = Some("it was moved, removed or replaced");
        assert_eq!(disturbance(&path, &begin()), None);
        let file = begin();
        fs::remove_file(&path).unwrap();
        assert_eq!(disturbance(&path, &file), gone);
        fs::write(&path, "another").unwrap();
        assert_eq!(disturbance(&path, &file), gone);
        fs::remove_file(&path).unwrap();
        let file = begin();
        file.set_len(0).unwrap();
        assert_eq!(disturbance(&path, &file), Some("it was cut by another program"));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(disturbance(Path::new("/dev/null"), &File::open("/dev/null").unwrap()), None);
    }
}
