use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::cell;
use crate::command::{self, Read, Twist};
use crate::region::{self, Region};
use crate::server::{Builder, Endpoints, OpenError, Server};
use crate::state::region::Rows;
use crate::sys::mapping::Use;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("onbeat-attach-{}-{number}", std::process::id())))
    }

    fn open(&self, name: &str) -> Result<(Endpoints, Server), OpenError> {
        let mut builder = Builder::new(name, &Description::default());
        builder.folder(&self.0);
        builder.open()
    }

    /// Leaves a socket without a listener, as a killed cycle does.
    fn leave_dead(&self, name: &str) -> PathBuf {
        let (path, listener): (PathBuf, OwnedFd) =
            place::listen_at(&self.0, name, place::CYCLE, 0o600, None).unwrap();
        drop(listener);
        path
    }

    fn only(&self, name: Option<&str>) -> Result<Client, FindError> {
        Client::only(&[self.0.join("not there"), self.0.clone()], name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn without_a_cycle_the_error_says_where_it_was_looked_for() {
    let folder = Folder::new();
    let error = folder.only(None).unwrap_err().to_string();
    assert!(error.starts_with("no cycle runs: no process answers in "), "{error}");
    assert!(error.contains(&*folder.0.to_string_lossy()) && error.contains("ONBEAT_IPC"), "{error}");
    let _ipc = folder.open("one").unwrap();
    let error = folder.only(Some("two")).unwrap_err().to_string();
    assert!(error.starts_with("no cycle called `two` runs"), "{error}");
}

// feature(ipc): the one running cycle is found past dead ones
#[test]
fn the_one_running_cycle_is_found_past_the_sockets_of_dead_ones() {
    let folder = Folder::new();
    let dead = [folder.leave_dead("a"), folder.leave_dead("z")];
    folder.leave_dead("m");
    let _ipc = folder.open("m").unwrap();
    assert_eq!(folder.only(None).unwrap().name(), "m");
    // A client that only reads removes nothing, and opening one interface removes no socket of
    // another.
    assert!(dead[0].exists() && dead[1].exists());
}

#[test]
fn several_cycles_are_listed() {
    let folder = Folder::new();
    let _ipcs = [folder.open("one").unwrap(), folder.open("two").unwrap()];
    let error = folder.only(None).unwrap_err();
    assert!(matches!(&error, FindError::Several { found } if found.len() == 2));
    let (text, process) = (error.to_string(), std::process::id());
    let user = rustix::process::geteuid().as_raw();
    for name in ["one", "two"] {
        let path = folder.0.join(format!("{name}.sock"));
        assert!(
            text.contains(&format!("{name} (process {process}, user {user}): {}", path.display())),
            "{text}"
        );
    }
    assert_eq!(folder.only(Some("two")).unwrap().name(), "two");
}

#[test]
fn second_cycle_of_a_name_is_refused() {
    let folder = Folder::new();
    let first = folder.open("robot").unwrap();
    let error = folder.open("robot").unwrap_err().to_string();
    assert!(error.contains("answers at") && error.contains("--ipc NAME"), "{error}");
    assert!(folder.only(None).is_ok(), "the first one is as it was");
    drop(first);
    let _second = folder.open("robot").unwrap();
    assert!(folder.only(None).is_ok());
}

#[test]
fn a_folder_that_others_may_write_to_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let _ipc = folder.open("robot").unwrap();
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(folder.only(None), Err(FindError::NoServer { .. })));
    let error = folder.open("other").unwrap_err().to_string();
    assert!(error.contains("mode 777"), "{error}");
}

#[test]
fn a_folder_of_another_user_is_not_trusted() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("needs root, to give a folder away");
    }
    let folder = Folder::new();
    let _ipc = folder.open("robot").unwrap();
    std::os::unix::fs::chown(&folder.0, Some(65_534), None).unwrap();
    assert!(matches!(folder.only(None), Err(FindError::NoServer { .. })));
    let error = folder.open("other").unwrap_err().to_string();
    assert!(error.contains("belongs to user 65534"), "{error}");
}

/// A server without space sends the reason and closes, before or after the client has sent its
/// request.
#[test]
fn refusal_before_a_hangup_is_read() {
    use rustix::net::{SendFlags, accept, send};
    let folder = Folder::new();
    let (path, listener) = place::listen_at(&folder.0, "robot", place::CYCLE, 0o600, None).unwrap();
    let refusal = Reply { status: Status::Failed, numbers: [0; 3], text: "full".into() };
    let shut = |server: OwnedFd| assert!(send(&server, &refusal.emit(), SendFlags::NOSIGNAL).unwrap() > 0);
    // Before the request.
    let line = Line::to(&path).unwrap();
    shut(accept(&listener).unwrap());
    assert_eq!(line.ask(Request::Attach).unwrap().0, refusal);
    // After the request, which is never read.
    let line = Line::to(&path).unwrap();
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| line.ask(Request::Attach).unwrap().0);
        let server = accept(&listener).unwrap();
        let mut wait = [rustix::event::PollFd::new(&server, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut wait, None).unwrap();
        shut(server);
        assert_eq!(answer.join().unwrap(), refusal);
    });
    // A server that closes without a reason is reported as absent.
    let line = Line::to(&path).unwrap();
    drop(accept(&listener).unwrap());
    assert!(matches!(line.ask(Request::Attach), Err(AttachError::NoServer { .. })));
}

#[test]
fn names_that_are_no_file_names_are_refused() {
    let folder = Folder::new();
    let long = "x".repeat(65);
    for name in ["", ".", "a/b", "..", "a\0b", &long] {
        assert!(matches!(folder.open(name), Err(OpenError::Name { .. })), "{name:?}");
    }
}

