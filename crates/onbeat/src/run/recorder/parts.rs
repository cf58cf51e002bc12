//! A recording in parts: files of a bounded size, a bounded number of them, so that a run may be
//! recorded for a year.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use record::recording::{Facts, Header};
use record::{CycleRecord, Mark, RecordingWriter, cycles};
use types::Value;

use super::BUFFER;
use super::files::{Names, NotRemoved};

/// Parts of a recording: each a separate file, complete when the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingParts {
    /// Bytes after which the next part begins; [`RecordingParts::LEAST`] at least.
    pub size: u64,
    /// Files kept: beyond them the oldest of this name go.
    pub kept: usize,
}

impl RecordingParts {
    /// Fewest bytes of a part: in fewer there would be more header than rows.
    pub const LEAST: u64 = 1_000_000;
}

/// The parts as they are written.
pub(super) struct Parts {
    header: Header,
    names: Names,
    size: u64,
    /// The current part, once there is something for it.
    now: Option<Part>,
    /// Parts that were begun.
    pub(super) files: u64,
    /// Rows in the parts that are complete.
    rows: u64,
    /// Older parts that were not removed the last time.
    pub(super) stay: u64,
    /// Sentence on the first of them, until it is taken.
    note: Option<String>,
}

struct Part {
    path: PathBuf,
    file: RecordingWriter<BufWriter<File>>,
    rows: u64,
}

impl Parts {
    /// Parts that are named after `path`.
    pub(super) fn new(settings: RecordingParts, path: &Path, header: Header) -> Self {
        let names = Names::new(path, settings.kept);
        let size = settings.size.max(RecordingParts::LEAST);
        Self { header, names, size, now: None, files: 0, rows: 0, stay: 0, note: None }
    }

    pub(super) fn row(
        &mut self,
        record: &CycleRecord,
        values: impl Iterator<Item = Option<Value>>,
    ) -> io::Result<()> {
        if self.now.as_ref().is_some_and(|part| part.file.bytes() >= self.size) {
            self.end(&Facts::new())?;
        }
        let part = self.part()?;
        part.rows += 1;
        part.file.row_with(&cycles::row(record), values)
    }

    pub(super) fn mark(&mut self, mark: &Mark) -> io::Result<()> {
        self.part()?.file.mark(mark)
    }

    /// True if rows or marks have been in memory for the time of a chunk.
    pub(super) fn is_due(&self) -> bool {
        self.now.as_ref().is_some_and(|part| part.file.is_due())
    }

    /// Number of rows that are in a file.
    pub(super) fn flushed_rows(&self) -> u64 {
        self.rows + self.now.as_ref().map_or(0, |part| part.file.flushed_rows())
    }

    /// Writes what is in memory to the file.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.now.as_mut().map_or(Ok(()), |part| part.file.flush())
    }

    /// Ends the part that is written, with these facts of its end.
    pub(super) fn end(&mut self, facts: &Facts) -> io::Result<()> {
        let Some(part) = self.now.take() else { return Ok(()) };
        let mut facts = facts.clone();
        facts.insert("cycles".to_owned(), part.rows.into());
        part.file.finish(&facts)?;
        self.rows += part.rows;
        self.remove_oldest(&part.path);
        Ok(())
    }

    /// Removes the oldest parts; the recording continues if they stay.
    fn remove_oldest(&mut self, newest: &Path) {
        let stay = self.names.remove_oldest(newest).err();
        if let Some(NotRemoved { error, .. }) = stay.as_ref().filter(|_| self.stay == 0) {
            self.note = Some(format!("{}: older parts stay: {error}", newest.display()));
        }
        self.stay = stay.map_or(0, |it| it.files);
    }

    /// Takes a sentence on older parts that stay.
    pub(super) fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }

    fn part(&mut self) -> io::Result<&mut Part> {
        if self.now.is_none() {
            let (path, file) = self.names.create_part()?;
            let file = BufWriter::with_capacity(BUFFER, file);
            self.files += 1;
            let mut header = self.header.clone();
            header.facts.insert("part".to_owned(), self.files.into());
            let file = RecordingWriter::begin(file, &header)?;
            // The part that is begun counts as one of the kept parts.
            self.remove_oldest(&path);
            self.now = Some(Part { path, file, rows: 0 });
        }
        self.now.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // feature(measure): an old part that cannot be removed does not end the recording
    #[test]
    fn a_part_that_stays_does_not_end_the_recording() {
        let folder = std::env::temp_dir().join(format!("onbeat-parts-{}", std::process::id()));
        // Not a file, and so not removed: also by root.
        fs::create_dir_all(folder.join("arm-20261121T074010.123Z-part.mcap")).unwrap();
        let header = Header {
            what: cycles::WHAT.to_owned(),
            columns: cycles::COLUMNS.map(str::to_owned).to_vec(),
            facts: Facts::new(),
        };
        let settings = RecordingParts { size: 0, kept: 1 };
        let mut parts = Parts::new(settings, &folder.join("arm.mcap"), header);
        let mut notes = 0;
        for cycle in 0..8_000 {
            parts.row(&CycleRecord::begin(cycle, cycle, cycle), std::iter::empty()).unwrap();
            notes += usize::from(parts.take_note().is_some());
        }
        parts.end(&Facts::new()).unwrap();
        assert!(parts.files > 1, "{}", parts.files);
        assert_eq!((parts.stay, notes, parts.flushed_rows()), (1, 1, 8_000));
        fs::remove_dir_all(folder).unwrap();
    }
}
