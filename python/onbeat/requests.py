"""Requests to a cycle, made once: drives, faults, controllers, homing."""

from __future__ import annotations

from types import TracebackType

from . import _native
from .description import Description


class Requests:
    """The port of requests, open: one program's at a time. Leaving the ``with`` closes it.

    Each request waits until it is done: RequestRefusedError says why not, TimeoutError that it took longer than
    ``timeout`` seconds. ``enable`` and ``reset_faults`` fail if an axis is still stopped 1 s after them.
    """

    def __init__(self, port: _native.ControlPort, description: Description) -> None:
        self._port = port
        self._description = description

    def enable(self, *, timeout: float | None = None) -> list[str]:
        """All drives enabled.

        Returns a sentence on each axis that waits for another request, as for its homing.
        """
        return self._port.request("enable", timeout=timeout)

    def disable(self, *, timeout: float | None = None) -> None:
        """All axes brought to rest, then all drives disabled."""
        self._port.request("disable", timeout=timeout)

    def reset_faults(self, *, timeout: float | None = None) -> list[str]:
        """Faults of drives and stops by supervision put back.

        Returns a sentence on each axis with a drive that did not carry out a quick stop: the step that stopped it. And a
        sentence on each axis that waits for another request, as for the start of its drive.
        """
        return self._port.request("reset_faults", timeout=timeout)

    def switch_controller(self, controller: str | int, *, timeout: float | None = None) -> None:
        """Another controller, by name or index."""
        if isinstance(controller, str):
            controller = self._description.controller(controller)
        self._port.request("switch_controller", controller, timeout=timeout)

    def home(self, axis: str | int, *, timeout: float | None = None) -> None:
        """An axis, by name or index, finds its absolute position."""
        if isinstance(axis, str):
            axis = self._description.axis(axis)
        self._port.request("home", axis, timeout=timeout)

    def stop(self, *, timeout: float | None = None) -> None:
        """The axes brought to rest, and what they were doing dropped; drives stay enabled."""
        self._port.request("stop", timeout=timeout)

    def deactivate(self, *, timeout: float | None = None) -> None:
        """The axes brought to rest and held with no controller, whatever is commanded, until one is switched to."""
        self._port.request("deactivate", timeout=timeout)

    def close(self) -> None:
        """Closes the port for the next program."""
        self._port.close()

    def __enter__(self) -> Requests:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
