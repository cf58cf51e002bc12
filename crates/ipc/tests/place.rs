//! Folders of the sockets: creation, removal of dead sockets, and the search.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

use std::fs::{self, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;

use onbeat_ipc::client::{AttachError, Client, FindError};
use onbeat_ipc::server::{Builder, Endpoints, OpenError, Server};
use rustix::fs::{CWD, FileType, FlockOperation, Gid, Mode, Uid, flock, mknodat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, accept, bind, listen, socket};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use support::{Folder, description};

fn bound(path: &Path, kind: SocketType) -> OwnedFd {
    let socket = socket(AddressFamily::UNIX, kind, None).unwrap();
    bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    if kind != SocketType::DGRAM {
        listen(&socket, 1).unwrap();
    }
    socket
}

// feature(ipc): opening an IPC removes nothing but its own stale socket
#[test]
fn opening_an_ipc_removes_nothing_but_its_own_stale_socket() {
    let folder = Folder::new();
    let kinds = [
        ("stream", SocketType::STREAM),
        ("dgram", SocketType::DGRAM),
        ("seqpacket", SocketType::SEQPACKET),
    ];
    let mut living = Vec::new();
    for (name, kind) in kinds {
        drop(bound(&folder.socket(&format!("stale-{name}")), kind));
        living.push(bound(&folder.socket(&format!("living-{name}")), kind));
    }
    fs::write(folder.socket("file"), "words").unwrap();
    fs::write(folder.0.join("target"), "words").unwrap();
    symlink(folder.0.join("target"), folder.socket("link")).unwrap();
    symlink(folder.socket("stale-stream"), folder.socket("link-to-socket")).unwrap();
    fs::create_dir(folder.socket("folder")).unwrap();
    mknodat(CWD, folder.socket("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    drop(folder.builder("robot").open().unwrap());
    assert_eq!(names(), before);

    // Anything but the socket of a dead cycle stays, and is named in the error.
    let rows = [
        ("file", "found a file"),
        ("link", "found a symbolic link"),
        ("link-to-socket", "found a symbolic link"),
        ("folder", "found a folder"),
        ("pipe", "found a named pipe"),
        ("living-stream", "found a socket"),
        ("living-dgram", "found a socket"),
        ("living-seqpacket", "answers at"),
    ];
    for (name, found) in rows {
        let error = folder.builder(name).open().unwrap_err().to_string();
        let path = folder.socket(name);
        assert!(error.contains(found) && error.contains(&*path.to_string_lossy()), "{name}: {error}");
        assert!(error.contains("--ipc NAME"), "{error}");
    }
    assert_eq!(names(), before);
    assert_eq!(fs::read_to_string(folder.socket("file")).unwrap(), "words");
    assert_eq!(fs::read_to_string(folder.0.join("target")).unwrap(), "words");

    // A socket at the path itself is replaced if no process answers on it.
    for (name, _) in kinds {
        let name = format!("stale-{name}");
        let ipc = folder.builder(&name).open().unwrap();
        assert!(Client::open(&folder.socket(&name)).is_ok());
        drop(ipc);
    }
}

// feature(ipc): a user who may only read the folder of the sockets cannot block the start or end of a cycle
#[test]
fn foreign_folder_lock_does_not_block_open_and_close() {
    let folder = Folder::new();
    let held = fs::File::open(&folder.0).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let builder = folder.builder("robot");
    let path = folder.socket("robot");
    thread::spawn(move || {
        let opened = builder.open().unwrap();
        let found = Client::open(&path).is_ok();
        drop(opened);
        tell.send((found, path.exists())).unwrap();
    });
    let limit = std::time::Duration::from_secs(60);
    assert_eq!(told.recv_timeout(limit), Ok((true, false)), "it answers, and goes with its socket");
    drop(held);
}

/// Numbers of users and groups unique to a test, so that tests do not interfere.
fn number(index: u32) -> u32 {
    1_000_000 + std::process::id() * 16 + index
}

/// Runs `work` on a separate thread as this user, a member of these groups.
fn as_user<T: Send>(user: u32, groups: &[u32], work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let there = scope.spawn(|| {
            let groups: Vec<Gid> = groups.iter().map(|&group| Gid::from_raw(group)).collect();
            set_thread_groups(&groups).unwrap();
            set_thread_gid(Gid::from_raw(user)).unwrap();
            set_thread_uid(Uid::from_raw(user)).unwrap();
            work()
        });
        there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

type Ipc = (Endpoints, Server);

fn open(name: &str, group: Option<u32>, folder: Option<&Path>) -> Result<Ipc, OpenError> {
    let mut builder = Builder::new(name, &description());
    if let Some(group) = group {
        builder.group(group);
    }
    if let Some(folder) = folder {
        builder.folder(folder);
    }
    builder.open()
}

/// Path removed on drop.
struct Gone(PathBuf);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// feature(ipc): a group commands the cycle of any user; the folder of another user counts for that user only
#[test]
fn only_the_group_enters_the_folder_and_commands() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let [user, group, member, stranger] = [0, 1, 2, 3].map(number);
    let folder = Gone(format!("/tmp/onbeat-{user}-{group}").into());
    let name = format!("robot-{user}");
    let (_ends, server) = as_user(user, &[group], || open(&name, Some(group), None)).unwrap();
    assert_eq!(server.path(), folder.0.join(format!("{name}.sock")));
    let found = fs::metadata(&folder.0).unwrap();
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (user, group, 0o750));

    for (who, groups) in [(user, vec![]), (member, vec![7, group]), (0, vec![])] {
        as_user(who, &groups, || {
            let ipc = Client::named(&name).unwrap();
            assert_eq!((ipc.user(), ipc.path()), (user, server.path()));
            ipc.command().unwrap();
            assert!(Client::all().iter().any(|ipc| ipc.name() == name));
        });
    }
    as_user(stranger, &[7], || {
        assert!(matches!(Client::named(&name), Err(FindError::NoServer { .. })));
        assert!(matches!(Client::open(server.path()), Err(AttachError::System { .. })));
    });
    // The second cycle of this user finds its folder, and removes the sockets of dead ones.
    let dead = folder.0.join("dead.sock");
    drop(as_user(user, &[group], || bound(&dead, SocketType::SEQPACKET)));
    let second = as_user(user, &[group], || open(&format!("{name}-2"), Some(group), None)).unwrap();
    assert!(!dead.exists());
    drop(second);
}

/// A simulator that was killed leaves a socket that no cycle asks for, and one killed while it made
/// its socket leaves a hidden one.
// feature(ipc): sockets that killed programs left behind are removed by the next program of any kind
#[test]
fn next_open_removes_sockets_of_killed_programs() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let [user, group] = [11, 12].map(number);
    let folder = Gone(format!("/tmp/onbeat-{user}-{group}").into());
    let name = format!("robot-{user}");
    let (_ends, first) = as_user(user, &[group], || open(&name, Some(group), None)).unwrap();
    let bind_here = |name: &str| {
        let path = folder.0.join(name);
        let socket = as_user(user, &[group], || bound(&path, SocketType::SEQPACKET));
        (path, socket)
    };
    let dead: Vec<PathBuf> =
        ["dead.sock", "dead.faults", ".77.faults", ".77.sock"].map(|name| bind_here(name).0).into();
    let (living, _socket) = bind_here("living.faults");
    let foreign = folder.0.join("foreign.faults");
    drop(bound(&foreign, SocketType::SEQPACKET));
    let second = as_user(user, &[group], || open(&format!("{name}-2"), Some(group), None)).unwrap();
    assert_eq!(dead.iter().filter(|path| path.exists()).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
    assert!(living.exists() && foreign.exists() && first.path().exists());
    drop(second);
}

/// In a folder chosen by the user.
#[test]
fn new_folder_admits_the_group_and_existing_one_is_kept() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let [user, group, member, stranger] = [4, 1, 2, 3].map(number);
    let parent = Folder::new();
    fs::set_permissions(&parent.0, Permissions::from_mode(0o777)).unwrap();
    for owner in [0, user] {
        let made = parent.0.join(format!("made-{owner}"));
        let (_ends, server) = as_user(owner, &[group], || open("robot", Some(group), Some(&made))).unwrap();
        as_user(member, &[group], || Client::open(server.path()).unwrap().command().unwrap());
        as_user(stranger, &[], || assert!(Client::open(server.path()).is_err()));
        let there = parent.0.join(format!("there-{owner}"));
        as_user(owner, &[group], || {
            fs::create_dir(&there).unwrap();
            fs::set_permissions(&there, Permissions::from_mode(0o700)).unwrap();
            drop(open("robot", Some(group), Some(&there)).unwrap());
        });
        assert_eq!(fs::metadata(&there).unwrap().mode() & 0o7777, 0o700);
    }
}

#[test]
fn group_without_the_user_is_refused_with_a_remedy() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let [user, group] = [5, 6].map(number);
    let error = as_user(user, &[], || open("robot", Some(group), None)).unwrap_err().to_string();
    assert!(error.contains(&format!("members of group {group}")), "{error}");
    assert!(error.contains("add this user to the group"), "{error}");
    assert!(!Path::new(&format!("/tmp/onbeat-{user}-{group}")).exists());
}

