//! Sockets of programs that answer, and their folders ([`folders`] lists them).
//!
//! A socket is named after its interface, with the suffix `.sock`; sockets of other programs
//! ([`crate::text`]) have other suffixes. A socket that no process answers on is left over from a
//! dead cycle: clients skip it, and the next cycle of that name removes it; in the usual folders
//! the next program of any name and suffix does.

mod folders;

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::{Resource, geteuid, getrlimit};

pub use folders::may_be_made;
pub(crate) use folders::{all, of_others};

/// Sockets in a folder with this suffix, sorted by name. None if the folder does not exist or is
/// not safe, that is, if others than its owner may write to it. A folder of another user must be
/// one that only that user or root can have made, and only sockets owned by that user count.
pub(crate) fn sockets(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let Some(found) = fs::symlink_metadata(folder).ok().filter(is_safe) else { return Vec::new() };
    let user = found.uid();
    let is_ours = is_ours(&found);
    if !is_ours && !folders::is_of(folder, user) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| is_socket_name(path, suffix));
    let mut found: Vec<PathBuf> = paths.filter(|path| is_ours || is_socket_of(path, user)).collect();
    found.sort();
    if !is_ours {
        found.truncate(MOST_OTHERS);
    }
    found
}

/// The folder that cannot be searched, and the reason, if this process has no descriptor left: the
/// search in other folders may then be incomplete.
pub(crate) fn unseen(folders: &[PathBuf]) -> Option<(PathBuf, io::Error)> {
    folders.iter().find_map(|folder| {
        let error = fs::read_dir(folder).err().filter(lacks_descriptors)?;
        Some((folder.clone(), limited(error)))
    })
}

/// The error of a process that has no descriptor left, with its limit; other errors unchanged.
pub(crate) fn limited(error: io::Error) -> io::Error {
    if !lacks_descriptors(&error) {
        return error;
    }
    let most = getrlimit(Resource::Nofile).current.map_or("any number".to_owned(), |it| it.to_string());
    let what_to_do = format!("{error}: this process may open {most}, raise that with `ulimit -n`");
    io::Error::new(error.kind(), what_to_do)
}

fn lacks_descriptors(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::MFILE)
}

