//! DDS in the form that ROS 2 uses: one participant with its nodes, their topics and their
//! services.
//!
//! | module | contents |
//! |---|---|
//! | [`name`] | names of nodes and topics, in ROS 2 and in DDS |
//! | [`sample`] | bytes with their encoding, and the messages decoded from them |
//! | [`service`] | requests and replies, in the two mappings of ROS 2 |
//! | [`type_hash`] | hashes of types, which discovery carries |
//! | [`type_description`] | the types themselves |
//! | [`fence`] | sockets that are closed to other computers |
//!
//! Readers and writers carry bytes; a message is decoded at its use, so that a malformed one causes
//! an error there and nowhere else.

mod fence;
pub(crate) mod name;
pub(crate) mod sample;
pub(crate) mod service;
pub(crate) mod type_description;
mod type_hash;

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

use rustdds::no_key::SimpleDataReader;
use rustdds::policy::{Durability, History, Reliability};
use rustdds::{
    DomainParticipant, DomainParticipantBuilder, Duration, QosPolicies, QosPolicyBuilder, RTPSEntity,
    TopicKind,
};
use thiserror::Error;

use name::{Gid, NodeEntitiesInfo, NodeName, ParticipantEntitiesInfo};
use sample::{RawAdapter, Sample};
pub(crate) use sample::{Reader, Writer};
use service::{Mapping, Replies, Service};

use crate::watchdog::Joined;

/// DDS operation that failed.
#[derive(Debug, Error)]
#[error("{what}: {why}")]
pub(crate) struct DdsError {
    what: String,
    why: String,
}

impl DdsError {
    fn new(what: impl Into<String>, why: impl std::fmt::Debug) -> Self {
        Self { what: what.into(), why: format!("{why:?}") }
    }
}

/// Quality of service of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quality {
    /// Lost samples are sent again; the last few are kept for that.
    Reliable,
    /// Lost samples are not sent again: the next one is newer. A reader of this quality matches
    /// every writer.
    BestEffort,
    /// Reliable, and readers that join later get the last sample.
    Latched,
    /// Reliable, and readers that join later get the last hundred samples: /rosout.
    Log,
}

/// Samples kept by a reader or writer.
const DEPTH: i32 = 10;
const LOG_DEPTH: i32 = 100;

impl Quality {
    fn policies(self, wait: Duration) -> QosPolicies {
        let builder = QosPolicyBuilder::new();
        let reliable = Reliability::Reliable { max_blocking_time: wait };
        match self {
            Self::Reliable => builder
                .reliability(reliable)
                .durability(Durability::Volatile)
                .history(History::KeepLast { depth: DEPTH }),
            Self::BestEffort => builder
                .reliability(Reliability::BestEffort)
                .durability(Durability::Volatile)
                .history(History::KeepLast { depth: DEPTH }),
            Self::Latched => builder
                .reliability(reliable)
                .durability(Durability::TransientLocal)
                .history(History::KeepLast { depth: 1 }),
            Self::Log => builder
                .reliability(reliable)
                .durability(Durability::TransientLocal)
                .history(History::KeepLast { depth: LOG_DEPTH }),
        }
        .build()
    }
}

/// Hosts with which a participant talks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach<'a> {
    /// This one, over whichever of its interfaces a peer prefers.
    ThisHost,
    /// Peers reached over the interfaces with these addresses.
    Networks(&'a [IpAddr]),
    /// All.
    All,
}

/// One participant and the nodes on it.
pub(crate) struct Participant {
    _joined: Joined,
    // The replies' writers are dropped before the participant they belong to.
    replies: Rc<RefCell<Replies>>,
    participant: DomainParticipant,
    publisher: rustdds::Publisher,
    subscriber: rustdds::Subscriber,
    /// Nodes and their readers and writers; the first is that of the program.
    nodes: Vec<(NodeName, NodeEntitiesInfo)>,
    /// Node that the next readers and writers belong to.
    current: usize,
    info_writer: Writer,
}

