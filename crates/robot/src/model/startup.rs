//! `startup` of a SubDevice.

use crate::value::Spanned;
use ethercat::main_device::StartupSdo;
use serde::Deserialize;
use serde::de::Deserializer;
use types::object::{OBJECT_TYPES, ObjectType, ObjectValue};

use crate::check::{Checked, unknown_name};
use crate::error::Problem;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Startup {
    index: u16,
    #[serde(default)]
    sub_index: u8,
    #[serde(default)]
    complete_access: bool,
    #[serde(rename = "type")]
    value_type: Spanned<String>,
    value: Spanned<toml::Value>,
}

pub(super) fn startup<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<StartupSdo>, D::Error> {
    let sdos = Vec::<Startup>::deserialize(deserializer)?;
    sdos.iter().map(sdo).collect::<Checked<_>>().map_err(Problem::into_error)
}

fn sdo(startup: &Startup) -> Checked<StartupSdo> {
    let Startup { index, sub_index, complete_access, value_type, value } = startup;
    let object_type: ObjectType = value_type.get_ref().parse().map_err(|_| {
        let names = OBJECT_TYPES.map(|(name, _)| name);
        let found = format!("unknown type \"{}\"", value_type.get_ref());
        let expected = format!("one of {}", names.join(", "));
        unknown_name(value_type.span(), found, expected, value_type.get_ref(), names, "the type")
    })?;
    let object = match value.get_ref() {
        toml::Value::Boolean(value) => Some(ObjectValue::Bool(*value)),
        toml::Value::Integer(value) => Some(ObjectValue::Integer(i128::from(*value))),
        toml::Value::Float(value) => Some(ObjectValue::Real(*value)),
        toml::Value::String(value) => Some(ObjectValue::Text(value.clone())),
        _ => None,
    };
    let encoded = object.map(|object| object_type.encode(&object));
    let refused = |found: String, expected: String| {
        let found = format!("the value {found} for object {index:#06x}:{sub_index:02x}");
        Problem::new(value.span(), found, expected, "correct the value or its type")
    };
    let data = match encoded {
        Some(Ok(data)) => data,
        Some(Err(error)) => return Err(refused(error.found, error.expected)),
        None => {
            let found = value.get_ref().type_str().to_owned();
            return Err(refused(found, "a number, a text, true or false".to_owned()));
        }
    };
    if data.is_empty() {
        return Err(refused("of no bytes".to_owned(), "at least one byte".to_owned()));
    }
    Ok(StartupSdo { index: *index, sub_index: *sub_index, complete_access: *complete_access, data })
}
