//! Text requests: answers, refusals, and clients that mean harm.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onbeat_ipc::client::Client as Cycle;
use onbeat_ipc::server::{OpenError, PlaceError};
use onbeat_ipc::text::{AskError, Client, Kind, LONGEST_ANSWER, LONGEST_REQUEST, Server};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};
use support::Folder;

const KIND: Kind = Kind { suffix: "test", name: "test", start: "this test" };

/// A server that answers with the request in capitals, and refuses "no".
fn shouting(folder: &Folder, name: &str) -> Result<Server, OpenError> {
    Server::open_in(&folder.0, &KIND, name, |text| match text {
        "no" => Err("no is no answer".to_owned()),
        "long" => Ok("ä".repeat(LONGEST_ANSWER)),
        text => Ok(text.to_uppercase()),
    })
}

fn connected(path: &Path) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

/// Answer to bytes that may be no request, and true if the connection is still there afterwards.
fn told(path: &Path, bytes: &[u8]) -> (String, bool) {
    let socket = connected(path);
    rustix::io::ioctl_fionbio(&socket, false).unwrap();
    send(&socket, bytes, SendFlags::NOSIGNAL).unwrap();
    let mut buffer = [0; 1000];
    let (length, _) = recv(&socket, &mut buffer, RecvFlags::empty()).unwrap();
    let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
    let again = send(&socket, b"again", SendFlags::NOSIGNAL).is_ok();
    (text, again && recv(&socket, &mut buffer, RecvFlags::empty()).is_ok_and(|(length, _)| length > 0))
}

// feature(ipc): text requests to a program that is no cycle: an answer or a refusal for each
#[test]
fn a_request_is_answered_or_refused() {
    let folder = Folder::new();
    let server = shouting(&folder, "one").unwrap();
    assert_eq!((server.name().as_str(), server.path()), ("one", &*folder.0.join("one.test")));
    let client = Client::open(server.path()).unwrap();
    for _ in 0..3 {
        assert_eq!(client.ask("who is there").unwrap(), Ok("WHO IS THERE".to_owned()));
        assert_eq!(client.ask("no").unwrap(), Err("no is no answer".to_owned()));
    }
    let long = client.ask("long").unwrap().unwrap();
    assert_eq!(long, "ä".repeat(LONGEST_ANSWER / 2 - 1), "cut between two letters");
    let too_long = client.ask(&"x".repeat(LONGEST_REQUEST + 1));
    assert!(matches!(too_long, Err(AskError::Long { length }) if length == LONGEST_REQUEST + 1));
    assert_eq!(client.ask(&"x".repeat(LONGEST_REQUEST)).unwrap().unwrap().len(), LONGEST_REQUEST);
    let path = server.path().to_owned();
    drop(server);
    assert!(!path.exists());
    assert!(matches!(client.ask("still there?"), Err(AskError::Silent { .. })));
    assert!(matches!(Client::open(&path), Err(AskError::System { .. })));
}

#[test]
fn a_name_has_one_program_and_a_dead_one_leaves_it_free() {
    let folder = Folder::new();
    let server = shouting(&folder, "one").unwrap();
    assert!(matches!(shouting(&folder, "one"), Err(OpenError::Place(PlaceError::Taken { .. }))));
    for name in ["", ".one", "a/b"] {
        assert!(matches!(shouting(&folder, name), Err(OpenError::Name { .. })), "{name}");
    }
    // As after a kill: the socket exists, and no process listens.
    let dead = folder.0.join("dead.test");
    drop(bound(&dead));
    let second = shouting(&folder, "dead").unwrap();
    assert_eq!(Client::open(&dead).unwrap().ask("a").unwrap(), Ok("A".to_owned()));
    // It is nothing that cycles' clients take for a cycle.
    assert!(Cycle::all().iter().all(|cycle| !["one", "dead"].contains(&cycle.name())));
    drop((server, second));
}

fn bound(path: &Path) -> OwnedFd {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::listen(&socket, 1).unwrap();
    socket
}

// feature(ipc): clients of a text socket that send garbage or megabytes, read nothing or never close delay no other client
#[test]
fn hostile_clients_block_no_other_client() {
    let folder = Folder::new();
    let answered = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&answered);
    let server = Server::open_in(&folder.0, &KIND, "one", move |text| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(text.repeat(100))
    });
    let server = server.unwrap();
    let path = server.path();
    let is_answered = || Client::open(path).unwrap().ask("a").unwrap() == Ok("a".repeat(100));

    let no_text = "-a request that is no UTF-8, expected a line of text".to_owned();
    assert_eq!(told(path, &[0xFF, 0xFE, 0]), (no_text, false));
    let long = format!("-a request of more than {LONGEST_REQUEST} bytes, expected a line");
    assert_eq!(told(path, &[b'x'; 100_000]), (long.clone(), false));
    let megabytes = vec![b'x'; 8 << 20];
    let socket = connected(path);
    assert!(send(&socket, &megabytes, SendFlags::NOSIGNAL).is_err(), "the system does not take them");
    assert!(is_answered());

    // Silent clients, more than fit; each stays connected until others need its place.
    let silent: Vec<OwnedFd> = (0..100).map(|_| connected(path)).collect();
    assert!(is_answered());
    // A client that sends requests without end, and takes no answer.
    let deaf = connected(path);
    let sent = (0..100_000).take_while(|_| send(&deaf, b"hear me", SendFlags::NOSIGNAL).is_ok()).count();
    assert!(is_answered() && sent > 0);
    let before = answered.load(Ordering::Relaxed);
    assert!(is_answered() && answered.load(Ordering::Relaxed) > before);
    drop(silent);
    // The end of the server waits for none of them.
    let _still = connected(path);
    drop(server);
}
