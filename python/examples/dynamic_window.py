#!/usr/bin/env python3
"""A dynamic-window planner (Fox, Burgard and Thrun, 1997) for a differential-drive robot.

It reads /odom and sends /cmd_vel every 50 ms, as a ROS 2 node would, but needs no ROS: only `pip install cyclonedds`. With --ros it
is a node of ROS 2 itself (rclpy).
Beside it run `onbeat run examples/m4k.toml` and `onbeat-ros2`.

The range finder is simulated: the planner is told where the obstacle is, and sees the points of it that a range finder on
the robot would see. `lab/experiments/src/navigation/planner.rs` is the same planner in Rust; a test holds them together.
"""

import argparse
import json
import math
import os
import sys
import time
from dataclasses import dataclass

YAW, YAW_ACCELERATION = 1.2, 3.0  # rad/s, rad/s^2
PERIOD = 0.05  # s, from one plan to the next
AHEAD, STEPS = 2.0, 16  # each velocity is followed for so long, in so many steps
WINDOW = 4.0  # periods until the base has come to what it is asked
VELOCITIES, TURNS = 7, 15  # tried
LEAST_ROOM, BERTH, COMFORT = 0.05, 0.2, 0.15  # m
BEAMS, SECTORS, FIELD, LONGEST = 241, 16, math.radians(240.0), 4.0  # of the range finder

LOOPBACK = """<CycloneDDS><Domain><General>
<Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces><AllowMulticast>false</AllowMulticast>
</General><Discovery><ParticipantIndex>auto</ParticipantIndex><Peers><Peer Address="127.0.0.1"/></Peers></Discovery>
</Domain></CycloneDDS>"""


@dataclass(frozen=True)
class Course:
    """A goal, a triangle, boards around, and the robot: m, m/s, m/s^2."""

    goal: tuple = (3.0, 0.0)
    obstacle: tuple = ((1.4, 0.05), (1.75, -0.15), (1.75, 0.25))  # corners
    boards: tuple = ((-0.5, -1.0), (3.75, 1.0))  # the corners of the lowest and of the highest x and y
    robot: tuple = (0.45, 0.28)  # length and width, about the middle between its wheels
    tolerance: float = 0.1
    velocity: float = 0.25
    acceleration: float = 0.37

    def edges(self):
        """Of the triangle and of the boards."""
        a, b, c = self.obstacle
        (left, low), (right, high) = self.boards
        corners = (left, low), (right, low), (right, high), (left, high)
        return [(a, b), (b, c), (c, a)] + [(corners[i], corners[(i + 1) % 4]) for i in range(4)]


def scan(course, pose):
    """The nearest point of an edge in each sector, in the robot's own frame."""
    edges = [(seen_from(pose, a), seen_from(pose, b)) for a, b in course.edges()]
    nearest = {}
    for beam in range(BEAMS):
        angle = FIELD * (beam / (BEAMS - 1) - 0.5)
        sin, cos = math.sin(angle), math.cos(angle)
        reach = min((meets(edge, sin, cos) for edge in edges), default=math.inf)
        sector = beam * SECTORS // BEAMS
        if reach < LONGEST and (sector not in nearest or reach < nearest[sector][0]):
            nearest[sector] = (reach, (reach * cos, reach * sin))
    return [nearest[sector][1] for sector in sorted(nearest)]


def meets(edge, sin, cos):
    """Range at which a beam meets an edge."""
    (ax, ay), (bx, by) = edge
    dx, dy = bx - ax, by - ay
    across = cos * dy - sin * dx
    if across == 0.0:
        return math.inf
    reach, part = (ax * dy - ay * dx) / across, (ax * sin - ay * cos) / across
    return reach if reach >= 0.0 and 0.0 <= part <= 1.0 else math.inf


def seen_from(pose, place):
    """A place on the floor in the robot's own frame."""
    px, py, yaw = pose
    dx, dy = place[0] - px, place[1] - py
    sin, cos = math.sin(yaw), math.cos(yaw)
    return cos * dx + sin * dy, cos * dy - sin * dx


def plan(course, twist, goal, points):
    """The velocity and yaw rate to ask for."""
    reach = WINDOW * PERIOD
    velocities = window(twist[0], course.acceleration * reach, 0.0, course.velocity)
    turns = window(twist[1], YAW_ACCELERATION * reach, -YAW, YAW)
    within = course.velocity * AHEAD + math.hypot(*course.robot) / 2.0 + COMFORT
    near = [point for point in points if math.hypot(*point) < within]
    obstacles = joined(points, course.robot[1] + 2.0 * BERTH)
    best = None
    for i in range(VELOCITIES):
        velocity = between(velocities, i, VELOCITIES)
        for j in range(TURNS):
            asked = (velocity, between(turns, j, TURNS))
            found = cost(course, asked, goal, near, obstacles)
            if found is not None and (best is None or found < best[0]):
                best = (found, asked)
    return best[1] if best else turn_away(points)


