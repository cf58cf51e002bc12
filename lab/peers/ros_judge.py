"""A genuine ROS 2 (rclpy on Fast DDS, from PyPI) judges onbeat-ros2.

    ros_judge.py ONBEAT ONBEAT_ROS2 EXAMPLES HASHES

It stands in a network of its own with a network interface, as on a robot; with root a second "computer" hangs on that interface.
Types whose packages PyPI lacks (tf2_msgs, control_msgs, controller_manager_msgs, ethercat_msgs) are made by ros_interfaces.py, which
has to run before. Times are compared with those of a genuine node in the same run.
"""

import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import rclpy
import ros_broadcasters
import ros_control
from diagnostic_msgs.msg import DiagnosticArray
from ethercat_msgs.srv import GetSdo
from geometry_msgs.msg import Twist, TwistStamped
from lifecycle_msgs.msg import Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetAvailableStates, GetAvailableTransitions, GetState
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Log, Parameter, ParameterEvent, ParameterType, ParameterValue
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    GetParameterTypes,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from robot_processes import Process, Robot
from ros_peer import Judged, until
from ros_second_computer import second_computer
from sensor_msgs.msg import JointState, LaserScan
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from type_description_interfaces.srv import GetTypeDescription

RELIABLE = QoSProfile(depth=100)
LATCHED = QoSProfile(depth=1, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)
BEST_EFFORT = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.BEST_EFFORT)

# Clients made one after the other, of each of both servers.
CLIENTS = 5


class Node:
    """A node of its own participant, and what it takes to wait for it."""

    def __init__(self, name):
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node(name, context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)

    def until(self, what, ready, patience=30.0):
        def look():
            self.executor.spin_once(timeout_sec=0.01)
            return ready()

        return until(what, look, patience, pause=0)

    def next(self, topic, kind, wanted=lambda message: True, qos=RELIABLE):
        got = []
        subscription = self.node.create_subscription(kind, topic, got.append, qos)
        try:
            return self.until(f"a message on {topic}", lambda: next((it for it in got if wanted(it)), None))
        finally:
            self.node.destroy_subscription(subscription)

    def call(self, service, kind, **fields):
        client = self.node.create_client(kind, service)
        try:
            self.until(f"a server of {service}", client.service_is_ready)
            answer = client.call_async(kind.Request(**fields))
            self.until(f"an answer of {service}", answer.done)
            return answer.result()
        finally:
            self.node.destroy_client(client)

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()


def first_call(number, server):
    """Seconds from a new participant to the first answer it gets. It calls in the moment in which it sees the service: the two
    ends know of each other then, and no more."""
    start = time.monotonic()
    node = Node(f"client_{number}")
    try:
        client = node.node.create_client(ListParameters, f"/{server}/list_parameters")
        until(f"a server of {server}", client.service_is_ready, pause=0)
        answer = client.call_async(ListParameters.Request())
        node.until(f"the first answer of {server}", answer.done)
        return time.monotonic() - start
    finally:
        node.close()


