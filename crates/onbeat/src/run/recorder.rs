//! Every measured cycle in a file, written by a thread of its own: neither the cycle nor its watch ever waits for a disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::Duration;

use control::output::{OutputThread, Taken, Unfinished};
use control::sampling::Samples;
use ipc::ring::{self, bounded};
use machine::usage::Usage;
use record::recording::{Facts, Header, RecordingWriter};
use record::{CycleRecord, RunConditions, RunSummary, cycles};
use serde_json::Value;

use super::process_data::ProcessData;
use crate::error::{Incomplete, RecordingError};
use crate::{Error, Notice, Reporter};

/// Time the file may take nothing at the end of a run before it is given up.
const LAST_PATIENCE: Duration = Duration::from_secs(3);

/// Time a file may take to open: a wrong path is told before the bus is touched. One that takes longer, as a FIFO without
/// a reader, opens meanwhile.
const OPEN_PATIENCE: Duration = Duration::from_secs(1);

/// Cycles that may wait for the file: half a minute at 1 kHz.
const ROOM: usize = 1 << 15;

/// Interval at which the writer looks for new ones.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Cycles between two looks at how the file does.
const AT_ONCE: usize = 256;

/// A file to record into, made before the bus is touched: a wrong path costs nothing then.
pub(super) struct NewFile {
    path: PathBuf,
    top: Sender<Top>,
    cycles: ring::Sender<CycleRecord>,
    end: Sender<Facts>,
    said: Receiver<String>,
    writer: OutputThread<io::Result<u64>>,
}

/// Facts known once the bus is in PreOp.
struct Top {
    header: Header,
    /// Signals and axes, if they are recorded.
    samples: Option<Samples>,
}

/// Makes the file.
pub(super) fn create(path: &Path, reporter: &mut dyn Reporter) -> Result<NewFile, Error> {
    let failed = |source| Error::Recording { path: path.to_owned(), source };
    let at = |error| failed(RecordingError::File(error));
    let (tell, opened) = mpsc::sync_channel(1);
    let (top, begin) = mpsc::channel();
    let (cycles, rows) = bounded(ROOM);
    let (end, bottom) = mpsc::channel();
    let (say, said) = mpsc::channel();
    let file = Writing { path: path.to_owned(), say };
    let work = move |taken: &Taken| file.write(&tell, &begin, rows, &bottom, taken);
    let writer = OutputThread::start("record", work).map_err(at)?;
    match opened.recv_timeout(OPEN_PATIENCE) {
        Ok(outcome) => outcome.map_err(at)?,
        Err(RecvTimeoutError::Timeout) => {
            let told = format!("{}: it does not open yet; the run does not wait for it", path.display());
            reporter.notice(&Notice::Recording(told));
        }
        Err(RecvTimeoutError::Disconnected) => return Err(failed(RecordingError::Panicked)),
    }
    Ok(NewFile { path: path.to_owned(), top, cycles, end, said, writer })
}

/// Hands cycles over as they come.
pub(super) struct Recorder {
    path: PathBuf,
    cycles: ring::Sender<CycleRecord>,
    end: Sender<Facts>,
    said: Receiver<String>,
    writer: OutputThread<io::Result<u64>>,
    measured: u64,
    begin: Option<Usage>,
}

impl Recorder {
    /// Has the top written, with the conditions of the run.
    pub(super) fn begin(
        new: NewFile,
        conditions: &RunConditions,
        period: Duration,
        process_data: Option<ProcessData>,
    ) -> Self {
        let NewFile { path, top, cycles, end, said, writer } = new;
        let period = types::time::nanoseconds(period);
        let mut header = Header {
            what: cycles::WHAT.to_owned(),
            columns: cycles::COLUMNS.map(str::to_owned).to_vec(),
            facts: facts(conditions, period),
        };
        let samples = process_data.map(|ProcessData { samples, columns, signals }| {
            header.columns.extend(columns);
            header.facts.insert("signals".to_owned(), signals);
            samples
        });
        // A writer that is gone has its failure to tell.
        let _ = top.send(Top { header, samples });
        Self { path, cycles, end, said, writer, measured: 0, begin: Usage::now().ok() }
    }

    /// Has one cycle written. Never waits: a cycle that finds no room is missing.
    pub(super) fn record(&mut self, record: &CycleRecord) {
        self.measured += 1;
        self.cycles.send(*record);
    }