impl Participant {
    /// Joins `domain`.
    ///
    /// # Errors
    /// The domain cannot be joined, most likely for lack of sockets.
    pub(crate) fn new(domain: u16, reach: Reach<'_>, node: NodeName) -> Result<Self, DdsError> {
        let builder = DomainParticipantBuilder::new(domain);
        let builder = match reach {
            Reach::ThisHost => {
                fence::close();
                builder
            }
            Reach::Networks(addresses) => builder.with_only_networks(addresses.iter().copied()),
            Reach::All => builder,
        };
        let participant = builder
            .build()
            .map_err(|error| DdsError::new(format!("DDS domain {domain} cannot be joined"), error))?;
        let default = QosPolicyBuilder::new().build();
        let publisher = participant.create_publisher(&default);
        let publisher = publisher.map_err(|error| DdsError::new("DDS publisher", error))?;
        let subscriber = participant.create_subscriber(&default);
        let subscriber = subscriber.map_err(|error| DdsError::new("DDS subscriber", error))?;
        let info = NodeEntitiesInfo::new(&node);
        let wait = Duration::ZERO;
        let info_writer =
            writer(&participant, &publisher, DISCOVERY, DISCOVERY_TYPE, Quality::Latched, wait)?;
        let replies = Rc::new(RefCell::new(Replies::new(participant.status_listener())));
        let nodes = vec![(node, info)];
        Ok(Self {
            _joined: Joined::new(),
            replies,
            participant,
            publisher,
            subscriber,
            nodes,
            current: 0,
            info_writer,
        })
    }

    /// Name of the node.
    pub(crate) fn node(&self) -> &NodeName {
        &self.nodes[0].0
    }

    /// Begins another node in the namespace of the first: until [`Participant::end_node`] readers
    /// and writers are its own. Returns its full name.
    pub(crate) fn begin_node(&mut self, name: &'static str) -> String {
        let node = self.node().sibling(name);
        let full_name = node.to_string();
        let info = NodeEntitiesInfo::new(&node);
        self.current = self.nodes.len();
        self.nodes.push((node, info));
        full_name
    }

    /// Goes back to the first node.
    pub(crate) fn end_node(&mut self) {
        self.current = 0;
    }

    fn current(&self) -> &NodeName {
        &self.nodes[self.current].0
    }

    fn info(&mut self) -> &mut NodeEntitiesInfo {
        &mut self.nodes[self.current].1
    }

    /// Publishes on `topic`; `kind` is the message type, as `std_msgs/String`.
    ///
    /// # Errors
    /// Errors of DDS.
    pub(crate) fn publish(
        &mut self,
        topic: &str,
        kind: &str,
        quality: Quality,
    ) -> Result<Writer, DdsError> {
        let topic = self.current().dds_name("rt", topic, "");
        self.write_dds(&topic, &name::dds_type(kind, "msg"), quality, Duration::ZERO)
    }

    /// Publishes under names of DDS, waiting at most `wait` where the last samples are not
    /// acknowledged yet.
    fn write_dds(
        &mut self,
        topic: &str,
        kind: &str,
        quality: Quality,
        wait: Duration,
    ) -> Result<Writer, DdsError> {
        let writer = writer(&self.participant, &self.publisher, topic, kind, quality, wait)?;
        self.info().writers.push(Gid::from(writer.inner.guid()));
        Ok(writer)
    }

    /// Subscribes to `topic`.
    ///
    /// # Errors
    /// Errors of DDS.
    pub(crate) fn subscribe(
        &mut self,
        topic: &str,
        kind: &str,
        quality: Quality,
    ) -> Result<Reader, DdsError> {
        let topic = self.current().dds_name("rt", topic, "");
        self.read_dds(&topic, &name::dds_type(kind, "msg"), quality)
    }

    fn read_dds(&mut self, topic: &str, kind: &str, quality: Quality) -> Result<Reader, DdsError> {
        let fail = |error| DdsError::new(format!("reader of {topic} ({kind})"), error);
        let policies = quality.policies(Duration::ZERO).with_user_data(type_hash::user_data(kind));
        let dds_topic =
            self.participant.create_topic(topic.to_owned(), kind.to_owned(), &policies, TopicKind::NoKey);
        let dds_topic = dds_topic.map_err(fail)?;
        let inner = self.subscriber.create_simple_datareader_no_key(&dds_topic, Some(policies));
        let inner: SimpleDataReader<Sample, RawAdapter> = inner.map_err(fail)?;
        self.info().readers.push(Gid::from(inner.guid()));
        Ok(Reader { inner })
    }

