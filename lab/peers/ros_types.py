"""The ROS 2 messages that the Cyclone DDS judge speaks, as their definitions say (Jazzy).

Written from the definitions, not from Onbeat's code: the two meet on the wire only.
"""

import re
import types
from dataclasses import dataclass, field

from cyclonedds.idl import IdlStruct
from cyclonedds.idl import types as idl
from cyclonedds.idl.annotations import final

# Type of ROS, a name of our own where two would be alike, and the fields as in a .msg file.
DEFINITIONS = """
builtin_interfaces/msg/Time: int32 sec, uint32 nanosec
builtin_interfaces/msg/Duration: int32 sec, uint32 nanosec
std_msgs/msg/Header: Time stamp, string frame_id
std_msgs/msg/String: string data
std_msgs/msg/MultiArrayDimension: string label, uint32 size, uint32 stride
std_msgs/msg/MultiArrayLayout: MultiArrayDimension[] dim, uint32 data_offset
std_msgs/msg/Float64MultiArray: MultiArrayLayout layout, float64[] data
geometry_msgs/msg/Point: float64 x, float64 y, float64 z
geometry_msgs/msg/Vector3: float64 x, float64 y, float64 z
geometry_msgs/msg/Quaternion: float64 x, float64 y, float64 z, float64 w 1.0
geometry_msgs/msg/Twist: Vector3 linear, Vector3 angular
geometry_msgs/msg/TwistStamped: Header header, Twist twist
geometry_msgs/msg/Pose: Point position, Quaternion orientation
geometry_msgs/msg/PoseWithCovariance: Pose pose, float64[36] covariance
geometry_msgs/msg/TwistWithCovariance: Twist twist, float64[36] covariance
nav_msgs/msg/Odometry: Header header, string child_frame_id, PoseWithCovariance pose, TwistWithCovariance twist
geometry_msgs/msg/Transform: Vector3 translation, Quaternion rotation
geometry_msgs/msg/TransformStamped: Header header, string child_frame_id, Transform transform
tf2_msgs/msg/TFMessage: TransformStamped[] transforms
sensor_msgs/msg/JointState: Header header, string[] name, float64[] position, float64[] velocity, float64[] effort
sensor_msgs/msg/Imu: Header header, Quaternion orientation, float64[9] orientation_covariance,
    Vector3 angular_velocity, float64[9] angular_velocity_covariance, Vector3 linear_acceleration,
    float64[9] linear_acceleration_covariance
geometry_msgs/msg/Wrench: Vector3 force, Vector3 torque
geometry_msgs/msg/WrenchStamped: Header header, Wrench wrench
sensor_msgs/msg/Temperature: Header header, float64 temperature, float64 variance
control_msgs/msg/InterfaceValue: string[] interface_names, float64[] values
control_msgs/msg/DynamicInterfaceGroupValues: Header header, string[] interface_groups,
    InterfaceValue[] interface_values
control_msgs/msg/DynamicJointState: Header header, string[] joint_names, InterfaceValue[] interface_values
sensor_msgs/msg/LaserScan: Header header, float32 angle_min, float32 angle_max, float32 angle_increment,
    float32 time_increment, float32 scan_time, float32 range_min, float32 range_max, float32[] ranges,
    float32[] intensities
diagnostic_msgs/msg/KeyValue: string key, string value
diagnostic_msgs/msg/DiagnosticStatus: uint8 level, string name, string message, string hardware_id,
    KeyValue[] values
diagnostic_msgs/msg/DiagnosticArray: Header header, DiagnosticStatus[] status
trajectory_msgs/msg/JointTrajectoryPoint: float64[] positions, float64[] velocities, float64[] accelerations,
    float64[] effort, Duration time_from_start
trajectory_msgs/msg/JointTrajectory: Header header, string[] joint_names, JointTrajectoryPoint[] points
trajectory_msgs/msg/MultiDOFJointTrajectoryPoint: Transform[] transforms, Twist[] velocities, Twist[] accelerations,
    Duration time_from_start
trajectory_msgs/msg/MultiDOFJointTrajectory: Header header, string[] joint_names,
    MultiDOFJointTrajectoryPoint[] points
control_msgs/msg/JointTolerance: string name, float64 position, float64 velocity, float64 acceleration
control_msgs/msg/JointComponentTolerance: string joint_name, uint16 component, float64 position, float64 velocity,
    float64 acceleration
control_msgs/action/FollowJointTrajectory_Goal FollowGoal: JointTrajectory trajectory,
    MultiDOFJointTrajectory multi_dof_trajectory, JointTolerance[] path_tolerance,
    JointComponentTolerance[] component_path_tolerance, JointTolerance[] goal_tolerance,
    JointComponentTolerance[] component_goal_tolerance, Duration goal_time_tolerance
control_msgs/action/FollowJointTrajectory_Result FollowResult: int32 error_code, string error_string
control_msgs/action/FollowJointTrajectory_Feedback FollowFeedback: Header header, string[] joint_names,
    JointTrajectoryPoint desired, JointTrajectoryPoint actual, JointTrajectoryPoint error,
    string[] multi_dof_joint_names, MultiDOFJointTrajectoryPoint multi_dof_desired,
    MultiDOFJointTrajectoryPoint multi_dof_actual, MultiDOFJointTrajectoryPoint multi_dof_error
control_msgs/msg/JointTrajectoryControllerState: Header header, string[] joint_names, JointTrajectoryPoint reference,
    JointTrajectoryPoint feedback, JointTrajectoryPoint error, JointTrajectoryPoint output,
    string[] multi_dof_joint_names, MultiDOFJointTrajectoryPoint multi_dof_reference,
    MultiDOFJointTrajectoryPoint multi_dof_feedback, MultiDOFJointTrajectoryPoint multi_dof_error,
    MultiDOFJointTrajectoryPoint multi_dof_output, float64 speed_scaling_factor
control_msgs/srv/QueryTrajectoryState_Response QueryTrajectoryStateResponse: bool success, string message,
    string[] name, float64[] position, float64[] velocity, float64[] acceleration
unique_identifier_msgs/msg/UUID: uint8[16] uuid
control_msgs/action/FollowJointTrajectory_FeedbackMessage FollowFeedbackMessage: UUID goal_id,
    FollowFeedback feedback
action_msgs/msg/GoalInfo: UUID goal_id, Time stamp
action_msgs/msg/GoalStatus: GoalInfo goal_info, int8 status
action_msgs/msg/GoalStatusArray: GoalStatus[] status_list
rcl_interfaces/msg/ParameterValue: uint8 type, bool bool_value, int64 integer_value, float64 double_value,
    string string_value, uint8[] byte_array_value, bool[] bool_array_value, int64[] integer_array_value,
    float64[] double_array_value, string[] string_array_value
rcl_interfaces/msg/Parameter: string name, ParameterValue value
rcl_interfaces/msg/FloatingPointRange: float64 from_value, float64 to_value, float64 step
rcl_interfaces/msg/IntegerRange: int64 from_value, int64 to_value, uint64 step
rcl_interfaces/msg/ParameterDescriptor: string name, uint8 type, string description, string additional_constraints,
    bool read_only, bool dynamic_typing, FloatingPointRange[] floating_point_range, IntegerRange[] integer_range
rcl_interfaces/msg/SetParametersResult: bool successful, string reason
rcl_interfaces/msg/ListParametersResult: string[] names, string[] prefixes
rcl_interfaces/msg/LoggerLevel: string name, uint32 level
lifecycle_msgs/msg/State LifecycleState: uint8 id, string label
lifecycle_msgs/msg/Transition: uint8 id, string label
lifecycle_msgs/msg/TransitionDescription: Transition transition, LifecycleState start_state, LifecycleState goal_state
lifecycle_msgs/msg/TransitionEvent: uint64 timestamp, Transition transition, LifecycleState start_state,
    LifecycleState goal_state
type_description_interfaces/msg/FieldType: uint8 type_id, uint64 capacity, uint64 string_capacity, string nested_type_name
type_description_interfaces/msg/Field: string name, FieldType type, string default_value
type_description_interfaces/msg/IndividualTypeDescription: string type_name, Field[] fields
type_description_interfaces/msg/TypeDescription: IndividualTypeDescription type_description,
    IndividualTypeDescription[] referenced_type_descriptions
type_description_interfaces/msg/TypeSource: string type_name, string encoding, string raw_file_contents
type_description_interfaces/msg/KeyValue TypeKeyValue: string key, string value
rcl_interfaces/msg/Log: Time stamp, uint8 level, string name, string msg, string file, string function, uint32 line
controller_manager_msgs/msg/ChainConnection: string name, string[] reference_interfaces
controller_manager_msgs/msg/ControllerState: string name, string state, string type, bool is_async,
    uint16 update_rate, string[] claimed_interfaces, string[] required_command_interfaces,
    string[] required_state_interfaces, bool is_chainable, bool is_chained, string[] exported_state_interfaces,
    string[] reference_interfaces, ChainConnection[] chain_connections
controller_manager_msgs/msg/NamedLifecycleState: string name, LifecycleState state
controller_manager_msgs/msg/ControllerManagerActivity: Header header, NamedLifecycleState[] controllers,
    NamedLifecycleState[] hardware_components
controller_manager_msgs/msg/HardwareInterface: string name, bool is_available, bool is_claimed
controller_manager_msgs/msg/HardwareComponentState: string name, string type, bool is_async, uint16 rw_rate,
    string class_type, string plugin_name, LifecycleState state, HardwareInterface[] command_interfaces,
    HardwareInterface[] state_interfaces
controller_manager_msgs/srv/SetHardwareComponentState_Request SetHardwareComponentStateRequest: string name,
    LifecycleState target_state
ethercat_msgs/srv/GetSdo_Request GetSdoRequest: int16 master_id, uint16 slave_position, uint16 sdo_index,
    uint8 sdo_subindex, string sdo_data_type
ethercat_msgs/srv/GetSdo_Response GetSdoResponse: bool success, string sdo_return_message,
    string sdo_return_value_string, float64 sdo_return_value
ethercat_msgs/srv/SetSdo_Request SetSdoRequest: int16 master_id, uint16 slave_position, uint16 sdo_index,
    uint8 sdo_subindex, string sdo_data_type, string sdo_value
ethercat_msgs/srv/SetSdo_Response SetSdoResponse: bool success, string sdo_return_message
"""


