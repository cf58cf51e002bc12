//! Requested recordings of a run, and the file of one before its first cycle and after its last.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::Duration;

use control::cycle::Cycle;
use ipc::ring::{self, bounded};
use onbeat_ethercat_linux::link::Link;
use record::recorder::{Cause, FlightRecorder, RecordingParts, Trigger};
use record::recording::{Facts, HEAD, check_replaceable, is_recording};
use record::{CycleRecord, Mark};
use robot::RobotConfig;
use rt::clock::Clock;
use rt::output::{OutputThread, Taken};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use types::Signal;

use super::process_data::{Chosen, ProcessData, RecordedSignals};
use super::{Top, Writing, Wrote};
use crate::error::RecordingError;
use crate::{Error, Notice, Reporter};

/// Requested recordings of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordingSettings {
    pub(crate) path: Option<PathBuf>,
    pub(crate) replaces: bool,
    pub(crate) signals: RecordedSignals,
    pub(crate) kept: Kept,
}

/// Cycles that are kept.
#[derive(Clone, Debug, Default)]
pub(crate) enum Kept {
    /// Every cycle in one file.
    #[default]
    Whole,
    /// Every cycle, in files of bounded size.
    Parts(RecordingParts),
    /// The cycles around a cause.
    Around(FlightRecorder),
}

impl Kept {
    /// The flight recorder, if it is one.
    pub(super) fn flight(&self) -> Option<&FlightRecorder> {
        match self {
            Self::Around(flight) => Some(flight),
            Self::Whole | Self::Parts(_) => None,
        }
    }
}

/// A file to record into, made before the bus is touched: a wrong path costs nothing then.
pub(in crate::run) struct NewFile {
    pub(super) path: PathBuf,
    pub(super) kept: Kept,
    signals: RecordedSignals,
    chosen: Option<Chosen>,
    /// Signals and axes of the recording, if it is to have any.
    pub(super) process_data: Option<ProcessData>,
    pub(super) top: Sender<Top>,
    pub(super) causes: Sender<Cause>,
    pub(super) marks: SyncSender<Mark>,
    pub(super) cycles: ring::Sender<CycleRecord>,
    pub(super) end: Sender<Facts>,
    pub(super) said: Receiver<String>,
    pub(super) writer: OutputThread<io::Result<Wrote>>,
}

impl RecordingSettings {
    /// Makes the file, or the folder for files of a flight recorder; nothing unless a recording is
    /// requested.
    pub(in crate::run) fn create(&self, reporter: &mut dyn Reporter) -> Result<Option<NewFile>, Error> {
        let Self { path: Some(path), replaces, signals, kept } = self.clone() else { return Ok(None) };
        let failed = |source| Error::Recording { path: path.clone(), source };
        let at = |error| failed(RecordingError::File(error));
        let (tell, opened) = mpsc::sync_channel(1);
        let (top, begin) = mpsc::channel();
        let (causes, incoming) = mpsc::channel();
        let (marks, marked) = mpsc::sync_channel(MARKS);
        let (cycles, rows) = bounded(ROOM);
        let (end, bottom) = mpsc::channel();
        let (say, said) = mpsc::channel();
        let file = Writing { path: path.clone(), replaces, kept: kept.clone(), incoming, marked, say };
        let work = move |taken: &Taken| file.write(&tell, &begin, rows, &bottom, taken);
        let writer = OutputThread::start("record", work).map_err(at)?;
        match opened.recv_timeout(OPEN_TIMEOUT) {
            Ok(outcome) => outcome.map_err(at)?,
            Err(RecvTimeoutError::Timeout) => {
                let told =
                    format!("{}: it does not open yet; the run continues without it", path.display());
                reporter.notice(&Notice::Recording(told));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(failed(RecordingError::Panicked)),
        }
        let (chosen, process_data) = (None, None);
        Ok(Some(NewFile {
            path,
            kept,
            signals,
            chosen,
            process_data,
            top,
            causes,
            marks,
            cycles,
            end,
            said,
            writer,
        }))
    }
}

impl NewFile {
    /// Requests of clients for a recording, if they may have one kept.
    pub(in crate::run) fn ask(&self) -> Option<Ask> {
        let asked = self.kept.flight()?.triggers.contains(&Trigger::Command);
        asked.then(|| Ask(self.causes.clone()))
    }

    /// Chooses among the signals of the bus, in PreOp.
    ///
    /// # Errors
    /// A flight recorder's threshold of a value that is not recorded.
    pub(in crate::run) fn choose(&mut self, robot: &RobotConfig, signals: &[Signal]) -> Result<(), Error> {
        self.chosen = Chosen::of(self.signals, robot, signals);
        let Some(flight) = self.kept.flight() else { return Ok(()) };
        let columns = self.chosen.as_ref().map(Chosen::columns).unwrap_or_default();
        flight.check(columns).map_err(|unknown| {
            let source = RecordingError::Trigger(unknown.to_string());
            Error::Recording { path: self.path.clone(), source }
        })
    }

    /// Makes the cycle hand over the chosen signals.
    pub(in crate::run) fn sample<L: Link, C: Clock>(&mut self, cycle: &mut Cycle<L, C>) {
        self.process_data = self.chosen.take().map(|chosen| chosen.sample(cycle));
    }
}

/// Asks a flight recorder to keep a recording.
pub(in crate::run) struct Ask(Sender<Cause>);

impl Ask {
    /// For this reason.
    pub(in crate::run) fn keep(&self, words: &str) {
        // They come from outside, and go to a terminal or a journal.
        let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
        let sentence = words.chars().map(printable).take(LONGEST_WORDS).collect();
        // The recorder is gone with its run.
        let _ = self.0.send(Cause { cycle: 0, kind: "command", sentence });
    }
}

/// Opens the file for a recording: a new or empty one, or, if `replaces`, an earlier recording that
/// no run is writing. It keeps its content until the recording begins.
pub(super) fn open_new(path: &Path, replaces: bool) -> io::Result<File> {
    let is_new = !fs::metadata(path).is_ok_and(|it| it.is_file());
    let file = File::options().read(!is_new).write(true).create(is_new).truncate(false).open(path)?;
    if is_new && !file.metadata()?.is_file() {
        return Ok(file);
    }
    // Not every file system has locks.
    if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(io::Error::other("another run writes it"));
    }
    if !is_new && check_replaceable(&file)? && !replaces {
        return Err(io::Error::other("there is a recording already; --force replaces it"));
    }
    Ok(file)
}

/// Fate of a file that is written whole, where it is not at its path any more, or lacks its
/// beginning.
pub(super) fn disturbance(path: &Path, file: &File) -> Option<&'static str> {
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

/// Time a file may take to open: a wrong path is reported before the bus is started. A file that
/// takes longer, such as a FIFO without a reader, opens meanwhile.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// Cycles that may wait for the file: half a minute at 1 kHz.
const ROOM: usize = 1 << 15;

/// Marks that may wait for the file.
const MARKS: usize = 1 << 12;

/// Letters of a reason that is given from outside.
const LONGEST_WORDS: usize = 200;

#[cfg(test)]
mod tests {
    use record::RecordingWriter;
    use record::recording::Header;

    use super::*;

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
