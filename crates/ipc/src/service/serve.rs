//! The server's thread.

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
use crate::bus;
use crate::channel::{Bell, Counters, Helper, Kind, Wake, far::Far, far::NotOpened};
use crate::command::Regions;
use crate::controller;
use crate::force::{Client, Force, Forces, Refused};
use crate::reference::{self, Answer, Given, Purpose, References};

/// Resources the server hands out.
#[derive(Debug)]
pub(crate) struct Handed {
    /// Name of the interface.
    pub(crate) name: String,
    /// Descriptors a client gets on attach: description, state, diagnostics.
    pub(crate) files: [OwnedFd; 3],
    pub(crate) commands: Regions,
    pub(crate) forces: Forces,
    pub(crate) references: References,
    /// Role of a controller process, if the cycle has one.
    pub(crate) controller: Option<controller::Role>,
    pub(crate) ports: Vec<Far>,
    /// Bell of the ports that wake the server.
    pub(crate) bell: Arc<Bell>,
    /// Entrance to the server of the bus, if there is one.
    pub(crate) bus: Option<bus::Admission>,
    /// Group that may command.
    pub(crate) group: Option<u32>,
    /// Interval at which open ports are checked for data of the real-time side.
    pub(crate) look: Duration,
}

/// State of the server's thread.
#[derive(Debug)]
pub(crate) struct Serve {
    listener: OwnedFd,
    wake: Arc<OwnedFd>,
    handed: Handed,
    helper: Option<Helper>,
    visitors: Vec<Visitor>,
    /// Current holder of the command lease.
    holder: Option<Holder>,
    /// Current controller process.
    controller: Option<Holder>,
    /// Client that waits for the cycle's answer on a position.
    waits: Option<Visitor>,
    /// Accepting is suspended for a while: the process has no more descriptors.
    exhausted: bool,
}

