"""A user of ros2_control, made of rclpy: spawner and unspawner, the controller manager, trajectories, a base.

The spawner itself is not on PyPI: its calls are made here one by one, in its order and with its arguments. The types come from
ros_interfaces.py.
"""

import math
import time

import numpy
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTrajectoryControllerState
from control_msgs.srv import QueryTrajectoryState
from controller_manager_msgs.msg import ControllerManagerActivity
from controller_manager_msgs.srv import (
    CleanupController,
    ConfigureController,
    ListControllers,
    ListControllerTypes,
    ListHardwareComponents,
    ListHardwareInterfaces,
    LoadController,
    ReloadControllerLibraries,
    SetHardwareComponentState,
    SwitchController,
    UnloadController,
)
from geometry_msgs.msg import TwistStamped
from lifecycle_msgs.msg import State
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.action import ActionClient
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from robot_processes import Robot
from ros_peer import Judged
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

LATCHED = QoSProfile(depth=1, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)
BEST_EFFORT = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.BEST_EFFORT)

# action_msgs/GoalStatus, and the codes of FollowJointTrajectory.
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6
SUCCESSFUL, INVALID_GOAL = 0, -1

# Strictness of controller_manager_msgs/SwitchController: BEST_EFFORT, STRICT, FORCE_AUTO.
LENIENT, STRICT, FORCE_AUTO = 1, 2, 4


# What publishes and claims nothing is named so in every file of controllers.
BROADCASTER = "_broadcaster"


class Manager:
    """A client of the controller manager."""

    def __init__(self, peer):
        self.peer = peer

    def call(self, service, kind, **fields):
        return self.peer.call(f"/controller_manager/{service}", kind, **fields)

    def states(self):
        return {it.name: it.state for it in self.call("list_controllers", ListControllers).controller}

    def moving(self):
        """States of those that are no broadcasters."""
        return {name: state for name, state in self.states().items() if not name.endswith(BROADCASTER)}

    def switch(self, on=(), off=(), strictness=STRICT, asap=False):
        return self.call(
            "switch_controller",
            SwitchController,
            activate_controllers=list(on),
            deactivate_controllers=list(off),
            strictness=strictness,
            activate_asap=asap,
            timeout=Duration(sec=5),
        )

    def set(self, **values):
        """Sets parameters as spawner does: strings, and lists of strings."""
        parameters = []
        for name, value in values.items():
            is_text = isinstance(value, str)
            parameters.append(
                Parameter(
                    name=name.replace("__", "."),
                    value=ParameterValue(
                        type=ParameterType.PARAMETER_STRING if is_text else ParameterType.PARAMETER_STRING_ARRAY,
                        string_value=value if is_text else "",
                        string_array_value=[] if is_text else value,
                    ),
                )
            )
        return self.call("set_parameters", SetParameters, parameters=parameters).results

    def spawn(self, name, file=None, kind=None):
        """The calls of `spawner NAME [--param-file FILE]`."""
        if name not in self.states():
            if file:
                results = self.set(**{f"{name}__params_file": [file]}) + self.set(**{f"{name}__type": kind})
                expect(f"parameters of {name}", [it.successful for it in results], [True, True])
            expect(f"{name} is loaded", self.call("load_controller", LoadController, name=name).ok, True)
        expect(f"{name} is configured", self.call("configure_controller", ConfigureController, name=name).ok, True)
        answer = self.switch(on=[name])
        if not answer.ok:
            raise Judged(f"{name} is not activated: {answer.message}")

    def unspawn(self, name):
        """The calls of `unspawner NAME`."""
        answer = self.switch(off=[name], asap=True)
        if not answer.ok:
            raise Judged(f"{name} is not deactivated: {answer.message}")
        expect(f"{name} is unloaded", self.call("unload_controller", UnloadController, name=name).ok, True)


def expect(what, found, expected):
    if found != expected:
        raise Judged(f"{what}: expected {expected}, found {found}")


