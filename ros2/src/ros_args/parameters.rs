//! Parameters of a command line and of files.
//!
//! A file names nodes, either with their namespaces in one key or in nested ones; `*` matches one
//! part of a name, `**` any number of parts. Below `ros__parameters` are the parameters.

use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess, Visitor};

use super::rule::is_token;
use crate::dds::name::NodeName;
use crate::messages::parameter::{Parameter, ParameterValue, kind};
use crate::settings::{self, Settings};

/// Value of a parameter, for the nodes that a pattern names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assignment {
    /// File that it is from; none for the command line.
    file: Option<String>,
    /// Parts of the names of the nodes.
    nodes: Vec<String>,
    parameter: Parameter,
}

impl Assignment {
    /// One of the command line: `NAME:=VALUE` for every node, `NODE:NAME:=VALUE` for that of the
    /// root namespace.
    ///
    /// # Errors
    /// The mistake in the text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (left, value) =
            text.split_once(":=").ok_or_else(|| format!("`{text}`: expected NAME:=VALUE"))?;
        let (node, name) = left.split_once(':').map_or((None, left), |(node, name)| (Some(node), name));
        if let Some(node) = node.filter(|node| !is_token(node)) {
            return Err(format!("`{node}`: expected the name of a node before `:`"));
        }
        if name.is_empty() {
            return Err(format!("`{text}`: expected the name of a parameter before `:=`"));
        }
        let value: Value = serde_saphyr::from_str(value).map_err(|error| format!("`{value}`: {error}"))?;
        let nodes = vec![node.unwrap_or(ANY_NUMBER).to_owned()];
        let parameter = Parameter { name: name.into(), value: value.into_parameter(name)? };
        Ok(Self { file: None, nodes, parameter })
    }

    /// Sets the parameter, if it belongs to this node. Returns a warning for an unknown parameter
    /// if the pattern also matches other nodes: it may be theirs.
    ///
    /// # Errors
    /// A parameter that this node does not have, or an invalid value.
    pub(crate) fn apply(&self, node: &NodeName, values: &mut Settings) -> Result<Option<String>, String> {
        let name = node.to_string();
        if !matches(&self.nodes, &name[1..].split('/').collect::<Vec<_>>()) {
            return Ok(None);
        }
        let Some(file) = &self.file else {
            return values.set(&self.parameter).map(|()| None);
        };
        let outcome = values.set(&self.parameter);
        let place = |why| format!("{file}: /{}: {why}", self.nodes.join("/"));
        match outcome {
            Err(why) if !settings::is_known(&self.parameter.name) && self.is_of_many() => {
                Ok(Some(place(format!("{why}; left to other nodes"))))
            }
            outcome => outcome.map(|()| None).map_err(place),
        }
    }

    fn is_of_many(&self) -> bool {
        self.nodes.iter().any(|part| part == ANY || part == ANY_NUMBER)
    }
}

const ANY: &str = "*";
const ANY_NUMBER: &str = "**";
const PARAMETERS: &str = "ros__parameters";

/// True if a pattern names a node.
fn matches(pattern: &[String], name: &[&str]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return name.is_empty();
    };
    match first.as_str() {
        ANY_NUMBER => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        part => name
            .split_first()
            .is_some_and(|(head, tail)| (part == ANY || part == *head) && matches(rest, tail)),
    }
}

/// Reads a file of parameters.
///
/// # Errors
/// The file cannot be read, or is none of parameters.
pub(crate) fn read(path: &str) -> Result<Vec<Assignment>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    parse(&text, path)
}

fn parse(text: &str, path: &str) -> Result<Vec<Assignment>, String> {
    let mut found = Vec::new();
    let value: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    nodes(value, &mut Vec::new(), path, &mut found)?;
    Ok(found)
}

