"""The bus of a running cycle: objects, states, events. The cycle goes on meanwhile."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from . import _native
from .description import Description


class BusError(_native.OnbeatError):
    """The server, the cycle or the SubDevice refused a request."""

    def __init__(self, text: str, abort_code: int | None = None) -> None:
        super().__init__(text)
        self.abort_code = abort_code
        """SDO abort code, if the SubDevice ended the transfer."""


@dataclass(frozen=True)
class ObjectDescription:
    """An object of an object dictionary (ETG.1000.6, 5.6.3.5)."""

    index: int
    data_type: int
    """Index of its type: 0x0007 is an unsigned integer of 32 bits."""
    last_sub_index: int
    object_code: int
    """7 variable, 8 array, 9 record."""
    name: str


@dataclass(frozen=True)
class EntryDescription:
    """An entry of an object (ETG.1000.6, 5.6.3.6)."""

    index: int
    sub_index: int
    data_type: int
    bits: int
    access: int
    """Bits 0 to 2: read in PreOp, SafeOp, Op; 3 to 5: written; 6, 7: may be mapped to an RxPDO, a TxPDO."""
    name: str


@dataclass(frozen=True)
class WorkingCounter:
    """Working counter of a process data datagram."""

    expected: int
    received: int | None
    """None if the frame was lost."""


@dataclass(frozen=True)
class PortErrors:
    """Error counters of a port; each stays at 255."""

    invalid_frames: int
    """Invalid frame counter: frames with a wrong check sequence, or cut short."""
    rx_errors: int
    """RX error counter: symbols with an error."""
    forwarded_rx_errors: int
    """Forwarded RX error counter: frames that an ESC before had marked as invalid."""
    lost_links: int
    """Lost link counter."""


@dataclass(frozen=True)
class SubDeviceErrors:
    """Error counters of a SubDevice."""

    ports: tuple[PortErrors, ...]
    processing_unit_errors: int
    pdi_errors: int


@dataclass(frozen=True)
class PortLink:
    """Link of a port."""

    link: bool
    """There is a physical link."""
    loop_closed: bool
    """Frames turn back here."""
    communication: bool
    """Frames can come in."""


@dataclass(frozen=True)
class SyncStatus:
    """SYNC0 or SYNC1 of a SubDevice, and the cycle's frame against it."""

    cycle_ns: int
    """Time between two pulses."""
    shift_ns: int
    """Time from a multiple of that, in the time of the reference clock, to a pulse."""
    frame_phase_ns: int
    """Time from the last pulse to the passage of the newest frame at the SubDevice."""


@dataclass(frozen=True)
class SubDeviceStatus:
    """State of a SubDevice."""

    state: str
    """AL status: ``Op``, ``SafeOp + error``; ``absent``: not there, and need not be; ``no answer``."""
    al_status_code: int
    al_status_text: str
    exchanges: bool
    """Its process data came and went in the cycle."""
    missed: int
    """Cycles in a row without."""
    clock_difference_ns: int | None
    errors: SubDeviceErrors | None
    """Asked for by ``errors=True``; None if it did not answer."""
    links: tuple[PortLink, ...] | None
    """Of ports 0 to 3; the same."""
    receive_times_ns: tuple[int, ...] | None = None
    """Receive times of ports 0 to 3 by one frame, local, wrapping at 32 bits; asked for by ``receive_times=True``."""
    sync0: SyncStatus | None = None
    """Its SYNC0; None without, and while no frame has had the reference clock's time."""
    sync1: SyncStatus | None = None
    """The same of SYNC1."""
    waits: bool = False
    """It is there, and exchanges nothing while another of its group is absent."""
    delay_ns: int | None = None
    """Delay of its clock behind the reference clock, as it was measured at the bring-up or when it joined; None without a clock."""


@dataclass(frozen=True)
class WorkingCounterChange:
    """Working counters from one cycle on."""

    cycle: int
    short: int
    """Datagrams that are short from then on; 0: all are complete."""
    datagram: int
    """Place of the first of them among the datagrams of a cycle."""
    expected: int
    received: int | None
    """None if the frame was lost."""


