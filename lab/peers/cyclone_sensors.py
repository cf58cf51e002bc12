"""Sensors: /imu and /scan of simulated devices, from their drivers to a node that knows the room they are in."""

import itertools
import math
import os
import time

import ros_types as ros
from robot_processes import Robot
from ros_peer import BEST_EFFORT, LATCHED, RELIABLE, Judged, Node, matched_by, until
from cyclonedds.core import Policy

# The room that simulated devices are in (docs/devices.md): walls 3 m ahead and behind, 2 m to both sides, a post.
WALLS = (3.0, 2.0)
POST = (1.5, 0.3, 0.1)
GRAVITY = 9.80665

TOPICS = [("/imu", ros.Imu, "imu_link"), ("/scan", ros.LaserScan, "laser")]


def judge(onbeat, bridge, robot, folder):
    node = Node(int(os.environ["ROS_DOMAIN_ID"]))
    with Robot(onbeat, bridge, robot, folder) as processes:
        sensors = Sensors(node, processes)
        processes.judge("sensors", CHECKS, sensors)


class Sensors:
    def __init__(self, node, processes):
        self.node = node
        self.processes = processes
        self.readers = {name: node.reader(name, kind, BEST_EFFORT) for name, kind, _ in TOPICS}

    def some(self, name, number, patience=30.0):
        """So many messages in a row, from now on."""
        reader, found = self.readers[name], []
        reader.take()

        def enough():
            found.extend(reader.take())
            return len(found) >= number

        until(f"{number} messages of {name}", enough, patience)
        return found


def seconds(stamp):
    return stamp.sec + stamp.nanosec / 1e9


def are_sensor_data(sensors):
    """their writers are reliable and volatile, of the types' names, and serve readers of both kinds"""
    reliable = {name: sensors.node.reader(name, kind, RELIABLE) for name, kind, _ in TOPICS}
    for name, _, _ in TOPICS:
        reader = sensors.readers[name]
        reader.next(f"a first message of {name}")
        (writer,) = until(f"the writer of {name}", lambda: matched_by(reader))
        package, kind = {"/imu": ("sensor_msgs", "Imu"), "/scan": ("sensor_msgs", "LaserScan")}[name]
        if (writer.topic_name, writer.type_name) != (f"rt{name}", f"{package}::msg::dds_::{kind}_"):
            raise Judged(f"{name} is written as {writer.topic_name} of {writer.type_name}")
        reliability = writer.qos[Policy.Reliability]
        if not isinstance(reliability, Policy.Reliability.Reliable):
            raise Judged(f"{name} is offered as {reliability}")
        durability = writer.qos[Policy.Durability]
        if durability != Policy.Durability.Volatile:
            raise Judged(f"{name} is offered as {durability}")
        reliable[name].next(f"a message of {name} for a reliable reader")


def are_stamped(sensors):
    """frame ids are the parameters', stamps move on, and are those of the wall's clock"""
    for name, _, frame in TOPICS:
        messages = sensors.some(name, 10)
        frames = {message.header.frame_id for message in messages}
        if frames != {frame}:
            raise Judged(f"frames of {name}: {frames}, expected {frame}")
        stamps = [seconds(message.header.stamp) for message in messages]
        for before, after in itertools.pairwise(stamps):
            # A measurement is published once; on a loaded machine some are missing between.
            if not 0.001 < after - before < 10.0:
                raise Judged(f"a stamp of {name} {after - before:.6f} s after the one before")
        age = time.time() - stamps[-1]
        if not -0.5 < age < 10.0:
            raise Judged(f"the last {name} is stamped {age:.3f} s ago; its clock is not the wall's")


def feels_gravity(sensors):
    """the IMU lies level: gravity is on z, its orientation is a rotation without tilt"""
    for message in sensors.some("/imu", 50):
        force, turn, q = message.linear_acceleration, message.angular_velocity, message.orientation
        if abs(force.z - GRAVITY) > 0.3 or max(abs(force.x), abs(force.y)) > 0.3:
            raise Judged(f"an IMU at rest feels {force}, expected {GRAVITY} m/s^2 on z")
        if abs(math.hypot(q.x, q.y, q.z, q.w) - 1.0) > 1e-6 or math.hypot(q.x, q.y) > 0.05:
            raise Judged(f"an IMU that lies level has the orientation {q}")
        if max(abs(turn.x), abs(turn.y)) > 0.1:
            raise Judged(f"an IMU that lies level turns {turn}")
        for what, covariance in [
            ("orientation", message.orientation_covariance),
            ("angular velocity", message.angular_velocity_covariance),
            ("linear acceleration", message.linear_acceleration_covariance),
        ]:
            diagonal, others = covariance[::4], [it for place, it in enumerate(covariance) if place % 4]
            if not all(0.0 < it < 100.0 for it in diagonal) or any(others):
                raise Judged(f"covariance of {what}: {covariance}")