/// Goes down the names of nodes.
fn nodes(
    value: Value,
    parts: &mut Vec<String>,
    path: &str,
    found: &mut Vec<Assignment>,
) -> Result<(), String> {
    let entries = match value {
        Value::Map(entries) => entries,
        Value::Nothing => return Ok(()),
        _ => return Err(format!("/{}: expected names of nodes, then `{PARAMETERS}`", parts.join("/"))),
    };
    for (key, value) in entries {
        if key == PARAMETERS {
            if parts.is_empty() {
                return Err(format!("`{PARAMETERS}`: expected the name of a node above it, as /**"));
            }
            parameters(value, "", &mut |name, value| {
                let parameter = Parameter { name: name.into(), value: value.into_parameter(name)? };
                found.push(Assignment { file: Some(path.into()), nodes: parts.clone(), parameter });
                Ok(())
            })
            .map_err(|why| format!("/{}: {why}", parts.join("/")))?;
            continue;
        }
        let depth = parts.len();
        let inner = key.trim_matches('/');
        let is_part = |part: &str| is_token(part) || part == ANY || part == ANY_NUMBER;
        if !inner.split('/').all(is_part) {
            return Err(format!("`{key}`: expected the name of a node, or of its namespace"));
        }
        parts.extend(inner.split('/').map(str::to_owned));
        nodes(value, parts, path, found)?;
        parts.truncate(depth);
    }
    Ok(())
}

/// Descends the names of parameters; a name's parts are joined by dots.
fn parameters(
    value: Value,
    name: &str,
    take: &mut dyn FnMut(&str, Value) -> Result<(), String>,
) -> Result<(), String> {
    match value {
        Value::Map(entries) => entries.into_iter().try_for_each(|(key, value)| {
            let name = if name.is_empty() { key } else { format!("{name}.{key}") };
            parameters(value, &name, take)
        }),
        Value::Nothing if name.is_empty() => Ok(()),
        _ if name.is_empty() => Err(format!("`{PARAMETERS}`: expected names of parameters below it")),
        value => take(name, value),
    }
}