/// Any user may make a folder below /tmp: it is trusted only for sockets of its own user.
// feature(ipc): a group commands the cycle of any user; the folder of another user counts for that user only
#[test]
fn foreign_folders_are_trusted_for_their_owner_only() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let [user, group, squatter, member] = [7, 8, 9, 10].map(number);
    let name = format!("squat-{user}");
    let find = || as_user(member, &[group], || Client::named(&name).map(|ipc| ipc.user()));
    // Named after another user.
    let folder = Gone(format!("/tmp/onbeat-{user}-{group}").into());
    let ipc = as_user(squatter, &[group], || open(&name, Some(group), Some(&folder.0))).unwrap();
    assert!(matches!(find(), Err(FindError::NoServer { .. })));
    drop((ipc, folder));
    // Writable by others.
    let folder = Gone(format!("/tmp/onbeat-{user}-{group}").into());
    let ipc = as_user(user, &[group], || open(&name, Some(group), None)).unwrap();
    assert_eq!(find().unwrap(), user);
    fs::set_permissions(&folder.0, Permissions::from_mode(0o770)).unwrap();
    assert!(matches!(find(), Err(FindError::NoServer { .. })));
    // With a socket of another user.
    fs::set_permissions(&folder.0, Permissions::from_mode(0o750)).unwrap();
    let socket = ipc.1.path().to_owned();
    assert!(fs::metadata(&socket).unwrap().file_type().is_socket());
    std::os::unix::fs::chown(&socket, Some(squatter), None).unwrap();
    assert!(matches!(find(), Err(FindError::NoServer { .. })));
}