/// Reason for not listening at a socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The folder cannot be made or used.
    #[error("{}: {error}; the sockets of running cycles are there", folder.display())]
    Folder {
        /// Path of the folder.
        folder: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The folder belongs to another user, or others may write to it.
    #[error(
        "{} belongs to user {owner} with mode {mode:o}, and so is not safe for the socket of a cycle: \
         remove it, or choose another folder, by --ipc or XDG_RUNTIME_DIR",
        folder.display()
    )]
    NotOurs {
        /// Path of the folder.
        folder: PathBuf,
        /// Owner of the folder.
        owner: u32,
        /// Permissions of the folder.
        mode: u32,
    },
    /// The group cannot be admitted to the folder.
    #[error(
        "{}: {error}: only root and members of group {group} can let it in; add this user to the group and log in again, \
         run as root, or leave `group` out of the robot file's [ipc]",
        folder.display()
    )]
    Group {
        /// Path of the folder.
        folder: PathBuf,
        /// Number of the group.
        group: u32,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The path of the socket is taken by another file.
    #[error(
        "{}: expected nothing, or the socket of a cycle that has ended, found {found}: remove it, or give this IPC another \
         name (--ipc NAME)",
        path.display()
    )]
    Occupied {
        /// Path of the socket.
        path: PathBuf,
        /// Kind of file found there.
        found: &'static str,
    },
    /// A cycle of this name runs already.
    #[error("a cycle answers at {} already: end it, or give this one another name (--ipc NAME)", path.display())]
    Taken {
        /// Path of its socket.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("{}: {error}", path.display())]
    Socket {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
}

/// A socket that listens.
pub(crate) struct Listening {
    pub(crate) path: PathBuf,
    pub(crate) socket: OwnedFd,
    /// Reason for not using the first of the usual folders.
    pub(crate) passed_over: Option<PlaceError>,
}

impl PlaceError {
    /// True if another folder may do.
    fn is_of_folder(&self) -> bool {
        match self {
            Self::Folder { error, .. } => !lacks_descriptors(error),
            Self::NotOurs { .. } => true,
            _ => false,
        }
    }
}

/// Makes a socket of this name and listens at it: in this folder, otherwise in the first usual one
/// that is safe and writable. Members of the group may enter the folder.
pub(crate) fn open(
    folder: Option<&Path>,
    name: &str,
    suffix: &str,
    mode: u32,
    group: Option<u32>,
) -> Result<Listening, PlaceError> {
    if let Some(folder) = folder {
        let (path, socket) = listen_at(folder, name, suffix, mode, group)?;
        return Ok(Listening { path, socket, passed_over: None });
    }
    // A name is searched for in all folders of the user, so it has to be free in all of them.
    let file = format!("{name}.{suffix}");
    let mut others = all().into_iter().map(|folder| folder.join(&file));
    if let Some(path) = others.find(|path| is_taken(path)) {
        return Err(PlaceError::Taken { path });
    }
    let mut passed_over = None;
    for folder in folders::for_socket(group) {
        match listen_at(&folder, name, suffix, mode, group) {
            Ok((path, socket)) => return Ok(Listening { path, socket, passed_over }),
            Err(error) if error.is_of_folder() => passed_over = passed_over.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    let none = || io::Error::new(io::ErrorKind::NotFound, "no folder for sockets");
    Err(passed_over.unwrap_or_else(|| PlaceError::Folder { folder: folders::SYSTEM.into(), error: none() }))
}

/// True if a process of this user answers at this path.
fn is_taken(path: &Path) -> bool {
    is_socket_of(path, geteuid().as_raw()) && matches!(answers(path), Answers::Yes)
}

/// Makes a socket of this name, in a folder that members of the group may enter, and listens at it.
pub(crate) fn listen_at(
    folder: &Path,
    name: &str,
    suffix: &str,
    mode: u32,
    group: Option<u32>,
) -> Result<(PathBuf, OwnedFd), PlaceError> {
    make_folder(folder, group)?;
    let folder_error = |error| PlaceError::Folder { folder: folder.into(), error };
    // Serialises cycles that open at once: a socket that seems dead below is not a half-made one.
    let _lock = Lock::of(folder).map_err(folder_error)?;
    let path = folder.join(format!("{name}.{suffix}"));
    let unborn = folder.join(format!(".{}.{suffix}", std::process::id()));
    make_room(&path)?;
    make_room(&unborn)?;
    // The usual folders hold nothing but sockets of programs of Onbeat, and root's records.
    if all().iter().any(|it| it == folder) {
        sweep(folder);
    }
    let socket_error = |error| PlaceError::Socket { path: path.clone(), error };
    let made = || {
        let address = SocketAddrUnix::new(&unborn)?;
        // The final path, the longest one, has to fit too.
        SocketAddrUnix::new(&path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&socket, &address)?;
        let listening = || {
            fs::set_permissions(&unborn, fs::Permissions::from_mode(mode))?;
            listen(&socket, 128)?;
            // The socket becomes visible only now, when it already answers. Unlike a rename, a link
            // replaces nothing.
            fs::hard_link(&unborn, &path)
        };
        let listening = listening();
        let _ = fs::remove_file(&unborn);
        listening.map(|()| socket)
    };
    made().map(|socket| (path.clone(), socket)).map_err(socket_error)
}

/// Removes the socket of a dead cycle at this path; anything else stays and is an error.
fn make_room(path: &Path) -> Result<(), PlaceError> {
    let failed = |error| PlaceError::Socket { path: path.into(), error };
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed)?.file_type(),
    };
    let occupied = |found| PlaceError::Occupied { path: path.into(), found };
    match found {
        it if it.is_socket() => match answers(path) {
            Answers::Yes => Err(PlaceError::Taken { path: path.into() }),
            Answers::NoServer => fs::remove_file(path).map_err(failed),
            Answers::Unknown => Err(occupied("a socket that no cycle listens at")),
        },
        it if it.is_file() => Err(occupied("a file")),
        it if it.is_dir() => Err(occupied("a folder")),
        it if it.is_symlink() => Err(occupied("a symbolic link")),
        it if it.is_fifo() => Err(occupied("a named pipe")),
        _ => Err(occupied("a device")),
    }
}

/// Removes the sockets that dead programs of this user left in a folder of ours, of whatever kind
/// they were, half-made ones too: none is made while the folder is locked.
fn sweep(folder: &Path) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if is_socket_of(&path, geteuid().as_raw()) && matches!(answers(&path), Answers::NoServer) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Connects; neither this nor anything on the socket waits longer than [`TIMEOUT`].
pub(crate) fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let socket = socket.map_err(|error| limited(error.into()))?;
    for timeout in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, timeout, Some(TIMEOUT))?;
    }
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Lock of a folder, held while sockets in it are made and removed.
///
/// Any user that may read the folder can also take the lock, and hold it forever. So the wait is no
/// longer than programs of Onbeat hold it, and then the program continues without it. Two programs
/// that open a socket of one name in the same instant may then conflict.
#[derive(Debug)]
pub(crate) struct Lock {
    _folder: File,
}