/// Value of YAML.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Nothing,
    Bool(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

impl Value {
    fn into_parameter(self, name: &str) -> Result<ParameterValue, String> {
        let mut value = ParameterValue { kind: self.kind(), ..ParameterValue::default() };
        match self {
            Self::Bool(found) => value.bool_value = found,
            Self::Integer(found) => value.integer_value = found,
            Self::Double(found) => value.double_value = found,
            Self::Text(found) => value.string_value = found,
            // No parameter here is a list: its kind is enough to say so.
            Self::List(_) => {}
            Self::Nothing => return Err(format!("`{name}`: expected a value, found none")),
            Self::Map(_) => return Err(format!("`{name}`: expected one value, found names of several")),
        }
        Ok(value)
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Nothing | Self::Map(_) => kind::NOT_SET,
            Self::Bool(_) => kind::BOOL,
            Self::Integer(_) => kind::INTEGER,
            Self::Double(_) => kind::DOUBLE,
            Self::Text(_) => kind::STRING,
            Self::List(values) => values.first().map_or(kind::STRING, Self::kind) + kind::ARRAY,
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a map")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Double(value as f64), Value::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = access.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(assignments: &[Assignment], node: &str) -> Result<(Settings, Vec<String>), String> {
        let (namespace, base) = node.rsplit_once('/').unwrap();
        let node = NodeName::new(namespace, base).unwrap();
        let mut settings = Settings::default();
        let mut warnings = Vec::new();
        for assignment in assignments {
            warnings.extend(assignment.apply(&node, &mut settings)?);
        }
        Ok((settings, warnings))
    }

    // feature(ros2): `--ros-args -p`, `--params-file`: for nodes by name, by namespace and by wildcards
    #[test]
    fn parameters_of_a_file_are_for_the_nodes_that_it_names() {
        let text = "
/**:
  ros__parameters: {odom_rate: 5, controller_frequency: 20.0}
/cell/*:
  ros__parameters:
    odom_rate: 6.5
cell:
  onbeat:
    ros__parameters:
      odom_frame: map
      publish_tf: false
/cell/**/arm:
  ros__parameters:
    odom_rate: 7
other:
  ros__parameters:
    no_such: 1
";
        let assignments = parse(text, "cell.yaml").unwrap();
        let of = |node: &str| settings(&assignments, node).unwrap();
        let (onbeat, warnings) = of("/cell/onbeat");
        assert_eq!((onbeat.odom_rate, onbeat.odom_frame.as_str(), onbeat.publish_tf), (6.5, "map", false));
        let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
        assert!(
            warning.starts_with("cell.yaml: /**: there is no parameter `controller_frequency`"),
            "{warning}"
        );
        assert_eq!(of("/onbeat").0.odom_rate, 5.0);
        assert_eq!((of("/cell/arm").0.odom_rate, of("/cell/left/arm").0.odom_rate), (7.0, 7.0));
        let why = settings(&assignments, "/other").unwrap_err();
        assert!(
            why.starts_with(
                "cell.yaml: /other: there is no parameter `no_such`; there are autostart, base_frame"
            ),
            "{why}"
        );
    }

    #[test]
    fn a_command_line_assignment_is_for_this_or_the_named_node() {
        let assign = |texts: &[&str]| {
            let assignments: Vec<_> = texts.iter().map(|text| Assignment::parse(text).unwrap()).collect();
            settings(&assignments, "/onbeat").map(|(settings, _)| settings)
        };
        assert_eq!(assign(&["odom_rate:=20", "odom_rate:=30"]).unwrap().odom_rate, 30.0, "the later one");
        assert_eq!(assign(&["onbeat:odom_rate:=20", "arm:odom_rate:=30"]).unwrap().odom_rate, 20.0);
        assert_eq!(
            assign(&["scan_frame:='front laser'"]).unwrap_err(),
            "`scan_frame` is `front laser`; expected the name of a frame"
        );
        assert!(!assign(&["publish_tf:=false"]).unwrap().publish_tf);
        for (text, words) in [
            ("no:=1", "there is no parameter `no`; there are autostart, base_frame"),
            ("odom_rate:=fast", "expected a value of type double, found string"),
            ("odom_rate:=[1, 2]", "expected a value of type double, found integer array"),
            ("odom_rate:=-1", "expected 0.1 to 1000"),
            ("use_sim_time:=true", "cannot be changed"),
        ] {
            let why = assign(&[text]).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
        for (text, words) in [
            ("odom_rate=5", "expected NAME:=VALUE"),
            (":=5", "expected the name of a parameter"),
            ("a b:odom_rate:=5", "`a b`: expected the name of a node"),
            ("odom_rate:=", "expected a value, found none"),
            ("odom_rate:={a: 1}", "found names of several"),
            ("odom_rate:=[1", "`[1`: "),
        ] {
            let why = Assignment::parse(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    #[test]
    fn a_file_without_parameters_is_reported_with_its_position() {
        for (text, words) in [
            ("- 1\n- 2\n", "/: expected names of nodes, then `ros__parameters`"),
            ("onbeat: 5\n", "/onbeat: expected names of nodes"),
            (
                "ros__parameters: {odom_rate: 5}\n",
                "`ros__parameters`: expected the name of a node above it",
            ),
            ("onbeat:\n  ros__parameters: 5\n", "/onbeat: `ros__parameters`: expected names of parameters"),
            (
                "onbeat:\n  ros__parameters: {odom_rate: }\n",
                "/onbeat: `odom_rate`: expected a value, found none",
            ),
            ("on beat:\n  ros__parameters: {odom_rate: 5}\n", "`on beat`: expected the name of a node"),
            ("onbeat:\n  ros__parameters: {odom_rate: 5, odom_rate: 6}\n", "odom_rate"),
            ("onbeat:\n  ros__parameters: [\n", "line"),
        ] {
            let why = parse(text, "f.yaml").unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
        assert_eq!(parse("", "f.yaml"), Ok(vec![]));
        assert_eq!(parse("/**:\n  ros__parameters:\n", "f.yaml"), Ok(vec![]), "all of them commented out");
        let nested = parse("/**: {ros__parameters: {a: {b: 1}}}", "f.yaml").unwrap();
        assert_eq!(nested[0].parameter.name, "a.b");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_assignments_or_an_error(text in "(/\\*\\*|a|ros__parameters|odom_rate|[:{}\\[\\],&*!|>'\"#%@-]|\n| {1,4}|[0-9.]{1,4}){0,40}") {
            let _ = parse(&text, "f.yaml");
            let _ = Assignment::parse(&text);
            let _ = text.parse::<crate::ros_args::rule::Rule>();
        }
    }
}
