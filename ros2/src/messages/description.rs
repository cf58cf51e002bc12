//! type_description_interfaces.

use serde::{Deserialize, Serialize};

/// type_description_interfaces/GetTypeDescription, the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GetTypeDescriptionRequest {
    pub(crate) type_name: String,
    pub(crate) type_hash: String,
    pub(crate) include_type_sources: bool,
}

/// type_description_interfaces/GetTypeDescription, the response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GetTypeDescriptionResponse {
    pub(crate) successful: bool,
    pub(crate) failure_reason: String,
    pub(crate) type_description: TypeDescription,
    pub(crate) type_sources: Vec<TypeSource>,
    pub(crate) extra_information: Vec<KeyValue>,
}

/// type_description_interfaces/TypeDescription.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TypeDescription {
    pub(crate) type_description: IndividualTypeDescription,
    pub(crate) referenced_type_descriptions: Vec<IndividualTypeDescription>,
}

/// type_description_interfaces/IndividualTypeDescription.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndividualTypeDescription {
    pub(crate) type_name: String,
    pub(crate) fields: Vec<Field>,
}

/// type_description_interfaces/Field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: FieldType,
    pub(crate) default_value: String,
}

/// type_description_interfaces/FieldType.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FieldType {
    pub(crate) type_id: u8,
    pub(crate) capacity: u64,
    pub(crate) string_capacity: u64,
    pub(crate) nested_type_name: String,
}

/// type_description_interfaces/TypeSource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TypeSource {
    pub(crate) type_name: String,
    pub(crate) encoding: String,
    pub(crate) raw_file_contents: String,
}

/// type_description_interfaces/KeyValue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyValue {
    pub(crate) key: String,
    pub(crate) value: String,
}
