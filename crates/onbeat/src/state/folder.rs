//! Folder of a robot in the state directory: files that are read and replaced as a whole.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, Stat, flock, fstat, fsync, mkdir, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Largest file that is read or written.
pub(super) const LARGEST: usize = 64 * 1024;

/// Folder of a robot in the state directory, held by this process alone.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    folder: OwnedFd,
}

/// Reason that a kept file cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StateError {
    /// The operating system refuses it.
    #[error(
        "{}: {error}: nothing is kept there, and an axis with position_memory may stay disabled; \
         check its rights and its disk, or choose another --state",
        path.display()
    )]
    System {
        /// Path of the file or folder.
        path: PathBuf,
        /// Its error.
        error: io::Error,
    },
    /// Another thing than expected lies there.
    #[error("{}: {found}, expected {expected}: remove it", path.display())]
    Other {
        /// Path of the file or folder.
        path: PathBuf,
        /// Content that was found.
        found: String,
        /// Content that is expected.
        expected: &'static str,
    },
    /// It belongs to another user.
    #[error(
        "{}: it belongs to user {owner}, expected this user or root as owner: run as that user, or choose \
         another --state",
        path.display()
    )]
    Owner {
        /// Path of the file or folder.
        path: PathBuf,
        /// Number of its owner.
        owner: u32,
    },
    /// Another run keeps the state of the same robot there.
    #[error("{}: another run of this robot uses it: end that run, or choose another --state", path.display())]
    Taken {
        /// Path of the folder.
        path: PathBuf,
    },
}

impl StateError {
    /// Number of the system error; `None` for another reason.
    pub(crate) fn number(&self) -> Option<i32> {
        match self {
            Self::System { error, .. } => error.raw_os_error(),
            _ => None,
        }
    }
}

impl Folder {
    /// Path of the folder of `robot` in the state directory `directory`. Simulated robots have
    /// folders of their own.
    #[must_use]
    pub fn path_of(directory: &Path, robot: &str, is_simulated: bool) -> PathBuf {
        let kind = if is_simulated { "simulated" } else { "robots" };
        directory.join(kind).join(file_name(robot))
    }

    /// Opens the folder of `robot` in the state directory `directory`, makes it where it is
    /// missing, and holds it until it is dropped.
    ///
    /// # Errors
    /// A folder that cannot be made, belongs to another user, or is in use.
    pub fn open(directory: &Path, robot: &str, is_simulated: bool) -> Result<Self, StateError> {
        let path = Self::path_of(directory, robot, is_simulated);
        let system = |error: Errno| StateError::System { path: path.clone(), error: error.into() };
        make(&path)?;
        let folder = open_folder(&path)?;
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path, folder }),
            Err(Errno::WOULDBLOCK) => Err(StateError::Taken { path }),
            Err(error) => Err(system(error)),
        }
    }

    /// Opens it read-only, even if another process holds it; `None` if there is none.
    ///
    /// # Errors
    /// A folder that belongs to another user than root or this one, or cannot be read.
    pub fn look(directory: &Path, robot: &str, is_simulated: bool) -> Result<Option<Self>, StateError> {
        let path = Self::path_of(directory, robot, is_simulated);
        match open_folder(&path) {
            Ok(folder) => Ok(Some(Self { path, folder })),
            Err(StateError::System { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Text of a file; `None` where there is none.
    ///
    /// # Errors
    /// Another thing than a file of this user or root, at most 64 KiB of UTF-8.
    pub fn read_text(&self, name: &str) -> Result<Option<String>, StateError> {
        let path = self.path.join(name);
        let system = |error: io::Error| StateError::System { path: path.clone(), error };
        // A link is not followed, and a named pipe is not waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(other(&path, "a symbolic link".to_owned(), A_FILE)),
            Err(error) => return Err(system(error.into())),
        };
        let stat = fstat(&file).map_err(|error| system(error.into()))?;
        if !is_file(&stat) {
            return Err(other(&path, "no regular file".to_owned(), A_FILE));
        }
        check_owner(&path, &stat)?;
        let mut bytes = Vec::new();
        let mut limited = File::from(file).take(LARGEST as u64 + 1);
        limited.read_to_end(&mut bytes).map_err(system)?;
        if bytes.len() > LARGEST {
            return Err(other(&path, format!("more than {LARGEST} bytes"), A_FILE));
        }
        String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| other(&path, "bytes that are no text".to_owned(), A_FILE))
    }

    /// Value in a file of JSON; `None` where there is none.
    ///
    /// # Errors
    /// As [`Self::read_text`], and other content than expected.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StateError> {
        let Some(text) = self.read_text(name)? else { return Ok(None) };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| other(&self.path.join(name), format!("other content ({error})"), A_FILE))
    }

    /// Replaces a file by this text, which is on the disk when this returns.
    ///
    /// # Errors
    /// The operating system refuses it: the file is the one of before.
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), StateError> {
        let path = self.path.join(name);
        let system = |error: io::Error| StateError::System { path: path.clone(), error };
        if text.len() > LARGEST {
            return Err(system(io::Error::new(io::ErrorKind::FileTooLarge, "too long to be kept")));
        }
        let new = format!(".{name}.new");
        let written = || {
            // A file left by a crash, or another entry of that name.
            match unlinkat(&self.folder, &*new, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP;
            let mut file = File::from(openat(&self.folder, &*new, flags, mode)?);
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            renameat(&self.folder, &*new, &self.folder, name)?;
            // The new name is stored, too.
            fsync(&self.folder)?;
            Ok::<(), io::Error>(())
        };
        written().map_err(system)
    }

    /// Replaces a file by this value as JSON.
    ///
    /// # Errors
    /// As [`Self::write_text`].
    pub fn write(&self, name: &str, value: &impl Serialize) -> Result<(), StateError> {
        let text = serde_json::to_string(value)
            .map_err(|error| StateError::System { path: self.path.join(name), error: error.into() })?;
        self.write_text(name, &text)
    }
}

