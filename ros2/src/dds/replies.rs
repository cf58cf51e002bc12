//! Replies that wait for their reader. A client calls as soon as it sees the service; the service
//! may see the client's reader of replies later, and DDS keeps no sample for a reader it does not
//! know: sent before, the reply would be lost.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustdds::rpc::SampleIdentity;
use rustdds::{
    DomainParticipantStatusEvent as Event, DomainParticipantStatusListener, GUID, RTPSEntity, StatusEvented,
};

use super::Writer;

/// Longest wait for a reader. The reply is sent then all the same.
const PATIENCE: Duration = Duration::from_secs(5);
/// Replies that wait at the same time; one more sends the first of them.
const WAITING: usize = 64;
/// Readers that are remembered.
const READERS: usize = 4096;

/// Readers of clients, and the replies that wait for one.
pub(super) struct Replies {
    events: DomainParticipantStatusListener,
    /// Writer with which a reader of another participant is matched.
    readers: HashMap<GUID, GUID>,
    waiting: VecDeque<(Instant, Reply)>,
}

/// A reply to send.
pub(super) struct Reply {
    pub(super) writer: Rc<Writer>,
    /// Reader of the client; or its writer, where the request names no more.
    pub(super) client: GUID,
    pub(super) bytes: Vec<u8>,
    pub(super) related: Option<SampleIdentity>,
}

impl Replies {
    pub(super) fn new(events: DomainParticipantStatusListener) -> Self {
        Self { events, readers: HashMap::new(), waiting: VecDeque::new() }
    }

    /// Sends `reply`, or keeps it until its reader is known; `false` if it was not accepted.
    pub(super) fn send(&mut self, reply: Reply) -> bool {
        self.look();
        if self.is_known(&reply) {
            return reply.send();
        }
        if self.waiting.len() == WAITING
            && let Some((_, first)) = self.waiting.pop_front()
        {
            first.send();
        }
        self.waiting.push_back((Instant::now() + PATIENCE, reply));
        true
    }

    /// Sends the replies with a reader discovered since, and replies that have waited too long.
    pub(super) fn poll(&mut self) {
        self.look();
        let now = Instant::now();
        for _ in 0..self.waiting.len() {
            let Some((until, reply)) = self.waiting.pop_front() else { return };
            if self.is_known(&reply) || now >= until {
                reply.send();
            } else {
                self.waiting.push_back((until, reply));
            }
        }
    }

    /// True if a reply waits.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Follows which readers come and go.
    fn look(&mut self) {
        while let Some(event) = self.events.try_recv_status() {
            match event {
                Event::RemoteReaderMatched { local_writer, remote_reader }
                    if self.readers.len() < READERS =>
                {
                    self.readers.insert(remote_reader, local_writer);
                }
                Event::ReaderLost { guid, .. } => {
                    self.readers.remove(&guid);
                }
                Event::ParticipantLost { id, .. } => self.readers.retain(|reader, _| reader.prefix != id),
                _ => {}
            }
        }
    }

    fn is_known(&self, reply: &Reply) -> bool {
        let (writer, client) = (reply.writer.inner.guid(), reply.client);
        if client.entity_id.kind().is_reader() {
            return self.readers.get(&client) == Some(&writer);
        }
        self.readers.iter().any(|(reader, matched)| *matched == writer && reader.prefix == client.prefix)
    }
}

impl Reply {
    fn send(self) -> bool {
        self.writer.send_bytes(self.bytes, self.related)
    }
}
