"""A base beside a busy computer: it drives so far in a second of its bus as was commanded, however late the computer is."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile

import cyclone_base
import ros_services as services
import ros_types as ros
from cyclone_base import distance, twist
from robot_processes import Robot
from ros_peer import Judged, Node, matched, until

# m/s, and the distance, in m.
SPEED = 0.2
WAY = 1.2
# Of examples/m4k.toml: wheels of this diameter (m), and the period (s).
WHEEL = 0.2032
PERIOD = 1e-3
# Busy processes, twice as many as a small computer has CPUs.
LOAD = 4


def judge(onbeat, bridge, robot, folder):
    node = Node(int(os.environ["ROS_DOMAIN_ID"]))
    recording = os.path.join(folder, "load.mcap")
    with Robot(onbeat, bridge, robot, folder, slow=False, arguments=["--record", recording]) as processes:
        base = cyclone_base.Base(node, processes)
        processes.judge("base beside load", [drives_the_commanded_way], base)
        processes.end("onbeat-ros2")
        if (code := processes.end("onbeat")) != 0:
            raise Judged(f"onbeat ended with {code} beside load")
        keeps_its_speed_in_bus_time(onbeat, recording)


def drives_the_commanded_way(base):
    """beside a busy computer, a Twist of 0.2 m/s drives it ahead"""
    until("a reader of Twist", lambda: matched(base.twist))
    # Commands live by the computer's time: those of a busy one may be late.
    parameter = ros.Parameter("cmd_vel_timeout", ros.ParameterValue(type=3, double_value=1.0))
    if not base.call("/onbeat/set_parameters", services.SET_PARAMETERS, parameters=[parameter]).results[0].successful:
        raise Judged("cmd_vel_timeout can be 1 s")
    start = base.rests("before it is commanded")
    with Load():
        ahead = lambda now: distance(start, now) > WAY
        base.drive(lambda: base.twist.write(twist(x=SPEED)), f"{WAY} m ahead", ahead, patience=120.0)
    # Ends the command at once, and not when its time is over.
    base.drive(lambda: base.twist.write(twist()), "standstill", lambda now: cyclone_base.speed(now) < 1e-3)


def keeps_its_speed_in_bus_time(onbeat, recording):
    """By the recording, whose cycles are the time of the bus: between a tenth and nine tenths of the way, 0.2 m a second."""
    with tempfile.TemporaryDirectory() as folder:
        rows = os.path.join(folder, "rows.csv")
        subprocess.run([onbeat, "export", recording, rows], check=True, stdout=subprocess.DEVNULL)
        with open(rows) as lines:
            table = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    # The right wheel is mounted the other way round; its axis is not.
    wheels = ["axis:left-wheel.position", "axis:right-wheel.position"]
    way = [(int(row["cycle"]), sum(float(row[it]) for it in wheels) / 2 * WHEEL / 2) for row in table if row[wheels[0]]]
    lost = sum(int(row["lost_frames"]) for row in table)
    first = next((it for it in way if it[1] > 0.1 * WAY), None)
    last = next((it for it in way if it[1] > 0.9 * WAY), None)
    if first is None or last is None:
        raise Judged(f"the recording has {way[-1][1] if way else 0.0:.3f} m of {WAY} m")
    seconds = (last[0] - first[0]) * PERIOD
    speed = (last[1] - first[1]) / seconds
    if abs(speed / SPEED - 1.0) > 0.05 or lost:
        raise Judged(f"expected {SPEED} m in a second of bus time, found {speed:.4f} m, and {lost} lost frames")
    print(f"base beside load: {speed:.4f} m in a second of bus time ({seconds:.1f} s), no frame lost", flush=True)


class Load:
    """Processes that keep the computer busy."""

    def __enter__(self):
        stress = shutil.which("stress-ng")
        busy = [[stress, "--quiet", "--cpu", str(LOAD)]] if stress else [[sys.executable, "-c", "while True: pass"]] * LOAD
        self.processes = [subprocess.Popen(it, stdin=subprocess.DEVNULL) for it in busy]

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()