class Arm:
    """A simulated arm, its controllers and its action."""

    def __init__(self, robot, peer):
        self.robot, self.peer = robot, peer
        self.manager = Manager(peer)
        self.client = ActionClient(peer.node, FollowJointTrajectory, "/trajectories/follow_joint_trajectory")
        self.names = list(peer.next("/joint_states", JointState).name)

    def positions(self):
        """Positions of now."""
        now = self.peer.node.get_clock().now().nanoseconds

        def is_new(state):
            return state.header.stamp.sec * 10**9 + state.header.stamp.nanosec > now

        state = self.peer.next("/joint_states", JointState, is_new)
        return dict(zip(state.name, state.position))

    def trajectory(self, name, target, seconds):
        """A motion of one joint, from where it is."""
        whole = int(seconds)
        end = Duration(sec=whole, nanosec=int((seconds - whole) * 1e9))
        point = JointTrajectoryPoint(positions=[target], velocities=[0.0], time_from_start=end)
        return JointTrajectory(joint_names=[name], points=[point])

    def send(self, trajectory, feedback=None):
        """Sends a goal; its handle."""
        self.peer.until("the action server", self.client.server_is_ready)
        sent = self.client.send_goal_async(
            FollowJointTrajectory.Goal(trajectory=trajectory), feedback_callback=feedback
        )
        self.peer.until("an answer to the goal", sent.done)
        return sent.result()

    def result(self, handle):
        result = handle.get_result_async()
        self.peer.until("the result of a goal", result.done)
        return result.result()


def settle(manager):
    """The controllers as the judge finds them first, whatever a check before has left."""
    for name in ("trajectories", "positions", "tool"):
        if name not in manager.states():
            manager.call("load_controller", LoadController, name=name)
        expect(f"{name} is configured", manager.call("configure_controller", ConfigureController, name=name).ok, True)
    expect("trajectories", manager.switch(on=["trajectories"], strictness=FORCE_AUTO).ok, True)


def spawns(arm):
    """spawner and unspawner: loaded, configured, activated, deactivated and unloaded; activity tells of each"""
    told = []
    manager, peer = arm.manager, arm.peer
    kind = ControllerManagerActivity
    subscription = peer.node.create_subscription(kind, "/controller_manager/activity", told.append, LATCHED)

    def comes_to(**states):
        def is_so():
            controllers = told[-1].controllers if told else []
            found = {it.name: it.state.label for it in controllers if not it.name.endswith(BROADCASTER)}
            return controllers and found == states

        peer.until(f"activity {states}", is_so)
        expect("list_controllers", manager.moving(), states)

    settle(manager)
    comes_to(trajectories="active", positions="inactive", tool="inactive")
    expect("unloaded", manager.call("unload_controller", UnloadController, name="tool").ok, True)
    # One that the robot file starts with is there already.
    manager.spawn("trajectories")
    manager.unspawn("trajectories")
    comes_to(positions="inactive")
    name, before = arm.names[0], arm.positions()
    if arm.send(arm.trajectory(name, before[name] + 0.5, 1.0)).accepted:
        raise Judged("a controller that is not loaded accepts a goal")
    commands = peer.node.create_publisher(JointState, "/joint_commands", BEST_EFFORT)
    for _ in range(20):
        commands.publish(JointState(name=[name], position=[before[name] + 0.5]))
        time.sleep(0.02)
    moved = abs(arm.positions()[name] - before[name])
    if moved > 1e-3:
        raise Judged(f"without an active controller a joint command moves {name} by {moved} rad")
    peer.node.destroy_publisher(commands)
    expect("a stop is heard", peer.call("/onbeat/stop", Trigger).success, True)
    expect("not active", manager.switch(off=["positions"]).ok, False)
    expect("unloaded", manager.call("unload_controller", UnloadController, name="positions").ok, True)
    comes_to()
    manager.spawn("positions", "/tmp/controllers.yaml", "position_controllers/JointGroupPositionController")
    comes_to(positions="active")
    interfaces = manager.call("list_controllers", ListControllers).controller[0]
    expect("claimed", list(interfaces.claimed_interfaces), [f"{it}/position" for it in arm.names])
    manager.unspawn("positions")
    manager.spawn("trajectories", "/tmp/controllers.yaml", "joint_trajectory_controller/JointTrajectoryController")
    expect("loaded", manager.call("load_controller", LoadController, name="positions").ok, True)
    comes_to(trajectories="active", positions="unconfigured")
    expect("configured", manager.call("configure_controller", ConfigureController, name="positions").ok, True)
    peer.node.destroy_subscription(subscription)


