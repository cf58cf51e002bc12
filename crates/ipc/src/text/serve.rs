//! The thread that answers.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
use rustix::time::Timespec;

use super::{Answer, DONE, LONGEST_ANSWER, LONGEST_REQUEST, REFUSED};

type Answering = Box<dyn FnMut(&str) -> Answer + Send>;

/// State of the thread.
pub(super) struct Serve {
    listener: OwnedFd,
    wake: Arc<OwnedFd>,
    answer: Answering,
    guests: Vec<Guest>,
    /// Accepting is suspended for a while: the process has no more descriptors.
    exhausted: bool,
}

/// A connection.
struct Guest {
    socket: OwnedFd,
    /// Of its last request, or of its coming.
    last_seen: Instant,
}

/// Connections at once; one more replaces the connection that was silent longest.
const MOST: usize = 16;

/// Time without a request after which a connection is turned away.
const SILENCE: Duration = Duration::from_secs(10);

/// Interval of checks for silent clients, or for available descriptors.
const LOOK: Duration = Duration::from_secs(1);

impl Serve {
    pub(super) fn new(listener: OwnedFd, answer: Answering) -> io::Result<Self> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Self { listener, wake, answer, guests: Vec::new(), exhausted: false })
    }

    /// Descriptor that ends the thread when written to.
    pub(super) fn wake(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.wake)
    }

    pub(super) fn run(mut self) {
        while let Some(ready) = self.wait() {
            // In descending order, so that removals do not change the places still to come.
            for place in ready.into_iter().rev() {
                if !self.receive(place) {
                    self.guests.remove(place);
                }
            }
            self.guests.retain(|guest| guest.last_seen.elapsed() < SILENCE);
            self.let_in();
        }
    }

    /// Waits until there is something to do: places of the clients with input; `None` when the
    /// thread is to end.
    fn wait(&self) -> Option<Vec<usize>> {
        let accepts = if self.exhausted { PollFlags::empty() } else { PollFlags::IN };
        let mut waiting =
            vec![PollFd::new(&self.wake, PollFlags::IN), PollFd::new(&self.listener, accepts)];
        waiting.extend(self.guests.iter().map(|guest| PollFd::new(&guest.socket, PollFlags::IN)));
        let looks = self.exhausted || !self.guests.is_empty();
        let look = looks.then_some(LOOK).and_then(|look| Timespec::try_from(look).ok());
        if poll(&mut waiting, look.as_ref()).is_err() {
            std::thread::sleep(Duration::from_millis(10));
            return Some(Vec::new());
        }
        let is_ready = |place: &usize| !waiting[*place].revents().is_empty();
        (!is_ready(&0)).then(|| (0..self.guests.len()).filter(|place| is_ready(&(place + 2))).collect())
    }

    fn let_in(&mut self) {
        self.exhausted = false;
        // One burst at most; the rest is accepted in the next round.
        for _ in 0..MOST {
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    if self.guests.len() >= MOST {
                        let silent =
                            self.guests.iter().enumerate().min_by_key(|(_, guest)| guest.last_seen);
                        let place = silent.map_or(0, |(place, _)| place);
                        self.guests.remove(place);
                    }
                    self.guests.push(Guest { socket, last_seen: Instant::now() });
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.exhausted = true;
                    return;
                }
            }
        }
    }

    /// Answers one request of a connection; true if it stays.
    fn receive(&mut self, place: usize) -> bool {
        let guest = &mut self.guests[place];
        let mut buffer = [0; LONGEST_REQUEST + 1];
        let request = match recv(&guest.socket, &mut buffer, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => return true,
            Ok((length @ 1.., _)) => &buffer[..length],
            Ok(_) | Err(_) => return false,
        };
        let (answer, is_request) = match std::str::from_utf8(request) {
            _ if request.len() > LONGEST_REQUEST => {
                (Err(format!("a request of more than {LONGEST_REQUEST} bytes, expected a line")), false)
            }
            Err(_) => (Err("a request that is no UTF-8, expected a line of text".to_owned()), false),
            Ok(text) => ((self.answer)(text), true),
        };
        guest.last_seen = Instant::now();
        send(&guest.socket, &packet(&answer), SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok()
            && is_request
    }
}

fn packet(answer: &Answer) -> Vec<u8> {
    let (kind, text) = match answer {
        Ok(text) => (DONE, text),
        Err(text) => (REFUSED, text),
    };
    let mut end = text.len().min(LONGEST_ANSWER - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    [&[kind], &text.as_bytes()[..end]].concat()
}
