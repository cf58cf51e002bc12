//! Hostile peers: the limits of their reach, and the cycle's side unaffected.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

use std::io::{BufRead, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use onbeat_ipc::channel::Kind;
use onbeat_ipc::client::{AttachError, Client, ForceError, LeaseError, PortError};
use onbeat_ipc::command::{Command, Read};
use onbeat_ipc::service::protocol::Request;
use rustix::fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate};
use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketType,
};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use support::{Folder, eventually, state};

/// Sends a request as a program in any language would; returns the connection, the reply and the
/// descriptors.
fn ask(path: &Path, request: &[u8]) -> (OwnedFd, Vec<u8>, Vec<OwnedFd>) {
    let line = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::connect(&line, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::send(&line, request, SendFlags::empty()).unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut reply = vec![0; 2048];
    let mut slices = [IoSliceMut::new(&mut reply)];
    let length = rustix::net::recvmsg(&line, &mut slices, &mut control, RecvFlags::empty()).unwrap().bytes;
    reply.truncate(length);
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    (line, reply, files.flatten().collect())
}

// feature(ipc): readers cannot write, no process can shorten a region
#[test]
fn clients_cannot_write_state_or_truncate_regions() {
    let folder = Folder::new();
    let (mut ends, _door) = folder.builder("robot").open().unwrap();
    ends.state.publish(&state(1));
    let socket = folder.socket("robot");
    let (_line, _, shared) = ask(&socket, &Request::Attach.emit());
    let (_lease, _, command) = ask(&socket, &Request::Lease.emit());
    assert_eq!((shared.len(), command.len()), (3, 1));
    for file in &shared {
        assert_eq!(rustix::io::pwrite(file, b"x", 0), Err(Errno::PERM));
        // Reopening the descriptor through /proc gives no write access either.
        let again = std::fs::File::options()
            .write(true)
            .open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file)));
        assert!(again.is_err() || rustix::io::pwrite(again.unwrap(), b"x", 0) == Err(Errno::PERM));
        assert!(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 4096).is_err());
    }
    for file in shared.iter().chain(&command) {
        assert_eq!(ftruncate(file, 0), Err(Errno::PERM));
        assert_eq!(ftruncate(file, 1 << 24), Err(Errno::PERM));
        assert_eq!(fcntl_add_seals(file, SealFlags::WRITE), Err(Errno::PERM), "the seals are sealed");
    }
    // A peer may punch holes into the command region: the cycle then finds no command, and
    // continues.
    fallocate(&command[0], FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 4096).unwrap();
    let mut taken = ends.command.blank();
    assert_eq!(ends.command.newest(&mut taken), Read::Nothing);
    assert_eq!(Client::open(&socket).unwrap().state().read(), Ok(state(1)));
}

// feature(ipc): a holder that scribbles over its region
#[test]
fn holder_that_corrupts_its_region_is_survived() {
    let folder = Folder::new();
    let (mut ends, _door) = folder.builder("robot").open().unwrap();
    let socket = folder.socket("robot");
    let (line, _, files) = ask(&socket, &Request::Lease.emit());
    let done = AtomicBool::new(false);
    let mut command = ends.command.blank();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(5);
            for round in 0..30_000_u64 {
                let mut words = [0_u8; 512];
                random.fill(&mut words);
                // Small numbers now and then, so that some of the content looks valid.
                if round % 2 == 0 {
                    words.chunks_exact_mut(8).for_each(|word| word[1..].fill(0));
                }
                // Within the region, 896 bytes; writes beyond the end are refused by the seal.
                let place = random.usize(8..112);
                let count = random.usize(1..=(112 - place).min(64));
                rustix::io::pwrite(&files[0], &words[..8 * count], 8 * place as u64).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            ends.command.newest(&mut command);
            assert!(command.axes.len() <= 2 && command.signals.len() <= 2);
        }
    });
    drop((line, files));
    // Other tests of this process start programs, which inherit its descriptors between fork and
    // exec.
    let mut next = eventually("the lease is free", || Client::open(&socket).unwrap().command().ok());
    next.send(&Command { time_to_live_ns: 77, ..Command::default() }).unwrap();
    eventually("the next holder is heard", || {
        (ends.command.newest(&mut command) == Read::New && command.time_to_live_ns == 77).then_some(())
    });
}