def refuses(arm):
    """refusals of ros2_control: strict and best effort, a wrong state, a wrong type, an unknown name"""
    manager = arm.manager
    settle(manager)
    for what, on, off, strictness, expected in [
        ("unknown", ["nobody"], [], LENIENT, False),
        ("two at a time", ["positions"], [], STRICT, False),
        ("unknown beside known", ["positions"], ["trajectories", "nobody"], STRICT, False),
        ("unknown beside known", ["positions"], ["trajectories", "nobody"], LENIENT, True),
        ("in the way", ["trajectories"], [], FORCE_AUTO, True),
    ]:
        answer = manager.switch(on, off, strictness)
        expect(f"{what}: {answer.message}", answer.ok, expected)
        if not answer.ok and not answer.message:
            raise Judged(f"{what}: refused without a reason")
    states = {"trajectories": "active", "positions": "inactive", "tool": "inactive"}
    expect("states", manager.moving(), states)
    for name, kind in [
        ("load_controller", LoadController),
        ("unload_controller", UnloadController),
        ("cleanup_controller", CleanupController),
    ]:
        expect(f"{name} of an active one", manager.call(name, kind, name="trajectories").ok, False)
    expect("cleanup", manager.call("cleanup_controller", CleanupController, name="positions").ok, True)
    expect("not configured", manager.switch(["positions"], ["trajectories"]).ok, False)
    expect("configure", manager.call("configure_controller", ConfigureController, name="positions").ok, True)
    expect("reload", manager.call("reload_controller_libraries", ReloadControllerLibraries, force_kill=True).ok, False)
    wrong = manager.set(positions__type="joint_trajectory_controller/JointTrajectoryController")[0]
    expect(f"another type: {wrong.reason}", wrong.successful, False)
    values = manager.call("get_parameters", GetParameters, names=["update_rate", "positions.type"]).values
    expect("update_rate", values[0].integer_value, 200)
    expect("type", values[1].string_value, "position_controllers/JointGroupPositionController")


def lists(arm):
    """types, hardware components and interfaces; a component is disabled and enabled"""
    manager = arm.manager
    types = manager.call("list_controller_types", ListControllerTypes)
    if "joint_trajectory_controller/JointTrajectoryController" not in types.types:
        raise Judged(f"types: {types}")
    interfaces = manager.call("list_hardware_interfaces", ListHardwareInterfaces)
    expect(
        "claimed",
        [it.name for it in interfaces.command_interfaces if it.is_claimed],
        [f"{it}/position" for it in arm.names],
    )
    component = manager.call("list_hardware_components", ListHardwareComponents).component[0]
    expect("component", (component.type, component.state.label), ("system", "active"))
    expect("state interfaces", list(component.state_interfaces), list(interfaces.state_interfaces))
    for label, number in [("inactive", State.PRIMARY_STATE_INACTIVE), ("active", State.PRIMARY_STATE_ACTIVE)]:
        answer = manager.call(
            "set_hardware_component_state",
            SetHardwareComponentState,
            name=component.name,
            target_state=State(id=number, label=label),
        )
        expect("component", (answer.ok, answer.state.id, answer.state.label), (True, number, label))
    finalized = State(id=State.PRIMARY_STATE_FINALIZED, label="finalized")
    answer = manager.call(
        "set_hardware_component_state", SetHardwareComponentState, name=component.name, target_state=finalized
    )
    expect("component", (answer.ok, answer.state.label), (False, "active"))


