"""Commands to a cycle."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Union

from . import _native
from .description import Description


@dataclass(frozen=True)
class Twist:
    """Velocity of a base in its own frame: x ahead, y to the left (m/s), yaw counter-clockwise (rad/s)."""

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0


@dataclass(frozen=True)
class Pose:
    """Where an arm's tool shall be, in the frame of its base link: x, y, z in m, and a unit quaternion x, y, z, w."""

    position: tuple[float, float, float]
    orientation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Position:
    """An axis shall go to this position, rad (m for a linear axis)."""

    value: float


@dataclass(frozen=True)
class Velocity:
    """An axis shall move at this velocity, rad/s."""

    value: float


@dataclass(frozen=True)
class Effort:
    """An axis shall push with this torque, N m."""

    value: float


Target = Union[Position, Velocity, Effort]

Value = Union[bool, int, float]

_KINDS: dict[type[object], int] = {Position: 0, Velocity: 1, Effort: 2}


class CommandWarning(RuntimeWarning):
    """The cycle has refused a command that nobody waited for."""


class Command:
    """The lease of a cycle's commands: one program's at a time. Leaving the ``with`` gives it back."""

    def __init__(self, lease: _native.Lease, cycle: _native.Cycle, description: Description) -> None:
        self._lease = lease
        self._cycle = cycle
        self._description = description
        self._refused: int | None = None

    def send(
        self,
        *,
        ttl: float,
        twist: Twist | None = None,
        pose: Pose | None = None,
        axes: Mapping[str, Target] | Sequence[Target | None] | None = None,
        signals: Mapping[str, Value] | None = None,
        timeout: float | None = None,
    ) -> int:
        """Gives a command in place of the one before, and returns its sequence number.

        With ``timeout`` it waits, s, until the cycle has taken the command, and raises CommandError with the reason if the cycle
        refuses it, TimeoutError if it does neither. Without, it does not wait: ``state().command`` shows it, and the next ``send`` gives a
        CommandWarning with the reason.

        ``ttl`` is how long it holds, s: when it is over the axes stop as the robot file says. ``pose`` is where an arm's tool shall go on
        a straight line. ``axes`` names targets by
        axis, or lists one for each in the description's order; ``None`` asks nothing of an axis. ``signals`` gives values to
        outputs that the robot file lets be commanded from outside (``writer = "outside"``); the others stay as they are.
        Numbers that are not finite are a ValueError. The cycle refuses what no axis, base or output can follow; its controller clamps
        what is beyond a limit. Both are counted in ``state().command``.
        """
        targets, values = self._targets(axes), self._values(signals or {})
        _finite("twist", () if twist is None else (twist.x, twist.y, twist.yaw))
        _finite("pose", () if pose is None else (*pose.position, *pose.orientation))
        _finite("axes", (target[1] for target in targets if target is not None))
        _finite("signals", (value for value in values if value is not None))
        refused = self._told_refusals()
        sequence = self._lease.send(
            None if twist is None else (twist.x, twist.y, twist.yaw),
            None if pose is None else (pose.position, pose.orientation),
            targets,
            values,
            ttl,
        )
        if timeout is not None:
            self._await(sequence, refused, timeout)
        return sequence

    def _told_refusals(self) -> int:
        """Commands refused so far; those since the last look, which nobody waited for, are warned of."""
        try:
            command = self._cycle.state().command
        except _native.OnbeatError:  # no cycle yet, or the end: the lease tells
            return self._refused or 0
        if self._refused is not None and command.refused > self._refused:
            warnings.warn(f"the cycle refused a command before this one: {self._refusal(command)}", CommandWarning, stacklevel=3)
        self._refused = command.refused
        return command.refused

    def _await(self, sequence: int, refused: int, timeout: float) -> None:
        """Waits until the cycle has taken a command, of which it had refused so many before."""
        end = time.monotonic() + timeout
        state = self._cycle.state()
        while True:
            if state.command.refused > refused:
                self._refused = state.command.refused
                raise _native.CommandError(f"the cycle refused it: {self._refusal(state.command)}")
            if state.command.sequence >= sequence:
                return
            state = self._cycle.next_state(state.cycle, timeout=max(0.0, end - time.monotonic()))

    def _refusal(self, command: _native.CommandState) -> str:
        why = command.last_refusal or "no reason is known"
        if command.last_refused_axis is not None:
            return f'axis "{self._description.axes[command.last_refused_axis].name}": {why}'
        if command.last_refused_signal is not None:
            return f'signal "{self._description.signals[command.last_refused_signal].name}": {why}'
        return why

    def _values(self, signals: Mapping[str, Value]) -> list[Value | None]:
        commanded = [it.name for it in self._description.signals if it.writer == "outside"]
        values: list[Value | None] = [None] * len(commanded)
        for name, value in signals.items():
            writer = self._description.signals[self._description.signal(name)].writer
            if writer != "outside":
                found = "is an input" if writer is None else f"is written by {writer}"
                raise _native.CommandError(f'signal "{name}" {found}, expected an output with writer = "outside"')
            values[commanded.index(name)] = value
        return values

    def _targets(
        self, axes: Mapping[str, Target] | Sequence[Target | None] | None
    ) -> list[tuple[int, float] | None]:
        if axes is None:
            return []
        if isinstance(axes, Mapping):
            listed: list[Target | None] = [None] * len(self._description.axes)
            for name, target in axes.items():
                listed[self._description.axis(name)] = target
            axes = listed
        return [None if target is None else _pair(target) for target in axes]

    @property
    def closed(self) -> bool:
        """True if the lease was given back."""
        return self._lease.closed

    def close(self) -> None:
        """Gives the lease back. The last command holds until its time-to-live is over."""
        self._lease.close()

    def __enter__(self) -> Command:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _finite(what: str, numbers: Iterable[float]) -> None:
    for number in numbers:
        if not math.isfinite(number):
            raise ValueError(f"{what}: found {number}, expected finite numbers")


def _pair(target: Target) -> tuple[int, float]:
    kind = _KINDS.get(type(target))
    if kind is None:
        raise TypeError(f"a target is {target!r}, expected a Position, a Velocity or an Effort")
    return kind, target.value