#[test]
fn invalid_request_is_answered_and_the_server_continues() {
    let folder = Folder::new();
    let (_ends, _door) = folder.builder("robot").open().unwrap();
    let socket = folder.socket("robot");
    for wrong in [&b"GET / HTTP/1.0\r\n\r\n"[..], &[0; 200], b"onbd\x02\x00\x09\x00"] {
        let (_line, reply, files) = ask(&socket, wrong);
        assert!(String::from_utf8_lossy(&reply).contains("is no request"), "{reply:?}");
        assert!(files.is_empty());
    }
    let (_line, reply, _) = ask(&socket, b"onbd\x07\x00\x01\x00");
    assert!(String::from_utf8_lossy(&reply).contains("version 2 of the IPC, the client 7"), "{reply:?}");
    // A holder that sends another request on the lease's connection loses the lease, and gets a
    // reply.
    let (line, _, lease) = ask(&socket, &Request::Lease.emit());
    assert_eq!(lease.len(), 1);
    rustix::net::send(&line, &Request::Attach.emit(), SendFlags::empty()).unwrap();
    let mut reply = [0; 256];
    let (_, length) = rustix::net::recv(&line, &mut reply, RecvFlags::empty()).unwrap();
    assert!(String::from_utf8_lossy(&reply[..length]).contains("the lease has ended"));
    assert!(Client::open(&socket).unwrap().command().is_ok());
}

// feature(ipc): many clients without rights leave connections free for clients with the right to command
#[test]
fn too_many_clients_are_refused_with_a_reason() {
    let folder = Folder::new();
    let (_ends, _door) = folder.builder("robot").open().unwrap();
    let socket = folder.socket("robot");
    let mut inside = Vec::new();
    let refused = loop {
        match Client::open(&socket) {
            Ok(ipc) => inside.push(ipc),
            Err(error) => break error,
        }
        assert!(inside.len() < 2_000);
    };
    assert!(matches!(refused, AttachError::Refused { .. }), "{refused}");
    assert!(refused.to_string().contains("programs are attached already"), "{refused}");
    inside.truncate(10);
    eventually("there is room again", || Client::open(&socket).ok());
}

/// Clients that may only read cannot lock out clients that may command.
// feature(ipc): many clients without rights leave connections free for clients with the right to command
// feature(ipc): limits for each user at the server
#[test]
fn many_readers_leave_space_for_commanding_clients() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let folder = Folder::new();
    let (_ends, _door) = folder.builder("robot").open().unwrap();
    let socket = folder.socket("robot");
    std::thread::scope(|scope| {
        let crowd = scope.spawn(|| {
            // For this thread only, irrevocably.
            set_thread_gid(Gid::from_raw(NOBODY)).unwrap();
            set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
            let mut inside = Vec::new();
            loop {
                match Client::open(&socket) {
                    Ok(ipc) => inside.push(ipc),
                    Err(error) => break (inside, error),
                }
                assert!(inside.len() < 2_000);
            }
        });
        let (inside, refused) = crowd.join().unwrap();
        assert!(refused.to_string().contains("programs of user 65534 are attached already"), "{refused}");
        assert!(inside.len() > 10, "{}", inside.len());
        // They cannot lock out another such client, either.
        let other = scope.spawn(|| {
            set_thread_gid(Gid::from_raw(NOBODY - 1)).unwrap();
            set_thread_uid(Uid::from_raw(NOBODY - 1)).unwrap();
            Client::open(&socket).map(drop)
        });
        other.join().unwrap().unwrap();
        let ipc = Client::open(&socket).unwrap();
        assert!(ipc.command().is_ok());
        drop(inside);
    });
}

/// A member through a supplementary group, as desktop users are.
#[test]
fn group_may_be_a_supplementary_group() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    let folder = Folder::new();
    let mut builder = folder.builder("robot");
    builder.group(4_242);
    let (_ends, _door) = builder.open().unwrap();
    let socket = folder.socket("robot");
    for (groups, may) in [(vec![7, 4_242, 9], true), (vec![7, 9], false), ((100..180).collect(), false)] {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let groups: Vec<Gid> = groups.iter().map(|&group| Gid::from_raw(group)).collect();
                set_thread_groups(&groups).unwrap();
                set_thread_gid(Gid::from_raw(NOBODY)).unwrap();
                set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
                let lease = Client::open(&socket).unwrap().command();
                match (may, lease) {
                    (true, Ok(_)) | (false, Err(LeaseError::NotPermitted { .. })) => {}
                    (_, other) => panic!("in {groups:?}: {other:?}"),
                }
            });
        });
    }
}