class Judge:
    def __init__(self, robot, peer, hashes):
        self.robot, self.peer = robot, peer
        with open(hashes, encoding="utf-8") as lines:
            self.hashes = dict(line.split() for line in lines)

    def graph(self):
        """the node, and its topics and services with their types"""
        # Attached to the cycle: before, it is a node without a robot's topics, which this one takes the place of.
        self.peer.next("/joint_states", JointState)
        names = self.peer.until("the node", lambda: self.found("onbeat"))
        # RustDDS sends no enclave: docs/ros2.md.
        if names != ("onbeat", "/", ""):
            raise Judged(f"expected the node onbeat in /, without an enclave, found {names}")
        node = self.peer.node

        def served(name, by):
            return dict(node.get_service_names_and_types_by_node(by, "/")).get(name)

        self.peer.until("the node controller_manager", lambda: self.found("controller_manager"))
        for by, services in {"onbeat": SERVICES, "controller_manager": MANAGER}.items():
            for name, kind in services.items():
                # Readers and writers come to be known one by one.
                found = self.peer.until(f"the service {name}", lambda name=name, by=by: served(name, by))
                if found != [kind]:
                    raise Judged(f"{name}: expected {kind}, found {found}")

    def type_hashes(self):
        """the hash of the type of every reader and writer, as ROS 2's generator makes it"""
        node = self.peer.node
        seen = 0
        for topic, kinds in node.get_topic_names_and_types(no_demangle=True):
            ends = node.get_publishers_info_by_topic(topic, no_mangle=True)
            ends += node.get_subscriptions_info_by_topic(topic, no_mangle=True)
            for end in ends:
                if end.node_name not in ("onbeat", "controller_manager"):
                    continue
                name = end.topic_type.removesuffix("_").replace("::dds_::", "/").replace("::", "/")
                found = str(end.topic_type_hash)
                if found != self.hashes.get(name):
                    raise Judged(f"{topic}, {name}: expected {self.hashes.get(name)}, found {found} ({kinds})")
                seen += 1
        # The node has more than this; how many depends on the robot.
        if seen < len(SERVICES) + len(MANAGER):
            raise Judged(f"expected the node's readers and writers, found {seen}")

    def calls(self):
        """the first call of a new client takes no longer than to a genuine server"""
        numbers = iter(range(100))
        took = {
            server: [first_call(next(numbers), server) for _ in range(CLIENTS)] for server in ("genuine", "onbeat")
        }
        # A genuine server, too, lets some clients wait for its heartbeat, which comes every 3 s: its best counts.
        ours, theirs = statistics.median(took["onbeat"]), min(took["genuine"])
        print(f"  from a new participant to the first answer: {ours:.3f} s, of a genuine server {theirs:.3f} s at best")
        if ours > 3 * theirs:
            raise Judged(f"expected the time of a genuine server, {theirs:.3f} s; found {ours:.3f} s: {took}")

    def topics(self):
        """messages of every topic whose type PyPI has"""
        joints = self.peer.next("/joint_states", JointState)
        if len(joints.name) != len(joints.velocity) or not joints.header.stamp.sec:
            raise Judged(f"/joint_states: {joints}")
        if (frame := self.peer.next("/odom", Odometry).header.frame_id) != "odom":
            raise Judged(f"/odom: expected the frame odom, found {frame}")
        names = {status.name for status in self.peer.next("/diagnostics", DiagnosticArray).status}
        if not any(name.endswith("bus") for name in names):
            raise Judged(f"/diagnostics: expected the bus, found {names}")
        if "attached" not in (said := self.peer.next("/rosout", Log, lambda it: it.name == "onbeat", LATCHED).msg):
            raise Judged(f"/rosout: expected that it is attached, found {said}")

    def scans(self):
        """/scan for readers that ask for best effort and for those that ask for reliability"""
        for qos in (BEST_EFFORT, RELIABLE):
            if not (scan := self.peer.next("/scan", LaserScan, qos=qos)).ranges:
                raise Judged(f"/scan: {scan}")

    def lives(self):
        """a managed node, as rclpy's is: its graph, and a stop that is heard in every state"""
        life = LifecycleNode("managed", context=self.peer.context)
        self.peer.executor.add_node(life)
        for name, kind in LIFE.items():
            ours, theirs = (self.peer.call(f"/{node}/{name}", kind) for node in ("onbeat", "managed"))
            if name in ("get_available_states", "get_transition_graph") and ours != theirs:
                raise Judged(f"{name}: expected {theirs}, found {ours}")
        self.peer.executor.remove_node(life)
        life.destroy_node()
        for label, state in (("deactivate", "inactive"), ("cleanup", "unconfigured"), ("configure", "inactive")):
            self.change(label, state)
            if not (answer := self.peer.call("/onbeat/stop", Trigger)).success:
                raise Judged(f"stop of a node that is {state}: {answer}")
        if self.peer.call("/onbeat/change_state", ChangeState, transition=Transition(label="cleanup_")).success:
            raise Judged("a transition that is not there was made")
        commands = self.peer.node.create_publisher(Twist, "/cmd_vel", BEST_EFFORT)
        twist = Twist()
        twist.linear.x = 0.2
        got = []
        subscription = self.peer.node.create_subscription(Odometry, "/odom", got.append, RELIABLE)

        def enough():
            commands.publish(twist)
            return len(got) > 50

        self.peer.until("odometry of a node that is inactive", enough)
        if (moved := max(abs(it.twist.twist.linear.x) for it in got)) > 1e-3:
            raise Judged(f"a node that is inactive moves its base, {moved} m/s")
        self.change("activate", "active")
        self.peer.until("it moves again", lambda: enough() and got[-1].twist.twist.linear.x > 0.1)
        self.peer.node.destroy_subscription(subscription)
        self.peer.node.destroy_publisher(commands)

    def change(self, label, state):
        told = []
        kinds = (TransitionEvent, "/onbeat/transition_event", told.append, RELIABLE)
        subscription = self.peer.node.create_subscription(*kinds)
        self.peer.until("the writer of transitions", lambda: self.peer.node.count_publishers(kinds[1]))
        if not self.peer.call("/onbeat/change_state", ChangeState, transition=Transition(label=label)).success:
            raise Judged(f"change_state: {label} was refused")
        found = self.peer.call("/onbeat/get_state", GetState).current_state
        if found.label != state:
            raise Judged(f"after {label}: expected {state}, found {found}")
        self.peer.until(f"an event of {label}", lambda: any(it.goal_state == found for it in told))
        self.peer.node.destroy_subscription(subscription)

    def describes(self):
        """the description of a type, as a genuine node that uses it gives it"""
        kept = [
            self.peer.node.create_subscription(kind, f"/described_{number}", print, RELIABLE)
            for number, kind in enumerate((JointState, Odometry, LaserScan, DiagnosticArray, Log, TransitionEvent))
        ]
        names = [f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}" for kind in (it.msg_type for it in kept)]
        for name in names:
            asked = {"type_name": name, "type_hash": self.hashes[name], "include_type_sources": False}
            ours, theirs = (
                self.peer.call(f"/{node}/get_type_description", GetTypeDescription, **asked)
                for node in ("onbeat", "judge")
            )
            if ours != theirs:
                raise Judged(f"{name}: expected {theirs}, found {ours}")
        wrong = {"type_name": names[0], "type_hash": self.hashes[names[1]]}
        if (answer := self.peer.call("/onbeat/get_type_description", GetTypeDescription, **wrong)).successful:
            raise Judged(f"{wrong}: {answer}")
        for subscription in kept:
            self.peer.node.destroy_subscription(subscription)

    def arguments(self):
        """names and parameters by --ros-args, as a genuine node with the same arguments has them"""
        path = os.path.join(self.robot.folder, "arguments.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PARAMETERS)
        arguments = [*ARGUMENTS, "--params-file", path, "-p", "joint_states_rate:=40"]
        # Of the root namespace.
        arguments += ["-p", "wheels:joint_states_rate:=30"]
        # In a domain of its own: it has the same name.
        context = rclpy.Context()
        rclpy.init(args=["--ros-args", *arguments], context=context, domain_id=int(os.environ["ROS_DOMAIN_ID"]) + 1)
        keys = {"allow_undeclared_parameters": True, "automatically_declare_parameters_from_overrides": True}
        theirs = rclpy.create_node("onbeat", context=context, **keys)
        command = self.robot.commands["onbeat-ros2"]
        ours = Process(self.robot.folder, "arguments", [*command, "--ros-args", *arguments])
        try:
            who = self.peer.until("the node by its other name", lambda: self.found(theirs.get_name()))
            if who[1] != theirs.get_namespace():
                raise Judged(f"expected {theirs.get_namespace()}, found {who}")
            topics = {theirs.resolve_topic_name(name) for name in ("odom", "joint_states", "/tf", "scan", "~/events")}
            services = {theirs.resolve_service_name(name) for name in ("~/stop", "~/enable", "~/get_state")}

            def has(expected, found):
                return expected <= {name for name, _ in found(who[0], who[1])}

            node = self.peer.node
            self.peer.until(f"{topics}", lambda: has(topics, node.get_publisher_names_and_types_by_node))
            self.peer.until(f"{services}", lambda: has(services, node.get_service_names_and_types_by_node))
            names = ["odom_rate", "joint_states_rate", "odom_frame", "publish_tf", "scan_frame", "feedback_rate"]
            asked = self.peer.call(f"{who[1]}/{who[0]}/get_parameters", GetParameters, names=names).values
            expected = [theirs.get_parameter(name).value for name in names]
            found = [parameter_value_to_python(it) for it in asked]
            if found != expected:
                raise Judged(f"{names}: expected {expected}, found {found}")
        finally:
            ours.end()
            theirs.destroy_node()
            context.try_shutdown()

    def plans(self):
        """a planner that is a node of ROS 2, of another process, drives it to its goal"""
        place = self.peer.next("/odom", Odometry).pose.pose.position
        goal = (place.x + 1.0, place.y)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python/examples/dynamic_window.py")
        far = {"obstacle": [(1000, 0), (1001, 0), (1000, 1)], "boards": [(-100, -100), (100, 100)]}
        course = json.dumps({"goal": goal, **far})
        planner = Process(self.robot.folder, "planner", [sys.executable, script, "--course", course, "--ros"])

        def there(odometry):
            planner.check()
            at = odometry.pose.pose.position
            return math.hypot(at.x - goal[0], at.y - goal[1]) < 0.12

        self.peer.next("/odom", Odometry, there)
        planner.end(signal.SIGINT)

    def moves(self):
        """a base that follows both kinds of velocity, and stops without them"""
        for kind, message in ((Twist, Twist()), (TwistStamped, TwistStamped())):
            twist = message if kind is Twist else message.twist
            twist.linear.x = 0.2
            commands = self.peer.node.create_publisher(kind, "/cmd_vel", BEST_EFFORT)

            def drives(odometry, commands=commands, message=message):
                commands.publish(message)
                return odometry.twist.twist.linear.x > 0.1

            self.peer.next("/odom", Odometry, drives)
            self.peer.next("/odom", Odometry, lambda odometry: abs(odometry.twist.twist.linear.x) < 1e-3)
            self.peer.node.destroy_publisher(commands)

    def services(self):
        """drives, faults, the bus and an object by services"""
        for name, kind in SERVICES.items():
            if kind == "std_srvs/srv/Trigger":
                answer = self.peer.call(name, Trigger)
                if not answer.success:
                    raise Judged(f"{name}: {answer}")
        if not (answer := self.peer.call("/onbeat/set_enabled", SetBool, data=True)).success:
            raise Judged(f"/onbeat/set_enabled: {answer}")
        vendor = {"slave_position": 0, "sdo_index": 0x1018, "sdo_subindex": 1, "sdo_data_type": "uint32"}
        answer = self.peer.call("/onbeat/get_sdo", GetSdo, **vendor)
        if not answer.success or answer.sdo_return_value != float(answer.sdo_return_value_string):
            raise Judged(f"/onbeat/get_sdo: {answer}")

    def parameters(self):
        """parameters: listed, described, read, set, refused, and told of"""
        names = self.peer.call("/onbeat/list_parameters", ListParameters).result.names
        described = self.peer.call("/onbeat/describe_parameters", DescribeParameters, names=names).descriptors
        types = self.peer.call("/onbeat/get_parameter_types", GetParameterTypes, names=names).types
        if [it.name for it in described] != list(names) or [it.type for it in described] != list(types):
            raise Judged(f"{names} are described as {described}, of types {types}")
        told = []
        subscription = self.peer.node.create_subscription(ParameterEvent, "/parameter_events", told.append, RELIABLE)
        double = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=20.0)
        good, bad = (Parameter(name=name, value=double) for name in ("odom_rate", "no_such"))
        results = self.peer.call("/onbeat/set_parameters", SetParameters, parameters=[good, bad]).results
        if [it.successful for it in results] != [True, False] or "no_such" not in results[1].reason:
            raise Judged(f"set_parameters: {results}")
        value = self.peer.call("/onbeat/get_parameters", GetParameters, names=["odom_rate"]).values[0]
        if value.double_value != 20.0:
            raise Judged(f"odom_rate: expected 20, found {value}")
        self.peer.until("an event of odom_rate", lambda: any(it.node == "/onbeat" for it in told))
        self.peer.node.destroy_subscription(subscription)
        result = self.peer.call("/onbeat/set_parameters_atomically", SetParametersAtomically, parameters=[good, bad]).result
        if result.successful:
            raise Judged("set_parameters_atomically set a parameter that is not there")

    def place(self):
        """Where the base is, from new odometry."""
        now = self.peer.node.get_clock().now().nanoseconds

        def is_new(odometry):
            return odometry.header.stamp.sec * 10**9 + odometry.header.stamp.nanosec > now

        return round(self.peer.next("/odom", Odometry, is_new).pose.pose.position.x, 2)

    def found(self, name):
        names = self.peer.node.get_node_names_and_namespaces_with_enclaves()
        return next((it for it in names if it[0] == name), None)

    def ends(self):
        """gone at once after an orderly end: before a genuine node that is killed"""
        genuine = Genuine(self.robot.folder, "ghost")
        self.peer.until("both nodes", lambda: self.found(genuine.name) and self.found("onbeat"))
        genuine.process.end(signal.SIGKILL)
        start = time.monotonic()
        self.robot.end("onbeat-ros2", signal.SIGTERM)
        self.peer.until("its end is known", lambda: not self.found("onbeat"), patience=60)
        print(f"  known after SIGTERM: {time.monotonic() - start:.1f} s")
        if not self.found(genuine.name):
            raise Judged("an orderly end is known no sooner than the death of a genuine node")
        self.robot.start("onbeat-ros2")
        self.peer.until("the node again", lambda: self.found("onbeat"))


