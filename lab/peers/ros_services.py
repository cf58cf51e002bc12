"""The ROS 2 services that the Cyclone DDS judge speaks, in Cyclone DDS's mapping: requests and responses with a guid and a number
before them.
"""

from cyclonedds.idl.types import float64, int8, int16, int32, int64, sequence, uint8, uint16, uint64
from ros_types import (
    ControllerState,
    Duration,
    FollowGoal,
    FollowResult,
    GoalInfo,
    ListParametersResult,
    Parameter,
    ParameterDescriptor,
    ParameterValue,
    SetParametersResult,
    Time,
    UUID,
    ros,
    struct,
)


def in_cyclone_mapping(name, *fields):
    """A request or response: guid and number, then the fields (name, type, default)."""
    base = name.rpartition("/")[2]
    return struct(base, ros(name), [("guid", uint64, 0), ("number", int64, 0), *fields])


def service(name, request, response):
    """Both halves of a service."""
    nothing = [("structure_needs_at_least_one_member", uint8, 0)]
    return (
        in_cyclone_mapping(f"{name}_Request", *(request or nothing)),
        in_cyclone_mapping(f"{name}_Response", *response),
    )


DONE = [("success", bool, False), ("message", str, "")]
TRIGGER = service("std_srvs/srv/Trigger", [], DONE)
SET_BOOL = service("std_srvs/srv/SetBool", [("data", bool, False)], DONE)
LIST_CONTROLLERS = service(
    "controller_manager_msgs/srv/ListControllers", [], [("controller", sequence[ControllerState], list)]
)
SWITCH_CONTROLLER = service(
    "controller_manager_msgs/srv/SwitchController",
    [
        ("activate_controllers", sequence[str], list),
        ("deactivate_controllers", sequence[str], list),
        ("strictness", int32, 0),
        ("activate_asap", bool, False),
        ("timeout", Duration, Duration),
    ],
    [("ok", bool, False), ("message", str, "")],
)
GET_SDO = service(
    "ethercat_msgs/srv/GetSdo",
    [
        ("master_id", int16, 0),
        ("slave_position", uint16, 0),
        ("sdo_index", uint16, 0),
        ("sdo_subindex", uint8, 0),
        ("sdo_data_type", str, ""),
    ],
    [
        ("success", bool, False),
        ("sdo_return_message", str, ""),
        ("sdo_return_value_string", str, ""),
        ("sdo_return_value", float64, 0.0),
    ],
)
# As in the other version of its definition.
SET_SDO = service(
    "ethercat_msgs/srv/SetSdo",
    [
        ("master_id", int16, 0),
        ("slave_position", int16, 0),
        ("sdo_index", int16, 0),
        ("sdo_subindex", int16, 0),
        ("sdo_data_type", str, ""),
        ("sdo_value", str, ""),
    ],
    [("success", bool, False), ("sdo_return_message", str, "")],
)
NAMES = [("names", sequence[str], list)]
LIST_PARAMETERS = service(
    "rcl_interfaces/srv/ListParameters",
    [("prefixes", sequence[str], list), ("depth", uint64, 0)],
    [("result", ListParametersResult, ListParametersResult)],
)
GET_PARAMETERS = service("rcl_interfaces/srv/GetParameters", NAMES, [("values", sequence[ParameterValue], list)])
DESCRIBE_PARAMETERS = service(
    "rcl_interfaces/srv/DescribeParameters", NAMES, [("descriptors", sequence[ParameterDescriptor], list)]
)
SET_PARAMETERS = service(
    "rcl_interfaces/srv/SetParameters",
    [("parameters", sequence[Parameter], list)],
    [("results", sequence[SetParametersResult], list)],
)
SEND_GOAL = service(
    "control_msgs/action/FollowJointTrajectory_SendGoal",
    [("goal_id", UUID, UUID), ("goal", FollowGoal, FollowGoal)],
    [("accepted", bool, False), ("stamp", Time, Time)],
)
GET_RESULT = service(
    "control_msgs/action/FollowJointTrajectory_GetResult",
    [("goal_id", UUID, UUID)],
    [("status", int8, 0), ("result", FollowResult, FollowResult)],
)
CANCEL_GOAL = service(
    "action_msgs/srv/CancelGoal",
    [("goal_info", GoalInfo, GoalInfo)],
    [("return_code", int8, 0), ("goals_canceling", sequence[GoalInfo], list)],
)