const ROLE: &str = "ONBEAT_TEST_ROLE";
const SOCKET: &str = "ONBEAT_TEST_SOCKET";
const NOBODY: u32 = 65_534;

// feature(signals): rights to force inputs and outputs
// feature(ipc): permissions by user and group
#[test]
fn other_user_may_read_and_only_a_member_commands() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    for (group, role) in [(None, "stranger"), (Some(4_242), "stranger"), (Some(NOBODY), "member")] {
        let folder = Folder::new();
        let mut builder = folder.builder("robot");
        if let Some(group) = group {
            builder.group(group);
        }
        let mut port = builder.port("imu", Kind::Stream { size: 64 }).unwrap();
        port.bind();
        let (mut ends, _door) = builder.open().unwrap();
        ends.state.publish(&state(3));
        // The other user may not read the folder of this binary.
        let program = folder.0.join("visitor");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let mut process = Process::new(program);
        process.args(["--exact", "as_another_user", "--ignored", "--nocapture"]);
        process.env(ROLE, role).env(SOCKET, folder.socket("robot")).current_dir("/");
        process.uid(NOBODY).gid(NOBODY).stdin(Stdio::null());
        let output = process.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{role} with {group:?}: {said}");
        assert!(said.contains("looked"), "{said}");
    }
}

#[test]
#[ignore = "what the process of the test above does as another user"]
fn as_another_user() {
    let (Ok(role), Some(socket)) = (std::env::var(ROLE), std::env::var_os(SOCKET)) else { return };
    let ipc = Client::open(&PathBuf::from(socket)).unwrap();
    assert_eq!(ipc.state().read(), Ok(state(3)));
    let forced = ipc.force(1, types::Value::Bool(true), std::time::Duration::from_secs(1));
    match (role.as_str(), ipc.command(), ipc.port("imu"), forced) {
        ("member", Ok(_), Ok(_), Ok(())) => {}
        (
            "stranger",
            Err(LeaseError::NotPermitted { why }),
            Err(PortError::NotPermitted { .. }),
            Err(ForceError::NotPermitted { .. }),
        ) => {
            assert!(why.contains("user 65534 may only look"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    eprintln!("looked");
}

/// A forked child inherits the connection: the lease ends with the process that took it all the
/// same.
// feature(ipc): a lease ends with its process, even if a child has the connection
#[test]
fn lease_ends_with_its_process_though_a_child_has_it() {
    let folder = Folder::new();
    let (mut ends, _door) = folder.builder("robot").open().unwrap();
    let mut process = Process::new(std::env::current_exe().unwrap());
    process.args(["--exact", "with_a_child", "--ignored", "--nocapture"]);
    process.env(SOCKET, folder.socket("robot")).stdin(Stdio::null()).stdout(Stdio::null());
    let mut holder = process.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(holder.stderr.take().unwrap());
    let mut child = String::new();
    said.read_line(&mut child).unwrap();
    let child = child.trim().parse().ok().and_then(rustix::process::Pid::from_raw).expect(&child);
    let ipc = Client::open(&folder.socket("robot")).unwrap();
    assert!(matches!(ipc.command(), Err(LeaseError::Taken { process }) if process == holder.id()));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let next = ipc.command();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    next.unwrap().send(&Command { time_to_live_ns: 77, ..Command::default() }).unwrap();
    let mut command = ends.command.blank();
    assert_eq!((ends.command.newest(&mut command), command.time_to_live_ns), (Read::New, 77));
}

#[test]
#[ignore = "what the process of the test above does"]
fn with_a_child() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let (line, _, lease) = ask(Path::new(&socket), &Request::Lease.emit());
    assert_eq!(lease.len(), 1);
    // As a fork without exec leaves it: the descriptor stays open in the child.
    rustix::io::fcntl_setfd(&line, rustix::io::FdFlags::empty()).unwrap();
    let mut child = Process::new("sleep").arg("600").stderr(Stdio::null()).spawn().unwrap();
    eprintln!("{}", child.id());
    child.wait().unwrap();
}

/// The kernel counts descriptors in flight over all processes of a user: above its limit no process
/// of the user can send any.
// feature(ipc): limits for each user at the server
#[test]
fn clients_that_never_read_do_not_exhaust_descriptors() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to become another user");
    }
    // The limit is the limit of open files, so it is set in a separate process.
    let mut process = Process::new(std::env::current_exe().unwrap());
    process
        .args(["--exact", "flooded", "--ignored", "--nocapture"])
        .env(ROLE, "flooded")
        .stdin(Stdio::null());
    let output = process.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "what the process of the test above does"]
fn flooded() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let limit = rustix::process::Rlimit { current: Some(1024), maximum: Some(1024) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let user = 1_000_000 + std::process::id();
    let become_user = |user: u32| {
        set_thread_gid(Gid::from_raw(user)).unwrap();
        set_thread_uid(Uid::from_raw(user)).unwrap();
    };
    let folder = Folder::new();
    std::os::unix::fs::chown(&folder.0, Some(user), None).unwrap();
    let socket = folder.socket("robot");
    std::thread::scope(|scope| {
        let builder = folder.builder("robot");
        let cycle = scope.spawn(|| (become_user(user), builder.open().unwrap()).1);
        let (_ends, _door) = cycle.join().unwrap();
        let flood = scope.spawn(|| {
            become_user(NOBODY);
            let address = SocketAddrUnix::new(&socket).unwrap();
            let line = |_| {
                let line = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
                rustix::net::connect(&line, &address).unwrap();
                line
            };
            let lines: Vec<OwnedFd> = (0..126).map(line).collect();
            for _ in 0..100 {
                for line in &lines {
                    let _ = rustix::net::send(
                        line,
                        &Request::Attach.emit(),
                        SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
                    );
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            lines
        });
        let lines = flood.join().unwrap();
        let same_user = scope.spawn(|| {
            become_user(user);
            Client::open(&socket).unwrap().command().unwrap();
            // Descriptors that this user sends elsewhere get through, too.
            let (here, _there) = rustix::net::socketpair(
                AddressFamily::UNIX,
                SocketType::STREAM,
                rustix::net::SocketFlags::empty(),
                None,
            )
            .unwrap();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
            let file = [std::os::fd::AsFd::as_fd(&here)];
            assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&file)));
            let byte = [std::io::IoSlice::new(b"x")];
            rustix::net::sendmsg(&here, &byte, &mut control, SendFlags::empty()).unwrap();
        });
        same_user.join().unwrap();
        drop(lines);
    });
}

