"""The native part: see the classes around it."""

from array import array
from os import PathLike
from types import TracebackType

__version__: str

class OnbeatError(Exception):
    """Anything that goes wrong between a program and a cycle."""

class NoCycleError(OnbeatError):
    """There is no such running cycle, or more than one."""

class CycleEndedError(OnbeatError):
    """The cycle has ended, or its process was killed."""

class LeaseError(OnbeatError):
    """Another process holds the lease of commands, or it was given back."""

class CommandError(OnbeatError):
    """A command that cannot be given."""

class PortError(OnbeatError):
    """A port that is not there, or is open already."""

class RequestRefusedError(OnbeatError):
    """The cycle refused a request or a trajectory."""

class Spread:
    """Last, smallest, largest and mean of a time."""

    @property
    def last_ns(self) -> int: ...
    @property
    def minimum_ns(self) -> int: ...
    @property
    def maximum_ns(self) -> int: ...
    @property
    def mean_ns(self) -> int: ...

class Bus:
    """The bus."""

    @property
    def phase(self) -> str:
        """``Op`` while it works."""
    @property
    def all_fresh(self) -> bool:
        """All inputs are of this cycle."""
    @property
    def working_counter_errors(self) -> int:
        """Datagrams of this cycle with another working counter than expected."""
    @property
    def absent(self) -> int:
        """SubDevices that are not on the bus, and need not be."""
    @property
    def frames_sent(self) -> int: ...
    @property
    def frames_accepted(self) -> int: ...
    @property
    def frames_lost(self) -> int: ...
    @property
    def frames_rejected(self) -> int: ...
    @property
    def broken_cycles(self) -> int:
        """Cycles with a wrong working counter since Op."""
    @property
    def clock_difference_ns(self) -> int:
        """Largest difference of a SubDevice's clock from the reference clock."""
    @property
    def link_errors(self) -> int:
        """Frames the operating system did not take or give."""

class Clock:
    """The reference clock of the bus, and the cycle against it; all zero on a bus without distributed clocks."""

    @property
    def lock(self) -> str:
        """Lock of the cycle to it: ``off`` where the cycle follows its own clock, ``searching``, ``locked``, ``lost``."""
    @property
    def fresh(self) -> bool:
        """A frame of this cycle had its time; else difference and frame phase are of an earlier one."""
    @property
    def difference_ns(self) -> int:
        """Its time less this host's, both since 2000-01-01."""
    @property
    def frame_phase_ns(self) -> int:
        """Time from the last SYNC0 without a shift to the passage of the cycle's frame."""
    @property
    def phase_error_ns(self) -> int:
        """Release against its place in its period, with a lock; positive is late."""
    @property
    def drift_ppb(self) -> int:
        """Its rate against this host's, with a lock."""
    @property
    def losses(self) -> int:
        """Times the lock was lost."""

