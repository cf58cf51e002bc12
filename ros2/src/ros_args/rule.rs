//! Rules by which names become others (design.ros2.org, "Topic and Service name mapping"; "Static
//! remapping").

use std::str::FromStr;

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Node of the rule, by its name without a namespace; all nodes without one.
    pub(crate) node: Option<String>,
    pub(crate) change: Change,
}

/// Change that a rule makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Another name of the node.
    Node(String),
    /// Another namespace of the node.
    Namespace(String),
    /// Another name of a topic, a service or an action. Both may be relative, private or whole.
    Name { of: Option<Role>, from: String, to: String },
}

/// Role of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Topic,
    /// A service, or an action, which is made of three of them and two topics.
    Service,
}

impl Rule {
    /// True if the rule is one of the node with this name.
    pub(crate) fn is_of(&self, node: &str) -> bool {
        self.node.as_deref().is_none_or(|name| name == node)
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (left, to) = text.split_once(":=").ok_or("expected FROM:=TO")?;
        // After the `rostopic:` of an address come two slashes, after a node's name none.
        let (node, from) = match left.split_once(':') {
            Some((node, from)) if !from.starts_with("//") => (Some(node), from),
            _ => (None, left),
        };
        if let Some(node) = node.filter(|node| !is_token(node)) {
            return Err(format!("`{node}`: expected the name of a node before `:`"));
        }
        let change = match from {
            "__node" | "__name" if is_token(to) => Change::Node(to.into()),
            "__node" | "__name" => return Err(format!("`{to}`: expected the name of a node")),
            "__ns" if to.starts_with('/') && is_namespace(to) => Change::Namespace(to.into()),
            "__ns" => return Err(format!("`{to}`: expected a namespace, which begins with a slash")),
            _ => name_change(from, to)?,
        };
        Ok(Self { node: node.map(str::to_owned), change })
    }
}

fn name_change(from: &str, to: &str) -> Result<Change, String> {
    let (of, from) = if let Some(from) = from.strip_prefix("rostopic://") {
        (Some(Role::Topic), from)
    } else if let Some(from) = from.strip_prefix("rosservice://") {
        (Some(Role::Service), from)
    } else {
        (None, from)
    };
    for name in [from, to] {
        if !is_name(name) {
            return Err(format!("`{name}`: expected the name of a topic, a service or an action"));
        }
    }
    Ok(Change::Name { of, from: from.into(), to: to.into() })
}

fn is_namespace(text: &str) -> bool {
    let inner = text.trim_start_matches('/').trim_end_matches('/');
    inner.is_empty() || inner.split('/').all(is_token)
}

/// True if ROS 2 accepts it as a name: tokens between slashes, perhaps behind `/` or `~/`.
pub(crate) fn is_name(text: &str) -> bool {
    let tokens = text.strip_prefix("~/").or_else(|| text.strip_prefix('/')).unwrap_or(text);
    tokens.split('/').all(is_token)
}

/// True if ROS 2 accepts it as part of a name.
pub(crate) fn is_token(token: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && token.chars().all(good)
        && !token.contains("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_ros_reads_it() {
        let name = |of, from: &str, to: &str| Change::Name { of, from: from.into(), to: to.into() };
        for (text, node, change) in [
            ("cmd_vel:=/left/cmd_vel", None, name(None, "cmd_vel", "/left/cmd_vel")),
            ("~/stop:=halt", None, name(None, "~/stop", "halt")),
            ("onbeat:odom:=wheels/odom", Some("onbeat"), name(None, "odom", "wheels/odom")),
            ("__node:=base", None, Change::Node("base".into())),
            ("__name:=base", None, Change::Node("base".into())),
            ("onbeat:__ns:=/cell/left", Some("onbeat"), Change::Namespace("/cell/left".into())),
            ("__ns:=/", None, Change::Namespace("/".into())),
            ("rostopic:///odom:=o", None, name(Some(Role::Topic), "/odom", "o")),
            ("onbeat:rosservice://~/stop:=s", Some("onbeat"), name(Some(Role::Service), "~/stop", "s")),
        ] {
            assert_eq!(text.parse(), Ok(Rule { node: node.map(str::to_owned), change }), "{text}");
        }
    }

    #[test]
    fn a_rule_that_ros_refuses_is_refused_by_its_wrong_part() {
        for (text, part) in [
            ("cmd_vel", "expected FROM:=TO"),
            ("cmd_vel=odom", "expected FROM:=TO"),
            (":=odom", "``"),
            ("cmd_vel:=", "``"),
            ("cmd vel:=odom", "`cmd vel`"),
            ("cmd_vel:=a//b", "`a//b`"),
            ("a b:cmd_vel:=odom", "`a b`"),
            ("__node:=/base", "`/base`"),
            ("__ns:=cell", "`cell`"),
            ("__ns:=/a b", "`/a b`"),
            ("cmd_vel:=b:=c", "`b:=c`"),
            ("/*:=b", "`/*`"),
        ] {
            let why = text.parse::<Rule>().unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