#[test]
fn second_attach_needs_another_connection() {
    let folder = Folder::new();
    let (_ends, _door) = folder.builder("robot").open().unwrap();
    let (line, _, files) = ask(&folder.socket("robot"), &Request::Attach.emit());
    assert_eq!(files.len(), 3);
    rustix::net::send(&line, &Request::Attach.emit(), SendFlags::empty()).unwrap();
    let mut reply = [0; 256];
    let (_, length) = rustix::net::recv(&line, &mut reply, RecvFlags::empty()).unwrap();
    let said = String::from_utf8_lossy(&reply[..length]);
    assert!(said.contains("attach with another connection"), "{said}");
}

#[test]
fn a_position_that_waits_for_the_cycle_holds_up_no_client() {
    use onbeat_ipc::reference::{Given, Purpose};
    let folder = Folder::new();
    // Nothing takes the request here.
    let (_ends, _door) = folder.builder("robot").open().unwrap();
    let socket = folder.socket("robot");
    let given = Given { axis: 0, position: 0.5, purpose: Purpose::Set };
    let (asked, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            asked.send(()).unwrap();
            let (_, reply, _) = ask(&socket, &Request::Position(given).emit());
            (std::time::Instant::now(), reply)
        });
        told.recv().unwrap();
        let mut let_in = Vec::new();
        while !waits.is_finished() {
            Client::open(&socket).unwrap();
            let_in.push(std::time::Instant::now());
        }
        let (answered, reply) = waits.join().unwrap();
        assert!(String::from_utf8_lossy(&reply).contains("did not answer in time"), "{reply:?}");
        // The server gives the cycle 200 ms; clients were let in meanwhile.
        let before = |it: &std::time::Instant| answered.saturating_duration_since(*it).as_millis();
        assert!(let_in.iter().any(|it| (20..150).contains(&before(it))), "{}", let_in.len());
    });
}
