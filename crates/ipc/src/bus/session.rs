//! One connection to the bus: its lines in and out.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::LONGEST_OBJECT;
use super::history::{History, Next};
use super::message::{Outcome, Reply, Request};

/// Longest line, bytes: that of the longest object.
pub const LONGEST_LINE: usize = 2 * LONGEST_OBJECT + 1024;

/// Requests of one connection under way at once.
pub const MOST_UNDER_WAY: usize = 4;

/// Bytes of replies that wait to be read, beyond which a connection is not listened to and gets no
/// events.
const MOST_UNREAD: usize = 64 << 10;

/// A client that was let in, for the server of the bus.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) socket: OwnedFd,
    pub(crate) user: u32,
    /// None for a client that may command; else why it may not.
    pub(crate) reads_only: Option<String>,
}

/// Connection of a client.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) guest: Guest,
    pub(super) number: u64,
    /// Requests under way.
    pub(super) under_way: usize,
    /// A request that did not fit.
    pub(super) waiting: Option<Request>,
    input: Vec<u8>,
    output: Vec<u8>,
    events: Option<Subscription>,
    /// It sends nothing more.
    is_silent: bool,
    /// Nothing more is taken from it; it ends once its replies are sent.
    pub(super) is_closing: bool,
    /// It is gone.
    pub(super) is_over: bool,
}

#[derive(Debug)]
struct Subscription {
    id: u64,
    place: u64,
    follow: bool,
}

impl Session {
    pub(super) fn new(guest: Guest, number: u64) -> Self {
        Self {
            guest,
            number,
            under_way: 0,
            waiting: None,
            input: Vec::new(),
            output: Vec::new(),
            events: None,
            is_silent: false,
            is_closing: false,
            is_over: false,
        }
    }

    /// True if a further request of it may be read.
    pub(super) fn listens(&self) -> bool {
        !self.is_closing
            && self.waiting.is_none()
            && self.under_way < MOST_UNDER_WAY
            && self.output.len() < MOST_UNREAD
    }

    /// True if input from it is to be read.
    pub(super) fn reads(&self) -> bool {
        self.listens() && !self.is_silent
    }

    /// True if replies wait to be sent.
    pub(super) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Reads input, up to the maximum length of a line.
    pub(super) fn receive(&mut self) {
        let mut buffer = [0; 16 << 10];
        match recv(&self.guest.socket, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.is_silent = true,
            Ok((length, _)) => self.input.extend_from_slice(&buffer[..length]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.is_over = true,
        }
    }

    /// Next complete request; an error for an invalid line, which is the last of this connection.
    pub(super) fn next_request(&mut self) -> Option<Result<Request, String>> {
        let Some(end) = self.input.iter().position(|&byte| byte == b'\n') else {
            let too_long = self.input.len() > LONGEST_LINE;
            return too_long.then(|| Err(format!("a line has more than {LONGEST_LINE} bytes")));
        };
        if end > LONGEST_LINE {
            return Some(Err(format!("a line has more than {LONGEST_LINE} bytes")));
        }
        let request = serde_json::from_slice(&self.input[..end]);
        self.input.drain(..=end);
        Some(request.map_err(|error| format!("a line is no request: {error}")))
    }

    pub(super) fn reply(&mut self, id: u64, outcome: Outcome) {
        if serde_json::to_writer(&mut self.output, &Reply { id, outcome }).is_ok() {
            self.output.push(b'\n');
        }
    }

    /// Begins to send events under the number of this request, the oldest first.
    pub(super) fn subscribe(&mut self, id: u64, follow: bool, history: &History) {
        self.events = Some(Subscription { id, place: history.oldest(), follow });
    }

    /// Sends replies and events as far as the socket takes them.
    pub(super) fn send(&mut self, history: &History) {
        loop {
            let is_all = self.tell(history);
            self.flush();
            if is_all || self.has_output() {
                return;
            }
        }
    }

    /// Adds events as far as there is space; true if all fit.
    fn tell(&mut self, history: &History) -> bool {
        while self.output.len() < MOST_UNREAD {
            let Some(Subscription { id, place, follow }) = &mut self.events else { return true };
            let id = *id;
            let outcome = match history.next(place) {
                Next::Event(event) => Outcome::Event(event.clone()),
                Next::Missed(number) => Outcome::Missed(number),
                Next::Nothing if *follow => return true,
                Next::Nothing => {
                    self.events = None;
                    Outcome::Done(true)
                }
            };
            self.reply(id, outcome);
        }
        false
    }

    /// Sends as much as the socket takes.
    pub(super) fn flush(&mut self) {
        while !self.output.is_empty() {
            match send(&self.guest.socket, &self.output, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => return self.is_over = true,
            }
        }
        let is_served = self.is_silent && self.waiting.is_none() && self.events.is_none();
        let is_done = self.is_closing || is_served && !self.input.contains(&b'\n');
        self.is_over |= is_done && self.under_way == 0;
    }
}

/// Both ends of a connection: the server's, the client's.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}