/// Any user may make the usual folder below /tmp before its user does, and its user cannot remove
/// it.
// feature(ipc): a folder that another user made leaves no cycle without its interface: clients find another
#[test]
fn a_squatted_folder_leaves_no_cycle_without_an_interface() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let [user, squatter, group] = [17, 18, 19].map(number);
    let name = format!("squatted-{user}");
    let find = || as_user(user, &[group], || Client::named(&name).map(|ipc| ipc.path().to_owned()));
    for (group, usual) in
        [(None, format!("onbeat-{user}")), (Some(group), format!("onbeat-{user}-{group}"))]
    {
        let usual = Gone(Path::new("/tmp").join(usual));
        // The squatter also takes a name like the folder that replaces the usual one.
        let false_spare = Gone(usual.0.with_extension("0"));
        let fake = usual.0.join(format!("{name}.sock"));
        let fake = as_user(squatter, &[], || {
            for folder in [&usual.0, &false_spare.0] {
                fs::DirBuilder::new().mode(0o755).create(folder).unwrap();
            }
            bound_for_all(&fake)
        });
        let groups: Vec<u32> = group.into_iter().collect();
        let (_ends, server) = as_user(user, &groups, || open(&name, group, None)).unwrap();
        let folder = server.path().parent().unwrap().to_owned();
        assert!(folder != usual.0 && folder != false_spare.0, "{}", folder.display());
        assert_eq!(fs::metadata(&folder).unwrap().uid(), user);
        let why = server.passed_over().unwrap().to_string();
        assert!(why.contains(&format!("belongs to user {squatter}")), "{why}");
        assert_eq!(find().unwrap(), server.path());
        // The name is taken for this user wherever the first cycle is, and the folder serves again.
        let again = as_user(user, &groups, || open(&name, group, None)).unwrap_err();
        assert!(again.to_string().contains("answers at"), "{again}");
        let second = as_user(user, &groups, || open(&format!("{name}-2"), group, None)).unwrap();
        assert_eq!(second.1.path().parent(), Some(&*folder));
        assert!(accept(&fake).is_err(), "a client or the cycle connected to the squatter's socket");
        drop((second, server));
        assert!(!folder.exists(), "the spare folder goes with its last socket");
    }
}

