"""A base that drives: velocities in, odometry out; what may not move it; services, parameters, restarts."""

import itertools
import json
import math
import os
import signal
import time

import ros_services as services
import ros_types as ros
from robot_processes import Robot
from ros_peer import BEST_EFFORT, LATCHED, Client, Judged, Node, matched, matched_by, until
from cyclonedds.pub import DataWriter
from cyclonedds.topic import Topic


def judge(onbeat, bridge, robot, folder):
    node = Node(int(os.environ["ROS_DOMAIN_ID"]))
    with Robot(onbeat, bridge, robot, folder) as processes:
        base = Base(node, processes)
        processes.judge("base", CHECKS, base)


class Base:
    def __init__(self, node, processes):
        self.node = node
        self.processes = processes
        self.odom = node.reader("/odom", ros.Odometry)
        self.tf = node.reader("/tf", ros.TFMessage)
        self.joints = node.reader("/joint_states", ros.JointState)
        self.log = node.reader("/rosout", ros.Log, LATCHED)
        self.diagnostics = node.reader("/diagnostics", ros.DiagnosticArray)
        self.twist = node.writer("/cmd_vel", ros.Twist)
        self.stamped = node.writer("/cmd_vel", ros.TwistStamped, BEST_EFFORT)

    def place(self):
        return self.odom.newest("/odom")

    def drive(self, write, what, arrived, patience=30.0):
        """Commands twenty times a second until odometry says what is expected."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            write()
            for message in self.odom.take():
                if arrived(message):
                    return message
            time.sleep(0.05)
        raise Judged(f"commanded for {patience:.0f} s in vain: {what}")

    def rests(self, what):
        """Waits until it has stood still for a second: on a loaded machine commands may still be on their way."""
        last, still = self.place(), 0

        def stands():
            nonlocal last, still
            for now in self.odom.take():
                stays = distance(last, now) < 1e-3 and abs(yaw(now) - yaw(last)) < 1e-3 and speed(now) < 1e-3
                still = still + 1 if stays else 0
                last = last if stays else now
            return still >= 50

        until(f"standstill {what}", stands)
        return last

    def does_not_move(self, write, what):
        """Commands for a second, which must not move it."""
        before = self.rests(f"before {what}")
        for _ in range(20):
            write()
            time.sleep(0.05)
        after = self.rests(what)
        if distance(before, after) > 1e-3:
            raise Judged(f"{what} moved it: from {before.pose.pose} to {after.pose.pose}")

    def call(self, name, kind, **fields):
        return Client(self.node, name, *kind).call(**fields)


def speed(odom):
    twist = odom.twist.twist
    return math.hypot(twist.linear.x, twist.linear.y) + abs(twist.angular.z)


def distance(a, b):
    a, b = a.pose.pose.position, b.pose.pose.position
    return math.hypot(a.x - b.x, a.y - b.y)


def yaw(odom):
    return 2.0 * math.atan2(odom.pose.pose.orientation.z, odom.pose.pose.orientation.w)


def twist(x=0.0, turn=0.0):
    return ros.Twist(ros.Vector3(x, 0.0, 0.0), ros.Vector3(0.0, 0.0, turn))


def is_told(base):
    """joint states, odometry and its transform come, and agree"""
    joints = base.joints.next("/joint_states")
    if not joints.name or len({len(joints.name), len(joints.position), len(joints.velocity)}) != 1:
        raise Judged(f"a joint state whose lists differ: {joints}")
    if not all(math.isfinite(number) for number in joints.position + joints.velocity + joints.effort):
        raise Judged(f"a joint state with numbers that are none: {joints}")
    odom = base.place()
    age = time.time() - (odom.header.stamp.sec + odom.header.stamp.nanosec / 1e9)
    if not -1.0 < age < 10.0:
        raise Judged(f"odometry is stamped {age:.3f} s ago; its clock is not the wall's")
    match = lambda message: [t for t in message.transforms if t.header.stamp == odom.header.stamp]
    found = [t for message in base.tf.take() for t in match(message)]
    found = found or match(base.tf.next("the transform of that odometry", match))
    moved, place = found[0].transform.translation, odom.pose.pose.position
    if (found[0].child_frame_id, moved.x, moved.y, moved.z) != (odom.child_frame_id, place.x, place.y, place.z):
        raise Judged(f"/tf says {found[0]}, /odom {odom}")


def obeys_twist(base):
    """a Twist drives it ahead, and its wheels turn; it stops when nobody commands it any more"""
    until("a reader of Twist", lambda: matched(base.twist))
    base.rests("before it is commanded")
    start, wheels = base.place(), base.joints.newest("/joint_states").position
    there = base.drive(
        lambda: base.twist.write(twist(x=0.2)), "0.1 m ahead", lambda now: distance(start, now) > 0.1
    )
    ahead = there.pose.pose.position.x - start.pose.pose.position.x
    if ahead < 0.09 or abs(yaw(there) - yaw(start)) > 0.05:
        raise Judged(f"it drove, but not ahead: from {start.pose.pose} to {there.pose.pose}")
    if not 0.05 < there.twist.twist.linear.x <= 0.25:
        raise Judged(f"commanded 0.2 m/s, odometry says {there.twist.twist.linear}")
    turned = base.joints.newest("/joint_states").position
    if max(abs(b - a) for a, b in zip(wheels, turned)) < 0.1:
        raise Judged(f"it drove, and its wheels did not turn: {wheels}, {turned}")
    base.rests("when nobody commands it any more")


def obeys_twist_stamped(base):
    """a TwistStamped on the same topic turns it"""
    until("a reader of TwistStamped", lambda: matched(base.stamped))
    start = base.rests("before it is turned")
    message = ros.TwistStamped(ros.Header(ros.Time(), "base_link"), twist(turn=0.4))
    there = base.drive(
        lambda: base.stamped.write(message), "0.1 rad counter-clockwise", lambda now: yaw(now) - yaw(start) > 0.1
    )
    if distance(start, there) > 0.05:
        raise Judged(f"it should turn on the spot: from {start.pose.pose} to {there.pose.pose}")
    base.rests("when nobody turns it any more")


def refuses_nonsense(base):
    """NaN, infinity, and bytes that are no message do not move it, and are complained of"""
    base.log.take()
    for what, message in [
        ("NaN", twist(x=math.nan)),
        ("infinity", twist(turn=math.inf)),
    ]:
        base.does_not_move(lambda: base.twist.write(message), what)
    base.log.next("a warning on /rosout", lambda log: log.level == 30 and "cmd_vel" in log.msg)

    # The type says it is a Twist; what comes is something else.
    impostor = ros.impostor(ros.Twist)
    topic = Topic(base.node.participant, "rt/cmd_vel", impostor)
    writer = DataWriter(base.node.publisher, topic, BEST_EFFORT)
    until("a reader of the wrong Twist", lambda: matched(writer))
    base.log.take()
    lengths = itertools.cycle(range(61))
    base.does_not_move(lambda: writer.write(impostor("x" * next(lengths))), "a malformed Twist")
    base.log.next("a warning of the malformed Twist", lambda log: "no such message" in log.msg)
    del writer


def clamps_what_is_too_fast(base):
    """a thousand metres a second drive it ahead as fast as it may, with a warning"""
    start = base.rests("before it is commanded too much")
    base.log.take()
    there = base.drive(
        lambda: base.twist.write(twist(x=1000.0)), "0.1 m ahead", lambda now: distance(start, now) > 0.1
    )
    if speed(there) > FASTEST or abs(yaw(there) - yaw(start)) > 0.05:
        raise Judged(f"commanded 1000 m/s, it moves from {start.pose.pose} to {there.pose.pose} at {there.twist.twist}")
    base.log.next("a warning on /rosout", lambda log: log.level == 30 and "clamped" in log.msg)
    base.rests("when nobody commands it any more")


def serves(base):
    """services disable and enable it, name its controllers, and say why not"""
    controllers = base.call("/controller_manager/list_controllers", services.LIST_CONTROLLERS).controller
    # Broadcasters are active beside it, and claim nothing.
    active = [it.name for it in controllers if it.state == "active" and it.claimed_interfaces]
    if len(active) != 1:
        raise Judged(f"expected one active controller that claims joints: {controllers}")
    again = base.call(
        "/controller_manager/switch_controller", services.SWITCH_CONTROLLER, activate_controllers=active
    )
    if not again.ok:
        raise Judged(f"the active controller cannot be activated: {again}")
    wrong = base.call(
        "/controller_manager/switch_controller", services.SWITCH_CONTROLLER, activate_controllers=["nobody"]
    )
    if wrong.ok or "nobody" not in wrong.message:
        raise Judged(f"a controller there is none of was activated: {wrong}")
    done(base.call("/onbeat/disable", services.TRIGGER))
    base.does_not_move(lambda: base.twist.write(twist(x=0.2)), "a velocity while it is disabled")
    done(base.call("/onbeat/set_enabled", services.SET_BOOL, data=True))
    done(base.call("/onbeat/reset_faults", services.TRIGGER))
    start = base.rests("before it is enabled again")
    base.drive(lambda: base.twist.write(twist(x=0.2)), "ahead again", lambda now: distance(start, now) > 0.03)
    done(base.call("/onbeat/stop", services.TRIGGER))


def done(reply):
    if not reply.success:
        raise Judged(f"refused: {reply}")


def asks_the_bus(base):
    """objects of its drives are read, written and described, AL states and counters told; what it relies on is not written"""

    def asks(service, kind, **fields):
        return base.call(f"/onbeat/{service}", kind, slave_position=0, **fields)

    def load():
        return asks("get_sdo", services.GET_SDO, sdo_index=0x2F00, sdo_subindex=1, sdo_data_type="int32")

    def set_load(text):
        fields = {"sdo_index": 0x2F00, "sdo_subindex": 1, "sdo_data_type": "int32", "sdo_value": text}
        return asks("set_sdo", services.SET_SDO, **fields)

    before = load()
    done(before)
    done(set_load("7"))
    if load().sdo_return_value != 7.0:
        raise Judged(f"object 0x2F00:01 was set to 7 and is {load()}")
    done(set_load(before.sdo_return_value_string))
    wrong = set_load("1e2")
    if wrong.success or "whole number" not in wrong.sdo_return_message:
        raise Judged(f"1e2 was written as a whole number: {wrong}")
    mapping = asks(
        "set_sdo", services.SET_SDO, sdo_index=0x1600, sdo_subindex=0, sdo_data_type="uint8", sdo_value="0"
    )
    if mapping.success or not mapping.sdo_return_message:
        raise Judged(f"the mapping of a running drive was written: {mapping}")
    listed = asks("sdo_information", services.GET_SDO)
    objects = listed.sdo_return_value_string.split()
    if "0x6041" not in objects or len(objects) != listed.sdo_return_value:
        raise Judged(f"the object dictionary is told as {listed}")
    entry = json.loads(asks("sdo_information", services.GET_SDO, sdo_index=0x6041).sdo_return_value_string)
    if (entry["type"], entry["bits"]) != ("uint16", 16):
        raise Judged(f"the statusword is described as {entry}")
    states = base.call("/onbeat/al_states", services.TRIGGER)
    if not states.success or ": Op" not in states.message:
        raise Judged(f"AL states are told as {states}")
    status = base.call("/onbeat/bus_status", services.TRIGGER)
    if not status.success or "errors" not in json.loads(status.message)["sub_devices"][0]:
        raise Judged(f"the bus is told as {status}")


def tells_events(base):
    """axes that stop when nobody commands them any more are events with the numbers of their cycles"""
    events = base.node.reader("/onbeat/events", ros.DiagnosticArray)
    until("a writer of events", lambda: matched_by(events))
    start = base.rests("before events are listened to")
    base.drive(lambda: base.twist.write(twist(x=0.2)), "ahead", lambda now: distance(start, now) > 0.03)

    def stopped(message):
        return message.status[0].name == "onbeat: axis_stopped" and "stale" in message.status[0].message

    message = events.next("an event of a stopped axis", stopped)
    values = {it.key: it.value for it in message.status[0].values}
    if int(values["cycle"]) < 1 or message.header.stamp.sec < 1_700_000_000:
        raise Judged(f"a stopped axis is told as {message}")


def keeps_parameters(base):
    """parameters are listed, described, read, set; what they cannot be is refused"""
    names = base.call("/onbeat/list_parameters", services.LIST_PARAMETERS).result.names
    described = base.call("/onbeat/describe_parameters", services.DESCRIBE_PARAMETERS, names=names).descriptors
    if [it.name for it in described] != names or not all(it.description for it in described):
        raise Judged(f"parameters {names} are described as {described}")

    def timeout(seconds):
        value = ros.ParameterValue(type=3, double_value=seconds)
        parameter = ros.Parameter("cmd_vel_timeout", value)
        return base.call("/onbeat/set_parameters", services.SET_PARAMETERS, parameters=[parameter]).results[0]

    if not timeout(0.25).successful or timeout(-1.0).successful or timeout(math.nan).successful:
        raise Judged("cmd_vel_timeout can be 0.25 s, and cannot be -1 s or NaN")
    value = base.call("/onbeat/get_parameters", services.GET_PARAMETERS, names=["cmd_vel_timeout"]).values[0]
    if value.double_value != 0.25:
        raise Judged(f"cmd_vel_timeout was set to 0.25 s and is {value}")


def diagnoses(base):
    """diagnostics tell of bus, cycle, commands and every axis"""
    message = base.diagnostics.newest("/diagnostics")
    names = [status.name for status in message.status]
    joints = base.joints.newest("/joint_states").name
    for wanted in ["bus", "cycle", "command"] + [f"axis {joint}" for joint in joints]:
        if f"onbeat: {wanted}" not in names:
            raise Judged(f"/diagnostics lacks `{wanted}`: {names}")
    bus = next(status for status in message.status if status.name == "onbeat: bus")
    if not bus.message or not bus.values:
        raise Judged(f"the bus tells nothing: {bus}")


def survives_its_node(base):
    """the node is killed while it drives: it stops; a new node finds it where it is"""
    start = base.rests("before its node is killed")
    base.drive(lambda: base.twist.write(twist(x=0.2)), "ahead", lambda now: distance(start, now) > 0.03)
    base.processes.end("onbeat-ros2", signal.SIGKILL)
    base.processes.start("onbeat-ros2")
    base.odom.newest("/odom of the new node")
    after = base.rests("after its node was killed")
    if distance(start, after) < 0.03:
        raise Judged("the new node counts from the start again")


def survives_its_cycle(base):
    """the cycle is ended and started: the node waits, and tells of the new one"""
    base.processes.end("onbeat")
    base.diagnostics.next("the end of the cycle in /diagnostics", lambda m: m.status[0].level == 3)
    stale = base.call("/onbeat/enable", services.TRIGGER)
    if stale.success:
        raise Judged(f"nothing runs, and yet: {stale}")
    base.processes.start("onbeat")
    base.odom.newest("/odom of the new cycle")
    start = base.rests("after its cycle was started")
    base.drive(lambda: base.twist.write(twist(x=0.2)), "ahead", lambda now: distance(start, now) > 0.03)
    base.rests("at the end")


# Of examples/m4k.toml, m/s; odometry may say a little more.
FASTEST = 2.0 * 1.05

CHECKS = [
    is_told,
    obeys_twist,
    obeys_twist_stamped,
    refuses_nonsense,
    clamps_what_is_too_fast,
    serves,
    asks_the_bus,
    tells_events,
    keeps_parameters,
    diagnoses,
    survives_its_node,
    survives_its_cycle,
]