def joined(points, gap):
    """Points with no way between them are one obstacle."""
    obstacles = []
    for x, y in points:
        joins = [any(math.hypot(a - x, b - y) < gap for a, b in it) for it in obstacles]
        one = [point for it, joint in zip(obstacles, joins) if joint for point in it]
        obstacles = [it for it, joint in zip(obstacles, joins) if not joint] + [one + [(x, y)]]
    return obstacles


def cost(course, asked, goal, near, obstacles):
    """None where the base could not stop in time."""
    velocity, turn = asked
    stopping = velocity**2 / (2.0 * course.acceleration) + velocity * PERIOD
    room, pose = math.inf, (0.0, 0.0, 0.0)
    for step in range(1, STEPS + 1):
        elapsed = AHEAD * step / STEPS
        pose = arc(velocity * elapsed, turn * elapsed)
        here = min((distance(seen_from(pose, point), course.robot) for point in near), default=math.inf)
        if here < LEAST_ROOM and velocity * elapsed <= stopping + LEAST_ROOM:
            return None
        room = min(room, here)
    left, direction = way_left(pose, goal, obstacles, course.robot[1] / 2.0 + BERTH)
    off = direction - pose[2]
    turned = abs(math.atan2(math.sin(off), math.cos(off)))
    narrow = min(max((COMFORT - room) / COMFORT, 0.0), 1.0)
    return left + 0.5 * turned * min(left, 1.0) + 2.0 * narrow * narrow + 0.05 * (course.velocity - velocity)


def distance(point, robot):
    """Of a point from the robot; negative inside."""
    ahead, aside = abs(point[0]) - robot[0] / 2.0, abs(point[1]) - robot[1] / 2.0
    return math.hypot(ahead, aside) if ahead > 0.0 and aside > 0.0 else max(ahead, aside)


def arc(along, turn):
    """Where an arc of this length and turn leads."""
    if abs(turn) < 1e-4:
        return along * (1.0 - turn * turn / 6.0), along * turn / 2.0, turn
    return along * math.sin(turn) / turn, along * 2.0 * math.sin(turn / 2.0) ** 2 / turn, turn


def way_left(start, goal, obstacles, wide):
    """From a place to the goal, round the obstacles in between on their shorter side: how far, and which way first."""
    dx, dy = goal[0] - start[0], goal[1] - start[1]
    straight, bearing = math.hypot(dx, dy), math.atan2(dy, dx)
    sin, cos = math.sin(bearing), math.cos(bearing)
    blocking = []
    for points in obstacles:
        beside = [(cos * x + sin * y, cos * y - sin * x) for x, y in ((x - start[0], y - start[1]) for x, y in points)]
        if any(0.0 <= along < straight and abs(left) < wide for along, left in beside):
            blocking += beside
    sides = {1.0: (-math.inf, straight), -1.0: (-math.inf, straight)}
    for along, left in blocking:
        to, beyond = math.hypot(along, left), math.hypot(straight - along, left)
        near, far = min(wide / to, 1.0), min(wide / beyond, 1.0)
        corner = math.pi - (math.atan2(abs(left), along) + math.atan2(abs(left), straight - along))
        for side in sides:
            turn = side * math.atan2(left, along) + math.asin(near)
            about = corner if side * left < 0.0 else math.tau - corner
            bend = max(about - math.acos(near) - math.acos(far), 0.0)
            legs = math.sqrt(max(to**2 - wide**2, 0.0)) + math.sqrt(max(beyond**2 - wide**2, 0.0))
            if along > 0.0 and turn > sides[side][0]:
                sides[side] = (turn, legs + wide * bend)
    if not blocking:
        return straight, bearing
    if sides[1.0][1] <= sides[-1.0][1]:
        return sides[1.0][1], bearing + sides[1.0][0]
    return sides[-1.0][1], bearing - sides[-1.0][0]


def turn_away(points):
    """On the spot, away from the nearest point."""
    nearest = min(points, key=lambda point: math.hypot(*point), default=(0.0, -1.0))
    return 0.0, (-0.5 if nearest[1] >= 0.0 else 0.5) * YAW


def window(now, reach, lowest, highest):
    now = min(max(now, lowest), highest)
    return max(now - reach, lowest), min(now + reach, highest)


def between(limits, step, steps):
    low, high = limits
    return low + (high - low) * step / (steps - 1)


def decide(course, pose, twist):
    """What to ask of a base that stands at `pose` and moves with `twist`."""
    if math.hypot(pose[0] - course.goal[0], pose[1] - course.goal[1]) <= course.tolerance:
        return 0.0, 0.0
    return plan(course, twist, seen_from(pose, course.goal), scan(course, pose))