def follows(arm):
    """a goal of FollowJointTrajectory: feedback, the state of its controller, its place at a time, its result"""
    name = arm.names[0]
    start = arm.positions()[name]
    target = start + 0.4
    feedback, states = [], []
    topic = "/trajectories/controller_state"
    subscription = arm.peer.node.create_subscription(JointTrajectoryControllerState, topic, states.append, 100)
    handle = arm.send(arm.trajectory(name, target, 3.0), feedback.append)
    expect("accepted", handle.accepted, True)
    arm.peer.until("feedback of a motion", lambda: feedback and abs(feedback[-1].feedback.actual.velocities[0]) > 0.02)
    expect("joints of the feedback", list(feedback[-1].feedback.joint_names), [name])

    def moves(state):
        return abs(state.reference.velocities[0]) > 0.02

    state = arm.peer.until("the state of a moving controller", lambda: next(filter(moves, states), None))
    expect("joints of the state", list(state.joint_names), arm.names)
    error = numpy.array(state.reference.positions) - numpy.array(state.feedback.positions)
    if not numpy.allclose(error, state.error.positions) or state.speed_scaling_factor != 1.0:
        raise Judged(f"{topic}: {state}")
    seconds = arm.peer.node.get_clock().now().nanoseconds + 300_000_000
    asked = {"sec": seconds // 10**9, "nanosec": seconds % 10**9}
    query = QueryTrajectoryState.Request()
    query.time.sec, query.time.nanosec = asked["sec"], asked["nanosec"]
    answer = arm.peer.call("/trajectories/query_state", QueryTrajectoryState, time=query.time)
    if not answer.success or list(answer.name) != [name] or not start < answer.position[0] < target:
        raise Judged(f"query_state between {start} and {target}: {answer}")

    # The reference of the controller at that time is what was foretold.
    def is_then(state):
        stamp = state.header.stamp
        return abs((stamp.sec - query.time.sec) * 1e3 + (stamp.nanosec - query.time.nanosec) / 1e6) <= 20

    then = arm.peer.until("a state of that time", lambda: next(filter(is_then, states), None))
    away = abs(then.reference.positions[0] - answer.position[0])
    # In 20 ms, and what there is between the first place seen and the first place.
    if away > 0.02 * abs(answer.velocity[0]) + 2e-3:
        raise Judged(f"query_state foretold {answer}, found {then.reference}")
    result = arm.result(handle)
    expect("result", (result.status, result.result.error_code), (SUCCEEDED, SUCCESSFUL))
    answer = arm.peer.call("/trajectories/query_state", QueryTrajectoryState, time=query.time)
    expect(f"no trajectory: {answer.message}", answer.success, False)
    if abs(arm.positions()[name] - target) > 0.02:
        raise Judged(f"{name}: expected {target}, found {arm.positions()[name]}")
    arm.peer.node.destroy_subscription(subscription)


def ends_goals(arm):
    """goals canceled, preempted with the code of joint_trajectory_controller, refused"""
    name = arm.names[0]
    start = arm.positions()[name]

    def is_on_its_way():
        return abs(arm.positions()[name] - start) > 0.02

    handle = arm.send(arm.trajectory(name, start + 1.5, 6.0))
    arm.peer.until("a motion", is_on_its_way)
    canceled = handle.cancel_goal_async()
    arm.peer.until("an answer to a cancellation", canceled.done)
    expect("goals canceling", len(canceled.result().goals_canceling), 1)
    result = arm.result(handle)
    expect("canceled", (result.status, result.result.error_code), (CANCELED, SUCCESSFUL))
    start = arm.positions()[name]
    first = arm.send(arm.trajectory(name, start - 1.5, 6.0))
    arm.peer.until("a motion", is_on_its_way)
    second = arm.send(arm.trajectory(name, start, 2.0))
    result = arm.result(first)
    expect("preempted", (result.status, result.result.error_code), (CANCELED, INVALID_GOAL))
    expect("the next one", arm.result(second).status, SUCCEEDED)
    expect("too far", arm.send(arm.trajectory(name, 50.0, 1.0)).accepted, False)
    expect("not a number", arm.send(arm.trajectory(name, math.nan, 1.0)).accepted, False)


def deactivates_at_speed(arm):
    """a controller that is deactivated on the way brings its joints to rest, and its goal is aborted"""
    name, manager = arm.names[0], arm.manager
    start = arm.positions()[name]
    handle = arm.send(arm.trajectory(name, start + 1.5, 4.0))
    arm.peer.until("a motion", lambda: abs(arm.positions()[name] - start) > 0.05)
    answer = manager.switch(off=["trajectories"])
    expect(f"deactivated: {answer.message}", answer.ok, True)
    expect("its goal", arm.result(handle).status, ABORTED)
    rest = arm.positions()[name]
    time.sleep(0.3)
    now = arm.positions()[name]
    if abs(now - rest) > 1e-3 or not start + 0.05 < now < start + 1.4:
        raise Judged(f"deactivated on the way from {start}: at {rest}, then at {now}")
    manager.spawn("trajectories")


def drives(judge):
    """a base by the topics of diff_drive_controller: clamped part by part, odometry, /tf, the velocity within the limits"""
    peer = judge.peer
    parameter = Parameter(name="publish_limited_velocity")
    parameter.value = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=True)
    peer.call("/onbeat/set_parameters", SetParameters, parameters=[parameter])
    limited, transforms = [], []
    node = peer.node
    ends = [
        node.create_subscription(TwistStamped, "/base/cmd_vel_out", limited.append, 10),
        node.create_subscription(TFMessage, "/tf", transforms.append, 10),
    ]
    commands = node.create_publisher(TwistStamped, "/base/cmd_vel", BEST_EFFORT)
    message = TwistStamped()
    message.twist.linear.x, message.twist.angular.z = 9.0, 0.25

    def turns(odometry):
        message.header.stamp = node.get_clock().now().to_msg()
        commands.publish(message)
        return abs(odometry.twist.twist.angular.z - 0.25) < 0.02 and odometry.twist.twist.linear.x > 0.5

    odometry = peer.next("/base/odom", Odometry, turns)
    expect("frames", (odometry.header.frame_id, odometry.child_frame_id), ("odom", "base_link"))
    # What was sent may come later than what was measured.
    peer.until("/base/cmd_vel_out", lambda: any(it.twist.linear.x >= 0.5 for it in limited))
    sent = [it.twist.linear.x for it in limited]
    if max(sent) > 1.0 + 1e-6 or not any(0.0 < x < 0.5 for x in sent):
        raise Judged(f"/base/cmd_vel_out: expected a velocity that rises to 1 m/s at most, found {sent}")
    expect("its frame", limited[-1].header.frame_id, "base_link")
    transform = peer.until("/tf", lambda: transforms and transforms[-1].transforms[0])
    expect("/tf", (transform.header.frame_id, transform.child_frame_id), ("odom", "base_link"))
    peer.next("/base/odom", Odometry, lambda it: abs(it.twist.twist.linear.x) < 1e-3)
    message.header.stamp.sec -= 10

    def is_calm(odometry):
        commands.publish(message)
        return odometry.header.stamp.sec > message.header.stamp.sec + 10

    moved = peer.next("/base/odom", Odometry, is_calm).twist.twist.linear.x
    if abs(moved) > 1e-3:
        raise Judged(f"a velocity of ten seconds ago moves the base at {moved} m/s")
    node.destroy_publisher(commands)
    for end in ends:
        node.destroy_subscription(end)


CHECKS = [spawns, refuses, lists, follows, ends_goals, deactivates_at_speed]


def judge(onbeat, bridge, robot, folder, peer, more):
    with Robot(onbeat, bridge, robot, folder) as processes:
        arm = Arm(processes, peer)
        processes.judge("arm", CHECKS + more, arm)
        arm.client.destroy()