impl Lock {
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let file = File::open(folder)?;
        let until = Instant::now() + LOCKED_FOR;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(LOCK_LOOK),
                Ok(()) | Err(Errno::WOULDBLOCK) => return Ok(Self { _folder: file }),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A socket of ours at its path; dropping it removes it.
#[derive(Debug)]
pub(crate) struct Placed {
    path: PathBuf,
    identity: (u64, u64),
}

impl Placed {
    pub(crate) fn at(path: PathBuf) -> io::Result<Self> {
        let found = fs::symlink_metadata(&path)?;
        Ok(Self { path, identity: (found.dev(), found.ino()) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        // Only our own socket is removed: it may have been removed already, and another program may
        // have taken its place.
        let _lock = self.path.parent().map(Lock::of);
        let found = fs::symlink_metadata(&self.path).map(|found| (found.dev(), found.ino()));
        if found.is_ok_and(|found| found == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(folder) = self.path.parent().filter(|it| folders::is_spare(it)) {
            let _ = fs::remove_dir(folder);
        }
    }
}

enum Answers {
    Yes,
    /// Left over from a dead cycle.
    NoServer,
    /// Not determined.
    Unknown,
}

fn answers(path: &Path) -> Answers {
    match connect_to(path) {
        Ok(_) => Answers::Yes,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Answers::NoServer,
        // The backlog was full for seconds: a process listens.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Answers::Yes,
        Err(_) => Answers::Unknown,
    }
}

fn make_folder(folder: &Path, group: Option<u32>) -> Result<(), PlaceError> {
    let failed = |error| PlaceError::Folder { folder: folder.into(), error };
    // Below /run every user may read the folder; elsewhere only its owner.
    let mode = if folder == Path::new(folders::SYSTEM) { 0o755 } else { 0o700 };
    let is_new = match DirBuilder::new().mode(mode).create(folder) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(failed(error)),
    };
    let found = fs::symlink_metadata(folder).map_err(failed)?;
    if !is_trusted(folder) {
        return Err(PlaceError::NotOurs {
            folder: folder.into(),
            owner: found.uid(),
            mode: found.mode() & 0o7777,
        });
    }
    // A folder that was there already and that the user chose keeps its permissions.
    let lets_in = is_new || folders::for_socket(group).iter().any(|it| it == folder);
    match group.filter(|_| lets_in && folder != Path::new(folders::SYSTEM)) {
        Some(group) => let_in(folder, group).map_err(|error| {
            if is_new {
                let _ = fs::remove_dir(folder);
            }
            PlaceError::Group { folder: folder.into(), group, error }
        }),
        None => Ok(()),
    }
}

/// Lets members of the group enter and list the folder.
fn let_in(folder: &Path, group: u32) -> io::Result<()> {
    let folder = File::open(folder)?;
    fchown(&folder, None, Some(group))?;
    folder.set_permissions(fs::Permissions::from_mode(0o750))
}

/// True if a folder belongs to root or this user, and only its owner may write to it.
fn is_trusted(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|found| is_safe(&found) && is_ours(&found))
}

/// True of the socket of a cycle of root or this user.
pub(crate) fn is_own(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| is_ours(&found))
}

/// True if it belongs to root or this user.
fn is_ours(found: &fs::Metadata) -> bool {
    found.uid() == 0 || found.uid() == geteuid().as_raw()
}

/// True if it is a folder that only its owner may write to.
fn is_safe(found: &fs::Metadata) -> bool {
    found.is_dir() && found.mode() & 0o022 == 0
}

fn is_socket_of(path: &Path, user: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket() && found.uid() == user)
}

fn is_socket_name(path: &Path, suffix: &str) -> bool {
    let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == suffix)
}

/// Most folders of other users that are searched, and most sockets in each: their contents are
/// untrusted.
const MOST_OTHERS: usize = 64;

/// Suffix of the sockets of cycles.
pub(crate) const CYCLE: &str = "sock";

/// Longest wait for a peer that does not answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time that programs of Onbeat lock a folder for.
const LOCKED_FOR: Duration = Duration::from_secs(1);

/// Polling interval of a locked folder.
const LOCK_LOOK: Duration = Duration::from_millis(2);
