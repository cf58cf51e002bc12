//! Every measured cycle in a file, or only the cycles around a cause, written by a separate thread:
//! neither the cycle nor its watch ever waits for a disk.

mod asked;
mod process_data;

use std::fs::{self, File};
use std::io;
use std::path::{Display, Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use control::bus::{PartNames, sentence};
use control::observer::CycleEvent;
use control::sampling::Samples;
use ipc::bus::Severity;
use ipc::ring;
use machine::usage::Usage;
use record::recorder::{Cause, CycleWriter, DROPPED_MARKS, KeptFiles, Trigger};
use record::recording::{Facts, Header, REALTIME_OFFSET};
use record::{CycleRecord, Mark, RunConditions, RunSummary, cycles};
use rt::clock::Clock;
use rt::output::{OutputThread, Taken, Unfinished};
use rustix::fs::{Access, access};
use serde_json::Value;
use types::late::LateCycle;

use asked::{disturbance, open_new};
use process_data::ProcessData;

pub(super) use asked::{Ask, NewFile};
pub(crate) use asked::{Kept, RecordingSettings};
pub use process_data::RecordedSignals;

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

    /// Has these late cycles written.
    pub(super) fn late(&mut self, explained: &[LateCycle]) {
        for late in explained {
            let &LateCycle { cycle, release_ns: at_ns, late_ns, .. } = late;
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
        pass_on(&self.said, reporter);
    }

    /// Writes the final facts, passes on the writer's last sentences, and returns the result.
    pub(super) fn finish(self, summary: &RunSummary, reporter: &mut dyn Reporter) -> Result<String, Error> {
        let mut end = end(summary, self.begin.as_ref());
        if self.dropped_marks > 0 {
            end.insert(DROPPED_MARKS.to_owned(), self.dropped_marks.into());
        }
        let _ = self.end.send(end);
        // The writer ends when there are no more to come.
        drop((self.cycles, self.end));
        let outcome = self.writer.finish(LAST_TIMEOUT);
        pass_on(&self.said, reporter);
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

fn pass_on(said: &Receiver<String>, reporter: &mut dyn Reporter) {
    said.try_iter().for_each(|line| reporter.notice(&Notice::Recording(line)));
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
            .writer(file, header)
            .and_then(|writer| self.write_rows(writer, &mut rows, samples.as_mut(), taken));
        if let Err(error) = &written {
            self.say(format!("{}: {error}; cycles are not recorded any more", self.path.display()));
            self.discard(&mut rows, samples.as_mut());
        }
        let end = bottom.recv();
        let Written { writer, without, waiting } = written?;
        let end = end.ok().map(|mut end: Facts| {
            if samples.is_some() && matches!(self.kept, Kept::Whole) {
                end.insert(WITHOUT.to_owned(), without.into());
            }
            end
        });
        let files = writer.finish(end.as_ref(), &mut |line| self.say(line))?;
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

    /// An earlier recording is replaced only now: a start that fails keeps it.
    fn writer(&self, file: Option<File>, header: Header) -> io::Result<CycleWriter> {
        match (file, &self.kept) {
            (Some(file), _) => CycleWriter::whole(file, &header),
            (None, Kept::Parts(parts)) => Ok(CycleWriter::parts(*parts, &self.path, header)),
            (None, kept) => {
                let flight = kept.flight().cloned().unwrap_or_default();
                CycleWriter::around(&flight, &self.path, header).map_err(io::Error::other)
            }
        }
    }

    /// Has a sentence reported, if the run is not gone.
    fn say(&self, line: String) {
        let _ = self.say.send(line);
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
        mut writer: CycleWriter,
        rows: &mut ring::Receiver<CycleRecord>,
        mut samples: Option<&mut Samples>,
        taken: &Taken,
    ) -> io::Result<Written> {
        let (mut without, mut all, mut flushed) = (0, 0, 0);
        let say = &mut |line| self.say(line);
        loop {
            // Read before emptying: everything stored before it is found below.
            let last = rows.is_over();
            let mut written = 0;
            self.incoming.try_iter().for_each(|cause| writer.trigger(cause));
            let mut marks = 0;
            for mark in self.marked.try_iter().take(AT_ONCE) {
                writer.mark(mark, say)?;
                marks += 1;
            }
            for record in rows.by_ref().take(AT_ONCE) {
                match &mut samples {
                    None => writer.row(&record, std::iter::empty(), say)?,
                    Some(samples) => {
                        without += u64::from(!samples.go_to(record.cycle));
                        writer.row(&record, samples.values(), say)?;
                    }
                }
                written += 1;
            }
            all += written;
            if written == 0 && last && marks < AT_ONCE {
                return Ok(Written { writer, without, waiting: all - flushed });
            }
            // A run that is killed keeps what is older than a second, also where no cycle follows.
            writer.flush_due(say)?;
            if written == 0 && !last {
                std::thread::sleep(LOOK_EVERY);
            }
            let now = writer.flushed_rows(all);
            taken.add(now - std::mem::replace(&mut flushed, now));
        }
    }
}

/// Text written, but for its end.
struct Written {
    writer: CycleWriter,
    /// Cycles without their process data, which was dropped.
    without: u64,
    /// Cycles that are in the file only once that is finished.
    waiting: u64,
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
        let kept = Kept::Around(record::recorder::FlightRecorder::default());
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

    // feature(measure): recordings of `--time fast` have the UTC of their virtual clock
    #[test]
    fn the_offset_to_utc_is_of_the_clock_of_the_releases() {
        let clock = rt::clock::VirtualClock::default();
        let utc = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let found = i128::from(realtime_offset_ns(&clock)) + i128::from(clock.now().as_nanos());
        assert!(found >= i128::from(utc) * 1_000_000_000, "{found}");
    }
}
