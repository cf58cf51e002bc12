"""What a program reads of a running cycle."""

from __future__ import annotations

import array
import dataclasses
import importlib.metadata
import os
import threading
import time
from pathlib import Path

import pytest
from conftest import TIMEOUT, Start, within

import onbeat


def test_state_and_description_are_those_of_the_robot_file(start: Start) -> None:
    run = start("m4k.toml")
    description = run.cycle.description
    assert description.robot == "m4k"
    assert [axis.name for axis in description.axes] == ["left-wheel", "right-wheel"]
    assert description.axes[0].mode == "csv" and description.axes[0].velocity_limit == 25.0
    assert description.base is not None and description.base.kind == "differential"
    assert [controller.kind for controller in description.controllers] == ["diff_drive", "joint_velocity"]
    assert {"control", "trajectory"} <= {port.name for port in description.ports}
    assert description.axis("right-wheel") == 1
    with pytest.raises(KeyError, match="there are: left-wheel, right-wheel"):
        description.axis("tail")
    with pytest.raises(dataclasses.FrozenInstanceError):
        description.robot = "other"  # type: ignore[misc]

    state = run.until_enabled()
    assert state.bus.phase == "Op" and len(state.axes) == 2
    assert state.timing.wakeup_latency.maximum_ns >= state.timing.wakeup_latency.minimum_ns
    assert state.command.freshness == "never" and state.command.last_refusal is None
    assert run.cycle.process == run.process.pid
    assert run.cycle.user == os.geteuid()
    assert not run.cycle.has_ended
    with pytest.raises(AttributeError):
        state.cycle = 1  # type: ignore[misc]


def test_arrays_are_doubles_that_numpy_takes_without_a_copy(start: Start) -> None:
    numpy = pytest.importorskip("numpy")
    state = start("arm.toml").until_enabled()
    assert isinstance(state.positions, array.array) and state.positions.typecode == "d"
    assert list(state.positions) == [axis.position for axis in state.axes]
    assert list(state.target_positions) == [axis.target_position for axis in state.axes]
    positions = state.positions
    seen = numpy.asarray(positions)
    assert seen.dtype == numpy.float64 and seen.shape == (6,)
    positions[0] = 42.0
    assert seen[0] == 42.0, "the same memory"


def test_next_state_waits_for_a_later_cycle_and_lets_other_threads_run(start: Start) -> None:
    run = start("m4k.toml")
    first = run.cycle.next_state(timeout=TIMEOUT)
    assert run.cycle.next_state(first.cycle, timeout=TIMEOUT).cycle > first.cycle
    cycles = [state.cycle for _, state in zip(range(20), run.cycle.states(timeout=TIMEOUT))]
    assert cycles == sorted(set(cycles))

    counted = 0
    waiting = threading.Thread(
        target=lambda: pytest.raises(TimeoutError, run.cycle.next_state, 1 << 60, timeout=0.5)
    )
    waiting.start()
    while waiting.is_alive():
        counted += 1
    assert counted > 1000, "the lock of Python was held while waiting"


def test_diagnostics_name_the_cycle_and_its_ports(start: Start) -> None:
    run = start("m4k.toml")
    end = time.monotonic() + TIMEOUT
    while not run.cycle.diagnostics():
        assert time.monotonic() < end
        time.sleep(0.02)
    told = run.cycle.diagnostics()
    assert told["tasks"][0]["name"] == "cycle"
    assert {"control", "trajectory"} <= {port["name"] for port in told["ports"]}
    while all(it["links"] is None for it in told.get("bus_diagnosis", {}).get("sub_devices", [])):
        assert time.monotonic() < end
        time.sleep(0.1)
        told = run.cycle.diagnostics()
    first = told["bus_diagnosis"]["sub_devices"][0]
    assert first["position"] == 0 and first["name"] and first["processing_unit_errors"] == 0


def test_without_a_cycle_the_error_says_where_was_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(onbeat.NoCycleError, match=f"no cycle answers at {tmp_path}.*onbeat run"):
        onbeat.attach(path=tmp_path / "none.sock")
    monkeypatch.setenv("ONBEAT_IPC", str(tmp_path / "other.sock"))
    with pytest.raises(onbeat.NoCycleError, match="other.sock"):
        onbeat.attach()
    with pytest.raises(ValueError, match="expected one of them"):
        onbeat.attach("m4k", path=tmp_path / "none.sock")


def test_the_environment_may_name_the_socket(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start("m4k.toml")
    monkeypatch.setenv("ONBEAT_IPC", os.fspath(run.path))
    with onbeat.attach() as cycle:
        assert cycle.process == run.process.pid
    with pytest.raises(ValueError, match="closed"):
        cycle.state()


def test_a_killed_cycle_leaves_its_last_state_and_says_that_it_has_ended(start: Start) -> None:
    run = start("m4k.toml")
    cycle = run.until_enabled().cycle
    lease = run.cycle.command()
    requests = run.cycle.requests()
    waited: list[BaseException] = []

    def wait() -> None:
        try:
            run.cycle.next_state(1 << 60)
        except onbeat.OnbeatError as error:
            waited.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    run.kill()
    with within(10.0):
        waiting.join()
    assert isinstance(waited[0], onbeat.CycleEndedError)
    assert run.cycle.has_ended
    assert run.cycle.state().cycle >= cycle
    for broken in (
        lambda: lease.send(ttl=0.1, twist=onbeat.Twist()),
        lambda: requests.enable(timeout=TIMEOUT),
        lambda: run.cycle.command(),
        lambda: run.cycle.port("trajectory"),
    ):
        with pytest.raises(onbeat.CycleEndedError, match="ended"):
            broken()
    with pytest.raises(onbeat.NoCycleError, match="no cycle answers"):
        onbeat.attach(path=run.path)


def test_the_package_is_typed() -> None:
    folder = Path(onbeat.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_native.pyi").exists()
    stub = (folder / "_native.pyi").read_text()
    from onbeat import _native

    for name in dir(_native):
        if not name.startswith("_"):
            assert f"class {name}" in stub or f"def {name}" in stub, f"{name} has no types"
            for member in dir(getattr(_native, name)):
                if not member.startswith("_") and member not in dir(Exception):
                    assert f"def {member}" in stub, f"{name}.{member} has no types"


def test_the_package_knows_its_version_and_its_parts_have_words(start: Start) -> None:
    assert onbeat.__version__ == importlib.metadata.version("onbeat")
    state = start("m4k.toml").cycle.next_state(timeout=TIMEOUT)
    assert repr(state.command).startswith("CommandState(sequence=0, ")
    assert "last_refusal=None" in repr(state.command) and "Some" not in repr(state.timing)
    assert repr(state.bus).startswith(f"Bus(phase={state.bus.phase!r}, all_fresh=")