@dataclass(frozen=True)
class WorkingCounterHistory:
    """Working counters since all first took part."""

    short_cycles: int
    """Cycles in which one was short."""
    short_since: int | None
    """Cycle since which one is short without a break; None while all are complete."""
    changes: tuple[WorkingCounterChange, ...]
    """Their last changes, oldest first."""


@dataclass(frozen=True)
class LatchEdge:
    """Edge of a latch input: the newest, or where single edges are held the first since the times were read before."""

    time_ns: int | None
    """In the time of the bus; None if there was none."""
    is_new: bool
    """It came since the times were read before."""


@dataclass(frozen=True)
class LatchInput:
    """Latch input of a SubDevice."""

    high: bool
    rising: LatchEdge
    falling: LatchEdge


@dataclass(frozen=True)
class ClockStatus:
    """Reference clock of a bus, and the cycle against it."""

    lock: str
    """Lock of the cycle to it: ``off``, ``searching``, ``locked``, ``lost``."""
    difference_ns: int
    """Its time less this host's, both since 2000-01-01."""
    frame_phase_ns: int
    """Time from the last SYNC0 without a shift to the passage of the cycle's frame."""
    phase_error_ns: int
    """Release against its place in its period, with a lock; positive is late."""
    drift_ppb: int
    outliers: int
    losses: int


@dataclass(frozen=True)
class BusStatus:
    """State of the bus in one cycle."""

    cycle: int
    phase: str
    frames_sent: int
    frames_answered: int
    frames_lost: int
    working_counters: tuple[WorkingCounter, ...]
    working_counter_history: WorkingCounterHistory
    reference_clock: int | None
    """Position of the SubDevice with the reference clock."""
    clock: ClockStatus | None
    """None where no frame has had its time."""
    sub_devices: tuple[SubDeviceStatus, ...]


@dataclass(frozen=True)
class Event:
    """An event of the running cycle."""

    cycle: int
    at_ns: int
    """CLOCK_MONOTONIC."""
    severity: str
    """``ok``, ``warning`` or ``error``."""
    sentence: str
    """The event in words, with the names of the robot's parts."""
    event: str
    """``state_changed``, ``emergency``, ``sub_device_lost``, ...: docs/bus.md lists them."""
    fields: dict[str, Any]
    """``position`` of a SubDevice, ``axis``, ``error_code``, ...; ``between``: both ends of a cable, docs/bus.md."""


@dataclass(frozen=True)
class MissedEvents:
    """Events that this program was too slow for."""

    count: int


