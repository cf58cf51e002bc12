//! The client's end of a connection to the bus, for an ordinary thread of any process.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::message::{Event, Outcome, Reply, Request, Service};

/// Longest reply that is read: that of a status of all SubDevices a bus can have.
const LONGEST_REPLY: usize = 256 << 20;

/// Connection to the bus of a running cycle.
#[derive(Debug)]
pub struct BusClient {
    stream: BufReader<UnixStream>,
    next: u64,
    /// Replies that came before they were waited for.
    early: VecDeque<Reply>,
    /// Longest time of a request.
    longest: Option<Duration>,
}

/// Reason for a request without its answer.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// The server, the cycle or the SubDevice refused; with the SDO abort code, if there is one.
    #[error("{text}")]
    Refused {
        /// Reason, as the server words it.
        text: String,
        /// SDO abort code.
        abort_code: Option<u32>,
    },
    /// The cycle has ended, or closed the connection.
    #[error("the cycle has ended before it had answered")]
    Ended,
    /// The cycle did not answer within the time of [`BusClient::set_timeout`].
    #[error("the cycle did not answer in time: is its process suspended?")]
    TimedOut,
    /// The connection failed, or its server has another protocol.
    #[error("the connection to the bus failed: {0}")]
    Failed(#[from] io::Error),
}

types::debug_is_sentence!(BusError);

impl BusClient {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        let stream = BufReader::new(UnixStream::from(socket));
        Self { stream, next: 1, early: VecDeque::new(), longest: None }
    }

    /// Sets the longest time of a request with its reply, of all kept events together, and of the
    /// wait for each event that is followed. `None`, the default, waits until the cycle ends. A
    /// request that has timed out leaves the connection unusable: open another one.
    ///
    /// # Errors
    /// A time of zero.
    pub fn set_timeout(&mut self, longest: Option<Duration>) -> Result<(), BusError> {
        let stream = self.stream.get_ref();
        stream.set_read_timeout(longest)?;
        stream.set_write_timeout(longest)?;
        self.longest = longest;
        Ok(())
    }

    /// Time at which a request that begins now has timed out.
    fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.longest?)
    }

    /// Sends a request and returns its number; several may be under way.
    ///
    /// # Errors
    /// The cycle has ended.
    pub fn send(&mut self, service: Service) -> Result<u64, BusError> {
        self.send_by(service, self.deadline())
    }

    fn send_by(&mut self, service: Service, deadline: Option<Instant>) -> Result<u64, BusError> {
        let id = self.next;
        self.next += 1;
        let mut line = serde_json::to_vec(&Request { id, service }).map_err(io::Error::from)?;
        line.push(b'\n');
        let (mut stream, mut rest) = (self.stream.get_ref(), &line[..]);
        while !rest.is_empty() {
            if let Some(left) = left_until(deadline)? {
                stream.set_write_timeout(Some(left))?;
            }
            match stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ended(error)),
            }
        }
        Ok(id)
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// The cycle has ended.
    pub fn receive(&mut self) -> Result<Reply, BusError> {
        self.receive_by(self.deadline())
    }

    fn receive_by(&mut self, deadline: Option<Instant>) -> Result<Reply, BusError> {
        match self.early.pop_front() {
            Some(reply) => Ok(reply),
            None => self.read_by(deadline),
        }
    }

    fn read_by(&mut self, deadline: Option<Instant>) -> Result<Reply, BusError> {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            if self.stream.buffer().is_empty()
                && let Some(left) = left_until(deadline)?
            {
                self.stream.get_ref().set_read_timeout(Some(left))?;
            }
            let bytes = match self.stream.fill_buf() {
                Ok([]) if line.is_empty() => return Err(BusError::Ended),
                Ok([]) => break,
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(ended(error)),
            };
            let length = bytes.iter().position(|&it| it == b'\n').map_or(bytes.len(), |end| end + 1);
            line.extend_from_slice(&bytes[..length]);
            self.stream.consume(length);
            if line.len() > LONGEST_REPLY {
                let why = format!("a reply of more than {LONGEST_REPLY} bytes");
                return Err(io::Error::new(ErrorKind::InvalidData, why).into());
            }
        }
        Ok(serde_json::from_slice(&line).map_err(io::Error::from)?)
    }

    /// Sends a request and waits for its outcome.
    ///
    /// # Errors
    /// It was refused, it has timed out, or the cycle has ended.
    pub fn call(&mut self, service: Service) -> Result<Outcome, BusError> {
        let deadline = self.deadline();
        let id = self.send_by(service, deadline)?;
        loop {
            let reply = self.read_by(deadline)?;
            match reply.outcome {
                Outcome::Error { text, abort_code } if reply.id == id || reply.id == 0 => {
                    return Err(BusError::Refused { text, abort_code });
                }
                outcome if reply.id == id => return Ok(outcome),
                outcome => self.early.push_back(Reply { outcome, ..reply }),
            }
        }
    }

    /// Subscribes to the events: the kept events, and with `follow` later events until the cycle
    /// ends.
    ///
    /// # Errors
    /// The cycle has ended.
    pub fn events(mut self, follow: bool) -> Result<Events, BusError> {
        let deadline = self.deadline();
        let id = self.send_by(Service::Events { follow }, deadline)?;
        Ok(Events { client: self, id, deadline: deadline.filter(|_| !follow) })
    }
}

