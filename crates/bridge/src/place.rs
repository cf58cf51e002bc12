//! Where the sockets are.
//!
//! `/run/onbeat` for root, `$XDG_RUNTIME_DIR/onbeat` for others, `/tmp/onbeat-UID` where there is neither; and, as nobody
//! else may enter those, `/tmp/onbeat-UID-GROUP` for a seam that lets a group in. A socket's name is the seam's, with
//! `.sock`. One that nobody answers on is that of a dead cycle: who attaches passes it over, the next cycle of this name
//! removes it, and in these folders any.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::geteuid;

/// The folder a cycle of this user puts its socket in, if it lets this group in.
pub(crate) fn own(group: Option<u32>) -> PathBuf {
    if geteuid().is_root() {
        return SYSTEM.into();
    }
    match group {
        Some(group) => format!("{TEMPORARY}/{PREFIX}{}-{group}", geteuid().as_raw()).into(),
        None => runtime_folder().unwrap_or_else(temporary),
    }
}

/// The folders where a cycle of root's or this user's may have its socket.
pub(crate) fn all() -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from(SYSTEM)];
    folders.extend(runtime_folder());
    folders.push(temporary());
    let me = geteuid().as_raw();
    let of_groups = temporary_folders(Path::new(TEMPORARY)).filter(|(user, _)| *user == me);
    folders.extend(of_groups.map(|(_, folder)| folder).filter(|folder| *folder != temporary()));
    folders
}

/// The folders where cycles of other users may have their sockets, as far as they let this one in.
pub(crate) fn of_others() -> Vec<PathBuf> {
    let me = geteuid().as_raw();
    let others = temporary_folders(Path::new(TEMPORARY)).filter(|(user, _)| *user != me && *user != 0);
    others.map(|(_, folder)| folder).take(MOST_OTHERS).collect()
}

/// The sockets in a folder, by name; none where there is no folder, or where it is not to be trusted: where somebody else
/// than the user whose it is may put anything. A folder of another user's is believed as far as it says so by its name, and
/// for sockets of that user's.
pub(crate) fn sockets(folder: &Path) -> Vec<PathBuf> {
    let Some(found) = fs::symlink_metadata(folder).ok().filter(is_safe) else { return Vec::new() };
    let user = found.uid();
    let is_ours = is_ours(&found);
    if !is_ours && named_user(folder) != Some(user) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| is_socket_name(path));
    let mut found: Vec<PathBuf> = paths.filter(|path| is_ours || is_socket_of(path, user)).collect();
    found.sort();
    if !is_ours {
        found.truncate(MOST_OTHERS);
    }
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
    /// The group cannot be let in.
    #[error(
        "{}: {error}: only root and members of group {group} can let it in; add this user to the group and log in again, \
         run as root, or leave `group` out of the robot file's [seam]",
        folder.display()
    )]
    Group {
        /// Which folder it is to enter.
        folder: PathBuf,
        /// Its number.
        group: u32,
        /// What the system says.
        error: io::Error,
    },
    /// Something else has the name.
    #[error(
        "{}: expected nothing, or the socket of a cycle that has ended, found {found}: remove it, or give this seam another \
         name (--seam NAME)",
        path.display()
    )]
    Occupied {
        /// Where.
        path: PathBuf,
        /// What it is.
        found: &'static str,
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

/// Makes a socket of this name and listens at it, in a folder that members of the group may enter.
pub(crate) fn listen_at(
    folder: &Path,
    name: &str,
    mode: u32,
    group: Option<u32>,
) -> Result<(PathBuf, OwnedFd), PlaceError> {
    make_folder(folder, group)?;
    let folder_error = |error| PlaceError::Folder { folder: folder.into(), error };
    // Two cycles that open at once take turns: what looks dead below is not half made.
    let _lock = Lock::of(folder).map_err(folder_error)?;
    let path = folder.join(format!("{name}.{SUFFIX}"));
    let unborn = folder.join(format!(".{}.{SUFFIX}", std::process::id()));
    make_room(&path)?;
    make_room(&unborn)?;
    // Nothing but seams belongs there.
    if [own(None), own(group), temporary()].iter().any(|it| it == folder) {
        sweep(folder);
    }
    let socket_error = |error| PlaceError::Socket { path: path.clone(), error };
    let made = || {
        let address = SocketAddrUnix::new(&unborn)?;
        // The longest one has to fit too.
        SocketAddrUnix::new(&path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&socket, &address)?;
        let listening = || {
            fs::set_permissions(&unborn, fs::Permissions::from_mode(mode))?;
            listen(&socket, 128)?;
            // Only now is it seen: whoever sees it is answered. In place of nothing, unlike a rename.
            fs::hard_link(&unborn, &path)
        };
        let listening = listening();
        let _ = fs::remove_file(&unborn);
        listening.map(|()| socket)
    };
    made().map(|socket| (path.clone(), socket)).map_err(socket_error)
}

/// Removes what a dead cycle has left at this path; anything else is left alone, and is an error.
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
            Answers::Nobody => fs::remove_file(path).map_err(failed),
            Answers::Unknown => Err(occupied("a socket that no cycle listens at")),
        },
        it if it.is_file() => Err(occupied("a file")),
        it if it.is_dir() => Err(occupied("a folder")),
        it if it.is_symlink() => Err(occupied("a symbolic link")),
        it if it.is_fifo() => Err(occupied("a named pipe")),
        _ => Err(occupied("a device")),
    }
}

