//! File of a journal: a header, a line for each change, and a lock held by its process.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::change::{Change, Failure};
use crate::task::Task;

/// First line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// Purpose of the changes.
    pub(super) what: String,
    /// Id of the process that makes them.
    pub(super) pid: u32,
    /// True if they outlive the process.
    pub(super) persistent: bool,
    /// Boot id of the machine: after the next boot the changes are gone.
    pub(super) boot: String,
}

/// File of a journal, open and locked.
#[derive(Debug)]
pub(super) struct Record {
    file: File,
    path: PathBuf,
    header: Header,
    /// Offset of the last line.
    last: u64,
}

impl Record {
    /// Creates a file, locked before it becomes visible.
    pub(super) fn create(directory: &Path, what: &str, persistent: bool) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only uniqueness counts.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let started = Task::read(pid as i32).map_or(0, |task| task.started);
        let folder = |error: io::Error| place(directory, &error);
        DirBuilder::new().recursive(true).mode(0o755).create(directory).map_err(folder)?;
        let path = directory.join(format!("{pid}-{started}-{number}.{EXTENSION}"));
        let header = Header { what: what.to_owned(), pid, persistent, boot: boot() };
        let line = line(&header)?;
        let file = write_locked(&path, &line)?;
        Ok(Self { file, path, header, last: line.len() as u64 })
    }

    /// Opens and locks the file of a dead process, or one that no process holds; `None` if a
    /// process holds it or it is gone.
    pub(super) fn take_over(path: &Path) -> io::Result<Option<(Self, Vec<Change>)>> {
        let file = match open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        // Another process may have undone and removed it meanwhile.
        if file.metadata().map_err(|error| place(path, &error))?.nlink() == 0 {
            return Ok(None);
        }
        let (header, changes) = read(&file, path)?;
        Ok(Some((Self { file, path: path.to_owned(), header, last: 0 }, changes)))
    }

    /// Undoes a journal of this process, whatever else of the process still uses it.
    pub(super) fn undo_own(path: &Path) -> Vec<Failure> {
        let opened = open(path).and_then(|file| read(&file, path).map(|read| (file, read)));
        let Ok((file, (header, changes))) = opened else { return Vec::new() };
        Self { file, path: path.to_owned(), header, last: 0 }.undo(&changes)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// Appends a change, and returns once it is on the file. A part of a line does not stay there.
    pub(super) fn append(&mut self, change: &Change) -> io::Result<()> {
        self.last = self.file.seek(SeekFrom::End(0))?;
        let written = self.file.write_all(&line(change)?).and_then(|()| self.file.sync_data());
        if written.is_err() {
            let _ = self.forget_last();
        }
        written
    }

    /// Removes the last change.
    pub(super) fn forget_last(&mut self) -> io::Result<()> {
        self.file.set_len(self.last)
    }

    /// Undoes `changes`, the last one first; a failed undo does not block the others. The file is
    /// removed, or keeps the changes that a later try may undo.
    pub(super) fn undo(&mut self, changes: &[Change]) -> Vec<Failure> {
        let mut failures = Vec::new();
        let mut left = Vec::new();
        for change in changes.iter().rev() {
            if let Err(failure) = change.undo(changes) {
                left.extend(failure.kept.then(|| change.clone()));
                failures.push(failure);
            }
        }
        left.reverse();
        if left.is_empty() {
            self.remove();
        } else if let Err(error) = self.keep_only(&left) {
            // The file stays as it was, and all of it is undone once more.
            let (what, why) = (self.path.display().to_string(), error.to_string());
            failures.push(Failure { what, why, kept: true });
        }
        failures
    }

    pub(super) fn remove(&self) {
        // An error means that it is gone already.
        let _ = fs::remove_file(&self.path);
    }

    /// Replaces the file as a whole: a process that is killed meanwhile leaves the old one or the
    /// new one.
    fn keep_only(&mut self, changes: &[Change]) -> io::Result<()> {
        let mut text = line(&self.header)?;
        for change in changes {
            text.extend(line(change)?);
        }
        self.file = write_locked(&self.path, &text)?;
        Ok(())
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // A child that another thread is just starting holds the file, too, until it runs its
        // program.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Writes a file that becomes visible at `path` at once: whole, and locked.
fn write_locked(path: &Path, text: &[u8]) -> io::Result<File> {
    let (Some(directory), Some(stem)) = (path.parent(), path.file_stem()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let hidden = directory.join(format!(".{}", stem.to_string_lossy()));
    let written = write_hidden(&hidden, text).and_then(|file| fs::rename(&hidden, path).map(|()| file));
    written.map_err(|error| {
        let _ = fs::remove_file(&hidden);
        place(directory, &error)
    })
}

fn write_hidden(path: &Path, text: &[u8]) -> io::Result<File> {
    let mut open = OpenOptions::new();
    let mut file = open.read(true).write(true).create(true).truncate(true).mode(0o600).open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(text)?;
    file.sync_data()?;
    Ok(file)
}

/// Opens a journal. Its changes are undone with this user's rights, so only this user may have
/// written it or made its path.
pub(super) fn open(path: &Path) -> io::Result<File> {
    // A pipe does not block, and a symbolic link is not followed.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => not_ours(path, "a symbolic link"),
        Some(libc::EISDIR) => not_ours(path, "a folder"),
        _ => place(path, &error),
    })?;
    let found = file.metadata().map_err(|error| place(path, &error))?;
    if !found.is_file() {
        return Err(not_ours(path, "something else"));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(not_ours(path, &format!("a file of user {}", found.uid())));
    }
    if found.mode() & 0o022 != 0 {
        return Err(not_ours(
            path,
            &format!("a file that other users may write to, mode {:o}", found.mode() & 0o7777),
        ));
    }
    Ok(file)
}

fn not_ours(path: &Path, found: &str) -> io::Error {
    let expected = "expected a file of this user that no other user may write to";
    let text = format!("{}: {expected}, found {found}: look what it is and remove it", path.display());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Reads header and changes of a journal, of a living process or a dead one. A truncated last line
/// belongs to a change that was not made.
pub(super) fn read(mut file: &File, path: &Path) -> io::Result<(Header, Vec<Change>)> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(LONGEST).read_to_end(&mut bytes).map_err(|error| place(path, &error))?;
    let wrong = |number: usize, error: serde_json::Error| {
        let text = format!(
            "{}: line {number} is no line of a journal ({error}): look what it is and remove the file",
            path.display()
        );
        io::Error::new(io::ErrorKind::InvalidData, text)
    };
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n').enumerate();
    let header = lines.next().map_or(&b""[..], |(_, line)| line);
    let header = serde_json::from_slice(header).map_err(|error| wrong(1, error))?;
    let whole = lines.filter(|(_, line)| line.ends_with(b"\n"));
    let parse = |(number, line): (usize, &[u8])| {
        serde_json::from_slice(line).map_err(|error| wrong(number + 1, error))
    };
    Ok((header, whole.map(parse).collect::<io::Result<_>>()?))
}

/// Most bytes read: a line for each thread of a large machine is far less.
const LONGEST: u64 = 64 << 20;

/// Boot id of the machine.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Extension of the journals' names.
pub(super) const EXTENSION: &str = "journal";

fn line<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

fn place(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Journals in a folder. They are undone with root's rights, so no other user may have written to
/// the folder.
pub(super) fn journals(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let user = rustix::process::geteuid();
    let others_write = metadata.mode() & 0o022 != 0;
    if metadata.uid() == 0 && !user.is_root() && !others_write {
        let why = "it is root's, and so is what is to be put back: run this as root, as with sudo";
        let why = format!("{}: {why}", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if metadata.uid() != user.as_raw() || others_write {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{}: found a folder that others own or may write to, expected one of this user's alone: \
                 look what is in it and remove it",
                directory.display()
            ),
        ));
    }
    let entries = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|it| it == EXTENSION)).collect();
    paths.sort();
    Ok(paths)
}
