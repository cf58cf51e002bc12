//! The thread behind the door.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, accept_with, recv,
    sendmsg,
};
use rustix::time::Timespec;

use super::protocol::{LONGEST_REQUEST, Malformed, Reply, Request, Status, VERSION};
use super::visitors::{Holder, Standing, Visitor};
use crate::channel::{Counters, Kind, far::Far, far::NotOpened};
use crate::command::Regions;

/// What the door hands out and looks after.
#[derive(Debug)]
pub(crate) struct Handed {
    /// Name of the seam.
    pub(crate) name: String,
    /// The description, the state, the diagnostics: what who attaches gets.
    pub(crate) files: [OwnedFd; 3],
    pub(crate) commands: Regions,
    pub(crate) ports: Vec<Far>,
    /// Members may command.
    pub(crate) group: Option<u32>,
    /// How often open ports are looked at for what the real-time side sent.
    pub(crate) look: Duration,
}

/// The thread's work.
#[derive(Debug)]
pub(crate) struct Serve {
    listener: OwnedFd,
    wake: Arc<OwnedFd>,
    handed: Handed,
    visitors: Vec<Visitor>,
    /// Who may command now.
    holder: Option<Holder>,
    /// Accepting waits for a while: the process has no more descriptors.
    exhausted: bool,
}