impl Serve {
    pub(crate) fn new(listener: OwnedFd, handed: Handed) -> io::Result<Self> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        if handed.ports.iter().any(|port| port.wake() != Wake::Look) {
            handed.bell.hang()?;
        }
        let helper = helper(&handed)?;
        Ok(Self {
            listener,
            wake,
            handed,
            helper,
            visitors: Vec::new(),
            holder: None,
            controller: None,
            waits: None,
            exhausted: false,
        })
    }

    /// Descriptor that ends the thread when written to.
    pub(super) fn wake(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.wake)
    }

    pub(super) fn counters(&self) -> Vec<(Box<str>, Arc<Counters>)> {
        self.handed.ports.iter().map(|port| (port.name().into(), port.counters())).collect()
    }

    pub(super) fn controller_counters(&self) -> Option<Arc<controller::Counters>> {
        self.handed.controller.as_ref().map(controller::Role::counters)
    }

    pub(super) fn run(mut self) {
        while let Some(ready) = self.wait() {
            self.handed.commands.collect();
            self.handed.controller.iter_mut().for_each(controller::Role::collect);
            for port in &mut self.handed.ports {
                port.pump();
            }
            if ready.holder {
                self.check_holder();
            }
            if ready.controller {
                self.check_controller();
            }
            self.answer_position();
            self.receive(&ready.visitors);
            if ready.listener {
                self.let_in();
            }
        }
    }

    /// Waits until there is something to do; `None` when the server is to end.
    fn wait(&mut self) -> Option<Ready> {
        let mut waiting = vec![PollFd::new(&self.wake, PollFlags::IN)];
        let accepts = if self.exhausted { PollFlags::empty() } else { PollFlags::IN };
        waiting.push(PollFd::new(&self.listener, accepts));
        waiting.extend(self.holder.iter().flat_map(Holder::wait));
        let first_of_controller = waiting.len();
        waiting.extend(self.controller.iter().flat_map(Holder::wait));
        let first_visitor = waiting.len();
        waiting.extend(self.visitors.iter().map(|visitor| PollFd::new(&visitor.socket, PollFlags::IN)));
        let bell = &self.handed.bell;
        // Before the ports are polled.
        bell.sleep();
        waiting.extend(self.handed.ports.iter().filter_map(Far::wait));
        let at_bell = bell.descriptor().map(|bell| PollFd::from_borrowed_fd(bell, PollFlags::IN));
        let bell_place = at_bell.as_ref().map(|_| waiting.len());
        waiting.extend(at_bell);
        let longest = if self.handed.ports.iter().any(Far::is_looked_at) {
            Some(self.handed.look)
        } else {
            self.exhausted.then_some(PAUSE)
        };
        let soon = self.waits.is_some().then_some(reference::LOOK);
        let longest = longest.into_iter().chain(soon).min();
        let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
        let polled = poll(&mut waiting, longest.as_ref());
        bell.awake(polled.is_ok() && bell_place.is_some_and(|place| !waiting[place].revents().is_empty()));
        match polled {
            Ok(_) => {}
            Err(Errno::INTR) => return Some(Ready::default()),
            // Out of memory: the cycle continues, and so does the server.
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
            holder: (2..first_of_controller).any(is_ready),
            controller: (first_of_controller..first_visitor).any(is_ready),
            visitors: (0..self.visitors.len()).filter(|&index| is_ready(first_visitor + index)).collect(),
        };
        self.exhausted = false;
        Some(ready)
    }

    fn let_in(&mut self) {
        // One burst at most; the rest is accepted in the next round.
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

    /// Reason to turn a client away for lack of space, if any. No user can lock out others, and
    /// clients with read access only leave space for clients that may command.
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

    /// Handles the requests of these clients, given by index.
    fn receive(&mut self, ready: &[usize]) {
        // In descending order, so that removals do not change the indices still to come.
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
                    Ok(Request::Controller(version)) => {
                        self.become_controller(place, version);
                        continue;
                    }
                    Ok(Request::Attach) => self.attach(place),
                    Ok(Request::Port(name)) => self.port(place, name),
                    Ok(Request::Force(force)) => self.force(place, force),
                    Ok(Request::Position(given)) => {
                        self.position(place, given);
                        continue;
                    }
                    Ok(Request::Bus) => self.bus(place),
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

    /// Checks the connection of the lease, which has no other use: a holder that hangs up, ends or
    /// sends more data loses it.
    fn check_holder(&mut self) {
        let Some(holder) = &self.holder else { return };
        let socket = &holder.visitor.socket;
        match recv(socket, &mut [0; LONGEST_REQUEST], RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) if !holder.is_gone() => return,
            Ok((1.., _)) => {
                let text = "the connection of a lease takes no more requests: the lease has ended";
                let _ = answer(socket.as_fd(), &Reply::refusal(Status::Malformed, text), &[]);
            }
            Ok(_) | Err(_) => {}
        }
        self.end_lease();
    }

    /// Ends the lease: the cycle reads no further commands of its holder.
    fn end_lease(&mut self) {
        self.handed.commands.end();
        self.holder = None;
    }

    /// The same of the controller process.
    fn check_controller(&mut self) {
        if self.controller.as_ref().is_some_and(|holder| !holder.is_gone() && !holder.has_spoken()) {
            return;
        }
        self.end_controller();
    }

    fn end_controller(&mut self) {
        self.handed.controller.iter_mut().for_each(controller::Role::end);
        self.controller = None;
    }

    /// Makes the client the controller process, or refuses; it may ask again.
    fn become_controller(&mut self, place: usize, version: u16) {
        if self.controller.as_ref().is_some_and(Holder::is_gone) {
            self.end_controller();
        }
        let visitor = &self.visitors[place];
        let refusal = if version != controller::VERSION {
            let text = format!(
                "the cycle uses version {} with controllers, this one {version}: use programs of \
                 the same version of Onbeat on both sides",
                controller::VERSION
            );
            Reply::refusal(Status::Version, text)
        } else if !visitor.may_command() {
            Reply::refusal(Status::NotPermitted, visitor.refusal(self.handed.group))
        } else if let Some(holder) = &self.controller {
            Reply { status: Status::Taken, numbers: [holder.visitor.process, 0, 0], text: String::new() }
        } else {
            match self.handed.controller.as_mut().map(controller::Role::make) {
                Some(Ok(Some([requests, answers]))) => {
                    let visitor = self.visitors.swap_remove(place);
                    let reply = Reply { status: Status::Done, numbers: [0; 3], text: String::new() };
                    match answer(visitor.socket.as_fd(), &reply, &[requests.as_fd(), answers.as_fd()]) {
                        Ok(()) => {
                            self.handed.controller.iter().for_each(|role| role.held_by(visitor.process));
                            self.controller = Some(Holder::new(visitor));
                        }
                        Err(_) => self.end_controller(),
                    }
                    return;
                }
                Some(Ok(None)) => Reply::refusal(
                    Status::NotReady,
                    "the cycle has not looked at its controller for a while",
                ),
                Some(Err(error)) => Reply::refusal(Status::Failed, error),
                None => Reply::refusal(Status::Impossible, NO_CONTROLLER),
            }
        };
        if answer(visitor.socket.as_fd(), &refusal, &[]).is_err() {
            self.visitors.swap_remove(place);
        }
    }

    /// Sends the descriptors; true if the client stays. Each connection gets them once: the kernel
    /// limits how many descriptors the processes of a user may have in flight in sockets.
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

    /// Makes the client the holder of the lease, or refuses; it may ask again.
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

    /// Forces or releases signals; true if the client stays.
    fn force(&mut self, place: usize, force: Force) -> bool {
        let visitor = &self.visitors[place];
        let by = Client { user: visitor.user, process: visitor.process };
        let reply = if visitor.may_command() {
            match self.handed.forces.ask(force, by) {
                Ok(()) => Reply { status: Status::Done, numbers: [0; 3], text: String::new() },
                Err(Refused::NotPermitted(text)) => Reply::refusal(Status::NotPermitted, text),
                Err(Refused::Impossible(text)) => Reply::refusal(Status::Impossible, text),
                Err(Refused::NotReady(text)) => Reply::refusal(Status::NotReady, text),
            }
        } else {
            Reply::refusal(Status::NotPermitted, visitor.refusal(self.handed.group))
        };
        answer(visitor.socket.as_fd(), &reply, &[]).is_ok()
    }

    /// Passes on a position for an axis. Its client is answered once the cycle has; other clients
    /// do not wait.
    fn position(&mut self, place: usize, given: Given) {
        let visitor = &self.visitors[place];
        let by = Client { user: visitor.user, process: visitor.process };
        let refusal = if !visitor.may_command() {
            Reply::refusal(Status::NotPermitted, visitor.refusal(self.handed.group))
        } else if given.purpose == Purpose::Accept && !visitor.has_terminal() {
            Reply::refusal(Status::NotPermitted, NO_TERMINAL)
        } else if self.waits.is_some() {
            Reply::refusal(Status::NotReady, "another request to accept or set a position is in progress")
        } else if self.handed.references.ask(given, by) {
            self.waits = Some(self.visitors.swap_remove(place));
            return;
        } else {
            Reply::refusal(Status::Failed, NO_ANSWER)
        };
        if answer(visitor.socket.as_fd(), &refusal, &[]).is_err() {
            self.visitors.swap_remove(place);
        }
    }

    /// Passes on the cycle's answer to it.
    fn answer_position(&mut self) {
        let Some(visitor) = self.waits.take() else { return };
        let reply = match self.handed.references.poll() {
            Answer::Pending => {
                self.waits = Some(visitor);
                return;
            }
            Answer::Outcome(Ok(before)) => {
                let bits = before.to_bits();
                let numbers = [bits as u32, (bits >> 32) as u32, 0];
                Reply { status: Status::Done, numbers, text: String::new() }
            }
            Answer::Outcome(Err(refusal)) => Reply::refusal(Status::Impossible, refusal),
            Answer::None => Reply::refusal(Status::Failed, NO_ANSWER),
        };
        if answer(visitor.socket.as_fd(), &reply, &[]).is_ok() {
            self.visitors.push(visitor);
        }
    }

    /// Opens a connection to the bus for the client; true if the client stays.
    fn bus(&mut self, place: usize) -> bool {
        let visitor = &self.visitors[place];
        let socket = visitor.socket.as_fd();
        let refuse = |status, text: &str| answer(socket, &Reply::refusal(status, text), &[]).is_ok();
        let Some(bus) = &self.handed.bus else {
            return refuse(Status::Failed, "the program that runs the cycle takes no requests for its bus");
        };
        let (ours, theirs) = match bus::pair() {
            Ok(pair) => pair,
            Err(error) => return refuse(Status::Failed, &error.to_string()),
        };
        let reads_only = (!visitor.may_command()).then(|| visitor.refusal(self.handed.group));
        if !bus.admit(bus::Guest { socket: ours, user: visitor.user, reads_only }) {
            return refuse(Status::NotReady, "the bus cannot serve another program at the moment");
        }
        let reply = Reply { status: Status::Done, numbers: [0; 3], text: String::new() };
        answer(socket, &reply, &[theirs.as_fd()]).is_ok()
    }

    /// Opens a port for the client; true if the client stays.
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
        let refusal = match port.open(visitor.process, visitor.user) {
            Ok(file) => {
                let numbers = match port.kind() {
                    Kind::Message { size, depth } => [0, size as u32, depth as u32],
                    Kind::Stream { size } => [1, size as u32, 0],
                };
                let reply = Reply { status: Status::Done, numbers, text: String::new() };
                self.helper.iter().for_each(Helper::opened);
                // A client that did not get the descriptor counts as hung up once `file` is
                // dropped.
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

/// Helper of the ports that ask for one.
fn helper(handed: &Handed) -> io::Result<Option<Helper>> {
    let asked = |port: &Far| match port.wake() {
        Wake::Helper { every } => Some((every, port.counters())),
        Wake::Look | Wake::Event => None,
    };
    let (every, ports): (Vec<Duration>, Vec<_>) = handed.ports.iter().filter_map(asked).unzip();
    let start = |every| Helper::start(ports, Arc::clone(&handed.bell), every);
    every.into_iter().min().map(start).transpose()
}

/// Work found ready by a wait.
#[derive(Debug, Default)]
struct Ready {
    listener: bool,
    holder: bool,
    controller: bool,
    visitors: Vec<usize>,
}

fn complaint(malformed: Malformed) -> Reply {
    match malformed {
        Malformed::Version(found) => Reply::refusal(
            Status::Version,
            format!("the cycle uses version {VERSION} of the IPC, the client {found}"),
        ),
        Malformed::Magic | Malformed::Content => {
            Reply::refusal(Status::Malformed, "the message is no request")
        }
    }
}

/// Sends a reply, which is lost if the client does not read.
fn answer(socket: BorrowedFd<'_>, reply: &Reply, files: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match sendmsg(socket, &[IoSlice::new(&reply.emit())], &mut control, flags) {
        Err(error @ Errno::TOOMANYREFS) if !files.is_empty() => {
            let text = "the system lets this user pass no more file descriptors until programs \
                have received the descriptors already sent";
            answer(socket, &Reply::refusal(Status::Failed, text), &[]).and(Err(error))
        }
        sent => sent.map(drop),
    }
}

/// Refusal of a cycle with all controllers in its own thread.
const NO_CONTROLLER: &str = "its controllers run in its own thread: give the robot file a [controller] of kind \"external\", \
                             or run with --controller external";

const NO_ANSWER: &str = "the cycle did not answer in time";

/// Refusal of a measured position that no person can have typed.
const NO_TERMINAL: &str = "a measured position is accepted only from a program on a terminal: a person measures it, and types the \
                           name of the axis (`onbeat control accept-position`)";

/// Clients attached at once. Clients with read access only may be half of them, and a sixteenth for
/// each user; together with members of the group three quarters, and a quarter for each member.
const MOST_VISITORS: usize = 256;

/// Pause before an operation is retried for which the system lacked resources.
const PAUSE: Duration = Duration::from_millis(100);
