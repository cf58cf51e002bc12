"""`onbeat run --record FILE` and `onbeat export`, read by Foxglove's own readers of MCAP."""

from __future__ import annotations

import csv
import math
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import ONBEAT, ROOT
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from patient import patient

CYCLES = 200


def run(*arguments: str | Path) -> None:
    command: list[str | Path] = [ONBEAT, *arguments]
    subprocess.run(command, cwd=ROOT, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def decoded(path: Path) -> tuple[dict[str, list[tuple[int, Any]]], dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """Messages by topic, metadata of channels, metadata of the file."""
    topics: dict[str, list[tuple[int, Any]]] = {}
    channels: dict[str, dict[str, str]] = {}
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for _, channel, message, content in reader.iter_decoded_messages():
            topics.setdefault(channel.topic, []).append((message.log_time, content))
            channels[channel.topic] = dict(channel.metadata)
        facts = {metadata.name: dict(metadata.metadata) for metadata in reader.iter_metadata()}
    return topics, channels, facts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as it was recorded, and its exports."""
    folder = tmp_path_factory.mktemp("recordings")
    run("run", patient(ROOT / "examples/io-station.toml", folder, "5ms"), "--no-ipc", "--cycles", str(CYCLES), "--record", folder / "direct.mcap")
    for name in ("run.mcap", "run.csv"):
        run("export", folder / "direct.mcap", folder / name)
    return folder


# feature(measure): recordings as MCAP open in Foxglove's reader, with every cycle at its wall time, axes, signals and units
@pytest.mark.parametrize("name", ["direct.mcap", "run.mcap"])
def test_foxgloves_reader_finds_every_cycle_and_signal(folder: Path, name: str) -> None:
    topics, channels, facts = decoded(folder / name)
    cycles = topics["/cycle"]
    assert len(cycles) == CYCLES
    assert facts["onbeat"]["robot"] == "io-station"
    assert facts["onbeat_end"]["cycles"] == str(CYCLES)
    offset = int(facts["onbeat"]["realtime_offset_ns"])
    for at, cycle in cycles:
        assert at == cycle.release_ns + offset
        assert cycle.wakeup_latency_ns == cycle.start_ns - cycle.release_ns
        assert cycle.signals_forced == 0
    assert abs(cycles[-1][0] / 1e9 - time.time()) < 600
    assert [cycle.period_ns for _, cycle in cycles[1:]] == [b.start_ns - a.start_ns for (_, a), (_, b) in zip(cycles, cycles[1:])]
    signals = {topic for topic in topics if topic.startswith("/signals/")}
    assert signals
    assert all(math.isfinite(message.value) for topic in signals for _, message in topics[topic])
    assert any(metadata.get("unit") for metadata in channels.values())
    axis = topics["/axes/spindle"]
    assert len(axis) == CYCLES
    assert [at for at, _ in axis] == [at for at, _ in cycles]
    _, last = axis[-1]
    assert all(math.isfinite(number) for number in (last.position, last.velocity, last.torque, last.target_velocity))
    assert (last.drive_state, last.stop, last.error_code) == (5, 0, 0)
    assert {message.drive_state for _, message in axis} <= {-1, *range(9)}
    if name == "direct.mcap":  # the way up is told, too
        events = [message for _, message in topics["/events"]]
        assert all(message.severity and message.sentence and message.cycle >= 0 for message in events)


def test_csv_has_what_the_mcap_has(folder: Path) -> None:
    topics, _, _ = decoded(folder / "run.mcap")
    with (folder / "run.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["release_ns"]) for row in rows] == [cycle.release_ns for _, cycle in topics["/cycle"]]
    for topic in (topic for topic in topics if topic.startswith("/signals/")):
        column = "signal:" + topic.removeprefix("/signals/")
        values = [float(row[column]) for row in rows if row[column]]
        assert values == [message.value for _, message in topics[topic]]