impl Serve {
    pub(crate) fn new(listener: OwnedFd, handed: Handed) -> io::Result<Self> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Self { listener, wake, handed, visitors: Vec::new(), holder: None, exhausted: false })
    }

    /// Written to, it ends the thread.
    pub(super) fn wake(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.wake)
    }

    pub(super) fn counters(&self) -> Vec<(Box<str>, Arc<Counters>)> {
        self.handed.ports.iter().map(|port| (port.name().into(), port.counters())).collect()
    }

    pub(super) fn run(mut self) {
        while let Some(ready) = self.wait() {
            self.handed.commands.collect();
            for port in &mut self.handed.ports {
                port.pump();
            }
            if ready.holder {
                self.hear_holder();
            }
            self.hear(&ready.visitors);
            if ready.listener {
                self.let_in();
            }
        }
    }

    /// Waits until there is something to do; `None` when it is over.
    fn wait(&mut self) -> Option<Ready> {
        let mut waiting = vec![PollFd::new(&self.wake, PollFlags::IN)];
        let accepts = if self.exhausted { PollFlags::empty() } else { PollFlags::IN };
        waiting.push(PollFd::new(&self.listener, accepts));
        waiting.extend(self.holder.iter().flat_map(Holder::wait));
        let first_visitor = waiting.len();
        waiting.extend(self.visitors.iter().map(|visitor| PollFd::new(&visitor.socket, PollFlags::IN)));
        waiting.extend(self.handed.ports.iter().filter_map(Far::wait));
        let longest = if self.handed.ports.iter().any(Far::is_open) {
            Some(self.handed.look)
        } else {
            self.exhausted.then_some(PAUSE)
        };
        let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
        match poll(&mut waiting, longest.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Some(Ready::default()),
            // Out of memory: the cycle goes on, and so does the door.
            Err(_) => {
                std::thread::sleep(PAUSE);
                return Some(Ready::default());
            }
        }
        let is_ready = |index: usize| !waiting[index].revents().is_empty();
        if is_ready(0) {
            return None;
        }
        let ready = Ready {
            listener: is_ready(1) || self.exhausted,
            holder: (2..first_visitor).any(is_ready),
            visitors: (0..self.visitors.len()).filter(|&index| is_ready(first_visitor + index)).collect(),
        };
        self.exhausted = false;
        Some(ready)
    }

    fn let_in(&mut self) {
        // A burst at most; what is left is there at the next look.
        for _ in 0..64 {
            let socket = match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => socket,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.exhausted = true;
                    return;
                }
            };
            let Ok(visitor) = Visitor::of(socket, self.handed.group) else { continue };
            match self.refuse(&visitor) {
                None => self.visitors.push(visitor),
                Some(text) => {
                    let _ = answer(visitor.socket.as_fd(), &Reply::refusal(Status::Failed, text), &[]);
                }
            }
        }
    }

    /// Why there is no room for one more visitor, if there is none: no user keeps out the others, and who may only look
    /// leaves room for who may command.
    fn refuse(&self, visitor: &Visitor) -> Option<String> {
        let (most, most_of_user) = match visitor.standing {
            Standing::Stranger => (MOST_VISITORS / 2, MOST_VISITORS / 16),
            Standing::Member => (MOST_VISITORS * 3 / 4, MOST_VISITORS / 4),
            Standing::Owner => (MOST_VISITORS, usize::MAX),
        };
        let (all, user) = (self.visitors.len(), visitor.user);
        let of_user = self.visitors.iter().filter(|other| other.user == user).count();
        if of_user >= most_of_user {
            return Some(format!(
                "{of_user} programs of user {user} are attached already: end some of them"
            ));
        }
        (all >= most).then(|| format!("{all} programs are attached already: end some of them"))
    }

    /// Hears those that said something, by their places.
    fn hear(&mut self, ready: &[usize]) {
        // From the last on, so that the places of those before stay.
        for &place in ready.iter().rev() {
            let mut buffer = [0; LONGEST_REQUEST + 1];
            let received = recv(&self.visitors[place].socket, &mut buffer, RecvFlags::DONTWAIT);
            let stays = match received {
                Err(Errno::AGAIN | Errno::INTR) => true,
                Ok((length @ 1.., _)) => match Request::parse(&buffer[..length]) {
                    Ok(Request::Lease) => {
                        self.lease(place);
                        continue;
                    }
                    Ok(Request::Attach) => self.attach(place),
                    Ok(Request::Port(name)) => self.port(place, name),
                    Err(malformed) => {
                        let _ = answer(self.visitors[place].socket.as_fd(), &complaint(malformed), &[]);
                        false
                    }
                },
                Ok(_) | Err(_) => false,
            };
            if !stays {
                self.visitors.swap_remove(place);
            }
        }
    }

    /// A lease's connection is for the lease alone: who hangs up, ends, or says anything more, gives it back.
    fn hear_holder(&mut self) {
        let Some(holder) = &self.holder else { return };
        let socket = &holder.visitor.socket;
        match recv(socket, &mut [0; LONGEST_REQUEST], RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) if !holder.is_gone() => return,
            Ok((1.., _)) => {
                let text = "the connection of a lease takes no more requests: the lease is over";
                let _ = answer(socket.as_fd(), &Reply::refusal(Status::Malformed, text), &[]);
            }
            Ok(_) | Err(_) => {}
        }
        self.end_lease();
    }

    /// From here on the cycle hears no more of who held it.
    fn end_lease(&mut self) {
        self.handed.commands.end();
        self.holder = None;
    }

    /// True if the visitor stays. It gets the descriptors once: of those that nobody has taken out of a socket yet, the
    /// kernel allows a user's processes so many together.
    fn attach(&mut self, place: usize) -> bool {
        if std::mem::replace(&mut self.visitors[place].is_attached, true) {
            let text = "it is attached already; attach with another connection";
            let reply = Reply::refusal(Status::Malformed, text);
            let _ = answer(self.visitors[place].socket.as_fd(), &reply, &[]);
            return false;
        }
        let numbers = [std::process::id(), 0, 0];
        let reply = Reply { status: Status::Done, numbers, text: self.handed.name.clone() };
        let files = self.handed.files.each_ref().map(AsFd::as_fd);
        answer(self.visitors[place].socket.as_fd(), &reply, &files).is_ok()
    }

    /// The visitor becomes the holder, or gets a refusal and may ask again.
    fn lease(&mut self, place: usize) {
        if self.holder.as_ref().is_some_and(Holder::is_gone) {
            self.end_lease();
        }
        let visitor = &self.visitors[place];
        let refusal = if !visitor.may_command() {
            Reply::refusal(Status::NotPermitted, visitor.refusal(self.handed.group))
        } else if let Some(holder) = &self.holder {
            Reply { status: Status::Taken, numbers: [holder.visitor.process, 0, 0], text: String::new() }
        } else {
            match self.handed.commands.make() {
                Ok(Some(file)) => {
                    let visitor = self.visitors.swap_remove(place);
                    let reply = Reply { status: Status::Done, numbers: [0; 3], text: String::new() };
                    match answer(visitor.socket.as_fd(), &reply, &[file.as_fd()]) {
                        Ok(()) => self.holder = Some(Holder::new(visitor)),
                        Err(_) => self.end_lease(),
                    }
                    return;
                }
                Ok(None) => {
                    Reply::refusal(Status::NotReady, "the cycle has not looked at its commands for a while")
                }
                Err(error) => Reply::refusal(Status::Failed, error),
            }
        };
        if answer(visitor.socket.as_fd(), &refusal, &[]).is_err() {
            self.visitors.swap_remove(place);
        }
    }

    /// Whether the visitor stays.
    fn port(&mut self, place: usize, name: &str) -> bool {
        let visitor = &self.visitors[place];
        let socket = visitor.socket.as_fd();
        let Some(port) = self.handed.ports.iter_mut().find(|port| port.name() == name) else {
            let names: Vec<&str> = self.handed.ports.iter().map(Far::name).collect();
            return answer(socket, &Reply::refusal(Status::NoSuchPort, names.join(", ")), &[]).is_ok();
        };
        if !visitor.may_command() {
            let text = visitor.refusal(self.handed.group);
            return answer(socket, &Reply::refusal(Status::NotPermitted, text), &[]).is_ok();
        }
        let refusal = match port.open(visitor.process) {
            Ok(file) => {
                let numbers = match port.kind() {
                    Kind::Message { size, depth } => [0, size as u32, depth as u32],
                    Kind::Stream { size } => [1, size as u32, 0],
                };
                let reply = Reply { status: Status::Done, numbers, text: String::new() };
                // A client that did not get it has hung up with the end of `file`.
                return answer(socket, &reply, &[file.as_fd()]).is_ok();
            }
            Err(NotOpened::By(process)) => {
                Reply { status: Status::Taken, numbers: [process, 0, 0], text: String::new() }
            }
            Err(NotOpened::NotBound) => {
                Reply::refusal(Status::NotReady, "its real-time thread has not bound it yet")
            }
            Err(NotOpened::System(error)) => Reply::refusal(Status::Failed, error),
        };
        answer(socket, &refusal, &[]).is_ok()
    }
}

