"""Description of a running cycle: written once, before the first cycle."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AxisDescription:
    """One axis."""

    name: str
    mode: str
    """``csp``, ``csv``, ``cst``, ``ip``, ``pp``, ``pv`` or ``tq``."""
    position_limits: tuple[float, float] | None
    """rad; none for an axis that turns for ever."""
    velocity_limit: float
    """rad/s either way."""
    effort_limit: float
    """N m either way, at the axis."""
    measures_effort: bool = True
    """The drive tells its torque in its process data; else the effort in a state is 0."""


@dataclass(frozen=True)
class SignalDescription:
    """Process data by name."""

    name: str
    sub_device: str
    direction: str
    """``input`` or ``output``."""
    type: str
    """Of its entry: ``bool``, ``uint16``, ``int12``, ``float``, ``double``."""
    kind: str
    """Of its value: ``bool``, ``unsigned``, ``signed`` or ``real``."""
    unit: str
    range: tuple[float, float] | None
    writer: str | None
    """Of an output: ``controller``, ``outside`` (it can be commanded), or a part of the robot."""


@dataclass(frozen=True)
class ControllerDescription:
    """One controller."""

    name: str
    kind: str
    """``joint_trajectory``, ``diff_drive``, ... as in the robot file."""
    axes: tuple[int, ...]
    """Indices of the axes it moves."""


@dataclass(frozen=True)
class BaseDescription:
    """A base that moves about."""

    kind: str
    """``differential``, ``mecanum`` or ``omni``."""
    velocity_limit: float
    """m/s."""
    yaw_limit: float
    """rad/s."""
    odometry_frame: str
    base_frame: str


@dataclass(frozen=True)
class PortDescription:
    """One port of a datagram channel."""

    name: str
    kind: str
    """``message`` or ``stream``."""
    size: int
    """Longest message, or bytes that find room in the stream."""
    depth: int
    """Messages that find room each way; 0 for a stream."""


@dataclass(frozen=True)
class Description:
    """A cycle and its robot."""

    version: str
    robot: str
    period_ns: int
    axes: tuple[AxisDescription, ...]
    controllers: tuple[ControllerDescription, ...]
    """The first one is active at the start."""
    base: BaseDescription | None
    urdf: str | None
    """Text of its arm's URDF."""
    sub_devices: tuple[str, ...]
    signals: tuple[SignalDescription, ...]
    ports: tuple[PortDescription, ...]

    def axis(self, name: str) -> int:
        """The index of the axis of this name; KeyError names those there are."""
        for index, axis in enumerate(self.axes):
            if axis.name == name:
                return index
        raise KeyError(_none("axis", name, [axis.name for axis in self.axes]))

    def signal(self, name: str) -> int:
        """The index of the signal of this name; KeyError names those there are."""
        for index, signal in enumerate(self.signals):
            if signal.name == name:
                return index
        raise KeyError(_none("signal", name, [it.name for it in self.signals]))

    def sub_device(self, name: str) -> int:
        """The position of the SubDevice of this name; KeyError names those there are."""
        if name in self.sub_devices:
            return self.sub_devices.index(name)
        raise KeyError(_none("SubDevice", name, list(self.sub_devices)))

    def controller(self, name: str) -> int:
        """The index of the controller of this name; KeyError names those there are."""
        for index, controller in enumerate(self.controllers):
            if controller.name == name:
                return index
        raise KeyError(_none("controller", name, [it.name for it in self.controllers]))


def parse(document: str) -> Description:
    """The description in a JSON document."""
    it: dict[str, Any] = json.loads(document)
    base = it["base"]
    return Description(
        version=it["version"],
        robot=it["robot"],
        period_ns=it["period_ns"],
        axes=tuple(_axis(axis) for axis in it["axes"]),
        controllers=tuple(
            ControllerDescription(c["name"], c["kind"], tuple(c["axes"])) for c in it["controllers"]
        ),
        base=None if base is None else BaseDescription(**_known(BaseDescription, base)),
        urdf=it["urdf"],
        sub_devices=tuple(it["sub_devices"]),
        signals=tuple(_signal(signal) for signal in it["signals"]),
        ports=tuple(PortDescription(**_known(PortDescription, port)) for port in it["ports"]),
    )


def _axis(it: dict[str, Any]) -> AxisDescription:
    limits = it["position_limits"]
    known = _known(AxisDescription, it)
    known["position_limits"] = None if limits is None else (limits[0], limits[1])
    return AxisDescription(**known)


def _signal(it: dict[str, Any]) -> SignalDescription:
    known = _known(SignalDescription, it)
    known["range"] = None if it["range"] is None else (it["range"][0], it["range"][1])
    return SignalDescription(**known)


def _known(kind: Any, it: dict[str, Any]) -> dict[str, Any]:
    """Without what a newer cycle tells besides, and what an older one does not."""
    return {name: it[name] for name in kind.__dataclass_fields__ if name in it}


def _none(what: str, name: str, known: list[str]) -> str:
    return f"there is no {what} {name!r}; there are: {', '.join(known) or 'none'}"
