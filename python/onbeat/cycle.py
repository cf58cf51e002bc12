"""A running cycle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from . import _native
from .bus import BusClient
from .command import Command
from .controller import Controller, schedule
from .description import Description, parse
from .requests import Requests
from .trajectory import Trajectories


def attach(name: str | None = None, *, path: str | os.PathLike[str] | None = None) -> Cycle:
    """Attaches to the one running cycle, the one of this name, or the one at this socket.

    Without either, the environment variable ``ONBEAT_IPC`` may name the socket. NoCycleError says where was looked.
    """
    return Cycle(_native.attach(name, path=None if path is None else os.fspath(path)))


def cycles() -> list[Cycle]:
    """All running cycles."""
    return [Cycle(it) for it in _native.cycles()]


class Cycle:
    """A running cycle, attached to. Reading its state takes no help from its process, and cannot be noticed by it."""

    def __init__(self, native: _native.Cycle) -> None:
        self._native = native
        self.description: Description = parse(native.description_json())
        """Description of the robot."""

    @property
    def name(self) -> str:
        """Its name: the robot's, unless another was given."""
        return self._native.name

    @property
    def process(self) -> int:
        """Number of the process that runs it."""
        return self._native.process

    @property
    def user(self) -> int:
        """Number of the user who runs it."""
        return self._native.user

    @property
    def path(self) -> str:
        """Its socket."""
        return os.fspath(self._native.path)

    @property
    def has_ended(self) -> bool:
        """True if its process is gone, or has closed its shared-memory interface. The last state stays readable."""
        return self._native.has_ended

    def state(self) -> _native.State:
        """The newest state; after the end the last one."""
        return self._native.state()

    def next_state(self, after: int | None = None, *, timeout: float | None = None) -> _native.State:
        """Waits for a state of a later cycle than ``after``, or than now. CycleEndedError, TimeoutError."""
        return self._native.next_state(after, timeout=timeout)

    def states(self, *, timeout: float | None = None) -> Iterator[_native.State]:
        """The newest state whenever there is one, until the cycle ends. A slow program misses cycles, never the newest.

        TimeoutError when no new cycle comes within ``timeout`` seconds.
        """
        cycle: int | None = None
        while True:
            try:
                state = self.next_state(cycle, timeout=timeout)
            except _native.CycleEndedError:
                return
            cycle = state.cycle
            yield state

    def diagnostics(self) -> dict[str, Any]:
        """Diagnostics of the run, some five times a second: tasks, channels, warnings. Empty before the first."""
        document = self._native.diagnostics_json()
        found: dict[str, Any] = {} if document is None else json.loads(document)
        return found

    def command(self) -> Command:
        """Takes the lease of commands; LeaseError says who has it."""
        return Command(self._native.lease(), self._native, self.description)

    def force(self, signal: str, value: bool | int | float, *, time: float) -> None:
        """Holds an input or an output at a value, over all other writers, for ``time`` seconds or until it is released.

        Needs no lease, and goes on without this program. CommandError says why not.
        """
        self._native.force(self.description.signal(signal), value, time)

    def release(self, signal: str | None = None) -> None:
        """Releases a forced signal, or all."""
        self._native.release(None if signal is None else self.description.signal(signal))

    def controller(self, *, priority: int | None = None, cpu: int | None = None) -> Controller:
        """Becomes the controller of the cycle, if the robot file leaves that to a process; LeaseError says why not.

        ``priority``: SCHED_FIFO priority of the calling thread, below the cycle's.
        ``cpu``: CPU that the thread is bound to. By default its scheduling stays.
        OSError: one of them is refused, and nothing has changed in the cycle.
        """
        schedule(priority, cpu)
        return Controller(self._native.controller(), self.description)

    def bus(self) -> BusClient:
        """Opens a connection to the bus: objects, AL states, working counters, error counters, events."""
        return BusClient(self._native.open_bus(), self.description)

    def port(self, name: str) -> _native.Port:
        """Opens a port; PortError says who has it open, or which there are."""
        return self._native.open_port(name)

    def requests(self) -> Requests:
        """Opens the port of requests: enable, disable, switch controllers, home."""
        return Requests(self._native.open_control(), self.description)

    def trajectories(self) -> Trajectories:
        """Opens the port of trajectories."""
        return Trajectories(self._native.open_trajectories(), self.description)

    def close(self) -> None:
        """Lets go of it. What was taken from it - lease, ports - goes on."""
        self._native.close()

    def __enter__(self) -> Cycle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Cycle {self.description.robot}, {len(self.description.axes)} axes>"
