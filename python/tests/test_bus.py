"""The bus of a running cycle, asked from outside."""

from __future__ import annotations

import struct
import time

import pytest
from conftest import TIMEOUT, Start, within

import onbeat


def test_objects_are_read_written_and_described_while_the_cycle_runs(start: Start) -> None:
    run = start("six-axis.toml")
    run.until_enabled()
    with run.cycle.bus() as bus:
        assert bus.upload("drive-1", 0x1018, 1, timeout=TIMEOUT) == struct.pack("<I", 0xFFFF0B01)
        assert bus.upload(1, 0x1018, 1) == bus.upload("drive-2", 0x1018, 1)
        # The torque of the load on a simulated drive.
        load = bus.upload("drive-1", 0x2F00, 1)
        bus.download("drive-1", 0x2F00, 1, struct.pack("<i", 1), timeout=TIMEOUT)
        assert struct.unpack("<i", bus.upload("drive-1", 0x2F00, 1)) == (1,)
        bus.download("drive-1", 0x2F00, 1, load)
        with pytest.raises(onbeat.BusError, match="it bounds how the axis of this drive moves"):
            bus.download("drive-1", 0x6065, 0, struct.pack("<I", 4321))
        objects = bus.objects("drive-1", timeout=TIMEOUT)
        assert 0x1018 in objects and 0x6040 in objects
        described = bus.describe_object("drive-1", 0x1018)
        assert (described.index, described.object_code, described.last_sub_index) == (0x1018, 9, 4)
        entry = bus.describe_entry("drive-1", 0x6041, 0)
        assert (entry.index, entry.data_type, entry.bits) == (0x6041, 6, 16) and entry.access & 0b100
        assert [it["name"] for it in bus.describe()][:2] == ["drive-1", "drive-2"]
    assert run.cycle.state().bus.phase == "Op"


def test_states_working_counters_and_error_counters_are_those_of_now(start: Start) -> None:
    run = start("six-axis.toml")
    run.until_enabled()
    with run.cycle.bus() as bus:
        status = bus.status(timeout=TIMEOUT)
        assert (status.phase, len(status.sub_devices)) == ("Op", 6)
        assert all(it.state == "Op" and it.exchanges and it.errors is None for it in status.sub_devices)
        assert status.clock is not None and status.clock.lock == "off"
        assert 0 <= status.clock.frame_phase_ns < run.cycle.description.period_ns
        sync0 = status.sub_devices[0].sync0
        period = run.cycle.description.period_ns
        assert sync0 is not None and (sync0.cycle_ns, sync0.shift_ns) == (period, 100_000)
        assert 0 <= sync0.frame_phase_ns < sync0.cycle_ns and status.sub_devices[0].sync1 is None
        assert status.working_counters and all(it.received == it.expected for it in status.working_counters)
        counted = bus.status(errors=True, timeout=TIMEOUT)
        assert counted.cycle > status.cycle
        errors = counted.sub_devices[0].errors
        assert errors is not None and len(errors.ports) == 4 and errors.ports[0].lost_links == 0
        links = counted.sub_devices[0].links
        assert links is not None and len(links) == 4 and links[0].communication and not links[0].loop_closed
        assert counted.sub_devices[0].receive_times_ns is None
        latched = bus.status(receive_times=True, timeout=TIMEOUT).sub_devices[0]
        assert latched.receive_times_ns is not None and len(latched.receive_times_ns) == 4
        history = counted.working_counter_history
        assert history.short_since is None and history.short_cycles <= counted.cycle
        bus.clear_errors(timeout=TIMEOUT)
        latches = bus.latches(0, timeout=TIMEOUT)
        assert len(latches) == 2 and latches[0].rising == onbeat.LatchEdge(time_ns=None, is_new=False)
        with pytest.raises(onbeat.BusError, match="reports no latch times"):
            bus.latches(99, timeout=TIMEOUT)


def test_events_come_with_their_cycles_and_end_with_the_cycle(start: Start) -> None:
    run = start("six-axis.toml")
    run.until_enabled()
    with run.cycle.bus() as bus:
        # An event is there some milliseconds after the state.
        until = time.monotonic() + TIMEOUT
        phases: list[object] = []
        while phases[-1:] != ["Op"]:
            assert time.monotonic() < until, phases
            kept = list(bus.events(follow=False, timeout=TIMEOUT))
            phases = [it.fields["phase"] for it in kept if isinstance(it, onbeat.Event) and it.event == "phase"]
    with run.cycle.bus() as bus, within(TIMEOUT):
        followed = bus.events(timeout=TIMEOUT)
        first = next(followed)
        assert isinstance(first, onbeat.Event) and first.at_ns > 0 and first.cycle >= 0
        assert (first.severity, first.sentence) == ("ok", f"the bus is in phase {first.fields['phase']}")
        for _ in kept[1:]:
            next(followed)
        run.kill()
        # What happened before the end is told, and then it ends: where the machine stood still, more than there was.
        assert all(it.at_ns >= first.at_ns for it in followed if isinstance(it, onbeat.Event))
        with pytest.raises(onbeat.CycleEndedError):
            bus.upload(0, 0x1018, 1)


def test_what_cannot_be_is_one_sentence_and_the_connection_goes_on(start: Start) -> None:
    run = start("six-axis.toml")
    run.until_enabled()
    with run.cycle.bus() as bus:
        with pytest.raises(onbeat.BusError, match="object does not exist") as aborted:
            bus.upload("drive-1", 0x5FFF)
        assert aborted.value.abort_code == 0x06020000
        with pytest.raises(onbeat.BusError) as refused:
            bus.download("drive-1", 0x6060, 0, b"\x08")
        assert refused.value.abort_code is None
        with pytest.raises(onbeat.BusError):
            bus.upload(99, 0x1018)
        with pytest.raises(KeyError, match="there is no SubDevice 'drive-9'; there are: drive-1"):
            bus.upload("drive-9", 0x1018)
        with pytest.raises(ValueError, match="index is 65536"):
            bus.upload(0, 0x10000)
        with pytest.raises(ValueError, match="sub_index is -1"):
            bus.upload(0, 0x1018, -1)
        with pytest.raises(TypeError, match="expected bytes"):
            bus.download(0, 0x6065, 0, 4000)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="timeout is -1"):
            bus.upload(0, 0x1018, timeout=-1.0)
        with pytest.raises(TimeoutError):
            bus.upload(0, 0x1018, 1, timeout=0.0)
        # The answer to what was given up is not taken for this one's.
        assert bus.upload(0, 0x1018, 2, timeout=TIMEOUT) == struct.pack("<I", 0x402)
    with pytest.raises(ValueError, match="closed"):
        bus.status()
