//! Requests and replies. DDS has none; a reply refers to its request in one of two ways:
//!
//! * *cyclone* (rmw_cyclonedds): sixteen bytes before the message, in request and reply the same:
//!   half of the client's GUID and the number of the request.
//! * *enhanced* (rmw_fastrtps): the message alone; the *related sample identity* is in the header
//!   of the sample (DDS-RPC 1.0, 7.8.2).
//!
//! Every request shows its own mapping: only the second has a related sample identity. So clients
//! of both can be served at once.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rustdds::bytes::Bytes;
use rustdds::rpc::SampleIdentity;
use rustdds::{
    DomainParticipantStatusEvent as Event, DomainParticipantStatusListener, GUID, RTPSEntity,
    RepresentationIdentifier, SequenceNumber, StatusEvented,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::sample::Sample;
use super::{Reader, Writer, sample};

/// Mapping of requests and replies to samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mapping {
    /// Follow each request.
    #[default]
    Auto,
    /// Always use that of rmw_cyclonedds.
    Cyclone,
    /// Always use that of rmw_fastrtps.
    Enhanced,
}

/// Server of a service.
pub(crate) struct Service {
    requests: Reader,
    writer: Rc<Writer>,
    replies: Rc<RefCell<Replies>>,
    mapping: Mapping,
}

/// A request, not yet decoded.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    body: Bytes,
    encoding: RepresentationIdentifier,
    origin: Origin,
}

/// Client and number of a request, to which the reply refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Writer of the request, and sixteen bytes, little-endian.
    Cyclone { client: GUID, header: [u8; HEADER] },
    /// Sample identity.
    Enhanced(SampleIdentity),
}

/// Bytes before a message in the cyclone mapping: two numbers of eight bytes.
const HEADER: usize = 16;

impl Service {
    pub(super) fn new(
        requests: Reader,
        writer: Writer,
        replies: Rc<RefCell<Replies>>,
        mapping: Mapping,
    ) -> Self {
        Self { requests, writer: Rc::new(writer), replies, mapping }
    }

    /// Next request, if there is one.
    pub(crate) fn take(&self) -> Option<Request> {
        loop {
            // A request without room for its header cannot be answered.
            if let Some(request) = Request::new(self.requests.take()?, self.mapping) {
                return Some(request);
            }
        }
    }

    /// Sends the reply, as soon as the client's reader is known.
    pub(crate) fn reply<T: Serialize>(&self, to: Origin, response: &T) -> bool {
        let mut bytes = Vec::with_capacity(256);
        let (client, related) = match to {
            Origin::Cyclone { client, header } => {
                bytes.extend_from_slice(&header);
                (client, None)
            }
            Origin::Enhanced(identity) => (identity.writer_guid, Some(identity)),
        };
        let writer = Rc::clone(&self.writer);
        sample::encode(response, &mut bytes)
            && self.replies.borrow_mut().send(Reply { writer, client, bytes, related })
    }

    /// Reader of the requests, for [`Reader::register`].
    pub(crate) fn requests(&mut self) -> &mut Reader {
        &mut self.requests
    }
}

impl Request {
    fn new(sample: Sample, mapping: Mapping) -> Option<Self> {
        let enhanced = match mapping {
            Mapping::Auto => sample.related.is_some(),
            Mapping::Cyclone => false,
            Mapping::Enhanced => true,
        };
        if enhanced {
            let mut identity = sample.related.unwrap_or(sample.identity);
            // Fast DDS names its reply reader there, and leaves the number open: it is that of the
            // request itself.
            if identity.sequence_number <= SequenceNumber::default()
                || identity.sequence_number == SequenceNumber::UNKNOWN
            {
                identity.sequence_number = sample.identity.sequence_number;
            }
            let origin = Origin::Enhanced(identity);
            return Some(Self { body: sample.bytes, encoding: sample.encoding, origin });
        }
        let mut header: [u8; HEADER] = sample.bytes.get(..HEADER)?.try_into().ok()?;
        if !sample.little_endian() {
            header[..8].reverse();
            header[8..].reverse();
        }
        let body = sample.bytes.slice(HEADER..);
        let origin = Origin::Cyclone { client: sample.identity.writer_guid, header };
        Some(Self { body, encoding: sample.encoding, origin })
    }

    /// Client and number of the request.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Decodes the request.
    ///
    /// # Errors
    /// Reason for which the bytes are not such a request.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, String> {
        sample::decode(&self.body, self.encoding)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: &'static [u8], encoding: RepresentationIdentifier) -> Sample {
        let identity = SampleIdentity { sequence_number: SequenceNumber::from(7), ..Default::default() };
        Sample { bytes: Bytes::from_static(bytes), encoding, identity, related: None }
    }

    // feature(ros2): services in Cyclone's and Fast DDS's mapping
    #[test]
    fn a_request_shows_which_mapping_it_is() {
        let bytes = b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\0\0\0\0\0\0\0\x01";
        let cyclone =
            Request::new(request(bytes, RepresentationIdentifier::CDR_LE), Mapping::Auto).unwrap();
        let header = bytes[..16].try_into().unwrap();
        assert_eq!(cyclone.origin(), Origin::Cyclone { client: GUID::default(), header });
        assert_eq!(cyclone.decode::<bool>(), Ok(true));

        let mut sample = request(b"\x01", RepresentationIdentifier::CDR_LE);
        sample.related =
            Some(SampleIdentity { sequence_number: SequenceNumber::UNKNOWN, ..Default::default() });
        let enhanced = Request::new(sample.clone(), Mapping::Auto).unwrap();
        assert_eq!(enhanced.origin(), Origin::Enhanced(sample.identity));
        assert_eq!(enhanced.decode::<bool>(), Ok(true));
    }

    #[test]
    fn a_big_endian_request_gets_a_little_endian_answer() {
        let bytes = b"\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\0\x09\x01";
        let request =
            Request::new(request(bytes, RepresentationIdentifier::CDR_BE), Mapping::Auto).unwrap();
        let header = [8, 7, 6, 5, 4, 3, 2, 1, 9, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(request.origin(), Origin::Cyclone { client: GUID::default(), header });
    }

    #[test]
    fn a_request_that_is_too_short_is_no_request() {
        let short = request(b"\x01\x02\x03", RepresentationIdentifier::CDR_LE);
        assert!(Request::new(short, Mapping::Auto).is_none());
    }
}
