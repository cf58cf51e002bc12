//! Where the sockets are.
//!
//! `/run/onbeat` for root, `$XDG_RUNTIME_DIR/onbeat` for others, `/tmp/onbeat-UID` where there is neither. A socket's name is
//! the seam's, with `.sock`. One that nobody answers on is that of a dead cycle: who attaches passes it over, the next cycle
//! that opens its seam there removes it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::geteuid;

/// The folder a cycle of this user puts its socket in.
pub(crate) fn own() -> PathBuf {
    if geteuid().is_root() {
        return SYSTEM.into();
    }
    runtime_folder().unwrap_or_else(temporary)
}

/// All folders where a cycle may have its socket that this user should trust.
pub(crate) fn all() -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from(SYSTEM)];
    folders.extend(runtime_folder());
    folders.push(temporary());
    folders
}

/// The sockets in a folder, by name; none where there is no folder, or where it is somebody else's.
pub(crate) fn sockets(folder: &Path) -> Vec<PathBuf> {
    if !is_trusted(folder) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_socket_name(path)).collect();
    found.sort();
    found
}

/// Why there is no socket to listen at.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The folder cannot be made or used.
    #[error("{}: {error}; the sockets of running cycles are there", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is there, and it is another user's or others may write to it.
    #[error(
        "{} belongs to user {owner} with mode {mode:o}, and so is not safe for the socket of a cycle: remove it, or set \
         XDG_RUNTIME_DIR to a folder of your own",
        folder.display()
    )]
    NotOurs {
        /// Which.
        folder: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Its permissions.
        mode: u32,
    },
    /// A cycle of this name runs.
    #[error("a cycle answers at {} already: end it, or give this one another name (--seam NAME)", path.display())]
    Taken {
        /// Where.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("{}: {error}", path.display())]
    Socket {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

/// Makes a socket of this name and listens at it.
pub(crate) fn listen_at(folder: &Path, name: &str, mode: u32) -> Result<(PathBuf, OwnedFd), PlaceError> {
    make_folder(folder)?;
    let folder_error = |error| PlaceError::Folder { folder: folder.into(), error };
    // Two cycles that open at once take turns: what looks dead below is not half made.
    let _lock = Lock::of(folder).map_err(folder_error)?;
    let path = folder.join(format!("{name}.{SUFFIX}"));
    let unborn = folder.join(format!(".{}.{SUFFIX}", std::process::id()));
    for other in sockets(folder).into_iter().chain([unborn.clone()]) {
        match answers(&other) {
            Answers::Yes if other == path => return Err(PlaceError::Taken { path }),
            Answers::Nobody => drop(fs::remove_file(&other)),
            Answers::Yes | Answers::Unknown => {}
        }
    }
    let socket_error = |error| PlaceError::Socket { path: path.clone(), error };
    let made = || {
        let address = SocketAddrUnix::new(&unborn)?;
        // The longest one has to fit too.
        SocketAddrUnix::new(&path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&socket, &address)?;
        fs::set_permissions(&unborn, fs::Permissions::from_mode(mode))?;
        listen(&socket, 128)?;
        // Only now is it seen: whoever sees it is answered.
        fs::rename(&unborn, &path)?;
        Ok(socket)
    };
    made().map(|socket| (path.clone(), socket)).map_err(socket_error)
}

/// Connects; neither this nor anything on the socket waits longer than a few seconds.
pub(crate) fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    for timeout in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, timeout, Some(PATIENCE))?;
    }
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// A folder's lock, held while sockets in it are made and removed.
#[derive(Debug)]
pub(crate) struct Lock {
    _folder: File,
}

impl Lock {
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let file = File::open(folder)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self { _folder: file })
    }
}

enum Answers {
    Yes,
    /// It is what a dead cycle left.
    Nobody,
    /// Not for us to say.
    Unknown,
}

fn answers(path: &Path) -> Answers {
    match connect_to(path) {
        Ok(_) => Answers::Yes,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Answers::Nobody,
        // Full for seconds: somebody is there.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Answers::Yes,
        Err(_) => Answers::Unknown,
    }
}

fn make_folder(folder: &Path) -> Result<(), PlaceError> {
    let failed = |error| PlaceError::Folder { folder: folder.into(), error };
    // Below /run everybody may look; elsewhere it is the user's own.
    let mode = if folder == Path::new(SYSTEM) { 0o755 } else { 0o700 };
    match DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(folder).map_err(failed)?;
    if is_trusted(folder) {
        return Ok(());
    }
    Err(PlaceError::NotOurs { folder: folder.into(), owner: found.uid(), mode: found.mode() & 0o7777 })
}

/// Whether a folder is ours or root's, and nobody else may put anything there.
fn is_trusted(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|found| {
        let owner = found.uid();
        found.is_dir() && (owner == 0 || owner == geteuid().as_raw()) && found.mode() & 0o022 == 0
    })
}

fn is_socket_name(path: &Path) -> bool {
    let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == SUFFIX)
}

fn runtime_folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
    folder.is_absolute().then(|| folder.join("onbeat"))
}

fn temporary() -> PathBuf {
    format!("/tmp/onbeat-{}", geteuid().as_raw()).into()
}

/// Root's.
const SYSTEM: &str = "/run/onbeat";

const SUFFIX: &str = "sock";

/// How long somebody who does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