    /// Serves `service`; `kind` is its type, as `std_srvs/srv/Trigger`, and may be one of the
    /// services of an action, as `control_msgs/action/FollowJointTrajectory_SendGoal`.
    ///
    /// # Errors
    /// Errors of DDS.
    pub(crate) fn serve(
        &mut self,
        service: &str,
        kind: &str,
        mapping: Mapping,
    ) -> Result<Service, DdsError> {
        let requests = self.current().dds_name("rq", service, "Request");
        let replies = self.current().dds_name("rr", service, "Reply");
        let reader = self.read_dds(
            &requests,
            &name::dds_type(&format!("{kind}_Request"), "srv"),
            Quality::Reliable,
        )?;
        let kind = name::dds_type(&format!("{kind}_Response"), "srv");
        let writer = self.write_dds(&replies, &kind, Quality::Reliable, REPLY_WAIT)?;
        Ok(Service::new(reader, writer, Rc::clone(&self.replies), mapping))
    }

    /// Sends the replies with a reader discovered since.
    pub(crate) fn poll(&self) {
        self.replies.borrow_mut().poll();
    }

    /// True if a reply waits for its reader.
    pub(crate) fn is_waiting(&self) -> bool {
        self.replies.borrow().is_waiting()
    }

    /// Announces the readers and writers of these nodes to other nodes: once, after all of them
    /// were made.
    pub(crate) fn announce(&self) {
        let participant = Gid::from(self.participant.guid());
        let mut nodes: Vec<NodeEntitiesInfo> = self.nodes.iter().map(|(_, info)| info.clone()).collect();
        nodes[0].writers.push(Gid::from(self.info_writer.inner.guid()));
        // Without it nodes and topics work; only tools do not know the name of the node.
        let _ = self.info_writer.send(&ParticipantEntitiesInfo { participant, nodes });
    }
}

const DISCOVERY: &str = "ros_discovery_info";
const DISCOVERY_TYPE: &str = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";

/// Longest wait of a reply for room: the client waits for it, too.
const REPLY_WAIT: Duration = Duration::from_millis(100);

fn writer(
    participant: &DomainParticipant,
    publisher: &rustdds::Publisher,
    topic: &str,
    kind: &str,
    quality: Quality,
    wait: Duration,
) -> Result<Writer, DdsError> {
    let fail = |error| DdsError::new(format!("writer of {topic} ({kind})"), error);
    let policies = quality.policies(wait).with_user_data(type_hash::user_data(kind));
    let dds_topic =
        participant.create_topic(topic.to_owned(), kind.to_owned(), &policies, TopicKind::NoKey);
    let dds_topic = dds_topic.map_err(fail)?;
    let inner = publisher.create_datawriter_no_key(&dds_topic, Some(policies)).map_err(fail)?;
    Ok(Writer { inner })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Matching rules of other readers and writers: a writer that is not reliable matches no
    /// reliable reader, and a reliable reader matches no writer that is not.
    // feature(ros2): qualities of service equal the ROS profiles of the same names
    #[test]
    fn qualities_have_the_names_that_ros_uses() {
        let wait = Duration::from_millis(5);
        let reliable = Reliability::Reliable { max_blocking_time: wait };
        let rows = [
            (Quality::Reliable, reliable, Durability::Volatile, 10),
            (Quality::BestEffort, Reliability::BestEffort, Durability::Volatile, 10),
            (Quality::Latched, reliable, Durability::TransientLocal, 1),
            (Quality::Log, reliable, Durability::TransientLocal, 100),
        ];
        for (quality, reliability, durability, depth) in rows {
            let policies = quality.policies(wait);
            assert_eq!(policies.reliability(), Some(reliability), "{quality:?}");
            assert_eq!(policies.durability(), Some(durability), "{quality:?}");
            assert_eq!(policies.history(), Some(History::KeepLast { depth }), "{quality:?}");
        }
    }
}
