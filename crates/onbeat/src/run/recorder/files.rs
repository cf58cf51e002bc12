//! Kept recordings: each in a separate file, named by its time and cause, a bounded number of them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Names of the recordings of a flight recorder: `FOLDER/STEM-TIME-CAUSE.EXTENSION`.
pub(super) struct Names {
    folder: PathBuf,
    stem: String,
    extension: String,
    kept: usize,
}

impl Names {
    /// For the requested path, with this many files.
    pub(super) fn new(path: &Path, kept: usize) -> Self {
        let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let extension = path.extension().map(|it| format!(".{}", it.to_string_lossy())).unwrap_or_default();
        Self { folder: folder.to_owned(), stem: text(path.file_stem()), extension, kept: kept.max(1) }
    }

    /// Creates the file of a recording that is begun now for this kind of cause. Names have the
    /// millisecond: a name that is in use is tried again in the next one.
    pub(super) fn create(&self, kind: &str) -> io::Result<(PathBuf, File)> {
        let mut tries = 0;
        loop {
            let path = self.path(kind);
            match File::options().write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < MOST_TRIES => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                opened => return Ok((path, opened?)),
            }
        }
    }

    fn path(&self, kind: &str) -> PathBuf {
        // Without the separators, which not every file system takes.
        let time = machine::conditions::utc().replace(['-', ':'], "");
        self.folder.join(format!("{}-{time}-{}{}", self.stem, kind, self.extension))
    }

    /// Creates the file of a part that is begun now.
    pub(super) fn create_part(&self) -> io::Result<(PathBuf, File)> {
        self.create(PART)
    }

    /// Removes the oldest recordings beyond the limit, after the recording at `newest` is complete:
    /// that one stays in any case. Each is tried, even if another one fails.
    ///
    /// # Errors
    /// Recordings that stay.
    pub(super) fn remove_oldest(&self, newest: &Path) -> Result<(), NotRemoved> {
        let is_other = |path: &PathBuf| path.file_name() != newest.file_name();
        let entries = fs::read_dir(&self.folder).map_err(|error| NotRemoved { files: 1, error })?;
        let mut others: Vec<(SystemTime, PathBuf)> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| self.is_one(name)))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .filter(|(_, path)| is_other(path))
            .collect();
        // As they were written; the clock may have been set.
        others.sort_unstable();
        let too_many = (others.len() + 1).saturating_sub(self.kept);
        let removed = others.iter().take(too_many).map(|(_, path)| fs::remove_file(path));
        let is_there = |error: &io::Error| error.kind() != io::ErrorKind::NotFound;
        let mut errors = removed.filter_map(Result::err).filter(is_there);
        let Some(error) = errors.next() else { return Ok(()) };
        Err(NotRemoved { files: 1 + errors.count() as u64, error })
    }

    /// True if this recorder, or one before it, has named the file so.
    fn is_one(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&self.stem).and_then(|rest| rest.strip_prefix('-'));
        let Some((time, kind)) =
            rest.and_then(|rest| rest.strip_suffix(&self.extension)).and_then(|rest| rest.split_once('-'))
        else {
            return false;
        };
        let pattern = "00000000T000000.000Z";
        let fits = |(found, expected): (char, char)| match expected {
            '0' => found.is_ascii_digit(),
            expected => found == expected,
        };
        time.len() == pattern.len() && time.chars().zip(pattern.chars()).all(fits) && KINDS.contains(&kind)
    }
}

/// Numbers of files at the end of a recorder that writes several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeptFiles {
    /// Recordings that were kept, or parts that were begun.
    pub(super) kept: u64,
    /// Recordings that failed.
    pub(super) failed: u64,
    /// Older recordings that were not removed the last time.
    pub(super) stay: u64,
}

/// Older recordings beyond the limit that stay.
#[derive(Debug)]
pub(super) struct NotRemoved {
    pub(super) files: u64,
    /// Reason of the first one.
    pub(super) error: io::Error,
}

/// Names tried for a file.
const MOST_TRIES: u32 = 1000;

/// Words of causes in names, and that of parts.
pub(super) const KINDS: [&str; 5] = ["fault", "late", "command", "threshold", PART];

const PART: &str = "part";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_and_what_is_not_ours_stays() {
        let folder = std::env::temp_dir().join(format!("onbeat-names-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let others = [
            "arm.mcap",
            "arm-2026.mcap",
            "arm-20251121T074027.123Z-notes.mcap",
            "x-20251121T074027.123Z-late.mcap",
        ];
        // Of a clock that was ahead.
        let old = "arm-20991121T074027.123Z-late.mcap";
        others.iter().chain([&old]).for_each(|name| fs::write(folder.join(name), "").unwrap());
        let names = Names::new(&folder.join("arm.mcap"), 2);
        let create = |kind| {
            std::thread::sleep(Duration::from_millis(20));
            let path = names.path(kind);
            fs::write(&path, "").unwrap();
            names.remove_oldest(&path).unwrap();
            path
        };
        let (first, second, third) = (create("fault"), create("threshold"), create("command"));
        assert!(!folder.join(old).exists() && !first.exists());
        assert!(second.exists() && third.exists());
        assert!(others.iter().all(|name| folder.join(name).exists()));
        let name = third.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("arm-2") && name.ends_with("Z-command.mcap"), "{name}");
        fs::remove_dir_all(folder).unwrap();
    }

    // feature(measure): an old recording that cannot be removed costs no other
    #[test]
    fn recordings_that_stay_are_counted() {
        let folder = std::env::temp_dir().join(format!("onbeat-stay-{}", std::process::id()));
        let names = Names::new(&folder.join("arm.mcap"), 1);
        // Not a file, and so not removed: also by root.
        let old = |second| folder.join(format!("arm-20261121T0740{second}.123Z-late.mcap"));
        [10, 20].iter().for_each(|second| fs::create_dir_all(old(second)).unwrap());
        std::thread::sleep(Duration::from_millis(20));
        fs::write(old(&30), "").unwrap();
        let newest = names.path("fault");
        fs::write(&newest, "").unwrap();
        let stay = names.remove_oldest(&newest).unwrap_err();
        assert_eq!((stay.files, old(&30).exists()), (2, false), "{}", stay.error);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_path_without_folder_or_extension_has_names_too() {
        let names = Names::new(Path::new("arm"), 2);
        assert_eq!(names.folder, Path::new("."));
        assert!(
            names.is_one("arm-20251121T074027.123Z-late")
                && !names.is_one("arm-20251121T074027.123Z-late.mcap")
        );
    }
}