/// Time left until a deadline.
fn left_until(deadline: Option<Instant>) -> Result<Option<Duration>, BusError> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) { Err(BusError::TimedOut) } else { Ok(left) }
}

/// The socket itself, for an event loop: lines of JSON go to and fro on it. Replies that came early
/// are lost.
impl From<BusClient> for UnixStream {
    fn from(client: BusClient) -> Self {
        client.stream.into_inner()
    }
}

/// Events of a running cycle, oldest first; [`Err`] with the number of events that this reader
/// missed because it was too slow. It ends with the kept events, or with the cycle.
#[derive(Debug)]
pub struct Events {
    client: BusClient,
    id: u64,
    /// Of all events, if they are only the kept ones.
    deadline: Option<Instant>,
}

impl Iterator for Events {
    type Item = Result<Event, u64>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let deadline = self.deadline.or_else(|| self.client.deadline());
            let reply = self.client.receive_by(deadline).ok()?;
            match reply.outcome {
                Outcome::Event(event) if reply.id == self.id => return Some(Ok(event)),
                Outcome::Missed(number) if reply.id == self.id => return Some(Err(number)),
                Outcome::Done(_) | Outcome::Error { .. } => return None,
                _ => {}
            }
        }
    }
}

fn ended(error: io::Error) -> BusError {
    use ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, WouldBlock};
    match error.kind() {
        BrokenPipe | ConnectionReset => BusError::Ended,
        TimedOut | WouldBlock => BusError::TimedOut,
        _ => BusError::Failed(error),
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;

    #[test]
    fn a_suspended_cycle_does_not_hold_up_a_client_with_a_timeout() {
        let (socket, _suspended) = UnixStream::pair().unwrap();
        let mut bus = BusClient::new(socket.into());
        bus.set_timeout(Some(Duration::from_millis(1))).unwrap();
        let found = bus.call(Service::Status { errors: false, receive_times: false });
        assert!(matches!(found, Err(BusError::TimedOut)), "{found:?}");
        assert!(bus.set_timeout(Some(Duration::ZERO)).is_err());
    }
    /// Sends a byte again and again, until the other end is closed.
    fn trickle(mut socket: UnixStream) -> std::thread::JoinHandle<()> {
        std::thread::spawn(move || {
            while socket.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    }

    #[test]
    fn bytes_that_trickle_in_do_not_prolong_a_timeout() {
        let calls: [fn(BusClient) -> bool; 2] = [
            |mut bus| {
                let found = bus.call(Service::Status { errors: false, receive_times: false });
                matches!(found, Err(BusError::TimedOut))
            },
            |bus| bus.events(false).unwrap().next().is_none(),
        ];
        for call in calls {
            let (socket, peer) = UnixStream::pair().unwrap();
            let trickle = trickle(peer);
            let mut bus = BusClient::new(socket.into());
            bus.set_timeout(Some(Duration::from_millis(200))).unwrap();
            assert!(call(bus));
            trickle.join().unwrap();
        }
    }

    #[test]
    fn kept_events_have_one_timeout_together() {
        let (socket, mut peer) = UnixStream::pair().unwrap();
        let mut bus = BusClient::new(socket.into());
        bus.set_timeout(Some(Duration::from_millis(200))).unwrap();
        let events = bus.events(false).unwrap();
        let reply = Reply { id: events.id, outcome: Outcome::Missed(1) };
        let mut line = serde_json::to_vec(&reply).unwrap();
        line.push(b'\n');
        let peer = std::thread::spawn(move || {
            while peer.write_all(&line).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        assert!(events.count() > 0, "it ends although more come");
        peer.join().unwrap();
    }
}
