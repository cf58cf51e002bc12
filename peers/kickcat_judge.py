"""KickCAT as the MainDevice of the six-axis robot. Usage: kickcat_judge.py INTERFACE"""

import struct
import sys
import time

import kickcat
from kickcat import Access, State
from kickcat.mailbox.request import MessageStatus

from six_axis import (
    BYTES, CYCLES, CYCLIC_SYNCHRONOUS_POSITION, PERIOD, PRODUCT_CODE, REVISION, SUB_DEVICES, VENDOR_ID, Axis, expect,
)

TIMEOUT = 1.0  # s
WATCHDOG = 0.1  # s
LINK_TIMEOUT = 0.02  # s; 2 ms unless told, which a busy machine's scheduler can take
LONGEST_TEXT = 64  # bytes


def main(interface):
    bus = scan(interface)
    for position, slave in enumerate(bus.slaves()):
        identity(bus, position, slave)
    reach_op(bus)
    exchange(bus)
    for position, slave in enumerate(bus.slaves()):
        bus.process_data()
        found = number(bus, slave, 0x6041, 0)
        # Bit 10, target reached, may change between the two readings.
        in_image = struct.unpack("<H", slave.input_data[:2])[0]
        expect(f"position {position}, statusword by SDO", found & ~0x400, in_image & ~0x400)
    bus.request_state(State.INIT)
    bus.wait_for_state(State.INIT, TIMEOUT)
    print(f"kickcat: {SUB_DEVICES} drives, Op, {CYCLES} cycles, every working counter right, SDO reads agree")


def scan(interface):
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
        expect("SubDevices found", len(bus.slaves()), SUB_DEVICES)
        return bus


def identity(bus, position, slave):
    for sub_index, expected in [(0, 4), (1, VENDOR_ID), (2, PRODUCT_CODE), (3, REVISION)]:
        found = number(bus, slave, 0x1018, sub_index)
        expect(f"position {position}, SDO 0x1018:{sub_index}", found, expected)
    name = bus.read_sdo(slave, 0x1008, 0, Access.PARTIAL, LONGEST_TEXT, TIMEOUT)
    expect(f"position {position}, SDO 0x1008", name.rstrip(b"\0").decode(), f"drive-{position + 1}")
    mode = struct.pack("<b", CYCLIC_SYNCHRONOUS_POSITION)
    message = slave.mailbox.write_sdo(0x6060, 0, False, mode, TIMEOUT)
    while message.status() == MessageStatus.RUNNING:
        bus.process_mailboxes()
    expect(f"position {position}, status of SDO download 0x6060", message.status(), int(MessageStatus.SUCCESS))


def number(bus, slave, index, sub_index):
    return int.from_bytes(bus.read_sdo(slave, index, sub_index, Access.PARTIAL, 4, TIMEOUT), "little")


def reach_op(bus):
    bus.create_mapping()
    for position, slave in enumerate(bus.slaves()):
        expect(f"position {position}, bytes of inputs", slave.input_size, BYTES)
        expect(f"position {position}, bytes of outputs", slave.output_size, BYTES)
    bus.request_state(State.SAFE_OP)
    bus.wait_for_state(State.SAFE_OP, TIMEOUT)
    for slave in bus.slaves():
        slave.set_output_bytes(bytes(BYTES))
    bus.process_data_no_check()
    bus.request_state(State.OPERATIONAL)
    deadline = time.monotonic() + 5
    while any(bus.get_state(slave) != State.OPERATIONAL for slave in bus.slaves()):
        bus.process_data_no_check()
        expect("time to Op below 5 s", time.monotonic() < deadline, True)


def exchange(bus):
    axes = [Axis() for _ in bus.slaves()]
    release = time.monotonic()
    for cycle in range(CYCLES):
        for axis, slave in zip(axes, bus.slaves()):
            slave.set_output_bytes(axis.outputs(slave.input_data))
        try:
            bus.process_data()  # raises when a working counter is not the expected one
        except Exception as error:
            raise SystemExit(f"cycle {cycle}: {error}") from error
        release += PERIOD
        time.sleep(max(0.0, release - time.monotonic()))
    for position, axis in enumerate(axes):
        axis.check(f"position {position}")


if __name__ == "__main__":
    main(sys.argv[1])
