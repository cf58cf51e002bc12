"""Process data by name: read, commanded, forced."""

from __future__ import annotations

import math
import time

import pytest
from conftest import TIMEOUT, Run, Start

import onbeat


def shows(run: Run, name: str, value: bool | float, *, forced: bool = False) -> onbeat.State:
    """The first state in which a signal has this value."""

    def so(state: onbeat.State) -> bool:
        signal = state.signal(name)
        return (signal.value, signal.forced) == (value, forced)

    return run.until(so)


def test_signals_are_read_by_name_with_their_types(start: Start) -> None:
    run = start("io-station.toml")
    description = run.cycle.description
    lamp = description.signals[description.signal("lamp red")]
    assert (lamp.direction, lamp.type, lamp.kind, lamp.writer) == ("output", "bool", "bool", "outside")
    level = description.signals[description.signal("tank level")]
    assert (level.direction, level.type, level.kind, level.unit, level.writer) == ("input", "int16", "real", "%", None)
    state = shows(run, "lamp green", True)
    assert len(state.signals) == len(description.signals)
    assert isinstance(state.signal("tank level").value, float)
    assert isinstance(state.signal("spindle.statusword").value, int)
    assert (state.signal_counters.clamped, state.signal_counters.refused) == (0, 0)
    run.until(lambda state: state.signal("door closed").fresh)
    with pytest.raises(KeyError, match="there is no signal 'lamp rod'; there are: lamp green"):
        state.signal("lamp rod")


def test_samples_of_a_cycle_are_read_by_one_name(start: Start) -> None:
    """An array of samples is the list of its elements; a signal of one value is a list of one."""
    run = start("vibration.toml")
    state = run.until(lambda state: state.signal("block").fresh and state.signal("block").value != 0)
    samples = [it.value for it in state.elements("vibration")]
    assert samples == [state.signal(f"vibration[{number}]").value for number in range(10)]
    assert len(set(samples)) > 1
    assert [it.value for it in state.elements("block")] == [state.signal("block").value]
    with pytest.raises(KeyError, match="there is no signal 'vibrations'; there are: shaker"):
        state.elements("vibrations")


def test_an_output_is_commanded_as_long_as_the_command_holds(start: Start) -> None:
    run = start("io-station.toml")
    shows(run, "lamp red", False)
    with run.cycle.command() as command:
        end = time.monotonic() + TIMEOUT
        while run.cycle.next_state(timeout=TIMEOUT).signal("lamp red").value is not True:
            command.send(signals={"lamp red": True}, ttl=0.5)
            assert time.monotonic() < end
        with pytest.raises(onbeat.CommandError, match='"lamp green" is written by controller'):
            command.send(signals={"lamp green": False}, ttl=0.5)
        with pytest.raises(onbeat.CommandError, match='"door closed" is an input'):
            command.send(signals={"door closed": False}, ttl=0.5)
        with pytest.raises(KeyError, match="there is no signal"):
            command.send(signals={"lamp rod": False}, ttl=0.5)
        command.send(signals={"lamp red": 7}, ttl=0.5)
        refused = run.until(lambda state: state.command.refused > 0)
        assert refused.command.last_refusal is not None and "another kind" in refused.command.last_refusal
        assert refused.command.last_refused_signal == run.cycle.description.signal("lamp red")
    # Dark again when nobody asks for it any more.
    shows(run, "lamp red", False)


def test_a_signal_is_forced_until_it_is_released_or_its_time_is_over(start: Start) -> None:
    run = start("io-station.toml")
    shows(run, "lamp green", True)
    run.cycle.force("lamp green", False, time=60.0)
    shows(run, "lamp green", False, forced=True)
    run.cycle.force("tank level", 12.5, time=60.0)
    forced = run.until(lambda state: state.signal("tank level").forced)
    value = forced.signal("tank level").value
    assert isinstance(value, float) and abs(value - 12.5) < 0.01
    run.cycle.release("lamp green")
    assert shows(run, "lamp green", True).signal("tank level").forced
    run.cycle.release()
    run.until(lambda state: not state.signal("tank level").forced)
    run.cycle.force("lamp green", False, time=0.2)
    shows(run, "lamp green", True)
    with pytest.raises(onbeat.CommandError, match="written by axis"):
        run.cycle.force("spindle.controlword", 6, time=1.0)
    with pytest.raises(onbeat.CommandError, match="expected true or false"):
        run.cycle.force("lamp green", math.nan, time=1.0)
    with pytest.raises(onbeat.CommandError, match="expected up to 24 h"):
        run.cycle.force("lamp green", False, time=1e6)
    with pytest.raises(ValueError, match="time is -1"):
        run.cycle.force("lamp green", False, time=-1.0)
