"""A second computer, on the network of the one with the robot: a network namespace at the other end of a cable.

    ros_second_computer.py          looks and commands from there, and prints what it has seen as JSON
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time

import ros_types as ros
from ros_peer import Judged, until
from ros_peer import Node as CycloneNode

ROBOT, OTHER = "10.93.7.1", "10.93.7.2"

# Seconds in which the other computer commands; odometry comes 50 times a second.
COMMANDED = 2.0


class SecondComputer:
    def __init__(self, pid):
        self.inside = ["nsenter", f"--net=/proc/{pid}/ns/net", "--"]

    def looks(self, expected):
        """What a genuine ROS 2 sees on the other computer, once it sees the nodes expected."""
        environment = os.environ | {"ROS_STATIC_PEERS": ROBOT}
        command = [*self.inside, sys.executable, __file__, *expected]
        return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=90).stdout)

    def defaults(self, _):
        """Cyclone DDS with its defaults, which prefers the network interface, watches and commands from the robot's computer"""
        node = CycloneNode(int(os.environ["ROS_DOMAIN_ID"]))
        odometry, twist = node.reader("/odom", ros.Odometry), node.writer("/cmd_vel", ros.Twist)
        odometry.next("odometry")

        def drives():
            twist.write(ros.Twist(linear=ros.Vector3(x=0.2)))
            return any(it.twist.twist.linear.x > 0.1 for it in odometry.take())

        until("the base follows", drives, pause=0.05)
        odometry.next("the base rests", lambda it: abs(it.twist.twist.linear.x) < 1e-3)

    def closed(self, judge):
        """the other computer sees a genuine node of the robot's computer, and neither sees nor commands onbeat's"""
        place = judge.place()
        seen = self.looks(["genuine"])
        if "onbeat" in seen["nodes"] or seen["listeners"]:
            raise Judged(f"expected the node to be closed to the network, found {seen}")
        if (now := judge.place()) != place:
            raise Judged(f"commanded from the other computer: from {place} to {now}")

    def opened(self, judge):
        """with --network it sees and commands it"""
        robot = judge.robot
        robot.end("onbeat-ros2")
        robot.commands["onbeat-ros2"] += ["--network", ROBOT]
        robot.start("onbeat-ros2")
        place = judge.place()
        seen = self.looks(["genuine", "onbeat"])
        del robot.commands["onbeat-ros2"][-2:]
        if not seen["listeners"]:
            raise Judged(f"expected a listener of /cmd_vel, found {seen}")
        if (now := judge.place()) == place:
            raise Judged(f"commanded from the other computer in vain: still at {place}")
        robot.end("onbeat-ros2")
        robot.start("onbeat-ros2")
        judge.place()


@contextlib.contextmanager
def second_computer():
    """The other end of a cable, or None where there may be none: without root, or in the network of the machine itself."""
    if os.geteuid() != 0 or [name for _, name in socket.if_nameindex()] != ["lo"]:
        yield None
        return
    with subprocess.Popen(["unshare", "--net", "--", "sleep", "infinity"]) as holder:
        try:
            own = os.readlink("/proc/self/ns/net")
            until("a network namespace", lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != own)
            other = SecondComputer(holder.pid)
            for command in (
                ["ip", "link", "add", "nic0", "type", "veth", "peer", "name", "nic1", "netns", str(holder.pid)],
                ["ip", "address", "add", f"{ROBOT}/24", "dev", "nic0"],
                ["ip", "link", "set", "nic0", "up"],
                [*other.inside, "ip", "address", "add", f"{OTHER}/24", "dev", "nic1"],
                [*other.inside, "ip", "link", "set", "nic1", "up"],
                [*other.inside, "ip", "link", "set", "lo", "up"],
            ):
                subprocess.run(command, check=True)
            yield other
        finally:
            holder.kill()


def main():
    import rclpy  # not in the module: whoever imports it may have no ROS 2
    from geometry_msgs.msg import Twist
    from rclpy.qos import QoSProfile

    rclpy.init()
    node = rclpy.create_node("other")
    commands = node.create_publisher(Twist, "/cmd_vel", QoSProfile(depth=10))
    until(f"{sys.argv[1:]}", lambda: set(sys.argv[1:]) <= set(node.get_node_names()))
    twist = Twist()
    twist.linear.x = 0.2
    deadline, listeners = time.monotonic() + COMMANDED, 0
    while time.monotonic() < deadline:
        commands.publish(twist)
        listeners = max(listeners, commands.get_subscription_count())
        rclpy.spin_once(node, timeout_sec=0.05)
    print(json.dumps({"nodes": node.get_node_names(), "listeners": listeners}))


if __name__ == "__main__":
    main()
