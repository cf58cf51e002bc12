//! One MainDevice to an interface, among the programs of one network namespace.
//!
//! The lock is a name: an abstract Unix socket (unix(7)) named after the interface's index. The
//! kernel gives it to one process, separates it by network namespace as it does indices, and
//! releases it when that process ends in any way. No file is touched. A program that finds it taken
//! connects: the kernel names the holder's process, and the holder names its activity.
//!
//! Any user may take any free name. So the name alone proves nothing: its holder must also have an
//! EtherCAT packet socket on the interface, which needs CAP_NET_RAW and which the kernel lists for
//! every user. An unprivileged user therefore keeps no program from the bus. If such a user has the
//! name, the list of sockets alone is the lock: a program that opens the interface has a socket in
//! the list before it reads the list, so that of two in the same instant at most one continues.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, fs};

use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType};

use crate::sys::packet_socket::interface_index;
use crate::sys::peer;

/// The interface is ours until this is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct InterfaceLock {
    listener: Arc<UnixListener>,
    answering: Option<JoinHandle<()>>,
}

/// A program that has an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Its process; `None` if the kernel shows only the user.
    pub process: Option<u32>,
    /// Its user; `None` if the kernel does not show that either.
    pub user: Option<u32>,
    /// Description of itself; empty if it says nothing.
    pub doing: String,
}

/// Outcome of taking the lock.
#[derive(Debug)]
pub(crate) enum Taken {
    /// It was free.
    Ours(InterfaceLock),
    /// Another MainDevice has it.
    Held(Owner),
    /// Its name is taken by a process without an EtherCAT socket on the interface.
    Squatted(Owner),
}

/// Takes the lock of the interface with this index for a program that is `doing` something; `own`
/// is the inode number of its packet socket.
pub(crate) fn take(index: u32, own: u64, doing: &str) -> io::Result<Taken> {
    for _ in 0..ATTEMPTS {
        match UnixListener::bind_addr(&SocketAddr::from_abstract_name(name(index))?) {
            Ok(listener) => return InterfaceLock::answering(listener, doing.to_owned()).map(Taken::Ours),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
        if let Some(owner) = ask(index)? {
            return Ok(judge(owner, ethercat_sockets(index, own)));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(judge(Owner::default(), ethercat_sockets(index, own)))
}

/// The program that has the name of this interface, if there is one. Its sockets are not checked
/// here, but when the name is taken.
///
/// # Errors
/// No such interface, or the operating system refuses to say.
pub fn owner(interface: &str) -> io::Result<Option<Owner>> {
    let index = interface_index(interface).ok_or(io::ErrorKind::NotFound)?;
    ask(index)
}

/// Decides if the holder of the name owns the interface: `sockets` are the users of all other
/// EtherCAT sockets on the interface, if the kernel lists them.
fn judge(owner: Owner, sockets: Option<Vec<u32>>) -> Taken {
    match sockets {
        None => Taken::Held(owner),
        Some(users) if owner.user.is_some_and(|user| users.contains(&user)) => Taken::Held(owner),
        Some(users) => match users.first() {
            None => Taken::Squatted(owner),
            Some(&user) => Taken::Held(Owner { user: Some(user), ..Owner::default() }),
        },
    }
}

impl InterfaceLock {
    fn answering(listener: UnixListener, doing: String) -> io::Result<Self> {
        let listener = Arc::new(listener);
        let ear = Arc::clone(&listener);
        let answering = thread::Builder::new()
            .name("interface-lock".to_owned())
            .stack_size(STACK)
            .spawn(move || answer(&ear, &doing))?;
        Ok(Self { listener, answering: Some(answering) })
    }
}

impl Drop for InterfaceLock {
    fn drop(&mut self) {
        // Wakes `accept`, which fails from now on.
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
        if let Some(answering) = self.answering.take() {
            let _ = answering.join();
        }
    }
}

/// Answers every program that connects, and waits for none.
fn answer(listener: &UnixListener, doing: &str) {
    loop {
        match listener.accept() {
            Ok((mut stream, _)) => {
                let _ = stream.set_nonblocking(true);
                let _ = stream.write(doing.as_bytes());
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return,
            // No descriptor is left: others may give some back.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Asks the holder of the name; `None` if it was released just now, or nothing listens on it yet.
fn ask(index: u32) -> io::Result<Option<Owner>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(name(index).as_bytes())?) {
        Ok(()) => {}
        Err(rustix::io::Errno::CONNREFUSED) => return Ok(None),
        // It lets questions pile up, or takes none: all that is known is that it is there.
        Err(_) => return Ok(Some(Owner::default())),
    }
    let (process, user) = peer(socket.as_fd())?;
    let mut stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let mut said = [0; LONGEST_ANSWER];
    let length = stream.read(&mut said).unwrap_or(0);
    let doing = String::from_utf8_lossy(&said[..length]);
    let doing = doing.chars().filter(|letter| !letter.is_control()).collect();
    Ok(Some(Owner { process, user: Some(user), doing }))
}

/// Users of the EtherCAT packet sockets on an interface except the one with inode number `own`, as
/// the kernel lists them for the network namespace of this thread (packet(7)); `None` if it does
/// not.
fn ethercat_sockets(index: u32, own: u64) -> Option<Vec<u32>> {
    let list = fs::read_to_string("/proc/thread-self/net/packet").ok()?;
    let user = |line: &str| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, _, _, protocol, interface, _, _, user, inode] = columns[..] else { return None };
        let wanted = protocol == "88a4" && interface.parse() == Ok(index) && inode.parse() != Ok(own);
        user.parse().ok().filter(|_| wanted)
    };
    Some(list.lines().filter_map(user).collect())
}

fn name(index: u32) -> String {
    format!("onbeat-interface-{index}")
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}")?,
            None => f.write_str("a process")?,
        }
        if let Some(user) = self.user {
            write!(f, " of user {user}")?;
        }
        if self.doing.is_empty() { Ok(()) } else { write!(f, " ({})", self.doing) }
    }
}

/// Attempts at a name that was just released or is not listened on yet.
const ATTEMPTS: usize = 20;

/// Time an existing owner may take to name its activity.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

const LONGEST_ANSWER: usize = 256;

const STACK: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(user: u32) -> Owner {
        Owner { process: Some(7), user: Some(user), doing: "run".into() }
    }

    #[test]
    fn holder_without_an_ethercat_socket_is_not_the_owner() {
        assert!(matches!(judge(owner(1000), Some(vec![])), Taken::Squatted(it) if it == owner(1000)));
        assert!(matches!(judge(owner(1000), Some(vec![0, 1000])), Taken::Held(it) if it == owner(1000)));
        assert!(matches!(judge(owner(1000), None), Taken::Held(it) if it == owner(1000)));
        let hidden = Owner { user: Some(0), ..Owner::default() };
        assert!(matches!(judge(owner(1000), Some(vec![0])), Taken::Held(it) if it == hidden));
    }

    #[test]
    fn owner_is_printed_in_words() {
        assert_eq!(owner(0).to_string(), "process 7 of user 0 (run)");
        assert_eq!(Owner { process: None, ..owner(5) }.to_string(), "a process of user 5 (run)");
    }
}