class BusClient:
    """A connection to the bus of a running cycle. Leaving the ``with`` closes it.

    A SubDevice is named as in the description, or by its position from 0. BusError says why a request was refused;
    TimeoutError that it took longer than ``timeout`` seconds: what was asked goes on, and its answer is dropped.
    """

    def __init__(self, descriptor: int, description: Description) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._description = description
        self._received = b""
        self._last = 0

    def upload(
        self,
        sub_device: str | int,
        index: int,
        sub_index: int = 0,
        *,
        complete_access: bool = False,
        timeout: float | None = None,
    ) -> bytes:
        """Reads an object (SDO upload)."""
        asked = self._object("upload", sub_device, index, sub_index, complete_access=complete_access)
        return bytes.fromhex(self._call(asked, timeout)["data"])

    def download(
        self,
        sub_device: str | int,
        index: int,
        sub_index: int,
        data: bytes,
        *,
        complete_access: bool = False,
        force: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Writes an object (SDO download); ``force``: also one that the running cycle relies on, docs/bus.md lists them."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data is {data!r}, expected bytes: struct.pack makes them of numbers")
        asked = self._object("download", sub_device, index, sub_index, complete_access=complete_access)
        self._call({**asked, "data": bytes(data).hex(), "force": force}, timeout)

    def objects(self, sub_device: str | int, *, timeout: float | None = None) -> list[int]:
        """Indices of the object dictionary (SDO information)."""
        asked = {"service": "object_list", "position": self._position(sub_device)}
        data = bytes.fromhex(self._call(asked, timeout)["data"])
        # The first two bytes repeat the list type.
        return [index for (index,) in struct.iter_unpack("<H", data[2 : len(data) // 2 * 2])]

    def describe_object(
        self, sub_device: str | int, index: int, *, timeout: float | None = None
    ) -> ObjectDescription:
        """Description of an object (SDO information)."""
        asked = {"service": "describe_object", "position": self._position(sub_device), "index": _u16("index", index)}
        data = bytes.fromhex(self._call(asked, timeout)["data"])
        if len(data) < 6:
            raise BusError(f"the description of object 0x{index:04x} has {len(data)} bytes, expected 6 at least")
        found, data_type, last, code = struct.unpack_from("<HHBB", data)
        return ObjectDescription(found, data_type, last, code, _text(data[6:]))

    def describe_entry(
        self, sub_device: str | int, index: int, sub_index: int, *, timeout: float | None = None
    ) -> EntryDescription:
        """Description of an entry (SDO information)."""
        asked = self._object("describe_entry", sub_device, index, sub_index)
        data = bytes.fromhex(self._call(asked, timeout)["data"])
        if len(data) < 10:
            raise BusError(
                f"the description of entry 0x{index:04x}:{sub_index:02x} has {len(data)} bytes, expected 10 at least"
            )
        found, sub, _, data_type, bits, access = struct.unpack_from("<HBBHHH", data)
        return EntryDescription(found, sub, data_type, bits, access, _text(data[10:]))

    def status(
        self, *, errors: bool = False, receive_times: bool = False, timeout: float | None = None
    ) -> BusStatus:
        """AL states, working counters, clocks.

        With ``errors`` the error counters and links of all SubDevices are read first, with ``receive_times`` one frame latches
        their receive times. ``Cycle.diagnostics()["bus_diagnosis"]`` has what the cycle reads by itself, once a second.
        """
        asked = {"service": "status", "errors": errors, "receive_times": receive_times}
        it = self._call(asked, timeout)["status"]
        return BusStatus(
            cycle=it["cycle"],
            phase=it["phase"],
            frames_sent=it["frames_sent"],
            frames_answered=it["frames_answered"],
            frames_lost=it["frames_lost"],
            working_counters=tuple(WorkingCounter(wc["expected"], wc["received"]) for wc in it["working_counters"]),
            working_counter_history=_history(it["working_counter_history"]),
            reference_clock=it["reference_clock"],
            clock=ClockStatus(**it["clock"]) if it.get("clock") else None,
            sub_devices=tuple(_status(sub_device) for sub_device in it["sub_devices"]),
        )

    def latches(self, position: int, *, timeout: float | None = None) -> tuple[LatchInput, ...]:
        """Latch inputs 0 and 1 of a SubDevice; single edges are let go with it. For those who may command."""
        asked = {"service": "latches", "position": _u16("position", position)}
        return tuple(
            LatchInput(it["high"], LatchEdge(**it["rising"]), LatchEdge(**it["falling"]))
            for it in self._call(asked, timeout)["latches"]
        )

    def clear_errors(self, *, timeout: float | None = None) -> None:
        """Clears the error counters of all SubDevices."""
        self._call({"service": "clear_errors"}, timeout)

    def describe(self, *, timeout: float | None = None) -> list[dict[str, Any]]:
        """All SubDevices as they were found, in their states and places of now: as ``onbeat scan --json``."""
        found: list[dict[str, Any]] = self._call({"service": "describe"}, timeout)["sub_devices"]
        return found

    def events(self, *, follow: bool = True, timeout: float | None = None) -> Iterator[Event | MissedEvents]:
        """Events that were kept, oldest first, then with ``follow`` those to come, until the cycle ends.

        TimeoutError when none comes within ``timeout`` seconds. Requests wait meanwhile: use a connection of its own.
        """
        limit = _limit(timeout)
        asked = self._send({"service": "events", "follow": follow})
        while True:
            try:
                reply = self._receive(asked, limit())
            except _native.CycleEndedError:
                return
            if "event" in reply:
                it = dict(reply["event"])
                head = (it.pop("cycle"), it.pop("at_ns"), it.pop("severity"), it.pop("sentence"))
                yield Event(*head, it.pop("event"), it)
            elif "missed" in reply:
                yield MissedEvents(reply["missed"])
            else:
                return

    def close(self) -> None:
        """Closes the connection. What is under way ends by itself."""
        self._socket.close()

    def __enter__(self) -> BusClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _object(
        self, service: str, sub_device: str | int, index: int, sub_index: int, **more: bool
    ) -> dict[str, Any]:
        if not 0 <= sub_index <= 0xFF:
            raise ValueError(f"sub_index is {sub_index}, expected 0 to 255")
        place = {"position": self._position(sub_device), "index": _u16("index", index), "sub_index": sub_index}
        return {"service": service, **place, **more}

    def _position(self, sub_device: str | int) -> int:
        return _u16("position", sub_device) if isinstance(sub_device, int) else self._description.sub_device(sub_device)

    def _call(self, asked: dict[str, Any], timeout: float | None) -> dict[str, Any]:
        limit = _limit(timeout)
        return self._receive(self._send(asked), limit())

    def _send(self, asked: dict[str, Any]) -> int:
        self._last += 1
        line = json.dumps({"id": self._last, **asked}).encode() + b"\n"
        try:
            self._socket.settimeout(None)
            self._socket.sendall(line)
        except OSError as error:
            raise self._failed(error) from None
        return self._last

    def _receive(self, asked: int, end: float | None) -> dict[str, Any]:
        """The next reply to this request. Replies to requests that were given up are dropped."""
        while True:
            line, found, rest = self._received.partition(b"\n")
            if not found:
                self._received += self._read(end)
                continue
            self._received = rest
            reply: dict[str, Any] = json.loads(line)
            if "error" in reply and reply["id"] in (0, asked):
                raise BusError(reply["error"]["text"], reply["error"].get("abort_code"))
            if reply["id"] == asked:
                return reply

    def _read(self, end: float | None) -> bytes:
        try:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0.0:
                raise TimeoutError
            self._socket.settimeout(left)
            came = self._socket.recv(65536)
        except TimeoutError:
            raise TimeoutError("the bus has not answered in that time") from None
        except OSError as error:
            raise self._failed(error) from None
        if not came:
            raise self._failed(None)
        return came

    def _failed(self, error: OSError | None) -> Exception:
        if self._socket.fileno() < 0:
            return ValueError("this connection is closed: open it again")
        if error is None or isinstance(error, (BrokenPipeError, ConnectionResetError)):
            return _native.CycleEndedError("the cycle has ended: attach again once it runs")
        return error


def _limit(timeout: float | None) -> Callable[[], float | None]:
    """Function that gives the end of a wait that begins when it is called."""
    if timeout is not None and not 0.0 <= timeout < float("inf"):
        raise ValueError(f"timeout is {timeout}, expected a time in seconds, 0 or more")
    return lambda: None if timeout is None else time.monotonic() + timeout


def _u16(what: str, number: int) -> int:
    if not 0 <= number <= 0xFFFF:
        raise ValueError(f"{what} is {number}, expected 0 to 65535")
    return number


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode("utf-8", "replace")


def _status(it: dict[str, Any]) -> SubDeviceStatus:
    errors, links, times = it.get("errors"), it.get("links"), it.get("receive_times_ns")
    return SubDeviceStatus(
        state=it["state"],
        al_status_code=it["al_status_code"],
        al_status_text=it["al_status_text"],
        exchanges=it["exchanges"],
        missed=it["missed"],
        clock_difference_ns=it["clock_difference_ns"],
        errors=None
        if errors is None
        else SubDeviceErrors(
            ports=tuple(
                PortErrors(p["invalid_frames"], p["rx_errors"], p["forwarded_rx_errors"], p["lost_links"])
                for p in errors["ports"]
            ),
            processing_unit_errors=errors["processing_unit_errors"],
            pdi_errors=errors["pdi_errors"],
        ),
        links=None if links is None else tuple(PortLink(**link) for link in links),
        receive_times_ns=None if times is None else tuple(times),
        sync0=None if (sync0 := it.get("sync0")) is None else SyncStatus(**sync0),
        sync1=None if (sync1 := it.get("sync1")) is None else SyncStatus(**sync1),
        waits=it["waits"],
        delay_ns=it.get("delay_ns"),
    )


def _history(it: dict[str, Any]) -> WorkingCounterHistory:
    return WorkingCounterHistory(
        short_cycles=it["short_cycles"],
        short_since=it["short_since"],
        changes=tuple(WorkingCounterChange(**change) for change in it["changes"]),
    )
