//! The client's end of a connection to the bus, for an ordinary thread of any process.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::message::{Event, Outcome, Reply, Request, Service};

/// Longest reply that is read: that of a status of all SubDevices a bus can have.
const LONGEST_REPLY: u64 = 256 << 20;

/// Connection to the bus of a running cycle.
#[derive(Debug)]
pub struct BusClient {
    stream: BufReader<UnixStream>,
    next: u64,
    /// Replies that came before they were waited for.
    early: VecDeque<Reply>,
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
    Failed(#[from] std::io::Error),
}

types::debug_is_sentence!(BusError);

impl BusClient {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { stream: BufReader::new(UnixStream::from(socket)), next: 1, early: VecDeque::new() }
    }

    /// Sets the longest wait for bytes of the cycle; `None`, the default, waits until it ends. A
    /// request that has timed out leaves the connection unusable: open another one.
    ///
    /// # Errors
    /// A time of zero.
    pub fn set_timeout(&self, longest: Option<Duration>) -> Result<(), BusError> {
        let stream = self.stream.get_ref();
        stream.set_read_timeout(longest)?;
        Ok(stream.set_write_timeout(longest)?)
    }

    /// Sends a request and returns its number; several may be under way.
    ///
    /// # Errors
    /// The cycle has ended.
    pub fn send(&mut self, service: Service) -> Result<u64, BusError> {
        let id = self.next;
        self.next += 1;
        let mut line = serde_json::to_vec(&Request { id, service }).map_err(std::io::Error::from)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line).map_err(ended)?;
        Ok(id)
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// The cycle has ended.
    pub fn receive(&mut self) -> Result<Reply, BusError> {
        match self.early.pop_front() {
            Some(reply) => Ok(reply),
            None => self.read(),
        }
    }

    fn read(&mut self) -> Result<Reply, BusError> {
        let mut line = Vec::new();
        self.stream.by_ref().take(LONGEST_REPLY).read_until(b'\n', &mut line).map_err(ended)?;
        if line.is_empty() {
            return Err(BusError::Ended);
        }
        Ok(serde_json::from_slice(&line).map_err(std::io::Error::from)?)
    }

    /// Sends a request and waits for its outcome.
    ///
    /// # Errors
    /// It was refused, or the cycle has ended.
    pub fn call(&mut self, service: Service) -> Result<Outcome, BusError> {
        let id = self.send(service)?;
        loop {
            let reply = self.read()?;
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
        let id = self.send(Service::Events { follow })?;
        Ok(Events { client: self, id })
    }
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
}

impl Iterator for Events {
    type Item = Result<Event, u64>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let reply = self.client.receive().ok()?;
            match reply.outcome {
                Outcome::Event(event) if reply.id == self.id => return Some(Ok(event)),
                Outcome::Missed(number) if reply.id == self.id => return Some(Err(number)),
                Outcome::Done(_) | Outcome::Error { .. } => return None,
                _ => {}
            }
        }
    }
}

fn ended(error: std::io::Error) -> BusError {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, WouldBlock};
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
}