/// What there is to do.
#[derive(Debug, Default)]
struct Ready {
    listener: bool,
    holder: bool,
    visitors: Vec<usize>,
}

fn complaint(malformed: Malformed) -> Reply {
    match malformed {
        Malformed::Version(found) => Reply::refusal(
            Status::Version,
            format!("the cycle speaks version {VERSION} of the seam, the visitor {found}"),
        ),
        Malformed::Magic | Malformed::Content => {
            Reply::refusal(Status::Malformed, "what was said at the door is no request")
        }
    }
}

/// Sends a reply; a visitor that does not take it has itself to blame.
fn answer(socket: BorrowedFd<'_>, reply: &Reply, files: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match sendmsg(socket, &[IoSlice::new(&reply.emit())], &mut control, flags) {
        Err(error @ Errno::TOOMANYREFS) if !files.is_empty() => {
            let text = "the system lets this user hand out no more descriptors, until programs have taken those on their way";
            answer(socket, &Reply::refusal(Status::Failed, text), &[]).and(Err(error))
        }
        sent => sent.map(drop),
    }
}

/// Programs attached at once: a half of them strangers, one user's of them a sixteenth; three quarters strangers and members
/// of the group, one member's of them a quarter.
const MOST_VISITORS: usize = 256;

/// Before it is tried again what the system had too little for.
const PAUSE: Duration = Duration::from_millis(100);
