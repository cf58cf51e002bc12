"""Hashes (RIHS01) and descriptions of the ROS 2 types that onbeat-ros2 speaks, as ROS 2's own generator makes them.

    ros_hashes.py ros2/src/messages/hashes.txt             compares it and descriptions.txt beside it, and says what differs
    ros_hashes.py ros2/src/messages/hashes.txt --write     writes the files

Types of the packages that PyPI has (lab/peers/ros.txt) come with their hashes; for the others the fields are in
ros_interfaces.py, and rosidl_generator_type_description of the same packages makes the hash.
"""

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

from ros_interfaces import DEFINITIONS, share, write_idl
from rosidl_generator_type_description import generate_type_hash

# What the node publishes, hears and serves.
TYPES = """
std_msgs/msg/String std_msgs/msg/Float64MultiArray geometry_msgs/msg/Twist geometry_msgs/msg/TwistStamped
geometry_msgs/msg/PoseStamped geometry_msgs/msg/WrenchStamped nav_msgs/msg/Odometry sensor_msgs/msg/JointState sensor_msgs/msg/Imu
sensor_msgs/msg/LaserScan sensor_msgs/msg/Temperature diagnostic_msgs/msg/DiagnosticArray trajectory_msgs/msg/JointTrajectory
rcl_interfaces/msg/Log rcl_interfaces/msg/ParameterEvent rmw_dds_common/msg/ParticipantEntitiesInfo action_msgs/msg/GoalStatusArray
action_msgs/srv/CancelGoal std_srvs/srv/Trigger std_srvs/srv/SetBool rcl_interfaces/srv/ListParameters
rcl_interfaces/srv/GetParameters rcl_interfaces/srv/SetParameters rcl_interfaces/srv/SetParametersAtomically
rcl_interfaces/srv/DescribeParameters rcl_interfaces/srv/GetParameterTypes rcl_interfaces/srv/GetLoggerLevels
rcl_interfaces/srv/SetLoggerLevels type_description_interfaces/srv/GetTypeDescription lifecycle_msgs/msg/TransitionEvent
lifecycle_msgs/srv/ChangeState lifecycle_msgs/srv/GetState lifecycle_msgs/srv/GetAvailableStates
lifecycle_msgs/srv/GetAvailableTransitions
""".split()

# Of an action's parts, those that are sent.
PARTS = {
    "msg": ["{}"],
    "srv": ["{}_Request", "{}_Response"],
    "action": ["{}_SendGoal_Request", "{}_SendGoal_Response", "{}_GetResult_Request", "{}_GetResult_Response",
               "{}_FeedbackMessage"],
}


def generate(package, folder):
    """Has ROS 2's generator describe the types of a package, in `folder`."""
    idl = write_idl(package, folder)
    includes = [f"{path.name}:{path}" for path in share().iterdir()] + [f"{it.name}:{it}" for it in folder.iterdir()]
    arguments = folder / f"{package}.json"
    told = {"package_name": package, "output_dir": str(folder / package), "idl_tuples": idl, "include_paths": includes}
    arguments.write_text(json.dumps(told), encoding="utf-8")
    generate_type_hash(str(arguments))


def described(folder, name):
    """The hash of one part of a type, by the file that describes it."""
    package, kind, short = name.split("/")
    for path in (folder / package / kind / f"{short}.json" for folder in (folder, share())):
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8"))["type_hashes"][0]["hash_string"]
    whole = short
    while "_" in whole:
        whole = whole.rpartition("_")[0]
        path = share() / package / kind / f"{whole}.json"
        if path.exists():
            hashes = json.loads(path.read_text(encoding="utf-8"))["type_hashes"]
            return next(it["hash_string"] for it in hashes if it["type_name"] == name)
    raise LookupError(f"{name} is described nowhere")


def descriptions(folder):
    """Lines of every type and its fields: those of the node, and those that they are made of."""
    found = {}
    paths = [share() / f"{name}.json" for name in TYPES] + list(folder.glob("*/*/*.json"))
    for path in paths:
        told = json.loads(path.read_text(encoding="utf-8")).get("type_description_msg")
        # The generator was told by files of the same kind.
        for one in [told["type_description"], *told["referenced_type_descriptions"]] if told else []:
            found[one["type_name"]] = "\t".join([one["type_name"], *map(field, one["fields"])])
    return sorted(found.values())


def field(it):
    kind = it["type"]
    numbers = [kind["type_id"], kind["capacity"], kind["string_capacity"]]
    return ",".join([it["name"], *map(str, numbers), kind["nested_type_name"], it["default_value"]])


def lines():
    """The lines of both files."""
    with tempfile.TemporaryDirectory(prefix="onbeat-hashes-") as folder:
        folder = Path(folder)
        # The generators say what they read and write.
        with contextlib.redirect_stdout(io.StringIO()):
            for package in dict.fromkeys(name.split("/")[0] for name in DEFINITIONS):
                generate(package, folder)
        parts = [part.format(name) for name in sorted([*TYPES, *DEFINITIONS]) for part in PARTS[name.split("/")[1]]]
        return [f"{part} {described(folder, part)}" for part in parts], descriptions(folder)


def main():
    hashes = Path(sys.argv[1])
    for path, made in zip([hashes, hashes.with_name("descriptions.txt")], lines(), strict=True):
        text = "".join(line + "\n" for line in made)
        if "--write" in sys.argv:
            path.write_text(text, encoding="utf-8")
        found = path.read_text(encoding="utf-8")
        if found != text:
            wrong = sorted(set(found.splitlines()) ^ set(text.splitlines()))
            sys.exit("\n".join([f"{path} is not what ROS 2's generator makes; lines that differ:", *wrong]))
        print(f"{path.name}: {len(made)} types are ROS 2's own")


main()
