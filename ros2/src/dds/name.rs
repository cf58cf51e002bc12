//! Names of nodes and topics, in ROS 2 and in DDS, and the message by which ROS 2 knows the ends of
//! a node.
//!
//! ROS 2 puts `rt`, `rq` or `rr` before the full name of a topic, a request or a reply, and spells
//! the type `geometry_msgs/msg/Twist` as `geometry_msgs::msg::dds_::Twist_`.

use std::fmt;

use rustdds::GUID;
use serde::Serialize;

use crate::ros_args::rule::{Change, Role, Rule, is_token};

/// Name of a node in its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeName {
    /// Namespace; begins with a slash and does not end with one, except `/` itself.
    namespace: String,
    base: String,
    /// Names that have become others: their role, or both, and whole names.
    changes: Vec<(Option<Role>, String, String)>,
    rules: Vec<Rule>,
}

impl NodeName {
    /// Checks namespace and base name.
    ///
    /// # Errors
    /// The invalid name, with the reason.
    pub(crate) fn new(namespace: &str, base: &str) -> Result<Self, String> {
        let inner = namespace.trim_matches('/');
        if !inner.is_empty() && !inner.split('/').all(is_token) {
            return Err(format!("namespace `{namespace}`: {TOKENS} between slashes"));
        }
        if !is_token(base) {
            return Err(format!("node name `{base}`: {TOKENS}"));
        }
        Ok(Self {
            namespace: format!("/{inner}"),
            base: base.to_owned(),
            changes: Vec::new(),
            rules: Vec::new(),
        })
    }

    /// Applies rules in the order of ROS: the node's own name, then its namespace, then all other
    /// names, which both come after. Of each kind the first rule of this node counts.
    pub(crate) fn remapped(mut self, rules: &[Rule]) -> Self {
        let own = |rule: &Rule| match &rule.change {
            Change::Node(name) => Some(name.clone()),
            _ => None,
        };
        let namespace = |rule: &Rule| match &rule.change {
            Change::Namespace(name) => Some(name.clone()),
            _ => None,
        };
        if let Some(name) = rules.iter().filter(|rule| rule.is_of(&self.base)).find_map(own) {
            self.base = name;
        }
        if let Some(name) = rules.iter().filter(|rule| rule.is_of(&self.base)).find_map(namespace) {
            self.namespace = format!("/{}", name.trim_matches('/'));
        }
        self.rules = rules.to_vec();
        self.with_changes()
    }

    fn with_changes(mut self) -> Self {
        let change = |rule: &Rule| match &rule.change {
            Change::Name { of, from, to } => Some((*of, self.expand(from), self.expand(to))),
            _ => None,
        };
        self.changes = self.rules.iter().filter(|rule| rule.is_of(&self.base)).filter_map(change).collect();
        self
    }

    /// A node of this base name, which must be a token, in the same namespace: the rules for other
    /// names are its own, too.
    pub(crate) fn sibling(&self, base: &'static str) -> Self {
        debug_assert!(is_token(base), "{base}");
        Self { base: base.to_owned(), ..self.clone() }.with_changes()
    }

    /// Namespace: `/` or `/a/b`.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Name without the namespace.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Full name of `name` as seen from this node, or what a rule makes of it.
    pub(crate) fn resolve(&self, name: &str, role: Role) -> String {
        let whole = self.expand(name);
        let of = |change: &&(Option<Role>, String, String)| change.0.is_none_or(|it| it == role);
        let found = self.changes.iter().filter(of).find(|(_, from, _)| *from == whole);
        found.map_or(whole, |(_, _, to)| to.clone())
    }

    /// Full name of `name` as seen from this node: absolute with a slash before, private with `~/`,
    /// else below the namespace.
    fn expand(&self, name: &str) -> String {
        if name.starts_with('/') {
            name.to_owned()
        } else if let Some(private) = name.strip_prefix("~/") {
            format!("{self}/{private}")
        } else {
            format!("{}/{name}", self.namespace.trim_end_matches('/'))
        }
    }

