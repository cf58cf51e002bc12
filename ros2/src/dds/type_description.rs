//! Descriptions of types (REP 2016), for clients without their packages.
//!
//! ROS 2's own generator makes them: `lab/peers/ros_hashes.py` writes the list. The hash of a type
//! is the SHA-256 of its description as JSON, so that the description reported here and the hash in
//! discovery cannot differ.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::messages::service::{Field, FieldType, IndividualTypeDescription, TypeDescription};

/// Lines of a type's name and its fields, between tabs; of a field its name, the number of its
/// kind, capacities, nested type and default, between commas.
const DESCRIPTIONS: &str = include_str!("../messages/descriptions.txt");

/// Description of a type, as `std_msgs/msg/String`, with this hash.
///
/// # Errors
/// No such type, or another version of it.
pub(crate) fn of(name: &str, hash: &str) -> Result<TypeDescription, String> {
    let found = describe(name).ok_or_else(|| format!("`{name}`: this node has no such type"))?;
    let own = hash_of(&found);
    (own == hash).then_some(found).ok_or_else(|| format!("`{name}`: its hash is {own}, found {hash}"))
}

fn describe(name: &str) -> Option<TypeDescription> {
    let type_description = individual(name)?;
    // By their names, in the order of the hash.
    let mut referenced = BTreeMap::new();
    let mut open: Vec<String> = nested(&type_description).collect();
    while let Some(name) = open.pop() {
        if let Entry::Vacant(place) = referenced.entry(name) {
            let found = individual(place.key())?;
            open.extend(nested(&found));
            place.insert(found);
        }
    }
    let referenced_type_descriptions = referenced.into_values().collect();
    Some(TypeDescription { type_description, referenced_type_descriptions })
}

fn nested(of: &IndividualTypeDescription) -> impl Iterator<Item = String> {
    let names = of.fields.iter().map(|field| field.kind.nested_type_name.clone());
    names.filter(|name| !name.is_empty())
}

fn individual(name: &str) -> Option<IndividualTypeDescription> {
    let line = DESCRIPTIONS.lines().find_map(|line| {
        let (head, fields) = line.split_once('\t').unwrap_or((line, ""));
        (head == name).then_some(fields)
    })?;
    let fields = line.split('\t').filter(|text| !text.is_empty()).map(field).collect::<Option<_>>()?;
    Some(IndividualTypeDescription { type_name: name.to_owned(), fields })
}

fn field(text: &str) -> Option<Field> {
    let mut parts = text.splitn(6, ',');
    let name = parts.next()?.to_owned();
    let kind = FieldType {
        type_id: parts.next()?.parse().ok()?,
        capacity: parts.next()?.parse().ok()?,
        string_capacity: parts.next()?.parse().ok()?,
        nested_type_name: parts.next()?.to_owned(),
    };
    Some(Field { name, kind, default_value: parts.next()?.to_owned() })
}

/// Hash RIHS01: of the description as JSON with these blanks, without default values.
fn hash_of(description: &TypeDescription) -> String {
    let referenced: Vec<String> = description.referenced_type_descriptions.iter().map(json).collect();
    let text = format!(
        r#"{{"type_description": {}, "referenced_type_descriptions": [{}]}}"#,
        json(&description.type_description),
        referenced.join(", ")
    );
    Sha256::digest(text).iter().fold("RIHS01_".to_owned(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

/// Names are of letters, digits, underscores and slashes: nothing in them is escaped.
fn json(of: &IndividualTypeDescription) -> String {
    let fields = of.fields.iter().map(|Field { name, kind, .. }| {
        let FieldType { type_id, capacity, string_capacity, nested_type_name } = kind;
        format!(
            r#"{{"name": "{name}", "type": {{"type_id": {type_id}, "capacity": {capacity}, "string_capacity": {string_capacity}, "nested_type_name": "{nested_type_name}"}}}}"#
        )
    });
    let fields: Vec<String> = fields.collect();
    format!(r#"{{"type_name": "{}", "fields": [{}]}}"#, of.type_name, fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dds::type_hash::HASHES;

    // feature(ros2): `~/get_type_description`, with the hashes that discovery carries
    #[test]
    fn every_type_of_the_node_is_described_and_hashed() {
        assert!(HASHES.lines().count() > 50);
        for line in HASHES.lines() {
            let (name, hash) = line.split_once(' ').unwrap();
            let found = of(name, hash).unwrap();
            assert_eq!(found.type_description.type_name, name);
        }
    }

    #[test]
    fn services_are_described_whole_and_other_versions_refused() {
        // As a genuine node reports it.
        let hash = "RIHS01_eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f";
        let found = of("std_srvs/srv/Trigger", hash).unwrap();
        let names: Vec<&str> =
            found.referenced_type_descriptions.iter().map(|it| it.type_name.as_str()).collect();
        assert_eq!(names[..2], ["builtin_interfaces/msg/Time", "service_msgs/msg/ServiceEventInfo"]);
        let why = of("std_srvs/srv/SetBool", hash).unwrap_err();
        assert!(why.contains("its hash is RIHS01_") && why.ends_with(&format!("found {hash}")), "{why}");
        assert!(of("std_srvs/srv/SetBol", hash).unwrap_err().contains("has no such type"));
    }

    #[test]
    fn defaults_are_reported() {
        let quaternion = individual("geometry_msgs/msg/Quaternion").unwrap();
        let defaults: Vec<&str> = quaternion.fields.iter().map(|it| it.default_value.as_str()).collect();
        assert_eq!(defaults, ["0.0", "0.0", "0.0", "1.0"]);
    }
}
