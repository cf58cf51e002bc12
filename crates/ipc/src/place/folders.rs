//! Folders that a cycle may put its socket in, and folders that a client searches.
//!
//! | order | folder | made by |
//! |---|---|---|
//! | 1 | `$RUNTIME_DIRECTORY`, where it is directly below `/run/onbeat` | systemd, for the service |
//! | 2 | `/run/onbeat`, for root only | the first cycle of root |
//! | 2 | `$XDG_RUNTIME_DIR/onbeat`, for other users without a group | the first cycle of the user |
//! | 3 | `/run/onbeat-UID[-GROUP]`, where it exists | root, for instance by tmpfiles.d |
//! | 4 | `/tmp/onbeat-UID[-GROUP]` | the first cycle of the user |
//! | 5 | `/tmp/onbeat-UID[-GROUP].SUFFIX`, a random suffix | a cycle that can use none of the above |
//!
//! Any user may make folder 4 before its user does. No other user can predict folder 5, and a
//! client trusts a folder only if its owner is the user that it is named after.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Folders in which a new socket may be, the best first.
pub(super) fn for_socket(group: Option<u32>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = service_folder().into_iter().collect();
    if geteuid().is_root() {
        folders.push(SYSTEM.into());
        return folders;
    }
    let name = own_name(group);
    folders.extend(runtime_folder().filter(|_| group.is_none()));
    folders.extend(Some(Path::new(RUN).join(&name)).filter(|it| super::is_trusted(it)));
    folders.push(Path::new(TEMPORARY).join(&name));
    let spare = format!("{name}.");
    folders.extend(
        named(TEMPORARY)
            .filter(|(_, folder)| {
                let is_spare =
                    folder.file_name().is_some_and(|it| it.to_string_lossy().starts_with(&spare));
                is_spare && super::is_trusted(folder)
            })
            .map(|(_, folder)| folder),
    );
    let suffix = RandomState::new().hash_one(std::process::id());
    folders.push(format!("{TEMPORARY}/{spare}{suffix:016x}").into());
    folders
}

/// Folders in which a cycle of root or this user may have its socket.
pub(crate) fn all() -> Vec<PathBuf> {
    let me = geteuid().as_raw();
    let mut folders = vec![PathBuf::from(SYSTEM)];
    folders.extend(of_services().filter(|(user, _)| *user == me || *user == 0).map(|(_, folder)| folder));
    folders.extend(runtime_folder());
    let usual = Path::new(TEMPORARY).join(own_name(None));
    folders.push(usual.clone());
    let found = named(RUN).chain(named(TEMPORARY)).filter(|(user, _)| *user == me);
    folders.extend(found.map(|(_, folder)| folder).filter(|folder| *folder != usual));
    folders
}

/// Folders in which cycles of other users may have their sockets, as far as this user may read
/// them.
pub(crate) fn of_others() -> Vec<PathBuf> {
    let me = geteuid().as_raw();
    let found = of_services().chain(named(RUN)).chain(named(TEMPORARY));
    // Folders that a user makes under another user's name do not count.
    let others = found.filter(|(user, folder)| *user != me && *user != 0 && owner(folder) == Some(*user));
    others.map(|(_, folder)| folder).take(super::MOST_OTHERS).collect()
}

/// True if a folder of another user can only have been made by that user, or by root for that user.
pub(super) fn is_of(folder: &Path, user: u32) -> bool {
    named_user(folder) == Some(user) || folder.parent() == Some(Path::new(SYSTEM))
}

/// True of a folder that a cycle made because it could not use the folder with the usual name.
pub(super) fn is_spare(folder: &Path) -> bool {
    folder.parent() == Some(Path::new(TEMPORARY))
        && named_user(folder).is_some()
        && folder.extension().is_some()
}

/// True of a folder that is made for a socket if it does not exist: below a folder for temporary
/// files, which a restart of the computer empties. Elsewhere a missing folder is probably mistyped.
#[must_use]
pub fn may_be_made(folder: &Path) -> bool {
    let temporary = [PathBuf::from(TEMPORARY), PathBuf::from(RUN), std::env::temp_dir()];
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let mut roots = temporary.into_iter().chain(runtime).filter(|root| root.is_absolute());
    roots.any(|root| folder != root && folder.starts_with(root))
}

/// The folder that systemd made for this service (`RuntimeDirectory=onbeat/NAME`). Clients search
/// the folders below `/run/onbeat` only.
fn service_folder() -> Option<PathBuf> {
    let folders = std::env::var_os("RUNTIME_DIRECTORY")?;
    let mut folders = std::env::split_paths(&folders);
    folders.find(|folder| folder.parent() == Some(Path::new(SYSTEM)))
}

fn runtime_folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
    folder.is_absolute().then(|| folder.join("onbeat"))
}

/// Name of this user's folder for sockets that a group may use, or that this user alone may use.
fn own_name(group: Option<u32>) -> String {
    let user = geteuid().as_raw();
    group.map_or_else(|| format!("{PREFIX}{user}"), |group| format!("{PREFIX}{user}-{group}"))
}

/// Folders of services, and the user that each belongs to. Only root can make one.
fn of_services() -> impl Iterator<Item = (u32, PathBuf)> {
    let folders =
        entries(SYSTEM).into_iter().filter(|it| fs::symlink_metadata(it).is_ok_and(|it| it.is_dir()));
    folders.filter_map(|folder| Some((owner(&folder)?, folder)))
}

/// Folders with names of our scheme, and the user that each is named after.
fn named(parent: &str) -> impl Iterator<Item = (u32, PathBuf)> + use<> {
    entries(parent).into_iter().filter_map(|folder| Some((named_user(&folder)?, folder)))
}

fn entries(parent: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> =
        fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn owner(folder: &Path) -> Option<u32> {
    fs::symlink_metadata(folder).ok().map(|found| found.uid())
}

/// User in the name of a folder `onbeat-UID[-GROUP][.SUFFIX]`.
fn named_user(folder: &Path) -> Option<u32> {
    let name = folder.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    let (user, group) = name.split_once('-').map_or((name, None), |(user, group)| (user, Some(group)));
    group.is_none_or(|group| group.parse::<u32>().is_ok()).then(|| user.parse().ok())?
}

/// Folder of root's cycles, and parent of the folders of services.
pub(super) const SYSTEM: &str = "/run/onbeat";

/// Parent of the folders that root makes for other users.
const RUN: &str = "/run";

/// Parent of the folders of users without any other folder.
const TEMPORARY: &str = "/tmp";

/// Prefix of the names of these folders.
const PREFIX: &str = "onbeat-";