/// Makes the folder and its parents.
fn make(path: &Path) -> Result<(), StateError> {
    let system = |error: io::Error| StateError::System { path: path.to_owned(), error };
    if let Some(parent) = path.parent().filter(|it| !it.is_dir()) {
        use std::os::unix::fs::DirBuilderExt;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o750).create(parent).map_err(system)?;
    }
    match mkdir(path, Mode::RWXU | Mode::RGRP | Mode::XGRP) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(system(error.into())),
    }
}

/// Opens a folder of this user or root that no other user may write to.
fn open_folder(path: &Path) -> Result<OwnedFd, StateError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => other(path, "no folder".to_owned(), A_FOLDER),
        error => StateError::System { path: path.to_owned(), error: error.into() },
    })?;
    let system = |error: Errno| StateError::System { path: path.to_owned(), error: error.into() };
    let stat = fstat(&folder).map_err(system)?;
    check_owner(path, &stat)?;
    if Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
        return Err(other(path, "a folder that other users may write to".to_owned(), A_FOLDER));
    }
    Ok(folder)
}

fn check_owner(path: &Path, stat: &Stat) -> Result<(), StateError> {
    let (owner, me) = (stat.st_uid, geteuid().as_raw());
    match owner == me || owner == 0 {
        true => Ok(()),
        false => Err(StateError::Owner { path: path.to_owned(), owner }),
    }
}

fn is_file(stat: &Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file()
}

fn other(path: &Path, found: String, expected: &'static str) -> StateError {
    StateError::Other { path: path.to_owned(), found, expected }
}

const A_FILE: &str = "a file that Onbeat has written";
const A_FOLDER: &str = "a folder that only this user may write to";

/// Name as a file name: other characters than letters, digits, `-`, `_` and `.` are written as
/// `%XX`.
pub(super) fn file_name(name: &str) -> String {
    let mut text = String::new();
    for (place, byte) in name.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || byte == b'.' && place > 0;
        if plain {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A state directory of one test, gone with it.
    struct Directory(PathBuf);

    impl Directory {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("onbeat-state-{test}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }

        fn open(&self) -> Result<Folder, StateError> {
            Folder::open(&self.0, "arm", false)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_written_is_read_by_the_next_run() {
        let directory = Directory::new("again");
        let folder = directory.open().unwrap();
        assert!(matches!(folder.read::<u32>("number"), Ok(None)));
        for number in 0..3_u32 {
            folder.write("number", &number).unwrap();
            assert_eq!(folder.read("number").unwrap(), Some(number));
        }
        assert!(matches!(directory.open(), Err(StateError::Taken { .. })), "it is in use");
        assert_eq!(
            Folder::look(&directory.0, "arm", false).unwrap().unwrap().read("number").unwrap(),
            Some(2)
        );
        drop(folder);
        assert_eq!(directory.open().unwrap().read("number").unwrap(), Some(2));
        assert!(Folder::look(&directory.0, "arm", true).unwrap().is_none(), "a simulated one is another");
    }

    #[test]
    fn names_stay_below_the_directory() {
        for (name, file) in [
            ("arm-1", "arm-1"),
            ("a/b", "a%2Fb"),
            ("..", "%2E."),
            ("\u{e4}", "%C3%A4"),
            (".lock", "%2Elock"),
        ] {
            assert_eq!(file_name(name), file);
        }
    }

    // feature(program): a broken or hostile file of the state directory is a sentence
    #[test]
    fn hostile_files_are_sentences() {
        let directory = Directory::new("hostile");
        let folder = directory.open().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("secret"), "7").unwrap();
        symlink(path("secret"), path("link")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        fs::write(path("huge"), vec![b' '; LARGEST + 1]).unwrap();
        fs::write(path("bytes"), [0xFF, 0xFE]).unwrap();
        fs::write(path("garbage"), "{\"half").unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        for (name, says) in [
            ("link", "a symbolic link, expected a file"),
            ("folder", "no regular file"),
            ("huge", "more than 65536 bytes"),
            ("bytes", "bytes that are no text"),
            ("garbage", "other content"),
            ("pipe", "no regular file"),
        ] {
            let error = folder.read::<u32>(name).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(name), "{name}: {error}");
        }
        // A new file takes the place of a link, and what the link led to stays.
        folder.write("link", &8_u32).unwrap();
        assert_eq!(folder.read("link").unwrap(), Some(8_u32));
        assert_eq!(fs::read_to_string(path("secret")).unwrap(), "7");
        // A half-written one of a crash is replaced.
        fs::create_dir(path(".x.new")).unwrap();
        assert!(folder.write("x", &1_u32).is_err(), "another thing than a file");
        fs::remove_dir(path(".x.new")).unwrap();
        fs::write(path(".x.new"), "half").unwrap();
        folder.write("x", &1_u32).unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::chown(path("x"), Some(12_345), None).unwrap();
            let error = folder.read::<u32>("x").unwrap_err().to_string();
            assert!(error.contains("it belongs to user 12345"), "{error}");
        }
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let directory = Directory::new("open");
        let path = directory.open().unwrap().path().to_owned();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let error = directory.open().unwrap_err().to_string();
        assert!(error.contains("other users may write to"), "{error}");
        fs::remove_dir_all(&path).unwrap();
        fs::write(&path, "").unwrap();
        assert!(directory.open().unwrap_err().to_string().contains("no folder"));
        fs::remove_file(&path).unwrap();
        symlink("/tmp", &path).unwrap();
        assert!(directory.open().unwrap_err().to_string().contains("no folder"));
    }
}
