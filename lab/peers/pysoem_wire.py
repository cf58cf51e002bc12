"""pysoem's process-data loop under measurement by `cargo xtask bench wire`.

Usage: pysoem_wire.py INTERFACE SUB_DEVICES BYTES_EACH. Says `ready FRAME_BYTES`, then answers each number of
cycles on standard input with one line: their CPU time together and each duration, in nanoseconds.
"""

import sys
import time

import pysoem

from six_axis import expect

OVERHEAD = 14 + 2 + 12  # Ethernet, EtherCAT and datagram header, working counter
TIMEOUT_US = 2000


def main(interface, sub_devices, bytes_each):
    master = pysoem.Master()
    master.open(interface)
    deadline = time.monotonic() + 10  # the other end may still be starting
    while master.config_init() != sub_devices and time.monotonic() < deadline:
        time.sleep(0.1)
    expect("SubDevices found", len(master.slaves), sub_devices)
    expect("bytes of process data", master.config_map(), 2 * sub_devices * bytes_each)
    master.state_check(pysoem.SAFEOP_STATE, 2_000_000)
    exchange(master)
    master.state = pysoem.OP_STATE
    master.write_state()
    for _ in range(1000):
        exchange(master)
        if master.state_check(pysoem.OP_STATE, 1000) == pysoem.OP_STATE:
            break
    expect("state", master.read_state(), pysoem.OP_STATE)
    print("ready", OVERHEAD + 2 * sub_devices * bytes_each, flush=True)
    for line in sys.stdin:
        measure(master, int(line))


def measure(master, cycles):
    send, receive, now = master.send_processdata, master.receive_processdata, time.perf_counter_ns
    expected, durations = master.expected_wkc, [0] * cycles
    cpu = time.process_time_ns()
    for cycle in range(cycles):
        start = now()
        send()
        found = receive(TIMEOUT_US)
        durations[cycle] = now() - start
        if found != expected:
            raise SystemExit(f"pysoem: working counter of cycle {cycle}: expected {expected}, found {found}")
    cpu = time.process_time_ns() - cpu
    print(cpu, *durations, flush=True)


def exchange(master):
    master.send_processdata()
    return master.receive_processdata(TIMEOUT_US)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
