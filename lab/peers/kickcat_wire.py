"""KickCAT's process-data loop under measurement by `cargo xtask bench wire`.

Usage: kickcat_wire.py INTERFACE SUB_DEVICES BYTES_EACH. Says `ready FRAME_BYTES`, then answers each number of
cycles on standard input with one line: their CPU time together and each duration, in nanoseconds.
"""

import os
import sys
import time

import kickcat
from kickcat import State

from six_axis import expect

OVERHEAD = 14 + 2 + 12  # Ethernet, EtherCAT and datagram header, working counter
SHORTEST = 60  # bytes of a frame
TIMEOUT = 2.0  # s
WATCHDOG = 0.1  # s
LINK_TIMEOUT = 0.02  # s; 2 ms unless told, which a busy machine's scheduler can take


def main(interface, sub_devices, bytes_each):
    # KickCAT prints to standard output, which is the conversation's: give it standard error instead.
    conversation = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    bus = scan(interface, sub_devices)
    bus.create_mapping()
    for slave in bus.slaves():
        expect("bytes of inputs and outputs", (slave.input_size, slave.output_size), (bytes_each, bytes_each))
    bus.request_state(State.SAFE_OP)
    bus.wait_for_state(State.SAFE_OP, TIMEOUT)
    for slave in bus.slaves():
        slave.set_output_bytes(bytes(bytes_each))
    bus.process_data_no_check()
    bus.request_state(State.OPERATIONAL)
    bus.wait_for_state(State.OPERATIONAL, TIMEOUT, bus.process_data_no_check)
    # It sends one frame that reads the inputs, awaits it, and sends one that writes the outputs.
    print("ready", 2 * max(SHORTEST, OVERHEAD + sub_devices * bytes_each), file=conversation)
    for line in sys.stdin:
        print(*measure(bus, int(line)), file=conversation)


def scan(interface, sub_devices):
    deadline = time.monotonic() + 10  # the other end may still be starting
    while True:
        link = kickcat.create_link(interface, "")
        link.set_timeout(LINK_TIMEOUT)
        bus = kickcat.Bus(link)
        try:
            bus.init(WATCHDOG)
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
            continue
        expect("SubDevices found", len(bus.slaves()), sub_devices)
        return bus


def measure(bus, cycles):
    """CPU time and durations. `process_data` raises when a working counter is not the expected one."""
    process_data, now = bus.process_data, time.perf_counter_ns
    durations = [0] * cycles
    cpu = time.process_time_ns()
    for cycle in range(cycles):
        start = now()
        process_data()
        durations[cycle] = now() - start
    return [time.process_time_ns() - cpu, *durations]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
