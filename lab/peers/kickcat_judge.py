"""KickCAT as the MainDevice of the six-axis robot. Usage: kickcat_judge.py INTERFACE ONBEAT SIMULATOR"""

import struct
import sys
import time

import kickcat
from kickcat import Access, State
from kickcat.mailbox.request import MessageStatus

from six_axis import (
    BEHIND, BYTES, CYCLES, CYCLES_AGAIN, CYCLIC_SYNCHRONOUS_POSITION, FALLEN, PERIOD, POWERLESS, PRODUCT_CODE, REVISION,
    SUB_DEVICES, VENDOR_ID, Axis, Simulator, await_that, expect, has_taken_place,
)

TIMEOUT = 1.0  # s
WATCHDOG = 2.0  # s; 0.1 unless told, for which a busy machine may stand still
# 2 ms unless told, which a busy machine's scheduler can take. Its initialisation spends it 140 times, but is tried again.
INIT_TIMEOUT, LINK_TIMEOUT = 0.01, 0.05  # s
LONGEST_TEXT = 64  # bytes


def main(interface, onbeat, simulator):
    bus = in_op(interface)
    exchange(bus, CYCLES)
    statuswords(bus)
    to_init(bus)
    say(f"{SUB_DEVICES} drives, Op, {CYCLES} cycles, every working counter right, SDO reads agree, Init")
    simulator = Simulator(onbeat, simulator)
    del bus  # and its socket
    bus = in_op(interface)
    exchange(bus, CYCLES_AGAIN)
    falls_out_of_op(bus, simulator)
    loses_power(bus, simulator)
    del bus
    # It has no call that addresses and configures one SubDevice anew: the bus comes up again as a whole.
    bus = in_op(interface)
    exchange(bus, CYCLES_AGAIN)
    to_init(bus)
    say(f"with power again drive-{POWERLESS + 1} is in Op by a new start of the whole bus: no call configures one SubDevice anew")


def in_op(interface):
    bus = scan(interface)
    for position, slave in enumerate(bus.slaves()):
        identity(bus, position, slave)
    reach_op(bus)
    return bus


def to_init(bus):
    bus.request_state(State.INIT)
    bus.wait_for_state(State.INIT, TIMEOUT)


def say(what):
    print(f"kickcat: {what}", flush=True)


def scan(interface):
    deadline = time.monotonic() + 10  # the other end may still be starting
    while True:
        link = kickcat.create_link(interface, "")
        link.set_timeout(INIT_TIMEOUT)
        bus = kickcat.Bus(link)
        try:
            bus.init(WATCHDOG)
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
            continue
        link.set_timeout(LINK_TIMEOUT)
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


def exchange(bus, cycles):
    axes = [Axis() for _ in bus.slaves()]
    release = time.monotonic()
    for number in range(cycles):
        error = cycle(bus, axes)
        expect(f"error of cycle {number}", error, None)
        release += PERIOD
        time.sleep(max(0.0, release - time.monotonic()))
    for position, axis in enumerate(axes):
        axis.check(f"position {position}", cycles)


def cycle(bus, axes):
    """Exchanges process data; what KickCAT says of a working counter that is not the expected one."""
    for axis, slave in zip(axes, bus.slaves()):
        slave.set_output_bytes(axis.outputs(slave.input_data))
    try:
        bus.process_data()
    except RuntimeError as error:
        return str(error)
    return None


def statuswords(bus):
    for position, slave in enumerate(bus.slaves()):
        bus.process_data()
        found = number(bus, slave, 0x6041, 0)
        # Bit 10, target reached, may change between the two readings.
        in_image = struct.unpack("<H", slave.input_data[:2])[0]
        expect(f"position {position}, statusword by SDO", found & ~0x400, in_image & ~0x400)


def falls_out_of_op(bus, simulator):
    fault = simulator.begin(f"watchdog expire drive-{FALLEN + 1}")
    error, fallen = first_fault(bus, [FALLEN])
    has_taken_place(fault)
    expect("state by position", fallen, {FALLEN: ERROR})
    axes = [Axis() for _ in bus.slaves()]
    # The only request there is goes to all, and acknowledges: to those in Op it is no change.
    bus.request_state(State.OPERATIONAL)
    await_that("all in Op again", lambda: cycle(bus, axes) is None and not not_in_op(bus))
    say(f"Op again; drive-{FALLEN + 1} falls out of it: {ERROR}, `{error}`; its AL status code is told to C++ only; asked back, all in Op")


def loses_power(bus, simulator):
    fault = simulator.begin(f"power off drive-{POWERLESS + 1}")
    error, silent = first_fault(bus, BEHIND)
    has_taken_place(fault)
    expect("state by position", silent, dict.fromkeys(BEHIND, SILENT))
    say(f"drive-{POWERLESS + 1} loses power: positions {BEHIND} silent, `{error}`")
    has_taken_place(simulator.begin(f"power on drive-{POWERLESS + 1}"))


def first_fault(bus, positions):
    """Exchanges process data until these are not in Op: KickCAT's error then, and their states."""
    axes, found = [Axis() for _ in bus.slaves()], {}

    def happens():
        found["error"] = cycle(bus, axes)
        found["fallen"] = not_in_op(bus) if found["error"] else {}
        return list(found["fallen"]) == positions

    await_that(f"positions {positions} fall out of Op", happens)
    return found["error"], found["fallen"]


def not_in_op(bus):
    states = {position: state(bus, slave) for position, slave in enumerate(bus.slaves())}
    return {position: found for position, found in states.items() if found != State.OPERATIONAL}


def state(bus, slave):
    try:
        return bus.get_state(slave)
    except kickcat.ErrorAL:
        return ERROR
    except ValueError:  # 0 is no state
        return SILENT


ERROR = "error in its AL status"
SILENT = "no answer"


if __name__ == "__main__":
    main(*sys.argv[1:])
