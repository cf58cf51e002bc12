"""The broadcasters of ros2_controllers, as a launch file spawns them beside a controller: joint states, IMU, force and torque.

What a broadcaster publishes is there while it is active, and at no other time.
"""

import os
import shutil

from control_msgs.msg import DynamicJointState
from controller_manager_msgs.srv import ListControllers
from geometry_msgs.msg import WrenchStamped
from ros_control import FORCE_AUTO, expect, settle
from ros_peer import Judged
from sensor_msgs.msg import Imu, JointState

# Behind the arm, with the names that controller files give to broadcasters.
SENSORS = """
[[bus.sub_device]]
name = "wrist"
identity = { vendor_id = 0xFFFF_0B01, product_code = 0x0000_0306 }
simulate = { kind = "force_torque_sensor", amplitude = 40.0 }

[[bus.sub_device]]
name = "inertial"
identity = { vendor_id = 0xFFFF_0B01, product_code = 0x0000_0309 }
simulate = { kind = "analogue_input", channels = 9 }

[[sensor]]
name = "force_torque_sensor_broadcaster"
kind = "force_torque"
frame = "wrist"
force = "force"
torque = "torque"

[[sensor]]
name = "imu_sensor_broadcaster"
kind = "imu"
frame = "imu_link"
acceleration = "acceleration"
angular_velocity = "rate"
"""
SIGNAL = """
[[signal]]
name = "{}"
sub_device = "{}"
{}
elements = ["x", "y", "z"]
scale = 1e-6
"""
SIGNALS = {
    "force": ("wrist", "entry = { index = 0x6000, sub_index = 1 }"),
    "torque": ("wrist", "entry = { index = 0x6000, sub_index = 4 }"),
    "acceleration": ("inertial", "channel = 1"),
    "rate": ("inertial", "channel = 4"),
}

# Name, type, number of state interfaces; topics and their messages.
BROADCASTERS = {
    "joint_state_broadcaster": (
        "joint_state_broadcaster/JointStateBroadcaster",
        18,
        {"/joint_states": JointState, "/dynamic_joint_states": DynamicJointState},
    ),
    "force_torque_sensor_broadcaster": (
        "force_torque_sensor_broadcaster/ForceTorqueSensorBroadcaster",
        6,
        {"/force_torque_sensor_broadcaster/wrench": WrenchStamped},
    ),
    "imu_sensor_broadcaster": (
        "imu_sensor_broadcaster/IMUSensorBroadcaster",
        6,
        {"/imu_sensor_broadcaster/imu": Imu},
    ),
}


def arm_with_sensors(examples, folder):
    """The arm of the examples, with a wrist and an inertial sensor; its file."""
    shutil.copy(os.path.join(examples, "arm.urdf"), folder)
    with open(os.path.join(examples, "arm.toml"), encoding="utf-8") as file:
        text = file.read()
    signals = "".join(SIGNAL.format(name, *where) for name, where in SIGNALS.items())
    path = os.path.join(folder, "arm-with-sensors.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + SENSORS + signals)
    return path


def broadcasts(arm):
    """broadcasters of joints, force and torque, and an IMU: found, spawned, unspawned, and silent in between"""
    manager, peer = arm.manager, arm.peer
    settle(manager)
    for name, (kind, interfaces, topics) in BROADCASTERS.items():
        told = {it.name: it for it in manager.call("list_controllers", ListControllers).controller}
        found = told[name]
        expect(name, (found.type, found.state, len(found.required_state_interfaces)), (kind, "active", interfaces))
        expect(f"claimed by {name}", list(found.claimed_interfaces), [])
        # A launch file's: the robot has started with it.
        manager.spawn(name)
        publishes(peer, topics)
        manager.unspawn(name)
        expect("others", manager.states(), {it: told[it].state for it in told if it != name})
        silent(peer, topics)
        manager.spawn(name, "/tmp/controllers.yaml", kind)
        publishes(peer, topics)
    group = [*BROADCASTERS, "positions"]
    expect("together", manager.switch(off=[*BROADCASTERS, "trajectories"]).ok, True)
    expect("together", set(manager.states().values()), {"inactive"})
    expect("together", manager.switch(on=group).ok, True)
    active = {name for name, state in manager.states().items() if state == "active"}
    expect("active", active, set(group))
    refused = manager.switch(on=["trajectories"], off=["joint_state_broadcaster"])
    expect("a controller in the way", refused.ok, False)
    expect("nothing is done", manager.states()["joint_state_broadcaster"], "active")
    expect("trajectories", manager.switch(on=["trajectories"], strictness=FORCE_AUTO).ok, True)


def publishes(peer, topics):
    for topic, kind in topics.items():
        peer.next(topic, kind)


def silent(peer, topics):
    """What was under way has come; then nothing does, while the robot goes on."""
    for topic, kind in topics.items():
        came = []
        subscription = peer.node.create_subscription(kind, topic, came.append, 10)
        peer.until(f"the writer of {topic}", lambda topic=topic: peer.node.count_publishers(topic))
        for _ in range(2):
            before = len(came)
            peer.call("/controller_manager/list_controllers", ListControllers)
            turns(peer, 30)
        if len(came) != before:
            raise Judged(f"{topic}: expected nothing while its broadcaster is not loaded, found {came[-1]}")
        peer.node.destroy_subscription(subscription)


def turns(peer, number):
    for _ in range(number):
        peer.executor.spin_once(timeout_sec=0.01)
