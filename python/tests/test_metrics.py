"""`/metrics` of `onbeat serve`, read by Prometheus's own parser of its text format."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ONBEAT, TIMEOUT, ROOT
from patient import patient
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address at which the metrics of a run are served."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    robot = patient(ROOT / "examples/six-axis.toml", tmp_path, "10ms")
    socket_path = tmp_path / "metrics.sock"

    def start(*arguments: str | Path) -> subprocess.Popen[bytes]:
        nothing = subprocess.DEVNULL
        return subprocess.Popen([ONBEAT, *arguments], cwd=ROOT, stdin=nothing, stdout=nothing, stderr=nothing)

    run = start("run", robot, "--profile", "none", "--ipc", socket_path)
    serve = start("serve", "--ipc", socket_path, "--listen", address)
    yield address
    serve.terminate()
    serve.wait(TIMEOUT)
    run.terminate()
    assert run.wait(TIMEOUT) == 0


def families(address: str) -> dict[str, Metric]:
    end = time.monotonic() + TIMEOUT
    while True:
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as reply:
                assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                return {family.name: family for family in text_string_to_metric_families(reply.read().decode())}
        except urllib.error.URLError:
            assert time.monotonic() < end, f"no metrics within {TIMEOUT} s"
            time.sleep(0.05)


# feature(python): Prometheus's parser reads the metrics of a run
def test_prometheus_reads_every_metric(address: str) -> None:
    end = time.monotonic() + TIMEOUT
    while not (found := families(address))["onbeat_cycles"].samples[0].value > 0:
        assert time.monotonic() < end
    assert all(family.type != "unknown" and family.documentation for family in found.values())
    kinds = {family.type for family in found.values()}
    assert kinds == {"gauge", "counter", "histogram"}
    jitter = found["onbeat_response_time_seconds"].samples
    buckets = [sample.value for sample in jitter if sample.name.endswith("_bucket")]
    assert buckets == sorted(buckets) and buckets[-1] == next(it.value for it in jitter if it.name.endswith("_count"))
    for state_set, label in (("onbeat_axis_state", "axis"), ("onbeat_bus_phase", None)):
        active = [sample for sample in found[state_set].samples if sample.value == 1]
        assert len(active) == (6 if label else 1), active
    assert {it.labels["sub_device"] for it in found["onbeat_sub_device_al_state"].samples} == {f"drive-{n}" for n in range(1, 7)}
