"""Writes the bytes that Cyclone DDS makes of ROS 2 messages, one a line: name, then hex.

    .venv-cyclone/bin/python lab/peers/cyclone_golden.py > ros2/src/messages/golden.txt

`ros2/src/messages/golden.rs` holds the same messages, and that it makes the same bytes of them.
"""

from importlib.metadata import version

import ros_types as ros

HEADER = ros.Header(ros.Time(1763722800, 123456789), "base_link")
POINT = ros.JointTrajectoryPoint([0.25, -0.5], [1.0, 2.0], [], [], ros.Duration(1, 500000000))
TOLERANCE = ros.JointTolerance("a", 0.01, 0.02, 0.03)
TRAJECTORY = ros.JointTrajectory(HEADER, ["a", "bc"], [POINT, POINT])
TRANSFORM = ros.Transform(ros.Vector3(1.0, 2.0, 3.0), ros.Quaternion(0.1, 0.2, 0.3, 0.9))
TWIST = ros.Twist(ros.Vector3(0.5, 0.0, 0.0), ros.Vector3(0.0, 0.0, -1.5))
GOAL_ID = ros.UUID(bytes(range(16)))
VALUE = ros.ParameterValue(3, True, -7, 0.5, "text", [1, 2], [True, False], [-1], [1.5, 2.5], ["x", "yz"])
ACTIVE = ros.LifecycleState(3, "active")
FIELD = ros.Field("header", ros.FieldType(1, 0, 0, "std_msgs/msg/Header"), "")
NUMBERS = [float(i) for i in range(36)]

