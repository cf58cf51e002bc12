//! std_srvs, ethercat_msgs and type_description_interfaces. A request without a field is one byte,
//! which is ignored.

use serde::{Deserialize, Serialize};

/// std_srvs/SetBool, the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetBoolRequest {
    pub(crate) data: bool,
}

/// std_srvs/Trigger and std_srvs/SetBool, the response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) success: bool,
    pub(crate) message: String,
}

/// ethercat_msgs/GetSdo, the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GetSdoRequest {
    pub(crate) master_id: i16,
    pub(crate) slave_position: u16,
    pub(crate) sdo_index: u16,
    pub(crate) sdo_subindex: u8,
    pub(crate) sdo_data_type: String,
}

/// ethercat_msgs/GetSdo, the response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct GetSdoResponse {
    pub(crate) success: bool,
    pub(crate) sdo_return_message: String,
    pub(crate) sdo_return_value_string: String,
    pub(crate) sdo_return_value: f64,
}

impl GetSdoResponse {
    pub(crate) fn read(text: String, number: f64) -> Self {
        Self { success: true, sdo_return_value_string: text, sdo_return_value: number, ..Self::default() }
    }

    pub(crate) fn failed(why: String) -> Self {
        Self { sdo_return_message: why, sdo_return_value: f64::NAN, ..Self::default() }
    }
}

/// ethercat_msgs/SetSdo, the request; its response is a [`Done`]. Some of its versions have `int16`
/// numbers, which lie at the same places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetSdoRequest {
    pub(crate) master_id: i16,
    pub(crate) slave_position: u16,
    pub(crate) sdo_index: u16,
    pub(crate) sdo_subindex: u8,
    pub(crate) sdo_data_type: String,
    pub(crate) sdo_value: String,
}

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
