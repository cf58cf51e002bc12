//! The message by which ROS 2 knows which readers and writers are a node's:
//! rmw_dds_common/ParticipantEntitiesInfo, as of Iron, where a GID has 16 bytes.

use rustdds::GUID;
use serde::Serialize;

use super::name::NodeName;

/// rmw_dds_common/Gid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Gid([u8; 16]);

impl From<GUID> for Gid {
    fn from(guid: GUID) -> Self {
        Self(guid.to_bytes())
    }
}

/// rmw_dds_common/NodeEntitiesInfo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct NodeEntitiesInfo {
    namespace: String,
    name: String,
    pub(super) readers: Vec<Gid>,
    pub(super) writers: Vec<Gid>,
}

impl NodeEntitiesInfo {
    /// A node without readers and writers.
    pub(super) fn new(node: &NodeName) -> Self {
        let (namespace, name) = (node.namespace().to_owned(), node.base().to_owned());
        Self { namespace, name, readers: Vec::new(), writers: Vec::new() }
    }
}

/// rmw_dds_common/ParticipantEntitiesInfo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ParticipantEntitiesInfo {
    pub(super) participant: Gid,
    pub(super) nodes: Vec<NodeEntitiesInfo>,
}