MESSAGES = {
    "Header": HEADER,
    "Text": ros.String("<robot/>"),
    "Float64MultiArray": ros.Float64MultiArray(
        ros.MultiArrayLayout([ros.MultiArrayDimension("joints", 2, 2)], 0), [1.0, -2.0]
    ),
    "Twist": TWIST,
    "TwistStamped": ros.TwistStamped(HEADER, TWIST),
    "Odometry": ros.Odometry(
        HEADER,
        "odom",
        ros.PoseWithCovariance(ros.Pose(ros.Point(1.0, 2.0, 3.0), TRANSFORM.rotation), NUMBERS),
        ros.TwistWithCovariance(TWIST, NUMBERS),
    ),
    "TfMessage": ros.TFMessage([ros.TransformStamped(HEADER, "child", TRANSFORM)] * 2),
    "JointState": ros.JointState(HEADER, ["a", "bc"], [1.0, 2.0], [3.0], []),
    "Imu": ros.Imu(
        HEADER,
        TRANSFORM.rotation,
        NUMBERS[:9],
        TRANSFORM.translation,
        NUMBERS[9:18],
        TRANSFORM.translation,
        NUMBERS[18:27],
    ),
    "WrenchStamped": ros.WrenchStamped(HEADER, ros.Wrench(ros.Vector3(1.0, -2.0, 30.5), ros.Vector3(0.25, 0.0, -0.125))),
    "Temperature": ros.Temperature(HEADER, 36.5, 0.0),
    "DynamicInterfaceGroupValues": ros.DynamicInterfaceGroupValues(
        HEADER,
        ["lamps", "sensors"],
        [ros.InterfaceValue(["lamp green"], [1.0]), ros.InterfaceValue(["tank level", "force.x"], [42.5, -0.5])],
    ),
    "DynamicJointState": ros.DynamicJointState(
        HEADER, ["a"], [ros.InterfaceValue(["position", "velocity", "effort"], [1.0, -2.0, 0.5])]
    ),
    "LaserScan": ros.LaserScan(HEADER, -1.0, 1.0, 0.5, 0.25, 0.125, 0.1, 4.0, [1.0, 2.0, 3.0], []),
    "DiagnosticArray": ros.DiagnosticArray(
        HEADER, [ros.DiagnosticStatus(2, "name", "message", "id", [ros.KeyValue("k", "v")] * 2)]
    ),
    "JointTrajectory": TRAJECTORY,
    "FollowGoal": ros.FollowGoal(
        TRAJECTORY,
        ros.MultiDOFJointTrajectory(
            HEADER,
            ["d"],
            [ros.MultiDOFJointTrajectoryPoint([TRANSFORM], [TWIST], [], ros.Duration(2, 0))],
        ),
        [TOLERANCE],
        [ros.JointComponentTolerance("d", 3, 0.1, 0.2, 0.3)],
        [TOLERANCE, TOLERANCE],
        [],
        ros.Duration(0, 250000000),
    ),
    "FollowResult": ros.FollowResult(-4, "too far"),
    "FollowFeedbackMessage": ros.FollowFeedbackMessage(
        GOAL_ID, ros.FollowFeedback(HEADER, ["a", "bc"], POINT, POINT, POINT)
    ),
    "JointTrajectoryControllerState": ros.JointTrajectoryControllerState(
        HEADER, ["a", "bc"], POINT, POINT, POINT, POINT, speed_scaling_factor=1.0
    ),
    "QueryTrajectoryStateResponse": ros.QueryTrajectoryStateResponse(
        True, "now", ["a", "bc"], [0.25, -0.5], [1.0, 2.0], [0.0, 0.5]
    ),
    "GoalStatusArray": ros.GoalStatusArray([ros.GoalStatus(ros.GoalInfo(GOAL_ID, HEADER.stamp), 4)] * 2),
    "Parameter": ros.Parameter("name", VALUE),
    "ParameterDescriptor": ros.ParameterDescriptor(
        "name", 3, "about", "", False, True, [ros.FloatingPointRange(0.5, 2.5, 0.0)], [ros.IntegerRange(-1, 1, 1)]
    ),
    "ListParametersResult": ros.ListParametersResult(["a", "b"], []),
    "LoggerLevel": ros.LoggerLevel("onbeat", 30),
    "Log": ros.Log(HEADER.stamp, 30, "name", "msg", "file", "function", 7),
    "ControllerState": ros.ControllerState(
        "arm", "active", "kind", False, 1000, ["a/position"], ["a/position"], [], True, False, [], ["r"],
        [ros.ChainConnection("c", ["x"])],
    ),
    "ControllerManagerActivity": ros.ControllerManagerActivity(
        HEADER,
        [ros.NamedLifecycleState("arm", ACTIVE), ros.NamedLifecycleState("base", ACTIVE)],
        [ros.NamedLifecycleState("cell", ACTIVE)],
    ),
    "HardwareComponentState": ros.HardwareComponentState(
        "cell", "system", True, 1000, "class", "plugin", ACTIVE,
        [ros.HardwareInterface("a/position", True, True), ros.HardwareInterface("bc/position", True, False)],
        [ros.HardwareInterface("a/velocity", True, False)],
    ),
    "SetHardwareComponentStateRequest": ros.SetHardwareComponentStateRequest("cell", ACTIVE),
    "TransitionDescription": ros.TransitionDescription(
        ros.Transition(4, "deactivate"), ros.LifecycleState(3, "active"), ros.LifecycleState(14, "deactivating")
    ),
    "TransitionEvent": ros.TransitionEvent(
        1763722800123456789, ros.Transition(40, "transition_success"), ros.LifecycleState(14, "deactivating"),
        ros.LifecycleState(2, "inactive"),
    ),
    "TypeDescription": ros.TypeDescription(
        ros.IndividualTypeDescription("a/msg/B", [FIELD, ros.Field("w", ros.FieldType(59, 9, 3, ""), "1")]),
        [ros.IndividualTypeDescription("std_msgs/msg/Header", [])],
    ),
    "TypeSource": ros.TypeSource("a/msg/B", "msg", "float64 w 1\n"),
    "GetSdoRequest": ros.GetSdoRequest(-1, 3, 0x1018, 1, "uint32"),
    "GetSdoResponse": ros.GetSdoResponse(True, "", "4294904577", 4294904577.0),
    "SetSdoRequest": ros.SetSdoRequest(0, 3, 0x2F00, 1, "int32", "-10"),
    "SetSdoResponse": ros.SetSdoResponse(False, "no"),
}


def main():
    print(f"# Made by lab/peers/cyclone_golden.py with cyclonedds {version('cyclonedds')} (PyPI).")
    print("# Each line is the name of a message and its bytes with the four that tell the encoding.")
    for name, message in MESSAGES.items():
        print(name, message.serialize().hex())


if __name__ == "__main__":
    main()