/// The socket was removed, and another cycle has taken the path.
#[test]
fn ending_cycle_removes_only_its_own_socket() {
    let folder = Folder::new();
    let first = folder.open("robot").unwrap();
    let path = folder.0.join("robot.sock");
    std::fs::remove_file(&path).unwrap();
    let _second = folder.open("robot").unwrap();
    drop(first);
    assert!(path.exists() && folder.only(None).is_ok(), "the second one is still found");
}

/// Mapping of a holder, kept after it returned the lease or handed to a child.
fn mapping(file: &OwnedFd) -> cell::Writer<Region> {
    region::writer(Region::open(command::REGION, file.as_fd(), Use::Store).unwrap()).unwrap()
}

/// Writes a command with this twist into a region, as the holder's own code does.
fn write(region: &mut cell::Writer<Region>, x: f64) {
    let rows = Rows::default();
    let mut publication = vec![0; command::length(rows)];
    command::encode(
        &command::Command { twist: Some(Twist::new(x, 0.0, 0.0)), ..blank() },
        rows,
        &mut publication,
    );
    region.publish(&publication);
}

fn blank() -> command::Command {
    command::Command { time_to_live_ns: 1, ..command::Command::default() }
}

/// A cycle's interface with a holder: both ends, the holder's connection and region, and space for
/// a command.
fn held(folder: &Folder) -> (Endpoints, Server, Line, cell::Writer<Region>, command::Command) {
    let (ends, server) = folder.open("robot").unwrap();
    let (line, file) = lease(server.path());
    let heard = ends.command.blank();
    (ends, server, line, mapping(&file), heard)
}

/// Takes a lease as a program in any language would: the connection that holds it, and the region's
/// descriptor.
fn lease(path: &Path) -> (Line, OwnedFd) {
    let line = Line::to(path).unwrap();
    let (reply, mut files) = line.ask(Request::Lease).unwrap();
    assert_eq!(reply.status, Status::Done);
    (line, files.remove(0))
}

/// Returns once the server has noticed every client that hung up before.
fn door_has_looked(path: &Path) {
    let line = Line::to(path).unwrap();
    assert_eq!(line.ask(Request::Port("none")).unwrap().0.status, Status::NoSuchPort);
}

#[test]
fn former_holder_is_ignored_without_a_new_holder() {
    let folder = Folder::new();
    let (mut ends, server, line, mut former, mut heard) = held(&folder);
    write(&mut former, 0.25);
    assert_eq!((ends.command.newest(&mut heard), heard.twist.unwrap().x.0), (Read::New, 0.25));
    write(&mut former, 0.5);
    drop(line);
    door_has_looked(server.path());
    // The last command of the former holder is read, and no later one.
    assert_eq!((ends.command.newest(&mut heard), heard.twist.unwrap().x.0), (Read::New, 0.5));
    for _ in 0..20 {
        write(&mut former, 0.75);
        assert_eq!(ends.command.newest(&mut heard), Read::Same);
    }
    assert_eq!(heard.twist.unwrap().x.0, 0.5);
}

#[test]
fn busy_former_holder_does_not_lock_out_the_next() {
    let folder = Folder::new();
    let (mut ends, server, line, mut former, mut heard) = held(&folder);
    drop(line);
    let (_line, file) = lease(server.path());
    let mut holder = mapping(&file);
    for cycle in 1..=20 {
        write(&mut former, 0.75);
        write(&mut holder, f64::from(cycle));
        assert_eq!(
            (ends.command.newest(&mut heard), heard.twist.unwrap().x.0),
            (Read::New, f64::from(cycle))
        );
    }
}

/// The same from another thread at full speed, while holders follow each other quickly.
// feature(ipc): commands of a former lease holder are ignored at any rate; its last command expires
#[test]
fn quick_handovers_despite_a_busy_former_holder_are_granted() {
    let folder = Folder::new();
    let (mut ends, server, line, mut former, mut heard) = held(&folder);
    drop(line);
    let (line, _file) = lease(server.path());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                write(&mut former, 0.75);
            }
        });
        let _stop = AtEnd(&stop);
        drop(line);
        for round in 1..=100 {
            let (_line, file) = lease(server.path());
            write(&mut mapping(&file), f64::from(round));
            let read = ends.command.newest(&mut heard);
            assert_eq!((read, heard.twist.unwrap().x.0), (Read::New, f64::from(round)));
        }
    });
}

/// Sets a flag when it is dropped, also by a panic.
struct AtEnd<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A forked child has the connection too: a lease that is returned is returned for the child as
/// well.
// feature(ipc): a lease ends with its process, even if a child has the connection
#[test]
fn dropped_lease_is_released_though_a_child_has_it() {
    let folder = Folder::new();
    let (_ends, server) = folder.open("robot").unwrap();
    let (line, _file) = lease(server.path());
    // As a fork without exec leaves it: the descriptor stays open in the child.
    rustix::io::fcntl_setfd(&line, rustix::io::FdFlags::empty()).unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    drop(line);
    let line = Line::to(server.path()).unwrap();
    let (reply, _) = line.ask(Request::Lease).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(reply.status, Status::Done);
}

// feature(ipc): attaching to the socket of another program is reported as such
#[test]
fn socket_of_another_program_is_identified() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("stream.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let sentence = Client::open(&path).unwrap_err().to_string();
    assert!(
        sentence.ends_with("expected the socket of a cycle, found that of another program"),
        "{sentence}"
    );
}
