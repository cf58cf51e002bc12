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
mod tests;
