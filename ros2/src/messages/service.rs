//! std_srvs and ethercat_msgs. A request without a field is one byte, which is ignored.

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