def turns_as_it_says(sensors):
    """its yaw changes by what its angular velocity about z comes to"""
    messages = sensors.some("/imu", 200)
    come_to, changed = 0.0, 0.0
    for before, after in itertools.pairwise(messages):
        step = seconds(after.header.stamp) - seconds(before.header.stamp)
        come_to += step * (before.angular_velocity.z + after.angular_velocity.z) / 2.0
        changed += math.remainder(yaw(after) - yaw(before), math.tau)
    # What it learns of its bias meanwhile moves its yaw besides.
    if abs(changed - come_to) > 0.02 + 0.1 * abs(come_to):
        raise Judged(f"its yaw changed by {changed:.4f} rad, its angular velocity comes to {come_to:.4f} rad")


def yaw(imu):
    return 2.0 * math.atan2(imu.orientation.z, imu.orientation.w)


def sees_the_room(sensors):
    """the scan is that of the room: a wall 3 m ahead, one 2 m to each side, a post"""
    for scan in sensors.some("/scan", 3):
        angles = [scan.angle_min + place * scan.angle_increment for place in range(len(scan.ranges))]
        if len(angles) != 682 or abs(angles[-1] - scan.angle_max) > 1e-3:
            raise Judged(f"{len(angles)} ranges from {scan.angle_min} to {angles[-1]}, expected 682 to {scan.angle_max}")
        if not 2.0 < -scan.angle_min < 2.2 or scan.intensities or not 0.01 < scan.scan_time < 1.0:
            raise Judged(f"from {scan.angle_min} rad, {scan.scan_time} s a scan, {len(scan.intensities)} intensities")
        if not (0.0 < scan.range_min < 0.1 and scan.range_max > 4.0):
            raise Judged(f"ranges from {scan.range_min} to {scan.range_max} m")
        ahead = scan.ranges[round(-scan.angle_min / scan.angle_increment)]
        if abs(ahead - WALLS[0]) > 0.03:
            raise Judged(f"{ahead} m ahead, expected a wall after {WALLS[0]} m")
        # At the post's edges a beam may pass or not.
        wrong = [
            (angle, found) for angle, found in zip(angles, scan.ranges) if abs(found - room(angle)) > 0.03
        ]
        if len(wrong) > 4 or any(abs(angle - math.atan2(POST[1], POST[0])) > 0.1 for angle, _ in wrong):
            raise Judged(f"{len(wrong)} ranges are not the room's, the first {wrong[:3]}")


def room(angle):
    """What is seen in this direction from the middle of the room."""
    x, y = math.cos(angle), math.sin(angle)
    seen = min(wall / abs(way) for wall, way in zip(WALLS, (x, y)) if abs(way) > 1e-9)
    along, beside = POST[0] * x + POST[1] * y, POST[0] * y - POST[1] * x
    if along > 0.0 and abs(beside) < POST[2]:
        seen = min(seen, along - math.sqrt(POST[2] ** 2 - beside**2))
    return seen


def are_on_the_robot(sensors):
    """a reader that comes late knows where they are: /tf_static leads from their frames to the base's"""
    static = sensors.node.reader("/tf_static", ros.TFMessage, LATCHED)
    transforms = static.next("the frames of the robot").transforms
    parents = {it.child_frame_id: it.header.frame_id for it in transforms}
    expected = {name: "base_link" for name in ("laser", "imu_link", "left-wheel", "right-wheel")}
    if parents != expected:
        raise Judged(f"/tf_static: {parents}, expected {expected}")
    places = {it.child_frame_id: it.transform.translation for it in transforms}
    wheels = [(round(places[name].y, 6), round(places[name].z, 6)) for name in ("left-wheel", "right-wheel")]
    if wheels != [(0.115, 0.1016), (-0.115, 0.1016)] or places["laser"].z != 0.25:
        raise Judged(f"/tf_static: {places}")


CHECKS = [are_on_the_robot, are_sensor_data, are_stamped, feels_gravity, turns_as_it_says, sees_the_room]
