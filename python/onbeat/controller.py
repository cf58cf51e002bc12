"""A controller in a process of its own, for cycles of some milliseconds: Python is no real-time language."""

from __future__ import annotations

import math
import os
import struct
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

from . import _native
from .command import Effort, Pose, Position, Target, Twist, Value, Velocity
from .description import Description

_DRIVES = {"disable": 1, "enable": 2, "quick_stop": 3, "halt": 4, "fault_reset": 5}

_MODES: dict[str, tuple[type[object], int]] = {
    **dict.fromkeys(("csp", "ip", "pp"), (Position, 1)),
    **dict.fromkeys(("csv", "pv"), (Velocity, 2)),
    **dict.fromkeys(("cst", "tq"), (Effort, 3)),
}


@dataclass(frozen=True)
class Commanded:
    """Command from outside, as the cycle took it."""

    freshness: str
    """``never``, ``fresh`` or ``stale``: only a fresh one is to move anything."""
    twist: Twist | None
    pose: Pose | None
    axes: tuple[Target | None, ...]


class Request:
    """Inputs of one cycle."""

    def __init__(self, native: _native.ControllerRequest) -> None:
        self._native = native

    @property
    def cycle(self) -> int:
        """Number of the cycle."""
        return self._native.cycle

    @property
    def release_ns(self) -> int:
        """Its release, CLOCK_MONOTONIC."""
        return self._native.release_ns

    @property
    def deadline_ns(self) -> int:
        """Deadline of the answer, CLOCK_MONOTONIC."""
        return self._native.deadline_ns

    @property
    def elapsed(self) -> float:
        """Time since the cycle before, s: a period, or more after an overrun."""
        return self._native.period_ns * self._native.periods * 1e-9

    @property
    def stopping(self) -> bool:
        """The cycle comes to its end: bring the axes to rest."""
        return self._native.stopping

    @property
    def axes(self) -> list[_native.Axis]:
        """Axes, in the order of the description. While ``phase`` is not ``following``, set-points begin at ``target_position``;
        ``stop`` says why supervision stopped an axis."""
        return self._native.axes

    def signal(self, name: str) -> _native.Signal:
        """The signal of this name; KeyError names those there are."""
        return self._native.signal(name)

    @property
    def command(self) -> Commanded:
        """Command from outside."""
        freshness, twist, pose, axes = self._native.command
        return Commanded(
            freshness,
            None if twist is None else Twist(*twist),
            None if pose is None else Pose(*pose),
            tuple(None if it is None else (Position, Velocity, Effort)[it[0]](it[1]) for it in axes),
        )


def schedule(priority: int | None, cpu: int | None) -> None:
    """Gives the calling thread this priority and CPU; what is None stays."""
    if cpu is not None:
        try:
            os.sched_setaffinity(0, {cpu})
        except (OSError, ValueError) as error:
            remedy = "name a CPU that is online and that this process may use"
            raise OSError(f"the CPU {cpu} of the controller process was refused ({error}): {remedy}") from error
    if priority is not None:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        except OSError as error:
            remedy = "use 1 to 99, and grant CAP_SYS_NICE or raise its limit (ulimit -r)"
            raise OSError(
                f"the priority {priority} of the controller process was refused ({error}): {remedy}"
            ) from error