class Timing:
    """The timing of the cycle since the first cycle in Op."""

    @property
    def cycles(self) -> int: ...
    @property
    def wakeup_latency(self) -> Spread: ...
    @property
    def period_jitter(self) -> Spread: ...
    @property
    def execution(self) -> Spread: ...
    @property
    def overruns(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    @property
    def last_overrun(self) -> int | None:
        """Cycle of the last overrun."""

class CommandState:
    """Outcome of commands."""

    @property
    def sequence(self) -> int:
        """Of the last command taken over."""
    @property
    def stamp_ns(self) -> int: ...
    @property
    def freshness(self) -> str:
        """``never``, ``fresh`` or ``stale``."""
    @property
    def accepted(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def last_refusal(self) -> str | None:
        """Why the last one was refused."""
    @property
    def last_refused_axis(self) -> int | None: ...
    @property
    def last_refused_signal(self) -> int | None:
        """Index in the description."""
    @property
    def clamped(self) -> int:
        """Commands of which a target was beyond a limit, and was clamped."""
    @property
    def last_clamp(self) -> str | None:
        """Limit of the last clamp."""
    @property
    def last_clamped_axis(self) -> int | None: ...

class Control:
    """Control of the axes."""

    @property
    def active(self) -> int:
        """Index of the active controller in the description; 65535 for none."""
    @property
    def enabled(self) -> bool: ...
    @property
    def trajectory(self) -> int: ...
    @property
    def trajectory_status(self) -> str:
        """``none``, ``executing``, ``succeeded``, ``aborted`` or ``canceled``."""
    @property
    def trajectory_elapsed_ns(self) -> int: ...

class Base:
    """A base that moves about, by its odometry."""

    @property
    def pose(self) -> tuple[float, float, float]:
        """x, y (m) and yaw (rad) since the start."""
    @property
    def twist(self) -> tuple[float, float, float]:
        """x, y (m/s) and yaw (rad/s) in its own frame."""

class Axis:
    """One axis."""

    @property
    def drive_state(self) -> str:
        """As CiA 402 spells it: ``Operation enabled``."""
    @property
    def phase(self) -> str:
        """``not enabled``, ``holding`` or ``following``."""
    @property
    def fresh(self) -> bool: ...
    @property
    def homed(self) -> bool: ...
    @property
    def stop(self) -> str | None:
        """Why supervision stopped it."""
    @property
    def stopped_with(self) -> str | None:
        """Name of the axis that it was stopped with."""
    @property
    def why(self) -> str | None:
        """Why supervision stopped it, with the cause: the interlock with its input and level, the error code, a stall."""
    @property
    def interlock(self) -> str | None:
        """Name of the interlock that stopped it, or keeps it from being enabled."""
    @property
    def mode(self) -> str | None:
        """Mode that its drive works in: ``csp``, ``csv``, ``cst``, ``ip``, ``pp``, ``pv``, ``tq``, ``hm``; None if unknown."""
    @property
    def position(self) -> float: ...
    @property
    def velocity(self) -> float: ...
    @property
    def effort(self) -> float: ...
    @property
    def target_position(self) -> float: ...
    @property
    def target_velocity(self) -> float: ...
    @property
    def target_effort(self) -> float: ...

class Signal:
    """One signal."""

    @property
    def value(self) -> bool | int | float: ...
    @property
    def fresh(self) -> bool:
        """An input came in with this cycle, an output was taken by its SubDevice."""
    @property
    def forced(self) -> bool:
        """It is forced to this value."""

class SignalCounters:
    """Values the controller set to outputs that could not be."""

    @property
    def clamped(self) -> int: ...
    @property
    def refused(self) -> int: ...

class State:
    """A cycle at the end of one cycle. ``numpy.asarray`` takes its arrays without a copy."""

    @property
    def cycle(self) -> int: ...
    @property
    def release_ns(self) -> int:
        """The cycle's ideal instant, CLOCK_MONOTONIC."""
    @property
    def bus(self) -> Bus: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def timing(self) -> Timing: ...
    @property
    def command(self) -> CommandState: ...
    @property
    def control(self) -> Control: ...
    @property
    def base(self) -> Base: ...
    @property
    def axes(self) -> list[Axis]: ...
    @property
    def signals(self) -> list[Signal]:
        """In the order of the description."""
    def signal(self, name: str) -> Signal:
        """The signal of this name; KeyError names those there are."""
    def elements(self, name: str) -> list[Signal]:
        """The elements of the signal of this name, in their order: the samples of a cycle, or the axes of a sensor."""
    @property
    def signal_counters(self) -> SignalCounters: ...
    @property
    def positions(self) -> array[float]: ...
    @property
    def velocities(self) -> array[float]: ...
    @property
    def efforts(self) -> array[float]: ...
    @property
    def target_positions(self) -> array[float]: ...
    @property
    def target_velocities(self) -> array[float]: ...
    @property
    def target_efforts(self) -> array[float]: ...

class Port:
    """An open port, a file of messages or bytes: one program's at a time. Leaving the ``with`` closes it."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str:
        """``message`` or ``stream``."""
    @property
    def size(self) -> int:
        """Longest message, or bytes that find room in the stream."""
    @property
    def closed(self) -> bool: ...
    def fileno(self) -> int:
        """Its descriptor, for ``select``, ``poll`` and event loops."""
    def write(self, data: bytes) -> int:
        """Writes a message, or bytes: waits until there is room."""
    def read(self, size: int | None = None, *, timeout: float | None = None) -> bytes | None:
        """Waits for a message, or for bytes; ``None`` when the time is over. A message is always read whole."""
    def close(self) -> None: ...
    def __enter__(self) -> Port: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

class Lease:
    def send(
        self,
        twist: tuple[float, float, float] | None,
        pose: tuple[tuple[float, float, float], tuple[float, float, float, float]] | None,
        axes: list[tuple[int, float] | None],
        signals: list[bool | int | float | None],
        ttl: float,
    ) -> int: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...

class ControllerRequest:
    @property
    def cycle(self) -> int: ...
    @property
    def release_ns(self) -> int: ...
    @property
    def deadline_ns(self) -> int: ...
    @property
    def period_ns(self) -> int: ...
    @property
    def periods(self) -> int: ...
    @property
    def stopping(self) -> bool: ...
    @property
    def axes(self) -> list[Axis]: ...
    def signal(self, name: str) -> Signal: ...
    @property
    def command(
        self,
    ) -> tuple[
        str,
        tuple[float, float, float] | None,
        tuple[tuple[float, float, float], tuple[float, float, float, float]] | None,
        list[tuple[int, float] | None],
    ]: ...

class ControllerRole:
    def wait(self, *, timeout: float | None = None) -> ControllerRequest: ...
    def answer(
        self,
        axes: list[tuple[int, bool, tuple[int, float] | None]],
        outputs: list[int | None],
        commanded: bool,
    ) -> bool: ...
    def close(self) -> None: ...

class ControlPort:
    def request(self, action: str, number: int = 0, *, timeout: float | None = None) -> list[str]: ...
    def close(self) -> None: ...

class TrajectoryReport:
    """Outcome of a trajectory."""

    @property
    def id(self) -> int: ...
    @property
    def outcome(self) -> str:
        """``accepted``, ``rejected``, ``succeeded``, ``aborted`` or ``canceled``."""
    @property
    def words(self) -> str:
        """All of it as a sentence."""
    @property
    def axis(self) -> int | None: ...
    @property
    def point(self) -> int | None: ...
    @property
    def found(self) -> float: ...
    @property
    def allowed(self) -> float: ...

class TrajectoryPort:
    def send(
        self,
        id: int,
        axes: list[tuple[int, tuple[float, float, float, float]]],
        points: list[tuple[float, list[float], list[float], list[float]]],
        goal_time: float | None = None,
    ) -> None: ...
    def cancel(self, id: int) -> None: ...
    def report(self, *, timeout: float | None = None) -> TrajectoryReport | None: ...
    def close(self) -> None: ...

class Cycle:
    @property
    def name(self) -> str: ...
    @property
    def process(self) -> int: ...
    @property
    def user(self) -> int: ...
    @property
    def path(self) -> str | PathLike[str]: ...
    @property
    def has_ended(self) -> bool: ...
    def description_json(self) -> str: ...
    def diagnostics_json(self) -> str | None: ...
    def state(self) -> State: ...
    def next_state(self, after: int | None = None, *, timeout: float | None = None) -> State: ...
    def lease(self) -> Lease: ...
    def force(self, signal: int, value: bool | int | float, time: float) -> None: ...
    def release(self, signal: int | None = None) -> None: ...
    def controller(self) -> ControllerRole: ...
    def open_bus(self) -> int: ...
    def open_port(self, name: str) -> Port: ...
    def open_control(self) -> ControlPort: ...
    def open_trajectories(self) -> TrajectoryPort: ...
    def close(self) -> None: ...

def attach(name: str | None = None, *, path: str | None = None) -> Cycle: ...
def cycles() -> list[Cycle]: ...
