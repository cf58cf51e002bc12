//! `run --events`: a file of events, a JSON object a line, of bounded size. A separate thread
//! writes.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};

use rt::output::{OutputThread, Taken, Unfinished};

use crate::failure::Failure;
use crate::output::LAST_TIMEOUT;

/// Lines that may wait for the file.
const ROOM: usize = 4096;

/// Size at which a file is put aside and the next one begun, bytes.
const LARGEST: u64 = 16 << 20;

/// Files put aside: `FILE.1`, the newest, to `FILE.4`.
const KEPT: u32 = 4;

/// A file of events.
pub(super) struct EventFile {
    path: PathBuf,
    lines: SyncSender<String>,
    thread: OutputThread<io::Result<()>>,
    dropped: AtomicU64,
}

impl EventFile {
    /// Opens the file behind what is in it.
    ///
    /// # Errors
    /// A file that does not open.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::new(format!(
                "--events {}: {error}; expected a file that can be written",
                path.display()
            ))
        };
        if fs::metadata(path).is_ok_and(|it| !it.is_file()) {
            return Err(failed(io::Error::other("not a file")));
        }
        let (lines, given) = mpsc::sync_channel(ROOM);
        let mut written = Written::open(path, LARGEST).map_err(failed)?;
        let thread =
            OutputThread::start("events", move |taken| written.write_all(&given, taken)).map_err(failed)?;
        Ok(Self { path: path.to_owned(), lines, thread, dropped: AtomicU64::new(0) })
    }

    /// Writes a line. Never waits: one that finds no room is dropped and counted.
    pub(super) fn write(&self, line: String) {
        if self.lines.try_send(line).is_err() {
            // Relaxed: a count, nothing hangs on it.
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Lines that are not in it.
    pub(super) fn finish(self) -> Result<(), Failure> {
        drop(self.lines);
        let dropped = self.dropped.into_inner();
        let why = match self.thread.finish(LAST_TIMEOUT) {
            Ok(Ok(())) if dropped == 0 => return Ok(()),
            Ok(Ok(())) => "the disk was too slow".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(Unfinished::Hangs) => "it takes nothing".to_owned(),
            Err(Unfinished::Panicked) => "its thread panicked".to_owned(),
        };
        let more =
            if dropped == 0 { String::new() } else { format!(" ({dropped} lost: the buffer was full)") };
        Err(Failure::new(format!(
            "--events {}: {why}; events are missing in it{more}",
            self.path.display()
        )))
    }
}

/// The file itself.
struct Written {
    path: PathBuf,
    file: File,
    size: u64,
    largest: u64,
}

impl Written {
    fn open(path: &Path, largest: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let size = file.metadata()?.len();
        if size > 0 {
            let mut ends = [0; 2];
            file.read_exact_at(&mut ends[..1], 0)?;
            file.read_exact_at(&mut ends[1..], size - 1)?;
            if ends[0] != b'{' {
                return Err(io::Error::other("there is a file that is no event file"));
            }
            // A run that was killed may have left half a line.
            if ends[1] != b'\n' {
                file.write_all(b"\n")?;
            }
        }
        Ok(Self { path: path.to_owned(), file, size, largest })
    }

    fn write_all(&mut self, lines: &Receiver<String>, taken: &Taken) -> io::Result<()> {
        for line in lines {
            self.write(line + "\n")?;
            taken.add(1);
        }
        if self.file.metadata()?.nlink() == 0 {
            return Err(io::Error::other("it was removed while it was written"));
        }
        Ok(())
    }

    fn write(&mut self, line: String) -> io::Result<()> {
        let length = line.len() as u64;
        if self.size > 0 && self.size + length > self.largest {
            self.put_aside()?;
        }
        self.file.write_all(line.as_bytes())?;
        self.size += length;
        Ok(())
    }

    /// Begins the next file.
    fn put_aside(&mut self) -> io::Result<()> {
        for number in (1..KEPT).rev() {
            // One that is not there yet.
            let _ = fs::rename(self.numbered(number), self.numbered(number + 1));
        }
        fs::rename(&self.path, self.numbered(1))?;
        *self = Self::open(&self.path, self.largest)?;
        Ok(())
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(format!(".{number}"));
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_put_aside_and_the_oldest_goes() {
        let folder = std::env::temp_dir().join(format!("onbeat-event-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("events.jsonl");
        let mut written = Written::open(&path, 6).unwrap();
        for number in 0..7 {
            written.write(format!("{{{number}}}\n")).unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        assert_eq!(read("events.jsonl").as_deref(), Some("{6}\n"));
        assert_eq!(read("events.jsonl.1").as_deref(), Some("{5}\n"));
        assert_eq!(read("events.jsonl.4").as_deref(), Some("{2}\n"));
        assert_eq!(read("events.jsonl.5"), None);
        let mut written = Written::open(&path, 100).unwrap();
        written.write("{7}\n".to_owned()).unwrap();
        assert_eq!(read("events.jsonl").as_deref(), Some("{6}\n{7}\n"), "it goes on behind what is there");
        fs::remove_dir_all(&folder).unwrap();
        let (_, none) = mpsc::sync_channel(1);
        assert!(written.write_all(&none, &Taken::default()).is_err(), "what is in it is lost");
    }
}
