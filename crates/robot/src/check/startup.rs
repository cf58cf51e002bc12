//! Checks of the objects to write at start-up.

use ethercat::main_device::StartupSdo;

use super::Checked;
use crate::error::Problem;
use crate::file;
use crate::object::{OBJECT_TYPES, ObjectType, ObjectValue};

pub(super) fn sdo(startup: &file::Startup) -> Checked<StartupSdo> {
    let file::Startup { index, sub_index, complete_access, value_type, value } = startup;
    let object_type: ObjectType = value_type.get_ref().parse().map_err(|_| {
        let names = OBJECT_TYPES.map(|(name, _)| name);
        let remedy = crate::nearest::nearest(value_type.get_ref(), names)
            .map_or("correct the type".to_owned(), |nearest| format!("did you mean \"{nearest}\"?"));
        let found = format!("unknown type \"{}\"", value_type.get_ref());
        Problem::new(value_type.span(), found, format!("one of {}", names.join(", ")), remedy)
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
