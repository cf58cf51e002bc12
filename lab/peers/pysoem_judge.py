"""pysoem (SOEM) as the MainDevice of the six-axis robot. Usage: pysoem_judge.py INTERFACE ONBEAT SIMULATOR"""

import struct
import sys
import time

import pysoem

from six_axis import (
    BEHIND, BYTES, CYCLES, CYCLES_AGAIN, CYCLIC_SYNCHRONOUS_POSITION, FALLEN, PERIOD, POWERLESS, PRODUCT_CODE, REVISION,
    SUB_DEVICES, VENDOR_ID, Axis, Simulator, await_that, expect, has_taken_place,
)

TIMEOUT_US = 50_000
# 100 unless told, for which a busy machine may stand still.
PROCESS_DATA_WATCHDOG_MS = 2000
SAFEOP_ERROR = pysoem.SAFEOP_STATE + pysoem.STATE_ERROR
WATCHDOG = 0x001B  # AL status code: the process data watchdog expired


def main(interface, onbeat, simulator):
    # 2 ms unless told, which a busy machine's scheduler can take.
    pysoem.settings.timeouts.ret = TIMEOUT_US
    in_op(interface, CYCLES, statuswords)
    print(f"pysoem: {SUB_DEVICES} drives, Op, {CYCLES} cycles, every working counter right, SDO reads agree, Init")
    simulator = Simulator(onbeat, simulator)
    in_op(interface, CYCLES_AGAIN, lambda master: [falls_out_of_op(master, simulator), loses_power(master, simulator)])


def in_op(interface, cycles, then):
    """From opening the interface to Op, to Init and to closing it."""
    master = pysoem.Master()
    master.open(interface)
    try:
        scan(master)
        identities(master)
        reach_op(master)
        exchange(master, cycles)
        then(master)
        master.state = pysoem.INIT_STATE
        master.write_state()
        expect("state after asking for Init", master.state_check(pysoem.INIT_STATE, 2_000_000), pysoem.INIT_STATE)
    finally:
        master.close()


def scan(master):
    deadline = time.monotonic() + 10  # the other end may still be starting
    while master.config_init() != SUB_DEVICES and time.monotonic() < deadline:
        time.sleep(0.1)
    expect("SubDevices found", len(master.slaves), SUB_DEVICES)
    for slave in master.slaves:
        slave.add_emergency_callback(emergency)
        # Called whenever it is configured: it has lost its registers with its power, too.
        slave.config_func = lambda position: master.slaves[position].set_watchdog("processdata", PROCESS_DATA_WATCHDOG_MS)


def emergency(message):
    # Frames stopped at the end of the run before, which is a fault to a drive; only that it was reset may be told.
    expect("error code of an emergency", message.error_code, 0)


def identities(master):
    for position, slave in enumerate(master.slaves):
        place = f"position {position}"
        # SOEM reads the SII name of the first of several alike only, and copies it.
        expect(f"{place}, name in SII", slave.name, "drive-1")
        expect(f"{place}, vendor in SII", slave.man, VENDOR_ID)
        expect(f"{place}, product in SII", slave.id, PRODUCT_CODE)
        expect(f"{place}, revision in SII", slave.rev, REVISION)
        for sub_index, expected in [(1, VENDOR_ID), (2, PRODUCT_CODE), (3, REVISION)]:
            found = struct.unpack("<I", slave.sdo_read(0x1018, sub_index))[0]
            expect(f"{place}, SDO 0x1018:{sub_index}", found, expected)
        expect(f"{place}, SDO 0x1018:0", slave.sdo_read(0x1018, 0)[0], 4)
        name = slave.sdo_read(0x1008, 0).rstrip(b"\0").decode()
        expect(f"{place}, SDO 0x1008", name, f"drive-{position + 1}")
        try:
            slave.sdo_read(0x2FFF, 0)
            raise SystemExit(f"{place}, SDO 0x2FFF: expected an abort, found a value")
        except pysoem.SdoError as abort:
            expect(f"{place}, abort of SDO 0x2FFF", abort.abort_code, 0x06020000)
        slave.sdo_write(0x6060, 0, struct.pack("<b", CYCLIC_SYNCHRONOUS_POSITION))


def reach_op(master):
    master.config_map()
    expect("distributed clocks found", bool(master.config_dc()), True)
    for position, slave in enumerate(master.slaves):
        expect(f"position {position}, bytes of inputs", len(slave.input), BYTES)
        expect(f"position {position}, bytes of outputs", len(slave.output), BYTES)
    check_state(master, pysoem.SAFEOP_STATE)
    master.send_processdata()
    master.receive_processdata(TIMEOUT_US)
    master.state = pysoem.OP_STATE
    master.write_state()
    for _ in range(1000):
        master.send_processdata()
        master.receive_processdata(TIMEOUT_US)
        if master.state_check(pysoem.OP_STATE, 1000) == pysoem.OP_STATE:
            break
    check_state(master, pysoem.OP_STATE)


