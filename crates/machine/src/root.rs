//! Files below a root folder, read without trust.
//!
//! `/proc` and `/sys` differ from kernel to kernel, and a test has a folder of its own in their place. So
//! everything is read below a [`Root`], at most a bounded part of a file, and what is not there, not readable or not
//! text is no error: it is unknown.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The folder under which the machine's files are looked for: `/`, or a test's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The machine we run on.
    #[must_use]
    pub fn machine() -> Self {
        Self(PathBuf::from("/"))
    }

    /// Files below `folder` instead.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Whether this is the running machine itself, so that system calls speak of the same machine as the files.
    #[must_use]
    pub fn is_machine(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where `path` (relative, or absolute on the machine) lies.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether something is there.
    #[must_use]
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// The first bytes of a file, [`LIMIT`] at most; `None` if it cannot be read.
    #[must_use]
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path.as_ref())?.take(LIMIT).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// A file's text without the space around it, what is no UTF-8 replaced; `None` if it cannot be read or is
    /// empty.
    #[must_use]
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = self.bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// A file that holds one number.
    #[must_use]
    pub fn number(&self, path: impl AsRef<Path>) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// A file in which the kernel marks the chosen word, as `always [madvise] never`.
    #[must_use]
    pub fn chosen(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let (_, rest) = text.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    }

    /// The names in a folder, sorted; empty if there is none.
    #[must_use]
    pub fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The last part of what a link points to, as the driver of a device.
    #[must_use]
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Opens a file without waiting: a pipe in its place must not hold us.
    fn open(&self, path: &Path) -> Option<File> {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(self.path(path)).ok()
    }
}

/// More of a file is never read, in bytes. The longest that matters is a kernel configuration.
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
    fn the_chosen_word_stands_in_brackets() {
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
