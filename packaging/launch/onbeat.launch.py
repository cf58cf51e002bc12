"""Starts a robot and its ROS 2 node.

    ros2 launch /usr/share/onbeat/launch/onbeat.launch.py robot:=/etc/onbeat/cell.toml iface:=enp3s0
    ros2 launch /usr/share/onbeat/launch/onbeat.launch.py namespace:=cell params_file:=cell.yaml

Without `robot` the node attaches to a cycle that runs, as one of the systemd unit does. `ros2 launch -s` lists the arguments.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

ARGUMENTS = {
    "robot": ("", "Robot file; none: a cycle that runs already"),
    "iface": ("", "Network interface of the bus; none: simulated SubDevices"),
    "ipc": ("", "Name of the shared-memory interface; none: that of the robot file, or of the one running cycle"),
    "namespace": ("", "Namespace of the node and its topics"),
    "node_name": ("onbeat", "Name of the node"),
    "params_file": ("", "File of parameters of the node"),
    "autostart": ("true", "The node becomes active without being told"),
    "network": ("", "Address of an interface over which other hosts may watch and command; none: this host only"),
    "log_level": ("info", "Lowest level that the node logs"),
}


def processes(context):
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    robot = given["robot"]
    # The node asks for the cycle that is started here, whichever others run.
    ipc = given["ipc"] or (Path(robot).stem if robot else "")
    actions = []
    if robot:
        command = ["onbeat", "run", robot, "--ipc", ipc]
        if given["iface"]:
            command += ["--iface", given["iface"]]
        actions.append(ExecuteProcess(cmd=command, name="onbeat", output="screen", on_exit=[Shutdown()]))
    arguments = ["--ipc", ipc] if ipc else []
    if given["network"]:
        arguments += ["--network", given["network"]]
    parameters = [given["params_file"]] if given["params_file"] else []
    # What an argument says counts, also against the file.
    parameters.append({"autostart": given["autostart"].lower() in ("true", "1", "yes", "on")})
    node = Node(
        executable="onbeat-ros2",
        name=given["node_name"],
        namespace=given["namespace"],
        arguments=arguments,
        parameters=parameters,
        ros_arguments=["--log-level", given["log_level"]],
        output="screen",
        respawn=True,
        respawn_delay=1.0,
    )
    return [*actions, node]


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=about)
        for name, (default, about) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=processes)])