class Controller:
    """The role of the controller of a cycle: one program's at a time. Leaving the ``with`` gives it back, and the axes are
    stopped as the robot file says.

        for request in controller:
            controller.answer(drives="enable", axes={"axis-1": Position(0.1)})
    """

    def __init__(self, role: _native.ControllerRole, description: Description) -> None:
        self._role = role
        self._description = description
        self._moves = [
            axis for it in description.controllers if it.kind == "external" for axis in it.axes
        ]
        self._last: int | None = None
        self._has_warned = False
        self.answered = 0
        """Answers sent."""
        self.late = 0
        """Answers sent after their deadline: taken in the next cycle."""
        self.missed = 0
        """Cycles that passed unanswered between two requests."""

    def wait(self, timeout: float | None = None) -> Request:
        """Waits until the cycle asks. CycleEndedError; TimeoutError: nothing was asked, another controller is active."""
        found = self._role.wait(timeout=timeout)
        if self._last is not None:
            self.missed += max(0, found.cycle - found.periods - self._last)
        self._last = found.cycle
        return Request(found)

    def __iter__(self) -> Iterator[Request]:
        """Requests, until the cycle ends. One that is not answered counts as late."""
        while True:
            try:
                yield self.wait()
            except _native.CycleEndedError:
                return

    def answer(
        self,
        *,
        axes: Mapping[str, Target] | Sequence[Target | None] | None = None,
        drives: str | Mapping[str, str] | None = None,
        home: Sequence[str] = (),
        outputs: Mapping[str, Value] | None = None,
        commanded: bool = False,
    ) -> bool:
        """Answers the request that was waited for last; true if it was in time.

        What is left open stays as it was. ``axes``: set-points, each of the kind of its axis's mode. ``drives``: ``"enable"``,
        ``"disable"``, ``"quick_stop"``, ``"halt"`` or ``"fault_reset"``, for all or by axis. ``home``: axes that shall home.
        ``outputs``: values of outputs that the controller writes. ``commanded``: it lives on the command from outside.
        CommandError: an answer that cannot be; nothing was sent.
        """
        targets = self._targets(axes)
        requests = self._requests(drives)
        homes = [False] * len(targets)
        for name in home:
            homes[self._own(self._description.axis(name))] = True
        rows = list(zip(requests, homes, targets))
        in_time = self._role.answer(rows, self._outputs(outputs or {}), commanded)
        self.answered += 1
        self.late += not in_time
        return in_time

    def _targets(
        self, axes: Mapping[str, Target] | Sequence[Target | None] | None
    ) -> list[tuple[int, float] | None]:
        count = len(self._description.axes)
        listed: list[Target | None] = [None] * count
        if isinstance(axes, Mapping):
            for name, target in axes.items():
                listed[self._description.axis(name)] = target
        elif axes is not None:
            if len(axes) != count:
                raise _native.CommandError(f"the answer is for {len(axes)} axes, the robot has {count}")
            listed = list(axes)
        return [None if target is None else self._target(axis, target) for axis, target in enumerate(listed)]

    def _target(self, axis: int, target: Target) -> tuple[int, float]:
        described = self._description.axes[self._own(axis)]
        kind, code = _MODES[described.mode]
        if not isinstance(target, (Position, Velocity, Effort)):
            raise TypeError(f"a target is {target!r}, expected a Position, a Velocity or an Effort")
        if not isinstance(target, kind):
            raise _native.CommandError(
                f'axis "{described.name}" is in mode {described.mode}: expected {kind.__name__}, found {target!r}'
            )
        if not math.isfinite(target.value):
            raise _native.CommandError(f'axis "{described.name}": expected a finite number, found {target!r}')
        return code, target.value

    def _requests(self, drives: str | Mapping[str, str] | None) -> list[int]:
        codes = [0] * len(self._description.axes)
        if isinstance(drives, str):
            for axis in self._moves:
                codes[axis] = _drive(drives)
        elif drives is not None:
            for name, request in drives.items():
                codes[self._own(self._description.axis(name))] = _drive(request)
        return codes

    def _own(self, axis: int) -> int:
        if axis not in self._moves:
            name = self._description.axes[axis].name
            raise _native.CommandError(f'axis "{name}" is another controller\'s, this one does not move it')
        return axis

    def _outputs(self, outputs: Mapping[str, Value]) -> list[int | None]:
        words: list[int | None] = [None] * len(self._description.signals)
        for name, value in outputs.items():
            place = self._description.signal(name)
            signal = self._description.signals[place]
            if signal.writer != "controller":
                found = "is an input" if signal.writer is None else f"is written by {signal.writer}"
                raise _native.CommandError(f'signal "{name}" {found}, expected an output of the controller')
            words[place] = _word(name, signal.kind, value)
        return words

    def close(self) -> None:
        """Gives the role back. RuntimeWarning: answers were late, and the calling thread has no real-time priority."""
        self._role.close()
        is_ordinary = os.sched_getscheduler(0) not in (os.SCHED_FIFO, os.SCHED_RR)
        if is_ordinary and self.late + self.missed > 0 and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{self.late} of {self.answered} answers were late, and {self.missed} cycles passed unanswered: this thread "
                "has no real-time priority; set one below the cycle's, and another CPU: "
                "cycle.controller(priority=70, cpu=1)",
                RuntimeWarning,
                stacklevel=2,
            )

    def __enter__(self) -> Controller:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _drive(request: str) -> int:
    code = _DRIVES.get(request)
    if code is None:
        raise ValueError(f"request to a drive is {request!r}, expected one of {', '.join(_DRIVES)}")
    return code


def _word(name: str, kind: str, value: Value) -> int:
    """A value as its kind says. The cycle takes the nearest within the range."""
    if kind == "bool":
        if isinstance(value, bool):
            return int(value)
        raise _native.CommandError(f'signal "{name}": expected true or false, found {value!r}')
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _native.CommandError(f'signal "{name}": expected a finite number, found {value!r}')
    if kind == "real":
        (word,) = struct.unpack("=Q", struct.pack("=d", value))
        return int(word)
    lowest, highest = (-(1 << 63), (1 << 63) - 1) if kind == "signed" else (0, (1 << 64) - 1)
    return min(max(round(value), lowest), highest) & 0xFFFF_FFFF_FFFF_FFFF
