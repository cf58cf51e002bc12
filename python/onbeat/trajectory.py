"""Motions of several axes through points, as ROS 2's action FollowJointTrajectory knows them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

from . import _native
from ._native import RequestRefusedError, TrajectoryReport
from .description import Description

DEFAULT = 0.0
"""A tolerance as the robot file says."""
UNLIMITED = -1.0
"""No tolerance at all."""


@dataclass(frozen=True)
class Point:
    """Where the axes are at a time after the start."""

    time: float
    """s."""
    positions: Sequence[float]
    """rad, one for each axis of the trajectory."""
    velocities: Sequence[float] = ()
    """rad/s, one for each axis, or none at all."""
    accelerations: Sequence[float] = ()
    """rad/s^2, one for each axis, or none at all; only beside velocities."""


@dataclass(frozen=True)
class Tolerance:
    """Tolerances of an axis: 0 as the robot file says, -1 no matter how."""

    path_position: float = DEFAULT
    path_velocity: float = DEFAULT
    goal_position: float = DEFAULT
    goal_velocity: float = DEFAULT


class Trajectory:
    """A trajectory that the cycle has accepted."""

    def __init__(self, owner: Trajectories, number: int) -> None:
        self._owner = owner
        self.id = number

    def wait(self, *, timeout: float | None = None) -> TrajectoryReport:
        """Waits until it has succeeded, was aborted or canceled; TimeoutError when that takes longer."""
        return self._owner._wait(self.id, {"succeeded", "aborted", "canceled"}, timeout)

    def cancel(self) -> None:
        """Calls it off: the axes come to rest, and `wait` gives ``canceled``."""
        self._owner._port.cancel(self.id)


class Trajectories:
    """The port of trajectories, open: one program's at a time. Leaving the ``with`` closes it."""

    def __init__(self, port: _native.TrajectoryPort, description: Description) -> None:
        self._port = port
        self._description = description
        self._reports: list[TrajectoryReport] = []

    def follow(
        self,
        axes: Sequence[str],
        points: Sequence[Point],
        *,
        tolerances: Mapping[str, Tolerance] | None = None,
        goal_time: float | None = None,
        timeout: float | None = 5.0,
    ) -> Trajectory:
        """Sends a trajectory and waits until the cycle has accepted it; RequestRefusedError says why not.

        ``goal_time`` is how much later than its last point the goal may be reached, s; -1 for any. ``timeout`` is that
        of the acceptance.
        """
        allowed = tolerances or {}
        for name in allowed:
            if name not in axes:
                raise KeyError(f"a tolerance for {name!r}, which is none of the trajectory's axes")
        # Higher than that of every trajectory before it, whoever sent that.
        number = time.monotonic_ns()
        named = [(self._description.axis(name), _numbers(allowed.get(name, Tolerance()))) for name in axes]
        rows = [
            (it.time, list(it.positions), list(it.velocities), list(it.accelerations)) for it in points
        ]
        self._port.send(number, named, rows, goal_time)
        report = self._wait(number, {"accepted", "rejected"}, timeout)
        if report.outcome == "rejected":
            raise RequestRefusedError(f"the trajectory was {report.words}")
        return Trajectory(self, number)

    def cancel(self) -> None:
        """Calls off whatever runs."""
        self._port.cancel(0)

    def close(self) -> None:
        """Closes the port for the next program; what runs goes on."""
        self._port.close()

    def _wait(self, number: int, outcomes: set[str], timeout: float | None) -> TrajectoryReport:
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            for place, report in enumerate(self._reports):
                if report.id == number and report.outcome in outcomes:
                    return self._reports.pop(place)
            left = None if end is None else max(0.0, end - time.monotonic())
            report_or_none = self._port.report(timeout=left)
            if report_or_none is None:
                raise TimeoutError(f"trajectory {number} was not {' or '.join(sorted(outcomes))} in that time")
            # Reports on others wait for whoever asks for them.
            self._reports.append(report_or_none)
            del self._reports[:-_KEPT]

    def __enter__(self) -> Trajectories:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _numbers(it: Tolerance) -> tuple[float, float, float, float]:
    return (it.path_position, it.path_velocity, it.goal_position, it.goal_velocity)


_KEPT = 100