class Genuine:
    """A genuine node in a process of its own."""

    SOURCE = "import rclpy, sys; rclpy.init(); rclpy.spin(rclpy.create_node(sys.argv[1]))"

    def __init__(self, folder, name):
        self.name = name
        self.process = Process(folder, name, [sys.executable, "-c", self.SOURCE, name])


# Questions of a managed node, with the types of their answers.
LIFE = {
    "get_state": GetState,
    "get_available_states": GetAvailableStates,
    "get_available_transitions": GetAvailableTransitions,
    "get_transition_graph": GetAvailableTransitions,
}

ARGUMENTS = [
    *("-r", "__node:=wheels"),
    *("-r", "onbeat:__ns:=/of_the_old_name"),
    *("-r", "wheels:__ns:=/cell/left"),
    *("-r", "other:odom:=/nowhere"),
    *("-r", "odom:=~/odometry"),
    *("-r", "odom:=/second"),
    *("-r", "/tf:=tf"),
    *("-r", "~/stop:=halt"),
    *("-r", "rosservice://~/enable:=/power"),
    *("-r", "rostopic://~/stop:=/nowhere"),
    *("--log-level", "wheels:=debug"),
    *("-e", "/cell"),
]

PARAMETERS = """
/**:
  ros__parameters:
    odom_rate: 5.0
    feedback_rate: 7.0
    scan_frame: 'one'
/cell/*/wheels:
  ros__parameters:
    odom_rate: 6.0
cell:
  left:
    wheels:
      ros__parameters: {odom_frame: map, publish_tf: no, scan_frame: two}
/cell/**:
  ros__parameters:
    odom_frame: floor
/other:
  ros__parameters:
    odom_frame: nowhere
"""