    /// Name of a topic in DDS: `rt` is the prefix of topics, `rq` and `rr` of services.
    pub(crate) fn dds_name(&self, prefix: &str, name: &str, suffix: &str) -> String {
        let role = if prefix == "rt" { Role::Topic } else { Role::Service };
        format!("{prefix}{}{suffix}", self.resolve(name, role))
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace.trim_end_matches('/'), self.base)
    }
}

/// Name in DDS of the type `package/Type` of a kind (`msg`, `srv`), or of `package/kind/Type`.
pub(crate) fn dds_type(name: &str, kind: &str) -> String {
    let mut parts = name.splitn(3, '/');
    let package = parts.next().unwrap_or_default();
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    let (kind, name) = second.map_or((kind, first), |name| (first, name));
    format!("{package}::{kind}::dds_::{name}_")
}

const TOKENS: &str = "expected letters, digits and single underscores, not beginning with a digit,";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_ros_makes_of_them() {
        let root = NodeName::new("/", "onbeat").unwrap();
        assert_eq!(root.dds_name("rt", "cmd_vel", ""), "rt/cmd_vel");
        assert_eq!(root.dds_name("rq", "~/get_parameters", "Request"), "rq/onbeat/get_parametersRequest");
        let below = NodeName::new("cell/left", "onbeat").unwrap();
        assert_eq!(below.namespace(), "/cell/left");
        assert_eq!(below.dds_name("rt", "odom", ""), "rt/cell/left/odom");
        assert_eq!(below.dds_name("rt", "/tf", ""), "rt/tf");
        assert_eq!(below.to_string(), "/cell/left/onbeat");
    }

    // feature(ros2): `--ros-args -r`: topics, services, actions, the node and its namespace by other names
    #[test]
    fn names_become_others_in_the_order_of_ros() {
        let rules: Vec<Rule> = [
            "wheels:cmd_vel:=/first",
            "cmd_vel:=/second",
            "onbeat:__node:=wheels",
            "__node:=late",
            "onbeat:__ns:=/of_the_old_name",
            "wheels:__ns:=/cell/left",
            "other:odom:=/nowhere",
            "odom:=~/odometry",
            "rosservice://~/stop:=halt",
            "/tf:=tf",
            "follow:=/arm/follow",
        ]
        .map(|text| text.parse().unwrap())
        .into();
        let node = NodeName::new("/", "onbeat").unwrap().remapped(&rules);
        assert_eq!(node.to_string(), "/cell/left/wheels");
        for (prefix, name, expected) in [
            ("rt", "cmd_vel", "rt/first"),
            ("rt", "odom", "rt/cell/left/wheels/odometry"),
            ("rt", "/odom", "rt/odom"),
            ("rt", "/tf", "rt/cell/left/tf"),
            ("rq", "~/stop", "rq/cell/left/halt"),
            ("rt", "~/stop", "rt/cell/left/wheels/stop"),
            ("rq", "~/enable", "rq/cell/left/wheels/enable"),
        ] {
            assert_eq!(node.dds_name(prefix, name, ""), expected, "{name}");
        }
        assert_eq!(node.resolve("follow", Role::Service), "/arm/follow", "an action, then its parts");
        let sibling = node.sibling("manager");
        assert_eq!(sibling.dds_name("rt", "odom", ""), "rt/cell/left/manager/odometry");
        assert_eq!(sibling.dds_name("rt", "cmd_vel", ""), "rt/second");
    }

    #[test]
    fn types_are_what_dds_calls_them() {
        assert_eq!(dds_type("geometry_msgs/Twist", "msg"), "geometry_msgs::msg::dds_::Twist_");
        assert_eq!(
            dds_type("std_srvs/srv/Trigger_Request", "srv"),
            "std_srvs::srv::dds_::Trigger_Request_"
        );
        assert_eq!(
            dds_type("control_msgs/action/FollowJointTrajectory_SendGoal_Request", "srv"),
            "control_msgs::action::dds_::FollowJointTrajectory_SendGoal_Request_"
        );
    }

    #[test]
    fn a_bad_name_is_refused() {
        for (namespace, base) in
            [("/", ""), ("/", "2a"), ("/", "a b"), ("/a b", "n"), ("/a//b", "n"), ("/", "a__b")]
        {
            assert!(NodeName::new(namespace, base).is_err(), "{namespace} {base}");
        }
    }
}
