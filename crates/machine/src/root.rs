//! Untrusted files below a root folder.
//!
//! `/proc` and `/sys` differ between kernels, and tests put a folder of their own in their place.
//! All files are therefore read below a [`Root`], up to a limit, and a file that does not exist, is
//! not readable or is not text is no error: its content is unknown.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Root folder of the machine's files: `/`, or a test's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// Root of the running machine.
    #[must_use]
    pub fn machine() -> Self {
        Self(PathBuf::from("/"))
    }

    /// Root at `folder` instead.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Location of `path` (relative, or absolute on the machine).
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// True if the path exists.
    #[must_use]
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// First bytes of a file, at most [`LIMIT`]; `None` if it cannot be read.
    #[must_use]
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path.as_ref())?.take(LIMIT).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Text of a file, trimmed, with invalid UTF-8 replaced; `None` if it cannot be read or is
    /// empty.
    #[must_use]
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = self.bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Number in a file.
    #[must_use]
    pub fn number(&self, path: impl AsRef<Path>) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// Selected word of a file with choices, such as `always [madvise] never`.
    #[must_use]
    pub fn chosen(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let (_, rest) = text.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    }

    /// Names in a folder, sorted; empty if it does not exist.
    #[must_use]
    pub fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Last part of a link's target, such as the driver of a device.
    #[must_use]
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Opens a file without waiting: a pipe in its place must not block.
    fn open(&self, path: &Path) -> Option<File> {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(self.path(path)).ok()
    }
}

/// Most bytes read of a file. The longest file of interest is a kernel configuration.
pub const LIMIT: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_unknown() {
        let root = Root::at("/nowhere");
        assert_eq!(root.text("proc/version"), None);
        assert_eq!(root.number("/proc/sys/vm/swappiness"), None);
        assert!(root.names("/sys").is_empty());
        assert_eq!(root.link_name("/sys/a"), None);
    }

    #[test]
    fn brackets_mark_the_chosen_word() {
        let folder = std::env::temp_dir().join(format!("onbeat-root-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let root = Root::at(&folder);
        for (text, chosen) in
            [("always [madvise] never", Some("madvise")), ("[x", None), ("]x[", None), ("", None)]
        {
            fs::write(folder.join("file"), text).unwrap();
            assert_eq!(root.chosen("/file").as_deref(), chosen, "{text}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_without_end_is_cut() {
        assert_eq!(Root::machine().bytes("/dev/zero").map(|bytes| bytes.len() as u64), Some(LIMIT));
    }
}
