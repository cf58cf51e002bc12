//! controller_manager_msgs and lifecycle_msgs of Jazzy.

use serde::{Deserialize, Serialize};

use super::basic::{Duration, Header};

/// Request without a field: the one byte that it has is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct EmptyRequest {}

/// Request that is the name of a controller: controller_manager_msgs/LoadController,
/// ConfigureController, CleanupController and UnloadController.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NameRequest {
    pub(crate) name: String,
}

/// Their response, and that of ReloadControllerLibraries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OkResponse {
    pub(crate) ok: bool,
}

/// controller_manager_msgs/SwitchController, the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SwitchControllerRequest {
    pub(crate) activate_controllers: Vec<String>,
    pub(crate) deactivate_controllers: Vec<String>,
    pub(crate) strictness: i32,
    pub(crate) activate_asap: bool,
    pub(crate) timeout: Duration,
}

/// controller_manager_msgs/SwitchController, the response. Older peers do not know `message` and
/// stop before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SwitchControllerResponse {
    pub(crate) ok: bool,
    pub(crate) message: String,
}

/// controller_manager_msgs/ListControllers, the response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListControllersResponse {
    pub(crate) controller: Vec<ControllerState>,
}

/// controller_manager_msgs/ControllerState, as of Jazzy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ControllerState {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) kind: String,
    pub(crate) is_async: bool,
    pub(crate) update_rate: u16,
    pub(crate) claimed_interfaces: Vec<String>,
    pub(crate) required_command_interfaces: Vec<String>,
    pub(crate) required_state_interfaces: Vec<String>,
    pub(crate) is_chainable: bool,
    pub(crate) is_chained: bool,
    pub(crate) exported_state_interfaces: Vec<String>,
    pub(crate) reference_interfaces: Vec<String>,
    pub(crate) chain_connections: Vec<ChainConnection>,
}

/// controller_manager_msgs/ChainConnection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChainConnection {
    pub(crate) name: String,
    pub(crate) reference_interfaces: Vec<String>,
}

/// controller_manager_msgs/ListControllerTypes, the response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListControllerTypesResponse {
    pub(crate) types: Vec<String>,
    pub(crate) base_classes: Vec<String>,
}

/// controller_manager_msgs/NamedLifecycleState.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamedLifecycleState {
    pub(crate) name: String,
    pub(crate) state: LifecycleState,
}

/// controller_manager_msgs/ControllerManagerActivity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ControllerManagerActivity {
    pub(crate) header: Header,
    pub(crate) controllers: Vec<NamedLifecycleState>,
    pub(crate) hardware_components: Vec<NamedLifecycleState>,
}

/// controller_manager_msgs/HardwareInterface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HardwareInterface {
    pub(crate) name: String,
    pub(crate) is_available: bool,
    pub(crate) is_claimed: bool,
}

/// controller_manager_msgs/ListHardwareInterfaces, the response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListHardwareInterfacesResponse {
    pub(crate) command_interfaces: Vec<HardwareInterface>,
    pub(crate) state_interfaces: Vec<HardwareInterface>,
}

/// controller_manager_msgs/HardwareComponentState.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HardwareComponentState {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) is_async: bool,
    pub(crate) rw_rate: u16,
    pub(crate) class_type: String,
    pub(crate) plugin_name: String,
    pub(crate) state: LifecycleState,
    pub(crate) command_interfaces: Vec<HardwareInterface>,
    pub(crate) state_interfaces: Vec<HardwareInterface>,
}

/// controller_manager_msgs/ListHardwareComponents, the response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListHardwareComponentsResponse {
    pub(crate) component: Vec<HardwareComponentState>,
}

/// controller_manager_msgs/SetHardwareComponentState, the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetHardwareComponentStateRequest {
    pub(crate) name: String,
    pub(crate) target_state: LifecycleState,
}

/// controller_manager_msgs/SetHardwareComponentState, the response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetHardwareComponentStateResponse {
    pub(crate) ok: bool,
    pub(crate) state: LifecycleState,
}

/// lifecycle_msgs/State, and Transition, which has the same fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LifecycleState {
    pub(crate) id: u8,
    pub(crate) label: String,
}

impl LifecycleState {
    pub(crate) fn new(id: u8, label: &str) -> Self {
        Self { id, label: label.to_owned() }
    }
}

/// lifecycle_msgs/TransitionDescription.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TransitionDescription {
    pub(crate) transition: LifecycleState,
    pub(crate) start_state: LifecycleState,
    pub(crate) goal_state: LifecycleState,
}

/// lifecycle_msgs/TransitionEvent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TransitionEvent {
    /// Nanoseconds since 1970.
    pub(crate) timestamp: u64,
    pub(crate) transition: LifecycleState,
    pub(crate) start_state: LifecycleState,
    pub(crate) goal_state: LifecycleState,
}

/// lifecycle_msgs/ChangeState, the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeStateRequest {
    pub(crate) transition: LifecycleState,
}

/// lifecycle_msgs/ChangeState, the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeStateResponse {
    pub(crate) success: bool,
}