SERVICES = {
    f"/onbeat/{name}": "std_srvs/srv/Trigger" for name in ("reset_faults", "enable", "stop", "al_states", "bus_status")
} | {
    "/onbeat/set_enabled": "std_srvs/srv/SetBool",
    "/onbeat/get_sdo": "ethercat_msgs/srv/GetSdo",
    "/onbeat/set_sdo": "ethercat_msgs/srv/SetSdo",
    "/onbeat/list_parameters": "rcl_interfaces/srv/ListParameters",
}

# Of the node controller_manager, beside its parameters.
MANAGER = {
    f"/controller_manager/{name}": f"controller_manager_msgs/srv/{kind}"
    for name, kind in [
        ("list_controllers", "ListControllers"),
        ("list_controller_types", "ListControllerTypes"),
        ("list_hardware_components", "ListHardwareComponents"),
        ("list_hardware_interfaces", "ListHardwareInterfaces"),
        ("load_controller", "LoadController"),
        ("configure_controller", "ConfigureController"),
        ("cleanup_controller", "CleanupController"),
        ("unload_controller", "UnloadController"),
        ("switch_controller", "SwitchController"),
        ("reload_controller_libraries", "ReloadControllerLibraries"),
        ("set_hardware_component_state", "SetHardwareComponentState"),
    ]
} | {"/controller_manager/set_parameters": "rcl_interfaces/srv/SetParameters"}


