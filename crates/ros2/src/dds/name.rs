//! Names of nodes and topics, in ROS 2 and in DDS.
//!
//! ROS 2 puts `rt`, `rq` or `rr` before the full name of a topic, a request or a reply, and spells the type
//! `geometry_msgs/msg/Twist` as `geometry_msgs::msg::dds_::Twist_`.

use std::fmt;

/// Name of a node in its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeName {
    /// Namespace; begins with a slash and does not end with one, except `/` itself.
    namespace: String,
    base: String,
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
        Ok(Self { namespace: format!("/{inner}"), base: base.to_owned() })
    }

    /// A node of this base name, which must be a token, in the same namespace.
    pub(crate) fn sibling(&self, base: &'static str) -> Self {
        debug_assert!(is_token(base), "{base}");
        Self { namespace: self.namespace.clone(), base: base.to_owned() }
    }

    /// Namespace: `/` or `/a/b`.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Name without the namespace.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Full name of `name` as seen from this node: absolute with a slash before, private with `~/`, else
    /// below the namespace.
    pub(crate) fn resolve(&self, name: &str) -> String {
        if name.starts_with('/') {
            name.to_owned()
        } else if let Some(private) = name.strip_prefix("~/") {
            format!("{self}/{private}")
        } else {
            format!("{}/{name}", self.namespace.trim_end_matches('/'))
        }
    }

    /// Name of a topic in DDS.
    pub(crate) fn dds_name(&self, prefix: &str, name: &str, suffix: &str) -> String {
        format!("{prefix}{}{suffix}", self.resolve(name))
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

/// True if ROS 2 accepts it as part of a name.
pub(crate) fn is_token(token: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && token.chars().all(good)
        && !token.contains("__")
}

const TOKENS: &str = "expected letters, digits and single underscores, not beginning with a digit,";

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
