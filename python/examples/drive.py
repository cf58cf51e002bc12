"""Drives a base some metres ahead, or back, and brings it to rest there. It needs the package onbeat, and nothing else:

    onbeat run examples/m4k.toml                # in another terminal
    python python/examples/drive.py 1.0
"""

from __future__ import annotations

import sys

import onbeat

SPEED = 0.25
"""m/s."""

GAIN = 1.5
"""Speed for each metre that is left, 1/s: it arrives slowly."""

LASTS = 0.2
"""s: without a newer command the base stops by itself."""


def drive(cycle: onbeat.Cycle, metres: float) -> onbeat.State:
    """Drives until the way is behind the base, and returns where it rests."""
    with cycle.command() as command:
        begin = cycle.state().base.pose
        for state in cycle.states(timeout=1.0):
            x, y, _ = state.base.pose
            gone = ((x - begin[0]) ** 2 + (y - begin[1]) ** 2) ** 0.5
            left = abs(metres) - gone
            if left < 0.005:
                break
            speed = min(SPEED, GAIN * left + 0.01)
            command.send(twist=onbeat.Twist(x=speed if metres > 0 else -speed), ttl=LASTS)
        for state in cycle.states(timeout=1.0):
            command.send(twist=onbeat.Twist(), ttl=LASTS)  # to rest, before the lease goes
            if max(map(abs, state.velocities)) < 0.01:
                return state
    raise onbeat.CycleEndedError("the cycle ended on the way")


def main() -> None:
    metres = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with onbeat.attach() as cycle:
        if cycle.description.base is None:
            sys.exit("this robot has no base: run examples/m4k.toml, for one")
        with cycle.requests() as requests:
            requests.enable()
        x, y, yaw = drive(cycle, metres).base.pose
        print(f"at x {x:.3f} m, y {y:.3f} m, yaw {yaw:.3f} rad")


if __name__ == "__main__":
    main()
