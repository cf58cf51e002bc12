"""Reads and commands a running cycle of Onbeat.

    with onbeat.attach() as cycle:
        print(cycle.state().positions)
        with cycle.command() as command:
            command.send(twist=onbeat.Twist(x=0.2), ttl=0.1)

All numbers are SI (rad, m, N m, s) unless a name ends in ``_ns``: nanoseconds, instants of CLOCK_MONOTONIC.
Python is never in the loop: the cycle neither waits for a program that uses this nor notices it.
"""

from ._native import (
    Axis,
    Base,
    Bus,
    Clock,
    CommandError,
    CommandState,
    Control,
    CycleEndedError,
    LeaseError,
    NoCycleError,
    OnbeatError,
    Port,
    PortError,
    RequestRefusedError,
    Signal,
    SignalCounters,
    Spread,
    State,
    Timing,
    TrajectoryReport,
)
from .bus import (
    BusClient,
    BusError,
    BusStatus,
    ClockStatus,
    EntryDescription,
    Event,
    LatchEdge,
    LatchInput,
    MissedEvents,
    ObjectDescription,
    PortErrors,
    PortLink,
    SubDeviceErrors,
    SubDeviceStatus,
    WorkingCounter,
    WorkingCounterChange,
    WorkingCounterHistory,
)
from .command import Command, Effort, Pose, Position, Target, Twist, Velocity
from .controller import Commanded, Controller, Request
from .cycle import Cycle, attach, cycles
from .description import (
    AxisDescription,
    BaseDescription,
    ControllerDescription,
    Description,
    PortDescription,
    SignalDescription,
)
from .requests import Requests
from .trajectory import Point, Tolerance, Trajectories, Trajectory

__all__ = [
    "Axis",
    "AxisDescription",
    "Base",
    "BaseDescription",
    "Bus",
    "BusClient",
    "BusError",
    "BusStatus",
    "Clock",
    "ClockStatus",
    "Command",
    "CommandError",
    "CommandState",
    "Commanded",
    "Control",
    "Controller",
    "ControllerDescription",
    "Cycle",
    "CycleEndedError",
    "Description",
    "Effort",
    "EntryDescription",
    "Event",
    "LatchEdge",
    "LatchInput",
    "LeaseError",
    "MissedEvents",
    "NoCycleError",
    "ObjectDescription",
    "OnbeatError",
    "Point",
    "Port",
    "PortDescription",
    "PortError",
    "PortErrors",
    "PortLink",
    "Pose",
    "Position",
    "Request",
    "RequestRefusedError",
    "Requests",
    "Signal",
    "SignalCounters",
    "SignalDescription",
    "Spread",
    "State",
    "SubDeviceErrors",
    "SubDeviceStatus",
    "Target",
    "Timing",
    "Tolerance",
    "Trajectories",
    "Trajectory",
    "TrajectoryReport",
    "Twist",
    "Velocity",
    "WorkingCounter",
    "WorkingCounterChange",
    "WorkingCounterHistory",
    "attach",
    "cycles",
]
