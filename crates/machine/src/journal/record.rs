//! The file of a journal: a header, a line for each change, and a lock as long as its process lives.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::change::{Change, Failure};
use crate::task::Task;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// What the changes are for.
    pub(super) what: String,
    /// Whose they are.
    pub(super) pid: u32,
    /// They outlive the process.
    pub(super) persistent: bool,
    /// The start of the machine they were made in: with the next one they are gone.
    pub(super) boot: String,
}

/// A journal's file, open and locked.
#[derive(Debug)]
pub(super) struct Record {
    file: File,
    path: PathBuf,
    header: Header,
    /// Where the last line begins.
    last: u64,
}

impl Record {
    /// A new file, locked before anybody can see it.
    pub(super) fn create(directory: &Path, what: &str, persistent: bool) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only uniqueness counts.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let started = Task::read(pid as i32).map_or(0, |task| task.started);
        let folder = |error: io::Error| place(directory, &error);
        DirBuilder::new().recursive(true).mode(0o755).create(directory).map_err(folder)?;
        let name = format!("{pid}-{started}-{number}");
        let (hidden, path) =
            (directory.join(format!(".{name}")), directory.join(format!("{name}.{EXTENSION}")));
        let mut open = OpenOptions::new();
        let file = open.read(true).write(true).create(true).truncate(true).mode(0o600).open(&hidden);
        let mut file = file.map_err(folder)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let header = Header { what: what.to_owned(), pid, persistent, boot: boot() };
        let line = line(&header)?;
        file.write_all(&line)?;
        file.sync_data()?;
        fs::rename(&hidden, &path)?;
        Ok(Self { file, path, header, last: line.len() as u64 })
    }

    /// An existing file whose process is dead, or that no process holds; `None` if one does.
    pub(super) fn take_over(path: &Path) -> io::Result<Option<(Self, Vec<Change>)>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        // Somebody else may have undone and removed it meanwhile.
        if file.metadata()?.nlink() == 0 {
            return Ok(None);
        }
        let (header, changes) = read(&file, path)?;
        Ok(Some((Self { file, path: path.to_owned(), header, last: 0 }, changes)))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// Adds a change, and returns when it is in the file.
    pub(super) fn append(&mut self, change: &Change) -> io::Result<()> {
        self.last = self.file.seek(SeekFrom::End(0))?;
        self.file.write_all(&line(change)?)?;
        self.file.sync_data()
    }

    /// Takes the last change away again.
    pub(super) fn forget_last(&mut self) -> io::Result<()> {
        self.file.set_len(self.last)
    }

    /// Undoes `changes`, the last one first. The file is removed, or holds what could not be undone.
    pub(super) fn undo(&mut self, changes: &[Change]) -> Vec<Failure> {
        let mut failures = Vec::new();
        let mut left = Vec::new();
        for change in changes.iter().rev() {
            if let Err(failure) = change.undo(changes) {
                failures.push(failure);
                left.push(change.clone());
            }
        }
        left.reverse();
        if failures.is_empty() {
            self.remove();
        } else if let Err(error) = self.keep_only(&left) {
            failures.push(Failure { what: self.path.display().to_string(), why: error.to_string() });
        }
        failures
    }

    pub(super) fn remove(&self) {
        // Already gone is as good.
        let _ = fs::remove_file(&self.path);
    }

    fn keep_only(&mut self, changes: &[Change]) -> io::Result<()> {
        let mut text = line(&self.header)?;
        for change in changes {
            text.extend(line(change)?);
        }
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&text)?;
        self.file.sync_data()
    }
}

/// Header and changes of a journal, of a living process or a dead one. A last line cut short belongs to a change that
/// was not made.
pub(super) fn read(mut file: &File, path: &Path) -> io::Result<(Header, Vec<Change>)> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    let wrong = |number: usize, error: serde_json::Error| {
        let text = format!("{}: line {number} is no line of a journal ({error})", path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    };
    let mut lines = text.split_inclusive('\n').enumerate();
    let header = lines.next().map_or("", |(_, line)| line);
    let header = serde_json::from_str(header).map_err(|error| wrong(1, error))?;
    let whole = lines.filter(|(_, line)| line.ends_with('\n'));
    let parse = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| wrong(number + 1, error))
    };
    Ok((header, whole.map(parse).collect::<io::Result<_>>()?))
}

/// Which start of the machine this is.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// What the names of journals end with.
pub(super) const EXTENSION: &str = "journal";

fn line<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

fn place(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