def check_state(master, state):
    found = master.state_check(state, 2_000_000)
    if found != state:
        master.read_state()
        codes = [f"{slave.state:#x}/{slave.al_status:#06x}" for slave in master.slaves]
        raise SystemExit(f"expected state {state:#x}, found state/AL status code {', '.join(codes)}")


def exchange(master, cycles):
    axes = [Axis() for _ in master.slaves]
    expect("expected working counter", master.expected_wkc, 3 * SUB_DEVICES)
    release = time.monotonic()
    for number in range(cycles):
        expect(f"working counter of cycle {number}", cycle(master, axes), master.expected_wkc)
        release += PERIOD
        time.sleep(max(0.0, release - time.monotonic()))
    for position, axis in enumerate(axes):
        axis.check(f"position {position}", cycles)


def cycle(master, axes):
    """Exchanges process data; its working counter."""
    for axis, slave in zip(axes, master.slaves):
        slave.output = axis.outputs(slave.input)
    master.send_processdata()
    return master.receive_processdata(TIMEOUT_US)


def statuswords(master):
    for position, slave in enumerate(master.slaves):
        master.send_processdata()
        master.receive_processdata(TIMEOUT_US)
        found = struct.unpack("<H", slave.sdo_read(0x6041, 0))[0]
        # Bit 10, target reached, may change between the two readings.
        expect(f"position {position}, statusword by SDO", found & ~0x400, struct.unpack("<H", slave.input[:2])[0] & ~0x400)


def falls_out_of_op(master, simulator):
    fault = simulator.begin(f"watchdog expire drive-{FALLEN + 1}")
    working_counter, fallen = first_fault(master, [FALLEN])
    has_taken_place(fault)
    expect("state and AL status code by position", fallen, {FALLEN: (SAFEOP_ERROR, WATCHDOG)})
    bring_back(master)
    print(f"pysoem: Op again; drive-{FALLEN + 1} falls out of it: SafeOp with AL status code {WATCHDOG:#06x}, working counter",
          f"{working_counter} of {master.expected_wkc}; acknowledged, and all in Op")


def loses_power(master, simulator):
    fault = simulator.begin(f"power off drive-{POWERLESS + 1}")
    working_counter, silent = first_fault(master, BEHIND)
    has_taken_place(fault)
    expect("state by position", {position: state for position, (state, _code) in silent.items()}, dict.fromkeys(BEHIND, 0))
    fault = simulator.begin(f"power on drive-{POWERLESS + 1}")
    bring_back(master)
    has_taken_place(fault)
    # Who was cut off answers at once, who was without power is addressed and configured anew; each drive works again.
    exchange(master, CYCLES_AGAIN)
    print(f"pysoem: drive-{POWERLESS + 1} loses power: positions {BEHIND} silent, working counter {working_counter} of",
          f"{master.expected_wkc}; with power again addressed, configured (recover, reconfig) and in Op")


def first_fault(master, positions):
    """Exchanges process data until these are not in Op: the working counter then, their states and AL status codes."""
    axes, found = [Axis() for _ in master.slaves], {}

    def happens():
        found["counter"] = cycle(master, axes)
        found["fallen"] = not_in_op(master) if found["counter"] != master.expected_wkc else {}
        return list(found["fallen"]) == positions

    await_that(f"positions {positions} fall out of Op", happens)
    return found["counter"], found["fallen"]


def not_in_op(master):
    master.read_state()
    return {
        position: (slave.state, slave.al_status)
        for position, slave in enumerate(master.slaves) if slave.state != pysoem.OP_STATE
    }


def bring_back(master):
    """As SOEM's examples do: a step for each SubDevice that is not in Op, and process data goes on."""
    axes = [Axis() for _ in master.slaves]

    def happens():
        counter = cycle(master, axes)
        fallen = not_in_op(master)
        for slave in (master.slaves[position] for position in fallen):
            if slave.state == pysoem.NONE_STATE:
                slave.recover(TIMEOUT_US)
            elif slave.state in (SAFEOP_ERROR, pysoem.SAFEOP_STATE):
                is_error = slave.state == SAFEOP_ERROR
                slave.state = pysoem.SAFEOP_STATE + pysoem.STATE_ACK if is_error else pysoem.OP_STATE
                slave.write_state()
            else:
                slave.reconfig(TIMEOUT_US)
        return counter == master.expected_wkc and not fallen

    await_that("all in Op again", happens)


if __name__ == "__main__":
    main(*sys.argv[1:])