def judge(onbeat, bridge, examples, folder, hashes):
    base = os.path.join(examples, "m4k.toml")
    # The network first: DDS looks for its interfaces once, at the start.
    with second_computer() as other:
        with Robot(onbeat, bridge, base, folder) as processes:
            genuine = Genuine(folder, "genuine")
            peer = Node("judge")
            checks = [Judge.graph, Judge.type_hashes, Judge.calls, Judge.topics, Judge.services, Judge.moves, Judge.plans]
            checks += [Judge.scans, Judge.parameters, ros_control.drives, Judge.describes, Judge.lives, Judge.arguments]
            if other:
                checks += [other.defaults, other.closed, other.opened]
            checks.append(Judge.ends)
            processes.judge("ROS 2", checks, Judge(processes, peer, hashes))
            peer.close()
            genuine.process.end(signal.SIGKILL)
        peer = Node("judge_of_an_arm")
        robot = ros_broadcasters.arm_with_sensors(examples, folder)
        ros_control.judge(onbeat, bridge, robot, folder, peer, [ros_broadcasters.broadcasts])
        peer.close()


def main():
    if "--inside" not in sys.argv:
        # What ROS 2 and Cyclone DDS say on standard error is part of the verdict: they have nothing to complain of.
        inside = subprocess.run([sys.executable, *sys.argv, "--inside"], stderr=subprocess.PIPE, text=True, check=False)
        print(inside.stderr, end="", file=sys.stderr)
        sys.exit(inside.returncode or (1 if inside.stderr.strip() else 0))
    onbeat, bridge, examples, hashes = sys.argv[1:5]
    os.environ["ROS_DOMAIN_ID"] = str(random.randint(1, 100))
    with tempfile.TemporaryDirectory(prefix="onbeat-ros-") as folder:
        judge(onbeat, bridge, examples, folder, hashes)
    print("ROS 2 finds nothing wrong")


if __name__ == "__main__":
    main()