/// Removes what dead cycles of this user have left in a folder of ours.
fn sweep(folder: &Path) {
    for path in sockets(folder) {
        if is_socket_of(&path, geteuid().as_raw()) && matches!(answers(&path), Answers::Nobody) {
            let _ = fs::remove_file(&path);
        }
    }
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

fn make_folder(folder: &Path, group: Option<u32>) -> Result<(), PlaceError> {
    let failed = |error| PlaceError::Folder { folder: folder.into(), error };
    // Below /run everybody may look; elsewhere it is the user's own.
    let mode = if folder == Path::new(SYSTEM) { 0o755 } else { 0o700 };
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
    // A folder of somebody's own choice stays as it is.
    let lets_in = is_new || folder == own(group);
    match group.filter(|_| lets_in && folder != Path::new(SYSTEM)) {
        Some(group) => let_in(folder, group).map_err(|error| {
            if is_new {
                let _ = fs::remove_dir(folder);
            }
            PlaceError::Group { folder: folder.into(), group, error }
        }),
        None => Ok(()),
    }
}

/// Members of the group may enter the folder and see what is in it.
fn let_in(folder: &Path, group: u32) -> io::Result<()> {
    let folder = File::open(folder)?;
    fchown(&folder, None, Some(group))?;
    folder.set_permissions(fs::Permissions::from_mode(0o750))
}

/// Whether a folder is ours or root's, and nobody else may put anything there.
fn is_trusted(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|found| is_safe(&found) && is_ours(&found))
}

/// True if it belongs to root or this user.
fn is_ours(found: &fs::Metadata) -> bool {
    found.uid() == 0 || found.uid() == geteuid().as_raw()
}

/// True if nobody but its owner may put anything into a folder.
fn is_safe(found: &fs::Metadata) -> bool {
    found.is_dir() && found.mode() & 0o022 == 0
}

fn is_socket_of(path: &Path, user: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket() && found.uid() == user)
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
    format!("{TEMPORARY}/{PREFIX}{}", geteuid().as_raw()).into()
}

/// The folders with names of ours, and the user each is named after.
fn temporary_folders(parent: &Path) -> impl Iterator<Item = (u32, PathBuf)> + use<> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> = entries.filter_map(|folder| Some((named_user(&folder)?, folder))).collect();
    found.sort();
    found.into_iter()
}

/// The user after whom a folder `onbeat-UID` or `onbeat-UID-GROUP` is named.
fn named_user(folder: &Path) -> Option<u32> {
    let name = folder.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    let (user, group) = name.split_once('-').map_or((name, None), |(user, group)| (user, Some(group)));
    group.is_none_or(|group| group.parse::<u32>().is_ok()).then(|| user.parse().ok())?
}

/// Root's.
const SYSTEM: &str = "/run/onbeat";

/// Where folders of users are who have no better place.
const TEMPORARY: &str = "/tmp";

/// What their names begin with.
const PREFIX: &str = "onbeat-";

/// Folders of other users that are looked into, and sockets in each: they may hold anything.
const MOST_OTHERS: usize = 64;

const SUFFIX: &str = "sock";

/// How long somebody who does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