def ros(name):
    package, kind, name = name.split("/")
    return f"{package}::{kind}::dds_::{name}_"


def struct(name, typename, columns):
    """A structure of the fields (name, type, default)."""
    columns = [(c, of, field(default_factory=d) if callable(d) else field(default=d)) for c, of, d in columns]
    body = {"__module__": __name__, "__annotations__": {c: of for c, of, _ in columns}} | {c: d for c, _, d in columns}
    return final(dataclass(types.new_class(name, (IdlStruct,), {"typename": typename}, lambda it: it.update(body))))


def scalar(name):
    """Type and default of a field that is no array."""
    plain = {"string": (str, ""), "bool": (bool, False), "float32": (idl.float32, 0.0), "float64": (idl.float64, 0.0)}
    return plain.get(name) or ((KINDS[name],) * 2 if name in KINDS else (getattr(idl, name), 0))


def column(text):
    """Name, type and default of a field: `float64 w 1.0`, `string[] names`, `float64[36] covariance`."""
    kind, length, name, default = re.fullmatch(r"(\w+)(?:\[(\d*)\])? (\w+)(?: (\S+))?", text.strip()).groups()
    of, zero = scalar(kind)
    match length:
        case None:
            return name, of, float(default) if default else zero
        case "":
            return name, idl.sequence[of], list
    length = int(length)
    return name, idl.array[of, length], lambda: bytes(length) if kind == "uint8" else [zero] * length


KINDS = {}
for definition in re.sub(r"\n +", " ", DEFINITIONS).strip().splitlines():
    head, fields = definition.split(": ")
    name, *own = head.split()
    own = own[0] if own else name.rpartition("/")[2]
    KINDS[own] = struct(own, ros(name), [column(text) for text in fields.split(", ")])
globals().update(KINDS)


def impostor(kind):
    """A type of the same name that is a string and nothing else."""
    return struct("Impostor", kind.__idl_typename__.replace(".", "::"), [("text", str, "")])
