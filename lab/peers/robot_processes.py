"""A robot as two processes: the cycle, and its ROS 2 node."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ros_peer import Judged

sys.path.append(str(Path(__file__).resolve().parents[2] / "python/tests"))
from patient import patient


# Of a check in all, each after an outage in the one before.
TRIES = 8


class Process:
    def __init__(self, folder, name, command):
        self.name = name
        self.log = os.path.join(folder, f"{name}-{time.monotonic_ns()}.log")
        self.output = open(self.log, "wb")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT
        )

    def check(self):
        code = self.process.poll()
        if code is not None:
            raise Judged(f"{self.name} ended by itself with {code}")

    def said(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def end(self, how=signal.SIGTERM):
        """Ends it, and waits until it has."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise Judged(f"{self.name} did not end within 20 s of signal {how}") from None
        self.output.close()
        return self.process.returncode


class Robot:
    """Context manager: both processes run, and are ended and their logs shown when something goes wrong."""

    def __init__(self, onbeat, bridge, robot, folder, slow=True, arguments=()):
        # An ordinary machine stands still for some milliseconds now and then: two cycles of 5 ms are no outage yet.
        robot = patient(Path(robot), Path(folder), "5ms") if slow else robot
        self.commands = {
            "onbeat": [onbeat, "run", robot, "--ipc", f"judge-{os.getpid()}", *arguments],
            "onbeat-ros2": [bridge, "--ipc", f"judge-{os.getpid()}"],
        }
        self.folder = folder
        self.processes = {}
        self.ended = []

    def start(self, name):
        self.processes[name] = Process(self.folder, name, self.commands[name])

    def end(self, name, how=signal.SIGTERM):
        process = self.processes.pop(name)
        self.ended.append(process)
        return process.end(how)

    def check(self):
        for process in self.processes.values():
            process.check()

    def judge(self, name, checks, subject):
        """Runs every check, and again one in which the machine stood still so long that the cycle held its axes."""
        for check in checks:
            start = time.monotonic()
            for more in reversed(range(TRIES)):
                outages = self.outages()
                try:
                    check(subject)
                    break
                except Judged as error:
                    if more == 0 or not self.tells_more_than(outages):
                        raise
                    print(f"{name}: once more, after an outage: {error}", flush=True)
                    self.settle()
            self.check()
            print(f"{name}: {check.__doc__.splitlines()[0]} ({time.monotonic() - start:.1f} s)", flush=True)

    def tells_more_than(self, outages):
        """Whether there was another outage: its line comes some milliseconds later."""
        end = time.monotonic() + 1.0
        while self.outages() == outages and time.monotonic() < end:
            time.sleep(0.02)
        return self.outages() > outages

    def settle(self):
        """Waits until the cycle has neither held axes nor let them go for a second: who is held takes no goals."""
        told, since = None, time.monotonic()
        while time.monotonic() - since < 1.0:
            if (now := (self.outages(), self.told(" let go\n"))) != told:
                told, since = now, time.monotonic()
            time.sleep(0.02)

    def outages(self):
        """How often the cycle held its axes for want of replies."""
        return self.told("(outage)") + self.told("this computer stalled")

    def told(self, words):
        known = self.ended + list(self.processes.values())
        return sum(process.said().count(words) for process in known if process.name == "onbeat")

    def __enter__(self):
        self.start("onbeat")
        self.start("onbeat-ros2")
        return self

    def __exit__(self, kind, error, _):
        failed = error is not None
        for process in list(self.processes.values()):
            try:
                code = process.process.poll()
                process.end()
                if not failed and code is not None:
                    raise Judged(f"{process.name} ended by itself with {code}")
            except Judged:
                if not failed:
                    raise
        if failed:
            for process in self.ended + list(self.processes.values()):
                print(f"--- {process.name} said:\n{process.said()[-4000:]}")