/// systemd makes such a folder for the service: `RuntimeDirectory=onbeat/NAME`.
// feature(ipc): clients find the interface of a service in the folder that systemd made for it
#[test]
fn folders_below_run_onbeat_are_searched_by_their_owner() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let [user, member, group, stranger] = [20, 21, 22, 23].map(number);
    let _ = fs::DirBuilder::new().mode(0o755).create("/run/onbeat");
    let folder = Gone(format!("/run/onbeat/service-{user}").into());
    fs::DirBuilder::new().mode(0o750).create(&folder.0).unwrap();
    std::os::unix::fs::chown(&folder.0, Some(user), Some(group)).unwrap();
    let name = format!("service-{user}");
    let (_ends, server) = as_user(user, &[group], || open(&name, Some(group), Some(&folder.0))).unwrap();
    for (who, groups) in [(0, vec![]), (user, vec![]), (member, vec![group])] {
        let found =
            as_user(who, &groups, || Client::named(&name).map(|ipc| (ipc.user(), ipc.command().is_ok())));
        assert_eq!(found.unwrap(), (user, true), "user {who}");
    }
    as_user(stranger, &[], || {
        assert!(matches!(Client::named(&name), Err(FindError::NoServer { .. })));
    });
    drop(server);
}

#[test]
fn a_cycle_of_ones_own_is_found_though_others_let_one_in() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let [user, group, member] = [11, 12, 13].map(number);
    let folders = [user, member].map(|who| Gone(format!("/tmp/onbeat-{who}-{group}").into()));
    let name = format!("twice-{user}");
    let ipcs = [user, member].map(|who| as_user(who, &[group], || open(&name, Some(group), None)).unwrap());
    for who in [user, member] {
        let found = as_user(who, &[group], || Client::named(&name).unwrap().user());
        assert_eq!(found, who);
    }
    drop((ipcs, folders));
}

// feature(ipc): sockets of other users that never answer are waited for no longer than one of them
#[test]
fn silent_foreign_sockets_share_one_timeout() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let [user, seeker] = [14, 15].map(number);
    let folder = Gone(format!("/tmp/onbeat-{user}").into());
    let silent: Vec<OwnedFd> = as_user(user, &[], || {
        fs::DirBuilder::new().mode(0o755).create(&folder.0).unwrap();
        let path = |index| folder.0.join(format!("silent-{user}-{index}.sock"));
        (0..3).map(|index| bound_for_all(&path(index))).collect()
    });
    as_user(seeker, &[], || drop(Client::all()));
    let asked = silent.iter().filter(|socket| accept(socket).is_ok()).count();
    assert_eq!(asked, 1);
}

/// A socket that every user may connect to.
fn bound_for_all(path: &Path) -> OwnedFd {
    let socket = bound(path, SocketType::SEQPACKET);
    fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    rustix::io::ioctl_fionbio(&socket, true).unwrap();
    socket
}