    /// Passes on what the writer has said since the last look.
    pub(super) fn look(&self, reporter: &mut dyn Reporter) {
        self.said.try_iter().for_each(|line| reporter.notice(&Notice::Recording(line)));
    }

    /// Has written what is known only at the end, and says what came of it.
    pub(super) fn finish(self, summary: &RunSummary) -> Result<String, Error> {
        let _ = self.end.send(end(summary, self.begin.as_ref()));
        // The writer ends when there are no more to come.
        drop((self.cycles, self.end));
        let outcome = self.writer.finish(LAST_PATIENCE);
        let written = self.writer.taken();
        let missing = self.measured.saturating_sub(written);
        let mut without = 0;
        let source = match outcome {
            Ok(Ok(0)) if missing == 0 => {
                return Ok(format!("{written} cycles recorded in {}", self.path.display()));
            }
            Ok(Ok(dropped)) => {
                without = dropped;
                Incomplete::TooSlow
            }
            Ok(Err(error)) => error.into(),
            Err(Unfinished::Hangs) => Incomplete::Hangs,
            Err(Unfinished::Panicked) => Incomplete::Panicked,
        };
        let source = RecordingError::NotWhole { source, written, without, missing };
        Err(Error::Recording { path: self.path, source })
    }
}

/// The writer's side.
struct Writing {
    path: PathBuf,
    say: Sender<String>,
}

impl Writing {
    /// Opens the file and writes all of it; what it has taken is counted. Returns the cycles whose process data was dropped.
    fn write(
        self,
        opened: &SyncSender<io::Result<()>>,
        top: &Receiver<Top>,
        rows: ring::Receiver<CycleRecord>,
        bottom: &Receiver<Facts>,
        taken: &Taken,
    ) -> io::Result<u64> {
        let file = match File::create(&self.path) {
            Ok(file) => {
                let _ = opened.send(Ok(()));
                BufWriter::with_capacity(BUFFER, file)
            }
            Err(error) => {
                // Who does not wait for it any more learns of it at the end.
                let again = io::Error::new(error.kind(), error.to_string());
                let _ = opened.send(Err(error));
                return Err(again);
            }
        };
        // A run that did not come so far has nothing to write.
        let Ok(Top { header, mut samples }) = top.recv() else { return Ok(0) };
        let written = write_rows(file, &header, rows, samples.as_mut(), taken);
        if let Err(error) = &written {
            let told = format!("{}: {error}; cycles are not recorded any more", self.path.display());
            let _ = self.say.send(told);
        }
        let end = bottom.recv();
        let (file, without) = written?;
        if let Ok(mut end) = end {
            if samples.is_some() {
                end.insert(WITHOUT.to_owned(), without.into());
            }
            file.finish(&end)?;
        }
        Ok(without)
    }
}

/// Empties the ring into the file until nobody fills it any more; counts cycles whose process data was dropped.
fn write_rows<W: Write>(
    file: W,
    header: &Header,
    mut rows: ring::Receiver<CycleRecord>,
    mut samples: Option<&mut Samples>,
    taken: &Taken,
) -> io::Result<(RecordingWriter<W>, u64)> {
    let mut file = RecordingWriter::begin(file, header)?;
    let mut without = 0;
    file.flush()?;
    loop {
        // Asked before emptying: what was stored before it is found below.
        let last = rows.is_over();
        let mut written = 0;
        for record in rows.by_ref().take(AT_ONCE) {
            match &mut samples {
                None => file.row(&cycles::row(&record))?,
                Some(samples) => {
                    without += u64::from(!samples.go_to(record.cycle));
                    file.row_with(&cycles::row(&record), samples.values())?;
                }
            }
            written += 1;
        }
        if written > 0 {
            // A run cut off keeps what was written so far.
            file.flush()?;
            taken.add(written);
        } else if last {
            return Ok((file, without));
        } else {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// The conditions by their names in `--json`, and the period.
fn facts(conditions: &RunConditions, period_ns: u64) -> Facts {
    let mut facts = Facts::new();
    facts.insert("period_ns".to_owned(), period_ns.into());
    if let Ok(Value::Object(conditions)) = serde_json::to_value(conditions) {
        facts.extend(conditions);
    }
    facts
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

/// Fact known at the end: cycles in the recording whose signals and axes were dropped.
const WITHOUT: &str = "cycles_without_process_data";

/// A look's worth of cycles at 4 kHz.
const BUFFER: usize = 64 << 10;