def messages():
    """The ROS 2 messages this planner speaks, as DDS knows them: Twist and Odometry."""
    from cyclonedds.idl import IdlStruct
    from cyclonedds.idl.annotations import final
    from cyclonedds.idl.types import array, float64, int32, uint32

    def named(package, name):
        return f"{package}::msg::dds_::{name}_"

    @dataclass
    @final
    class Time(IdlStruct, typename=named("builtin_interfaces", "Time")):
        sec: int32
        nanosec: uint32

    @dataclass
    @final
    class Header(IdlStruct, typename=named("std_msgs", "Header")):
        stamp: Time
        frame_id: str

    @dataclass
    @final
    class Vector3(IdlStruct, typename=named("geometry_msgs", "Vector3")):
        x: float64
        y: float64
        z: float64

    @dataclass
    @final
    class Point(IdlStruct, typename=named("geometry_msgs", "Point")):
        x: float64
        y: float64
        z: float64

    @dataclass
    @final
    class Quaternion(IdlStruct, typename=named("geometry_msgs", "Quaternion")):
        x: float64
        y: float64
        z: float64
        w: float64

    @dataclass
    @final
    class Pose(IdlStruct, typename=named("geometry_msgs", "Pose")):
        position: Point
        orientation: Quaternion

    @dataclass
    @final
    class Twist(IdlStruct, typename=named("geometry_msgs", "Twist")):
        linear: Vector3
        angular: Vector3

    @dataclass
    @final
    class PoseWithCovariance(IdlStruct, typename=named("geometry_msgs", "PoseWithCovariance")):
        pose: Pose
        covariance: array[float64, 36]

    @dataclass
    @final
    class TwistWithCovariance(IdlStruct, typename=named("geometry_msgs", "TwistWithCovariance")):
        twist: Twist
        covariance: array[float64, 36]

    @dataclass
    @final
    class Odometry(IdlStruct, typename=named("nav_msgs", "Odometry")):
        header: Header
        child_frame_id: str
        pose: PoseWithCovariance
        twist: TwistWithCovariance

    return Vector3, Twist, Odometry


def seen(odometry):
    """Pose and twist of the base, from a message."""
    turn, place = odometry.pose.pose.orientation, odometry.pose.pose.position
    yaw = math.atan2(2.0 * (turn.w * turn.z + turn.x * turn.y), 1.0 - 2.0 * (turn.y**2 + turn.z**2))
    return (place.x, place.y, yaw), (odometry.twist.twist.linear.x, odometry.twist.twist.angular.z)


def drive_by_ros(course):
    """Plans until it is stopped, as a node of ROS 2."""
    import rclpy
    from geometry_msgs.msg import Twist
    from nav_msgs.msg import Odometry
    from rclpy.executors import ExternalShutdownException

    rclpy.init()
    node = rclpy.create_node("dynamic_window")
    commands = node.create_publisher(Twist, "cmd_vel", 1)
    newest = []

    def hear(odometry):
        newest[:] = [odometry]

    def ask():
        if newest:
            message = Twist()
            message.linear.x, message.angular.z = decide(course, *seen(newest[0]))
            commands.publish(message)

    node.create_subscription(Odometry, "odom", hear, 1)
    node.create_timer(PERIOD, ask)
    try:
        rclpy.spin(node)
    except ExternalShutdownException:
        pass


def drive(course):
    """Plans until it is stopped."""
    from cyclonedds.core import Policy, Qos
    from cyclonedds.domain import DomainParticipant
    from cyclonedds.pub import DataWriter
    from cyclonedds.sub import DataReader
    from cyclonedds.topic import Topic
    from cyclonedds.util import duration

    Vector3, Twist, Odometry = messages()
    # onbeat-ros2 keeps to the loopback interface, unless told otherwise.
    os.environ.setdefault("CYCLONEDDS_URI", LOOPBACK)
    participant = DomainParticipant(int(os.environ.get("ROS_DOMAIN_ID", "0")))
    reliable = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepLast(1))
    odometry = DataReader(participant, Topic(participant, "rt/odom", Odometry), qos=reliable)
    commands = DataWriter(participant, Topic(participant, "rt/cmd_vel", Twist), qos=reliable)
    here, release = None, time.monotonic()
    while True:
        for sample in odometry.take(10):
            if hasattr(sample, "pose"):
                here = sample
        if here is not None:
            velocity, turning = decide(course, *seen(here))
            commands.write(Twist(Vector3(velocity, 0.0, 0.0), Vector3(0.0, 0.0, turning)))
        release = max(release + PERIOD, time.monotonic() - PERIOD)
        time.sleep(max(release - time.monotonic(), 0.0))


def main():
    parser = argparse.ArgumentParser(description="A dynamic-window planner over DDS; all lengths in m.")
    parser.add_argument("--course", type=json.loads, default={}, help="JSON, in place of the paper's course")
    parser.add_argument("--decide", action="store_true", help="answer lines of x y yaw velocity yaw_rate, and end")
    parser.add_argument("--ros", action="store_true", help="as a node of ROS 2 (rclpy), in place of DDS alone")
    given = parser.parse_args()
    course = Course(**given.course)
    if given.decide:
        for line in sys.stdin:
            x, y, yaw, velocity, turning = map(float, line.split())
            print(*decide(course, (x, y, yaw), (velocity, turning)))
        return
    try:
        (drive_by_ros if given.ros else drive)(course)
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
