//! The thread that serves connections to the bus.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};

use super::history::History;
use super::message::{Event, Outcome, Request, Service};
use super::session::{Guest, Session};

/// Mailboxes of a bus, behind the [`Server`].
pub trait Backend: Send {
    /// Takes a request, unless there is no space for it now: then it returns false, and the request
    /// is offered again. `reads_only` is the reason why the client may not write, if so. Every
    /// request taken has one outcome in [`Backend::poll`].
    fn submit(&mut self, ticket: Ticket, service: &Service, reads_only: Option<&str>) -> bool;

    /// The next outcome there is.
    fn poll(&mut self) -> Option<(Ticket, Outcome)>;
}

/// Request under way: its connection, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Number of the connection.
    pub session: u64,
    /// Number of the request.
    pub id: u64,
}

/// Counts of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Requests taken.
    pub requests: u64,
    /// Lines that were no request, each the end of its connection.
    pub malformed: u64,
    /// Connections refused for lack of space.
    pub refused: u64,
}

/// Parts of a server that other threads hold, too.
#[derive(Debug)]
struct Shared {
    wake: OwnedFd,
    history: Mutex<History>,
    ends: AtomicBool,
    requests: AtomicU64,
    malformed: AtomicU64,
    refused: AtomicU64,
}

impl Shared {
    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

/// Entrance for clients, between the server and the server of the bus: for [`Server::start`].
#[derive(Debug)]
pub struct Guests {
    arriving: Receiver<Guest>,
    shared: Arc<Shared>,
}

/// The server's end of it.
#[derive(Debug)]
pub(crate) struct Admission {
    arriving: SyncSender<Guest>,
    shared: Arc<Shared>,
}

impl Admission {
    pub(crate) fn new() -> io::Result<(Self, Guests)> {
        let shared = Arc::new(Shared {
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            history: Mutex::default(),
            ends: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let (sender, arriving) = sync_channel(ARRIVING);
        Ok((Self { arriving: sender, shared: Arc::clone(&shared) }, Guests { arriving, shared }))
    }

    /// Hands a client over; false if there is no server to take it, or too many wait.
    pub(crate) fn admit(&self, guest: Guest) -> bool {
        match self.arriving.try_send(guest) {
            Ok(()) => {
                self.shared.wake();
                true
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }
}

/// A running server. Dropping it ends its thread and all connections.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Publishes events to the readers of a server, from any ordinary thread.
#[derive(Clone, Debug)]
pub struct Publisher(Arc<Shared>);

impl Publisher {
    /// Keeps an event and has it sent to the subscribers; never waits for them.
    pub fn publish(&self, event: Event) {
        self.0.history.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        self.0.wake();
    }
}

impl Server {
    /// Starts the thread. Call it from an ordinary thread: threads inherit scheduling and affinity
    /// of the thread that starts them.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn start(guests: Guests, backend: Box<dyn Backend>) -> io::Result<Self> {
        let shared = Arc::clone(&guests.shared);
        let serve = Serve { guests, backend, sessions: Vec::new(), next: 0, under_way: 0, first: 0 };
        let thread = std::thread::Builder::new().name("onbeat-bus".into()).spawn(move || serve.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// A publisher of events.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher(Arc::clone(&self.shared))
    }

    /// Counts so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Shared { requests, malformed, refused, .. } = &*self.shared;
        Counters { requests: read(requests), malformed: read(malformed), refused: read(refused) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// State of the thread.
struct Serve {
    guests: Guests,
    backend: Box<dyn Backend>,
    sessions: Vec<Session>,
    /// Number of the next connection.
    next: u64,
    /// Requests the backend has.
    under_way: usize,
    /// Connection that is served first, so that none is always last.
    first: usize,
}

impl Serve {
    fn run(mut self) {
        while !self.guests.shared.ends.load(Ordering::Acquire) {
            let Ready { readable, gone } = self.wait();
            while let Ok(guest) = self.guests.arriving.try_recv() {
                self.admit(guest);
            }
            self.answer();
            for place in readable {
                self.sessions[place].receive();
            }
            for place in gone {
                self.sessions[place].is_over = true;
            }
            self.receive();
            self.send();
            self.sessions.retain(|session| !session.is_over);
        }
        // The last of what happened.
        self.answer();
        self.send();
    }

    /// Waits until there is something to do.
    fn wait(&self) -> Ready {
        let mut waiting = vec![PollFd::new(&self.guests.shared.wake, PollFlags::IN)];
        for session in &self.sessions {
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::IN, session.reads());
            wanted.set(PollFlags::OUT, session.has_output());
            waiting.push(PollFd::new(&session.guest.socket, wanted));
        }
        // The cycle wakes no thread: the server polls for its answers.
        let busy = self.under_way > 0 || self.sessions.iter().any(|session| session.waiting.is_some());
        let longest = busy.then_some(LOOK).and_then(|look| Timespec::try_from(look).ok());
        if poll(&mut waiting, longest.as_ref()).is_err() {
            std::thread::sleep(LOOK);
            return Ready::default();
        }
        let found = |flags| {
            let is = |place: &usize| waiting[place + 1].revents().intersects(flags);
            (0..self.sessions.len()).filter(is).collect()
        };
        let ready = Ready { readable: found(PollFlags::IN), gone: found(PollFlags::HUP | PollFlags::ERR) };
        let _ = rustix::io::read(&self.guests.shared.wake, &mut [0; 8]);
        ready
    }

    fn admit(&mut self, guest: Guest) {
        let user = guest.user;
        let of = |is: &dyn Fn(&Session) -> bool| self.sessions.iter().filter(|it| is(it)).count();
        let reads_only = guest.reads_only.is_some();
        let is_full = self.sessions.len() >= MOST
            || reads_only && of(&|it| it.guest.reads_only.is_some()) >= MOST_READERS
            || reads_only && of(&|it| it.guest.user == user) >= MOST_OF_A_READER;
        let mut session = Session::new(guest, self.next);
        self.next += 1;
        if is_full {
            self.guests.shared.refused.fetch_add(1, Ordering::Relaxed);
            session.reply(0, Outcome::error("too many programs use the bus already: end some of them"));
            session.is_closing = true;
            return session.flush();
        }
        self.sessions.push(session);
    }

    /// Hands outcomes to their connections; outcomes of a closed connection are dropped.
    fn answer(&mut self) {
        while let Some((ticket, outcome)) = self.backend.poll() {
            self.under_way -= 1;
            if let Some(session) = self.sessions.iter_mut().find(|it| it.number == ticket.session) {
                session.under_way -= 1;
                session.reply(ticket.id, outcome);
            }
        }
    }

    /// Takes the requests that have come, in turn.
    fn receive(&mut self) {
        let count = self.sessions.len();
        for turn in 0..count {
            let place = (self.first + turn) % count;
            while self.hear_one(place) {}
        }
        self.first = self.first.wrapping_add(1) % count.max(1);
    }

    /// Takes one request of a connection; true if there may be more.
    fn hear_one(&mut self, place: usize) -> bool {
        let session = &mut self.sessions[place];
        let request = match session.waiting.take() {
            Some(request) => request,
            None if !session.listens() => return false,
            None => match session.next_request() {
                None => return false,
                Some(Ok(request)) => request,
                Some(Err(text)) => {
                    self.guests.shared.malformed.fetch_add(1, Ordering::Relaxed);
                    session.reply(0, Outcome::error(text));
                    session.is_closing = true;
                    return false;
                }
            },
        };
        self.serve(place, request)
    }

    fn serve(&mut self, place: usize, request: Request) -> bool {
        let session = &mut self.sessions[place];
        let Request { id, ref service } = request;
        if let Service::Events { follow } = *service {
            let history = self.guests.shared.history.lock().unwrap_or_else(PoisonError::into_inner);
            session.subscribe(id, follow, &history);
            return true;
        }
        let ticket = Ticket { session: session.number, id };
        let taken = self.backend.submit(ticket, service, session.guest.reads_only.as_deref());
        if taken {
            self.guests.shared.requests.fetch_add(1, Ordering::Relaxed);
            (session.under_way, self.under_way) = (session.under_way + 1, self.under_way + 1);
        } else {
            session.waiting = Some(request);
        }
        taken
    }

    fn send(&mut self) {
        let history = self.guests.shared.history.lock().unwrap_or_else(PoisonError::into_inner);
        for session in &mut self.sessions {
            session.send(&history);
        }
    }
}

/// Connections, by place, that a wait found ready.
#[derive(Default)]
struct Ready {
    readable: Vec<usize>,
    gone: Vec<usize>,
}

/// Clients between server and server.
const ARRIVING: usize = 16;

/// Connections at once; connections of users with read access only; and connections of one such
/// user.
const MOST: usize = 64;
const MOST_READERS: usize = 32;
const MOST_OF_A_READER: usize = 8;

/// Interval at which answers of the cycle are looked for while some are due.
const LOOK: Duration = Duration::from_millis(1);
