//! rcl_interfaces: parameters and the log.

use serde::{Deserialize, Serialize};

use super::basic::Time;

/// rcl_interfaces/ParameterValue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ParameterValue {
    /// One of [`kind`].
    pub(crate) kind: u8,
    pub(crate) bool_value: bool,
    pub(crate) integer_value: i64,
    pub(crate) double_value: f64,
    pub(crate) string_value: String,
    pub(crate) byte_array_value: Vec<u8>,
    pub(crate) bool_array_value: Vec<bool>,
    pub(crate) integer_array_value: Vec<i64>,
    pub(crate) double_array_value: Vec<f64>,
    pub(crate) string_array_value: Vec<String>,
}

/// The kinds of rcl_interfaces/ParameterType that are used here.
pub(crate) mod kind {
    pub(crate) const NOT_SET: u8 = 0;
    pub(crate) const BOOL: u8 = 1;
    pub(crate) const INTEGER: u8 = 2;
    pub(crate) const DOUBLE: u8 = 3;
    pub(crate) const STRING: u8 = 4;
    pub(crate) const STRING_ARRAY: u8 = 9;
    /// From a kind to that of a list of it.
    pub(crate) const ARRAY: u8 = 5;

    /// Name of a kind, as `ros2 param describe` has it.
    pub(crate) const fn name(kind: u8) -> &'static str {
        match kind {
            NOT_SET => "not set",
            BOOL => "boolean",
            INTEGER => "integer",
            DOUBLE => "double",
            STRING => "string",
            5 => "byte array",
            6 => "boolean array",
            7 => "integer array",
            8 => "double array",
            STRING_ARRAY => "string array",
            _ => "unknown",
        }
    }
}

/// rcl_interfaces/Parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) value: ParameterValue,
}

/// rcl_interfaces/ParameterDescriptor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ParameterDescriptor {
    pub(crate) name: String,
    pub(crate) kind: u8,
    pub(crate) description: String,
    pub(crate) additional_constraints: String,
    pub(crate) read_only: bool,
    pub(crate) dynamic_typing: bool,
    pub(crate) floating_point_range: Vec<FloatingPointRange>,
    pub(crate) integer_range: Vec<IntegerRange>,
}

/// rcl_interfaces/FloatingPointRange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FloatingPointRange {
    pub(crate) from_value: f64,
    pub(crate) to_value: f64,
    pub(crate) step: f64,
}

/// rcl_interfaces/IntegerRange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IntegerRange {
    pub(crate) from_value: i64,
    pub(crate) to_value: i64,
    pub(crate) step: u64,
}

/// rcl_interfaces/SetParametersResult.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetParametersResult {
    pub(crate) successful: bool,
    pub(crate) reason: String,
}

/// A request of names: GetParameters, GetParameterTypes, DescribeParameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamesRequest {
    pub(crate) names: Vec<String>,
}

/// A response of a list: the one field of GetParameters, GetParameterTypes, DescribeParameters and
/// SetParameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListResponse<T> {
    pub(crate) values: Vec<T>,
}

/// rcl_interfaces/SetParameters and SetParametersAtomically, the request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SetParametersRequest {
    pub(crate) parameters: Vec<Parameter>,
}

/// rcl_interfaces/ListParameters, the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListParametersRequest {
    pub(crate) prefixes: Vec<String>,
    pub(crate) depth: u64,
}

/// rcl_interfaces/ListParametersResult.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListParametersResult {
    pub(crate) names: Vec<String>,
    pub(crate) prefixes: Vec<String>,
}

/// rcl_interfaces/ParameterEvent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ParameterEvent {
    pub(crate) stamp: Time,
    pub(crate) node: String,
    pub(crate) new_parameters: Vec<Parameter>,
    pub(crate) changed_parameters: Vec<Parameter>,
    pub(crate) deleted_parameters: Vec<Parameter>,
}

/// rcl_interfaces/LoggerLevel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoggerLevel {
    pub(crate) name: String,
    /// In the numbers of [`Log::level`]; 0 for the default.
    pub(crate) level: u32,
}

/// rcl_interfaces/SetLoggerLevels, the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetLoggerLevelsRequest {
    pub(crate) levels: Vec<LoggerLevel>,
}

/// rcl_interfaces/Log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Log {
    pub(crate) stamp: Time,
    pub(crate) level: u8,
    pub(crate) name: String,
    pub(crate) msg: String,
    pub(crate) file: String,
    pub(crate) function: String,
    pub(crate) line: u32,
}
